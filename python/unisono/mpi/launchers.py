"""Starting a program under MPI with the library that runs planned collectives loaded before it."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from unisono._core import InputError

__all__ = ["LIBRARY", "Launcher", "environment", "family", "find_launcher", "variables"]

#: The library that is loaded before the program.
LIBRARY = Path(__file__).parents[1] / "_lib" / "libunisono_preload.so"


@dataclass(frozen=True)
class Launcher:
    """An `mpiexec`, and whose it is."""

    path: Path
    #: `openmpi` or `mpich`.
    family: str

    def command(self, ranks: int, shared: bool, variables: dict[str, str], program: list[str]) -> list[str]:
        """The command that runs the program; its processes, and only they, have the variables.

        ``shared`` says that there are more ranks than cores, which Open MPI needs an option for.
        """
        command = [str(self.path)]
        if self.family == "openmpi":
            if shared:
                command += ["--oversubscribe", "--bind-to", "none"]
            for name, value in variables.items():
                command += ["-x", f"{name}={value}"]
        else:
            for name, value in variables.items():
                command += ["-genv", name, value]
        return [*command, "-n", str(ranks), *program]


def find_launcher(program: str, asked: str | None = None) -> Launcher:
    """The `mpiexec` that fits a program: the one asked for, that of the program's MPI library, else the nearest.

    Nearest is the folder of the program itself (a Python environment has both), then of this Python, then ``PATH``.

    Raises:
        InputError: there is none, or it is of no known MPI.

    """
    if asked is not None:
        found = shutil.which(asked)
        if found is None:
            raise InputError(f"there is no program '{asked}'; --mpiexec takes the mpiexec of an MPI library")
        return Launcher(Path(found), family(Path(found)))
    full = shutil.which(program)
    folders = [*([_linked_folder(Path(full)), Path(full).parent] if full else []), Path(sys.executable).parent]
    for folder in folders:
        if folder is not None and (folder / "mpiexec").exists():
            return Launcher(folder / "mpiexec", family(folder / "mpiexec"))
    found = shutil.which("mpiexec")
    if found is None:
        raise InputError(
            "no MPI is installed: there is no mpiexec (name one with --mpiexec, or install openmpi or mpich)"
        )
    return Launcher(Path(found), family(Path(found)))


def _linked_folder(program: Path) -> Path | None:
    """The folder of commands beside the MPI library that a program is linked to, if it is one."""
    try:
        done = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False)
    except OSError:
        return None
    for line in done.stdout.splitlines():
        name, _, where = line.strip().partition(" => ")
        if name.startswith("libmpi") and where.startswith("/"):
            return Path(where.partition(" (")[0]).parent.parent / "bin"
    return None


def family(launcher: Path) -> str:
    """Whose `mpiexec` it is, by its own words.

    Raises:
        InputError: no known MPI's.

    """
    done = subprocess.run([str(launcher), "--version"], capture_output=True, text=True, check=False)
    text = done.stdout + done.stderr
    if "Open MPI" in text or "OpenRTE" in text or "PRRTE" in text or "prterun" in text:
        return "openmpi"
    if "HYDRA" in text or "MPICH" in text or "Intel(R) MPI" in text:
        return "mpich"
    raise InputError(f"'{launcher}' is the mpiexec of an MPI that is not known; known are Open MPI and MPICH")


def environment(launcher: Launcher) -> dict[str, str]:
    """The environment of the launcher itself."""
    variables = dict(os.environ)
    # The library belongs before the program, not before its launcher.
    variables.pop("LD_PRELOAD", None)
    if launcher.family == "openmpi" and os.geteuid() == 0:
        variables |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return variables


def variables(plan: str | None, report: str | None, check: bool, safe_ops: bool, off: bool) -> dict[str, str]:
    """The environment variables of the program's processes.

    Raises:
        InputError: the library is not built.

    """
    if not LIBRARY.exists():
        raise InputError(f"the library for MPI programs is missing ('{LIBRARY}'); 'unisono doctor' says what mends it")
    preload = os.environ.get("LD_PRELOAD")
    found = {"LD_PRELOAD": f"{LIBRARY}:{preload}" if preload else str(LIBRARY)}
    for name in ("UNISONO_PLAN", "UNISONO_REPORT", "UNISONO_CHECK", "UNISONO_SAFE_OPS", "UNISONO_OFF"):
        if name in os.environ:
            found[name] = os.environ[name]
    if plan is not None:
        found["UNISONO_PLAN"] = str(Path(plan).resolve())
    if report is not None:
        found["UNISONO_REPORT"] = report if report == "stderr" else str(Path(report).resolve())
    if check:
        found["UNISONO_CHECK"] = "1"
    if safe_ops:
        found["UNISONO_SAFE_OPS"] = "1"
    if off:
        found["UNISONO_OFF"] = "1"
    return found
