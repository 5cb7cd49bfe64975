"""Packages for pip: a complete wheel, in an environment without the sources, and a complete source archive."""

import os
import re
import runpy
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from .conftest import ROOT

BACKEND = (
    "import sys; sys.path.insert(0, 'tools'); import build_backend as b; print(getattr(b, sys.argv[1])(sys.argv[2]))"
)


def backend(call: str, folder: Path, **changed: str) -> subprocess.CompletedProcess[str]:
    """Calls a function of the build backend as pip does, with the environment variables of `make build`."""
    config = Path(sys.prefix) / ".pyo3-config"
    shared = {"PYO3_CONFIG_FILE": str(config)} if config.is_file() else {}
    made = {"PYO3_BUILD_EXTENSION_MODULE": "1", "PYO3_PYTHON": str(Path(sys.prefix) / "bin" / "python")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "VIRTUAL_ENV": sys.prefix, "PATH": path, **made, **shared, **changed}
    command = [sys.executable, "-c", BACKEND, call, str(folder)]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the wheel that `make wheel` builds from the source archive."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [str(ROOT / ".venv-wheel" / "bin" / "python"), str(ROOT / "tools" / "wheel.py"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the folder of programs of an environment with the wheel, and with dependencies of this environment."""
    folder = tmp_path_factory.mktemp("installed") / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python)]
    install = [*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    (site,) = folder.glob("lib/python*/site-packages")
    (own,) = Path(sys.prefix).glob("lib/python*/site-packages")
    # A .pth file adds a folder without the .pth files in it, which would add these sources.
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
def test_the_wheel_serves_bare_environments_and_every_mpi(wheel: Path) -> None:
    assert "-cp311-abi3-" in wheel.name
    assert "manylinux_2_17_" in wheel.name
    command = [sys.executable, str(ROOT / "tools" / "check_wheel.py"), str(wheel)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for part in ("openmpi", "mpich", "binary interface of MPI"):
        assert f"a planned allreduce, {part}" in done.stdout


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


def test_the_source_archive_holds_what_git_tracks_but_inputs_of_fuzz_targets(tmp_path: Path) -> None:
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
    tracked = [name for name in tracked if not name.startswith("crates/fuzz/corpus/")]
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


def test_the_version_of_the_archive_is_that_of_the_package_and_of_its_recipes() -> None:
    import unisono as un

    sys.path.insert(0, str(ROOT / "tools"))
    try:
        version = runpy.run_path(str(ROOT / "tools" / "build_backend.py"))["_version"]()
    finally:
        sys.path.remove(str(ROOT / "tools"))
    assert version == un.__version__
    for name, line in {
        "CITATION.cff": f"version: {version}\n",
        "recipes/conda/recipe.yaml": f"  version: {version}\n",
        "recipes/spack/package.py": f'    version("{version}", sha256=',
        "recipes/Containerfile": f"unisono[mpi]=={version}",
    }.items():
        assert line in (ROOT / name).read_text(), name


def test_the_recipes_name_the_dependencies_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needed = [need.split(">=") for need in (*project["project"]["dependencies"], *project["build-system"]["requires"])]
    conda = (ROOT / "recipes/conda/recipe.yaml").read_text().replace("matplotlib-base", "matplotlib")
    spack = (ROOT / "recipes/spack/package.py").read_text()
    for name, versions in needed:
        least, below = versions.split(",<")
        assert f"    - {name} >={versions}\n" in conda
        # Ranges of Spack include their last version, unlike those of pip.
        first = least if not least.endswith(".0") else least.removesuffix(".0")
        ends = {f"@{first}:{int(below) - 1}", f"@{int(below) - 1}"}
        assert any(f'"py-{name}{end}"' in spack for end in ends), name
    rust = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["rust-version"]
    assert f'"rust@{rust}:"' in spack
