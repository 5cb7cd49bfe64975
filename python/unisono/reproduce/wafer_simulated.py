"""Predicted and simulated points of Figures 11 to 13 of "Near-Optimal Wafer-Scale Reduce" (HPDC 2024).

The paper measured on hardware. Here schedules run on the simulated fabric, so that only the model's error makes them
differ from Eq. 1.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from unisono import Plan, UnsupportedError, plan, simulate, sweep
from unisono.base.reports import in_cycles
from unisono.reproduce.once import once

__all__ = [
    "LENGTHS",
    "MOST_WORK_FULL",
    "ROW",
    "Point",
    "cycles",
    "errors",
    "figure_11",
    "figure_12",
    "figure_13",
    "mispredictions",
    "planned",
    "point",
    "predicted_only",
    "worst_difference",
]

MACHINE = "wse2"
#: B = 1, 2, 4, ..., 4096 wavelets.
LENGTHS = tuple(2**k for k in range(13))
#: The wavelets of a vector of 1 KB, in Figs. 12 and 13c.
FIXED_LENGTH = 256
PES = tuple(2**k for k in range(2, 10))
ROW = (512,)
#: The grid that replaces the paper's grid of 512 x 512, except in Fig. 13c of a full run.
GRID = (64, 64)
REDUCES_1D = ("star", "chain", "tree", "two-phase", "auto-gen")
REDUCES_2D = (*REDUCES_1D, "snake")
#: Points of more PEs x cycles than this, which take about a second, are only predicted.
MOST_WORK = 7e7
#: The limit in a full run.
MOST_WORK_FULL = 2e9


@dataclass(frozen=True)
class Point:
    """An algorithm at a shape and length: cycles by Eq. 1, and of the simulated fabric if it ran there."""

    collective: str
    shape: tuple[int, ...]
    elements: int
    algorithm: str
    predicted: float
    simulated: int | None

    @property
    def error(self) -> float | None:
        """Returns the difference of predicted and simulated cycles, as a fraction of the simulated cycles."""
        return None if not self.simulated else self.predicted / self.simulated - 1


def planned(
    collective: str, shape: tuple[int, ...] | int, elements: int, algorithm: str, params: dict[str, str] | None
) -> Plan:
    """Returns the plan of an algorithm on the paper's machine, timed by Eq. 1."""
    return plan(collective, MACHINE, shape=shape, elements=elements, algorithm=algorithm, params=params, model="paper")


def cycles(
    collective: str, shapes: Sequence[tuple[int, ...]], lengths: Sequence[int], algorithms: Sequence[str]
) -> list[dict[str, float]]:
    """Returns for every shape and length the cycles of each algorithm by Eq. 1."""
    points = sweep(
        collective, MACHINE, shapes=shapes, elements=lengths, algorithms=[*algorithms], baseline="chain", model="paper"
    )
    return [point["cycles_by_algorithm"] or {} for point in points]


@once
def point(
    collective: str, shape: tuple[int, ...], elements: int, algorithm: str, most_work: float = MOST_WORK
) -> Point:
    """Plans an algorithm, and simulates the plan if PEs x cycles are at most ``most_work``.

    Raises:
        RuntimeError: the simulated result is wrong.

    """
    made = planned(collective, shape, elements, algorithm, {})
    simulated = None
    if math.prod(shape) * in_cycles(made.predicted) <= most_work:
        run = simulate(made.schedule)
        if not run.result_correct:
            raise RuntimeError(f"{algorithm} on {shape} at {elements}: {run.mismatch}")
        simulated = run.cycles
    return Point(collective, shape, elements, algorithm, in_cycles(made.predicted), simulated)


def predicted_only(collective: str, shape: tuple[int, ...], elements: int, algorithm: str) -> Point:
    """Returns a point without a simulation; the paper also only predicts the ring."""
    return point(collective, shape, elements, algorithm, most_work=-1)


def figure_11() -> dict[str, list[Point]]:
    """Returns the panels of Fig. 11: a row of 512 PEs and B = 1, 2, ..., 4096."""
    return _panels([(ROW, length) for length in LENGTHS])


def figure_12() -> dict[str, list[Point]]:
    """Returns the panels of Fig. 12: vectors of 1 KB on rows of 4, 8, ..., 512 PEs."""
    return _panels([((pes,), FIXED_LENGTH) for pes in PES])


def _panels(cases: list[tuple[tuple[int, ...], int]]) -> dict[str, list[Point]]:
    """Returns the panels of a figure of rows, for shapes with lengths."""
    return {
        "a broadcast": [point("broadcast", *case, "flood") for case in cases],
        "b reduce": [point("reduce", *case, name) for name in REDUCES_1D for case in cases],
        "c allreduce": [
            *(point("allreduce", *case, name) for name in REDUCES_1D for case in cases),
            *(predicted_only("allreduce", *case, "ring") for case in cases),
        ],
    }


def figure_13(full: bool) -> dict[str, list[Point]]:
    """Returns the panels of Fig. 13 on 64 x 64 PEs; ``full`` adds grids up to 512 x 512 for vectors of 1 KB."""
    grids = [(pes, pes) for pes in PES if full or pes <= GRID[0]]
    return {
        "a reduce": list(_of_grid("reduce")),
        "b allreduce": list(_of_grid("allreduce")),
        "c reduce": [
            point("reduce", grid, FIXED_LENGTH, name, MOST_WORK_FULL if grid > GRID else MOST_WORK)
            for name in REDUCES_2D
            for grid in grids
        ],
    }


def worst_difference(collective: str, algorithm: str, expected: Callable[[int, int], float]) -> tuple[float, int, int]:
    """Returns the largest absolute difference from a closed form, in cycles, with its P and B.

    The points are P = 4, 8, ..., 512 and B = 1, 2, ..., 4096.
    """
    return max(
        (abs(_cycles(point(collective, (pes,), length, algorithm)) - expected(pes, length)), pes, length)
        for pes in PES
        for length in LENGTHS
    )


def errors(panel: str) -> dict[str, list[float]]:
    """Returns by algorithm the absolute errors of Eq. 1 at a panel's points, as fractions of the simulated cycles."""
    points = {"11b": lambda: figure_11()["b reduce"], "12b": lambda: figure_12()["b reduce"]}[panel]()
    found: dict[str, list[float]] = {}
    for at in points:
        if at.error is not None:
            found.setdefault(at.algorithm, []).append(abs(at.error))
    return found


def mispredictions() -> list[tuple[int, int, str, str]]:
    """Returns pairs of patterns of Fig. 11b that Eq. 1 orders wrongly, the most lost cycles first.

    A pair has the lost cycles, B, the chosen and the better pattern.
    """
    lost = []
    for length in LENGTHS:
        points = [point("reduce", ROW, length, name) for name in REDUCES_1D]
        ran = [at for at in points if at.simulated is not None]
        for chosen in ran:
            for other in ran:
                if chosen.predicted < other.predicted and _cycles(chosen) > _cycles(other):
                    lost.append((_cycles(chosen) - _cycles(other), length, chosen.algorithm, other.algorithm))
    return sorted(lost, reverse=True)


def _cycles(at: Point) -> int:
    if at.simulated is None:
        raise RuntimeError(f"{at.algorithm} at {at.elements} was not run")
    return at.simulated


def _of_grid(collective: str) -> Iterator[Point]:
    for name in REDUCES_2D:
        for length in LENGTHS:
            try:
                yield point(collective, GRID, length, name)
            except UnsupportedError:
                yield predicted_only(collective, GRID, length, name)
