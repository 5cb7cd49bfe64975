"""The time that intercepting adds to a call that is left to the library."""

import subprocess
from pathlib import Path

import pytest
import unisono as un

from ..python.conftest import ROOT
from ..python.test_mpi import COMPILERS, run

#: An idle core adds about 80 ns (docs/results.md); a call of the system, or a lock that is waited for, adds more.
MOST_NANOSECONDS = 300


@pytest.mark.parametrize("abi", ["openmpi", "mpich"])
@pytest.mark.parametrize("first", [0, 10**6])
def test_calls_left_to_the_library_stay_fast(tmp_path: Path, abi: str, first: int) -> None:
    """With rows for other numbers of ranks, or for other lengths."""
    program, path = tmp_path / "overhead", tmp_path / "t.plan"
    source = ROOT / "benches" / "mpi" / "overhead.c"
    subprocess.run([str(COMPILERS[abi]), "-O2", str(source), "-o", str(program)], check=True)
    un.save_plans([(un.plan("allreduce", "archer", shape=1 if first else 2, elements=16), first, None)], path)
    done = run(1, program, options=("--plan", str(path)))
    assert done.code == 0, done.err
    said, nanoseconds = done.out.split()
    assert said == "added"
    assert 1 < float(nanoseconds) < MOST_NANOSECONDS
