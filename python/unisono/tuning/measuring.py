"""Times collectives under ``mpiexec``: planned schedules and the library's own, in alternation."""

import os
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Protocol

import numpy as np

from unisono.mpi.collectives import ROOTED, Array, buffers
from unisono.mpi.groups import nodes

__all__ = ["Contest", "Contestant", "Timing", "alone", "checksum", "contest", "is_idle"]

#: The intended duration of a burst of calls in seconds, and the largest number of its calls.
_BURST = 2e-4
_MOST_CALLS = 200
#: The maximum number of a contestant's calls before its rounds. These calls end early after a call of `_LONG_CALL`
#: seconds; the first call does not count.
_FIRST_CALLS = 4
#: The seconds from which a call is made only once a round, because other work disturbs it little.
_LONG_CALL = 0.1
#: The largest load average per core of a machine that counts as idle except for this program.
_BUSY = 1.25
#: The time of a call is at least this fraction of the time of the call with its empty message.
_LEAST_SHARE = 0.1


class Contestant(Protocol):
    """Collectives that are timed, such as :class:`unisono.mpi.collectives.Collectives`."""

    @property
    def served(self) -> int:
        """Returns the number of calls that ran as planned."""

    def caller(self, collective: str, send: Array, recv: Array, *, apart: bool = False) -> Callable[[int], None]:
        """Returns a function that makes the collective a given number of times."""

    def turns(self) -> Callable[[int], None]:
        """Returns a function that sends a given number of pairs of the empty messages of ``apart``."""


@dataclass
class Timing:
    """The times of one contestant at one size; a round's time is the lower quartile over bursts on the slowest rank."""

    rounds: list[float]
    #: The checksum of the result's bits on this rank, which depends on the order of additions.
    bits: str
    #: The number of calls; ``served`` is the number of calls that a plan served.
    calls: int
    served: int

    @property
    def seconds(self) -> float:
        """Returns the median time over rounds."""
        return median(self.rounds)


@dataclass
class Contest:
    """The times of all contestants at one size, in the order of the contestants."""

    elements: int
    timings: list[Timing]

    def won(self, at: int, other: int = 0) -> int:
        """Counts the rounds in which contestant ``at`` was faster than ``other``."""
        pairs = zip(self.timings[at].rounds, self.timings[other].rounds, strict=True)
        return sum(mine < theirs for mine, theirs in pairs)

    def won_all(self, at: int, other: int = 0) -> int:
        """Returns the number of rounds in which contestant ``at`` was faster than the fastest round of ``other``."""
        fastest = min(self.timings[other].rounds)
        return sum(mine < fastest for mine in self.timings[at].rounds)


def checksum(output: Array) -> str:
    """Returns the checksum of a result's bits in hexadecimal."""
    return f"{zlib.crc32(output.tobytes()):08x}"


def contest(
    mpi: Any,
    comm: Any,
    contestants: Sequence[Contestant],
    collective: str,
    elements: int,
    rounds: int = 6,
    seconds: float = 0.02,
) -> Contest:
    """Times contestants in interleaved rounds of a fixed duration each. All ranks of ``comm`` call this.

    A round of a contestant begins with a barrier and has many bursts of consecutive calls, as in a compiled program;
    the time of a call is the duration of a burst on its slowest rank, divided by its calls. The order of the
    contestants rotates from round to round, so that no contestant always follows the same other.

    Consecutive calls of a collective with a root would overlap, because a rank that only sends continues immediately,
    so a call would seem to take only a part of its time. An empty message separates such calls; its least time,
    measured in the same rounds, is subtracted.
    """
    calls: list[Callable[[int], None]] = []
    outputs = []
    apart = collective in ROOTED
    for contestant in contestants:
        send, recv = buffers(collective, elements, comm.size, comm.rank)
        calls.append(contestant.caller(collective, send, recv, apart=apart))
        outputs.append(send if collective == "broadcast" else recv)
    if apart:
        calls.append(contestants[0].turns())
    before = [contestant.served for contestant in contestants]
    made = [0] * len(calls)
    repeats = []
    for at, call in enumerate(calls):
        # Untimed first calls connect ranks and allocate memory.
        call(1)
        took, made[at] = 0.0, 1
        while took < _LONG_CALL and made[at] < _FIRST_CALLS:
            start = mpi.Wtime()
            call(1)
            took = max(comm.allreduce(mpi.Wtime() - start, op=mpi.MAX), 1e-7)
            made[at] += 1
        burst = int(min(max(_BURST / took, 1), _MOST_CALLS))
        least = 3 if took < _LONG_CALL else 1
        repeats.append((burst, int(min(max(seconds / (burst * took), least), 2000))))
    bits = [checksum(output) for output in outputs]
    times: list[list[float]] = [[] for _ in calls]
    for turn in range(rounds):
        for at in _turned(len(calls), turn):
            call, (burst, bursts) = calls[at], repeats[at]
            taken = np.empty(bursts)
            # Pairs of messages that follow each other wait 40 ms for the delayed acknowledgments of TCP; the message
            # after a call does not.
            is_pair = apart and at == len(calls) - 1
            comm.Barrier()
            for again in range(bursts):
                if is_pair:
                    comm.Barrier()
                start = mpi.Wtime()
                call(burst)
                taken[again] = (mpi.Wtime() - start) / burst
            comm.Allreduce(mpi.IN_PLACE, taken, op=mpi.MAX)
            # The lower quartile omits bursts that other work makes tens of times as long.
            times[at].append(float(np.quantile(taken, 0.25)))
            made[at] += burst * bursts
    if apart:
        times = alone(times[:-1], times[-1])
        made.pop()
    served = [contestant.served - first for contestant, first in zip(contestants, before, strict=True)]
    return Contest(elements, [Timing(*row) for row in zip(times, bits, made, served, strict=True)])


def alone(times: Sequence[Sequence[float]], pairs: Sequence[float]) -> list[list[float]]:
    """Returns the times of calls without the empty message.

    ``times`` are the times with the empty message, and ``pairs`` the times of pairs of messages.

    The least time of a message is subtracted, because other work makes messages longer, and calls would seem short. The
    order of times is preserved, also if a call takes less time than the message.
    """
    message = min(pairs) / 2
    return [[max(time - message, _LEAST_SHARE * time) for time in of] for of in times]


def _turned(count: int, turn: int) -> list[int]:
    order = [(at + turn) % count for at in range(count)]
    return order if turn % 2 == 0 else order[::-1]


def is_idle(mpi: Any, world: Any) -> bool:
    """Returns whether each rank has a core, and no node a load above `_BUSY` a core; collective on MPI's world."""
    cores = os.cpu_count() or 1
    here = next(ranks for ranks in nodes(mpi, world) if world.rank in ranks)
    own = len(here) <= cores and _load() <= _BUSY * cores
    return bool(world.allreduce(int(own), op=mpi.MIN))


def _load() -> float:
    """Returns the load average of this host, from its own ``/proc``, as hosts of a lab have."""
    try:
        return float(Path("/proc/loadavg").read_text().split()[0])
    except OSError:
        return os.getloadavg()[0]
