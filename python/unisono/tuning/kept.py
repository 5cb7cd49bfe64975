"""Keeps contests in a file of points, so that a tuning that was stopped continues with the contests that it lacks.

A contest is a point of :class:`unisono.base.studies.KeptPoints`. Its key contains all known properties that determine
its times: the algorithms of its contestants with their parameters or forced variables, the machine that proposed them,
collective, size, ranks, rounds, the MPI library with its version, and how its ranks wait. The nodes are not in the key,
because a batch job continues on other nodes. Rank 0 of MPI's world has the file; it is the first rank of every group.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypedDict

from unisono.base.studies import KeptPoints, key_of
from unisono.tuning.measuring import Contest, Contestant, Timing, contest

__all__ = ["Asked", "Contests", "KeptTiming"]


class KeptTiming(TypedDict):
    """The fields of a :class:`Timing` in a file of points."""

    rounds: list[float]
    bits: str
    calls: int
    served: int


class Asked(NamedTuple):
    """The parts of a contest's key that its caller has on rank 0."""

    #: The purpose of the measurement, because a choice is confirmed by a second measurement of the same contestants.
    purpose: str
    #: The largest number of ranks on a node.
    per_node: int
    #: The properties of each contestant that decide what it runs; None for the library.
    contestants: Sequence[object]


class Contests:
    """Times contests, or returns those that the file of an earlier run has."""

    def __init__(self, kept: KeptPoints | None = None, context: Sequence[object] = ()) -> None:
        """``kept`` is the file on rank 0, and None on other ranks; ``context`` has the parts that all keys share."""
        self._kept = kept
        self._context = tuple(context)
        #: The number of contests that were found in the file, on this rank.
        self.found = 0

    def time(
        self,
        mpi: Any,
        comm: Any,
        contestants: Sequence[Contestant],
        collective: str,
        elements: int,
        rounds: int,
        asked: Asked | None,
    ) -> Contest:
        """Returns the result of :func:`contest`, measured now or kept. All ranks of ``comm`` call this.

        Only the first rank needs ``asked``. A contest in which a plan did not serve its calls is not kept.

        Raises:
            InputError: the file has a value of another kind.
            OSError: the file cannot be written.

        """
        kept, key, known = self._kept, "", None
        planned: tuple[int, ...] = ()
        if kept is not None and asked is not None:
            key = key_of(contest, (*self._context, *asked, collective, comm.size, elements, rounds))
            known = kept.value(key, list[KeptTiming]) if key in kept else None
            planned = tuple(at for at, of in enumerate(asked.contestants) if of is not None)
        known, keeps, planned = comm.bcast((known, kept is not None, planned))
        if known is not None:
            self.found += 1
            return Contest(elements, [Timing(**of) for of in known])
        made = contest(mpi, comm, contestants, collective, elements, rounds)
        if keeps:
            # A plan may be missing on another rank, and the first rank must not keep times of the library as those of
            # the plan.
            own = all(made.timings[at].served == made.timings[at].calls for at in planned)
            if comm.allreduce(int(own), op=mpi.MIN) and kept is not None:
                kept.add(key, [_kept_timing(timing) for timing in made.timings])
        return made


def _kept_timing(timing: Timing) -> KeptTiming:
    return {"rounds": timing.rounds, "bits": timing.bits, "calls": timing.calls, "served": timing.served}
