"""A sample of `make conformance`: two plans of forced algorithms under each ABI."""

from pathlib import Path

import pytest

from .conformance import PROGRAMS, compile_for, forced, served


@pytest.mark.parametrize(("abi", "ranks"), [("openmpi", 3), ("openmpi", 4), ("mpich", 2), ("abi", 2)])
def test_forced_algorithms_conform(tmp_path: Path, abi: str, ranks: int) -> None:
    built = compile_for(abi, tmp_path)
    plans = forced(ranks, tmp_path)
    programs = [program for program in PROGRAMS if program.under_all and program.name != "fortran"]
    for number, plan in enumerate(plans[:1] + plans[-1:]):
        found = served(plan, ranks, abi, built, number, programs)
        least = (100, 20) if abi == "openmpi" else (50, 5)
        assert found.total() > least[number], found
