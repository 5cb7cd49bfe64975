"""Finds launchers, and builds the commands that run MPI programs with the preload library."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from unisono import _core
from unisono._core import InputError
from unisono.base.messages import shown

__all__ = [
    "LIBRARY",
    "SETTINGS",
    "Launcher",
    "check_program",
    "environment",
    "family",
    "find_launcher",
    "installed",
    "is_launcher",
    "linked_library",
    "variables",
]

#: The preload library.
LIBRARY = Path(__file__).parents[1] / "_lib" / "libunisono_preload.so"

#: The environment variables that the preload library reads.
SETTINGS = tuple(_core.variables_of_programs())


#: The options by which launchers get the number of ranks.
_RANKS = re.compile(r"--?(n|np|ntasks)(=.*)?|-n[0-9]+")
#: Launchers of schedulers, which accept the number of ranks as `-n` and pass their environment to the ranks.
_SCHEDULERS = ("srun", "aprun")


@dataclass(frozen=True)
class Launcher:
    """A program that starts ranks, such as `mpiexec` or `srun`, and the MPI that it belongs to."""

    path: Path
    #: `openmpi`, `mpich`, or `other` for a launcher of which only the option `-n` is known.
    family: str
    #: The options that the user states for the launcher.
    options: tuple[str, ...] = ()

    def command(self, ranks: int, shared: bool, variables: dict[str, str], program: list[str]) -> list[str]:
        """Returns the command that runs the program; only the program's processes get the variables.

        ``shared`` is true if there are more ranks than cores. Open MPI then needs an option, which is not added if the
        user states options.
        """
        command = [str(self.path), *self.options]
        if self.family == "openmpi":
            if shared and not self.options:
                command += ["--oversubscribe", "--bind-to", "none"]
            for name, value in variables.items():
                command += ["-x", f"{name}={value}"]
        elif self.family == "mpich":
            for name, value in variables.items():
                command += ["-genv", name, value]
        else:
            # `env`, which every system has, sets the variables for the program but not for the launcher.
            program = ["env", *(f"{name}={value}" for name, value in variables.items()), *program]
        return [*command, "-n", str(ranks), *program]


def find_launcher(program: str, asked: str | None = None, present: bool = True) -> Launcher:
    """Returns the launcher for a program: ``asked``, or one of the program's MPI library, else the first one found.

    ``asked`` is a command line: a program that starts ranks, and options for it; without ``present`` it need not be on
    this machine. A program that is linked to an MPI library gets a launcher of that library's family: the one whose
    folder is nearest to the library, else the first on ``PATH``. Any other program gets the launcher in the program's
    own folder (a Python environment contains both), in the folder of this Python, or on ``PATH``.

    Raises:
        InputError: there is no launcher, or it belongs to an unknown MPI.

    """
    if asked is not None:
        return _asked(asked, present)
    full = shutil.which(program)
    linked = linked_library(Path(full)) if full else None
    on_path = [Path(folder) for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if folder]
    if linked is not None:
        assert full is not None
        near = [folder / "bin" for path in (linked.resolve(), linked) for folder in path.parents]
        folders = [*near, *on_path, Path(full).parent, Path(sys.executable).parent]
        # Open MPI derives its folder from the path by which it is called, and /bin may be a link.
        return _of_library(linked, map(Path.resolve, folders))
    for folder in [*([Path(full).parent] if full else []), Path(sys.executable).parent, *on_path]:
        if os.access(folder / "mpiexec", os.X_OK):
            return Launcher(folder / "mpiexec", family(folder / "mpiexec"))
    raise InputError("no MPI is installed: there is no mpiexec (name one with --launcher, or install openmpi or mpich)")


#: The names of launchers by family, in the order of attempts. Debian has both families in one folder, under the names
#: that state the family.
_NAMES = {"openmpi": ("mpiexec.openmpi", "mpiexec"), "mpich": ("mpiexec.mpich", "mpiexec", "mpiexec.hydra")}
_WORDS = {"openmpi": "Open MPI", "mpich": "MPICH or a library with its interface"}


def _of_library(library: Path, folders: Iterable[Path]) -> Launcher:
    """Returns the first launcher in ``folders`` that can start ranks of an MPI library."""
    wanted = _library_family(library)
    for folder in dict.fromkeys(folders):
        for name in ("mpiexec",) if wanted is None else _NAMES[wanted]:
            if not os.access(folder / name, os.X_OK):
                continue
            try:
                found = family(folder / name)
            except (InputError, OSError):
                continue
            if wanted in (None, found):
                return Launcher(folder / name, found)
    of = "" if wanted is None else f" of {_WORDS[wanted]}"
    raise InputError(
        f"the program uses '{library}', and no mpiexec{of} was found; name the program that starts its ranks, as in "
        "--launcher srun"
    )


def _library_family(library: Path) -> str | None:
    """Returns the family of an MPI library by its ABI version.

    Returns None for the standard ABI, which several MPI libraries have.
    """
    version = library.name.partition(".so.")[2].partition(".")[0]
    return {"40": "openmpi", "12": "mpich"}.get(version)


def check_program(program: str) -> None:
    """Raises an error if the program cannot be started, so that the error occurs once instead of on every rank.

    Raises:
        InputError: there is no such program, or the file is not executable.

    """
    if shutil.which(program) is not None:
        return
    path = Path(program)
    # Launchers search a name without a folder in their own folder, on PATH, and in the current folder.
    if not path.is_file():
        raise InputError(f"there is no program '{program}'; name one on PATH, or a file as in ./{path.name}")
    if path.suffix == ".py":
        raise InputError(f"'{program}' is a Python program; write '-- python {program}'")
    if not os.access(path, os.X_OK):
        raise InputError(f"'{program}' is not executable; 'chmod +x {program}' makes it so")


def _asked(line: str, present: bool) -> Launcher:
    try:
        # A line that is the path of a program is not split, because a path may contain blanks.
        name, *options = [line] if shutil.which(line) else shlex.split(line) or [""]
    except ValueError:
        raise InputError(f"--launcher is {shown(line)}, and its quotes do not match") from None
    for option in options:
        if _RANKS.fullmatch(option):
            raise InputError(f"--launcher has {option}; the number of ranks is that of 'unisono run -n'")
    found = shutil.which(name)
    if found is None and name in _SCHEDULERS and not present:
        return Launcher(Path(name), "other", tuple(options))
    if found is None:
        raise InputError(
            f"there is no program '{name}'; --launcher takes a program that starts ranks, as mpiexec or srun"
        )
    if Path(name).name in _SCHEDULERS:
        return Launcher(Path(found), "other", tuple(options))
    try:
        return Launcher(Path(found), family(Path(found)), tuple(options))
    except InputError:
        if Path(name).name != "mpiexec":
            raise
        # The standard of MPI defines `mpiexec -n` for all libraries.
        return Launcher(Path(found), "other", tuple(options))


def installed() -> list[Launcher]:
    """Returns the launchers of known MPIs in the folder of this Python and on ``PATH``, without duplicates."""
    on_path = [Path(folder) for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if folder]
    names = dict.fromkeys(name for of in _NAMES.values() for name in of)
    found: dict[Path, Launcher] = {}
    for path in (folder / name for folder in [Path(sys.executable).parent, *on_path] for name in names):
        if os.access(path, os.X_OK) and path.resolve() not in found:
            with suppress(InputError, OSError):
                found[path.resolve()] = Launcher(path, family(path))
    return list(found.values())


def is_launcher(program: str) -> bool:
    """Returns whether a program is a launcher, by its name."""
    return Path(program).name in ("mpiexec", "mpirun", "prterun", "orterun", "mpiexec.hydra", *_SCHEDULERS)


#: The name of the C library of an MPI, on which its libraries for Fortran and C++ depend.
_MPI_LIBRARY = re.compile(r"libmpi(ch|_abi|_cray|_gnu\w*|_intel\w*)?\.so\.\d")


def linked_library(program: Path) -> Path | None:
    """Returns the MPI library that a program is linked to; None if there is none."""
    try:
        done = subprocess.run(["ldd", str(program)], capture_output=True, text=True, errors="replace", check=False)
    except OSError:
        return None
    for line in done.stdout.splitlines():
        name, _, where = line.strip().partition(" => ")
        if _MPI_LIBRARY.match(name) and where.startswith("/"):
            return Path(where.partition(" (")[0])
    return None


def family(launcher: Path) -> str:
    """Returns the family of a launcher, by the output of ``--version``.

    Raises:
        InputError: the launcher belongs to an unknown MPI.

    """
    done = subprocess.run([str(launcher), "--version"], capture_output=True, text=True, check=False)
    text = done.stdout + done.stderr
    if "Open MPI" in text or "OpenRTE" in text or "PRRTE" in text or "prterun" in text:
        return "openmpi"
    if "HYDRA" in text or "MPICH" in text or "Intel(R) MPI" in text:
        return "mpich"
    raise InputError(
        f"'{launcher}' is the mpiexec of an MPI that is not known; known are Open MPI, MPICH, srun and aprun"
    )


def environment(launcher: Launcher) -> dict[str, str]:
    """Returns the environment variables of the launcher itself.

    :func:`variables` returns the variables of the program.
    """
    variables = dict(os.environ)
    # The preload library must be loaded into the program, and not into the launcher.
    variables.pop("LD_PRELOAD", None)
    if launcher.family == "openmpi" and os.geteuid() == 0:
        variables |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return variables


def variables(plan: str | None, report: str | None, switches: Iterable[str]) -> dict[str, str]:
    """Returns the environment variables of the program's processes; ``switches`` names the switches that are on.

    Raises:
        InputError: the preload library is missing.

    """
    if not LIBRARY.exists():
        raise InputError(
            f"the library for MPI programs is missing ('{LIBRARY}'); 'unisono doctor' names the command that fixes it"
        )
    preload = os.environ.get("LD_PRELOAD")
    found = {"LD_PRELOAD": f"{LIBRARY}:{preload}" if preload else str(LIBRARY)}
    for name in SETTINGS:
        if name in os.environ:
            found[name] = os.environ[name]
    if plan is not None:
        found["UNISONO_PLAN"] = str(Path(plan).resolve())
    if report is not None:
        found["UNISONO_REPORT"] = report if report == "stderr" else str(Path(report).resolve())
    found |= dict.fromkeys(switches, "1")
    return found
