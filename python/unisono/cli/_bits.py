"""Options about the bits of results, and the verdict on a property that is required."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from unisono import InputError
from unisono.base.reports import RequiredBits
from unisono.cli._output import print_lines

_Command = TypeVar("_Command", bound=Callable[..., Any])

#: The properties of the bits of results, in words.
SAME_BITS = {
    "ranks": "same bits on all ranks",
    "place": "same bits at any place",
    "size": "same bits for any size",
    "ranks-count": "same bits for any size and number of ranks",
}

contributors_option = click.option(
    "--contributors",
    type=click.IntRange(1, 1 << 20),
    metavar="N",
    help="With ranks-count: the number of logical contributors, a multiple of the ranks; each rank holds an equal "
    "share.",
)


def check_contributors(option: str, bits: str | None, contributors: int | None) -> None:
    """Refuses a number of contributors without ``ranks-count``, and ``ranks-count`` without the number.

    Raises:
        InputError: ``ranks-count`` or the number is given alone.

    """
    if bits == "ranks-count" and contributors is None:
        raise InputError(f"{option} ranks-count is of a number of contributors; state it with --contributors N")
    if bits != "ranks-count" and contributors is not None:
        raise InputError(f"--contributors is for {option} ranks-count; drop it, or ask for that property")


def verdict(
    require: str | None, held: Sequence[str], reason: str | None, left: Sequence[str] = ()
) -> RequiredBits | None:
    """Returns the verdict on a required property, with the reason if it does not hold; None if no property is required.

    ``left`` lists the calls left to the MPI library, whose bits are unknown.
    """
    if require is None:
        return None
    holds = require in held
    why = None if holds else reason or f"the schedule does not have '{require}'"
    return {"bits": require, "holds": holds, "reason": why, "left_to_library": [*left]}


def bits_text(held: Sequence[str], unlike: str | None) -> str:
    """Formats the properties of the bits that hold, and the reason why others do not."""
    names = {"ranks": "on all ranks", "place": "at each place", "size": "at each size"}
    words = [names[name] for name in held]
    text = " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]])) or "no"
    return text if unlike is None else f"{text}; {unlike}"


def print_verdict(required: RequiredBits | None) -> None:
    """Prints the reason why a required property does not hold, or the calls for which it is unknown."""
    if required is None:
        return
    option = f"--require {required['bits']}"
    if not required["holds"]:
        print_lines(f"refused: {option}: {required['reason']}")
    elif required["left_to_library"]:
        left = "; ".join(required["left_to_library"])
        print_lines(f"{option} holds for the calls that the rows serve, and not for those of the library: {left}")
