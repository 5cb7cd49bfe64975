"""`unisono run` passes signals that end a job to the launcher, whose ranks end."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from ..python.conftest import PROGRAM
from ..python.test_mpi import MPICH, OPEN_MPI

RANK = """
import os, pathlib, sys, time
pathlib.Path(sys.argv[1], str(os.getpid())).touch()
time.sleep(3600)
"""
#: The largest number of polls, one every 20 ms, until ranks exist or are gone: ten minutes.
MOST_POLLS = 30_000


def is_alive(pid: int) -> bool:
    """Returns whether a process runs; a zombie, which waits for its parent, does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        # The process ended before the file was opened, or before it was read.
        return False


@pytest.mark.parametrize("environment", [OPEN_MPI, MPICH], ids=["openmpi", "mpich"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_ranks_end_with_the_command(environment: Path, number: signal.Signals, tmp_path: Path) -> None:
    ranks = tmp_path / "ranks"
    ranks.mkdir()
    (tmp_path / "rank.py").write_text(RANK)
    python = environment / "bin" / "python"
    command = list(map(str, [PROGRAM, "run", "-n", "2", "--", python, tmp_path / "rank.py", ranks]))
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    quiet = subprocess.DEVNULL
    # The job has a separate session, as under a batch scheduler.
    with subprocess.Popen(
        command, env={**os.environ, **root}, start_new_session=True, stdout=quiet, stderr=quiet
    ) as job:
        try:
            for _ in range(MOST_POLLS):
                if len(pids := [int(path.name) for path in ranks.iterdir()]) == 2:
                    break
                assert job.poll() is None
                time.sleep(0.02)
            assert len(pids) == 2
            job.send_signal(number)
            code = job.wait(600)
            assert code == 130 if number is signal.SIGINT else code != 0
            for _ in range(MOST_POLLS):
                if not any(map(is_alive, pids)):
                    break
                time.sleep(0.02)
            assert not any(map(is_alive, pids))
        finally:
            for pid in (int(path.name) for path in ranks.iterdir()):
                if is_alive(pid):
                    os.kill(pid, signal.SIGKILL)
            if job.poll() is None:
                os.killpg(job.pid, signal.SIGKILL)
