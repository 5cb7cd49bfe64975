"""Finds the MPI libraries of this machine, and runs them to determine the bits of their results."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["MOST_RANKS", "Library", "find", "mpich_image"]

_BITS = Path(__file__).with_name("_bits.py")
#: A file in this Python environment that lists further installations of MPI. Each line is the folder of a launcher.
_OTHERS = Path(sys.prefix) / "etc" / "unisono" / "mpi-folders"
#: The largest number of ranks that are run on this machine.
MOST_RANKS = 8


@dataclass(frozen=True)
class Library:
    """An installed MPI: its launcher, and a Python with mpi4py for this MPI."""

    name: str
    launcher: Path
    python: Path

    def holds(self, file: Path) -> bool:
        """Returns whether a file is in the folder of this installation."""
        return self.launcher.resolve().parent.parent in file.resolve().parents

    def bits(self, ranks: int, sizes: Sequence[int], load: Sequence[str] = ()) -> dict[int, str]:
        """Returns hashes of the float sums of an allreduce, by size in bytes; see :meth:`results`."""
        found = self.results(ranks, [("allreduce", size) for size in sizes], load)
        return {size: found["allreduce", size] for size in sizes}

    def results(
        self, ranks: int, calls: Sequence[tuple[str, int]], load: Sequence[str] = (), program: Path = _BITS
    ) -> dict[tuple[str, int], str]:
        """Returns hashes of the float32 results of collectives, by name and size in bytes as MPI counts it.

        With another ``program``, the word that it prints for each call replaces the hash. ``load`` are settings of the
        library: arguments of its launcher for Open MPI, variables for MPICH.

        Raises:
            RuntimeError: the run failed or took 120 seconds; the message is its last line, or states the limit.

        """
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("OMPI_", "PMI", "MPIR_CVAR_"))}
        options = ["-n", str(ranks)]
        if self.name == "Open MPI":
            environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
            options += ["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]
            options += [word for argument in load for word in argument.split(" ", 2)]
        else:
            environment |= dict(variable.split("=", 1) for variable in load)
        names = {f"{collective}:{size}": (collective, size) for collective, size in calls}
        command = [str(self.launcher), *options, str(self.python), str(program), *names]
        try:
            ran = subprocess.run(
                command, env=environment, capture_output=True, text=True, errors="replace", timeout=120
            )
        except subprocess.TimeoutExpired:
            raise RuntimeError("the run did not end within 120 seconds") from None
        found = [line.split() for line in ran.stdout.replace("\0", "").splitlines()]
        hashes = {names[words[0]]: words[1] for words in found if len(words) == 2 and words[0] in names}
        if ran.returncode or set(hashes) != set(calls):
            last = (ran.stderr.strip() or ran.stdout.strip() or "nothing was printed").splitlines()[-1]
            raise RuntimeError(last)
        return hashes


def _folders() -> list[Path]:
    """Returns the folders of launchers.

    These are the folder of this environment, the folders listed in :data:`_OTHERS`, and a folder of ``PATH``.
    """
    listed = _OTHERS.read_text().splitlines() if _OTHERS.is_file() else []
    found = shutil.which("mpiexec")
    return [Path(sys.prefix) / "bin", *map(Path, filter(None, listed)), *([Path(found).parent] if found else [])]


def find(name: str) -> Library | None:
    """Returns the first installation of ``Open MPI`` or ``MPICH``; None if there is none."""
    mark = "Open MPI" if name == "Open MPI" else "HYDRA"
    for folder in _folders():
        launcher = folder / "mpiexec"
        if not launcher.is_file():
            continue
        try:
            said = subprocess.run([str(launcher), "--version"], capture_output=True, text=True, timeout=30).stdout
        except (OSError, subprocess.SubprocessError):
            continue
        if mark in said:
            python = folder / "python"
            return Library(name, launcher, python if python.exists() else Path(sys.executable))
    return None


def mpich_image() -> Path | None:
    """Returns the file of an installed MPICH library, which contains its selection table.

    The result is None without MPICH, or if its ``lib`` has no ``libmpi.so.12``.
    """
    library = find("MPICH")
    if library is None:
        return None
    files = sorted((library.launcher.resolve().parent.parent / "lib").glob("libmpi.so.12*"))
    return files[0] if files else None
