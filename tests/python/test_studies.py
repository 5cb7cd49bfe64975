"""Killed studies resume from their kept points, on any executor, with the results of one process."""

import json
import os
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
import unisono as un
from unisono.base.studies import KeptPoints, key_of, merge_points
from unisono.reproduce import reproduce_papers

from .conftest import PROGRAM, ROOT, SOAK, call, refusal

sys.path.insert(0, str(ROOT / "benches"))
from common import dask_cluster
from common.dask_cluster import begin, cluster, errors, kept, wait_for_points

#: Points of a study: enough that some are left when a worker is killed.
MOST = 2000 if SOAK else 400
SWEEP = dask_cluster.sweep(MOST)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Returns the table that one process on one core writes."""
    file = tmp_path_factory.mktemp("whole") / "whole.csv"
    assert call(*SWEEP, "--jobs", "1", "-o", str(file)).code == 0
    return file.read_bytes()


def test_a_killed_study_goes_on(whole: bytes, tmp_path: Path) -> None:
    first = begin(SWEEP, tmp_path)
    wait_for_points(tmp_path, MOST // 10, first)
    first.kill()
    first.wait()
    lines = (tmp_path / "points").read_bytes().splitlines(keepends=True)[: MOST // 2]
    assert len(lines) > MOST // 10
    # A kill while a line is written leaves a part of the line.
    (tmp_path / "points").write_bytes(b"".join(lines[:-1]) + lines[-1][:-9])
    assert begin(SWEEP, tmp_path).wait() == 0
    assert (tmp_path / "made.csv").read_bytes() == whole
    after = (tmp_path / "points").read_bytes().splitlines(keepends=True)
    assert after[: len(lines) - 1] == lines[:-1]
    assert len(after) == len(set(after)) == 1 + MOST


def test_a_finished_study_computes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = un.sweep("reduce", "wse2", shapes=[4, 8], elements=[1, 64])
    with KeptPoints(tmp_path / "points") as kept:
        assert un.sweep("reduce", "wse2", shapes=[4], elements=[1, 64], kept=kept) == points[:2]
    with KeptPoints(tmp_path / "points") as kept:
        assert len(kept) == 2
        assert un.sweep("reduce", "wse2", shapes=[4, 8], elements=[1, 64], kept=kept) == points
        assert len(kept) == 4
        monkeypatch.setattr("unisono._core.sweep_point", None)
        assert un.sweep("reduce", "wse2", shapes=[8, 4], elements=[64, 1], kept=kept) == points[::-1]


def test_keys_hold_all_that_a_point_depends_on(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    keys = set()
    for text in ("one", "two"):
        file.write_text(text)
        keys.add(key_of(un.plan, (file,)))
    machines = [un.machine("archer", shape=4), un.machine("archer", shape=5), un.machine("wse2", shape=4)]
    machines += [un.machine("hx2mesh-small"), un.machine("hx2mesh-small", failed=["0-1"])]
    keys |= {key_of(of, ("reduce", machine, 4)) for machine in machines for of in (un.plan, un.sweep)}
    assert len(keys) == 2 + 2 * len(machines)


@pytest.mark.parametrize(
    ("contents", "reason"),
    [
        (b"a,b\n1,2\n", "is no file of points"),
        (b"x" * 100, "is no file of points"),
        (b"my own", "is no file of points"),
        (b'{"unisono_points":2}\n', "is no file of points"),
        (b'{"unisono_points":1}\n["a",1]\n', "has a damaged line 2"),
        (b'{"unisono_points":1}\n["a",1,"f"]\n', "has a damaged line 2"),
        (b'{"unisono_points":1}\n"abc"\n', "has a damaged line 2"),
        (b'{"unisono_points":1}\n' + b"[" * 10**5 + b"\n", "has a damaged line 2"),
    ],
)
def test_other_files_are_refused(contents: bytes, reason: str, tmp_path: Path) -> None:
    (tmp_path / "points").write_bytes(contents)
    assert reason in refusal(*SWEEP, "--resume", str(tmp_path / "points"))
    assert (tmp_path / "points").read_bytes() == contents


def test_one_study_uses_a_file(tmp_path: Path) -> None:
    with KeptPoints(tmp_path / "points"):
        ran = call(*SWEEP, "--resume", str(tmp_path / "points"))
    assert (ran.code, "in use by another study" in ran.err) == (2, True)


def test_a_full_disk_leaves_whole_lines(tmp_path: Path) -> None:
    program = """
