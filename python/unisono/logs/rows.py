"""The parts that all readers of logs share: labels of launchers, rows of tables in CSV, and checks of numbers."""

import csv
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from unisono._core import InputError
from unisono.base.messages import shown

__all__ = [
    "MESSAGE",
    "MOST_BYTES",
    "MOST_RANKS",
    "STREAM",
    "WINDOW",
    "StatedRanks",
    "cells",
    "count",
    "first_row",
    "microseconds",
    "number",
    "unlabelled",
    "whole",
]

#: The largest size of a log in bytes.
MOST_BYTES = 64 << 20
MOST_RANKS = 1 << 24
#: The names of tests between two ranks: one message, and :data:`WINDOW` messages with an answer.
MESSAGE, STREAM = "message", "stream"
#: The number of messages that osu_bw sends before it waits, by default.
WINDOW = 64
#: The labels that launchers put before lines: srun --label; Open MPI's mpirun with --tag-output, --timestamp-output or
#: --output; Intel's -prepend-rank; and logs of containers, which mark a part of a line by the letter P.
_LABEL = (
    r"^(?:(?:(?:\[[^\[\]\n]{1,300}\]){1,3}|\w{3} \w{3} [ \d]\d [\d:]{8} \d{4})?<std(?:out|err)>:|\[\d{1,7}\]"
    r"|[ \t]*\d{1,7}:|\d{4}-\d\d-\d\dT[\d:.]{8,18}(?:Z|[+-]\d\d:\d\d)(?: std(?:out|err) F)?) ?"
)
_LABELLED = re.compile(_LABEL + r"[ \t]*#[ \t]+(?:size[ \t]+count|OSU MPI|Benchmarking)", re.MULTILINE)
_LABELS = re.compile(_LABEL + r"|\[\d{1,7}\](?=[ \t\n])", re.MULTILINE)


@dataclass
class StatedRanks:
    """The numbers of ranks and nodes that a user states for logs that lack them."""

    ranks: int | None = None
    nodes: int | None = None
    #: The number of ranks on each node. It also applies to logs that state their number of ranks.
    per_node: int | None = None
    #: True once a log has used the numbers.
    is_used: bool = False

    def take(self, reason: str) -> tuple[int, int]:
        """Returns the ranks and nodes (by default 1 node); without ranks, raises InputError with ``reason``."""
        if self.ranks is None:
            raise InputError(reason)
        self.is_used = True
        return self.ranks, self.nodes or self.nodes_of(self.ranks)

    def nodes_of(self, ranks: int) -> int:
        """Returns the number of nodes that ranks fill, by default 1."""
        return -(-ranks // self.per_node) if self.per_node else 1


def unlabelled(text: str) -> str:
    """Returns a log without the labels of ranks that launchers put before output."""
    return _LABELS.sub("", text) if _LABELLED.search(text) else text


def first_row(lines: Sequence[str]) -> list[str]:
    """Returns the comma-separated words of the first line that is neither empty nor a comment."""
    first = next((line for line in lines if line.strip() and not line.startswith("#")), "")
    return [name.strip() for name in first.split(",")]


def cells(lines: Sequence[str], columns: Sequence[str], origin: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yields the file and line of each row of a CSV table after its header, and its cells by column.

    Raises:
        InputError: a row has another number of cells than the head.

    """
    rows = [(at, line) for at, line in enumerate(lines, 1) if line.strip() and not line.startswith("#")][1:]
    for (at, _), words in zip(rows, csv.reader(line for _, line in rows), strict=False):
        where = f"{origin}, line {at}"
        if len(words) != len(columns):
            raise InputError(
                f"{where} has {len(words)} cells, and the head has {len(columns)}; the row is damaged or cut"
            )
        yield where, dict(zip(columns, (word.strip() for word in words), strict=True))


def whole(text: str, what: str, where: str) -> int:
    """Converts text to a whole number below 2^53, or raises InputError."""
    value = text.strip()
    if not (value.isascii() and value.isdecimal() and int(value[:20]) < 1 << 53):
        raise InputError(f"{where}: {what} is {shown(value)}; accepted is a whole number below 2^53")
    return int(value)


def count(text: str, what: str, where: str) -> int:
    """Converts text to a number of ranks or nodes, or raises InputError."""
    value = whole(text, what, where)
    if not 0 < value <= MOST_RANKS:
        raise InputError(f"{where}: {what} is {value}; accepted are 1 to {MOST_RANKS}")
    return value


def number(given: object) -> float | None:
    """Converts a value to a finite number; None if this is not possible."""
    if isinstance(given, bool) or not isinstance(given, (int, float, str)):
        return None
    try:
        value = float(given.replace("_", "x") if isinstance(given, str) else given)
    except (ValueError, OverflowError):
        return None
    return value if math.isfinite(value) else None


def microseconds(text: str, where: str) -> float:
    """Converts text with a time in microseconds to seconds, or raises InputError."""
    value = number(text)
    if value is None or not 0 < value < 1e12:
        raise InputError(f"{where}: the time is {shown(text.strip())}; accepted are microseconds above 0")
    return value * 1e-6
