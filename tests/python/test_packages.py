"""Packages for pip: a complete wheel, in an environment without the sources, and a complete source archive."""

import os
import re
import runpy
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from .conftest import ROOT

BACKEND = (
    "import sys; sys.path.insert(0, 'tools'); import build_backend as b; print(getattr(b, sys.argv[1])(sys.argv[2]))"
)


def backend(call: str, folder: Path, **changed: str) -> subprocess.CompletedProcess[str]:
    """Calls a function of the build backend as pip does, with the settings of `make build`."""
    config = Path(sys.prefix) / ".pyo3-config"
    shared = {"PYO3_CONFIG_FILE": str(config)} if config.is_file() else {}
    made = {"PYO3_BUILD_EXTENSION_MODULE": "1", "PYO3_PYTHON": str(Path(sys.prefix) / "bin" / "python")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "VIRTUAL_ENV": sys.prefix, "PATH": path, **made, **shared, **changed}
    command = [sys.executable, "-c", BACKEND, call, str(folder)]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    done = backend("build_wheel", folder)
    assert done.returncode == 0, done.stderr
    return folder / done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the commands of an environment that has the wheel, and its dependencies from this one."""
    folder = tmp_path_factory.mktemp("installed") / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python)]
    install = [*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    (site,) = folder.glob("lib/python*/site-packages")
    (own,) = Path(sys.prefix).glob("lib/python*/site-packages")
    # A line of such a file adds a folder, but not the folders of other such files in it: so not these sources.
    (site / "dependencies.pth").write_text(f"{own}\n")
    return folder / "bin"


def run(folder: Path, *command: str, **changed: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")} | changed
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


@pytest.mark.soak
def test_the_wheel_holds_the_library_and_the_stubs(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    wanted = {"_core.abi3.so", "_core.pyi", "py.typed", "_lib/libunisono_preload.so", "_web/view.js", "cli/plan.py"}
    wanted.add("_lib/unisono-fabric")
    assert {f"unisono/{name}" for name in wanted} <= names
    assert not [name for name in names if not name.startswith(("unisono/", "unisono-")) or "__pycache__" in name]


@pytest.mark.soak
def test_the_installed_package_is_the_wheel(installed: Path, tmp_path: Path) -> None:
    where = run(tmp_path, str(installed / "python"), "-c", "import unisono; print(unisono.__file__)")
    assert where.stdout.startswith(str(installed.parent)), where.stdout + where.stderr


@pytest.mark.soak
def test_the_tour_of_the_readme_runs_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    (tour,) = re.findall(r"^```console\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    for step in re.split(r"^\$ ", tour, flags=re.MULTILINE)[1:]:
        line, _, output = step.partition("\n")
        done = run(tmp_path, "bash", "-c", line, PATH=f"{installed}{os.pathsep}{os.environ['PATH']}")
        assert done.stdout == output, done.stderr


@pytest.mark.soak
def test_an_mpi_program_runs_planned_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    program = "import numpy as np\nfrom mpi4py import MPI\nx = np.arange(64, dtype=np.float32)\ny = np.empty_like(x)\n"
    program += "MPI.COMM_WORLD.Allreduce(x, y)\nassert (y == 2 * x).all()\n"
    (tmp_path / "sum.py").write_text(program)
    unisono = str(installed / "unisono")
    of = ["allreduce", "--machine", "archer", "--ranks", "2", "--bytes", "256", "--algorithm", "recursive-doubling"]
    planned = run(tmp_path, unisono, "plan", *of, "-o", "sum.plan")
    assert planned.returncode == 0, planned.stderr
    launcher = str(Path(sys.prefix) / "bin" / "mpiexec")
    options = ["--mpiexec", launcher, "--plan", "sum.plan", "--report", "report.txt"]
    done = run(tmp_path, unisono, "run", "-n", "2", *options, "--", str(installed / "python"), "sum.py")
    assert done.returncode == 0, done.stderr
    (row,) = (
        line.split() for line in (tmp_path / "report.txt").read_text().splitlines() if line.startswith("allreduce")
    )
    assert row[3] == "1"
    assert row[-1] == "recursive-doubling"


def test_the_source_archive_holds_what_git_tracks(tmp_path: Path) -> None:
    done = backend("build_sdist", tmp_path)
    assert done.returncode == 0, done.stderr
    with tarfile.open(tmp_path / done.stdout.strip()) as archive:
        archive.extractall(tmp_path, filter="data")
        names = archive.getnames()
    top = tmp_path / names[0].split("/")[0]
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    tracked = [name for name in tracked if name and (ROOT / name).is_file()]
    pages = {"python/unisono/_web/view.css", "python/unisono/_web/view.js"}
    assert {name.partition("/")[2] for name in names} == {*tracked, *pages, "PKG-INFO", "MANIFEST"}
    assert (top / "machines" / "wse2.toml").read_bytes() == (ROOT / "machines" / "wse2.toml").read_bytes()
    metadata = run(top, "cargo", "metadata", "--offline", "--locked", "--no-deps", "--format-version=1")
    assert metadata.returncode == 0, metadata.stderr
    assert '"unisono-preload"' in metadata.stdout


@pytest.mark.soak
def test_an_unpacked_archive_makes_an_archive(tmp_path: Path) -> None:
    done = backend("build_sdist", tmp_path)
    assert done.returncode == 0, done.stderr
    with tarfile.open(tmp_path / done.stdout.strip()) as archive:
        archive.extractall(tmp_path, filter="data")
        top = tmp_path / archive.getnames()[0].split("/")[0]
    again = subprocess.run([sys.executable, "-c", BACKEND, "build_sdist", str(tmp_path)], cwd=top, check=False)
    assert again.returncode == 0


def test_without_rust_one_sentence_says_so(tmp_path: Path) -> None:
    done = backend("build_wheel", tmp_path, PATH=str(tmp_path))
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1].startswith("error: building Unisono needs Rust")
    assert "Traceback" not in done.stderr


def test_the_version_of_the_archive_is_that_of_the_package() -> None:
    import unisono as un

    sys.path.insert(0, str(ROOT / "tools"))
    try:
        version = runpy.run_path(str(ROOT / "tools" / "build_backend.py"))["_version"]()
    finally:
        sys.path.remove(str(ROOT / "tools"))
    assert version == un.__version__
