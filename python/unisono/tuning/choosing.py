"""Chooses algorithms from measurements of a part of all points, by a Gaussian process of the logarithms of times.

The process has one value for each point, a pair of an algorithm and a cell; a cell is one size in one test. Values at
nearby sizes and numbers of ranks are correlated: weakly within a system, more strongly within a group (a collective in
one setting, such as an MPI library), and most strongly for one algorithm. Each system has one process, so groups
compete for measurements. The next point to measure is the point with the greatest expected improvement over the current
choice of its cell. An observation updates the mean and the covariance of all points. The choice in a cell has the
lowest expected time.

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

#: The standard deviations of a term common to all points, of a group's term, of an algorithm's variation over sizes
#: and ranks, of an algorithm's constant term, of a test, of an algorithm in a test, of a single point, and of a
#: measurement. These and the lengths below are rounded means of the maximum-likelihood values on PICO's measurements,
#: for each three of its four systems; the group's term is set by hand.
_SHARED, _GROUP, _VARYING, _ALWAYS, _TEST, _IN_TEST, _POINT, NOISE = 5.0, 1.0, 1.0, 0.3, 0.9, 0.35, 0.1, 0.04
#: The correlation lengths: of sizes for an algorithm, of sizes for the common terms, and of ranks.
_SIZES, _SHARED_SIZES, _RANKS = 8.0, 18.0, 9.0
#: The logarithm of the time in seconds that is expected before all measurements.
START = float(np.log(1e-4))
#: The largest number of points: three matrices with 8 bytes for each pair of points must fit the memory of a desktop.
MOST_POINTS = 16384


class Posterior:
    """The expected logarithms of the times of all points, and their covariances."""

    def __init__(self, points: Sequence[Point], expected: Sequence[float] | None = None) -> None:
        """Creates the process before all measurements.

        Each point has ``expected`` seconds, by default exp(:data:`START`).

        Raises:
            InputError: there are too many points.

        """
        if len(points) > MOST_POINTS:
            raise InputError(f"{len(points)} points; at most {MOST_POINTS} are compared")
        self.mean: _Array = np.full(len(points), START) if expected is None else np.log(np.asarray(expected, float))
        self.seen = np.zeros(len(points), bool)
        cell = _numbers([(p.test, p.bytes) for p in points])
        self.cells = [np.flatnonzero(cell == number) for number in np.unique(cell)]
        # The members of shorter cells are repeated, so that all cells form one array.
        longest = max(map(len, self.cells), default=0)
        self._members = np.array([np.resize(members, longest) for members in self.cells])
        # Exponentials are computed for cells, of which there are fewer than points.
        firsts = [points[members[0]] for members in self.cells]
        by_sizes = _distances(np.log([p.bytes for p in firsts]))
        by_ranks = _distances(np.log([p.ranks for p in firsts])) / _RANKS
        group, test = _same([(p.collective, p.setting) for p in firsts]), _same([p.test for p in firsts])
        common = (_SHARED**2 + _GROUP**2 * group) * _matern(np.hypot(by_sizes / _SHARED_SIZES, by_ranks))
        common += _TEST**2 * test
        own = _VARYING**2 * _matern(np.hypot(by_sizes / _SIZES, by_ranks)) + _ALWAYS**2
        own += _IN_TEST**2 * test * _matern(by_sizes / _SIZES)
        self._prior: _Array = own[np.ix_(cell, cell)]
        self._prior *= _same([(p.collective, p.algorithm) for p in points])
        self._prior += common[np.ix_(cell, cell)]
        self._prior[np.diag_indices_from(self._prior)] += _POINT**2
        self._variance = self._prior.diagonal().copy()
        # An observation subtracts the outer product of a factor, which is a row here, from the covariance.
        self._factors, self._count = np.zeros(self._prior.shape), 0
        # The choice in the cell of each point, and its covariance with the point.
        self._rival, self._with_rival = np.full(len(points), -1), np.zeros(len(points))

    @property
    def covariance(self) -> _Array:
        """Returns the covariances of all pairs of points."""
        return self._prior - self._factors[: self._count].T @ self._factors[: self._count]

    def _covariances(self, at: int, others: Any = slice(None)) -> _Array:
        factors = self._factors[: self._count]
        return np.asarray(self._prior[at, others] - factors[:, at] @ factors[:, others])

    def observe(self, at: int, value: float) -> None:
        """Updates the process with the logarithm of a measured time."""
        factor = self._covariances(at)
        deviation = np.sqrt(self._variance[at] + NOISE**2)
        factor /= deviation
        self.mean += factor * ((value - self.mean[at]) / deviation)
        self._variance = np.maximum(self._variance - factor**2, 0)
        self._with_rival -= factor * factor[self._rival]
        self._factors[self._count] = factor
        self._count += 1
        self.seen[at] = True

    def choices(self) -> list[int]:
        """Returns the point with the lowest expected logarithm of its time in each cell."""
        return [int(cell[np.argmin(self.mean[cell])]) for cell in self.cells]

    def faster(self, at: int, other: int) -> float:
        """Returns the probability that point ``at`` has a shorter time than point ``other``."""
        own = self._variance[at] + self._variance[other] - 2 * self._covariances(at, other)
        return float(_cumulative((self.mean[other] - self.mean[at]) / np.sqrt(max(own, 1e-12))))

    def best_next(self) -> int:
        """Returns the unmeasured point with the greatest expected improvement over the choice of its cell."""
        chosen = self._members[np.arange(len(self.cells)), self.mean[self._members].argmin(axis=1)]
        for number in np.flatnonzero(self._rival[self._members[:, 0]] != chosen):
            cell = self.cells[number]
            self._rival[cell], self._with_rival[cell] = chosen[number], self._covariances(chosen[number], cell)
        both = self._variance + self._variance[self._rival] - 2 * self._with_rival
        gains = _improvement(self.mean[self._rival] - self.mean, np.sqrt(np.maximum(both, 1e-12)))
        # A measurement of the choice itself has the same gain as a measurement of its strongest rival.
        gains[chosen] = 0.0
        gains[chosen] = gains[self._members].max(axis=1)
        gains *= np.sqrt(self._variance / (self._variance + NOISE**2))
        return int(np.argmax(np.where(self.seen, -1.0, gains)))


def explore(belief: Posterior, count: int) -> Iterator[int]:
    """Yields ``count`` points to measure; each must be observed before the next is requested."""
    for _ in range(count):
        yield belief.best_next()


def _distances(values: _Array) -> _Array:
    return np.asarray(np.abs(values[:, None] - values))


def _numbers(values: Sequence[Any]) -> NDArray[np.int64]:
    """Returns the index of each value in the order of first occurrences."""
    numbers = {value: number for number, value in enumerate(dict.fromkeys(values))}
    return np.array([numbers[value] for value in values], np.int64)


def _same(values: Sequence[Any]) -> NDArray[np.bool_]:
    numbers = _numbers(values)
    return np.asarray(numbers[:, None] == numbers)


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

    Only cells with at least three algorithms are judged. The choice uses half of the iterations; the other half judges
    it.
    """
    if not 0 < share <= 1:
        raise InputError(f"the share is {share:g}; accepted are numbers above 0, at most 1")
    counts = Counter((p.test, p.bytes) for p in points)
    points = [p for p in points if counts[p.test, p.bytes] >= 3]
    if not points:
        raise InputError("no cell, which is one size in one test, has three algorithms to choose from")
    systems: dict[str, list[Point]] = {}
    for point in points:
        systems.setdefault(point.system, []).append(point)
    found, done = [], 0
    for system, own in sorted(systems.items()):
        found.append(_judge(system, own, int(share * len(own))))
        done += len(own)
        progress(done, len(points))
    return found


def _judge(system: str, points: list[Point], count: int) -> Regret:
    """Returns the regret of each cell if ``count`` points are measured."""
    seen = np.log([p.seconds for p in points])
    unseen = np.log([p.again for p in points])
    belief = Posterior(points)
    for at in explore(belief, count):
        belief.observe(at, float(seen[at]))
    found = Regret(system, len(points), count, [], [])
    for cell, choice in zip(belief.cells, belief.choices(), strict=True):
        best = unseen[cell].min()
        found.cells.append((float(unseen[choice] - best), bool(belief.seen[cell].any())))
        found.noise.append(float(unseen[cell[np.argmin(seen[cell])]] - best))
    return found
