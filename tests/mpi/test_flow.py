"""`calibrate`, `plan`, `bench`, `tune`, `export` one after the other, as docs/mpi.md has them; times are not judged."""

import json
import math
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
import unisono as un
from unisono.mpi import exports

from ..python.conftest import call, json_of
from ..python.test_mpi import MPICH, OPEN_MPI, YIELD
from .launching import launch

CLI = ["-m", "unisono"]


def ranks_json(ranks: int, *arguments: str | Path, environment: Path = OPEN_MPI) -> dict[str, Any]:
    """The JSON of a command under mpiexec, which must be all that its ranks print together."""
    done = launch(environment, ranks, *CLI, *arguments, "--json", **YIELD)
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_each_output_feeds_the_next(tmp_path: Path) -> None:
    machine, first, tuned = tmp_path / "m.toml", tmp_path / "first.plan", tmp_path / "tuned.plan"

    measured = ranks_json(4, "calibrate", "-o", machine, "--rounds", "20")
    assert measured["file"] == str(machine)
    assert {"beta", "gamma", "multicast-blocking", "multicast-non-blocking"} == set(measured["residuals"])
    written = tomllib.loads(machine.read_text())
    for key in ("alpha_p_ns", "alpha_r_ns", "beta_ns_per_byte", "gamma_ns_per_byte"):
        assert written[key] == measured[key] >= 0
    assert [peers for peers, _, _ in written["fit"]["multicast_ns"]] == [1, 2, 3]

    request = ["allreduce", "--machine", str(machine), "--ranks", "4", "--bytes", "4KiB", "--algorithm", "rabenseifner"]
    planned = json_of("plan", *request, "-o", str(first), "--serve", "0-64KiB")
    assert planned["algorithm"] == "rabenseifner"

    sizes = ["--sizes", "256,4KiB,128KiB", "--rounds", "3"]
    timed = ranks_json(4, "bench", "allreduce", "--plan", first, *sizes)
    assert (timed["ranks"], timed["per_node"]) == (4, 4)
    assert [row["bytes"] for row in timed["rows"]] == [256, 4096, 131072]
    for row in timed["rows"]:
        assert row["seconds"] > 0
        assert row["ratio"] == pytest.approx(row["default_seconds"] / row["seconds"])
        assert 0 <= row["rounds_won"] <= row["rounds"] == 3
        ran = row["ran"]
        assert not ran["warning"]
        # Beyond 64 KiB the plan has no row.
        served = row["bytes"] <= 65536
        assert row["algorithm"] == ("rabenseifner" if served else "library")
        assert ran["planned_calls"] == (ran["calls"] if served else 0)
        assert ran["schedule_bits"] == (ran["bits"] if served else None)
        assert served or ran["bits"] == ran["default_bits"]

    options = ["--ranks", "2,4", "--sizes", "64,4KiB", "--rounds", "2", "--candidates", "2"]
    decided = ranks_json(4, "tune", "allreduce,broadcast", "--machine", machine, "-o", tuned, *options)
    assert decided["missing"] == []
    assert {(cell["collective"], cell["ranks"], cell["bytes"]) for cell in decided["cells"]} == {
        (collective, ranks, size)
        for collective in ("allreduce", "broadcast")
        for ranks in (2, 4)
        for size in (64, 4096)
    }
    for cell in decided["cells"]:
        library, *others = cell["contenders"]
        assert library["algorithm"] == "library"
        assert len(others) >= 2
        assert all(contender["effective"] for contender in others)
        assert cell["per_node"] == cell["ranks"]
    rows = un.load_plans(tuned)
    assert len(rows) == len(decided["table"])
    for collective in ("allreduce", "broadcast"):
        for ranks in (2, 3, 4):
            of = [row for row in rows if (row["collective"], row["ranks"]) == (collective, ranks)]
            assert all(row["per_node"] == ranks for row in of)
            # Every size has its row: the next one begins where one ends.
            assert [row["first_bytes"] for row in of] == [0, *((row["last_bytes"] or 0) + 1 for row in of[:-1])]
            assert of[-1]["last_bytes"] is None
    interpolated = {row["ranks"] for row in decided["table"] if not row["measured"]}
    assert interpolated == {3}

    again = ranks_json(3, "bench", "allreduce", "--plan", tuned, *sizes)
    assert not any(row["ran"]["warning"] for row in again["rows"])

    for table, target in ((first, "openmpi-rules"), (tuned, "openmpi-rules"), (tuned, "openmpi-json")):
        done = call("export", str(table), "--format", target, "-o", str(tmp_path / target), "--no-check", "--json")
        told = json.loads(done.out)
        # Where the library was best everywhere there is nothing to write.
        sayable = table == first or any(row["algorithm"] not in (None, "library") for row in rows)
        if done.code == 0:
            assert sayable
            assert Path(told["file"]).stat().st_size > 0
        else:
            assert table == tuned
            assert "cannot express this table" in told["refused"]


