"""Schedules of recursive multiplying: the best schedule, costs, and numbers of schedules.

A schedule is written as in "Generalisation of recursive doubling for AllReduce" (Ruefenacht, Bull, Booth; 2017):
`a8,a3,a4`, `c6m2,a2,a2,e6m2`, `m1g2a3,n1g3a2`. A stage in which a rank sends b messages of n bytes takes alpha_p + b
(alpha_r + n beta + n gamma) (Eq. 3); the costs of stages add up. All times are in the same unit, which the caller
chooses.
"""

from typing import NamedTuple

from unisono import _core
from unisono._core import InputError

__all__ = ["Best", "best", "cost", "count", "fan_out", "schedules"]


class Best(NamedTuple):
    """A schedule, and its cost in the unit of time in which the caller states alpha, beta and gamma."""

    schedule: str
    cost: float


def best(
    ranks: int,
    alpha_p: float,
    alpha_r: float,
    *,
    bytes: float = 0,
    beta: float = 0,
    gamma: float = 0,
    kind: str = "any",
) -> Best | None:
    """Returns the schedule of least cost of all kinds, or of one kind: `factored`, `split` or `merge`.

    The search is exact. The result is `None` if the kind has no schedule of ``ranks`` ranks.
    """
    found = _core.multiplying_best(ranks, _prices(alpha_p, alpha_r, bytes, beta, gamma), kind)
    return None if found is None else Best(*found)


def cost(
    schedule: str,
    ranks: int,
    alpha_p: float,
    alpha_r: float,
    *,
    bytes: float = 0,
    beta: float = 0,
    gamma: float = 0,
) -> float:
    """Returns the cost of a schedule, the sum of the costs of its stages."""
    return _core.multiplying_cost(schedule, ranks, _prices(alpha_p, alpha_r, bytes, beta, gamma))


def count(ranks: int) -> dict[str, int]:
    """Returns the number of schedules of each kind: `factored`, `split`, `merge`."""
    return _core.multiplying_count(ranks)


def schedules(ranks: int) -> list[str]:
    """Returns every schedule: factored, then split, then merge. Their number, `count`, grows fast with ``ranks``."""
    return _core.multiplying_schedules(ranks)


def fan_out(ratio: float) -> float:
    """Returns the best number of messages of a stage, as a real number, if alpha_p = ratio x alpha_r.

    This number, exp(W((ratio - 1) / e) + 1) - 1, minimizes Eq. 4. Eq. 5 as printed lacks the 1/e.
    """
    return _core.multiplying_fan_out(ratio)


def _prices(alpha_p: float, alpha_r: float, n: float, beta: float, gamma: float) -> tuple[float, float, float]:
    try:
        return float(alpha_p), float(alpha_r + n * beta), float(n * gamma)
    except (OverflowError, TypeError, ValueError):
        raise InputError("prices and bytes must be numbers that a floating-point number can hold") from None
