"""A sample of `make conformance`: two plans of forced algorithms, under Open MPI and MPICH."""

from pathlib import Path

import pytest

from ..python.test_mpi import Compile, compiled
from .conformance import PROGRAMS, compile_for, forced, served

__all__ = ["compiled"]

SOAK = pytest.mark.soak


@pytest.mark.parametrize(
    ("abi", "ranks", "number", "least"),
    [
        ("openmpi", 3, 0, 100),
        pytest.param("openmpi", 3, -1, 20, marks=SOAK),
        pytest.param("mpich", 2, 0, 50, marks=SOAK),
        ("mpich", 2, -1, 5),
        *(pytest.param("openmpi", 4, number, least, marks=SOAK) for number, least in ((0, 100), (-1, 20))),
        *(pytest.param("abi", 2, number, least, marks=SOAK) for number, least in ((0, 50), (-1, 5))),
    ],
)
def test_forced_algorithms_conform(
    compiled: Compile, tmp_path: Path, abi: str, ranks: int, number: int, least: int
) -> None:
    programs = [program for program in PROGRAMS if program.under_all and program.name != "fortran"]
    if (abi, number) != ("openmpi", 0):
        # Compiling C++ takes as long as all programs together.
        programs = [program for program in programs if program.name != "objects"]
    of_c = [program for program in programs if program.name != "objects"]
    built = {program.name: compiled(program.name, abi) for program in of_c}
    built |= compile_for(abi, tmp_path, [program for program in programs if program not in of_c])
    found = served(forced(ranks, tmp_path)[number], ranks, abi, built, number % 2, programs)
    assert found.total() > least, found
