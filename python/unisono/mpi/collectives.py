"""Calls collectives by address, so that one process can time the MPI library's own collectives and those of plans.

The preload library serves calls by a plan and lets the MPI library make all others. The MPI library also has every
function under a name ``PMPI_``. So one process can time both, and several plans, in alternation.
"""

import ctypes
import os
from collections.abc import Callable
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unisono._core import InputError
from unisono.mpi.launchers import LIBRARY, SETTINGS

__all__ = ["MEASURED", "ROOTED", "Array", "Collectives", "buffers", "elements_of", "loaded_library"]

Array = npt.NDArray[Any]
#: The function of MPI for each collective.
_CALLS: dict[str, str] = {
    "allreduce": "Allreduce",
    "reduce": "Reduce",
    "broadcast": "Bcast",
    "allgather": "Allgather",
    "reduce-scatter": "Reduce_scatter_block",
    "alltoall": "Alltoall",
}
#: Functions that send an empty message between two calls: from rank 0 to every other rank, and from these to rank 0.
_TO_RANKS, _TO_ROOT = "unisono_wait_for_root", "unisono_report_to_root"
#: The function that separates two calls of a collective with a root.
_TURNS = {"broadcast": _TO_ROOT, "reduce": _TO_RANKS}
#: The number of arguments that `unisono_repeat` passes to the function.
_MOST_ARGUMENTS = 9
#: The collectives that can be timed.
MEASURED = tuple(_CALLS)
#: The timed collectives with a root.
ROOTED = frozenset(_TURNS)


