"""The ranks of programs under ``mpiexec``: separate communicators, agreement on the program, a common end."""

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
from unisono.mpi.library import import_mpi
from unisono.mpi.sources import check
from unisono.tasks._program_checksum import ProgramChecksum, refuse_different_contents
from unisono.tasks._progress import ProgressThread

#: The longest message in bytes; longer ones are sent in pieces, since MPI counts with 32 bits.
LARGEST = 1 << 30
#: Variables that launchers set for their processes: Open MPI, MPICH and others with PMI, PMIx.
_LAUNCHERS = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMI_RANK", "PMIX_RANK")
#: The name of the last call of a rank.
_END = "the end"
_shared: dict[tuple[str, str], "Transport"] = {}


def launched() -> bool:
    """Returns whether this process is one of several, or has started MPI."""
    return "mpi4py.MPI" in sys.modules or any(name in os.environ for name in _LAUNCHERS)


def transport(machine: Any, plan: Any) -> "Transport | None":
    """Returns the transport for this machine or plan; None for a lone process. All ranks call it together."""
    if not launched():
        # A program that would be refused on several ranks is refused here too.
        check(machine, plan)
        return None
    key = (str(machine), str(plan))
    if key not in _shared:
        _shared[key] = Transport(import_mpi(), machine, plan)
    found = _shared[key]
    return found if found.ranks > 1 else None


class Transport:
    """All ranks, on communicators that nothing else uses."""

    def __init__(self, mpi: Any, machine: Any, plan: Any) -> None:
        """Creates the communicators. All ranks call it together."""
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
        # A rank that ends, also by an error, notifies the others, which would wait for ever.
        if self.ranks > 1:
            atexit.register(self._end)
            if sys.excepthook is sys.__excepthook__:
                sys.excepthook = self._report

    def _report(self, kind: type[BaseException], error: BaseException, at: TracebackType | None) -> None:
        """Prints the traceback of an exception that ends the program."""
        _write("".join(traceback.format_exception(kind, error, at)), self.rank)

    def among(self, participants: tuple[int, ...]) -> Any:
        """Returns a communicator of some ranks, which call this in the order of their collectives."""
        if len(participants) == self.ranks:
            return self.comm
        if participants not in self._groups:
            group = self.comm.Get_group().Incl(participants)
            self._groups[participants] = self.comm.Create_group(group)
        return self._groups[participants]

    def barrier(self) -> None:
        """Returns once all ranks have called it."""
        self.comm.Barrier()

    def agree(self, what: str, discovery: Discovery, agreed: ProgramChecksum) -> None:
        """Compares the submissions and the next action of all ranks.

        Raises:
            InputError: they differ; raised on all ranks, with the first submission that differs.

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
        """Returns a context for proofs of messages: if one fails, perhaps on this rank alone, all ranks are ended."""
        try:
            yield
        except BaseException:
            self.abort("the proof of messages")
            raise

    def abort(self, what: str) -> None:
        """Ends all ranks after a failed kernel or exchange, since they could wait for this one for ever."""
        _write(f"{traceback.format_exc()}error: {what} failed on rank {self.rank}; all ranks are ended\n", self.rank)
        self.mpi.COMM_WORLD.Abort(1)

    def _equal(self, numbers: list[int]) -> bool:
        # max(x) is the minimum, -max(-x), only if all ranks have the same x.
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
    """Writes lines of one rank to standard error, each after the rank's number.

    One write has all of them: launchers forward a short write as a whole, so lines of ranks are not interleaved.
    """
    sys.stderr.flush()
    lines = "".join(f"[rank {rank}] {line}\n" for line in text.splitlines())
    sys.stderr.write(lines)
    sys.stderr.flush()


def _number(what: str) -> int:
    return zlib.crc32(what.encode())


def _first_difference(links: list[list[int]]) -> int | None:
    """Returns the first position at which chains differ, or at which one of them ends."""
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
