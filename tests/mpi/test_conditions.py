"""Plans tuned under other conditions: ranks that wait differently, other libraries, and ranks that differ."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import unisono as un

from ..python.test_mpi import COMPILERS, MPICH, OPEN_MPI, Compile, compiled, plan, report, run
from .launching import Case, launch, together

__all__ = ["compiled", "plan"]

Plans = Callable[[int], Path]
#: Two ranks have their own cores, or share one.
CORES = "own" if len(os.sched_getaffinity(0)) > 1 else "shared"
SPIN = {"OMPI_MCA_mpi_yield_when_idle": "0"}
SAID = "unisono: rows of the plan were measured under "


def tuned(path: Path, conditions: str) -> Path:
    """Writes a plan with two rows: for short vectors under given conditions, for long vectors under any conditions."""
    of = un.plan("allreduce", "archer", shape=2, elements=16, algorithm="recursive-doubling")
    beyond = un.plan("allreduce", "archer", shape=2, elements=1024, algorithm="ring")
    un.save_plans([(of, 0, 4095, None, conditions), (beyond, 4096, None, None, None)], path)
    assert [row["tuned"] for row in un.load_plans(path)] == [conditions, None]
    assert [row["params"] for row in un.load_plans(path)] == [of.params, beyond.params]
    return path


@pytest.mark.parametrize(
    ("abi", "conditions", "env", "serves"),
    [
        ("openmpi", f"openmpi 4.1.4 yield {CORES}", {}, True),
        ("openmpi", f"openmpi 4.1.4 spin {CORES}", SPIN, True),
        ("openmpi", f"openmpi 4.1.4 yield {CORES}", SPIN, False),
        ("openmpi", f"openmpi 4.1.4 spin {CORES}", {}, False),
        ("openmpi", f"mpich 5.0.2 yield {CORES}", {}, False),
        ("openmpi", "openmpi 5.0.11 yield some", {}, False),
        ("openmpi", f"openmpi 4.1.4 spin {CORES}", {"UNISONO_ANYWHERE": "1"}, True),
        ("mpich", f"mpich 4.0.2 spin {CORES}", {}, True),
        ("mpich", f"mpich 4.0.2 yield {CORES}", {}, False),
        ("abi", f"mpich 4.0.2 spin {CORES}", {}, True),
        ("abi", f"openmpi 5.0.11 spin {CORES}", {}, False),
    ],
)
def test_a_row_serves_where_ranks_wait_as_where_it_was_tuned(
    compiled: Compile, tmp_path: Path, abi: str, conditions: str, env: dict[str, str], serves: bool
) -> None:
    said = tmp_path / "report"
    options = ("--plan", str(tuned(tmp_path / "t.plan", conditions)), "--report", str(said))
    done = run(2, compiled("collectives", abi), "100", options=options, env=env)
    assert (done.code, done.out) == (0, "ok 2\n"), done.err
    assert done.err.count(SAID) == (not serves), done.err
    found = report(said)
    assert found.get(("allreduce", "recursive-doubling"), 0) == (6 if serves else 0)
    assert ("was measured under other conditions" in said.read_text()) == (not serves)


CONDITIONS = """
from mpi4py import MPI
from unisono.mpi.collectives import Collectives
found = MPI.COMM_WORLD.gather(Collectives(MPI, MPI.COMM_WORLD).conditions())
print(*(found or ()), sep="\\n", end="")
"""
WORLD = """
import sys
import numpy as np
from unisono import mpi
world = mpi.world(plan=sys.argv[1])
for count in (16, 1024):
    x = np.arange(count, dtype="f4")
    world.allreduce(x)
    assert (x == 2 * np.arange(count)).all()
    if world.rank == 0:
        print(world.last.algorithm, world.last.why)