def test_a_share_of_the_points_is_tuned(tmp_path: Path) -> None:
    tuned = tmp_path / "t.plan"
    options = ["--ranks", "2,3", "--sizes", "64,4KiB,64KiB", "--rounds", "2", "--candidates", "2", "--share", "0.25"]
    decided = ranks_json(3, "tune", "allreduce,broadcast", "--machine", "archer", "-o", str(tuned), *options)
    contenders = [contender for cell in decided["cells"] for contender in cell["contenders"]]
    assert len(decided["cells"]) == 12
    assert decided["points"] == len(contenders)
    assert decided["measured"] == sum(contender["measured"] for contender in contenders)
    assert 4 < decided["measured"] <= decided["points"] / 4
    assert all(contender["seconds"] > 0 for contender in contenders)
    assert {row["ranks"] for row in decided["table"]} == {2, 3}
    assert un.load_plans(tuned)


def test_what_is_tuned_for_a_library_can_be_said_there(tmp_path: Path) -> None:
    tuned = tmp_path / "t.plan"
    options = ["--machine", "archer", "-o", str(tuned), "--sizes", "8,64KiB", "--rounds", "2", "--candidates", "4"]
    decided = ranks_json(2, "tune", "allreduce,broadcast", *options, "--for", "openmpi-rules")
    says = exports.says("openmpi-rules")
    for cell in decided["cells"]:
        contenders = [c for c in cell["contenders"] if c["algorithm"] != "library"]
        assert contenders
        made = [
            un.plan(
                cell["collective"], "archer", shape=2, bytes=cell["bytes"], algorithm=c["algorithm"], params=c["params"]
            )
            for c in contenders
        ]
        called = [says(plan) for plan in made]
        assert None not in called
        # One schedule is not measured twice.
        assert len(set(called)) == len(called)
    if any(row["algorithm"] != "library" for row in decided["table"]):
        told = un.export(tuned, "openmpi-rules", tmp_path / "t.rules")
        assert told["left"] == []


@pytest.mark.parametrize("environment", [OPEN_MPI, MPICH], ids=["openmpi", "mpich"])
def test_two_ranks_calibrate_and_bench(tmp_path: Path, environment: Path) -> None:
    machine, plan = tmp_path / "m.toml", tmp_path / "t.plan"
    if environment == OPEN_MPI:
        measured = ranks_json(2, "calibrate", "-o", machine, "--rounds", "10")
        assert measured["fit"]["multicast_peers"] == "one rank, several times"
        assert all(math.isfinite(residual) for residual in measured["residuals"].values())
    for collective in ("reduce", "broadcast", "allgather", "reduce-scatter", "alltoall"):
        made = un.plan(collective, "archer", shape=2, elements=64)
        un.save_plans([(made, 0, None)], plan)
        timed = ranks_json(
            2, "bench", collective, "--plan", plan, "--sizes", "256", "--rounds", "2", environment=environment
        )
        (row,) = timed["rows"]
        assert row["algorithm"] == made.algorithm
        assert row["ran"]["planned_calls"] == row["ran"]["calls"]
        assert not row["ran"]["warning"], row
        assert (row["ran"]["schedule_bits"] is not None) == (collective in ("reduce", "reduce-scatter"))


def test_rows_of_the_library_are_timed_as_such(tmp_path: Path) -> None:
    plan = tmp_path / "t.plan"
    made = un.plan("allreduce", "archer", shape=2, elements=8, algorithm="recursive-doubling")
    un.save_plans([(made, 0, 100), (("allreduce", 2), 101, None)], plan)
    timed = ranks_json(2, "bench", "allreduce", "--plan", plan, "--sizes", "64,256", "--rounds", "1")
    assert [row["algorithm"] for row in timed["rows"]] == ["recursive-doubling", "library"]
    assert [row["ran"]["planned_calls"] > 0 for row in timed["rows"]] == [True, False]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["calibrate", "-o", "m.txt"], "does not end in .toml"),
        (["calibrate", "-o", "m.toml", "--rounds", "3"], "--rounds is 3"),
        (["bench", "allreduce", "--plan", "nowhere.plan"], "nowhere.plan"),
        (["bench", "allreduce", "--plan", "PLAN"], "no rows for allreduce on 3 ranks; it has them for 2"),
        (["bench", "allreduce", "--plan", "PLAN", "--sizes", "6"], "6 bytes"),
        (["tune", "scan", "--machine", "archer", "-o", "t.plan"], "'scan' cannot be tuned"),
        (
            ["tune", "allreduce", "--machine", "archer", "-o", "t.plan", "--library", "x"],
            "--library is for --for mpich",
        ),
        (["bench", "broadcast", "--plan", "PLAN"], "has no rows for broadcast; 'unisono show"),
        (["tune", "allreduce", "--machine", "wse2", "-o", "t.plan"], "of kind wafer"),
        (["tune", "allreduce", "--machine", "archer", "-o", "t.plan", "--ranks", "2-9"], "accepted are 1 to 3"),
        (["tune", "allreduce", "--machine", "archer", "-o", "t.plan", "--ranks", "1"], "nothing to tune"),
        (["tune", "allreduce", "--machine", "archer", "-o", "t.plan", "--ranks", "x"], "whole numbers"),
        (["tune", "allreduce", "--machine", "archer", "-o", "t.plan", "--per-node", "2"], "3 ranks, 2 a node"),
    ],
)
def test_one_rank_says_what_is_wrong(tmp_path: Path, arguments: list[str], why: str) -> None:
    plan = tmp_path / "two.plan"
    un.save_plans([(un.plan("allreduce", "archer", shape=2, elements=8), 0, None)], plan)
    done = launch(OPEN_MPI, 3, *CLI, *[str(plan) if word == "PLAN" else word for word in arguments], **YIELD)
    assert done.returncode == 2, done.stdout + done.stderr
    told = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert len(told) == 1, done.stderr
    assert why in told[0]


