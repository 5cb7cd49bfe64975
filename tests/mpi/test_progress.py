"""Exchanges of programs of tasks while kernels run, and traces, which show them."""

import json
import resource
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import unisono as un
from unisono.tasks import Program, View, neighborhood, one_to_one

from ..python.conftest import ROOT
from ..python.test_mpi import OPEN_MPI
from .test_world import launch

FOLDER = ROOT / "tests" / "mpi"
SCRIPT = FOLDER / "progress.py"


def run(ranks: int, script: Path, *arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    done = launch(OPEN_MPI, ranks, script, *arguments, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def spans(file: Path) -> list[dict[str, Any]]:
    """The spans of a trace: tracks have names, spans of one track do not overlap, arrows have two ends."""
    trace = json.loads(file.read_text())
    events = trace["traceEvents"]
    named = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    found = [e for e in events if e["ph"] == "X"]
    tracks: dict[tuple[int, int], float] = defaultdict(float)
    for event in sorted(found, key=lambda e: (e["ts"], e["ts"] + e["dur"])):
        track = event["pid"], event["tid"]
        assert track in named
        # Times are rounded to whole nanoseconds.
        assert event["ts"] >= tracks[track] - 0.0021, event
        tracks[track] = event["ts"] + event["dur"]
        assert (event["cat"] == "kernel") == (event["tid"] == 1)
    starts, ends = ({e["id"] for e in events if e["ph"] == kind} for kind in "sf")
    assert starts == ends
    sent = {e["id"]: e["ts"] for e in events if e["ph"] == "s"}
    slack = 2e-3 * sum(trace["otherData"]["clock_error_ns"]) + 0.01
    assert all(e["ts"] >= sent[e["id"]] - slack for e in events if e["ph"] == "f")
    assert trace["otherData"]["ranks"] == len({e["pid"] for e in events})
    return found


@pytest.mark.parametrize("mode", ["", "off"])
def test_collectives_go_on_while_a_kernel_runs(tmp_path: Path, mode: str) -> None:
    file = tmp_path / "trace.json"
    run(2, SCRIPT, "overlap", file, UNISONO_PROGRESS=mode)
    found = spans(file)
    # Rank 0 is the first at its kernel: what it has begun before cannot be over then.
    long = next(e for e in found if (e["pid"], e["name"]) == (1, "long"))
    ends = [e["ts"] + e["dur"] for k in range(6) for e in found if (e["pid"], e["name"]) == (1, f"allgather a{k}")]
    assert len(ends) == 6
    during = [long["ts"] < end < long["ts"] + long["dur"] for end in ends]
    assert during == [mode != "off"] * 6


@pytest.mark.parametrize("ranks", [pytest.param(2, marks=pytest.mark.soak), 3, pytest.param(4, marks=pytest.mark.soak)])
def test_kernels_never_see_what_an_exchange_changes(ranks: int) -> None:
    """With the thread at work during every kernel, and kernels that look."""
    alone = run(1, FOLDER / "tasks.py", "random", "0", "12").stdout
    for by_messages in ("0", "1"):
        variables = {"UNISONO_PROGRESS": "always", "UNISONO_POINT_TO_POINT": by_messages}
        assert run(ranks, SCRIPT, "steady", "random", "0", "12", **variables).stdout == alone
        # Of two sides that hold an array, each on its own thread, neither loses what the other has.
        assert run(ranks, FOLDER / "tasks.py", "mixed", "0", "12", **variables).stdout == alone


@pytest.mark.parametrize("mode", ["", "always"])
def test_programs_and_kernels_have_mpi_for_themselves(mode: str) -> None:
    for ranks in (1, 3):
        found = {
            run(ranks, SCRIPT, "mpi", UNISONO_PROGRESS=mode, UNISONO_POINT_TO_POINT=switch).stdout for switch in "01"
        }
        assert len(found) == 1


def test_nobody_waits_where_an_exchange_fails() -> None:
    for mode in ("", "off"):
        done = launch(OPEN_MPI, 2, SCRIPT, "fail", UNISONO_PROGRESS=mode)
        assert done.returncode != 0
        assert "RuntimeError: it broke" in done.stderr
        assert "error: an exchange failed on rank 1; all ranks are ended" in done.stderr


def test_a_world_prepares() -> None:
    assert run(3, SCRIPT, "prepare").stdout.startswith("'barrier' is nothing to prepare; accepted are allgather, ")


@pytest.mark.parametrize("n", [12, 13])
def test_the_trace_says_what_served(tmp_path: Path, n: int) -> None:
    """All patterns among 4 ranks: plans serve equal parts, the library others; the data is the same by all ways."""
    alone = run(1, SCRIPT, "patterns", str(n), tmp_path / "alone.json").stdout
    assert {e["cat"] for e in spans(tmp_path / "alone.json")} == {"kernel"}
    by_parts = "plan" if n == 12 else "library"
    always = {"broadcast": "plan", "reduce": "plan", "gather": "library", "scatter": "library"}
    equal = dict.fromkeys(("allgather", "alltoall", "reduce-scatter"), by_parts)
    for machine in ([], ["archer"]):
        file = tmp_path / "trace.json"
        assert run(4, SCRIPT, "patterns", str(n), file, *machine).stdout == alone
        found: dict[tuple[str, str], set[str]] = defaultdict(set)
        for event in spans(file):
            if event["cat"] == "collective":
                pattern, kind, _ = event["name"].split()
                found[pattern, kind].add(event["args"]["served"].split(":")[0])
                assert event["args"]["bytes"] > 0
        assert {pattern for pattern, _ in found} == {*always, *equal, "allreduce"}
        for (pattern, kind), served in found.items():
            # Of fractions, an allreduce by a plan could have other bits on each rank.
            planned = {**always, **equal, "allreduce": "plan" if kind == "whole" else "library"}[pattern]
            assert served == {planned if machine else "library"}, (pattern, kind)
    run(4, SCRIPT, "patterns", str(n), file, UNISONO_POINT_TO_POINT="1")
    # Partial results are combined by messages then.
    assert {(e["cat"], e["args"].get("served", "messages")) for e in spans(file)} == {
        (kind, "messages") for kind in ("kernel", "push", "await", "collective")
    }


def test_zeros_take_no_room() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    program = Program()
    for _ in range(4):
        program.zeros(1 << 26)
        program.array(1 << 26, init=0, dtype=np.float32)
    # Of three gigabytes, in KiB.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000
    assert np.signbit(program.fetch(program.array(4, init=-0.0))).all()


def test_a_program_alone_is_traced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "trace.json"
    with pytest.raises(un.InputError, match="records no trace"):
        Program().write_trace()
    monkeypatch.setenv("UNISONO_TRACE", str(file))
    program = Program()
    x = program.zeros(8, name="x")

    def step(near: View, x: View) -> None:
        x += near.sum()

    program.task(step, range=8, reads=[program.zeros(8)[neighborhood(1)]], updates=[x[one_to_one]], name="one")
    program.task(step, range=8, reads=[program.zeros(8)[neighborhood(1)]], updates=[x[one_to_one]], name="two")
    program.run()
    program.write_trace()
    assert [(e["name"], e["args"]) for e in spans(file)] == [(k, {"min": [0], "max": [8]}) for k in ("one", "two")]
    with pytest.raises(un.InputError, match="there is no folder"):
        Program(trace=tmp_path / "missing" / "trace.json")
