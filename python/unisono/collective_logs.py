"""Reads times of collectives from the output of nccl-tests and rccl-tests, and from tables in CSV.

The contents decide the format. A log of nccl-tests has a line ``# size count type ... time`` before its rows; times are
those out of place, in microseconds, and sizes are those of the larger buffer. A table has the columns ``op``, ``gpus``
or ``ranks``, ``bytes``, ``time_us`` and perhaps ``nodes``, and the same sizes.
"""

import csv
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from unisono._core import InputError
from unisono.base.files import read_text, title
from unisono.base.messages import shown

__all__ = ["Measured", "read_log", "read_logs"]

#: Logs are lines of text; more than this is no log.
_MOST_BYTES = 64 << 20
_COLUMNS = ("op", "bytes", "time_us")
#: One of them is a column too.
_COUNTS = ("gpus", "ranks")
_NAMES = {
    "allreduce": "allreduce",
    "allgather": "allgather",
    "reducescatter": "reduce-scatter",
    "broadcast": "broadcast",
    "reduce": "reduce",
    "alltoall": "alltoall",
    "gather": "gather",
    "scatter": "scatter",
}
_RANK = re.compile(r"#\s+Rank\s+(\d+)\s.*?\bon\s+(\S+)\s+device\b.*?\]\s*(.*?)\s*$")
_TEST = re.compile(r"\b((?:all_|reduce_|send)?[a-z]+)_perf\b")
_MOST_GPUS = 1 << 24


@dataclass(frozen=True)
class Measured:
    """The measured time of one collective; ``bytes`` count as in nccl-tests."""

    collective: str
    ranks: int
    nodes: int
    bytes: int
    seconds: float
    #: The name of the GPUs, where the log states it.
    gpu: str = ""


def read_logs(paths: Iterable[str | Path]) -> list[Measured]:
    """The times of several logs.

    Raises:
        InputError: a file is no log of these formats, is cut, or has no times.

    """
    return [point for path in paths for point in read_log(read_text(path, _MOST_BYTES), title(str(path)))]


def read_log(text: str, origin: str) -> list[Measured]:
    """The times of one log; ``origin`` opens the message of an error."""
    lines = text.splitlines()
    header = next((line for line in lines if line.strip() and not line.startswith("#")), "")
    columns = [name.strip() for name in header.split(",")]
    count = next((name for name in _COUNTS if name in columns), None)
    is_table = count is not None and set(_COLUMNS) <= set(columns)
    found = _table(lines, count, origin) if is_table and count else _tests(lines, origin)
    if not found:
        raise InputError(f"{origin} has a head and no times; it may be cut: run the test to its end")
    return found


def _table(lines: list[str], count: str, origin: str) -> list[Measured]:
    reader = csv.DictReader(line for line in lines if not line.startswith("#"))
    found = []
    for at, row in enumerate(reader, 2):
        where = f"{origin}, row {at}"
        name = _collective(str(row["op"]), where)
        ranks, size = _whole(row[count], count, where), _whole(row["bytes"], "bytes", where)
        nodes = _whole(row["nodes"], "nodes", where) if row.get("nodes") else 1
        found.append(Measured(name, ranks, nodes, size, _time(row["time_us"], where)))
    return found


def _tests(lines: list[str], origin: str) -> list[Measured]:
    found: list[Measured] = []
    hosts: dict[int, str] = {}
    gpu, name, at_time = "", "", None
    guesses: list[str] = []
    is_open = False
    for number, line in enumerate(lines, 1):
        where = f"{origin}, line {number}"
        words = line.strip().strip("#").split()
        if test := _TEST.search(line):
            name = test.group(1).replace("_", "")
        if rank := _RANK.match(line):
            if is_open and int(rank.group(1)) == 0:
                hosts, is_open = {}, False
            hosts[int(rank.group(1)) % _MOST_GPUS], gpu = rank.group(2), rank.group(3)
        elif line.startswith("#"):
            if words[:3] == ["size", "count", "type"] and "time" in words:
                at_time, is_open = words.index("time"), True
        elif at_time is not None and words and words[0].isdecimal():
            if len(words) <= at_time:
                raise InputError(f"{where}: the row is cut, as it has no time; run the test to its end")
            if not hosts:
                raise InputError(
                    f"{where}: no lines '#  Rank 0 ... on HOST device ...' state the GPUs before this row; give the "
                    "whole output of the test"
                )
            size = _whole(words[0], "the size", where)
            if size > 0:
                time, name = _time(words[at_time], where), name and _collective(name, where)
                found.append(Measured(name, len(hosts), len(set(hosts.values())), size, time, gpu))
                if not name:
                    guesses.append(_guessed(words, at_time, len(hosts)))
    if at_time is None:
        raise InputError(
            f"{origin} is no log of nccl-tests or rccl-tests, which have a line '# size count type redop root time', "
            f"and no table with the columns {', '.join((*_COLUMNS, _COUNTS[0]))}"
        )
    guess = next((kind for kind in reversed(guesses) if kind), "")
    if guesses and not guess:
        raise InputError(f"{origin}: nothing names the test, as in 'all_reduce_perf'; add a line that does")
    return [replace(point, collective=point.collective or guess) for point in found]


def _guessed(words: list[str], at_time: int, ranks: int) -> str:
    """The collective of a row by its operator and the ratio of its bandwidths; nothing where they do not show it."""
    values = [_number(word) for word in words[at_time + 1 : at_time + 3]]
    if len(values) < 2 or not values[0] or not values[1]:
        return ""
    ratio = values[1] / values[0]
    # Two ranks have the same ratio for an allreduce and a reduce; the first is the commoner test.
    kinds = ("allreduce", "reduce-scatter", "reduce") if "sum" in words[:at_time] else ("", "allgather", "broadcast")
    shares = (2 * (ranks - 1) / ranks, (ranks - 1) / ranks, 1.0)
    return next((kind for kind, of in zip(kinds, shares, strict=True) if abs(ratio - of) < 0.02 * of), "")


def _collective(name: str, where: str) -> str:
    known = _NAMES.get(name.lower().replace("_", "").replace("-", ""))
    if known is None:
        raise InputError(f"{where}: {shown(name)} is no collective; accepted are {', '.join(_NAMES)}")
    return known


def _whole(text: str | None, what: str, where: str) -> int:
    value = (text or "").strip()
    if not (value.isascii() and value.isdecimal() and 0 <= int(value[:20]) < 1 << 53):
        raise InputError(f"{where}: {what} is {shown(value)}; accepted is a whole number below 2^53")
    return int(value)


def _number(text: str | None) -> float | None:
    try:
        value = float((text or "").replace("_", "x"))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _time(text: str | None, where: str) -> float:
    value = _number(text)
    if value is None or not 0 < value < 1e12:
        raise InputError(f"{where}: the time is {shown((text or '').strip())}; accepted are microseconds above 0")
    return value * 1e-6
