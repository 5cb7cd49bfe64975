"""Properties of collectives by name, from the extension module."""

from functools import cache

from unisono._core import collectives

__all__ = ["has_root", "reduces"]


@cache
def has_root(name: str) -> bool:
    """Returns whether one rank of the collective is its root; False if the name is not a collective's."""
    return name in collectives() and collectives()[name]["has_root"]


@cache
def reduces(name: str) -> bool:
    """Returns whether the collective combines elements of different ranks; False if the name is not a collective's."""
    return name in collectives() and collectives()[name]["reduces"]
