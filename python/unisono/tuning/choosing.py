"""Chooses algorithms from measurements of a part of all points, by a Gaussian process of the logarithms of times.

The process has one value for each point, a pair of an algorithm and a cell; a cell is one size in one test. Values of
one algorithm are correlated at nearby sizes and numbers of ranks. Each collective in each setting, such as an MPI
library on a system, has its own process. The next point to measure is the point with the greatest expected improvement
over the current choice of its cell. An observation updates the mean and the covariance of all points. The choice in a
cell has the lowest expected time.

The algorithm is that of Jones, Schonlau and Welch, "Efficient global optimization of expensive black-box functions"
(1998), with one minimum for each cell. Scales are in units of natural logarithms, of bytes, ranks and seconds.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import pi
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unisono._core import InputError
from unisono.tuning.measurements import Point

__all__ = ["MOST_POINTS", "NOISE", "START", "Posterior", "Regret", "cross_validate", "explore"]

_Array = NDArray[np.float64]

#: The standard deviations of a term common to all algorithms, of an algorithm's variation over sizes and ranks, of an
#: algorithm's constant term, of a test, of an algorithm in a test, of a single point, and of a measurement. These and
#: the lengths below are rounded means of the maximum-likelihood values on PICO's measurements, for each three of its
#: four systems.
_SHARED, _VARYING, _ALWAYS, _TEST, _IN_TEST, _POINT, NOISE = 5.0, 1.0, 0.3, 0.9, 0.35, 0.1, 0.04
#: The correlation lengths: of sizes for an algorithm, of sizes for the common term, and of ranks.
_SIZES, _SHARED_SIZES, _RANKS = 8.0, 18.0, 9.0
#: The logarithm of the time in seconds that is expected before all measurements.
START = float(np.log(1e-4))
#: The largest number of points: three matrices with 8 bytes for each pair of points must fit the memory of a desktop.
MOST_POINTS = 8192


class Posterior:
    """The expected logarithms of the times of all points, and their covariances."""

    def __init__(self, points: Sequence[Point], expected: Sequence[float] | None = None) -> None:
        """Expects, before all measurements, ``expected`` seconds for each point; by default exp(:data:`START`)."""
        by_sizes = _distances(np.log([p.bytes for p in points]))
        by_ranks = _distances(np.log([p.ranks for p in points])) / _RANKS
        test, algorithm = _same([p.test for p in points]), _same([p.algorithm for p in points])
        near = _matern(by_sizes / _SIZES)
        self.mean: _Array = np.full(len(points), START) if expected is None else np.log(np.asarray(expected, float))
        self.covariance: _Array = _SHARED**2 * _matern(np.hypot(by_sizes / _SHARED_SIZES, by_ranks))
        self.covariance += _VARYING**2 * algorithm * _matern(np.hypot(by_sizes / _SIZES, by_ranks))
        self.covariance += _ALWAYS**2 * algorithm + _TEST**2 * test + _IN_TEST**2 * (algorithm & test) * near
        self.covariance[np.diag_indices_from(self.covariance)] += _POINT**2
        self.seen = np.zeros(len(points), bool)
        cells: dict[tuple[str, int], list[int]] = {}
        for at, point in enumerate(points):
            cells.setdefault((point.test, point.bytes), []).append(at)
        self.cells = [np.array(members) for members in cells.values()]

    def observe(self, at: int, value: float) -> None:
        """Updates the process with the logarithm of a measured time."""
        column = self.covariance[:, at].copy()
        variance = column[at] + NOISE**2
        self.mean += column * ((value - self.mean[at]) / variance)
        self.covariance -= np.outer(column, column / variance)
        self.seen[at] = True

    def choices(self) -> list[int]:
        """Returns the point with the lowest expected logarithm of its time in each cell."""
        return [int(cell[np.argmin(self.mean[cell])]) for cell in self.cells]

    def faster(self, at: int, other: int) -> float:
        """Returns the probability that point ``at`` has a shorter time than point ``other``."""
        own = self.covariance[at, at] + self.covariance[other, other] - 2 * self.covariance[at, other]
        return float(_cumulative((self.mean[other] - self.mean[at]) / np.sqrt(max(own, 1e-12))))

    def best_next(self) -> int:
        """Returns the unmeasured point with the greatest expected improvement over the choice of its cell."""
        chosen = self.choices()
        rival = np.empty(len(self.mean), int)
        for cell, best in zip(self.cells, chosen, strict=True):
            rival[cell] = best
        own = self.covariance.diagonal()
        both = own + own[rival] - 2 * self.covariance[np.arange(len(rival)), rival]
        gains = _improvement(self.mean[rival] - self.mean, np.sqrt(np.maximum(both, 1e-12)))
        for cell, best in zip(self.cells, chosen, strict=True):
            # A measurement of the choice itself gets the gain of its strongest rival.
            gains[best] = gains[cell[cell != best]].max(initial=0.0)
        gains *= np.sqrt(np.maximum(own, 0) / (np.maximum(own, 0) + NOISE**2))
        return int(np.argmax(np.where(self.seen, -1.0, gains)))


def explore(belief: Posterior, count: int) -> Iterator[int]:
    """Yields ``count`` points to measure; each must be observed before the next is requested.

    Raises:
        InputError: there are too many points.

    """
    if len(belief.mean) > MOST_POINTS:
        raise InputError(f"{len(belief.mean)} points of one collective; at most {MOST_POINTS} are compared")
    for _ in range(count):
        yield belief.best_next()


def _distances(values: _Array) -> _Array:
    return np.asarray(np.abs(values[:, None] - values))


def _same(values: Sequence[Any]) -> NDArray[np.bool_]:
    numbers = {value: number for number, value in enumerate(dict.fromkeys(values))}
    found = np.array([numbers[value] for value in values])
    return np.asarray(found[:, None] == found)


def _matern(distance: _Array) -> _Array:
    """Returns the Matérn covariance of smoothness 3/2."""
    scaled = np.sqrt(3.0) * distance
    return np.asarray((1 + scaled) * np.exp(-scaled))


def _improvement(mean: _Array, deviation: _Array) -> _Array:
    """Returns the expectation of the positive part of a Gaussian variable."""
    z = mean / deviation
    density = np.exp(-z * z / 2) / np.sqrt(2 * pi)
    return np.asarray(deviation * (density + z * _cumulative(z)))


def _cumulative(z: _Array) -> _Array:
    """Returns the Gaussian distribution function, with an error of at most 7.5e-8 (Abramowitz and Stegun, 26.2.17)."""
    t = 1 / (1 + 0.2316419 * np.abs(z))
    series = t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
    tail = np.exp(-z * z / 2) / np.sqrt(2 * pi) * series
    return np.asarray(np.where(z > 0, 1 - tail, tail))


@dataclass(frozen=True)
class Regret:
    """The regret of the choices in the cells of one system: log(chosen time / best time) of each cell."""

    system: str
    points: int
    measured: int
    #: The regret of each cell, judged by iterations that the choice did not use, and whether a point of the cell was
    #: measured.
    cells: list[tuple[float, bool]]
    #: The regret of each cell if all points are measured, which is due to noise alone.
    noise: list[float]


def cross_validate(
    points: Sequence[Point], share: float, progress: Callable[[int, int], None] = lambda *_: None
) -> list[Regret]:
    """Returns each system's regret if the fraction ``share`` of its points is measured.

    Only cells of at least three algorithms count. The choice uses half of the iterations; the other half judges it.
    """
    if not 0 < share <= 1:
        raise InputError(f"the share is {share:g}; accepted are numbers above 0, at most 1")
    counts = Counter((p.test, p.bytes) for p in points)
    points = [p for p in points if counts[p.test, p.bytes] >= 3]
    if not points:
        raise InputError("no cell, which is one size in one test, has three algorithms to choose from")
    found: dict[str, Regret] = {}
    groups: dict[tuple[str, ...], list[Point]] = {}
    for point in points:
        groups.setdefault((point.system, point.collective, *point.setting), []).append(point)
    done = 0
    for group in groups.values():
        if len(group) > MOST_POINTS:
            raise InputError(
                f"{len(group)} points of one collective in one setting; at most {MOST_POINTS} are compared"
            )
        _judge(group, share, found)
        done += len(group)
        progress(done, len(points))
    return [found[system] for system in sorted(found)]


def _judge(points: list[Point], share: float, found: dict[str, Regret]) -> None:
    """Adds the regret of each cell, one size in one test, of a collective in one setting."""
    seen = np.log([p.seconds for p in points])
    unseen = np.log([p.again for p in points])
    belief = Posterior(points)
    measured = int(share * len(points))
    for at in explore(belief, measured):
        belief.observe(at, float(seen[at]))
    name = points[0].system
    old = found.get(name, Regret(name, 0, 0, [], []))
    found[name] = regret = Regret(name, old.points + len(points), old.measured + measured, old.cells, old.noise)
    for cell, choice in zip(belief.cells, belief.choices(), strict=True):
        best = unseen[cell].min()
        regret.cells.append((float(unseen[choice] - best), bool(belief.seen[cell].any())))
        regret.noise.append(float(unseen[cell[np.argmin(seen[cell])]] - best))
