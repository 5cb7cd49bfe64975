"""Jobs on boards and plans on networks, from the command line and Python."""

import itertools
import math
import struct
from pathlib import Path

import pytest
import unisono as un

from .conftest import Spawn, call, json_of, refusal, written

KEYS = {"utilization_mean", "utilization_p1", "placed", "refused"}


def test_allocate_says_how_much_is_used(tmp_path: Path) -> None:
    picture = tmp_path / "map.png"
    options = ["--machine", "hx2mesh-small", "--jobs", "alibaba", "--fail", "20", "--seed", "3", "--samples", "10"]
    found = json_of("allocate", *options, "--plot", str(picture))
    assert set(found) >= KEYS
    assert 0.5 < found["utilization_p1"] <= found["utilization_mean"] <= 1
    assert found == call("allocate", *options, "--plot", str(picture), "--json").json
    width, height = struct.unpack(">II", picture.read_bytes()[16:24])
    assert width > 600
    assert height > 600
    table = call("allocate", *options)
    assert "utilization" in table.out


def test_jobs_of_a_file_keep_off_failed_boards(tmp_path: Path) -> None:
    jobs = written(tmp_path / "jobs.txt", "8x8  # the large one\n12\n5\n")
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
        (["--machine", "dgx-a100"], "a graph of [8] accelerators; accepted are networks of the families boxes, drag"),
        (["--machine", "wse2"], "jobs are not placed on wse2, which is not a network"),
        (["--machine", "fattree-small", "--board", "3"], "boards divide its 1024 accelerators"),
        (["--machine", "fattree-small", "--board", "0"], "board is 0, and must be a number of accelerators from 1"),
        (["--machine", "hx2mesh-small", "--board", "4"], "hx2mesh-small has boards of 2x2 accelerators"),
        (["--machine", "torus2d-small", "--aligned"], "torus2d-small has no leaves, groups or boxes"),
    ],
)
def test_wrong_allocations(options: list[str], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in (("large", "300"), ("empty", "# nothing"), ("words", "many")):
        Path(f"{name}.txt").write_text(text)
    refused = refusal("allocate", *options)
    assert why in refused
    assert len(refused.strip().splitlines()) == 1


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
    found = json_of("plan", "allreduce", "--machine", "hx2mesh-small", "--ranks", "128", "--bytes", "1MiB")
    assert found["shape"] == [4, 32]
    assert found["model"] == "links"
    assert {c["source"] for c in found["candidates"]} == {"exchanges", "messages"}
    assert all(c["ratio"] >= 1 for c in found["candidates"])
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
    refused = refusal("plan", "allreduce", "--machine", "hx2mesh-small", "--shape", "33x2", "--bytes", "1KiB")
    assert "the 32x32 accelerators of" in refused


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
        (["board 1,2", "board 1,2"], "'board 1,2' is named twice"),
        (["1,2,3"], "there is no board 1,2,3; accepted are rows 0 to 15 and columns 0 to 15"),
        (["1,,3"], "'1,,3' is no board; accepted are its row and column"),
        (["3", "4"], "--fail has 2 numbers of boards to draw"),
        (["3.5"], "is not a whole number"),
        (["leaf 3"], "'leaf 3' is no part of hx2mesh-small with accelerators; accepted are"),
    ],
)
def test_wrong_boards_are_refused(fail: list[str], why: str) -> None:
    assert why in refusal("allocate", "--machine", "hx2mesh-small", *(word for one in fail for word in ("--fail", one)))


