"""What every test has: a folder of its own for the launcher of Open MPI."""

import itertools

import pytest

_COUNT = itertools.count()


@pytest.fixture(autouse=True)
def launcher_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps the session folders of Open MPI's launcher apart from those that earlier launchers left.

    The launcher names its folder after its process, and does not start where a launcher of the same number was killed
    before: "The PMIx server's listener thread failed to start". A run of the tests starts enough processes for numbers
    to come again.
    """
    folder = tmp_path_factory.getbasetemp() / "launchers" / str(next(_COUNT))
    folder.mkdir(parents=True)
    monkeypatch.setenv("PRTE_MCA_prte_tmpdir_base", str(folder))
