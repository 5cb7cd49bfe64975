"""Neighborhood collectives under a plan: the library makes them, and the report counts them with the reason."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from ..python.test_mpi import MPICH, OPEN_MPI, SOURCES, plan, run

__all__ = ["plan"]


@pytest.mark.parametrize("environment", [OPEN_MPI, MPICH], ids=["openmpi", "mpich"])
def test_neighborhood_collectives_are_passed_on(plan: Callable[[int], Path], tmp_path: Path, environment: Path) -> None:
    said = tmp_path / "report"
    options = ("--plan", str(plan(2)), "--report", str(said))
    done = run(2, environment / "bin" / "python", SOURCES / "neighbors.py", options=options)
    assert (done.code, done.out) == (0, "ok 2\n"), done.out + done.err
    line = r"^MPI_(\w*eighbor_\w+) +(\d+) +passed through \(a schedule is of all ranks, and these are of neighbors\)$"
    made = dict(re.findall(line, said.read_text(), re.MULTILINE))
    assert made.items() >= {"Neighbor_allgather": "1", "Neighbor_alltoall": "1"}.items()
    # MPICH has the large-count functions of the other collectives, which mpi4py then calls.
    if environment == OPEN_MPI:
        assert made.keys() == {
            "Neighbor_allgather", "Neighbor_allgatherv", "Neighbor_alltoall", "Neighbor_alltoallv",
            "Ineighbor_alltoall",
        }  # fmt: skip
