"""Finds hangs in the reports of NCCL's RAS: the output of `ncclras`, or text from its port 28028.

A report lists groups of communicators, and below them the communicators whose ranks differ. It counts the operations
that a rank has launched, so a rank with a smaller count has not made a call in which other ranks wait. The format is
that of `src/ras/client_support.cc` of NCCL 2.24 to 2.29; since 2.27 it has a count for each kind of operation.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from unisono._core import InputError
from unisono.base.messages import cut
from unisono.logs.hangs import Hang, ranks_text
from unisono.logs.rows import MOST_RANKS

__all__ = ["Report", "is_ras", "ras_hangs", "read_ras"]

_TABLE = re.compile(r"^ *Group +Comms +Nodes +Ranks +Ranks +Ranks +Status +Errors *$", re.MULTILINE)
_ROW = re.compile(
    r"^ *(\d{1,9}) +(\d{1,9}) +(\d{1,9}) +\d{1,9}(?:-\d{1,9})? +(\d{1,9}) +(\d{1,9}) +([A-Z]+) +([A-Z,]+)$"
)
_HEAD = re.compile(r"^#(\d{1,9})-(\d{1,9}) \(([0-9a-f]{1,16})\) (INCOMPLETE|ERROR|MISMATCH)$")
_KIND = re.compile(r"^Communicator ranks have different (\w+) operation counts$")
_MANY = re.compile(r"^(\d{1,9}) ranks (?:have launched up to operation (\d{1,18})|(have not launched any operations))$")
_ONE = re.compile(
    r"^Rank (\d{1,9}) (?:has launched up to operation (\d{1,18})|(has not launched any operations)) -- (.+)$"
)
_SOME = re.compile(r"^Rank (\d{1,9}) -- (.+)$")
_STATES = re.compile(r"^(\d{1,9}) ranks have status ([A-Z]+)$")
_STATE = re.compile(r"^Rank (\d{1,9}) has status ([A-Z]+)(?: -- (.+))?$")
_LOST = re.compile(r"^The (?:missing|unknown) ranks?: ([\d,]{1,65536})$")
_LOST_COUNT = re.compile(r"^Missing communicator data from (\d{1,9}) ranks?$")
_ERRORS = re.compile(r"^(\d{1,9}) ranks reported (.+)$")
_ERROR = re.compile(r"^Rank (\d{1,9}) reported (.+?) -- (.+)$")
_PROCESS = re.compile(r"^Process (\d{1,9}) on node (\S{1,64}) managing (GPUs? .+)$")
_GONE = re.compile(
    r"^(?:Missing communicator data from (\d{1,9}) job process|(\d{1,9}) job process\w* (?:is|are) considered dead)"
)
_SHOWN = 4
_MOST_TEXT = 80

_Key = TypeVar("_Key", int, str)


@dataclass
class _Ranks:
    """A group of `count` ranks in the same state; `listed` has the numbers that the report lists."""

    count: int
    listed: list[int] = field(default_factory=list)
    #: The GPU, process and node of the first rank.
    place: str = ""

    def __str__(self) -> str:
        return ranks_text(self.listed) if self.listed else f"{self.count} ranks"


@dataclass
class Communicator:
    """A communicator whose ranks differ."""

    name: str
    size: int
    #: For each kind of operation ("collective" for all), the ranks by the number of operations that they have launched.
    launched: dict[str, dict[int, _Ranks]] = field(default_factory=dict)
    states: dict[str, _Ranks] = field(default_factory=dict)
    errors: dict[str, _Ranks] = field(default_factory=dict)
    #: The ranks that sent no data.
    lost: _Ranks | None = None


@dataclass
class Report:
    """One report of RAS."""

    label: str
    #: The number of communicators in all groups; ``differing`` has those whose ranks differ, by hash.
    communicators: int
    differing: dict[str, Communicator]
    #: The processes that are dead or sent no data.
    gone: list[str]
    gone_count: int


def is_ras(data: bytes) -> bool:
    """Returns whether a file is a report of RAS."""
    return (
        b"\nJob summary" in b"\n" + data[:4096] or _TABLE.search(data[: 1 << 16].decode("utf-8", "replace")) is not None
    )


def read_ras(data: bytes, label: str) -> Report:
    """Returns the communicators of a report.

    Raises:
        InputError: the report is incomplete or damaged.

    """
    lines = [line.rstrip() for line in data.decode("utf-8", "replace").splitlines()]
    if not any(_TABLE.match(line) for line in lines) or "Warnings" not in lines:
        raise InputError(f"{label} is a cut report of RAS: it ends before its section Warnings; save it whole")
    sizes: dict[int, tuple[int, int]] = {}
    report = Report(label, 0, {}, [], 0)
    now: Communicator | None = None
    reading = _Section()
    for at, line in enumerate(lines, 1):
        where = f"{label}, line {at}"
        if row := _ROW.match(line):
            group, count, size = int(row[1]), int(row[2]), int(row[4])
            if not 0 < size <= MOST_RANKS or group in sizes:
                raise InputError(f"{where}: group {group} of {size} ranks; accepted is each group once, of 1 to 2^24")
            sizes[group] = count, size
            report.communicators += count
        elif head := _HEAD.match(line):
            group, number = int(head[1]), int(head[2])
            if group not in sizes or number >= sizes[group][0]:
                raise InputError(f"{where}: #{group}-{number} is in no group of the table; the report is damaged")
            now = report.differing.setdefault(head[3], Communicator(head[3], sizes[group][1]))
            reading = _Section()
        elif gone := _GONE.match(line.strip()):
            report.gone_count += int(gone[1] or gone[2])
        elif process := _PROCESS.match(line.strip()):
            report.gone.append(f"process {process[1]} on {process[2]} ({cut(process[3], _MOST_TEXT)})")
        elif now is not None and line.startswith(" "):
            reading.take(now, line.strip(), where)
        elif line:
            now = None
    if not sizes and "No communicator data collected!" not in lines:
        raise InputError(f"{label} is a cut report of RAS: its table has no groups; save it whole")
    return report


@dataclass
class _Section:
    """Reads the lines about one communicator."""

    kind: str = "collective"
    #: The group whose ranks the following lines list.
    open: _Ranks | None = None

    def take(self, of: Communicator, line: str, where: str) -> None:
        """Adds the facts in a line to a communicator; unknown lines are ignored."""
        if kind := _KIND.match(line):
            self.kind, self.open = kind[1], None
        elif many := _MANY.match(line):
            self.open = self._add(of.launched.setdefault(self.kind, {}), int(many[2] or 0), int(many[1]), of, where)
        elif one := _ONE.match(line):
            ranks = self._add(of.launched.setdefault(self.kind, {}), int(one[2] or 0), 1, of, where)
            self._name(ranks, int(one[1]), one[4], of, where)
            self.open = None
        elif states := _STATES.match(line):
            self.open = self._add(of.states, states[2], int(states[1]), of, where)
        elif state := _STATE.match(line):
            self._name(self._add(of.states, state[2], 1, of, where), int(state[1]), state[3] or "", of, where)
            self.open = None
        elif errors := _ERRORS.match(line):
            self.open = self._add(of.errors, cut(errors[2], _MOST_TEXT), int(errors[1]), of, where)
        elif error := _ERROR.match(line):
            ranks = self._add(of.errors, cut(error[2], _MOST_TEXT), 1, of, where)
            self._name(ranks, int(error[1]), error[3], of, where)
            self.open = None
        elif lost := _LOST_COUNT.match(line):
            self.open = of.lost = _Ranks(self._checked(int(lost[1]), of, where))
        elif lost := _LOST.match(line):
            listed = [int(rank) for rank in lost[1].split(",") if rank and len(rank) < 10]
            ranks = self.open if self.open is not None else _Ranks(len(listed))
            for rank in listed:
                self._name(ranks, rank, "", of, where)
        elif (some := _SOME.match(line)) and self.open is not None:
            self._name(self.open, int(some[1]), some[2], of, where)

    def _add(self, to: dict[_Key, _Ranks], key: _Key, count: int, of: Communicator, where: str) -> _Ranks:
        found = to.setdefault(key, _Ranks(0))
        found.count = self._checked(found.count + count, of, where)
        return found

    @staticmethod
    def _checked(count: int, of: Communicator, where: str) -> int:
        if not 0 < count <= of.size:
            raise InputError(f"{where}: {count} ranks of a communicator of {of.size}; the report is damaged")
        return count

    @staticmethod
    def _name(ranks: _Ranks, rank: int, place: str, of: Communicator, where: str) -> None:
        if rank >= of.size or len(ranks.listed) >= ranks.count:
            raise InputError(f"{where}: rank {rank} of {ranks.count} in a communicator of {of.size}; it is damaged")
        # For each kind of operation, a rank is in at most one group.
        of_kind = [by.values() for by in of.launched.values() if any(one is ranks for one in by.values())]
        if any(rank in one.listed for group in of_kind for one in group):
            raise InputError(f"{where}: rank {rank} is listed twice; it is damaged")
        if not ranks.listed:
            ranks.place = cut(place, _MOST_TEXT)
        ranks.listed.append(rank)


def ras_hangs(reports: Sequence[Report]) -> tuple[list[Hang], list[str]]:
    """Returns the hangs and errors of communicators in the last report, and notes.

    If the slowest ranks of a communicator have launched fewer operations in an earlier report, the communicator
    advances, and gets a note instead of a hang.
    """
    last, earlier = reports[-1], reports[:-1]
    found, notes = [], []
    for name, of in last.differing.items():
        before = [report.differing[name] for report in earlier if name in report.differing]
        for kind, launched in of.launched.items():
            late, most = min(launched), max(launched)
            if late == most:
                continue
            old = [min(one.launched[kind]) for one in before if one.launched.get(kind)]
            if old and min(old) < late:
                notes.append(f"communicator {name} goes on: its last ranks went from operation {min(old)} to {late}")
                continue
            found.append(_behind(of, kind, bool(earlier)))
        if len(of.states) > 1 or of.lost:
            found.append(_unlike(of))
        found += [_failed(of, words, ranks) for words, ranks in of.errors.items()]
    if last.gone_count:
        names = f": {', '.join(last.gone[:_SHOWN])}" if last.gone else ""
        are = "1 process is" if last.gone_count == 1 else f"{last.gone_count} processes are"
        notes.append(f"{are} dead or without an answer{names}")
    return found, notes


def _behind(of: Communicator, kind: str, is_seen_twice: bool) -> Hang:
    launched = of.launched[kind]
    most = max(launched)
    first, behind = launched[most], {number: ranks for number, ranks in launched.items() if number < most}
    name = "a collective" if kind == "collective" else kind
    late = "; ".join(
        f"{ranks} made {'its' if ranks.count == 1 else 'their'} last call, {number}, and no further one"
        + (f" ({ranks.place})" if ranks.place else "")
        for number, ranks in sorted(behind.items())[:_SHOWN]
    )
    words = (
        f"communicator {of.name}, call {most}: {first} {'waits' if first.count == 1 else 'wait'} in {name} for "
        f"{', '.join(map(str, list(behind.values())[:_SHOWN]))}: {late}"
    )
    if not is_seen_twice and most - min(launched) == 1:
        words += "; one call apart is usual while a job goes on, so query again and give both reports"
    waits_for = tuple(rank for ranks in behind.values() for rank in ranks.listed)
    return Hang("missing", of.name, most, tuple(first.listed), waits_for, words)


def _unlike(of: Communicator) -> Hang:
    parts = [f"{ranks} {'has' if ranks.count == 1 else 'have'} status {name}" for name, ranks in of.states.items()]
    if of.lost is not None:
        parts.append(f"{of.lost} gave no data, so {'it' if of.lost.count == 1 else 'they'} may have ended or failed")
    lost = tuple(of.lost.listed) if of.lost is not None else ()
    return Hang("missing", of.name, 0, (), lost, f"communicator {of.name}: {', and '.join(parts)}")


def _failed(of: Communicator, error: str, ranks: _Ranks) -> Hang:
    place = f" ({ranks.place})" if ranks.place else ""
    return Hang(
        "failed", of.name, 0, tuple(ranks.listed), (), f"communicator {of.name}: {ranks} reported {error}{place}"
    )
