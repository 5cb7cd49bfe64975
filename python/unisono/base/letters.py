"""Assigns letters to algorithms, for maps without space for their names."""

from collections.abc import Iterable
from string import ascii_uppercase, digits

__all__ = ["letters"]

_USUAL = {"auto-gen": "A", "chain": "C", "ring": "R", "snake": "N", "star": "S", "tree": "T", "two-phase": "2"}


def letters(names: Iterable[str]) -> dict[str, str]:
    """Returns a distinct letter or digit for each name (``?`` if none is free), fixed for the wafer's algorithms."""
    wanted = sorted(set(names))
    given = {name: _USUAL[name] for name in wanted if name in _USUAL}
    for name in wanted:
        if name not in given:
            initials = [letter for letter in name.upper() if letter.isalnum()]
            free = [letter for letter in [*initials, *ascii_uppercase, *digits] if letter not in given.values()]
            given[name] = free[0] if free else "?"
    return {name: given[name] for name in wanted}
