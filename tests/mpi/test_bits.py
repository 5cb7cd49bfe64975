"""Sums have the same bits at any size, offset and split under real MPI, unless the plan lacks this property."""

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import unisono as un
from numpy.typing import NDArray

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
#: The number of calls of each datatype and collective.
CALLS = "2000" if os.environ.get("UNISONO_SOAK") == "1" else "40"


def compared(out: str) -> dict[tuple[str, str], tuple[int, int]]:
    """Returns by datatype and collective the number of compared sums, and the number of those with different bits."""
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
    # The program's final sum of differences is short and of integers: only this call has no row in the tables.
    assert ran <= rows(tables[0]) | rows(tables[1]), ran


#: The number of elements of the vector of ``bits.c``, and its datatypes.
LENGTH, TYPES = 1 << 15, (("f32", np.float32), ("f64", np.float64), ("f16", np.float16))


def contributor(owner: int) -> NDArray[np.float64]:
    """Returns the vector of one contributor, equal to the vector that ``store`` of ``bits.c`` writes."""
    with np.errstate(over="ignore"):
        x = (np.uint64(owner << 32) | np.arange(LENGTH, dtype=np.uint64)) + np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            x = (x ^ x >> np.uint64(shift)) * np.uint64(factor)
        x ^= x >> np.uint64(31)
    scale = np.left_shift(1, (x >> np.uint64(40)) % np.uint64(6)).astype(np.float64)
    value = (x % np.uint64(2000003)).astype(np.float64) / 1000001 - 1
    made: NDArray[np.float64] = value * scale
    return made


@cache
def table(collective: str, ranks: int, contributors: int) -> un.PlanTable:
    return un.plan_table(collective, "archer", shape=ranks, bits="ranks-count", contributors=contributors)


def with_contributors(compiled: Compile, folder: Path, abi: str, ranks: int, contributors: int) -> bytes:
    """Returns the sums of all datatypes on a number of ranks; the seed, and thus the lengths, depend on this number."""
    tables = [table(name, max(ranks, 2), contributors) for name in ("allreduce", "reduce")]
    path, sums = folder / f"{ranks}.plan", folder / f"{ranks}.sums"
    un.save_plans([row for table in tables for row in table.rows], path)
    asked = ("--require", "ranks-count", "--contributors", str(contributors))
    assert call("verify", str(path), *asked).code == 0
    words = (str(100 + ranks), CALLS, str(contributors), str(sums))
    done = run(ranks, compiled("bits", abi), *words, options=("--plan", str(path), "--safe-ops"))
    assert done.code == 0, done.err
    assert all(unlike == 0 for _, unlike in compared(done.out).values()), done.out
    return sums.read_bytes()


@pytest.mark.parametrize(
    ("abi", "contributors", "counts"),
    [
        ("openmpi", 4, (1, 2, 4)),
        pytest.param("mpich", 8, (2, 4), marks=SOAK),
        pytest.param("openmpi", 12, (3, 6), marks=SOAK),
    ],
)
def test_contributors_give_the_same_bits_on_any_number_of_ranks(
    compiled: Compile, tmp_path: Path, abi: str, contributors: int, counts: tuple[int, ...]
) -> None:
    found = [with_contributors(compiled, tmp_path, abi, ranks, contributors) for ranks in counts]
    assert len(found[0]) == 2 * LENGTH * (4 + 8 + 2 + 2)
    assert all(sums == found[0] for sums in found)
    parts, at = [contributor(owner) for owner in range(contributors)], 0
    for name, kind in TYPES:
        own = un.add_contributors([part.astype(kind) for part in parts]).tobytes()
        other = np.sum([part.astype(kind) for part in parts], axis=0, dtype=kind).tobytes()
        for collective in ("allreduce", "reduce"):
            assert found[0][at : at + len(own)] == own, (name, collective)
            at += len(own)
        assert other != own


@pytest.mark.parametrize(("abi", "ranks"), [("openmpi", 3), ("mpich", 3)])
def test_other_plans_have_other_bits(
    compiled: Compile, plan: Callable[[int], Path], tmp_path: Path, abi: str, ranks: int
) -> None:
    """Rings combine each piece in a different order, and short and long vectors have different algorithms."""
    path = plan(ranks)
    assert call("verify", str(path), "--require", "size").code == 1
    done = run(ranks, compiled("bits", abi), "7", "150", options=("--plan", str(path), "--safe-ops"))
    assert done.code == 0, done.err
    found = compared(done.out)
    assert all(unlike > 0 for (_, collective), (_, unlike) in found.items() if collective == "allreduce"), found
