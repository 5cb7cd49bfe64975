"""Types of values on the command line: roots, parameters, lists of lengths and of shapes."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import click
from click.shell_completion import CompletionItem

import unisono
from unisono import parse_shape
from unisono.base import names

_RANGE = re.compile(r"(.+?)\.\.(.+)")


class KnownName(click.ParamType[str]):
    """A name from a list, in any spelling, which shells complete. The command itself refuses unknown names."""

    def __init__(
        self, name: str, listed: Callable[[], Iterable[str]], spelling: Callable[[str], str], *, files: bool
    ) -> None:
        self.name = name
        self._listed, self._spelling, self._files = listed, spelling, files

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ARG002
        """Returns the name in the spelling that reports use."""
        return self._spelling(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        """Returns the names that begin with the typed text, and files if they are accepted."""
        found = [CompletionItem(name) for name in self._listed() if name.startswith(incomplete)]
        return [*found, CompletionItem(incomplete, type="file")] if self._files else found


def _as_given(value: str) -> str:
    return value


def _presets() -> list[str]:
    return [preset["name"] for preset in unisono.machine_presets()]


def _targets() -> list[str]:
    # Imported late, because only shell completion needs it.
    from unisono.planning.emission import TARGETS

    return list(TARGETS)


def _algorithms() -> list[str]:
    return [entry["name"] for entry in unisono.algorithms()]


class KnownNames(click.ParamType[list[str]]):
    """A list of names, as ``broadcast,reduce``, each in any spelling, which shells complete after the last comma."""

    def __init__(self, name: str, listed: Callable[[], Iterable[str]], spelling: Callable[[str], str]) -> None:
        self.name = name
        self._listed, self._spelling = listed, spelling

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        """Returns the names in the spelling that reports use, in the order given."""
        if isinstance(value, list):
            return value
        found = [self._spelling(name.strip()) for name in value.split(",")]
        again = next((name for at, name in enumerate(found) if name in found[:at]), None)
        if again is not None:
            self.fail(f"'{value}' names {again} twice", param, ctx)
        return found

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        """Returns lists that end with a name that begins with the text after the last comma."""
        before, comma, word = incomplete.rpartition(",")
        return [CompletionItem(before + comma + name) for name in self._listed() if name.startswith(word)]


COLLECTIVE = KnownName("COLLECTIVE", unisono.collectives, names.collective, files=False)
COLLECTIVES = KnownNames("COLLECTIVE[,COLLECTIVE...]", unisono.collectives, names.collective)
#: A collective to plan, or a file; the command distinguishes them.
FILE_OR_COLLECTIVE = KnownName("FILE|COLLECTIVE", unisono.collectives, _as_given, files=True)
MACHINE = KnownName("NAME|FILE", _presets, _as_given, files=True)
ALGORITHM = KnownName("NAME", _algorithms, names.algorithm, files=False)
DATATYPE = KnownName("NAME", unisono.dtypes, names.datatype, files=False)
#: A format of emitted code or of tuning files, or the library that reads it.
FORMAT = KnownName("FORMAT", _targets, names.format_of, files=False)
OPERATOR = KnownName("NAME", unisono.operators, names.operator, files=False)


class Root(click.ParamType[int | tuple[int, int]]):
    """An index in row-major order, or ``row,col``."""

    name = "INDEX|ROW,COL"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | tuple[int, int]:
        """Returns the index, or row and column."""
        if not isinstance(value, str):
            return value  # type: ignore[no-any-return]
        parts = value.split(",")
        if len(parts) > 2 or not all(part.strip().isascii() and part.strip().isdigit() for part in parts):
            self.fail(f"'{value}' is not a root; accepted are an index from 0 on, or row,col as in 3,4", param, ctx)
        numbers = [_whole(self, part, param, ctx) for part in parts]
        return numbers[0] if len(numbers) == 1 else (numbers[0], numbers[1])


class FailedBoards(click.ParamType[int | tuple[int, ...] | str]):
    """A number of boards, the position of a board, as ``3,4``, or the name of a part, as ``board 3,4``."""

    name = "N|ROW,COL|NAME"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | tuple[int, ...] | str:
        """Returns the number, the position in each dimension, or the name."""
        if not isinstance(value, str):
            return value  # type: ignore[no-any-return]
        if any(letter.isalpha() for letter in value):
            return value
        numbers = value.split(",")
        if len(numbers) == 1:
            # A number below 0 is refused later, like other wrong numbers of boards.
            negative = value.startswith("-")
            return -_whole(self, value[1:], param, ctx) if negative else _whole(self, value, param, ctx)
        if not all(number.strip().isdecimal() for number in numbers):
            self.fail(f"'{value}' is no board; accepted are its row and column from 0 on, as in 3,4", param, ctx)
        return tuple(_whole(self, number, param, ctx) for number in numbers)


class Share(click.ParamType[tuple[str, float]]):
    """A cable with a fraction of its rate: ``A-B=0.2``. The network checks both values."""

    name = "A-B=SHARE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, float]:
        """Returns the name of the cable and the fraction of its rate that is left."""
        if isinstance(value, tuple):
            return value
        name, _, share = value.partition("=")
        if not re.fullmatch(r"\d{0,9}\.?\d{1,9}", share, re.ASCII):
            self.fail(
                f"'{value}' is no cable with a share of its rate; accepted is A-B=SHARE, as in 0-8=0.2", param, ctx
            )
        return name, float(share)


class Param(click.ParamType[tuple[str, str]]):
    """A parameter of an algorithm: ``name=value``."""

    name = "NAME=VALUE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """Returns name and value."""
        if isinstance(value, tuple):
            return value
        name, equals, text = value.partition("=")
        if not (name and equals and text):
            self.fail(f"'{value}' is not a parameter; accepted is NAME=VALUE, as in group=8", param, ctx)
        return name, text


class Lengths(click.ParamType[list[int]]):
    """Numbers of elements: a list ``1,2,4``, or ``1..32768`` for the first, its doublings, and the last."""

    name = "LIST"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[int]:
        """Returns the numbers of elements, in the order given."""
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
            while first < last:
                counts.append(first)
                first *= 2
            counts.append(last)
        return counts


class Shapes(click.ParamType[list[tuple[int, ...]]]):
    """Shapes: ``4,8,16``, ``4x4,8x8``, or ``4x4..512x512`` for the first, its doublings, and the last."""

    name = "LIST"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[tuple[int, ...]]:
        """Returns the shapes, in the order given; `parse_shape` refuses other texts."""
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
            while first != last and all(a <= b for a, b in zip(first, last, strict=True)):
                shapes.append(first)
                first = tuple(2 * side for side in first)
            shapes.append(last)
        return shapes


class Nanoseconds(click.ParamType[int | float]):
    """A time in nanoseconds, whole or with up to three decimals."""

    name = "N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | float:
        """Returns the number; integers stay integers, because they may be too large for a float."""
        if isinstance(value, int | float):
            return value
        text = str(value).strip()
        if re.fullmatch(r"-?[0-9]{1,19}", text):
            return int(text)
        if not re.fullmatch(r"[0-9]{1,12}\.[0-9]{1,3}", text):
            self.fail(f"'{text}' is not a time in ns; accepted are numbers as 6 or 0.08, to a picosecond", param, ctx)
        return float(text)


class Nodes(click.ParamType[list[int]]):
    """Node numbers of a machine: ``0,2,5..7``, with both ends of a range."""

    name = "nodes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[int]:
        """Returns a list of node numbers."""
        if isinstance(value, list):
            return value
        nodes: list[int] = []
        for part in str(value).split(","):
            first, _, last = part.partition("..")
            begin = _whole(self, first, param, ctx)
            end = _whole(self, last, param, ctx) if last else begin
            if end < begin or end - begin >= 1 << 22:
                self.fail(f"'{part}' is no range of nodes", param, ctx)
            nodes.extend(range(begin, end + 1))
        return nodes


class Shard(click.ParamType[tuple[int, int]]):
    """A shard of a study: ``2/8`` is the second of eight."""

    name = "I/N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        """Returns the index of the shard, from 1 on, and the number of shards."""
        if isinstance(value, tuple):
            return value
        first, slash, last = value.partition("/")
        if not slash:
            self.fail(f"'{value}' is not a shard; accepted is I/N, as in 2/8", param, ctx)
        shard = _whole(self, first, param, ctx), _whole(self, last, param, ctx)
        if not 1 <= shard[0] <= shard[1]:
            self.fail(f"'{value}' is not a shard; accepted is I/N with I from 1 to N", param, ctx)
        return shard


class Names(click.ParamType[list[str]]):
    """A list of names: ``star,chain,tree``."""

    name = "LIST"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        """Returns the names, in the order given."""
        if isinstance(value, list):
            return value
        names = [name.strip() for name in value.split(",")]
        if not all(names):
            self.fail(f"'{value}' is not a list of names; accepted is A,B,C", param, ctx)
        return names


@dataclass(frozen=True)
class TracedPes:
    """The PEs of a trace: an even sample of ``sampled`` PEs, the PEs in ``listed``, or all."""

    sampled: int | None = None
    listed: tuple[range, ...] = ()

    def of(self, count: int) -> Sequence[int]:
        """Returns the indices of the PEs on a machine of ``count`` PEs; ranges are cut before they are expanded."""
        if self.sampled is not None:
            # Imported late, because commands that plan do not need NumPy.
            from unisono.simulation.traces import sample

            return sample(count, self.sampled)
        if not self.listed:
            return range(count)
        # One PE beyond the machine is kept, so that a range that exceeds the machine is refused.
        ends = [(part.start, max(part.start + 1, min(part.stop, count + 1))) for part in self.listed]
        return [pe for first, end in ends for pe in range(first, end)]


class TracePes(click.ParamType[TracedPes]):
    """A choice of PEs for a trace: ``all``, ``64`` (an even sample) or ``0,5,64..127``."""

    name = "all|N|LIST"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> TracedPes:
        """Returns the choice as a :class:`TracedPes`."""
        if isinstance(value, TracedPes):
            return value
        if value == "all":
            return TracedPes()
        if "," not in value and ".." not in value:
            size = _whole(self, value, param, ctx)
            if size == 0:
                self.fail("a trace of 0 PEs is none; accepted are all, a number from 1 on, or a list", param, ctx)
            return TracedPes(sampled=size)
        parts = []
        for item in value.split(","):
            ends = _RANGE.fullmatch(item)
            first, last = (_whole(self, end, param, ctx) for end in (ends.groups() if ends else (item, item)))
            if not first <= last:
                self.fail(f"'{item}' is not a range; accepted is FIRST..LAST with FIRST <= LAST", param, ctx)
            parts.append(range(first, last + 1))
        return TracedPes(listed=tuple(parts))


def _whole(kind: click.ParamType[Any], text: str, param: click.Parameter | None, ctx: click.Context | None) -> int:
    digits = text.strip()
    # Python converts at most 4300 digits, and no size has more than 19.
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 19):
        kind.fail(f"'{text}' is not a whole number from 0 on (at most 19 digits)", param, ctx)
    return int(digits)
