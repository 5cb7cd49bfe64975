"""Checks self-consistent performance guidelines.

A collective must not be slower than collectives that could replace it. A broadcast is part of an allreduce, so a
library whose broadcast is slower than its allreduce could be improved. Source: Träff, Gropp, Thakur, "Self-consistent
MPI performance guidelines", IEEE TPDS 2010.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from unisono.logs.collectives import Measured

__all__ = ["GUIDELINES", "HALVES", "TOLERANCE", "Violation", "violations"]

#: A collective, and a sequence of collectives that could replace it. All of them work on the same whole vector.
GUIDELINES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("barrier", ("allreduce",)),
    ("broadcast", ("allreduce",)),
    ("broadcast", ("scatter", "allgather")),
    ("reduce", ("allreduce",)),
    ("allgather", ("alltoall",)),
    ("allgather", ("gather", "broadcast")),
    ("scatter", ("broadcast",)),
    ("reduce-scatter", ("reduce", "scatter")),
    ("allreduce", ("reduce", "broadcast")),
    ("allreduce", ("reduce-scatter", "allgather")),
)
#: The end of the text of the guideline that compares a vector with its two halves.
HALVES = "two of half the bytes"
#: The relative difference up to which times count as equal: medians of such tests vary by a few per cent.
TOLERANCE = 0.05
#: The largest permitted ratio of the time on a number of ranks to the time on the next power of two.
_CLIFF = 1.2

#: The times of a collective in seconds, by its bytes.
Curve: TypeAlias = dict[int, float]
#: A collective, the text of a guideline, and the function from bytes to the longest permitted time in seconds.
_Law: TypeAlias = tuple[str, str, Callable[[int], float | None]]


@dataclass(frozen=True)
class Violation:
    """A measured time that breaks a guideline, and the time that the guideline permits.

    ``bytes`` is the size of the whole vector.
    """

    collective: str
    bytes: int
    ranks: int
    seconds: float
    guideline: str
    other_seconds: float
    nodes: int = 1

    @property
    def ratio(self) -> float:
        """Returns the measured time divided by the time that the guideline permits."""
        return self.seconds / self.other_seconds


def violations(points: Iterable[Measured], tolerance: float = TOLERANCE) -> tuple[list[Violation], int]:
    """Returns the guidelines that measured times break, the largest ratio first, and the number of comparisons.

    Times of other sizes are interpolated between the two nearest measured sizes, and not extrapolated. If there are
    several times at the same size, ranks and nodes, the least time is used.
    """
    measured: dict[tuple[int, int], dict[str, Curve]] = defaultdict(lambda: defaultdict(dict))
    for point in points:
        curve = measured[point.ranks, point.nodes][point.collective]
        curve[point.bytes] = min(point.seconds, curve.get(point.bytes, point.seconds))
    found: list[Violation] = []
    count = 0
    for (ranks, nodes), curves in measured.items():
        laws = [*_among_collectives(curves), *_of_halves(curves)]
        power = 1 << (ranks - 1).bit_length()
        if power != ranks and (power, nodes) in measured:
            laws += _of_ranks(curves, measured[power, nodes], power)
        for name, guideline, others in laws:
            for size, seconds in curves[name].items():
                other = others(size)
                if other is None:
                    continue
                count += 1
                if seconds > other * (1 + tolerance):
                    found.append(Violation(name, size, ranks, seconds, guideline, other, nodes))
    return sorted(found, key=lambda of: -of.ratio), count


def _among_collectives(curves: dict[str, Curve]) -> Iterable[_Law]:
    for name, parts in GUIDELINES:
        if name in curves and all(part in curves for part in parts):
            found = [curves[part] for part in parts]
            yield name, f"{name} <= {' + '.join(parts)}", partial(_sum, found)


def _of_halves(curves: dict[str, Curve]) -> Iterable[_Law]:
    for name, curve in curves.items():
        yield name, f"{name} <= {HALVES}", partial(_times, 2.0, 0.5, curve)


def _of_ranks(curves: dict[str, Curve], more: dict[str, Curve], power: int) -> Iterable[_Law]:
    for name in curves.keys() & more.keys():
        words = f"{name} <= {_CLIFF} x {name} on {power} ranks"
        yield name, words, partial(_times, _CLIFF, 1.0, more[name])


def _sum(curves: Sequence[Curve], size: int) -> float | None:
    times = [_at(curve, size) for curve in curves]
    return None if None in times else sum(time for time in times if time is not None)


def _times(factor: float, share: float, curve: Curve, size: int) -> float | None:
    seconds = _at(curve, size * share)
    return None if seconds is None else factor * seconds


def _at(curve: Curve, size: float) -> float | None:
    """Returns the time of ``size`` bytes, interpolated; None outside of the measured sizes.

    For size 0, the size of a barrier, the time of the shortest vector is returned.
    """
    if size in curve:
        return curve[int(size)]
    if size == 0:
        return curve[min(curve)]
    below = max((of for of in curve if of < size), default=None)
    above = min((of for of in curve if of > size), default=None)
    if below is None or above is None:
        return None
    share = (size - below) / (above - below)
    return curve[below] + share * (curve[above] - curve[below])
