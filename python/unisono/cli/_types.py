"""Types of values on the command line: roots, parameters, lists of lengths and of shapes."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

import unisono
from unisono import parse_shape
from unisono.base import names
from unisono.cli._completion import Completer, algorithms, complete, machines

_T = TypeVar("_T")

_RANGE = re.compile(r"(.+?)\.\.(.+)")


class _Read(click.ParamType[_T], ABC):
    """A value that `read` makes from text. A default value that is not text is kept."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> _T:  # noqa: ARG002
        """Returns the value of a text."""
        return self.read(value) if isinstance(value, str) else value

    @abstractmethod
    def read(self, value: str) -> _T:
        """Returns the value of a text, or fails."""


class Whole(_Read[int]):
    """A whole number in ASCII digits; `int` also reads other digits and underscores."""

    name = "integer"

    def read(self, value: str) -> int:
        """Returns the number."""
        # Python converts at most 4,300 digits.
        if not re.fullmatch("[+-]?[0-9]{1,1000}", value):
            self.fail(f"'{value}' is not a valid integer.")
        return int(value)


INT = Whole()


class _Completed(_Read[_T]):
    """A value made of names in any spelling, which shells complete. The command itself reports unknown names."""

    def __init__(self, name: str, completer: Completer, spelling: Callable[[str], str] = str) -> None:
        self.name = name
        self._completer, self._spelling = completer, spelling

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Returns the completed names."""
        return self._completer(ctx, param, incomplete)


class KnownName(_Completed[str]):
    """A name from a list."""

    def read(self, value: str) -> str:
        """Returns the name in the spelling that reports use."""
        return self._spelling(value)


class KnownNames(_Completed[list[str]]):
    """A list of names, as ``broadcast,reduce``."""

    def read(self, value: str) -> list[str]:
        """Returns the names in the spelling that reports use, in the order given."""
        found = [self._spelling(name.strip()) for name in value.split(",")]
        again = next((name for at, name in enumerate(found) if name in found[:at]), None)
        if again is not None:
            self.fail(f"'{value}' names {again} twice")
        return found


def _targets() -> list[str]:
    # Imported late, because only shell completion needs it.
    from unisono.planning.emission import TARGETS

    return list(TARGETS)


COLLECTIVE = KnownName("COLLECTIVE", complete(unisono.collectives), names.collective)
COLLECTIVES = KnownNames("COLLECTIVE[,COLLECTIVE...]", complete(unisono.collectives, several=True), names.collective)
#: A collective to plan, or a file; the command distinguishes them.
FILE_OR_COLLECTIVE = KnownName("FILE|COLLECTIVE", complete(unisono.collectives, files=True))
MACHINE = KnownName("NAME|FILE", complete(machines, files=True))
ALGORITHM = KnownName("NAME", complete(algorithms), names.algorithm)
DATATYPE = KnownName("NAME", complete(unisono.dtypes), names.datatype)
#: A format of emitted code or of tuning files, or the library that reads it.
FORMAT = KnownName("FORMAT", complete(_targets), names.format_of)
OPERATOR = KnownName("NAME", complete(unisono.operators), names.operator)


class Root(_Read[int | tuple[int, int]]):
    """An index in row-major order, or ``row,col``."""

    name = "INDEX|ROW,COL"

    def read(self, value: str) -> int | tuple[int, int]:
        """Returns the index, or row and column."""
        parts = value.split(",")
        if len(parts) > 2 or not all(part.strip().isascii() and part.strip().isdigit() for part in parts):
            self.fail(f"'{value}' is not a root; accepted are an index from 0 on, or row,col as in 3,4")
        numbers = [_whole(part) for part in parts]
        return numbers[0] if len(numbers) == 1 else (numbers[0], numbers[1])


class FailedBoards(_Read[int | tuple[int, ...] | str]):
    """A number of boards, the position of a board, as ``3,4``, or the name of a part, as ``board 3,4``."""

    name = "N|ROW,COL|NAME"

    def read(self, value: str) -> int | tuple[int, ...] | str:
        """Returns the number, the position in each dimension, or the name."""
        if any(letter.isalpha() for letter in value):
            return value
        numbers = value.split(",")
        if len(numbers) == 1:
            # A number below 0 is refused later, like other wrong numbers of boards.
            negative = value.startswith("-")
            return -_whole(value[1:]) if negative else _whole(value)
        if not all(number.strip().isdecimal() for number in numbers):
            self.fail(f"'{value}' is no board; accepted are its row and column from 0 on, as in 3,4")
        return tuple(_whole(number) for number in numbers)


class Share(_Read[tuple[str, float]]):
    """A cable with a fraction of its rate: ``A-B=0.2``. The network checks both values."""

    name = "A-B=SHARE"

    def read(self, value: str) -> tuple[str, float]:
        """Returns the name of the cable and the fraction of its rate that is left."""
        name, _, share = value.partition("=")
        if not re.fullmatch(r"\d{0,9}\.?\d{1,9}", share, re.ASCII):
            self.fail(f"'{value}' is no cable with a share of its rate; accepted is A-B=SHARE, as in 0-8=0.2")
        return name, float(share)


class Param(_Read[tuple[str, str]]):
    """A parameter of an algorithm: ``name=value``."""

    name = "NAME=VALUE"

    def read(self, value: str) -> tuple[str, str]:
        """Returns name and value."""
        name, equals, text = value.partition("=")
        if not (name and equals and text):
            self.fail(f"'{value}' is not a parameter; accepted is NAME=VALUE, as in group=8")
        return name, text


class Lengths(_Read[list[int]]):
    """Numbers of elements: a list ``1,2,4``, or ``1..32768`` for the first, its doublings, and the last."""

    name = "LIST"

    def read(self, value: str) -> list[int]:
        """Returns the numbers of elements, in the order given."""
        counts: list[int] = []
        for item in value.split(","):
            ends = _RANGE.fullmatch(item)
            if ends is None:
                counts.append(_whole(item))
                continue
            first, last = (_whole(end) for end in ends.groups())
            if not 0 < first <= last:
                self.fail(f"'{item}' is not a range; accepted is FIRST..LAST with 0 < FIRST <= LAST")
            while first < last:
                counts.append(first)
                first *= 2
            counts.append(last)
        return counts


class Shapes(_Read[list[tuple[int, ...]]]):
    """Shapes: ``4,8,16``, ``4x4,8x8``, or ``4x4..512x512`` for the first, its doublings, and the last."""

    name = "LIST"

    def read(self, value: str) -> list[tuple[int, ...]]:
        """Returns the shapes, in the order given; `parse_shape` refuses other texts."""
        shapes: list[tuple[int, ...]] = []
        for item in value.split(","):
            ends = _RANGE.fullmatch(item)
            if ends is None:
                shapes.append(parse_shape(item))
                continue
            first, last = (parse_shape(end) for end in ends.groups())
            if len(first) != len(last) or not all(0 < a <= b for a, b in zip(first, last, strict=True)):
                self.fail(f"'{item}' is not a range; accepted is FIRST..LAST with no side shrinking")
            while first != last and all(a <= b for a, b in zip(first, last, strict=True)):
                shapes.append(first)
                first = tuple(2 * side for side in first)
            shapes.append(last)
        return shapes


class Nanoseconds(_Read[int | float]):
    """A time in nanoseconds, whole or with up to three decimals."""

    name = "N"

    def read(self, value: str) -> int | float:
        """Returns the number; integers stay integers, because they may be too large for a float."""
        text = value.strip()
        if re.fullmatch(r"-?[0-9]{1,19}", text):
            return int(text)
        if not re.fullmatch(r"[0-9]{1,12}\.[0-9]{1,3}", text):
            self.fail(f"'{text}' is not a time in ns; accepted are numbers as 6 or 0.08, to a picosecond")
        return float(text)


class Nodes(_Read[list[int]]):
    """Node numbers of a machine: ``0,2,5..7``; ranges include both ends."""

    name = "nodes"

    def read(self, value: str) -> list[int]:
        """Returns a list of node numbers."""
        nodes: list[int] = []
        for part in value.split(","):
            first, _, last = part.partition("..")
            begin = _whole(first)
            end = _whole(last) if last else begin
            if end < begin or end - begin >= 1 << 22:
                self.fail(f"'{part}' is no range of nodes")
            nodes.extend(range(begin, end + 1))
        return nodes


class Shard(_Read[tuple[int, int]]):
    """A shard of a study: ``2/8`` is the second of eight."""

    name = "I/N"

    def read(self, value: str) -> tuple[int, int]:
        """Returns the index of the shard, from 1 on, and the number of shards."""
        first, slash, last = value.partition("/")
        if not slash:
            self.fail(f"'{value}' is not a shard; accepted is I/N, as in 2/8")
        shard = _whole(first), _whole(last)
        if not 1 <= shard[0] <= shard[1]:
            self.fail(f"'{value}' is not a shard; accepted is I/N with I from 1 to N")
        return shard


class Names(_Read[list[str]]):
    """A list of names: ``star,chain,tree``; ``what`` and ``form`` are for the error."""

    name = "LIST"

    def __init__(self, what: str = "names", form: str = "A,B,C") -> None:
        self._what, self._form = what, form

    def read(self, value: str) -> list[str]:
        """Returns the names, in the order given."""
        names = [name.strip() for name in value.split(",")]
        if not all(names):
            self.fail(f"'{value}' is not a list of {self._what}; accepted is {self._form}")
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
        # Ranges are cut one PE beyond the machine, so that a range that exceeds the machine is still reported as an
        # error.
        ends = [(part.start, max(part.start + 1, min(part.stop, count + 1))) for part in self.listed]
        return [pe for first, end in ends for pe in range(first, end)]


class TracePes(_Read[TracedPes]):
    """A choice of PEs for a trace: ``all``, ``64`` (an even sample) or ``0,5,64..127``."""

    name = "all|N|LIST"

    def read(self, value: str) -> TracedPes:
        """Returns the choice as a :class:`TracedPes`."""
        if value == "all":
            return TracedPes()
        if "," not in value and ".." not in value:
            size = _whole(value)
            if size == 0:
                self.fail("a trace of 0 PEs is none; accepted are all, a number from 1 on, or a list")
            return TracedPes(sampled=size)
        parts = []
        for item in value.split(","):
            ends = _RANGE.fullmatch(item)
            first, last = (_whole(end) for end in (ends.groups() if ends else (item, item)))
            if not first <= last:
                self.fail(f"'{item}' is not a range; accepted is FIRST..LAST with FIRST <= LAST")
            parts.append(range(first, last + 1))
        return TracedPes(listed=tuple(parts))


def _whole(text: str) -> int:
    digits = text.strip()
    # Python converts at most 4300 digits, and no size has more than 19.
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 19):
        raise click.BadParameter(f"'{text}' is not a whole number from 0 on (at most 19 digits)")
    return int(digits)
