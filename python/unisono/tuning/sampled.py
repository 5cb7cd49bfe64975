"""Makes decision tables from a part of the measurements, by a Gaussian process for each collective.

The points of the process are all pairs of a contender (a plan, or the library) and a cell: one size on one number of
ranks. :func:`unisono.tuning.choosing.explore` chooses the points to measure. The number of rounds that a contender wins
in its cell is the number that the process expects. Below :data:`unisono.tuning.tables.SHORT` bytes a schedule is chosen
only if it and the library were measured. Measurements are not interleaved, so a varying load counts as a property of an
algorithm.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from math import exp, log, nan
from typing import Any, NamedTuple, Self

from unisono._core import InputError, Machine, Plan
from unisono.mpi.groups import wait_for
from unisono.mpi.library import together
from unisono.tuning.choosing import START, Posterior, explore
from unisono.tuning.kept import Asked, Contests
from unisono.tuning.measurements import Point
from unisono.tuning.measuring import Contest, Contestant, Timing, is_idle
from unisono.tuning.tables import (
    LIBRARY,
    MOSTLY,
    SHORT,
    Cell,
    Contender,
    Family,
    FileFor,
    check_served,
    contestants,
    described,
    families_of,
    offers,
)

__all__ = ["PointCounts", "TuningPoint", "cells_of", "expected_of", "points_of", "tune_share"]

#: A group of ranks: the number of its ranks, and the number of its ranks on a node.
_Group = tuple[int, int]


class PointCounts(NamedTuple):
    """The numbers of measured points and of all points."""

    measured: int
    points: int


class TuningPoint(NamedTuple):
    """A contender of a cell; ``lane`` is the contender's index, 0 for the library."""

    group: _Group
    elements: int
    lane: int
    plan: Plan | None

    @property
    def name(self) -> str:
        """Returns the algorithm."""
        return LIBRARY if self.plan is None else self.plan.algorithm


class _Teams:
    """The groups of ranks of one collective with their contestants, which rank 0 of MPI's world times."""

    def __init__(self, mpi: Any, world: Any, collective: str, rounds: int, contests: Contests) -> None:
        self._mpi, self._world, self._collective, self._rounds = mpi, world, collective, rounds
        self._contests = contests
        self._open = ExitStack()
        self._teams: dict[_Group, tuple[Any, list[Contestant]]] = {}

    def add(
        self,
        group: _Group,
        members: Sequence[int],
        counts: Sequence[int],
        plans: list[list[Plan]] | None,
        file: FileFor | None,
    ) -> None:
        """Loads the plans on a group. All ranks of MPI's world call this."""
        if self._world.rank in members:
            comm = self._world.Create_group(self._world.group.Incl(members))
            self._open.callback(comm.Free)
            self._teams[group] = comm, self._open.enter_context(contestants(self._mpi, comm, counts, plans, file))
        wait_for(self._world)

    def time(self, point: TuningPoint, file: FileFor | None) -> Timing:
        """Times one point; rank 0 calls this, while all other ranks call :meth:`serve`."""
        self._world.bcast((point.group, point.elements, point.lane))
        of = None if point.plan is None else described(point.plan, point.elements, file)
        found = self._timed(point.group, point.elements, point.lane, Asked("sample", point.group[1], [of]))
        assert found is not None, "rank 0 is in every group"
        return found

    def serve(self) -> None:
        """Takes part in the measurements of rank 0, until rank 0 ends them."""
        while (wanted := self._world.bcast(None)) is not None:
            self._timed(*wanted)

    def _timed(self, group: _Group, elements: int, lane: int, asked: Asked | None = None) -> Timing | None:
        found = None
        if group in self._teams:
            comm, own = self._teams[group]
            rounds, one = self._rounds, [own[lane]]
            (found,) = self._contests.time(self._mpi, comm, one, self._collective, elements, rounds, asked).timings
        wait_for(self._world)
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        if self._world.rank == 0:
            self._world.bcast(None)
        self._open.close()


