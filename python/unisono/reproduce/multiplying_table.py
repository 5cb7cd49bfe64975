"""Table 2 of "Generalisation of recursive doubling for AllReduce" (2017), and statements on its times."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from unisono.planning.multiplying import cost
from unisono.reproduce import Finding, Listed, checks_of, multiplying_topology
from unisono.reproduce import multiplying_simulated as runs

__all__ = ["ALPHAS", "CHECKS", "ROUNDING", "TABLE_2", "Row", "predictions"]

#: Table 1: alpha_p and alpha_r in us.
ALPHAS = {"minimum": (1.34, 0.34), "median": (1.51, 0.38)}
#: The number of blocks of an allocation of nodes, and of operations of a block (section 5.2).
_BLOCKS, _OPERATIONS = 250, 10
#: The limit of uniform noise in ns with which the median for 4 processes is about the measured median.
_NOISE_NS = 450.0
#: Half a unit of the last digit of Table 1.
ROUNDING = 0.005


class Row(NamedTuple):
    """A row of Table 2: times in us, measured on ARCHER with recursive doubling and with the schedule."""

    ranks: int
    schedule: str
    blocks: int
    minimum: tuple[float, float]
    median: tuple[float, float]


TABLE_2 = [
    Row(4, "a4", 10500, (2.36, 1.87), (4.55, 3.65)),
    Row(6, "a6", 10250, (4.76, 2.87), (8.72, 5.75)),
    Row(8, "a2,a4", 10750, (4.37, 3.54), (9.38, 7.23)),
    Row(12, "a3,a4", 10000, (7.03, 4.43), (15.3, 11.6)),
    Row(16, "a4,a4", 12500, (6.85, 4.98), (19.1, 13.8)),
    Row(24, "a4,a6", 13750, (9.99, 6.91), (29.7, 25.5)),
    Row(32, "a8,a4", 10000, (12.9, 8.95), (30.9, 25.2)),
    Row(48, "a8,a6", 10000, (19.8, 13.3), (38.7, 32.1)),
    Row(64, "a8,a8", 10000, (24.2, 16.5), (47.4, 39.9)),
    Row(96, "a8,a3,a4", 12500, (25.3, 20.7), (51.7, 47.6)),
    Row(128, "a8,a4,a4", 10000, (25.1, 17.9), (101.0, 88.4)),
]


def predictions(row: Row, column: str) -> tuple[float, float]:
    """Returns the times in us of recursive doubling and of a row's schedule by Eq. 3, with a column of Table 1."""
    alphas = ALPHAS[column]
    return cost(runs.doubling(row.ranks), row.ranks, *alphas), cost(row.schedule, row.ranks, *alphas)


def _decrease(times: tuple[float, float]) -> float:
    return 100 * (1 - times[1] / times[0])


def _simulated(row: Row, _: str) -> float:
    """Returns the decrease of the simulated time in percent, on the preset with the minima of Table 1."""
    doubling, multiplying = (
        runs.time("archer", row.ranks, schedule) for schedule in (runs.doubling(row.ranks), row.schedule)
    )
    return _decrease((doubling, multiplying))


def _on_dragonfly(row: Row, _: str) -> float:
    """Returns the decrease of the simulated time in percent, on a Dragonfly."""
    return multiplying_topology.gain(row.ranks, runs.doubling(row.ranks), row.schedule)


def _over_noise(row: Row, column: str) -> float:
    """Divides the measured time of the schedule by the median of simulated times with noise."""
    times = [runs.time("archer", row.ranks, row.schedule, noise_ns=_NOISE_NS, seed=seed) for seed in range(9)]
    measured: float = getattr(row, column)[1]
    return measured / (median(times) / 1000)


def _follows(row: Row, column: str) -> bool:
    """Returns whether both predictions equal the measured times, up to the rounding of both tables."""
    times: tuple[float, float] = getattr(row, column)
    schedules = (runs.doubling(row.ranks), row.schedule)
    for time, predicted, schedule in zip(times, predictions(row, column), schedules, strict=True):
        digit = 10.0 ** (math.floor(math.log10(time)) - 2)
        if abs(time - predicted) > digit / 2 + cost(schedule, row.ranks, ROUNDING, ROUNDING):
            return False
    return True


#: Values of a row of the table, by its column `minimum` or `median`.
_SERIES: dict[str, Callable[[Row, str], float]] = {
    "allocations": lambda row, _: row.blocks / _BLOCKS,
    "decrease": lambda row, column: _decrease(getattr(row, column)),
    "dragonfly": _on_dragonfly,
    "doubling": lambda row, column: getattr(row, column)[0],
    "excess": lambda row, column: getattr(row, column)[1] / predictions(row, column)[1] - 1,
    "follows": _follows,
    "multiplying": lambda row, column: getattr(row, column)[1],
    "operations": lambda row, _: row.blocks * _OPERATIONS,
    "over-noise": _over_noise,
    "predicted-doubling": lambda row, column: predictions(row, column)[0],
    "predicted-multiplying": lambda row, column: predictions(row, column)[1],
    "simulated": _simulated,
    "spread-doubling": lambda row, _: row.median[0] / row.minimum[0],
    "spread-multiplying": lambda row, _: row.median[1] / row.minimum[1],
    "ten-less": lambda row, column: _decrease((getattr(row, column)[0] - 10, getattr(row, column)[1] - 10)),
}


def _correlation(values: Sequence[float]) -> float:
    """Returns Spearman's coefficient of values and their indices; equal values are ranked by index."""
    ranks = [sorted(range(len(values)), key=lambda at: values[at]).index(at) for at in range(len(values))]
    n = len(ranks)
    return 1 - 6 * sum((at - rank) ** 2 for at, rank in enumerate(ranks)) / (n * (n * n - 1))


def _increments(values: Sequence[float]) -> float:
    steps = [after - before for before, after in pairwise(values)]
    return max(steps) / min(steps)


_STATISTICS: dict[str, Callable[[Sequence[float]], float]] = {
    "correlation": _correlation,
    "falls": lambda values: sum(after < before for before, after in pairwise(values)),
    "increments": _increments,
    "largest": max,
    "largest-size": lambda values: max(map(abs, values)),
    "last-over-first": lambda values: values[-1] / values[0],
    "least": min,
    "sum": sum,
}


def _table(listed: Listed) -> Finding:
    """Computes statistics of series of values for some process counts; without statistics, the values themselves."""
    rows = [row for row in TABLE_2 if row.ranks in listed.get("ranks", [row.ranks])]
    found = {
        f"{series} {column}": [_SERIES[series](row, column) for row in rows]
        for series in listed["series"]
        for column in listed["columns"]
    }
    names = listed.get("statistics")
    if names is None:
        return Finding(listed["reported"], [value for values in found.values() for value in values])
    if listed.get("together", False):
        found = {"all": [value for values in found.values() for value in values]}
    ours = [_STATISTICS[name](values) for values in found.values() for name in names]
    shown = "; ".join(f"{name} " + " ".join(f"{value:.3g}" for value in values) for name, values in found.items())
    return Finding(listed["reported"], ours, remark=f"By process count: {shown}." if listed.get("shown") else "")


CHECKS = checks_of(globals())
