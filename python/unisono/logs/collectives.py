"""Reads times of collectives from the output of nccl-tests and rccl-tests, and from tables in CSV.

The contents decide the format. A log of nccl-tests has a line ``# size count type ... time`` before its rows; the
out-of-place times in microseconds are read, and sizes are those of the larger buffer. A table has the columns ``op``,
``gpus`` or ``ranks``, ``bytes`` (also of the larger buffer), ``time_us`` and optionally ``nodes``.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from unisono import _core
from unisono._core import InputError
from unisono.base.files import read_text, title
from unisono.base.messages import counted, shown
from unisono.logs.links import LinkLog, read_links
from unisono.logs.remarks import remarks
from unisono.logs.rows import (
    MOST_BYTES,
    MOST_RANKS,
    StatedRanks,
    cells,
    count,
    first_row,
    microseconds,
    number,
    unlabelled,
    whole,
)

__all__ = ["LeftOut", "Measured", "read_log", "read_logs"]

_COLUMNS = ("op", "bytes", "time_us")
#: Columns that may state the number of ranks.
_COUNTS = ("gpus", "ranks")
_NODES = "nodes"
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
#: Tests of nccl-tests and rccl-tests whose rows are left out, because Unisono has no such collective.
_OTHERS = frozenset(("alltoallv", "allgatherv", "hypercube", "reducescatterv", "sendrecv"))
_RANK = re.compile(r"(?:#\s*)?Rank\s+(\d+)\s(?:\s*Group\s+(\d+)\s)?.*?\bon\s+(\S+)\s+device\b.*?\]\s*(.*?)\s*$")
_LAUNCH = re.compile(r"\bnThread\s+\d+\s+nGpus\s+(\d{1,4})\b")
_TEST = re.compile(r"\b((?:all_|reduce_|send)?[a-z]+)_perf\b")
#: The datatypes and operators of nccl-tests that the model of NCCL distinguishes. Rows with other datatypes and
#: operators are read as f16 and sum.
_TYPES = {"half": "f16", "bfloat16": "bf16", "float": "f32", "double": "f64", "int32": "i32", "int64": "i64"}
_OPERATORS = frozenset(("sum", "prod", "max", "min"))
#: The operators that NCCL scales on the GPUs. Like ``prod``, they do not use NVLS, and neither do types of one byte
#: (github.com/NVIDIA/nccl, ``ncclNvlsSupported``).
_SCALED = frozenset(("avg", "mulsum"))
_REPAIR = "repair that, and measure again"
#: The bytes of an element of each type of nccl-tests and rccl-tests.
_WIDTHS = {
    "int8": 1, "uint8": 1, "int32": 4, "uint32": 4, "int64": 8, "uint64": 8,
    "half": 2, "bfloat16": 2, "float": 4, "double": 8,
    "f8e4m3": 1, "f8e5m2": 1, "fp8_e4m3": 1, "fp8_e5m2": 1,
}  # fmt: skip
#: A row that follows a message of NCCL on the same line.
_BEHIND = re.compile(rf"\bNCCL (?:INFO|WARN|TRACE)\b.*?(?<!\S)(\d+\s+\d+\s+(?:{'|'.join(_WIDTHS)})\s.*)")
#: The line after the rows that states the number of wrong results. Other releases state the maximum error in each row
#: instead.
_WRONG = re.compile(r"Out of bounds values\s*:\s*(\d+)\s*(\w*)")
#: The relative tolerance of stated bandwidths, because times have three digits.
_ROUNDED = 0.01


@dataclass(frozen=True)
class Measured:
    """The measured time of one collective; ``bytes`` are those of the larger buffer, as in nccl-tests."""

    collective: str
    ranks: int
    nodes: int
    bytes: int
    seconds: float
    #: The name of the GPUs; empty if the log does not state it.
    gpu: str = ""
    dtype: str = "f16"
    op: str = "sum"
    #: The number of GPUs whose kernels one thread starts one after the other.
    launched: int = 1
    #: True if the time is the mean over the ranks, most of which finish before the last.
    is_mean: bool = False


def read_logs(paths: Iterable[str | Path]) -> tuple[list[Measured], list[LinkLog], list[str]]:
    """Reads several files. Returns the times of collectives, the logs of links, and sentences on rows and settings.

    Raises:
        InputError: a file is not a log of these formats, is incomplete, or has no times.

    """
    points, links, left_out, shows = [], [], LeftOut(), list[str]()
    for path in paths:
        text, origin = read_text(path, MOST_BYTES), title(str(path))
        if (of_links := read_links(text, origin)) is not None:
            links.append(of_links)
        else:
            points += (found := read_log(text, origin, left_out=left_out))
            for of in remarks(text, {point.collective for point in found}):
                by = ", and a fit takes the times for those of NCCL's own choice" if of.lists else ""
                shows.append(f"{origin}: {of.words}{by}; {of.advice}")
    return points, links, [*left_out.sentences(), *shows]


class LeftOut:
    """Counts the rows that are left out, by log, reason and test, and collects sentences on tests."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], Counter[str]] = {}
        self._cut: list[str] = []

    def leaves(self, name: str, origin: str) -> bool:
        """Returns whether a row of the test ``name`` is left out, and counts it if so."""
        is_other = _plain(name) in _OTHERS
        if is_other:
            self.drop(name, origin, "only collectives with blocks of one size are read")
        return is_other

    def drop(self, name: str, origin: str, reason: str) -> None:
        """Counts a row of the test ``name``, which is left out for a reason."""
        self._rows.setdefault((origin, reason), Counter())[name] += 1

    def end_early(self, name: str, size: str, origin: str) -> None:
        """Collects a test without its last line."""
        of = f"the test {name}" if name else "a test"
        self._cut.append(
            f"{origin}: {of} ends at {size} bytes without a line '# Avg bus bandwidth', so sizes may be missing; run "
            "it to its end"
        )

    def guess(self, name: str, origin: str) -> None:
        """Collects a test without a name, which is read as the collective ``name``."""
        self._cut.append(
            f"{origin}: nothing names the test; by its columns it is read as {name}: add a line that names it, as in "
            "'all_reduce_perf'"
        )

    def split(self, name: str, groups: int, ranks: int, origin: str) -> None:
        """Collects a test in several groups of ranks."""
        of = f"{groups} groups of {counted(ranks, 'GPU')}"
        self._cut.append(
            f"{origin}: {of} ran {name or 'a test'} at the same time, as the column 'Group' states; expected times are "
            "those of one group alone"
        )

    def sentences(self) -> list[str]:
        """Returns the sentences on tests, and a sentence for each log and reason of rows that are left out."""
        return self._cut + [
            f"{origin}: {counted(rows.total(), 'row')} of {', '.join(map(shown, rows))} "
            f"{'is' if rows.total() == 1 else 'are'} left out, since {reason}"
            for (origin, reason), rows in self._rows.items()
        ]

    def refusal(self, origin: str, otherwise: str) -> InputError:
        """Returns the error of a log without times: its first sentence, or ``otherwise``."""
        first = next((one for one in self.sentences() if one.startswith(f"{origin}: ")), None)
        return InputError(f"{origin} {otherwise}" if first is None else f"{first}, and the log has no other rows")


