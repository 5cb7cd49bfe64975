"""Imports mpi4py, and ends all ranks together after a failure."""

import fcntl
import os
import stat
import sys
import termios
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from unisono._core import Error, InputError, UnsupportedError
from unisono.base.messages import shown

__all__ = ["abort", "check_alike", "check_several", "end_other_ranks", "import_mpi", "together"]

_Checked = TypeVar("_Checked")
#: The environment variables in which launchers state the number of ranks.
_SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS")
#: True if all ranks end because of the same failure.
_all_end = False
#: The maximum time in seconds in which a launcher reads the last lines of a rank.
_PATIENCE = 10.0


def import_mpi(*, measures: bool = False) -> Any:
    """Returns the initialised module ``mpi4py.MPI``.

    With ``measures`` MPI is initialised for calls of one thread, as in most programs in C, unless MPICH's variable for
    programs that request no level is set. Otherwise mpi4py requests calls of any thread, with which MPICH 5.0.2 takes
    2 µs instead of 0.2 µs for an allreduce of 8 bytes.

    Raises:
        InputError: mpi4py is not installed, or finds no MPI library.

    """
    try:
        if measures and "MPIR_CVAR_DEFAULT_THREAD_LEVEL" not in os.environ:
            import mpi4py

            mpi4py.rc.thread_level = "funneled"
        from mpi4py import MPI
    except (ImportError, RuntimeError) as problem:
        reason = " ".join(str(problem).split())
        message = f"no MPI for Python here ({reason}); install mpi4py and an MPI, as in pip install 'unisono[mpi]'"
        raise InputError(message) from None
    return MPI


def check_several(world: Any, what: str, command: str) -> None:
    """Refuses a world of one rank.

    Raises:
        InputError: the world has one rank; the message differs if a launcher started several unconnected ranks.

    """
    if world.size > 1:
        return
    started = max((int(size) for name in _SIZES if (size := os.environ.get(name, "")).isdecimal()), default=1)
    if started > 1:
        raise InputError(
            f"{what} needs at least two ranks, and each of the {started} that the launcher started is alone in "
            "MPI_COMM_WORLD: the launcher is of another MPI than mpi4py; 'unisono doctor' names the mpiexec that fits"
        )
    raise InputError(f"{what} needs at least two ranks: mpiexec -n 4 unisono {command}")


def check_alike(world: Any, said: Mapping[str, object], cure: str) -> None:
    """Raises an error if ranks were started with different values, because they would wait for each other forever.

    Raises:
        InputError: a value differs from that of rank 0; the message names the first such value and ends with ``cure``.
        SystemExit: a value differs on another rank.

    """
    first: Mapping[str, object] = world.bcast(said if world.rank == 0 else None)

    def check() -> None:
        for name, value in said.items():
            if name in first and value != first[name]:
                own, other = shown(value), shown(first[name])
                raise InputError(f"{name} is {own} on rank {world.rank}, and {other} on rank 0; {cure}")

    together(world, check)


def end_other_ranks(code: int) -> None:
    """Ends all ranks of MPI's world after a failure of this rank alone.

    The other ranks would otherwise wait for this rank.
    """
    # If mpi4py was never imported, this process has not started MPI.
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is None or _all_end or not mpi.Is_initialized() or mpi.Is_finalized() or mpi.COMM_WORLD.size == 1:
        return
    abort(mpi, code)


def abort(mpi: Any, code: int) -> None:
    """Ends all ranks of MPI's world, after the launcher has read the output of this rank.

    The launcher of MPICH drops output that it has not read when it learns that a rank ends the job.
    """
    end = time.monotonic() + _PATIENCE
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
            while _unread(stream.fileno()) and time.monotonic() < end:
                time.sleep(0.001)
    mpi.COMM_WORLD.Abort(code)


def _unread(descriptor: int) -> int:
    """Returns the number of bytes that a pipe holds; 0 for anything else."""
    if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        return 0
    return int.from_bytes(fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)), sys.byteorder)


def together(world: Any, check: Callable[[], _Checked]) -> _Checked:
    """Returns the result of ``check`` on this rank.

    If ``check`` fails on any rank, all ranks end, and one rank prints the error.

    Raises:
        Error, OSError: ``check`` failed; raised on the first such rank.
        SystemExit: ``check`` failed; raised on all other ranks.

    """
    global _all_end
    failure: Error | OSError | None = None
    try:
        found = check()
    except (Error, OSError) as error:
        failure = error
    # All ranks end with the exit code of the first that failed, because a launcher may return the code of any rank.
    is_input = not isinstance(failure, Error) or isinstance(failure, InputError | UnsupportedError)
    codes = world.allgather(None if failure is None else 2 if is_input else 1)
    failed = [rank for rank, code in enumerate(codes) if code is not None]
    if failed:
        _all_end = True
        if failure is not None and world.rank == failed[0]:
            raise failure
        raise SystemExit(codes[failed[0]])
    return found