class Collectives:
    """The collectives of a communicator: the MPI library's own, or with ``plan`` the planned collectives."""

    def __init__(self, mpi: Any, comm: Any, plan: str | os.PathLike[str] | bytes | None = None) -> None:
        """Reads the plan, a file or its bytes, and loads a separate copy of the preload library for it."""
        self._mpi = mpi
        self._comm = comm
        if not LIBRARY.exists():
            raise InputError(
                f"the library for MPI programs is missing ('{LIBRARY}'); 'unisono doctor' names the command that "
                "fixes it"
            )
        own = ctypes.CDLL(_copy(LIBRARY))
        self._own, self._repeat = own, own.unisono_repeat
        self._repeat.restype = ctypes.c_int
        self._conditions = own.unisono_conditions
        if plan is None:
            self._library, self._prefix = ctypes.CDLL(loaded_library()), "PMPI"
            return
        self._library, self._prefix = own, "MPI"
        self._library.unisono_served.restype = ctypes.c_uint64
        before = {name: os.environ.get(name) for name in SETTINGS}
        # Bytes become a file without a name, so that ranks need no folder shared by all nodes.
        memory = _memory("plan", plan) if isinstance(plan, bytes) else None
        try:
            path = str(Path(plan).resolve()) if not isinstance(plan, bytes) else f"/proc/self/fd/{memory}"
            own_settings = {"UNISONO_PLAN": path, "UNISONO_ANYWHERE": "1"}
            os.environ.update(dict.fromkeys(SETTINGS, "") | own_settings)
            # The preload library reads its environment once, in this call. The call passes the communicator of the
            # ranks that have the plan, because MPI is already initialised and the library did not see the
            # initialisation.
            word = ctypes.c_size_t
            self._library.unisono_settle(word(mpi._handleof(comm)))
        finally:
            if memory is not None:
                os.close(memory)
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value

    @property
    def ranks(self) -> int:
        """Returns the number of ranks."""
        return int(self._comm.size)

    def on(self, comm: Any) -> "Collectives":
        """Returns the same collectives on another communicator."""
        other = copy(self)
        other._comm = comm
        return other

    @property
    def served(self) -> int:
        """Returns the number of calls that the plan has served; 0 without a plan."""
        return int(self._library.unisono_served()) if self._prefix == "MPI" else 0

    def conditions(self) -> str:
        """Returns how the ranks of the communicator wait, in the text form of plans.

        All ranks of the communicator call this.
        """
        room = ctypes.create_string_buffer(256)
        word = ctypes.c_size_t
        if self._conditions(word(self._mpi._handleof(self._comm)), room, word(len(room))) == 0:
            raise InputError("how ranks of this MPI library wait cannot be found")
        return room.value.decode()

    def caller(self, collective: str, send: Array, recv: Array, *, apart: bool = False) -> Callable[[int], None]:
        """Returns a function that makes the collective a given number of times: sum of float32, root 0.

        No Python code runs between the calls. Python code between calls would keep the ranks' calls from overlapping,
        and short calls of different schedules would seem to take equally long. With ``apart``, empty messages separate
        the calls of a collective with a root. A root that sends waits for a message from each other rank, which this
        rank sends when it has received the data. A root that receives sends a message to each other rank, which then
        begins the next call.
        """
        name = f"{self._prefix}_{_CALLS[collective]}"
        word = ctypes.c_size_t
        function = word(ctypes.cast(getattr(self._library, name), ctypes.c_void_p).value or 0)
        given = self._arguments(collective, send, recv)
        arguments = [word(argument.value) for argument in given] + [word(0)] * (_MOST_ARGUMENTS - len(given))
        comm = word(self._mpi._handleof(self._comm))
        turn = _address(self._own, _TURNS[collective]) if apart else 0

        # The function keeps references to the arrays, because their memory must stay valid while it can be called.
        def call(calls: int, _memory: tuple[Array, Array] = (send, recv)) -> None:
            code = self._repeat(function, ctypes.c_uint64(calls), word(turn), comm, *arguments)
            if code != 0:
                raise InputError(f"{name} ended with the code {code}")

        return call

    def turns(self) -> Callable[[int], None]:
        """Returns a function that sends pairs of the empty messages of ``apart``, one in each direction."""
        word = ctypes.c_size_t
        comm = word(self._mpi._handleof(self._comm))
        there, back = (word(_address(self._own, name)) for name in (_TO_RANKS, _TO_ROOT))

        def turn(calls: int) -> None:
            code = self._repeat(there, ctypes.c_uint64(calls), back, comm, comm, *[word(0)] * (_MOST_ARGUMENTS - 1))
            if code != 0:
                raise InputError(f"empty messages ended with the code {code}")

        return turn

    def _arguments(self, collective: str, send: Array, recv: Array) -> list[Any]:
        word, count = ctypes.c_size_t, ctypes.c_int
        handle = self._mpi._handleof
        kind, comm = word(handle(self._mpi.FLOAT)), word(handle(self._comm))
        operator, root = word(handle(self._mpi.SUM)), count(0)
        to, source = word(recv.ctypes.data), word(send.ctypes.data)
        ranks = self._comm.size
        match collective:
            case "allreduce":
                return [source, to, count(send.size), kind, operator, comm]
            case "reduce":
                return [source, to, count(send.size), kind, operator, root, comm]
            case "broadcast":
                return [source, count(send.size), kind, root, comm]
            case "allgather":
                return [source, count(send.size), kind, to, count(send.size), kind, comm]
            case "reduce-scatter":
                return [source, to, count(recv.size), kind, operator, comm]
            case _:
                return [source, count(send.size // ranks), kind, to, count(send.size // ranks), kind, comm]


def _copy(library: Path) -> str:
    """Returns the path of an unnamed copy of a library, which exists only while this process uses it."""
    return f"/proc/self/fd/{_memory(library.name, library.read_bytes())}"


def _memory(name: str, contents: bytes) -> int:
    """Returns the descriptor of an unnamed file in memory with these contents."""
    file = os.memfd_create(name)
    with open(file, "wb", closefd=False) as out:
        out.write(contents)
    return file


def buffers(collective: str, elements: int, ranks: int, rank: int) -> tuple[Array, Array]:
    """Returns zeroed output and random input of a rank for ``elements`` as MPI counts them: ``(input, output)``.

    The inputs are chosen so that their sums depend on the order of additions.
    """
    own = np.random.default_rng([rank, elements])
    sent = elements * ranks if collective in ("reduce-scatter", "alltoall") else elements
    received = elements * ranks if collective in ("allgather", "alltoall") else elements
    return own.standard_normal(sent).astype(np.float32), np.zeros(received, dtype=np.float32)


def elements_of(collective: str, send: Array, recv: Array, ranks: int) -> int:
    """Returns the number of elements, as MPI counts them, for which :func:`buffers` made these arrays."""
    if collective == "alltoall":
        return send.size // ranks
    return recv.size if collective == "reduce-scatter" else send.size


def _address(library: ctypes.CDLL, name: str) -> int:
    """Returns the address of a function that a library has."""
    return ctypes.cast(library[name], ctypes.c_void_p).value or 0


def loaded_library() -> str:
    """Returns the path of the MPI library that this process has loaded.

    Raises:
        InputError: no MPI library is loaded.

    """
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = line.partition("/")[2]
        if Path(path).name.startswith(("libmpi.so", "libmpi_abi.so")):
            return f"/{path}"
    raise InputError("no MPI library is loaded in this process")
