"""Times of collectives under ``mpiexec``: planned schedules beside the library's own, turn by turn."""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from unisono.mpi.collectives import Array, Collectives, buffers

__all__ = ["Contest", "Timing", "checksum", "contest"]


@dataclass
class Timing:
    """One contestant at one size: of each round the median over its repetitions of the slowest rank's time, seconds."""

    rounds: list[float]
    #: Checksum of the result's bits on this rank; the order of additions shows in it.
    bits: str
    #: Calls made, and how many of them a plan served.
    calls: int
    served: int

    @property
    def seconds(self) -> float:
        """The median over rounds."""
        return median(self.rounds)


@dataclass
class Contest:
    """Contestants at one size, in the order given."""

    elements: int
    timings: list[Timing]

    def won(self, at: int, other: int = 0) -> int:
        """Rounds in which one contestant was faster than another."""
        pairs = zip(self.timings[at].rounds, self.timings[other].rounds, strict=True)
        return sum(mine < theirs for mine, theirs in pairs)


def checksum(output: Array) -> str:
    """A few letters for the bits of a result."""
    return f"{zlib.crc32(output.tobytes()):08x}"


def contest(
    mpi: Any,
    comm: Any,
    contestants: Sequence[Collectives],
    collective: str,
    elements: int,
    rounds: int = 6,
    seconds: float = 0.02,
) -> Contest:
    """Times contestants in interleaved rounds of a fixed duration each; all ranks of ``comm`` call it.

    A round of a contestant begins with a barrier; the time of a call is the slowest rank's. Their order turns from
    round to round, so that none always runs after the same other.
    """
    calls: list[Callable[[], None]] = []
    outputs = []
    for contestant in contestants:
        send, recv = buffers(collective, elements, comm.size, comm.rank)
        calls.append(contestant.caller(collective, send, recv))
        outputs.append(send if collective == "broadcast" else recv)
    before = [contestant.served for contestant in contestants]
    made = [0] * len(calls)
    repeats = []
    for at, call in enumerate(calls):
        # First calls connect and allocate.
        for _ in range(3):
            call()
        start = mpi.Wtime()
        call()
        took = comm.allreduce(mpi.Wtime() - start, op=mpi.MAX)
        repeats.append(int(min(max(seconds / max(took, 1e-7), 3), 2000)))
        made[at] += 4
    bits = [checksum(output) for output in outputs]
    times: list[list[float]] = [[] for _ in calls]
    for turn in range(rounds):
        for at in _turned(len(calls), turn):
            call = calls[at]
            taken = np.empty(repeats[at])
            comm.Barrier()
            for again in range(repeats[at]):
                start = mpi.Wtime()
                call()
                taken[again] = mpi.Wtime() - start
            comm.Allreduce(mpi.IN_PLACE, taken, op=mpi.MAX)
            times[at].append(float(np.median(taken)))
            made[at] += repeats[at]
    served = [contestant.served - first for contestant, first in zip(contestants, before, strict=True)]
    return Contest(elements, [Timing(*row) for row in zip(times, bits, made, served, strict=True)])


def _turned(count: int, turn: int) -> list[int]:
    order = [(at + turn) % count for at in range(count)]
    return order if turn % 2 == 0 else order[::-1]