"""
#: By library: the conditions of a row, the value of UNISONO_ANYWHERE, and True if the library uses the row.
SERVES: dict[str, list[tuple[str, str, bool]]] = {
    "openmpi": [
        (f"openmpi 4.1.4 spin {CORES}", "", True),
        (f"openmpi 4.1.4 yield {CORES}", "", False),
        (f"openmpi 4.1.4 yield {CORES}", "1", True),
        (f"mpich 5.0.2 spin {CORES}", "", False),
        (f"openmpi 4.1.4 yield {CORES}", "OFF", False),
        (f"openmpi 4.1.4 yield {CORES}", "maybe", True),
    ],
    "mpich": [(f"mpich 4.0.2 spin {CORES}", "", True), (f"openmpi 5.0.11 spin {CORES}", "", False)],
}


def check_conditions(out: str, library: str, waits: str) -> None:
    """Checks the conditions that both ranks printed."""
    lines = out.splitlines()
    assert len(lines) == 2, out
    for line in lines:
        words = line.split(" ")
        assert (words[0], words[2], words[3]) == (library, waits, CORES)
        assert words[1][0].isdigit()


def test_conditions_are_those_of_ranks_that_yield() -> None:
    done = launch(OPEN_MPI, 2, "-c", CONDITIONS, OMPI_MCA_mpi_yield_when_idle="1")
    assert done.returncode == 0, done.stderr
    check_conditions(done.stdout, "openmpi", "yield")


@pytest.mark.parametrize(("environment", "library"), [(OPEN_MPI, "openmpi"), (MPICH, "mpich")])
def test_a_world_asks_for_the_conditions_of_rows(tmp_path: Path, environment: Path, library: str) -> None:
    world, of_ranks = tmp_path / "world.py", tmp_path / "conditions.py"
    world.write_text(WORLD)
    of_ranks.write_text(CONDITIONS)
    cases, expected = [Case([of_ranks])], []
    for number, (conditions, anywhere, serves) in enumerate(SERVES[library]):
        plan = tuned(tmp_path / f"{number}.plan", conditions)
        cases.append(Case([world, plan], {"UNISONO_ANYWHERE": anywhere}))
        elsewhere = f"library because its row of {plan.name} was measured under other conditions"
        short = f"recursive-doubling by {plan.name}, 0 to 4095 bytes" if serves else elsewhere
        expected.append([short, f"ring by {plan.name}, 4096 to any bytes"])
    found, *worlds = together(environment, 2, cases, tmp_path, **SPIN)
    check_conditions(found[0].out, library, "spin")
    # Rank 0 prints the line of the preload library once.
    line = 'unisono: UNISONO_ANYWHERE is "maybe", which counts as 1; accepted are 0, 1, false, true, off and on'
    for runs, case, lines in zip(worlds, cases[1:], expected, strict=True):
        assert runs[0].out.splitlines() == lines
        assert sum(ran.err.count(line) for ran in runs) == (case.env["UNISONO_ANYWHERE"] == "maybe")


@pytest.mark.parametrize("abi", ["openmpi"])
def test_ranks_that_would_choose_unlike_rows_run_unplanned(
    compiled: Compile, plan: Plans, tmp_path: Path, abi: str
) -> None:
    """One rank of three has a library without error checks, and would serve calls that other ranks leave to it."""
    said, start = tmp_path / "report", tmp_path / "start"
    unlike = '[ "$OMPI_COMM_WORLD_RANK" = 1 ] && export OMPI_MCA_mpi_param_check=0'
    start.write_text(f'#!/bin/sh\n{unlike}\nexec "$@"\n')
    start.chmod(0o755)
    options = ("--plan", str(plan(3)), "--report", str(said), "--launcher", str(COMPILERS[abi].parent / "mpiexec"))
    done = run(3, start, compiled("collectives", abi), "100", options=options)
    assert (done.code, done.out) == (0, "ok 3\n"), done.err
    assert done.err.count("would choose unlike rows of the plan") == 1
    assert {algorithm for _, algorithm in report(said)} == {"library"}
