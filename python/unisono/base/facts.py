"""Properties of collectives by name, as the extension module states them."""

from functools import cache

from unisono._core import collectives

__all__ = ["has_root", "reduces"]


@cache
def has_root(name: str) -> bool:
    """Whether one rank of the collective plays a part of its own; False of a name that is not a collective's."""
    return name in collectives() and collectives()[name]["has_root"]


@cache
def reduces(name: str) -> bool:
    """Whether the collective combines elements of different ranks; False of a name that is not a collective's."""
    return name in collectives() and collectives()[name]["reduces"]
