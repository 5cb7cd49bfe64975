"""Reasons in the report for calls that no plan serves: each is true for the call, and names what the plan lacks."""

import re
from pathlib import Path
from typing import Any

import pytest
import unisono as un

from ..python.conftest import Ran
from ..python.test_mpi import OPEN_MPI, run

#: The beginning of a program: buffers of 2 KiB, and calls that may be refused.
BEGIN = """
import numpy as np
from mpi4py import MPI
world = MPI.COMM_WORLD
x, y = np.ones(512, np.float32), np.zeros(2048, np.float32)
"""
#: Programs on four ranks, the collective in the report, and the reason.
CALLS = {
    "collective": ("world.Bcast(x[:4])", "broadcast", "no row for this collective"),
    "ranks of it": (
        "world.Alltoall(y[:16], y[16:32])",
        "alltoall",
        "no row for this collective on this number of ranks",
    ),
    "ranks a node": (
        "world.Allgather(x[:4], y[:16])",
        "allgather",
        "no row for this collective with this number of ranks a node",
    ),
    "ranks": ("world.Split(world.rank).Allreduce(x[:4], y[:4])", "allreduce", "no row for this number of ranks"),
    "size": ("world.Allreduce(x[:16], y[:16])", "allreduce", "no row for this size"),
    "library": ("world.Barrier()", "barrier", "the plan's row leaves them to the library"),
    "root": ("world.Gather(x[:4], y[:16], root=1)", "gather", "its row's schedule has another root"),
    "conditions": (
        "world.Reduce(x[:4], y[:4])",
        "reduce",
        "its row was measured under other conditions; --anywhere permits it",
    ),
    "unknown operator": (
        "world.Allreduce(x[:4], y[:4], op=MPI.Op.Create(lambda a, b, t: None))",
        "allreduce",
        "an operator that no schedule regroups; --safe-ops permits the program's own",
    ),
    "operator without rows": (
        "world.Reduce_scatter_block(y[:16], y[16:20], op=MPI.Op.Create(lambda a, b, t: None))",
        "reduce-scatter",
        "no row for this collective",
    ),
    "operator of a row of the library": (
        "world.Scan(x[:4], y[:4], op=MPI.Op.Create(lambda a, b, t: None))",
        "scan",
        "the plan's row leaves them to the library",
    ),
    "operator of a row elsewhere": (
        "world.Reduce(x[:4], y[:4], op=MPI.Op.Create(lambda a, b, t: None))",
        "reduce",
        "its row was measured under other conditions; --anywhere permits it",
    ),
    "groups": (
        "half = world.Split(world.rank % 2); "
        "half.Create_intercomm(0, world, 1 - world.rank % 2).Allreduce(x[:4], y[:4])",
        "allreduce",
        "a communicator between two groups",
    ),
    "one buffer": (
        "try: world.Allreduce(x[:4], x[:4])\nexcept MPI.Exception: pass",
        "allreduce",
        "made inside another call, one buffer twice, or a datatype that the library refuses",
    ),
}


def plan_file(path: Path) -> None:
    """Writes a plan in which each collective lacks something for the calls of :data:`CALLS`."""

    def four(collective: str, algorithm: str | None = None) -> un.Plan:
        return un.plan(collective, "archer", shape=4, elements=4, algorithm=algorithm)

    rows: list[Any] = [
        (four("allreduce", "recursive-doubling"), 0, 63),
        (un.plan("alltoall", "archer", shape=3, elements=4), 0, None),
        (four("allgather"), 0, None, 2),
        (four("gather"), 0, None),
        (("barrier", 4), 0, None),
        (("scan", 4), 0, None),
        (four("reduce"), 0, None, None, "mpich 1.0 yield shared"),
        # Only the groups of two ranks have this row.
        (un.plan("allgather", "archer", shape=2, elements=4), 0, None),
    ]
    un.save_plans(rows, path)


def ran(folder: Path, text: str, *options: str) -> tuple[Ran, str]:
    """Runs a program with the plan, and returns its run and its report."""
    plan, program, said = folder / "t.plan", folder / "program.py", folder / "report"
    plan_file(plan)
    program.write_text(BEGIN + text)
    given = ("--plan", str(plan), "--report", str(said), *options)
    done = run(4, OPEN_MPI / "bin" / "python", program, options=given)
    assert done.code == 0, done.out + done.err
    return done, said.read_text()


def reasons(report: str) -> set[tuple[str, str]]:
    """Returns the collectives of calls that the library made, with the reasons."""
    return set(re.findall(r"^(\S+) .* library \((.*)\)$", report, re.MULTILINE))


def test_each_reason_is_that_of_its_call(tmp_path: Path) -> None:
    """All calls are in one program. Each line of its report belongs to a call, and each call has a line."""
    _, report = ran(tmp_path, "\n".join(call for call, _, _ in CALLS.values()))
    assert reasons(report) == {(collective, why) for _, collective, why in CALLS.values()}, report


def test_rows_for_commuting_operators_serve_no_others(tmp_path: Path) -> None:
    text = (
        "def add(a, b, t): np.frombuffer(b, np.float32)[:] += np.frombuffer(a, np.float32)\n"
        "world.Allreduce(x[:4], y[:4], op=MPI.Op.Create(add, commute=False))"
    )
    _, report = ran(tmp_path, text, "--safe-ops")
    assert reasons(report) == {("allreduce", "no row for this operator at this size")}, report


def test_ranks_with_unlike_switches_and_unreadable_plans_are_stated(tmp_path: Path) -> None:
    unlike = (
        "import os\nos.environ.update({'UNISONO_SAFE_OPS': '1'} if os.environ['OMPI_COMM_WORLD_RANK'] == '1' else {})"
    )
    program, said, plan = tmp_path / "program.py", tmp_path / "report", tmp_path / "t.plan"
    plan_file(plan)
    program.write_text(unlike + BEGIN + "world.Allreduce(x[:4], y[:4])")
    options = ("--plan", str(plan), "--report", str(said))
    assert run(4, OPEN_MPI / "bin" / "python", program, options=options).code == 0
    assert reasons(said.read_text()) == {("allreduce", "the ranks have unlike plans or switches")}


@pytest.mark.parametrize("text", ["", "not a plan"])
def test_an_unreadable_plan_is_the_reason(tmp_path: Path, text: str) -> None:
    program, said, plan = tmp_path / "program.py", tmp_path / "report", tmp_path / "t.plan"
    plan_file(plan)
    # The command reads the plan before the ranks do, so each rank damages its own copy.
    program.write_text(
        f"import os\nown = {str(tmp_path)!r} + '/own' + os.environ['OMPI_COMM_WORLD_RANK']\n"
        f"open(own, 'w').write({text!r})\nos.environ['UNISONO_PLAN'] = own\n{BEGIN}world.Allreduce(x[:4], y[:4])"
    )
    options = ("--plan", str(plan), "--report", str(said))
    assert run(2, OPEN_MPI / "bin" / "python", program, options=options).code == 0
    assert reasons(said.read_text()) == {("allreduce", "the plan cannot be read")}