@pytest.mark.parametrize(("dims", "steps"), [([16384], 10**8), ([16, 16, 16], 3 * 10**7), ([8, 8, 8, 8], 6 * 10**7)])
def test_the_steps_of_a_torus_are_near_those_it_takes(dims: list[int], steps: int) -> None:
    """The estimate is at least a quarter of these steps, at most twice as many; a step takes about a nanosecond."""
    torus = {**un.machine("torus2d-small").describe(), "topology": {"name": "torus", "dims": dims}}
    with un.limits(steps=steps // 4), pytest.raises(un.InputError, match="the study of the allocation needs about"):
        un.allocate(torus, samples=1)
    with un.limits(steps=2 * steps):
        assert un.allocate(torus, samples=1)["utilization_mean"] > 0.9


def test_a_job_that_takes_more_boards_than_its_size_says_so(tmp_path: Path) -> None:
    jobs = tmp_path / "jobs"
    for size, taken in ((37, "40"), (36, "36")):
        jobs.write_text(f"{size}\n")
        ran = call("allocate", "--machine", "hx2mesh-small", "--jobs", str(jobs), "--samples", "1")
        row = next(line.split() for line in ran.out.splitlines() if line.split()[:1] == [str(size)])
        assert (row[1], "boards of the next size" in ran.out) == (taken, size == 37)


def small(topology: dict[str, object]) -> dict[str, object]:
    """Returns the description of a small network with a given topology."""
    return {**un.machine("fattree-small").describe(), "name": "small", "topology": topology}


#: Networks of 64 boards, with the accelerators of a board if the topology defines none.
NETWORKS: dict[str, tuple[dict[str, object], int | None]] = {
    "hxmesh": ({"name": "hxmesh", "board": [2, 2], "boards": [8, 8]}, None),
    "torus": ({"name": "torus", "dims": [8, 8, 4], "board": [2, 2, 1]}, None),
    "mesh": ({"name": "mesh", "dims": [16, 16], "board": [2, 2]}, None),
    "fattree": ({"name": "fattree", "accelerators": 256, "levels": 2, "down": 16, "up": 16}, 4),
    "dragonfly": ({"name": "dragonfly", "p": 4, "a": 8, "h": 4, "g": 8}, 4),
    "boxes": (
        {
            "name": "boxes",
            "boxes": 32,
            "accelerators": 8,
            "inside": "".join(f"{k} 8\n" for k in range(8)),
            "uplinks": "8 0",
        },
        4,
    ),
}


@pytest.mark.parametrize("family", NETWORKS)
def test_jobs_are_placed_on_every_family_around_failures(family: str) -> None:
    topology, board = NETWORKS[family]
    for aligned in (False, True) if board else (False,):
        study = un.allocate(small(topology), fail=9, board=board, samples=5, seed=2, aligned=aligned)
        assert math.prod(study["boards"]) == 64
        assert math.prod(study["board"]) == 4
        extents = study["boards"]
        taken = {tuple(board) for board in study["first"]["failed"]}
        assert len(taken) == study["fail"] == 9
        used = 0
        for job in study["first"]["jobs"]:
            if job["positions"] is None:
                continue
            boards = set(itertools.product(*job["positions"]))
            assert not taken & boards
            assert all(0 <= at < all_ for place in boards for at, all_ in zip(place, extents, strict=True))
            assert len(boards) >= job["boards"]
            if study["rule"] == "sub-box":
                for line, extent in zip(job["positions"], extents, strict=True):
                    follows = [(at + 1) % extent if family == "torus" else at + 1 for at in line]
                    assert follows[:-1] == line[1:]
            taken |= boards
            used += job["boards"]
        assert used <= 64 - 9
        assert 0 < study["utilization_p1"] <= study["utilization_mean"] <= 1
        if study["rule"] == "any":
            assert study["utilization_mean"] == 1


def test_networks_of_the_same_number_of_boards_have_the_same_jobs_and_failures() -> None:
    studies = [
        un.allocate(small(topology), fail=5, board=board, samples=1, seed=4) for topology, board in NETWORKS.values()
    ]
    jobs = [[job["boards"] for job in study["first"]["jobs"]] for study in studies]
    assert all(one == jobs[0] for one in jobs)
    numbers = []
    for study in studies:
        strides = [math.prod(study["boards"][at + 1 :]) for at in range(len(study["boards"]))]
        failed = study["first"]["failed"]
        numbers.append([sum(at * by for at, by in zip(board, strides, strict=True)) for board in failed])
    assert all(one == numbers[0] for one in numbers)


def test_parts_and_accelerators_of_the_machine_fail() -> None:
    fly = small(NETWORKS["dragonfly"][0])
    # Group 2 has routers 16 to 23, each with one board of four accelerators.
    study = un.allocate(fly, [1], failed=["group 2", (0,), "accelerator 65"], board=4, samples=1)
    assert study["failed"] == [[at] for at in (*range(16, 24), 0)]
    broken = un.machine(fly, failed=["accelerator 5", "7", 40])
    assert un.allocate(broken, [1], failed=["accelerator 6"], fail=2, board=4, samples=1)["failed"] == [[1], [10]]
    # Rows and columns of boards stay those of the machine without failures.
    mesh = un.machine("hx2mesh-small", failed=["board 2,1"])
    assert un.allocate(mesh, [1], samples=1)["failed"] == [[2, 1]]
    for wrong, why in ((["router 2"], "names such as 'accelerator 255' or 'group 7'"), ([(64,)], "boards 0 to 63")):
        with pytest.raises(un.InputError, match=why):
            un.allocate(fly, [1], failed=wrong, board=4)


def test_families_are_compared_on_the_command_line(tmp_path: Path) -> None:
    fly = ("--machine", "dragonfly-small", "--board", "4", "--samples", "5", "--seed", "1", "--fail", "20")
    picture = tmp_path / "map.svg"
    out = call("allocate", *fly, "--plot", str(picture)).out
    assert "alibaba jobs on 256 boards of 4 accelerators of dragonfly-small, 20 failed, 5 samples" in out
    assert "any boards" in out
    assert "100.00% mean" in out
    assert "leaf, group or box" in picture.read_text()
    near = json_of("allocate", *fly, "--heuristic", "locality")
    assert near["upper_level"]["alltoall"] < json_of("allocate", *fly)["upper_level"]["alltoall"]
    assert near["utilization_mean"] == 1
    # Each of the eight groups has room for one job of 20 of its 32 boards.
    jobs = written(tmp_path / "jobs", "20\n" * 12)
    on = ("allocate", "--machine", "dragonfly-small", "--board", "4", "--samples", "1", "--jobs", str(jobs))
    found = [json_of(*on, *more) for more in ((), ("--aligned",))]
    assert [(study["rule"], study["placed"]) for study in found] == [("any", 12), ("aligned", 8)]


def test_boxes_of_a_torus_are_printed_by_their_positions(tmp_path: Path) -> None:
    text = (
        un.preset_toml("torus2d-small").replace("[32, 32]", "[8, 8, 4]").replace("board = [2, 2]", "board = [2, 2, 1]")
    )
    torus, jobs, picture = tmp_path / "torus.toml", tmp_path / "jobs", tmp_path / "map.png"
    torus.write_text(text)
    jobs.write_text("4x2x2\n7\n")
    out = call("allocate", "--machine", str(torus), "--jobs", str(jobs), "--samples", "1", "--plot", str(picture)).out
    assert "4 x 4 x 4 boards of torus2d-small, 0 failed" in out
    assert "none: a torus has no switches" in out
    rows = [line.split(maxsplit=2) for line in out.splitlines() if line.startswith(("    16", "     7"))]
    # Seven accelerators form no box of the torus, and the best box of eight accelerators is a cube.
    assert rows == [["16", "16", "0-3 x 0-1 x 0-1"], ["7", "8", "0-1 x 0-1 x 2-3"]]
    assert "factors near a cube" in out
    assert picture.read_bytes()[:4] == b"\x89PNG"
    refused = call("allocate", "--machine", str(torus), "--jobs", str(jobs), "--fail", "4,0,0")
    assert "there is no board 4,0,0; accepted are positions 0 to 3,3,3 in the 3 dimensions" in refused.err
