"""Collectives with a count for every rank: a plan serves them if all ranks give about the same number of bytes."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ..python.test_mpi import MPICH, OPEN_MPI, SOURCES, Compile, compiled, plan, report, run

__all__ = ["compiled", "plan"]

Plans = Callable[[int], Path]


@pytest.mark.parametrize(
    ("abi", "ranks"),
    [
        ("openmpi", 1),
        ("openmpi", 3),
        ("mpich", 2),
        ("abi", 2),
        *(pytest.param("openmpi", ranks, marks=pytest.mark.soak) for ranks in (2, 5)),
    ],
)
@pytest.mark.parametrize("check", [False, True])
def test_counts_that_differ_little_are_served(
    compiled: Compile, plan: Plans, tmp_path: Path, abi: str, ranks: int, check: bool
) -> None:
    said, rounds = tmp_path / "report", 24
    options = ("--plan", str(plan(ranks)), "--report", str(said), *(["--check"] if check else []))
    done = run(ranks, compiled("vectors", abi), str(rounds), options=options)
    assert (done.code, done.out) == (0, f"ok {ranks}\n"), done.out + done.err
    calls = {"allgather": 0, "reduce-scatter": 0}
    for (name, algorithm), count in report(said).items():
        if name in calls:
            assert algorithm != "library"
            calls[name] += count
    # In every eighth round the counts differ so much that the library makes the calls.
    served = rounds if ranks == 1 else rounds * 7 // 8
    assert calls["reduce-scatter"] == served
    assert calls["allgather"] > served
    if ranks > 1:
        assert f"MPI_Reduce_scatter {' ' * 27}" in said.read_text()
    if check:
        assert " 0 differences" in said.read_text()


@pytest.mark.parametrize("environment", [OPEN_MPI, MPICH])
def test_programs_that_look_for_large_counts_are_served(plan: Plans, tmp_path: Path, environment: Path) -> None:
    """mpi4py calls large-count functions if it finds them, also in libraries that lack some."""
    said = tmp_path / "report"
    options = ("--plan", str(plan(2)), "--report", str(said))
    done = run(2, environment / "bin" / "python", SOURCES / "vectors.py", options=options)
    assert (done.code, done.out) == (0, "ok 2\n"), done.out + done.err
    rows = report(said)
    # The counts include 5 and 4 elements on the two ranks.
    assert rows["allgather", "bruck"] == 6
    assert rows["reduce-scatter", "pairwise"] == 6
