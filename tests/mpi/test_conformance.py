"""A sample of `make conformance`: two plans of forced algorithms under each ABI."""

from pathlib import Path

import pytest

from .conformance import PROGRAMS, compile_for, forced, served

SOAK = pytest.mark.soak


@pytest.mark.parametrize(
    ("abi", "ranks"),
    [("openmpi", 3), pytest.param("openmpi", 4, marks=SOAK), ("mpich", 2), pytest.param("abi", 2, marks=SOAK)],
)
def test_forced_algorithms_conform(tmp_path: Path, abi: str, ranks: int) -> None:
    built = compile_for(abi, tmp_path)
    plans = forced(ranks, tmp_path)
    programs = [program for program in PROGRAMS if program.under_all and program.name != "fortran"]
    for number, plan in enumerate(plans[:1] + plans[-1:]):
        found = served(plan, ranks, abi, built, number, programs)
        least = (100, 20) if abi == "openmpi" else (50, 5)
        assert found.total() > least[number], found
