"""Reads times of collectives from the output of OSU's benchmarks, IMB-MPI1, ReproMPI, inspectors, and `tune --json`.

Other contents are read as logs of GPUs (:mod:`unisono.logs.collectives`). Sizes are converted to the bytes of the whole
vector: the OSU benchmarks and IMB-MPI1 state the bytes of one block of a gather, scatter, allgather or alltoall, as MPI
does.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from unisono._core import InputError
from unisono.base.files import parse_json, read_text, title
from unisono.base.messages import shown
from unisono.logs.collectives import LeftOut, Measured, read_log
from unisono.logs.remarks import Remark, hosts, remarks
from unisono.logs.rows import (
    MESSAGE,
    MOST_BYTES,
    MOST_RANKS,
    STREAM,
    WINDOW,
    StatedRanks,
    count,
    microseconds,
    number,
    unlabelled,
    whole,
)

__all__ = ["Log", "is_of_mpi", "read_benchmarks", "read_log_text", "read_logs"]

_OSU = re.compile(r"^#\s*OSU MPI(?:-(\S+))?\S* (\S.*?) Test\b", re.MULTILINE)
#: The line before the rows of nccl-tests, or the first line of a table of GPUs.
_ROWS = re.compile(r"^[ \t]*#?[ \t]*size\s+count\s+type\s|^(?:\w+,)*gpus(?:,\w+)*$", re.MULTILINE)
#: The beginning of a line of the inspector of NCCL or RCCL.
_INSPECTED = re.compile(r'^[ \t]*\{.*"coll_perf"\s*:', re.MULTILINE)
_IMB = re.compile(r"^#\s*Benchmarking\s+(\S+)", re.MULTILINE)
_REPRO = re.compile(r"^[ \t]*test\s+(?:nrep\s+)?(?:count|msize_bytes)\s", re.MULTILINE)
_REPRO_FACT = re.compile(r"^#@(nprocs|datatype_extent_bytes)=(\S+)", re.MULTILINE)
_REPRO_DECIMALS = 10
#: The columns with a time in seconds, of each repetition or as a summary. The first of these columns that exists is
#: read.
_REPRO_TIMES = ("runtime_sec", "median_sec", "mean_sec", "min_sec")
_IMB_RANKS = re.compile(r"^#\s*#processes\s*=\s*(\d+)")
#: The collectives by their names in OSU's benchmarks and IMB-MPI1, in lower case and without punctuation.
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
#: The tests between two ranks, by their names in OSU's benchmarks and IMB-MPI1.
_BETWEEN_TWO = {"Latency": MESSAGE, "Bandwidth": STREAM, "PingPong": MESSAGE}
#: The collectives in which ranks finish at different times, so that a fit uses the time of the slowest rank; and those
#: among them in which most ranks finish early.
_ROOTED, _TO_ROOT = frozenset(("broadcast", "gather", "reduce", "scatter")), frozenset(("gather", "reduce"))
#: The column of OSU's benchmarks with the time of the slowest rank, which the option -f adds.
_SLOWEST = "Max Latency(us)"
#: The collectives for which OSU's benchmarks, IMB-MPI1 and ReproMPI state the size of one block.
_BLOCKS = frozenset(("allgather", "alltoall", "gather", "scatter"))
#: The reason for which rows of other tests are left out.
_ONLY = f"only blocking calls of {', '.join(dict.fromkeys(_NAMES.values()))} are read"
_WRONG = "the result is wrong; repair that, and measure again"
#: The maximum number of keys of JSON that a message lists.
_KEYS = 4


@dataclass(frozen=True)
class Log:
    """The times in one file, and remarks on causes that the file's lines show."""

    label: str
    points: list[Measured]
    remarks: list[Remark]
    #: True for libraries of GPUs, False for MPI.
    of_gpus: bool = False
    #: The hosts that lines of ranks name.
    hosts: frozenset[str] = frozenset()
    #: Sentences on rows that were left out.
    left_out: tuple[str, ...] = ()
    #: The memory of GPUs that the OSU benchmarks state, such as CUDA; empty for the memory of hosts.
    memory: str = ""


def is_of_mpi(text: str) -> bool:
    """Returns whether a text is the output of the OSU benchmarks, IMB-MPI1 or ReproMPI."""
    text = unlabelled(text)
    return any(of.search(text) for of in (_OSU, _IMB, _REPRO))


