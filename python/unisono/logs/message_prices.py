"""Fits the prices of an endpoint machine, such as alpha and beta, to measured times of known algorithms.

In the models of endpoint machines, times are piecewise linear in the prices, without a constant term. The fitted prices
are not negative and minimise the mean error of the logarithms of times. Long messages may have other prices than short
ones (``[[protocols]]``), and messages within a node other prices than those between nodes (``[[levels]]``).
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unisono.logs.library_calibration import nnls

__all__ = ["BETA", "GAMMA", "MODELS", "Fit", "Form", "Times", "apart", "fit", "is_better", "slopes"]

BETA, GAMMA = "beta_ns_per_byte", "gamma_ns_per_byte"
#: The models whose prices are fitted: the key of a message's latency, and the keys of prices that all protocols share.
MODELS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "hockney": ("alpha_ns", ()),
    "pipelining-postal": ("alpha_p_ns", ("alpha_r_ns",)),
    "postal": ("alpha_ns", ()),
}
#: The lengths in bytes that are tried as the shortest message of a protocol.
_LIMITS = tuple(4**k for k in range(3, 12))
_MOST_PROTOCOLS = 2
#: The minimum number of times for each price of a machine with protocols.
_TIMES = 3
#: The factor by which a further protocol, or another model, must reduce the mean error; and the error below which
#: neither is tried, because times in logs have few digits.
_BETTER, _EXACT = 1.05, 0.01
#: The value of a price, in ns, for which slopes are computed; it is so large that times have enough digits.
_UNIT = 1000.0
#: Four numbers: the iterations of weights to choose protocols, and to fit prices; the steps of a fit; and the
#: successive steps without a smaller error after which the fit ends.
_FEW, _ROUNDS, _REFINEMENTS, _MISSES = 8, 60, 8, 2
_STEP = 0.01

#: Returns the seconds of all points on a machine.
Times = Callable[[dict[str, Any]], Sequence[float]]


@dataclass(frozen=True)
class Form:
    """A model, the shortest messages of its protocols, and whether messages within a node have their own prices."""

    model: str
    limits: tuple[int, ...] = ()
    has_nodes: bool = False

    def prices(self) -> list[tuple[int, str]]:
        """Returns the place and the key of each price.

        Place 0 is the machine, 1 and higher are its protocols, and -1 is the node.
        """
        latency, shared = MODELS[self.model]
        sides = range(len(self.limits) + 1)
        within = [(-1, key) for key in (latency, *shared, BETA)] if self.has_nodes else []
        return [(at, key) for key in (latency, BETA) for at in sides] + [(0, key) for key in (*shared, GAMMA)] + within

    def machine(self, values: Sequence[float]) -> dict[str, Any]:
        """Returns the description of a machine with these prices."""
        made: dict[str, Any] = {"name": "fitted", "kind": "endpoint", "model": self.model}
        protocols: list[dict[str, Any]] = [{"from_bytes": limit} for limit in self.limits]
        node: dict[str, Any] = {"name": "node", "size": 2}
        for (at, key), value in zip(self.prices(), values, strict=True):
            [made, *protocols, node][at][key] = float(f"{value:.6g}")
        return made | ({"protocols": protocols} if protocols else {}) | ({"levels": [node]} if self.has_nodes else {})

    def rises(self, values: Sequence[float]) -> bool:
        """Returns whether the time of a message never decreases with its length, and increases for long messages."""
        sides = len(self.limits) + 1
        lines = itertools.pairwise(zip(values[:sides], values[sides : 2 * sides], strict=True))
        steps = zip(self.limits, lines, strict=True)
        return values[2 * sides - 1] > 0 and all(a + b * at <= c + d * at for at, ((a, b), (c, d)) in steps)


@dataclass(frozen=True)
class Fit:
    """The prices of a form with the least mean error of logarithms."""

    form: Form
    values: Any
    error: float
    #: The change of each time, relative to the measured time, by one ns of each price.
    rows: Any

    def machine(self) -> dict[str, Any]:
        """Returns the description of the fitted machine."""
        return self.form.machine(self.values)


def fit(
    times: Times,
    measured: Sequence[float],
    model: str,
    *,
    has_nodes: bool = False,
    held: Mapping[str, float] | None = None,
) -> Fit:
    """Fits the prices of a model to measured seconds; ``held`` are prices of the machine that keep a value."""
    held = held or {}
    flat = Form(model, (), has_nodes)
    best = _refined(times, measured, _solved(flat, slopes(times, measured, flat), held), held)
    # If a time is a sum of messages, the slopes of single prices are exact. If it is the time of the longest of several
    # paths, it depends on all prices, so the slopes are computed at the prices of the fit without protocols.
    full, sides = Form(model, _LIMITS, has_nodes), len(_LIMITS) + 1
    same = np.repeat(best.values, [sides, sides, *(1 for _ in best.values[2:])])
    all_rows = [] if best.error <= _EXACT else [slopes(times, measured, full, at) for at in (None, same)]
    for count, rows in itertools.product(range(1, _MOST_PROTOCOLS + 1), all_rows):
        if best.error <= _EXACT or len(rows) < _TIMES * len(Form(model, _LIMITS[:count], has_nodes).prices()):
            break
        tried = []
        for cuts in itertools.combinations(range(1, sides), count):
            edges = list(itertools.pairwise([0, *cuts, sides]))
            joined = [rows[:, at + a : at + b].sum(axis=1) for at in (0, sides) for a, b in edges]
            form = Form(model, tuple(_LIMITS[cut - 1] for cut in cuts), has_nodes)
            found = _solved(form, np.column_stack([*joined, rows[:, 2 * sides :]]), held, _FEW)
            tried += [found] if form.rises(found.values) else []
        if tried:
            found = _refined(times, measured, min(tried, key=lambda one: one.error), held)
            best = found if is_better(found, best) else best
    return best


def is_better(found: Fit, than: Fit) -> bool:
    """Returns whether a fit is better than an equally simple fit, or better by a factor than a simpler fit."""
    further = len(found.form.limits) - len(than.form.limits) + (found.form.model != than.form.model)
    return max(found.error, _EXACT) * _BETTER ** max(further, 0) < max(than.error, _EXACT)


def slopes(times: Times, measured: Sequence[float], form: Form, values: Any = None) -> Any:
    """Returns the changes of times by one ns of each price, relative to the measured times.

    Without ``values``, each change is the time on a machine on which only this price is not 0.
    """
    prices = form.prices()
    if values is None:
        at, before, steps = np.zeros(len(prices)), np.zeros(len(measured)), np.full(len(prices), _UNIT)
    else:
        largest = {key: max(v for v, (_, of) in zip(values, prices, strict=True) if of == key) for _, key in prices}
        at, before = values, np.array(times(form.machine(values)))
        steps = np.array([_STEP * (v or largest[of] or 1e-3) for v, (_, of) in zip(values, prices, strict=True)])
    after = np.array([times(form.machine(at + step)) for step in np.diag(steps)])
    return ((after - before) * 1e9 / steps[:, None]).T / (np.array(measured)[:, None] * 1e9)


def apart(rows: Any) -> Any:
    """Returns two norms for each price, from which :data:`_APART` tells whether the price is determined.

    The first norm is that of the price's contribution to the times without the part that the other prices explain. The
    second norm is that of the whole contribution.
    """
    norms = np.linalg.norm(rows, axis=0)
    unit = rows / np.where(norms > 0, norms, 1)
    own = [
        np.linalg.norm(unit[:, at] - rest @ np.linalg.lstsq(rest, unit[:, at], rcond=1e-9)[0])
        for at in range(unit.shape[1])
        for rest in [np.delete(unit, at, axis=1)]
    ]
    return np.array(own) * norms, norms


def _solved(form: Form, rows: Any, held: Mapping[str, float], rounds: int = _ROUNDS) -> Fit:
    """Returns the non-negative prices whose products with the rows are close to 1, by iterated weights."""
    prices = form.prices()
    values = np.array([held.get(key, 0.0) if at >= 0 else 0.0 for at, key in prices])
    free = np.array([at < 0 or key not in held for at, key in prices])
    rest = 1 - rows @ values
    weights = np.ones(len(rows))
    for _ in range(rounds):
        values[free] = nnls(rows[:, free] * weights[:, None], rest * weights)
        off = np.maximum(rows @ values, 1e-3) - 1
        size = np.maximum(np.abs(off), 1e-9)
        # With these weights, the sum of squares becomes the sum of the errors of the logarithms.
        before, weights = weights, np.sqrt(np.abs(np.log1p(off)) / size / np.maximum(size, 0.02))
        if np.allclose(before, weights, rtol=1e-3):
            break
    return Fit(form, values, float(np.abs(np.log(np.maximum(rows @ values, 1e-3))).mean()), rows)


def _refined(times: Times, measured: Sequence[float], found: Fit, held: Mapping[str, float]) -> Fit:
    """Returns the fit with slopes at its own prices, which may differ from the slopes of single prices."""
    target = np.array(measured)

    def error(one: Fit) -> float:
        return float(np.abs(np.log(np.maximum(np.array(times(one.machine())) / target, 1e-3))).mean())

    at = best = replace(found, error=error(found))
    misses = 0
    for _ in range(_REFINEMENTS):
        at = _solved(found.form, slopes(times, measured, found.form, at.values), held)
        at = replace(at, error=error(at))
        is_less = at.error < best.error * 0.999 and at.form.rises(at.values)
        best, misses = (at, 0) if is_less else (best, misses + 1)
        # Times are piecewise linear, so a step beyond a bend may increase the error, and the next step may decrease it
        # again.
        if misses == _MISSES:
            break
    return best
