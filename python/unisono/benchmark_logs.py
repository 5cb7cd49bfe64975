"""Reads times of collectives from the output of benchmarks of MPI: OSU's, Intel's, and `unisono tune --json`.

Other contents are read as logs of GPUs (:mod:`unisono.collective_logs`). Sizes become those of the whole vector: the
OSU benchmarks and IMB-MPI1 count the bytes of one block of a gather, scatter, allgather or alltoall, as MPI does.
"""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from unisono._core import InputError
from unisono.base.files import read_text, title
from unisono.base.messages import shown
from unisono.collective_logs import Measured, read_log

__all__ = ["read_benchmarks"]

_MOST_BYTES = 64 << 20
_OSU = re.compile(r"^#\s*OSU MPI\S* (.*?) Latency Test", re.MULTILINE)
_IMB = re.compile(r"^#\s*Benchmarking\s+(\S+)", re.MULTILINE)
_IMB_RANKS = re.compile(r"^#\s*#processes\s*=\s*(\d+)")
#: The collectives by their names in both suites, in small letters and without punctuation.
_NAMES = {
    "allreduce": "allreduce",
    "allgather": "allgather",
    "alltoallpersonalizedexchange": "alltoall",
    "alltoall": "alltoall",
    "barrier": "barrier",
    "bcast": "broadcast",
    "broadcast": "broadcast",
    "gather": "gather",
    "reduce": "reduce",
    "reducescatter": "reduce-scatter",
    "scatter": "scatter",
}
#: Collectives whose size is that of one block.
_BLOCKS = frozenset(("allgather", "alltoall", "gather", "scatter"))
_MOST_RANKS = 1 << 24


def read_benchmarks(paths: Iterable[str | Path], ranks: int | None = None) -> list[Measured]:
    """Returns the times of several files; ``ranks`` is for files that do not state their ranks.

    Raises:
        InputError: a file has none of the formats, is cut, or does not state its ranks, and ``ranks`` is None; or
            ``ranks`` is given and all files state their own.

    """
    found: list[Measured] = []
    takes_ranks = False
    for path in paths:
        if str(path).endswith(".plan"):
            raise InputError(
                f"{title(str(path))} is a plan, which holds no times; give what `unisono tune --json` printed"
            )
        text = read_text(path, _MOST_BYTES)
        takes_ranks |= _OSU.search(text) is not None
        found += _read(text, title(str(path)), ranks)
    if ranks is not None and not takes_ranks:
        raise InputError(
            f"--ranks {ranks} is for logs of the OSU benchmarks, and each of these files states its own ranks; drop it"
        )
    return found


def _read(text: str, origin: str, ranks: int | None) -> list[Measured]:
    if text.lstrip().startswith("{"):
        return _tuned(text, origin)
    if _OSU.search(text):
        found = _osu(text, origin, ranks)
    elif _IMB.search(text):
        found = _imb(text, origin)
    else:
        return read_log(text, origin)
    if not found:
        raise InputError(f"{origin} has no times of collectives; it may be cut: run the benchmark to its end")
    return found


def _osu(text: str, origin: str, ranks: int | None) -> list[Measured]:
    if ranks is None:
        raise InputError(
            f"{origin} does not state the number of ranks, as logs of the OSU benchmarks do not; give --ranks"
        )
    found = []
    name: str | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if test := _OSU.match(line):
            name = _name(test.group(1))
        elif name is not None and (words := line.split()) and not line.startswith("#"):
            where = f"{origin}, line {number}"
            # A barrier has no size.
            size, time = ("0", words[0]) if name == "barrier" else (words[0], words[1] if len(words) > 1 else "")
            found.append(_point(name, ranks, size, time, where))
    return found


def _imb(text: str, origin: str) -> list[Measured]:
    found = []
    name: str | None = None
    ranks, at, at_size = 0, None, None
    for number, line in enumerate(text.splitlines(), 1):
        where = f"{origin}, line {number}"
        words = line.split()
        if test := _IMB.match(line):
            name, at = _name(test.group(1)), None
        elif count := _IMB_RANKS.match(line):
            ranks = _whole(count.group(1), "the number of processes", where)
            if not 0 < ranks <= _MOST_RANKS:
                raise InputError(f"{where}: {ranks} processes; accepted are 1 to {_MOST_RANKS}")
        elif "t_avg[usec]" in words:
            at = words.index("t_avg[usec]")
            at_size = words.index("#bytes") if "#bytes" in words else None
        elif not words or line.startswith("#"):
            at = at if words else None
        elif name is not None and at is not None:
            if len(words) <= at:
                raise InputError(f"{where}: the row is cut, as it has no t_avg; run the benchmark to its end")
            if ranks > 1:
                size = "0" if at_size is None else words[at_size]
                if name == "barrier" or size != "0":
                    found.append(_point(name, ranks, size, words[at], where))
    return found


def _tuned(text: str, origin: str) -> list[Measured]:
    """Returns the chosen contender of each size that `unisono tune` measured."""
    try:
        report: Any = json.loads(text)
    except ValueError as e:
        raise InputError(f"{origin} is no JSON: {e}") from None
    cells = report.get("cells")
    wrong = InputError(
        f"{origin} has no 'cells' with times, as what `unisono tune --json` printed has; give that, or a log"
    )
    if not isinstance(cells, list):
        raise wrong
    found = []
    for cell in cells:
        try:
            times = {of["algorithm"]: float(of["seconds"]) for of in cell["contenders"]}
            name, ranks, size, per_node = cell["collective"], cell["ranks"], cell["bytes"], cell["per_node"]
            seconds = times[cell["chosen"]]
            whole = size * ranks if name in _BLOCKS or name == "reduce-scatter" else size
            if not (isinstance(whole, int) and whole >= 0 and ranks > 0 and 0 < seconds < 1e6):
                raise wrong
            found.append(Measured(name, ranks, -(-ranks // per_node), whole, seconds))
        except (KeyError, TypeError, ValueError, ZeroDivisionError):
            raise wrong from None
    return found


def _name(text: str) -> str | None:
    """Returns the collective of a benchmark; None for one of another kind, such as `Allgatherv` or `PingPong`."""
    return _NAMES.get(re.sub(r"[^a-z]", "", text.lower()))


def _point(name: str, ranks: int, size: str, time: str, where: str) -> Measured:
    whole = _whole(size, "the size", where) * (ranks if name in _BLOCKS else 1)
    # Both suites print two decimals.
    if re.fullmatch(r"\d+(\.\d?)?", time):
        raise InputError(
            f"{where}: the time is {time}, without two decimals; the row is cut: run the benchmark to its end"
        )
    try:
        seconds = float(time) * 1e-6
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < 1e6:
        raise InputError(f"{where}: the time is {shown(time)}; accepted are microseconds above 0")
    return Measured(name, ranks, 1, whole, seconds)


def _whole(text: str, what: str, where: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text[:20]) < 1 << 53):
        raise InputError(f"{where}: {what} is {shown(text)}; accepted is a whole number below 2^53")
    return int(text)