def read_benchmarks(paths: Iterable[str | Path], ranks: int | None = None) -> list[Measured]:
    """Returns the times of several files, as :func:`read_logs` reads them."""
    return [point for log in read_logs(paths, ranks) for point in log.points]


def read_logs(paths: Iterable[str | Path], ranks: int | None = None, nodes: int | None = None) -> list[Log]:
    """Reads several files; ``ranks`` and ``nodes`` apply to files that do not state their ranks.

    ``nodes`` also applies to output of ReproMPI that states its ranks.

    Raises:
        InputError: a file has none of the formats, is a ``.plan``, is cut, or does not state its ranks while ``ranks``
            is None; or ``ranks`` is given and all files state their own.

    """
    given = StatedRanks(ranks, nodes)
    found = []
    for path in paths:
        label = title(str(path))
        if str(path).endswith(".plan"):
            raise InputError(f"{label} is a plan, which holds no times; give what `unisono tune --json` printed")
        found.append(read_log_text(read_text(path, MOST_BYTES), label, given))
    if ranks is not None and not given.is_used:
        raise InputError(
            f"--ranks {ranks} is for logs of the OSU benchmarks and for rows without their head, and each of these "
            "files states its own ranks; drop it"
        )
    return found


def read_log_text(text: str, label: str, given: StatedRanks, *, messages: bool = False) -> Log:
    """Reads the text of one file; ``given`` completes a log that does not state its ranks.

    With ``messages``, tests between two ranks are read too, and the times of the slowest ranks if the log states them;
    a fit needs both.

    Raises:
        InputError: as for :func:`read_logs`.

    """
    text = unlabelled(text)
    of_gpus = _ROWS.search(text) is not None or _INSPECTED.search(text) is not None
    left_out = LeftOut()
    points = _read(text, label, given, left_out, messages)
    shows = remarks(text, {point.collective for point in points})
    memory = next((of.group(1) for of in _OSU.finditer(text) if of.group(1)), "")
    return Log(label, points, shows, of_gpus, hosts(text), tuple(left_out.sentences()), memory)


def _read(text: str, origin: str, given: StatedRanks, left_out: LeftOut, messages: bool) -> list[Measured]:
    if _INSPECTED.search(text):
        return _inspected(text, origin, left_out)
    if text.lstrip().startswith("{"):
        return _tuned(text, origin)
    if _OSU.search(text):
        found = _osu(text, origin, given, left_out, messages)
    elif _IMB.search(text):
        found = _imb(text, origin, given, left_out, messages)
    elif _REPRO.search(text):
        found = _repro(text, origin, given, left_out)
    else:
        return read_log(text, origin, given, left_out)
    if not found:
        raise left_out.refusal(origin, "has no times of collectives; it may be cut: run the benchmark to its end")
    return found


def _osu(text: str, origin: str, given: StatedRanks, left_out: LeftOut, messages: bool) -> list[Measured]:
    found = []
    title, is_checked, head = "", False, list[str]()
    for place, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if test := _OSU.match(line):
            title, is_checked = test.group(2), False
        elif line.startswith("#"):
            is_checked = is_checked or "Validation" in words
            head = re.split(r"\s{2,}", line.strip("# \t"))
        elif title and words and words[0][0].isdecimal():
            # Other lines are commands and messages of the launcher.
            where = f"{origin}, line {place}"
            if is_checked and not {"Pass", "Fail"} & {*words}:
                raise InputError(f"{where}: the row is cut, as it has no Pass or Fail; run the benchmark to its end")
            if "Fail" in words:
                raise InputError(f"{where}: {_WRONG}")
            if messages and title in _BETWEEN_TWO:
                found.append(_between_two(title, given, *words[:2], where=where))
                continue
            of, of_latency, _ = title.partition(" Latency")
            name = _name(of) if of_latency else None
            if name is None:
                left_out.drop(of, origin, _ONLY)
                continue
            ranks, nodes = given.take(
                f"{origin} does not state the number of ranks, as logs of the OSU benchmarks do not; give --ranks"
            )
            # The rows of a barrier have no size.
            size, time = ("0", words[0]) if name == "barrier" else (words[0], words[1] if len(words) > 1 else "")
            if messages and name in _ROOTED and _SLOWEST in head[: len(words)]:
                time = words[head.index(_SLOWEST)]
            point = _point(name, ranks, nodes, size, time, where)
            found.append(replace(point, is_mean=name in _TO_ROOT and _SLOWEST not in head))
    return found