def tune_share(
    mpi: Any,
    world: Any,
    collectives: Sequence[str],
    machine: Machine,
    counts: Sequence[int],
    where: tuple[dict[_Group, list[int]], list[int]],
    candidates: int,
    rounds: int,
    share: float,
    progress: Callable[[int, int], None],
    file: FileFor | None = None,
    contests: Contests | None = None,
) -> tuple[list[Family], PointCounts]:
    """Measures at most a fraction of the points of each collective. All ranks of MPI's world call this.

    The arguments are those of :func:`unisono.tuning.tables.tune`. Only rank 0 returns families with cells and numbers
    of points.
    """
    placed, limits = where
    idle = is_idle(mpi, world)
    cells: dict[tuple[str, int, int], list[Cell]] = {}
    measured = points = 0
    for done, name in enumerate(collectives):
        offered = offers(world, name, machine, counts, placed, candidates, file)
        plans = {group: offered(group[0]) for group in placed}
        tries = [
            TuningPoint(group, count, lane, plan)
            for group, of in plans.items()
            for count, here in zip(counts, of or [], strict=of is not None)
            for lane, plan in enumerate([None, *here])
        ]
        wanted = int(share * len(tries))
        together(world, partial(_check_count, share, wanted, len(tries) if world.rank == 0 else None, name))
        with _Teams(mpi, world, name, rounds, contests or Contests()) as teams:
            for group, chosen in placed.items():
                teams.add(group, chosen, counts, plans[group], file)
            if world.rank != 0:
                teams.serve()
                continue
            timings: dict[int, Timing] = {}
            belief = Posterior(points_of(name, tries), expected_of(tries))
            for at in explore(belief, wanted):
                timings[at] = teams.time(tries[at], file)
                belief.observe(at, log(timings[at].seconds))
                progress(done * wanted + len(timings), len(collectives) * wanted)
        for cell in cells_of(name, tries, belief, timings, rounds, idle):
            cells.setdefault((name, cell.ranks, cell.per_node), []).append(cell)
        measured, points = measured + len(timings), points + len(tries)
    together(world, lambda: check_served(cell for of in cells.values() for cell in of))
    families = families_of(collectives, limits, counts, cells, best=file is None) if world.rank == 0 else []
    return families, PointCounts(measured, points)


def _check_count(share: float, wanted: int, points: int | None, collective: str) -> None:
    """Refuses a ``share`` too small for two points, a schedule and the library; only rank 0 has points.

    Raises:
        InputError: the share is too small.

    """
    if points is not None and wanted < 2 <= points:
        raise InputError(
            f"--share is {share:g}, which is {wanted} of {points} points of {collective}; a schedule and the library "
            f"are 2, a share of {2 / points:.2g}"
        )


def points_of(collective: str, tries: Sequence[TuningPoint]) -> list[Point]:
    """Returns the points of the Gaussian process; each group of ranks is treated as a test."""
    return [
        Point("", (), f"{ranks},{per_node}", collective, ranks, 4 * elements, name, nan, nan)
        for (ranks, per_node), elements, name in ((t.group, t.elements, t.name) for t in tries)
    ]


def expected_of(tries: Sequence[TuningPoint]) -> list[float]:
    """Returns, for each point, the seconds that the machine's model predicts for the best schedule of the point's cell.

    Before measurements, expected times therefore grow with the bytes as in the model, and all contenders of a cell have
    the same expected time. It is the time of :data:`~unisono.tuning.choosing.START` if the cell has no prediction.
    """
    best: dict[tuple[_Group, int], float] = {}
    for t in tries:
        seconds = None if t.plan is None else t.plan.predicted["seconds"]
        if seconds:
            best[t.group, t.elements] = min(seconds, best.get((t.group, t.elements), seconds))
    return [best.get((t.group, t.elements), exp(START)) for t in tries]


def cells_of(
    collective: str,
    tries: Sequence[TuningPoint],
    belief: Posterior,
    timings: Mapping[int, Timing],
    rounds: int,
    idle: bool,
) -> list[Cell]:
    """Returns the cells in the order of the points, with expected times for points without ``timings``."""
    found = []
    for members in belief.cells:
        library = int(members[0])
        (ranks, per_node), elements, _, _ = tries[library]
        contenders = []
        for at in map(int, members):
            timing = timings.get(at)
            won = 0 if at == library else int(rounds * belief.faster(at, library) + 0.5)
            left = False
            if at != library and 4 * elements < SHORT:
                beside = timings.get(library)
                pair = None if timing is None or beside is None else Contest(elements, [beside, timing])
                won = 0 if pair is None else pair.won_all(1)
                left = not (idle and won >= MOSTLY * rounds)
            effective = timing is None or timing.served == timing.calls or at == library
            seconds = exp(float(belief.mean[at])) if timing is None else timing.seconds
            contenders.append(Contender(tries[at].plan, seconds, won, effective, left, timing is not None))
        found.append(Cell(collective, ranks, per_node, elements, rounds, contenders))
    return found
