"""Jobs on boards and plans on networks, from the command line and Python."""

import struct
from pathlib import Path

import pytest
import unisono as un

from .conftest import Spawn, call, json_of

KEYS = {"utilization_mean", "utilization_p1", "placed", "refused"}


def test_allocate_says_how_much_is_used(tmp_path: Path) -> None:
    picture = tmp_path / "map.png"
    options = ["--machine", "hx2mesh-small", "--jobs", "alibaba", "--fail", "20", "--seed", "3", "--samples", "10"]
    ran = call("allocate", *options, "--plot", str(picture), "--json")
    assert ran.code == 0, ran.err
    assert set(ran.json) >= KEYS
    assert 0.5 < ran.json["utilization_p1"] <= ran.json["utilization_mean"] <= 1
    assert ran.json == call("allocate", *options, "--plot", str(picture), "--json").json
    width, height = struct.unpack(">II", picture.read_bytes()[16:24])
    assert width > 600
    assert height > 600
    table = call("allocate", *options)
    assert "utilization" in table.out


def test_jobs_of_a_file_keep_off_failed_boards(tmp_path: Path) -> None:
    jobs = tmp_path / "jobs.txt"
    jobs.write_text("8x8  # the large one\n12\n5\n")
    study = un.allocate("hx2mesh-small", jobs, fail=40, samples=3, seed=7)
    assert study == un.allocate("hx2mesh-small", ["8x8", 12, 5], fail=40, samples=3, seed=7)
    taken = {tuple(board) for board in study["first"]["failed"]}
    assert len(taken) == 40
    for job in study["first"]["jobs"]:
        boards = {(row, column) for row in job["rows"] or [] for column in job["columns"] or []}
        assert not taken & boards
        assert job["rows"] is None or len(boards) >= job["boards"]
        taken |= boards


