"""Numbers for the nodes of a list of cables that has names, as lists of sites have.

The first two words of a line are its nodes. A network's accelerators have the first numbers. The user states the names
of accelerators by shell patterns: ``host*,gpu[0-9]``. Among accelerators, and among switches, names are in the order of
their words and numbers: ``host2`` precedes ``host10``.
"""

import re
from fnmatch import fnmatchcase
from typing import NamedTuple

from unisono._core import InputError
from unisono.base.messages import shown

__all__ = ["NamedNodes", "named_nodes"]


class NamedNodes(NamedTuple):
    """The nodes of a list of cables: accelerators, then switches."""

    names: list[str]
    accelerators: int


def named_nodes(text: str, patterns: str | None) -> NamedNodes | None:
    """Returns the nodes of a list of cables; None if its nodes have numbers.

    Raises:
        InputError: some nodes have names and others numbers, or no pattern states which names are accelerators.

    """
    ends = [
        (number, word)
        for number, line in enumerate(text.splitlines(), 1)
        for word in line.partition("#")[0].split()[:2]
    ]
    names = list(dict.fromkeys(word for _, word in ends if word[:1].isalpha()))
    if not names:
        if patterns is not None:
            raise InputError(
                f"--accelerators is {shown(patterns)}, and the nodes of the list have numbers; accepted is a number: "
                "the nodes below it are accelerators"
            )
        return None
    other = next(((number, word) for number, word in ends if not word[:1].isalpha()), None)
    if other is not None:
        number, word = other
        raise InputError(
            f"line {number} of the cables has node {shown(word)}, and other lines have names such as "
            f"{shown(names[0])}; accepted are names that begin with a letter, or numbers, for all nodes"
        )
    if patterns is None:
        raise InputError(
            f"the nodes of the list have names, such as {shown(names[0])}; state which are accelerators by patterns, "
            "as in --accelerators 'host*', or '*' for all"
        )
    wanted = [pattern.strip() for pattern in patterns.split(",")]
    chosen = [name for name in names if any(fnmatchcase(name, pattern) for pattern in wanted)]
    if not chosen:
        listed = ", ".join(map(shown, names[:4])) + (", ..." if len(names) > 4 else "")
        raise InputError(f"no node has a name as {shown(patterns)}; the list has {listed}")
    rest = set(names) - set(chosen)
    return NamedNodes([*sorted(chosen, key=_natural), *sorted(rest, key=_natural)], len(chosen))


def _natural(name: str) -> list[tuple[int, str]]:
    """Returns a key that orders numbers in names by value."""
    return [(int(part), "") if part.isascii() and part.isdigit() else (-1, part) for part in re.split("([0-9]+)", name)]
