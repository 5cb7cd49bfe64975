"""A fixture of all tests: Open MPI's launcher has its own folder, and processes that outlive a test are killed."""

import contextlib
import gc
import itertools
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

_COUNT = itertools.count()
#: A variable that launchers and ranks inherit, unlike the launcher's own variables, which ranks do not get.
_MARK = "UNISONO_TESTS_FOLDER"
_STARTS = frozenset(("subprocess.Popen", "os.posix_spawn", "os.fork"))
_started = False


def _watch(event: str, _: object) -> None:
    global _started
    _started |= event in _STARTS


sys.addaudithook(_watch)


def pytest_collection_finish() -> None:
    """Exempts modules and collected tests, which live as long as the process, from collections of garbage."""
    gc.freeze()


@pytest.fixture(autouse=True)
def launcher_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keeps the session folders of Open MPI's launcher apart from those that earlier launchers left.

    The launcher names its folder after its process id, and does not start if a killed launcher of the same id left its
    folder: "The PMIx server's listener thread failed to start". A run of the tests starts enough processes for ids to
    repeat.

    A variable marks the processes that a test starts. A launcher that is killed, because its time is over or the
    test fails, may leave ranks, which this fixture kills. Tests that start no process skip this search.
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
        # Processes of other users cannot be read, and a process may end during the search.
        with contextlib.suppress(OSError):
            if mark in (process / "environ").read_bytes() and process.name != str(os.getpid()):
                os.kill(int(process.name), signal.SIGKILL)
