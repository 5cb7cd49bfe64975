"""The same bits at any size, offset and split under real MPI, and their differences without the property."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import unisono as un

from ..python.conftest import call
from ..python.test_mpi import Compile, compiled, plan, report, run

__all__ = ["compiled", "plan"]

SOAK = pytest.mark.soak
RUNS = pytest.mark.parametrize(
    ("abi", "ranks"),
    [
        ("openmpi", 3),
        ("mpich", 2),
        pytest.param("openmpi", 4, marks=SOAK),
        pytest.param("openmpi", 6, marks=SOAK),
        pytest.param("mpich", 3, marks=SOAK),
        pytest.param("mpich", 4, marks=SOAK),
        pytest.param("abi", 3, marks=SOAK),
    ],
)
#: Calls of each type and collective.
CALLS = "2000" if os.environ.get("UNISONO_SOAK") == "1" else "40"


def compared(out: str) -> dict[tuple[str, str], tuple[int, int]]:
    """Returns by type and collective the sums that were compared, and those with other bits."""
    lines = [line.split() for line in out.splitlines()]
    return {(kind, collective): (int(sums), int(unlike)) for kind, collective, sums, unlike in lines}


def rows(table: un.PlanTable) -> set[str]:
    return {row[0].algorithm for row in table.rows}


@RUNS
def test_a_table_gives_the_same_bits_at_any_size_and_place(
    compiled: Compile, tmp_path: Path, abi: str, ranks: int
) -> None:
    path, said = tmp_path / "size.plan", tmp_path / "report"
    tables = [un.plan_table(name, "archer", shape=ranks) for name in ("allreduce", "reduce")]
    un.save_plans([row for table in tables for row in table.rows], path)
    assert call("verify", str(path), "--require", "size").code == 0
    options = ("--plan", str(path), "--report", str(said), "--safe-ops")
    done = run(ranks, compiled("bits", abi), "7", CALLS, options=options)
    assert done.code == 0, done.err
    found = compared(done.out)
    assert len(found) == 8
    assert all(sums > 500 and unlike == 0 for sums, unlike in found.values()), found
    ran = {algorithm for _, algorithm in report(said)}
    # The sum of differences at the end is the one call that the table leaves: it is of integers, and short.
    assert ran <= rows(tables[0]) | rows(tables[1]), ran


@pytest.mark.parametrize(("abi", "ranks"), [("openmpi", 3), ("mpich", 3)])
def test_other_plans_have_other_bits(
    compiled: Compile, plan: Callable[[int], Path], tmp_path: Path, abi: str, ranks: int
) -> None:
    """Rings combine each piece in another order, and short vectors have another algorithm than long ones."""
    path = plan(ranks)
    assert call("verify", str(path), "--require", "size").code == 1
    done = run(ranks, compiled("bits", abi), "7", "150", options=("--plan", str(path), "--safe-ops"))
    assert done.code == 0, done.err
    found = compared(done.out)
    assert all(unlike > 0 for (_, collective), (_, unlike) in found.items() if collective == "allreduce"), found
