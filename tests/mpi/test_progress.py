"""Exchanges of programs of tasks while kernels run, and the traces that show them."""

import json
import resource
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import unisono as un
from unisono.tasks import Program, View, neighborhood, one_to_one

from ..python.conftest import ROOT
from ..python.test_mpi import OPEN_MPI
from .launching import Case, launch, together
from .test_tasks import alone

FOLDER = ROOT / "tests" / "mpi"
SCRIPT = FOLDER / "progress.py"


TASKS = FOLDER / "tasks.py"
#: The number of random programs whose kernels check their arguments.
LOOKING = 4


def run(ranks: int, folder: Path, *cases: Case) -> list[str]:
    """Runs all cases in one start, and returns the outputs of rank 0."""
    return [runs[0].out for runs in together(OPEN_MPI, ranks, cases, folder)]


def spans(file: Path) -> list[dict[str, Any]]:
    """Returns the spans of a trace.

    Checks that tracks have names, that spans of a track do not overlap, and that arrows have two ends.
    """
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


def test_collectives_go_on_while_a_kernel_runs(tmp_path: Path) -> None:
    files = {mode: tmp_path / f"trace{mode}.json" for mode in ("", "off")}
    cases = [Case([SCRIPT, "overlap", file], {"UNISONO_PROGRESS": mode}) for mode, file in files.items()]
    run(2, tmp_path, *cases)
    for mode, file in files.items():
        found = spans(file)
        # The kernel of rank 0 starts first, so the exchanges that this rank began cannot have ended before it.
        long = next(e for e in found if (e["pid"], e["name"]) == (1, "long"))
        ends = [e["ts"] + e["dur"] for k in range(6) for e in found if (e["pid"], e["name"]) == (1, f"allgather a{k}")]
        assert len(ends) == 6
        during = [long["ts"] < end < long["ts"] + long["dur"] for end in ends]
        assert during == [mode != "off"] * 6


@pytest.mark.parametrize("ranks", [pytest.param(2, marks=pytest.mark.soak), 3, pytest.param(4, marks=pytest.mark.soak)])
def test_kernels_never_see_what_an_exchange_changes(tmp_path: Path, ranks: int) -> None:
    """The progress thread works during every kernel, and kernels check that their arguments do not change."""
    always = [{"UNISONO_PROGRESS": "always", "UNISONO_POINT_TO_POINT": switch} for switch in "01"]
    words = ("0", str(LOOKING))
    # Different threads may use an array on the host and on a device; both must keep its contents.
    scripts: tuple[list[str | Path], ...] = ([SCRIPT, "steady", "random", *words], [TASKS, "mixed", *words])
    found = run(ranks, tmp_path, *(Case(script, env) for script in scripts for env in always))
    assert [text.splitlines() for text in found] == [alone(0, LOOKING)] * 4


@pytest.mark.parametrize("ranks", [1, 3])
def test_programs_and_kernels_have_mpi_for_themselves(tmp_path: Path, ranks: int) -> None:
    found = run(
        ranks,
        tmp_path,
        *(
            Case([SCRIPT, "mpi"], {"UNISONO_PROGRESS": mode, "UNISONO_POINT_TO_POINT": switch})
            for mode, switch in (("", "0"), ("always", "0"), ("always", "1"))
        ),
        *([Case([SCRIPT, "prepare"])] if ranks > 1 else []),
    )
    assert len(set(found[:3])) == 1
    assert found[0]
    # `prepare` refuses calls that a world cannot make.
    assert all(text.startswith("'barrier' is nothing to prepare; accepted are allgather, ") for text in found[3:])


def test_nobody_waits_where_an_exchange_fails() -> None:
    for mode in ("", "off"):
        done = launch(OPEN_MPI, 2, SCRIPT, "fail", UNISONO_PROGRESS=mode)
        assert done.returncode != 0
        assert "RuntimeError: it broke" in done.stderr
        assert "error: an exchange failed on rank 1; all ranks are ended" in done.stderr


def test_the_trace_says_what_served(tmp_path: Path) -> None:
    """On 4 ranks, plans serve patterns with equal parts, the library other parts, and all give the same data."""
    ways: list[tuple[str, list[str], dict[str, str]]] = [
        ("library", [], {}),
        ("plan", ["archer"], {}),
        ("messages", [], {"UNISONO_POINT_TO_POINT": "1"}),
    ]
    sizes = (12, 13)
    named = {(n, way): tmp_path / f"{n}-{way}.json" for n in sizes for way, _, _ in ways}
    cases = [Case([SCRIPT, "patterns", str(n), named[n, way], *more], env) for n in sizes for way, more, env in ways]
    printed = dict(zip(named, run(4, tmp_path, *cases), strict=True))
    one = [Case([SCRIPT, "patterns", str(n), tmp_path / f"{n}-alone.json"]) for n in sizes]
    alone = dict(zip(sizes, run(1, tmp_path, *one), strict=True))
    for n in sizes:
        assert {e["cat"] for e in spans(tmp_path / f"{n}-alone.json")} == {"kernel"}
        assert {printed[n, way] for way, _, _ in ways} == {alone[n]}
        for way in ("library", "plan"):
            check_served(named[n, way], by_plan=way == "plan", equal=n == 12)
        # Without collectives, messages combine partial results.
        assert {(e["cat"], e["args"].get("served", "messages")) for e in spans(named[n, "messages"])} == {
            (kind, "messages") for kind in ("kernel", "push", "await", "collective")
        }


def check_served(file: Path, by_plan: bool, equal: bool) -> None:
    """Checks that a trace names the plan or the library, whichever serves each collective."""
    always = {"broadcast": "plan", "reduce": "plan", "gather": "library", "scatter": "library"}
    by_parts = dict.fromkeys(("allgather", "alltoall", "reduce-scatter"), "plan" if equal else "library")
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for event in spans(file):
        if event["cat"] == "collective":
            pattern, kind, _ = event["name"].split()
            found[pattern, kind].add(event["args"]["served"].split(":")[0])
            assert event["args"]["bytes"] > 0
    assert {pattern for pattern, _ in found} == {*always, *by_parts, "allreduce"}
    for (pattern, kind), served in found.items():
        # A planned allreduce of fractions could have different bits on each rank.
        planned = {**always, **by_parts, "allreduce": "plan" if kind == "whole" else "library"}[pattern]
        assert served == {planned if by_plan else "library"}, (pattern, kind)


def test_zeros_take_no_room() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    program = Program()
    for _ in range(4):
        program.zeros(1 << 26)
        program.array(1 << 26, init=0, dtype=np.float32)
    # The growth in KiB; the arrays have three gigabytes.
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