def read_log(
    text: str, origin: str, given: StatedRanks | None = None, left_out: LeftOut | None = None
) -> list[Measured]:
    """Returns the times in one log; ``origin`` begins error messages, ``given`` completes a log without ranks.

    Rows of tests for which Unisono has no collective are counted in ``left_out``.
    """
    lines = unlabelled(text).splitlines()
    columns = first_row(lines)
    is_table = bool({*_COUNTS} & {*columns}) and {*_COLUMNS} <= {*columns}
    left = LeftOut() if left_out is None else left_out
    found = _table(lines, columns, origin, left) if is_table else _tests(lines, origin, given, left)
    if not found:
        raise left.refusal(origin, "has a head and no times; it may be cut: run the test to its end")
    return found


def _table(lines: list[str], columns: list[str], origin: str, left_out: LeftOut) -> list[Measured]:
    accepted = (*_COLUMNS, *_COUNTS, _NODES)
    for column in columns:
        if column not in accepted or columns.count(column) > 1:
            many = "there is no such column" if column not in accepted else "it occurs twice"
            raise InputError(f"{origin}: column {shown(column)}: {many}; accepted are {', '.join(accepted)}")
    if {*_COUNTS} <= {*columns}:
        raise InputError(f"{origin} has the columns {' and '.join(_COUNTS)}, which are the same; drop one of them")
    of = next(name for name in _COUNTS if name in columns)
    found = []
    for where, row in cells(lines, columns, origin):
        if left_out.leaves(row["op"], origin):
            continue
        name, size = _collective(row["op"], where), whole(row["bytes"], "bytes", where)
        ranks, nodes = count(row[of], of, where), count(row.get(_NODES, "1"), _NODES, where)
        found.append(Measured(name, ranks, nodes, size, microseconds(row["time_us"], where)))
    return found


