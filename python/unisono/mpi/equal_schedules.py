"""Finds algorithms that make equal schedules under different names, such as recursive doubling and multiplying by 2."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from unisono._core import InputError, UnsupportedError, algorithms
from unisono.planning.plans import plan

__all__ = ["other_names"]

#: The maximum number of ranks on which schedules are compared. With more ranks, comparisons take long, and few
#: schedules are equal.
MOST_RANKS = 64
#: The largest vector in bytes at which schedules are compared; longer vectors only repeat segments.
_MOST_BYTES = 1 << 20
#: The beginnings of lines of a schedule that are neither streams nor instructions.
_ABOUT = ("origin ", "phases ")
_PHASE = re.compile(r"^(\s*i\d+) p\d+", re.MULTILINE)


def other_names(row: Mapping[str, Any]) -> list[str]:
    """Returns the algorithms that, at default parameters, make the schedules of a table row.

    The schedules are compared at the least and the greatest size of the row, both cut to `_MOST_BYTES`. The list is
    empty for rows of the library and of more than :data:`MOST_RANKS` ranks.
    """
    if row["algorithm"] == "library" or row["ranks"] > MOST_RANKS:
        return []
    width = 4 * row["ranks"]
    last = _MOST_BYTES if row["last_bytes"] is None else min(row["last_bytes"], _MOST_BYTES)
    lengths = {max(length // width, 1) * row["ranks"] for length in (min(row["first_bytes"], _MOST_BYTES), last)}
    params = tuple(sorted(row["params"].items()))
    own = [_text(row["collective"], row["ranks"], length, row["algorithm"], params) for length in lengths]
    if None in own:
        return []
    names = [entry["name"] for entry in algorithms(row["collective"]) if entry["name"] != row["algorithm"]]
    return [
        name
        for name in names
        if all(
            _text(row["collective"], row["ranks"], length, name, ()) == text
            for length, text in zip(lengths, own, strict=True)
        )
    ]


@lru_cache(maxsize=4096)
def _text(
    collective: str, ranks: int, elements: int, algorithm: str, params: tuple[tuple[str, str], ...]
) -> str | None:
    """Returns the streams and instructions of a schedule as text; None if the algorithm has no such schedule."""
    try:
        made = plan(collective, "archer", shape=ranks, elements=elements, algorithm=algorithm, params=dict(params))
        lines = made.schedule.to_text().split("\n")
    except (InputError, UnsupportedError):
        return None
    # Lines of the machine are dropped too, because the machine is the same for all schedules.
    return _PHASE.sub(r"\1", "\n".join(line for line in lines if not line.startswith((*_ABOUT, "|"))))
