"""Reads rates and latencies of links from the output of tests of interfaces and of copies between GPUs.

The contents decide the format:

- linux-rdma/perftest (``ib_write_bw``, ``ib_read_bw``, ``ib_send_bw`` and their ``_lat``): the average bandwidth of the
  longest message (half of it if bidirectional), or the least one-way time of the shortest message;
- ``p2pBandwidthLatencyTest`` of NVIDIA/cuda-samples: the rates of one direction with P2P enabled;
- NVIDIA/nvbandwidth: the rates of one direction from GPU to GPU, by copy engines (CE) or by kernels (SM);
- a profile of microsoft/taccl in JSON: alpha in µs, and beta in µs for the size that the name ends with;
- a table in CSV with the columns ``src``, ``dst``, ``gb_per_second`` and optionally ``by`` (``copy`` or ``kernel``).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from unisono._core import InputError
from unisono.base.files import parse_json
from unisono.base.messages import shown
from unisono.logs.rows import cells, first_row, number

__all__ = ["Interface", "LinkLog", "Pair", "Profile", "read_links"]

_P2P = re.compile(r"\[P2P \(Peer-to-Peer\) GPU Bandwidth Latency Test\]|P2P=Enabled Bandwidth")
_P2P_TITLE = re.compile(r"^(Uni|Bi)directional P2P=(Enabled|Disabled) Bandwidth.*Matrix \(GB/s\)\s*$")
_P2P_GPU = re.compile(r"^Device: (\d{1,9}), (.*?), pciBusID")
_NO_ACCESS = re.compile(r"^Device=(\d{1,9}) CANNOT Access Peer Device=(\d{1,9})\s*$")
_NVBANDWIDTH = re.compile(r"^nvbandwidth Version|^Running \w+\.$|^memcpy (?:CE|SM) ", re.MULTILINE)
_NVBANDWIDTH_TITLE = re.compile(r"^memcpy (CE|SM) GPU\(row\) (<-|->) GPU\(column\) bandwidth \(GB/s\)\s*$")
#: The title of any matrix of nvbandwidth.
_NVBANDWIDTH_MATRIX = re.compile(r"^\S.*(?:\(GB/s\)|\(ns\))\s*$")
_VALUE = re.compile(r"\d{1,9}\.\d{2}")
_PERFTEST_HEAD = re.compile(r"^\s*#bytes\s+(?:#sl\s+)?#iterations\s")
_PERFTEST_COLUMN = re.compile(r"#bytes|#iterations|#sl|[\w.%]+(?: \w+)?\[[^\]]+\]|tps average")
_PERFTEST_TITLE = re.compile(r"^\s+(\S.*?) (BW|Latency) (?:\w+ )*Test\s*$")
_PERFTEST_AVERAGE = re.compile(r"BW average\[(MB|MiB|Gb)/sec\]")
_DEVICE = re.compile(r"\bDevice\s*:\s*(\S+)")
_COLLECTIVES = re.compile(r"^#\s+size\s+count\s+type\s", re.MULTILINE)
_PROFILE_SIZE = re.compile(r"(\d{1,6})\s*(K|M)i?B$")
#: The Gb/s of one unit of perftest, whose MB/sec are 2^20 bytes (`format_factor` of its perftest_parameters.c).
_GBPS = {"MB": 8 * 1.048576e-3, "MiB": 8 * 1.048576e-3, "Gb": 1.0}
#: The length in bytes of the shortest message that shows the rate, and of the longest that shows the latency.
_LONG, _SHORT = 32 << 10, 256
_MOST_GPUS = 1 << 10
_RATES = ("gb_per_second", "gbytes_per_s")


@dataclass(frozen=True)
class Pair:
    """The rate from one GPU of a box to another, in one direction."""

    source: int
    target: int
    gbps: float
    #: True if kernels made the copy; False if a copy engine made it, or if this is unknown.
    by_kernels: bool = False


@dataclass(frozen=True)
class Interface:
    """The rate in one direction, or the one-way latency, between two equal network interfaces."""

    device: str
    gbps: float | None = None
    latency_ns: float | None = None


@dataclass(frozen=True)
class Profile:
    """The links in a profile of TACCL; times are in µs, before a factor by which profiles may be scaled.

    ``betas`` are the transfer times of ``size`` bytes on the kinds of links inside a box, in ascending order. ``alpha``
    is the latency of these links. ``remote`` has beta and alpha between boxes.
    """

    size: int
    betas: tuple[float, ...]
    alpha: float
    remote: tuple[float, float] | None


@dataclass
class LinkLog:
    """The rates and latencies in one file."""

    origin: str
    pairs: list[Pair] = field(default_factory=list)
    interfaces: list[Interface] = field(default_factory=list)
    profile: Profile | None = None
    #: The names of the GPUs by number, as far as the log states them.
    gpus: dict[int, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def read_links(text: str, origin: str) -> LinkLog | None:
    """Returns the figures of a log of links; None if the text has none of these formats.

    Raises:
        InputError: the log is incomplete or damaged, has no usable figure, or also has times of collectives.

    """
    lines = text.splitlines()
    columns = first_row(lines)
    if text.lstrip().startswith("{"):
        return _profile(text, origin)
    if {"src", "dst"} <= {*columns}:
        return _table(lines, columns, origin)
    if _P2P.search(text):
        read = _copies
    elif _NVBANDWIDTH.search(text):
        read = _nvbandwidth
    elif any(_PERFTEST_HEAD.match(line) for line in lines):
        read = _perftest
    else:
        return None
    if _COLLECTIVES.search(text):
        raise InputError(f"{origin} has times of collectives and a test of links; give each a file of its own")
    return read(lines, origin)


def _copies(lines: list[str], origin: str) -> LinkLog:
    """Reads the output of ``p2pBandwidthLatencyTest``."""
    log, apart = LinkLog(origin), set()
    one_way: dict[tuple[int, int], float] = {}
    both_ways: dict[tuple[int, int], float] = {}
    for at, line in enumerate(lines):
        if gpu := _P2P_GPU.match(line):
            log.gpus[int(gpu[1]) % _MOST_GPUS] = gpu[2]
        elif refused := _NO_ACCESS.match(line):
            apart.add((int(refused[1]), int(refused[2])))
        elif (title := _P2P_TITLE.match(line)) and title[2] == "Enabled":
            into = one_way if title[1] == "Uni" else both_ways
            for ends, rate in _matrix(lines, at + 1, origin):
                into[ends] = max(rate, into.get(ends, 0.0))
    if not one_way:
        raise InputError(
            f"{origin} has no matrix 'Unidirectional P2P=Enabled Bandwidth', or is cut before it; run the test to its "
            "end on GPUs that reach each other"
        )
    log.pairs = [Pair(*ends, 8 * rate) for ends, rate in one_way.items() if ends not in apart]
    if apart:
        log.notes.append(
            f"{origin}: copies between {len(apart)} ordered pairs of GPUs go through the memory of the host, as "
            f"between {min(apart)[0]} and {min(apart)[1]}; their rates are left out"
        )
    shared = [
        ends
        for ends, rate in both_ways.items()
        if rate < 0.75 * (one_way.get(ends, 0.0) + one_way.get(ends[::-1], 0.0)) and ends not in apart
    ]
    if shared:
        worst = min(shared, key=lambda ends: both_ways[ends])
        log.notes.append(
            f"{origin}: {len(shared)} ordered pairs of GPUs are slower in both directions at once than the sum of the "
            f"two, as {worst[0]} and {worst[1]}: {both_ways[worst]:g} GB/s, and {one_way[worst]:g} one way"
        )
    log.notes.append(f"{origin}: latencies contain the start of a copy, and are not used")
    return log


def _nvbandwidth(lines: list[str], origin: str) -> LinkLog:
    log, found = LinkLog(origin), dict[tuple[int, int, str], float]()
    others: list[str] = []
    for at, line in enumerate(lines):
        if title := _NVBANDWIDTH_TITLE.match(line):
            for (row, column), rate in _matrix(lines, at + 1, origin):
                key = (row, column, title[1]) if title[2] == "->" else (column, row, title[1])
                found[key] = max(rate, found.get(key, 0.0))
        elif _NVBANDWIDTH_MATRIX.match(line):
            others.append(line.strip())
    if not found:
        raise InputError(
            f"{origin} has no matrix 'memcpy CE|SM GPU(row) <- GPU(column) bandwidth (GB/s)', or is cut before it; run "
            "nvbandwidth -t device_to_device_memcpy_write_sm"
        )
    log.pairs = [Pair(source, target, 8 * rate, way == "SM") for (source, target, way), rate in found.items()]
    if others:
        log.notes.append(
            f"{origin}: {len(others)} matrices are not used, as {shown(others[0])}: only those of copies from GPU to "
            "GPU in one direction are"
        )
    return log


def _matrix(lines: list[str], at: int, origin: str) -> Iterator[tuple[tuple[int, int], float]]:
    """Yields the rates off the diagonal of a matrix, whose header with GPU numbers is line ``at``, counted from 0."""
    head = lines[at].split() if at < len(lines) else []
    gpus = [word for word in head if word != "D\\D"]
    count = len(gpus)
    if gpus != [str(gpu) for gpu in range(count)] or not 0 < count <= _MOST_GPUS:
        raise InputError(
            f"{origin}, line {at + 1}: the line of the numbers of the GPUs is {shown(' '.join(head))}; accepted are 0, "
            f"1, ... up to {_MOST_GPUS}; the log is damaged or cut"
        )
    for row in range(count):
        where = f"{origin}, line {at + 2 + row}"
        words = lines[at + 1 + row].split() if at + 1 + row < len(lines) else []
        if words[:1] != [str(row)] or len(words) != count + 1:
            raise InputError(
                f"{where}: the row of GPU {row} is {shown(' '.join(words))}; accepted are its number and {count} "
                "rates; the log is damaged or cut"
            )
        for column, word in enumerate(words[1:]):
            if row == column:
                continue
            if not _VALUE.fullmatch(word) or not float(word):
                raise InputError(f"{where}: the rate to GPU {column} is {shown(word)}; accepted are GB/s, as in 94.06")
            yield (row, column), float(word)


def _perftest(lines: list[str], origin: str) -> LinkLog:
    log, title, device, columns, last = LinkLog(origin), "", "", [], 0
    rows: list[tuple[int, list[str]]] = []
    for at, line in enumerate(lines, 1):
        if found := _PERFTEST_TITLE.match(line):
            title = f"{found[1]} {found[2]}"
        elif found := _DEVICE.search(line):
            device = found[1]
            if re.search(r"Dual-port\s*:\s*ON", line):
                raise InputError(f"{origin}, line {at}: two ports were measured at once; measure each for itself")
        elif _PERFTEST_HEAD.match(line):
            columns, last, rows = _PERFTEST_COLUMN.findall(line), at, []
        elif line.startswith("---"):
            if columns and (rows or at > last + 1):
                log.interfaces.append(_interface(rows, columns, title, device, f"{origin}, line {last}"))
            columns = []
        elif columns and (words := line.split()) and words[0].isdecimal():
            if len(words) < len(columns):
                raise InputError(
                    f"{origin}, line {at} has {len(words)} values, and its head has {len(columns)}; the log is cut "
                    "or damaged"
                )
            rows.append((at, words))
    if columns:
        raise InputError(f"{origin}, line {last}: no line of dashes ends the table; the log is cut: give it to its end")
    if not log.interfaces:
        raise InputError(f"{origin} has the head of a test and no row; give the output of the client, to its end")
    return log


def _interface(rows: list[tuple[int, list[str]]], columns: list[str], title: str, device: str, where: str) -> Interface:
    """Returns the rate or latency of one test of perftest."""
    if not rows:
        raise InputError(f"{where}: no row follows the head of the test; give the output of the client, to its end")
    if not device:
        raise InputError(
            f"{where}: no line 'Device : NAME' states the interface before this test; give its whole output"
        )
    sizes = [_positive(words[0], "the size", f"line {number} after {where}") for number, words in rows]
    unit = next((found[1] for name in columns if (found := _PERFTEST_AVERAGE.fullmatch(name))), None)
    if unit is None:
        at = sizes.index(min(sizes))
        if min(sizes) > _SHORT:
            raise InputError(
                f"{where}: the shortest message has {min(sizes):g} bytes; a latency needs one of at most {_SHORT}: -s 8"
            )
        times = [_positive(word, "a time", where) for word in rows[at][1][2 : len(columns)]]
        if "t_typical[usec]" in columns and not times[0] <= times[2] <= times[1]:
            raise InputError(f"{where}: the typical time is not between the least and the largest; the log is damaged")
        # The time of a read, and of an atomic operation, is a full round trip; other tests print half of a round trip
        # (`rtt_factor` in perftest).
        is_whole = "Read" in title or title.startswith("Atomic")
        return Interface(device, latency_ns=1e3 * times[0] / (2 if is_whole else 1))
    if max(sizes) < _LONG:
        raise InputError(
            f"{where}: the longest message has {max(sizes):g} bytes; a rate needs one of at least {_LONG}: -s 1048576"
        )
    at = sizes.index(max(sizes))
    words = rows[at][1]
    index = next(place for place, name in enumerate(columns) if _PERFTEST_AVERAGE.fullmatch(name))
    average = _positive(words[index], "the average bandwidth", where) * _GBPS[unit]
    if "MsgRate[Mpps]" in columns:
        sent = 8e-3 * _positive(words[index + 1], "the rate of messages", where) * max(sizes)
        # The tolerance covers the rounding of a rate with six decimals.
        if abs(sent - average) > 0.01 * sent + 4e-9 * max(sizes):
            raise InputError(
                f"{where}: {words[index + 1]} million messages of {max(sizes):g} bytes a second are {sent:.2f} Gb/s, "
                f"and the row has {words[index]} {unit}/sec; the row is damaged, or its unit is another one"
            )
    return Interface(device, average / (2 if "Bidirectional" in title else 1))


def _profile(text: str, origin: str) -> LinkLog:
    """Reads a profile of TACCL, whose times may be scaled by a common factor."""
    try:
        given = parse_json(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{origin} begins as JSON and is none: {error}") from None
    if "alpha" not in given:
        raise InputError(f"{origin} is JSON without the key alpha; accepted is a profile of TACCL")
    name = _PROFILE_SIZE.search(str(given.get("name", "")))
    if name is None:
        raise InputError(
            f"{origin}: the name is {shown(given.get('name'))}; accepted is one that ends with the bytes of a message "
            "that the times are of, as NDv2_1MB"
        )
    if "node_betas_list" not in given:
        raise InputError(
            f"{origin} has no node_betas_list; give the rates of a matrix of links as src,dst,gb_per_second"
        )
    alpha = _positive(given["alpha"], "alpha", origin)
    betas, sums = (_times(given, key, origin) for key in ("node_betas_list", "node_invbws_list"))
    remote = None
    if "remote_beta" in given:
        remote = (
            _positive(given["remote_beta"], "remote_beta", origin),
            _positive(given.get("remote_alpha"), "remote_alpha", origin),
        )
        betas, sums = (*betas, remote[0]), (*sums, _positive(given.get("remote_invbw"), "remote_invbw", origin))
    if len(betas) != len(sums):
        raise InputError(f"{origin}: node_betas_list and node_invbws_list have unequally many values")
    for place, (beta, total) in enumerate(zip(betas, sums, strict=True)):
        start = remote[1] if remote and place == len(betas) - 1 else alpha
        # The tolerance covers the rounded sums in TACCL's own files.
        if abs(start + beta - total) > 1 + 0.05 * total:
            raise InputError(f"{origin}: {total:g} is not the sum of alpha {start:g} and beta {beta:g}; it is damaged")
    size = int(name[1]) * (1000 if name[2] == "K" else 1_000_000)
    own = betas[:-1] if remote else betas
    return LinkLog(origin, profile=Profile(size, tuple(sorted(own)), alpha, remote))


def _times(given: dict[str, Any], key: str, origin: str) -> tuple[float, ...]:
    values = given.get(key)
    if not isinstance(values, list) or not values:
        raise InputError(f"{origin}: {key} is {shown(values)}; accepted is a list of times")
    return tuple(_positive(value, key, origin) for value in values)


def _table(lines: list[str], columns: list[str], origin: str) -> LinkLog:
    log, rate = LinkLog(origin), next((name for name in _RATES if name in columns), None)
    accepted = {"src", "dst", "by", *([rate] if rate else [])}
    if rate is None or not {*columns} <= accepted or len({*columns}) != len(columns):
        raise InputError(
            f"{origin}: the columns are {', '.join(columns)}; accepted are src, dst, {_RATES[0]} and perhaps by, "
            "each once"
        )
    for where, row in cells(lines, columns, origin):
        by, gbps = row.get("by", "copy"), 8 * _positive(row[rate], rate, where)
        if by not in ("copy", "kernel"):
            raise InputError(f"{where}: by is {shown(by)}; accepted are copy and kernel")
        if not row["dst"] and not row["src"].isdecimal():
            log.notes.append(f"{where}: {shown(row['src'])} is no pair of GPUs; its rate is left out")
            continue
        ends = [_gpu(row[name], name, where) for name in ("src", "dst")]
        if ends[0] == ends[1]:
            raise InputError(f"{where}: src and dst are both {ends[0]}; accepted are two GPUs")
        log.pairs.append(Pair(ends[0], ends[1], gbps, by == "kernel"))
    if not log.pairs:
        raise InputError(f"{origin} has a head and no pair of GPUs; it may be cut")
    return log


def _gpu(text: str, what: str, where: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and int(text) < _MOST_GPUS):
        raise InputError(f"{where}: {what} is {shown(text)}; accepted is the number of a GPU, below {_MOST_GPUS}")
    return int(text)


def _positive(given: object, what: str, where: str) -> float:
    value = number(given)
    if value is None or not 0 < value < 1e12:
        raise InputError(f"{where}: {what} is {shown(given)}; accepted is a number above 0")
    return value