import resource, signal, sys
from unisono.base.studies import KeptPoints
kept = KeptPoints(sys.argv[1])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (64, -1))
try:
    kept.add("a", "b" * 100)
except OSError:
    resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))
    kept.add("c", 1)
"""
    assert subprocess.run([sys.executable, "-c", program, tmp_path / "points"]).returncode == 0
    head, line = (tmp_path / "points").read_bytes().splitlines()
    assert head == b'{"unisono_points":1}'
    assert json.loads(line)[:2] == ["c", 1]


def test_files_that_are_merged_stay_and_agree(tmp_path: Path) -> None:
    a, b, torn = tmp_path / "a", tmp_path / "b", tmp_path / "torn"
    for path, value in ((a, 1), (b, 2)):
        with KeptPoints(path) as kept:
            kept.add("point", value)
    torn.write_bytes(a.read_bytes()[:-3])
    before = torn.read_bytes()
    assert merge_points([torn, a], tmp_path / "joined") == 1
    assert torn.read_bytes() == before
    for order in ([a, b], [b, a]):
        with pytest.raises(un.InputError, match="another value of a point"):
            merge_points(order, tmp_path / f"of {order[0].name}")
    with b.open("ab") as file:
        file.write(a.read_bytes().splitlines(keepends=True)[1])
    with pytest.raises(un.InputError, match="another value of a point"):
        KeptPoints(b)


@pytest.mark.parametrize("option", ["-o", "--plot"])
def test_a_shard_writes_points_alone(option: str, tmp_path: Path) -> None:
    name = {"-o": "all.json", "--plot": "all.png"}[option]
    command = ["expect", "allreduce", "--machine", "dgx-h100", "--sizes", "8,1KiB", "--shard", "1/2"]
    ran = call(*command, "--resume", str(tmp_path / "points"), option, str(tmp_path / name))
    assert (ran.code, list(tmp_path.iterdir())) == (2, [])
    assert f"{option} needs all of them" in ran.err


def test_only_files_of_points_are_merged_with_them(tmp_path: Path) -> None:
    paths = [str(tmp_path / name) for name in ("points", "table", "all")]
    with KeptPoints(paths[0]) as kept:
        kept.add("a", 1)
    Path(paths[1]).write_text("a,1\n")
    for options, reason in ((["-o", paths[2]], "table' is no file of points"), ([], "name it with -o")):
        ran = call("merge", *paths[:2], *options)
        assert (ran.code, reason in ran.err, Path(paths[2]).exists()) == (2, True, False), ran.err


@pytest.mark.parametrize("executor", ["here", "tcp://127.0.0.1:1", "none.json"])
def test_executors_that_are_not_there_are_named(executor: str) -> None:
    ran = call(*SWEEP, "--executor", executor)
    assert (ran.code, executor in ran.err, ran.err.count("\n")) == (2, True, 1), ran.err


@pytest.mark.parametrize(
    "command",
    [
        ["expect", "allreduce", "--machine", "dgx-h100", "--as", "nccl", "--sizes", "8,64KiB,1MiB"],
        ["compare", "dlrm,made.toml", "--machines", "hx2mesh-small,torus2d-small"],
        [
            "workload",
            "--from",
            "dlrm",
            "--machine",
            "hx2mesh-small",
            "--what-if",
            "planes=2",
            "--what-if",
            "fail=0-1",
        ],
        ["reproduce", "discovery", "--quick"],
        ["allocate", "--machine", "hx2mesh-small", "--fail", "20", "--samples", "600", "--seed", "7"],
    ],
    ids=lambda command: str(command[0]),
)
def test_other_studies_are_kept_and_go_to_processes(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(Path(__file__).parents[2] / "workloads" / "cosmoflow.toml", "made.toml")
    # The jobs of an allocation are not threads.
    expected = call(*command, *([] if command[0] == "allocate" else ["--jobs", "1"]), "--json").json
    for shard in ("1/2", "2/2"):
        share = call(*command, "--shard", shard, "--resume", f"points{shard[0]}", "--json").json
        assert 0 < share["points"] < share["total"]
    points = call("merge", "points1", "points2", "-o", "points", "--json").json["points"]
    for _ in range(2):
        assert call(*command, "--resume", "points", "--json").json == expected
        with KeptPoints("points") as kept:
            assert len(kept) == points
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        options: dict[str, Any] = {"executor": processes}
        if command[0] == "compare":
            assert un.compare(["dlrm", "made.toml"], command[3].split(","), **options) == expected["rows"]
        elif command[0] == "workload":
            changes: list[dict[str, object]] = [{"planes": 2}, {"fail": "0-1"}]
            step = un.step("dlrm", "hx2mesh-small", what_if=changes, **options)
            assert step == {key: value for key, value in expected.items() if key != "files"}
        elif command[0] == "reproduce":
            claims = reproduce_papers(["discovery"], quick=True, **options)
            assert [claim.report() for claim in claims] == expected["claims"]
        elif command[0] == "allocate":
            study = un.allocate("hx2mesh-small", fail=20, samples=600, seed=7, **options)
            assert {**study, "jobs": "alibaba", "files": []} == expected
        else:
            made = un.expect("allreduce", "dgx-h100", as_library="nccl", sizes=[8, "64KiB", "1MiB"], **options)
            assert made["rows"] == expected["rows"]


def test_limits_hold_in_other_processes() -> None:
    network = un.machine("torus2d-small")
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes, un.limits(steps=1000):
        with pytest.raises(un.InputError, match=r"the limit is 1\.0e3 steps") as refused:
            un.expect("alltoall", network, sizes=[8], executor=processes)
        # The refusal comes from the process that computes.
        assert "_report" in str(refused.value.__cause__)


def test_programs_in_memory_stay_in_their_process(tmp_path: Path) -> None:
    program = un.read_workload("dlrm")
    with KeptPoints(tmp_path / "points") as kept, pytest.raises(un.InputError, match="name its file"):
        un.compare([program], ["hx2mesh-small"], kept=kept)


def test_own_algorithms_stay_in_their_process(tmp_path: Path) -> None:

    @un.algorithm("own", collectives=["broadcast"])
    def own(case: un.AlgorithmCase) -> un.Schedule:
        return un.plan("broadcast", "archer", shape=case.ranks).schedule

    asked: dict[str, Any] = {"shapes": [4], "elements": [1]}
    try:
        with KeptPoints(tmp_path / "points") as kept, pytest.raises(un.InputError, match="own algorithms \\(own\\)"):
            un.sweep("broadcast", "archer", **asked, kept=kept)
        with ProcessPoolExecutor(1) as processes, pytest.raises(un.InputError, match="own algorithms"):
            un.sweep("broadcast", "archer", **asked, executor=processes)
        with ThreadPoolExecutor(1) as threads:
            assert un.sweep("broadcast", "archer", **asked, executor=threads)
    finally:
        un.remove_algorithm("own")


def test_rows_without_times_are_not_kept(tmp_path: Path) -> None:
    with KeptPoints(tmp_path / "points") as kept:
        rows = un.compare(["dlrm"], ["dgx-h100", "hx2mesh-small"], kept=kept)
        assert [row["seconds"] is None for row in rows] == [True, False]
        assert len(kept) == 1


@pytest.mark.parametrize("name", ["fifo", ".", "none/points"])
def test_what_is_no_file_is_refused(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    ran = call(*SWEEP, "--resume", str(tmp_path / name))
    assert (ran.code, ran.err.count("\n")) in {(1, 1), (2, 1)}, ran.err


def test_points_and_table_are_two_files(tmp_path: Path) -> None:
    assert "name two files" in refusal(*SWEEP, "--resume", str(tmp_path / "same"), "-o", str(tmp_path / "same"))


def test_neither_a_lost_worker_nor_a_killed_study_on_dask_loses_a_point(whole: bytes, tmp_path: Path) -> None:
    with cluster(tmp_path) as (file, (scheduler, worker, _)):
        options = ("--executor", str(file))
        study = begin(SWEEP, tmp_path, *options)
        before = wait_for_points(tmp_path, MOST // 4, study)
        study.kill()
        study.wait()
        study = begin(SWEEP, tmp_path, *options)
        wait_for_points(tmp_path, MOST // 2, study)
        worker.kill()
        assert study.wait() == 0, errors(tmp_path)
        assert ((tmp_path / "made.csv").read_bytes(), kept(tmp_path), before > 0) == (whole, MOST, True)
        other = tmp_path / "other"
        other.mkdir()
        study = begin(SWEEP, other, *options)
        wait_for_points(other, 1, study)
        scheduler.kill()
        # The study may have ended before the kill.
        if study.wait() != 0:
            assert (study.returncode, errors(other).count("\n")) == (1, 1), errors(other)
            assert "the Dask scheduler at" in errors(other)


@pytest.mark.parametrize("pool", [[], ["-m", "mpi4py.futures"]])
def test_ranks_of_mpi_make_the_same_table(pool: list[str], whole: bytes, tmp_path: Path) -> None:
    mpiexec = [str(Path(sys.executable).parent / "mpiexec"), "-n", "3", "--oversubscribe"]
    made = ["-m", "unisono", *SWEEP, "--executor", "mpi", "-o", "made.csv"]
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    ran = subprocess.run([*mpiexec, sys.executable, *pool, *made], cwd=tmp_path, env=environment, capture_output=True)
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "made.csv").read_bytes() == whole
    # Only one rank prints the message.
    assert ran.stdout.count(b"wrote made.csv") == 1


def test_a_lost_rank_of_mpi_loses_no_point(whole: bytes, tmp_path: Path) -> None:
    mpiexec = [str(Path(sys.executable).parent / "mpiexec"), "-n", "3", "--oversubscribe", sys.executable]
    made = [
        "-m",
        "mpi4py.futures",
        "-m",
        "unisono",
        *SWEEP,
        "--executor",
        "mpi",
        "--resume",
        "points",
        "-o",
        "made.csv",
    ]
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    with subprocess.Popen(
        [*mpiexec, *made], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as study:
        wait_for_points(tmp_path, MOST // 4, study)
        for rank in descendants(study.pid)[-1:]:
            os.kill(rank, signal.SIGKILL)
        # The study may have ended before the kill.
        study.wait()
    assert kept(tmp_path) > 0
    subprocess.run([*mpiexec, *made], cwd=tmp_path, env=environment, capture_output=True, check=True)
    assert ((tmp_path / "made.csv").read_bytes(), kept(tmp_path)) == (whole, MOST)


def descendants(process: int) -> list[int]:
    """Returns all descendants of a process; none if the process has ended."""
    try:
        started = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        return []
    return [one for child in map(int, started) for one in (child, *descendants(child))]


def test_one_rank_cannot_compute_for_others() -> None:
    # A separate process runs the command, since MPI stays in the process that imports it.
    ran = subprocess.run([PROGRAM, *SWEEP, "--executor", "mpi"], capture_output=True, text=True)
    assert (ran.returncode, "mpiexec -n 3" in ran.stderr) == (2, True), ran.stderr


@pytest.mark.parametrize("value", [None, 3, [], [{}, 1], [{"shape": "4"}, 1]])
def test_a_point_of_another_form_is_refused(value: object, tmp_path: Path) -> None:
    """A kept point with a right checksum but a value of another form is refused."""
    file = tmp_path / "points"
    sweep = ("sweep", "reduce", "--machine", "wse2", "--shapes", "4", "--elements", "1", "--resume", str(file))
    assert call(*sweep).code == 0
    (key,) = (json.loads(line)[0] for line in file.read_bytes().splitlines()[1:])
    file.unlink()
    with KeptPoints(file) as kept:
        kept.add(key, value)
    assert "has a point whose value is none of this study" in refusal(*sweep)
