"""Values on the command line that are more than a word: roots, parameters, lists of lengths and of shapes."""

import re
from typing import Any

import click

from unisono import parse_shape

_RANGE = re.compile(r"(.+?)\.\.(.+)")


class Root(click.ParamType[int | tuple[int, int]]):
    """An index in row-major order, or ``row,col``."""

    name = "INDEX|ROW,COL"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | tuple[int, int]:
        """The index, or row and column."""
        if not isinstance(value, str):
            return value  # type: ignore[no-any-return]
        parts = value.split(",")
        if len(parts) > 2 or not all(part.strip().isascii() and part.strip().isdigit() for part in parts):
            self.fail(f"'{value}' is not a root; accepted are an index from 0 on, or row,col as in 3,4", param, ctx)
        numbers = [_whole(self, part, param, ctx) for part in parts]
        return numbers[0] if len(numbers) == 1 else (numbers[0], numbers[1])


class Param(click.ParamType[tuple[str, str]]):
    """A parameter of an algorithm: ``name=value``."""

    name = "NAME=VALUE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """Name and value."""
        if isinstance(value, tuple):
            return value
        name, equals, text = value.partition("=")
        if not (name and equals and text):
            self.fail(f"'{value}' is not a parameter; accepted is NAME=VALUE, as in group=8", param, ctx)
        return name, text


class Lengths(click.ParamType[list[int]]):
    """``1,2,4`` or ``1..32768``: from the first by doubling up to the last."""

    name = "LIST"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[int]:
        """The numbers of elements, in the order given."""
        if isinstance(value, list):
            return value
        counts: list[int] = []
        for item in value.split(","):
            ends = _RANGE.fullmatch(item)
            if ends is None:
                counts.append(_whole(self, item, param, ctx))
                continue
            first, last = (_whole(self, end, param, ctx) for end in ends.groups())
            if not 0 < first <= last:
                self.fail(f"'{item}' is not a range; accepted is FIRST..LAST with 0 < FIRST <= LAST", param, ctx)
            while first <= last:
                counts.append(first)
                first *= 2
        return counts


class Shapes(click.ParamType[list[tuple[int, ...]]]):
    """``4,8,16``, ``4x4,8x8`` or ``4x4..512x512``: from the first by doubling every side up to the last."""

    name = "LIST"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[tuple[int, ...]]:
        """The shapes, in the order given; what is no shape is refused by the one parser of shapes."""
        if isinstance(value, list):
            return value
        shapes: list[tuple[int, ...]] = []
        for item in value.split(","):
            ends = _RANGE.fullmatch(item)
            if ends is None:
                shapes.append(parse_shape(item))
                continue
            first, last = (parse_shape(end) for end in ends.groups())
            if len(first) != len(last) or not all(0 < a <= b for a, b in zip(first, last, strict=True)):
                self.fail(f"'{item}' is not a range; accepted is FIRST..LAST with no side shrinking", param, ctx)
            while all(a <= b for a, b in zip(first, last, strict=True)):
                shapes.append(first)
                first = tuple(2 * side for side in first)
        return shapes


class Names(click.ParamType[list[str]]):
    """``star,chain,tree``."""

    name = "LIST"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        """The names, in the order given."""
        if isinstance(value, list):
            return value
        names = [name.strip() for name in value.split(",")]
        if not all(names):
            self.fail(f"'{value}' is not a list of names; accepted is A,B,C", param, ctx)
        return names


def _whole(kind: click.ParamType[Any], text: str, param: click.Parameter | None, ctx: click.Context | None) -> int:
    digits = text.strip()
    # Python reads at most 4300 digits, and no size has more than 19.
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 19):
        kind.fail(f"'{text}' is not a whole number from 0 on (at most 19 digits)", param, ctx)
    return int(digits)
