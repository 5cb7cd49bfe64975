"""Connects the ranks of programs under ``mpiexec``: own communicators, a comparison of programs, a common end."""

import atexit
import contextlib
import os
import sys
import traceback
import zlib
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

import numpy as np

from unisono import mpi as worlds
from unisono._core import Discovery, InputError
from unisono.mpi.library import abort, import_mpi
from unisono.mpi.sources import check
from unisono.tasks._program_checksum import ProgramChecksum, refuse_different_contents
from unisono.tasks._progress import ProgressThread

#: The longest message in bytes; longer data is sent in pieces, because MPI counts with 32 bits.
LARGEST = 1 << 30
#: Environment variables that launchers set for their processes: of Open MPI, of MPICH and others with PMI, of PMIx.
_LAUNCHERS = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMI_RANK", "PMIX_RANK")
#: The name of the last action that ranks compare.
_END = "the end"
_shared: dict[tuple[str, str], "Transport"] = {}


def launched() -> bool:
    """Returns whether a launcher started this process, or the process has imported mpi4py."""
    return "mpi4py.MPI" in sys.modules or any(name in os.environ for name in _LAUNCHERS)


def transport(machine: Any, plan: Any) -> "Transport | None":
    """Returns the transport for this machine or plan; None without a launcher, or with one rank.

    All ranks call this together.
    """
    if not launched():
        # A machine or plan that would be refused on several ranks is refused here too.
        check(machine, plan)
        return None
    key = (str(machine), str(plan))
    if key not in _shared:
        _shared[key] = Transport(import_mpi(), machine, plan)
    found = _shared[key]
    return found if found.ranks > 1 else None


class Transport:
    """The ranks of MPI's world, with communicators that nothing else uses."""

    def __init__(self, mpi: Any, machine: Any, plan: Any) -> None:
        """Creates the communicators. All ranks call this together."""
        self.mpi = mpi
        self.comm = mpi.COMM_WORLD.Dup()
        self.rank, self.ranks = int(self.comm.Get_rank()), int(self.comm.Get_size())
        self.world = worlds.world(machine, plan=plan, comm=mpi.COMM_WORLD.Dup(), channels=4)
        self._groups: dict[tuple[int, ...], Any] = {}
        #: The functions that all ranks call together at the end.
        self.at_end: list[Callable[[], None]] = []
        several = mpi.Query_thread() >= mpi.THREAD_MULTIPLE
        self.progress_thread = ProgressThread(several, lambda: self.abort("an exchange"))
        self._differs = False
        # A rank that ends, also by an error, notifies the other ranks, which would otherwise wait for ever.
        if self.ranks > 1:
            atexit.register(self._end)
            if sys.excepthook is sys.__excepthook__:
                sys.excepthook = self._report

    def _report(self, kind: type[BaseException], error: BaseException, at: TracebackType | None) -> None:
        """Prints the traceback of an exception that ends the program."""
        _write("".join(traceback.format_exception(kind, error, at)), self.rank)

    def among(self, participants: tuple[int, ...]) -> Any:
        """Returns a communicator of ``participants``, which call this in the order of their collectives."""
        if len(participants) == self.ranks:
            return self.comm
        if participants not in self._groups:
            group = self.comm.Get_group().Incl(participants)
            self._groups[participants] = self.comm.Create_group(group)
        return self._groups[participants]

    def barrier(self) -> None:
        """Waits until all ranks have called this function."""
        self.comm.Barrier()

    def agree(self, what: str, discovery: Discovery, agreed: ProgramChecksum) -> None:
        """Compares the submissions and the next action of all ranks.

        Raises:
            InputError: ranks differ; raised on all ranks, with the first submission that differs.

        """
        count, end = discovery.chain
        if self._equal([_number(what), count, end & 0xFFFF_FFFF, end >> 32, agreed.number]):
            discovery.chain_agreed()
            return
        self._differs = True
        first, links = discovery.chain_links()
        everyone = self.comm.allgather((what, first, links))
        whats, kept = [row[0] for row in everyone], [row[2] for row in everyone]
        together = _END not in whats and len({row[1] for row in everyone}) == 1
        where = _first_difference(kept) if together else None
        if where is not None:
            said = _by_rank(self.comm.allgather(discovery.submission(first + where)))
            raise InputError(f"the ranks submit different programs: submission {first + where} is {said}")
        if len(set(whats)) > 1:
            raise InputError(f"the ranks do different things: {_by_rank(whats)}")
        refuse_different_contents(self.comm.allgather(agreed.contents()))
        raise InputError("the ranks' programs differ in a dtype or in the operator of a reduction")

    @contextlib.contextmanager
    def proving(self) -> Iterator[None]:
        """Returns a context in which the schedule of this rank's messages is proved.

        An exception in it ends all ranks, because it may occur on this rank alone.
        """
        try:
            yield
        except BaseException:
            self.abort("the proof of messages")
            raise

    def abort(self, what: str) -> None:
        """Ends all ranks after a failed kernel or exchange, because other ranks could wait for this rank for ever."""
        _write(f"{traceback.format_exc()}error: {what} failed on rank {self.rank}; all ranks are ended\n", self.rank)
        abort(self.mpi, 1)

    def _equal(self, numbers: list[int]) -> bool:
        # If max(x) equals the minimum, which is -max(-x), all ranks have the same x.
        given = np.array([*numbers, *(-n for n in numbers)], np.int64)
        found = np.empty_like(given)
        self.comm.Allreduce(given, found, self.mpi.MAX)
        return bool((found[: len(numbers)] == -found[len(numbers) :]).all())

    def _end(self) -> None:
        if self._differs or self.mpi.Is_finalized():
            return
        if not self._equal([_number(_END), 0, 0, 0, 0]):
            self._differs = True
            self.comm.allgather((_END, 0, []))
            return
        for do in self.at_end:
            do()


def _write(text: str, rank: int) -> None:
    """Writes lines to standard error, each with the number of the rank in front.

    All lines are written at once: launchers forward a short write as a whole, so lines of ranks are not interleaved.
    """
    sys.stderr.flush()
    lines = "".join(f"[rank {rank}] {line}\n" for line in text.splitlines())
    sys.stderr.write(lines)
    sys.stderr.flush()


def _number(what: str) -> int:
    return zlib.crc32(what.encode())


def _first_difference(links: list[list[int]]) -> int | None:
    """Returns the first position at which chains differ or one chain ends; None if all are equal."""
    least, most = min(map(len, links)), max(map(len, links))
    for at in range(least):
        if any(own[at] != links[0][at] for own in links):
            return at
    return None if least == most else least


def _by_rank(said: list[str]) -> str:
    groups: dict[str, list[int]] = {}
    for rank, text in enumerate(said):
        groups.setdefault(text, []).append(rank)
    return ", ".join(f"{text} on rank {', '.join(map(str, ranks[:4]))}" for text, ranks in groups.items())
