"""Straight lines through measured times, whose errors are relative because times span orders of magnitude."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np

__all__ = ["DISTURBED", "POOR", "Fit", "line", "outliers", "protocols"]

#: The largest residual of a regression that describes the machine.
POOR = 0.15
#: The multiple of the minimum above which a median shows that other work took the core in many rounds.
DISTURBED = 2.0
#: The relative distance from the line of the other times that makes a disturbed time an outlier.
_FAR = 0.5
#: The largest number of protocols: of short messages, of long ones, and one between.
_MOST_PROTOCOLS = 3
#: The least number of lengths that show a protocol: any two times lie on a line.
_LEAST_LENGTHS = 3


@dataclass
class Fit:
    """A straight line through measured times: ``base + slope * x``, nanoseconds."""

    base: float
    slope: float
    #: The largest relative distance of a measured time from the line; 0 if the line fits at most two times.
    residual: float

    @property
    def poor(self) -> bool:
        """Returns whether the line does not describe the measurements."""
        return not self.residual <= POOR or self.slope < 0 or self.base < 0


def outliers(xs: Sequence[float], times: Sequence[float], floors: Sequence[float]) -> list[int]:
    """Returns the indices of disturbed times far from the line of most times: at most a quarter of all.

    The line is that with the smallest sum of relative distances, which few outliers do not move; it runs through two of
    the times. ``floors`` are the minima of the times. If more than a quarter of the times are disturbed and far from
    the line, none is returned, and the residual is large.
    """
    x, t = np.asarray(xs, dtype=float), np.asarray(times, dtype=float)
    pairs = [(i, j) for i in range(len(x)) for j in range(i) if x[i] != x[j]]
    slopes = [(t[i] - t[j]) / (x[i] - x[j]) for i, j in pairs]
    distances = [np.abs(t[i] + slope * (x - x[i]) - t) / t for (i, _), slope in zip(pairs, slopes, strict=True)]
    if not distances:
        return []
    off = min(distances, key=lambda found: float(found.sum()))
    found = [at for at in range(len(t)) if off[at] > _FAR and t[at] > DISTURBED * floors[at]]
    return found if len(found) <= len(t) // 4 else []


def line(xs: Sequence[float], times: Sequence[float]) -> Fit:
    """Fits the line with the least squares of relative errors, because times span orders of magnitude."""
    x, t = np.asarray(xs, dtype=float), np.asarray(times, dtype=float)
    design = np.stack([np.ones_like(x), x], axis=1) / t[:, None]
    base, slope = np.linalg.lstsq(design, np.ones_like(t), rcond=None)[0]
    residual = float(np.max(np.abs(base + slope * x - t) / t)) if len(x) > 2 else 0.0
    return Fit(float(base), float(slope), residual)


def protocols(rows: Sequence[tuple[int, float]]) -> list[tuple[int, Fit]]:
    """Returns the protocols of messages whose times, in ascending order of the bytes, are (bytes, ns).

    A library copies a short message at once, and asks the receiver before a long one, so that latency and rate change
    at a length. Source: Kielmann, Bal, Verstoep, "Fast Measurement of LogP Parameters", 2000, whose parameters depend
    on the length. A protocol is given by its least measured length and its line, which fits three lengths or more. If
    one line is poor, up to three lines are fitted, as long as each further line halves the largest distance of a time
    from its line.
    """
    taken: list[tuple[int, Fit]] = []
    for count in range(1, _MOST_PROTOCOLS + 1):
        found = []
        for breaks in combinations(range(len(rows)), count - 1):
            parts = [rows[start:end] for start, end in pairwise((0, *breaks, len(rows)))]
            if all(len(part) >= _LEAST_LENGTHS for part in parts):
                found.append([(part[0][0], _rising(part)) for part in parts])
        best = min(found, key=_worst, default=[])
        if best and (not taken or (_worst(taken) > POOR and _worst(best) <= _worst(taken) / 2)):
            taken = best
    return taken


def _worst(found: Sequence[tuple[int, Fit]]) -> float:
    return max(fit.residual for _, fit in found)


def _rising(rows: Sequence[tuple[int, float]]) -> Fit:
    """Fits a line as :func:`line` does, but without a negative part.

    Noise tilts a line through times that hardly grow.
    """
    sizes, times = zip(*rows, strict=True)
    fit = line(sizes, times)
    if fit.slope >= 0 and fit.base >= 0:
        return fit
    inverse = 1 / np.asarray(times, dtype=float)
    level = float(inverse.sum() / (inverse @ inverse))
    return Fit(level, 0.0, float(np.max(np.abs(level * inverse - 1))))