def test_a_virtual_sub_mesh() -> None:
    places, shape = un.submesh("hx2mesh-small", [0, 2], [1, 5, 6])
    assert shape == (4, 6)
    assert places[:6] == [2, 3, 10, 11, 12, 13]
    assert len(set(places)) == 24
    for rows in ([], [16], [1, 1], [2, 1], [-1]):
        with pytest.raises(un.InputError):
            un.submesh("hx2mesh-small", rows, [0])


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--machine", "hx2mesh-small", "--fail", "256"], "256 of hx2mesh-small's 256 boards fail"),
        (["--machine", "hx2mesh-small", "--fail", "-1"], "fail is -1"),
        (["--machine", "hx2mesh-small", "--samples", "0"], "samples is 0"),
        (["--machine", "hx2mesh-small", "--heuristic", "best"], "greedy, transpose, aspect, sort, locality"),
        (["--machine", "hx2mesh-small", "--jobs", "large.txt"], "a job of 300 boards is larger than hx2mesh-small"),
        (["--machine", "hx2mesh-small", "--jobs", "none.txt"], "none.txt"),
        (["--machine", "hx2mesh-small", "--jobs", "empty.txt"], "holds no job"),
        (["--machine", "hx2mesh-small", "--jobs", "words.txt"], "line 1: 'many' is no job"),
        (["--machine", "hx2mesh-small", "--plot", "map.gif"], "end in .png, .svg or .pdf"),
        (["--machine", "fattree-small"], "has no rows and columns of boards"),
        (["--machine", "wse2"], "has no rows and columns of boards"),
    ],
)
def test_wrong_allocations(options: list[str], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in (("large", "300"), ("empty", "# nothing"), ("words", "many")):
        Path(f"{name}.txt").write_text(text)
    ran = call("allocate", *options)
    assert ran.code == 2
    assert why in ran.err
    assert len(ran.err.strip().splitlines()) == 1


@pytest.mark.soak
def test_plans_on_networks_change_with_the_length() -> None:
    def best(size: str) -> str:
        return un.plan("allreduce", "hx2mesh-small", shape="8x32", bytes=size).algorithm

    assert best("1GiB") == "dual-rings"
    assert best("1MiB") in {"forest", "swing", "bucket"}
    compared = [
        un.plan("allreduce", "hx2mesh-small", shape="8x32", bytes=size, algorithm=name).predicted["seconds"]
        for size in ("1MiB", "1GiB")
        for name in ("bucket", "dual-rings")
    ]
    assert compared[0] < compared[1]
    assert compared[2] > compared[3]


def test_a_plan_on_a_network_reports_as_others_do(within: Spawn) -> None:
    ran = call("plan", "allreduce", "--machine", "hx2mesh-small", "--ranks", "128", "--bytes", "1MiB", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["shape"] == [4, 32]
    assert ran.json["model"] == "links"
    assert {c["source"] for c in ran.json["candidates"]} == {"exchanges", "messages"}
    assert all(c["ratio"] >= 1 for c in ran.json["candidates"])
    bounds = call("bound", "alltoall", "--machine", "hx2mesh-small", "--bytes", "64KiB", "--json").json["bounds"]
    assert [b["name"] for b in bounds] == ["bisection", "board-edges", "flow", "injection", "latency"]
    swept = call(
        *["sweep", "allreduce", "--machine", "hx2mesh-small", "--shapes", "4x8,8", "--elements", "1024", "--json"],
        *["--algorithms", "bucket,dual-rings"],
    )
    assert [point["shape"] for point in swept.json["points"]] == [[4, 8], [8]]
    # A schedule planned on a network can be stored for MPI.
    four = ["plan", "allreduce", "--machine", "hx2mesh-small", "--ranks", "4", "--bytes", "1KiB"]
    assert within(*four, "-o", "t.plan").code == 0
    refused = call("plan", "allreduce", "--machine", "hx2mesh-small", "--shape", "33x2", "--bytes", "1KiB")
    assert refused.code == 2
    assert "the 32x32 accelerators of" in refused.err


def test_boards_fail_by_their_names() -> None:
    study = un.allocate("hx2mesh-small", [1], failed=[(0, 3), (15, 0)], fail=2, samples=3)
    assert (study["fail"], list(map(list, study["failed"]))) == (4, [[0, 3], [15, 0]])
    assert len(study["first"]["failed"]) == 4
    assert {(0, 3), (15, 0)} <= set(map(tuple, study["first"]["failed"]))
    options = ("allocate", "--machine", "hx2mesh-small", "--samples", "2")
    report = json_of(*options, "--fail", "3,4", "--fail", "0,0")
    assert report["first"]["failed"] == [[0, 0], [3, 4]]
    assert report["failed"] == [[3, 4], [0, 0]]
    assert "2 failed (3,4; 0,0)" in call(*options, "--fail", "3,4", "--fail", "0,0").out
    assert "3 failed (3,4; 2 drawn)" in call(*options, "--fail", "3,4", "--fail", "2").out


@pytest.mark.parametrize("boards", [[3, 5], [5, 3]])
def test_boards_have_a_row_and_a_column(boards: list[int]) -> None:
    mesh = un.machine("hx2mesh-small").describe()
    mesh["topology"] |= {"boards": boards}
    failed = [(0, 2), (1, 1), (2, 0)]
    study = un.allocate(mesh, [1], failed=failed[::-1], samples=1)
    assert [tuple(board) for board in study["first"]["failed"]] == failed


@pytest.mark.parametrize(
    ("fail", "why"),
    [
        (["16,0"], "there is no board 16,0; accepted are rows 0 to 15 and columns 0 to 15 of hx2mesh-small"),
        (["1,2", "1,2"], "board 1,2 is named twice"),
        (["1,2,3"], "'1,2,3' is no board; accepted are its row and column"),
        (["3", "4"], "--fail has 2 numbers of boards to draw"),
        (["x"], "is not a whole number"),
    ],
)
def test_wrong_boards_are_refused(fail: list[str], why: str) -> None:
    ran = call("allocate", "--machine", "hx2mesh-small", *(word for one in fail for word in ("--fail", one)))
    assert ran.code == 2
    assert why in ran.err


def test_a_job_that_takes_more_boards_than_its_size_says_so(tmp_path: Path) -> None:
    jobs = tmp_path / "jobs"
    for size, taken in ((37, "40"), (36, "36")):
        jobs.write_text(f"{size}\n")
        ran = call("allocate", "--machine", "hx2mesh-small", "--jobs", str(jobs), "--samples", "1")
        row = next(line.split() for line in ran.out.splitlines() if line.split()[:1] == [str(size)])
        assert (row[1], "boards of the next size" in ran.out) == (taken, size == 37)