def _imb(text: str, origin: str, given: StatedRanks, left_out: LeftOut, messages: bool) -> list[Measured]:
    found = []
    name: str | None = None
    title, ranks, head = "", 0, list[str]()
    for place, line in enumerate(text.splitlines(), 1):
        where = f"{origin}, line {place}"
        words = line.split()
        if test := _IMB.match(line):
            title, head = test.group(1), []
            name = _name(title)
        elif stated := _IMB_RANKS.match(line):
            ranks = count(stated.group(1), "the number of processes", where)
        elif "t_avg[usec]" in words:
            head = words
        elif not words or line.startswith("#"):
            head = head if words else []
        elif messages and title in _BETWEEN_TWO and words[0].isdecimal():
            found.append(_between_two(title, given, words[0], *words[2:3], where=where))
        elif title and name is None and words[0].isdecimal():
            left_out.drop(title, origin, _ONLY)
        elif name is not None and head:
            if len(words) < len(head):
                missing = "t_avg" if len(words) <= head.index("t_avg[usec]") else head[-1]
                raise InputError(f"{where}: the row is cut, as it has no {missing}; run the benchmark to its end")
            row = dict(zip(head, words, strict=False))
            # Benchmarks that were built to check results print this column.
            if number(row.get("defects", "0")) != 0:
                raise InputError(f"{where}: {_WRONG}")
            if ranks > 1:
                size = row.get("#bytes", "0")
                if name == "barrier" or size != "0":
                    time = row["t_max[usec]" if messages and name in _ROOTED else "t_avg[usec]"]
                    found.append(_point(name, ranks, given.nodes_of(ranks), size, time, where))
    return found


def _repro(text: str, origin: str, given: StatedRanks, left_out: LeftOut) -> list[Measured]:
    """Returns the times in output of ReproMPI (results_output.c of hunsa/reprompi, 2e73f3d6).

    Several times of a collective of one size give their median. Reduce-scatters are left out.
    """
    facts = dict(_REPRO_FACT.findall(text))
    if "nprocs" in facts:
        ranks, nodes = count(facts["nprocs"], "nprocs", origin), given.nodes or 1
    else:
        ranks, nodes = given.take(f"{origin} does not state the number of ranks in a line '#@nprocs=P'; give --ranks")
    extent = count(facts.get("datatype_extent_bytes", "1"), "datatype_extent_bytes", origin)
    times: dict[tuple[str, int], list[float]] = defaultdict(list)
    columns: list[str] = []
    for place, line in enumerate(text.splitlines(), 1):
        words, where = line.split(), f"{origin}, line {place}"
        if words[:1] == ["test"]:
            columns = words
            if not set(columns) & set(_REPRO_TIMES):
                raise InputError(f"{where}: no column is one of {', '.join(_REPRO_TIMES)}; run it without --verbose")
        elif columns and words and not line.startswith("#"):
            if len(words) != len(columns):
                raise InputError(f"{where} has {len(words)} words, and the head has {len(columns)}; the row is damaged")
            row = dict(zip(columns, words, strict=True))
            size = row.get("msize_bytes", row.get("count", ""))
            name = _name(row["test"].removeprefix("MPI_"))
            if name is None:
                left_out.drop(row["test"], origin, _ONLY)
            elif name == "reduce-scatter":
                left_out.drop(row["test"], origin, "versions of ReproMPI count its blocks differently")
            else:
                total = whole(size, "the size", where) * (extent if "count" in row else 1)
                time = next(row[column] for column in _REPRO_TIMES if column in row)
                # ReproMPI prints ten decimals, so a time with fewer is incomplete.
                if len(time.partition(".")[2]) != _REPRO_DECIMALS:
                    raise InputError(f"{where}: the time is {shown(time)}, without ten decimals; the row is cut")
                times[name, 0 if name == "barrier" else total].append(microseconds(time, where) * 1e6)
    return [
        Measured(name, ranks, nodes, size * (ranks if name in _BLOCKS else 1), median(of))
        for (name, size), of in times.items()
    ]


