"""Commands that measure, started with different words or files on some ranks, end and name the difference."""

import os
import subprocess
from pathlib import Path

import pytest

from ..python.conftest import ROOT
from ..python.test_mpi import OPEN_MPI, PATIENCE, YIELD

MACHINE = 'name = "m"\nkind = "endpoint"\nmodel = "hockney"\nalpha_ns = {}\nbeta_ns_per_byte = 0.1\n'
TUNE = ["tune", "allreduce", "--machine", "m.toml", "-o", "t.plan", "--sizes", "8", "--rounds", "2"]


@pytest.mark.parametrize(
    ("second", "alpha_ns", "difference"),
    [
        ([*TUNE[:-1], "4"], 500, "error: --rounds is 4 on rank 1, and 2 on rank 0; start all ranks"),
        (TUNE, 501, "error: the description of 'm.toml' is "),
    ],
)
def test_unlike_ranks_are_refused(second: list[str], alpha_ns: int, difference: str, tmp_path: Path) -> None:
    command = [str(OPEN_MPI / "bin" / "mpiexec"), "--oversubscribe"]
    for rank, (words, alpha) in enumerate(((TUNE, 500), (second, alpha_ns))):
        folder = tmp_path / str(rank)
        folder.mkdir()
        (folder / "m.toml").write_text(MACHINE.format(alpha))
        part = ["-n", "1", "-wdir", str(folder), str(OPEN_MPI / "bin" / "unisono"), *words]
        command += [":", *part] if rank else part
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    ran = subprocess.run(
        command,
        env={**os.environ, **YIELD, **root},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert ran.returncode == 2
    assert ran.stderr.count(difference) == 1
    assert not list(tmp_path.glob("*/t.plan"))