@dataclass
class _Run:
    """The rows of one test in a log, and the facts that the lines before them state."""

    name: str
    ranks: int
    nodes: int
    #: The number of groups of ranks that ran the test at the same time.
    groups: int
    gpu: str
    launched: int
    #: The words of the header line above the rows.
    head: list[str]
    #: For each row, the file and line, the words, and the index of the time among the words.
    rows: list[tuple[str, list[str], int]] = field(default_factory=list)
    #: True if the test printed its last line, the mean bus bandwidth.
    is_complete: bool = False


def _tests(lines: list[str], origin: str, given: StatedRanks | None, left_out: LeftOut) -> list[Measured]:
    runs: list[_Run] = []
    run: _Run | None = None
    #: The group and the host of each rank.
    hosts: dict[int, tuple[str, str]] = {}
    gpu, name, launched, at_time, head = "", "", 1, None, list[str]()
    is_open = False
    for place, line in enumerate(map(str.strip, lines), 1):
        where = f"{origin}, line {place}"
        # Several processes write to a log, so a row may be on the same line as a message.
        words = (behind.group(1) if (behind := _BEHIND.search(line)) else line.strip("#")).split()
        # A line about the end of a test names the finished test.
        if (test := _TEST.search(line)) and "concluded" not in line:
            name, run = test.group(1).replace("_", ""), None
        if launch := _LAUNCH.search(line):
            launched = max(1, int(launch.group(1)))
        if rank := _RANK.match(line):
            if is_open and int(rank.group(1)) == 0:
                # A new test begins. Its name is unknown, unless a line after the previous test has stated it.
                name, run = name if run is None else "", None
                hosts, is_open = {}, False
            hosts[int(rank.group(1)) % MOST_RANKS], gpu = (rank.group(2) or "0", rank.group(3)), rank.group(4)
        elif words[:3] == ["size", "count", "type"] and "cputime" in words:
            raise InputError(f"{where}: 'cputime' is the time of the calls on the CPU; run the test without -C 1")
        elif words[:3] == ["size", "count", "type"] and "time" in words:
            words = _with_operator(words, "redop")
            at_time, is_open, head = words.index("time"), True, words
        elif (errors := _WRONG.search(line)) and (int(errors.group(1)) or errors.group(2) == "FAILED"):
            raise InputError(f"{where}: the test found wrong results in {errors.group(1)} checks; {_REPAIR}")
        elif words[:3] == ["Avg", "bus", "bandwidth"] and run is not None:
            run.is_complete = True
        elif not line.startswith("#") and at_time is not None and words and words[0].isdecimal():
            words = _with_operator(words, "none")
            if len(words) <= at_time + 2:
                missing = "no time" if len(words) <= at_time else "no bandwidths after the time"
                raise InputError(f"{where}: the row is cut, as it has {missing}; run the test to its end")
            if len(words) < len(head):
                raise InputError(
                    f"{where}: the row is cut, as it has {len(words)} words and the head {len(head)}; run the test "
                    "to its end, or delete the row"
                )
            _check_results(words, head, where)
            if left_out.leaves(name, origin):
                continue
            if run is None:
                run = _Run(name, *_placed(hosts, words[at_time + 1 :], given, where), gpu, launched, head)
                runs.append(run)
                if run.groups > 1:
                    left_out.split(name, run.groups, run.ranks, origin)
            run.rows.append((where, words, at_time))
    if at_time is None:
        columns = ", ".join((*_COLUMNS, _COUNTS[0]))
        if given is None:
            raise InputError(
                f"{origin} is no log of nccl-tests or rccl-tests, which have a line "
                f"'# size count type redop root time', and no table with the columns {columns}"
            )
        raise InputError(
            f"{origin} has none of the formats that are read: the output of nccl-tests or rccl-tests, which have a "
            "line '# size count type redop root time', of the OSU benchmarks, IMB-MPI1 or ReproMPI, lines of the "
            f"inspector of NCCL or RCCL, what 'unisono tune --json' printed, and tables with the columns {columns}"
        )
    for one in runs:
        if not one.is_complete:
            left_out.end_early(one.name, one.rows[-1][1][0], origin)
    return [point for one in runs for point in _points(one, origin, left_out)]


