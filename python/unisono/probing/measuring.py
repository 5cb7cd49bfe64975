"""Times of messages that are sent simultaneously, in the packet simulator or between the ranks of MPI."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from unisono import _core
from unisono._core import InputError
from unisono.probing.networks import Floats, Links, Pairs

__all__ = ["Measurer", "MpiMeasurer", "Simulated", "serve"]


class Measurer(Protocol):
    """A source of measured or simulated times of messages."""

    def measure(self, sets: Sequence[Pairs], bytes: int, rounds: int) -> list[Floats]:
        """Returns for each set the seconds of its messages: a row per round, a column per message."""
        ...


class Simulated:
    """The packet simulator, on a network with slow cables."""

    def __init__(
        self, links: Links, slow: Mapping[str, float] | None = None, noise: float = 0.0, seed: int = 0
    ) -> None:
        """``slow`` maps the name of a cable to the fraction of its rate that the cable has.

        ``noise`` is the mean random delay of a message, as a fraction of its time.

        Raises:
            InputError: a cable does not exist, or a fraction is not above 0 and at most 1.

        """
        self._links = links
        self._noise = noise
        self._random = np.random.default_rng(seed)
        self._slow: list[tuple[int, float]] = []
        #: Results are cached by messages and bytes, because sets with slow messages are measured again.
        self._known: dict[tuple[tuple[tuple[int, int], ...], int], tuple[Floats, Floats]] = {}
        for name, share in (slow or {}).items():
            if not 0 < share <= 1:
                raise InputError(f"cable {name} has {share} of its rate; accepted is a number above 0 and at most 1")
            self._slow += [(int(link), share) for link in links.named(name)]

    def run(self, pairs: Pairs, bytes: int) -> tuple[Floats, Floats]:
        """Returns the seconds of each message, and the packets on each link."""
        key = tuple(pairs), bytes
        if key not in self._known:
            run = _core.simulate_messages(self._links.machine, [(a, b, bytes) for a, b in pairs], self._slow)
            to = np.array([b for _, b in pairs], dtype=np.int64)
            packets = np.asarray(run.metrics["link_packets"][0], dtype=np.float64)
            self._known[key] = np.asarray(run.finish)[to], packets
        return self._known[key]

    def measure(self, sets: Sequence[Pairs], bytes: int, rounds: int) -> list[Floats]:
        """Returns the simulated seconds; rounds differ by the noise only."""
        found = []
        for pairs in sets:
            seconds, _ = self.run(pairs, bytes)
            # The noise is positive: load on a real computer never shortens messages.
            noise = self._random.exponential(self._noise, (rounds, len(pairs))) if self._noise else 0.0
            found.append(np.broadcast_to(seconds, (rounds, len(pairs))) * (1 + noise))
        return found


class MpiMeasurer:
    """Measures between the ranks of MPI's world; ranks except 0 call :func:`serve`."""

    def __init__(self, mpi: Any) -> None:
        self._mpi = mpi

    def measure(self, sets: Sequence[Pairs], bytes: int, rounds: int) -> list[Floats]:
        """Returns the seconds from the barrier before a set to the end of each receive, by the receiver's clock."""
        self._mpi.COMM_WORLD.bcast((list(sets), bytes, rounds))
        return _timed(self._mpi, sets, bytes, rounds)

    def end(self) -> None:
        """Lets :func:`serve` return on all other ranks."""
        self._mpi.COMM_WORLD.bcast(None)


def serve(mpi: Any) -> None:
    """Takes part in the measurements that rank 0 starts, until rank 0 calls ``MpiMeasurer.end``."""
    while (asked := mpi.COMM_WORLD.bcast(None)) is not None:
        _timed(mpi, *asked)


def _timed(mpi: Any, sets: Sequence[Pairs], bytes: int, rounds: int) -> list[Floats]:
    world = mpi.COMM_WORLD
    out, into = np.zeros(bytes, dtype=np.uint8), np.zeros(bytes, dtype=np.uint8)
    own = np.zeros((rounds + 1, len(sets)))
    # Rounds are the outer loop, so that a disturbance of some seconds does not affect all rounds of a set.
    for turn in range(rounds + 1):
        for at, pairs in enumerate(sets):
            sends = [b for a, b in pairs if a == world.rank]
            receives = [a for a, b in pairs if b == world.rank]
            requests = [world.Irecv(into, a, tag=at % 1000) for a in receives]
            world.Barrier()
            start = mpi.Wtime()
            sent = [world.Isend(out, b, tag=at % 1000) for b in sends]
            mpi.Request.Waitall(requests)
            own[turn, at] = mpi.Wtime() - start
            mpi.Request.Waitall(sent)
            # No message of the next set begins before all messages of this set have ended.
            world.Barrier()
    gathered = np.zeros((world.size, *own.shape))
    world.Gather(own, gathered if world.rank == 0 else None)
    # The first round is dropped, because ranks connect in it.
    return [
        gathered[[b for _, b in pairs], 1:, at].T.copy() if world.rank == 0 else np.zeros((rounds, len(pairs)))
        for at, pairs in enumerate(sets)
    ]
