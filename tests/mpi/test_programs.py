"""The programs of `make programs` have the same output with planned collectives as with those of the library."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ..python.conftest import ROOT
from ..python.test_mpi import COMPILERS, MPICH, OPEN_MPI, plan, report, run

__all__ = ["plan"]

FOLDER = ROOT / "benches" / "mpi" / "programs"


def results(out: str) -> list[str]:
    return [line for line in out.splitlines() if line.startswith("result ")]


@pytest.mark.parametrize(
    ("abi", "ranks"), [pytest.param("openmpi", 2, marks=pytest.mark.soak), ("openmpi", 3), ("mpich", 2)]
)
@pytest.mark.parametrize("name", ["cg", "learning"])
def test_programs_have_the_same_output(
    plan: Callable[[int], Path], tmp_path: Path, abi: str, ranks: int, name: str
) -> None:
    said, program = tmp_path / "report", tmp_path / name
    if name == "cg":
        command = [str(COMPILERS[abi]), "-O2", str(FOLDER / "cg.c"), "-o", str(program), "-lm"]
        subprocess.run(command, check=True)
        words, sums = [str(program), "8", "20"], ("allreduce", "recursive-doubling", 42)
    else:
        environment = {"openmpi": OPEN_MPI, "mpich": MPICH}[abi]
        words = [str(environment / "bin" / "python"), str(FOLDER / "learning.py"), "300", "20"]
        sums = ("allreduce", "ring", 20)
    served = run(ranks, *words, options=("--plan", str(plan(ranks)), "--report", str(said)))
    bare = run(ranks, *words, options=("--off",))
    assert served.code == bare.code == 0, served.err + bare.err
    assert len(results(served.out)) == 1
    assert results(served.out) == results(bare.out)
    assert report(said)[sums[:2]] == sums[2]