def _inspected(text: str, origin: str, left_out: LeftOut) -> list[Measured]:
    """Returns the median times in the output of NCCL's or RCCL's inspector, which has a line for each call of a rank.

    Sizes are sizes of the larger buffer. The size of the larger buffer is either the stated size or its product with
    the number of ranks. The one that is nearer to the stated bandwidth times the time is taken.
    """
    times: dict[tuple[str, int, int, int], list[float]] = defaultdict(list)
    for place, line in enumerate(text.splitlines(), 1):
        where = f"{origin}, line {place}"
        try:
            record: Any = parse_json(line) if line.strip() else {}
            if "coll_perf" not in record:
                continue
            of, head = record["coll_perf"], record["header"]
            name, ranks, nodes = _name(of["coll"]), head["n_ranks"], head.get("nnodes", 1)
            size, seconds, rate = (
                of["coll_msg_size_bytes"],
                float(of["coll_exec_time_us"]) * 1e-6,
                of["coll_algobw_gbs"],
            )
            are_counts = all(isinstance(many, int) and 0 < many <= MOST_RANKS for many in (ranks, nodes))
            if not (are_counts and isinstance(size, int) and 0 <= size < 1 << 53 and 0 < seconds < 1e6 and rate >= 0):
                raise ValueError
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise InputError(
                f"{where} is {shown(line)}; accepted is a call with ranks, size, time and bandwidth; the log is cut "
                "or damaged"
            ) from None
        if name is None:
            left_out.drop(of["coll"], origin, _ONLY)
        elif size > 0:
            is_block = rate * 1e9 * seconds > size * (1 + ranks) / 2
            times[name, ranks, nodes, size * (ranks if is_block else 1)].append(seconds)
    if not times:
        raise left_out.refusal(origin, "has no times of collectives; it may be cut: run the program to its end")
    return [Measured(name, ranks, nodes, size, median(of)) for (name, ranks, nodes, size), of in times.items()]


def _tuned(text: str, origin: str) -> list[Measured]:
    """Returns the times of the contender that `unisono tune` chose at each size."""
    try:
        report: Any = parse_json(text)
    except ValueError as e:
        raise InputError(f"{origin} is no JSON: {e}") from None
    cells = report.get("cells")
    keys = ", ".join(map(shown, [*report][:_KEYS])) or "none"
    wrong = InputError(
        f"{origin} is JSON and has no 'cells' with times (its keys: {keys}); accepted are what `unisono tune --json` "
        "printed, and logs as text"
    )
    if not isinstance(cells, list):
        raise wrong
    found = []
    for cell in cells:
        try:
            times = {of["algorithm"]: float(of["seconds"]) for of in cell["contenders"]}
            name, ranks, size, per_node = cell["collective"], cell["ranks"], cell["bytes"], cell["per_node"]
            seconds = times[cell["chosen"]]
            total = size * ranks if name in _BLOCKS or name == "reduce-scatter" else size
            if not (isinstance(total, int) and total >= 0 and ranks > 0 and 0 < seconds < 1e6):
                raise wrong
            found.append(Measured(name, ranks, -(-ranks // per_node), total, seconds))
        except (KeyError, TypeError, ValueError, ZeroDivisionError):
            raise wrong from None
    return found


def _name(text: str) -> str | None:
    """Returns the collective of a benchmark; None for a benchmark such as `Allgatherv` or `PingPong`."""
    return _NAMES.get(re.sub(r"[^a-z]", "", text.lower()))


def _between_two(title: str, given: StatedRanks, size: str, figure: str = "", *, where: str) -> Measured:
    """Returns the time of a message, or of a stream of messages from its bandwidth in MB/s."""
    name, ranks = _BETWEEN_TWO[title], 2
    found = _point(name, ranks, given.nodes_of(ranks), size, figure, where)
    if name == MESSAGE:
        return found
    # The figure is in 10^6 bytes a second, that is, in bytes a microsecond.
    return replace(found, seconds=WINDOW * found.bytes * 1e-12 / found.seconds)


def _point(name: str, ranks: int, nodes: int, size: str, time: str, where: str) -> Measured:
    total = whole(size, "the size", where) * (ranks if name in _BLOCKS else 1)
    # OSU's benchmarks and IMB-MPI1 print two decimals, so a time with fewer is incomplete.
    if re.fullmatch(r"\d+(\.\d?)?", time):
        raise InputError(
            f"{where}: the time is {time}, without two decimals; the row is cut: run the benchmark to its end"
        )
    return Measured(name, ranks, nodes, total, microseconds(time, where))
