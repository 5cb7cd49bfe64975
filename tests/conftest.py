"""The surroundings of every test: a folder of its own for the launcher of Open MPI, and no process that outlives it."""

import contextlib
import itertools
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

_COUNT = itertools.count()
#: Processes have it in their environment, unlike the launcher's own variables, which ranks do not get.
_MARK = "UNISONO_TESTS_FOLDER"
_STARTS = frozenset(("subprocess.Popen", "os.posix_spawn", "os.fork"))
_started = False


def _watch(event: str, _: object) -> None:
    global _started
    _started |= event in _STARTS


sys.addaudithook(_watch)


@pytest.fixture(autouse=True)
def launcher_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keeps the session folders of Open MPI's launcher apart from those that earlier launchers left.

    The launcher names its folder after its process, and does not start where a launcher of the same number was killed
    before: "The PMIx server's listener thread failed to start". A run of the tests starts enough processes for numbers
    to come again.

    A variable marks the processes that a test starts. A launcher that is killed, because its time is over or the
    test fails, may leave its ranks behind: they are killed here. Most tests start none, and need not look for them.
    """
    global _started
    _started = False
    folder = tmp_path_factory.getbasetemp() / "launchers" / str(next(_COUNT))
    folder.mkdir(parents=True)
    monkeypatch.setenv("PRTE_MCA_prte_tmpdir_base", str(folder))
    monkeypatch.setenv(_MARK, str(folder))
    yield
    if not _started:
        return
    mark = f"{_MARK}={folder}\0".encode()
    for process in Path("/proc").glob("[0-9]*"):
        # Others' processes cannot be read, and processes end meanwhile.
        with contextlib.suppress(OSError):
            if mark in (process / "environ").read_bytes() and process.name != str(os.getpid()):
                os.kill(int(process.name), signal.SIGKILL)