def _with_operator(words: list[str], name: str) -> list[str]:
    """Returns a head or row with ``name`` after its type if it has a root or a time there.

    Old releases of nccl-tests print no operator for tests that do not reduce: the cell is blank, or the head has no
    such column.
    """
    is_without = words[3:4] and (words[3] in ("root", "time") or number(words[3]) is not None)
    return [*words[:3], name, *words[3:]] if is_without else words


def _check_results(words: list[str], head: list[str], where: str) -> None:
    """Refuses a row with wrong results, out of place or in place.

    The count of wrong results is N/A if they were not checked.
    """
    for column, word in zip(head, words, strict=False):
        if column == "#wrong" and word != "N/A" and (wrong := number(word)) != 0:
            if wrong is None:
                raise InputError(f"{where}: #wrong is {shown(word)}; the row is damaged: measure again, or delete it")
            raise InputError(f"{where}: {word} elements of the result are wrong; {_REPAIR}")


def _placed(
    hosts: dict[int, tuple[str, str]], rates: list[str], given: StatedRanks | None, where: str
) -> tuple[int, int, int]:
    """Returns the ranks and nodes of a group of a test, and the number of groups.

    They are taken from the lines about ranks, or from the statements of the user. Times are means over all groups
    (``MPI_COMM_WORLD`` in ``Allreduce`` of common.cu of nccl-tests), and sizes and bandwidths are those of a group.
    """
    ranks = max(hosts, default=-1) + 1
    if hosts and len(hosts) == ranks:
        groups: dict[str, list[str]] = {}
        for group, host in hosts.values():
            groups.setdefault(group, []).append(host)
        shapes = sorted({(len(of), len({*of})) for of in groups.values()})
        if len(shapes) > 1:
            of = " and ".join(f"{many} GPUs on {counted(nodes, 'node')}" for many, nodes in shapes)
            raise InputError(
                f"{where}: the times are means over groups of {of}, by the column 'Group' above; measure groups of "
                "one size on as many nodes each (NCCL_TESTS_SPLIT), or all GPUs as one group"
            )
        return (*shapes[0], len(groups))
    if not hosts and (number(rates[0]) or 0.0) > 1 and number(rates[1]) == 0:
        # A bus bandwidth of zero is possible only for a test with one rank.
        return 1, 1, 1
    missing = (
        f"{where}: the lines '#  Rank ...' of {ranks - len(hosts)} of {ranks} GPUs are missing before this row"
        if hosts
        else f"{where}: no lines '#  Rank 0 ... on HOST device ...' state the GPUs before this row"
    )
    needed = f"{missing}; give the whole output of the test"
    return (*(given or StatedRanks()).take(needed if given is None else f"{needed}, or --ranks"), 1)


def _points(run: _Run, origin: str, left_out: LeftOut) -> list[Measured]:
    """Returns the times of one test, after checking that counts and bandwidths of each row fit its collective.

    Rows of size 0 are left out.
    """
    ranks, found = run.ranks, []
    guess = ""
    if not run.name:
        # Long vectors have the most digits in their bandwidths. Shorter vectors may show whether results were checked.
        guesses = list[str]()
        for of_row in filter(None, (_guesses(*row[1:], run.head, ranks) for row in reversed(run.rows))):
            if not guesses or {*of_row} < {*guesses}:
                guesses = of_row
        if len(guesses) != 1:
            alike = f", and its columns are those of {' and '.join(guesses)}" if guesses else ""
            raise InputError(
                f"{origin}: nothing names the test{alike}; add a line that names it, as in 'all_reduce_perf'"
            )
        [guess] = guesses
        left_out.guess(guess, origin)
    for where, words, at_time in run.rows:
        name = _collective(run.name, where) if run.name else guess
        size = whole(words[0], "the size", where)
        _check_count(ranks, size, words, where)
        if size > 0:
            time = microseconds(words[at_time], where)
            _check_bandwidths(name, ranks, size, time, words[at_time + 1 : at_time + 3], where)
            op = words[3] if words[3] in _OPERATORS else "prod" if words[3] in _SCALED else "sum"
            if _WIDTHS[words[2]] == 1 and words[3] != "none":
                op = "prod"
            dtype = _TYPES.get(words[2], "f16")
            found.append(Measured(name, ranks, run.nodes, size, time, run.gpu, dtype, op, run.launched))
    return found


