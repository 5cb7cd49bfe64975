"""Adds logical contributors in an order that does not depend on the number of ranks."""

from collections.abc import Callable, Sequence
from operator import add
from typing import TypeVar

from unisono._core import InputError

__all__ = ["add_contributors"]

_Value = TypeVar("_Value")


def add_contributors(parts: Sequence[_Value], combine: Callable[[_Value, _Value], _Value] = add) -> _Value:
    """Returns the sum of contributors, in the order of the property ``ranks-count``.

    Neighbors are added in groups. The size of a group is the least prime factor of the number of contributors. The sums
    of the groups are then added in the same way. In a group, pairs of neighbors are added; a last contributor without a
    partner is added in the next round. ``combine`` adds two parts, such as arrays of one shape and type, without a
    change of type.

    >>> import unisono as un
    >>> un.add_contributors(["a", "b", "c", "d"], lambda a, b: f"({a}+{b})")
    '((a+b)+(c+d))'

    Raises:
        InputError: there is no part.

    """
    sums = list(parts)
    if not sums:
        raise InputError("there are no contributors; give at least one")
    while len(sums) > 1:
        size = next((n for n in range(2, len(sums)) if len(sums) % n == 0), len(sums))
        sums = [_in_pairs(sums[at : at + size], combine) for at in range(0, len(sums), size)]
    return sums[0]


def _in_pairs(group: list[_Value], combine: Callable[[_Value, _Value], _Value]) -> _Value:
    """Adds pairs of neighbors until one sum remains."""
    while len(group) > 1:
        odd = group[len(group) // 2 * 2 :]
        group = [combine(a, b) for a, b in zip(group[::2], group[1::2], strict=False)] + odd
    return group[0]