def test_one_rank_alone_is_told_to_use_mpiexec(tmp_path: Path) -> None:
    for arguments in (["calibrate", "-o", "m.toml"], ["bench", "allreduce", "--plan", "x"], ["tune", "allreduce"]):
        if arguments[0] == "tune":
            arguments += ["--machine", "archer", "-o", str(tmp_path / "t.plan")]
        done = launch(OPEN_MPI, 1, *CLI, *arguments)
        assert done.returncode == 2
        assert "at least two ranks: mpiexec -n 4 unisono" in done.stderr


def test_ranks_that_share_cores_are_noted(tmp_path: Path) -> None:
    plan, cores = tmp_path / "t.plan", len(os.sched_getaffinity(0))
    un.save_plans([(un.plan("allreduce", "archer", shape=cores + 1, elements=8), 0, None)], plan)
    command = [*CLI, "bench", "allreduce", "--plan", str(plan), "--sizes", "64", "--rounds", "1"]
    done = launch(OPEN_MPI, cores + 1, *command, **YIELD)
    assert done.returncode == 0, done.stderr
    some = f"{cores} core{'' if cores == 1 else 's'}"
    assert done.stderr.count(f"note: {cores + 1} ranks share {some}: a rank that waits takes time from others") == 1


@pytest.mark.parametrize(
    ("arguments", "lacks"),
    [
        (["allreduce", "--machine", "archer"], "-o T.plan"),
        (["allreduce", "-o", "t.plan"], "--machine M.toml"),
        ([], "a COLLECTIVE and --machine M.toml and -o T.plan"),
    ],
)
def test_what_tune_lacks_is_said_once(arguments: list[str], lacks: str) -> None:
    done = launch(OPEN_MPI, 2, *CLI, "tune", *arguments, **YIELD)
    assert done.returncode == 2
    told = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert len(told) == 1, done.stderr
    assert told[0].startswith(f"error: tune lacks {lacks}: mpiexec")


def test_ranks_per_node_are_tuned_apart(tmp_path: Path) -> None:
    """MPICH takes four ranks here for two nodes of two: two ranks on one node, or one on each."""
    tuned = tmp_path / "t.plan"
    options = ["--machine", "archer", "-o", str(tuned), "--sizes", "64", "--rounds", "2", "--candidates", "1"]
    command = [*CLI, "tune", "allreduce", *options, "--ranks", "2", "--per-node", "1,2", "--json"]
    done = launch(MPICH, 4, *command, MPIR_CVAR_NUM_CLIQUES="2")
    assert done.returncode == 0, done.stdout + done.stderr
    cells = json.loads(done.stdout)["cells"]
    assert [(cell["ranks"], cell["per_node"]) for cell in cells] == [(2, 1), (2, 2)]
    assert [row["per_node"] for row in un.load_plans(tuned)] == [1, 2]


LOST = """
import sys
from unisono import tuning
from unisono.cli import main
encoded = tuning.encoded_plans
# Plans that serve other sizes than those that are timed.
tuning.encoded_plans = lambda rows: encoded([(plan, first + 4, last + 4) for plan, first, last in rows])
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("share", [[], ["--share", "1"]])
def test_a_schedule_that_did_not_run_is_no_measurement(share: list[str], tmp_path: Path) -> None:
    """As where ranks have no plan: calls go to the library, whose times would be taken for the schedule's."""
    out = tmp_path / "t.plan"
    (tmp_path / "lost.py").write_text(LOST)
    few = ["--sizes", "4KiB", "--rounds", "2", "--candidates", "1", *share, "-o", str(out)]
    done = launch(OPEN_MPI, 2, tmp_path / "lost.py", "tune", "allreduce", "--machine", "paper-sim", *few)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "did not run where it was measured: calls of allreduce of 4096 bytes on 2 ranks" in done.stderr
    assert "wrote" not in done.stdout
    assert not out.exists()