def _check_count(ranks: int, size: int, words: list[str], where: str) -> None:
    """Raises an error if the size of a row is not the size of its elements, on one rank or on all ranks.

    Raises:
        InputError: the type or the operator is unknown, or the row is damaged.

    """
    elements, width = whole(words[1], "the count", where), _WIDTHS.get(words[2])
    if width is None:
        raise InputError(
            f"{where}: the type is {shown(words[2])}; accepted are those of nccl-tests: {', '.join(_WIDTHS)}"
        )
    if words[3] not in (*_OPERATORS, *_SCALED, "none"):
        operators = ", ".join((*sorted(_OPERATORS | _SCALED), "none"))
        raise InputError(f"{where}: the operator is {shown(words[3])}; accepted are those of nccl-tests: {operators}")
    if size not in (elements * width, elements * width * ranks):
        raise InputError(
            f"{where}: {elements} elements of {words[2]} are {elements * width} bytes, or {elements * width * ranks} "
            f"of {ranks} ranks, and the row has {size}; the row is damaged: measure again, or delete it"
        )


def _check_bandwidths(name: str, ranks: int, size: int, time: float, stated: list[str], where: str) -> None:
    """Refuses a row whose bandwidths do not follow from its size, its time and its collective.

    Raises:
        InputError: a number is damaged, or the row belongs to another test.

    """
    values = [number(word) for word in stated]
    digits = [len(word.partition(".")[2]) for word in stated]
    if values[0] is None or values[1] is None:
        raise InputError(f"{where}: the bandwidths are {shown(' '.join(stated))}; accepted are two numbers, in GB/s")
    algbw, busbw = values[0], values[1]
    share = _share(name, ranks)

    def differs(found: float, expected: float, last: float) -> bool:
        return abs(found - expected) > _ROUNDED * abs(expected) + last

    if differs(algbw, size / time * 1e-9, 10.0 ** -digits[0]):
        raise InputError(
            f"{where}: {size} bytes in {time * 1e6:.6g} µs are {size / time * 1e-9:.2f} GB/s, and the row has "
            f"{stated[0]}; the row is damaged, or its unit is another one"
        )
    if differs(busbw, share * algbw, 10.0 ** -digits[1] + share * 10.0 ** -digits[0]):
        raise InputError(
            f"{where}: the bandwidths are {stated[0]} and {stated[1]} GB/s, and those of {name} on {ranks} GPUs are as "
            f"1 to {share:.3f}; the lines before the row are those of another test"
        )


def _share(name: str, ranks: int) -> float:
    """Returns busbw / algbw of a collective."""
    rates = _core.bandwidths(name, ranks, 1, 1.0)
    return (rates["busbw"] or 0.0) / (rates["algbw"] or 1.0)


def _guesses(words: list[str], at_time: int, head: list[str], ranks: int) -> list[str]:
    """Returns the collectives that a row can be of, by its operator, its root and its bandwidths.

    nccl-tests prints the root -1 for collectives without one, and leaves the results of an alltoall in place unchecked
    (``AlltoAllInitData``), so that "#wrong" is N/A in place only. On one rank there is no ratio of bandwidths, so all
    collectives that reduce are possible.
    """
    reduces, facts = bool({*words[:at_time]} & (_OPERATORS | _SCALED)), _core.collectives()
    kinds = [kind for kind in dict.fromkeys(_NAMES.values()) if facts[kind]["reduces"] == reduces]
    if "root" in head:
        has_root = words[head.index("root")] != "-1"
        kinds = [kind for kind in kinds if facts[kind]["has_root"] == has_root]
    if ranks == 1:
        return kinds[:1]
    algbw, busbw = (number(word) for word in words[at_time + 1 : at_time + 3])
    ratio = busbw / algbw if algbw and busbw else 0.0
    kinds = [kind for kind in kinds if abs(ratio - _share(kind, ranks)) < 0.02 * ratio]
    checks = [words[at] for at in range(len(words)) if head[at : at + 1] == ["#wrong"]]
    if "alltoall" in kinds and len(checks) == 2 and checks[0] != "N/A":
        kinds = [kind for kind in kinds if (kind == "alltoall") == (checks[1] == "N/A")]
    return kinds


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def _collective(name: str, where: str) -> str:
    known = _NAMES.get(_plain(name))
    if known is None:
        raise InputError(f"{where}: {shown(name)} is no collective; accepted are {', '.join(_NAMES)}")
    return known
