"""Finds times in logs of collectives that are longer than other times of the logs, or than a machine predicts.

A cliff is one of two anomalies: the time per byte jumps from one size to a larger size, or a size takes longer than a
larger size. Several calls, or padding, would then be faster. Guidelines compare collectives
(:mod:`unisono.logs.guidelines`), spreads compare logs.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from statistics import median
from typing import Any

from unisono import _core
from unisono.base.messages import counted, size_text
from unisono.logs.benchmarks import Log
from unisono.logs.collectives import Measured
from unisono.logs.expectations import Choice, Expected, Key, key_of
from unisono.logs.guidelines import HALVES, Curve, violations
from unisono.logs.remarks import CONNECT, Remark

__all__ = ["KINDS", "TOLERANCE", "Finding", "findings", "sentences"]

#: All kinds of findings.
KINDS = ("not-connected", "faster-than-possible", "below-expectation", "algorithm", "cliff", "guideline", "spread")
#: The relative difference up to which two times count as equal.
TOLERANCE = 0.1
#: Times below this measured time (in seconds) vary more. The second value is the minimum tolerance of such times.
_SHORT_SECONDS, _SHORT_TOLERANCE = 200e-6, 0.25
_CEILING_ROUNDED = 0.02
#: The ratio of times per byte above which the advice about a jump between nodes concerns the network: a change of
#: algorithm or protocol cannot explain so large a jump.
_FALL = 3

#: The advice of findings, for libraries of GPUs and for MPI.
_CLIFF_GPU = "NCCL_ALGO and NCCL_PROTO can force what smaller sizes use; or cut the call into calls of that size"
_CLIFF_MPI = "'unisono tune' measures other algorithms there; or cut the call into calls of that size"
_CLIFF_NETWORK = (
    "a network that drops packets falls like this: check flow control (PFC) of RoCE, counters of its ports, and routes"
)
_DIP = (
    "pad the call, or force what the larger size uses; repeat the test first, since few iterations are disturbed easily"
)
_GUIDELINE_GPU = "its algorithm is a wrong choice: try NCCL_ALGO and NCCL_PROTO, or a tuner file ('plan --for nccl')"
_GUIDELINE_MPI = (
    "its algorithm is a wrong choice: 'unisono tune' measures others, and 'unisono export' writes the settings"
)
_REPEAT = "look for other jobs, congestion or clocks that change, and measure more iterations"
_SPREAD = "compare its nodes, cables and settings with those of the other logs"
_SLOW_GPU = (
    "its links, settings or nodes are slower than the machine states: log NCCL_DEBUG=INFO, and test links with "
    "ib_write_bw and p2pBandwidthLatencyTest, which 'unisono calibrate --from' reads"
)
_SLOW_MPI = "its algorithm or its links are slower than the machine allows: 'unisono tune' measures other algorithms"
_FAST = "the log is of another machine, or of other ranks: name the machine that was measured"

#: If half of the sizes that are too slow exceed the expected time by this factor, the log probably belongs to a machine
#: other than the given one.
_OTHER = 20
#: The largest number of hosts and logs that a sentence names.
_HOSTS = 4

#: A collective on a number of ranks and nodes.
_Case = tuple[str, int, int]


@dataclass(frozen=True)
class _Miss:
    """A measured time that exceeds an expected time; both are in seconds."""

    bytes: int
    measured: float
    expected: float
    ceiling: float | None = None
    #: The words that name the source of the expected time.
    by: str = ""
    #: The fraction of the measured time that is lost; 1 if the measured time has no meaning.
    lost: float | None = None

    @property
    def share(self) -> float:
        return 1 - min(self.expected / self.measured, 1) if self.lost is None else self.lost

    @property
    def ratio(self) -> float:
        return self.measured / self.expected


@dataclass(frozen=True)
class Finding:
    """An anomaly of one collective in one log, or of a guideline in all logs, at one or several sizes.

    ``bytes`` and the times are those of the size with the largest ``ratio``; ``words`` is a sentence about it.
    """

    kind: str
    collective: str
    ranks: int
    nodes: int
    log: str
    bytes: int
    first_bytes: int
    last_bytes: int
    sizes: int
    measured: float
    expected: float
    ceiling: float | None
    words: str
    advice: str
    #: The sum of the lost fractions of all times that belong to the finding.
    lost: float

    @property
    def ratio(self) -> float:
        """Returns the measured time divided by the expected time."""
        return self.measured / self.expected

    def report(self) -> dict[str, Any]:
        """Returns the finding for JSON."""
        return {**vars(self), "ratio": self.ratio}


def findings(
    logs: Sequence[Log], tolerance: float = TOLERANCE, expected: Mapping[Key, Expected] | None = None
) -> list[Finding]:
    """Returns all findings, sorted by ``Finding.lost``, the largest first."""
    apart = {log.label: _of_processes(log) for log in logs}
    found = [finding for of in apart.values() for finding in of]
    # The times of unconnected processes have no meaning.
    connected = [log for log in logs if not apart[log.label]]
    for log in connected:
        found += _cliffs(log, tolerance)
        found += _repeats(log, tolerance)
        found += _against_machine(log, expected or {}, tolerance)
    found += _guidelines(connected, tolerance)
    found += _spreads(connected, tolerance)
    return sorted(found, key=lambda of: (-of.lost, KINDS.index(of.kind)))


def _curves(points: Iterable[Measured]) -> dict[_Case, Curve]:
    """Returns, for each case, the least time at each size."""
    curves: dict[_Case, Curve] = defaultdict(dict)
    for point in points:
        curve = curves[point.collective, point.ranks, point.nodes]
        curve[point.bytes] = min(point.seconds, curve.get(point.bytes, point.seconds))
    return curves


def _is_longer(measured: float, expected: float, tolerance: float) -> bool:
    """Returns whether a time is longer than expected, beyond the tolerance; short times have a larger tolerance."""
    return measured > expected * (1 + (max(tolerance, _SHORT_TOLERANCE) if measured < _SHORT_SECONDS else tolerance))


def _finding(kind: str, case: _Case, log: str, misses: Sequence[_Miss], words: str, advice: str) -> list[Finding]:
    """Returns one finding for all misses, or none without misses.

    ``words`` is formatted with the miss of the largest ratio, which gives the times of the finding.
    """
    if not misses:
        return []
    worst, sizes = max(misses, key=lambda miss: miss.ratio), sorted({miss.bytes for miss in misses})
    name, ranks, nodes = case
    text = words.format(
        ratio=worst.ratio,
        size=size_text(worst.bytes),
        by=worst.by,
        sizes=counted(len(sizes), "size"),
        rates=_rates(name, ranks, worst),
    )
    return [
        Finding(
            kind=kind,
            collective=name,
            ranks=ranks,
            nodes=nodes,
            log=log,
            bytes=worst.bytes,
            first_bytes=sizes[0],
            last_bytes=sizes[-1],
            sizes=len(sizes),
            measured=worst.measured,
            expected=worst.expected,
            ceiling=worst.ceiling,
            words=f"{log}: {name} on {counted(ranks, 'rank')} {text}",
            advice=advice,
            lost=sum(miss.share for miss in misses),
        )
    ]


def _of_processes(log: Log) -> list[Finding]:
    """Finds tests of processes that were not connected, or of one rank."""
    apart = any(remark.is_apart for remark in log.remarks)
    alone = [point for point in log.points if apart or point.ranks == 1]
    if not alone:
        return []
    case = (alone[0].collective, alone[0].ranks, alone[0].nodes)
    # The times have no meaning, so they are counted as lost entirely.
    misses = [_Miss(point.bytes, point.seconds, point.seconds, lost=1.0) for point in alone]
    why = "ran in several processes that did not know each other" if apart else "was measured, so nothing was sent"
    return _finding("not-connected", case, log.label, misses, why, CONNECT)


def _cliffs(log: Log, tolerance: float) -> list[Finding]:
    found = []
    for case, curve in _curves(log.points).items():
        sizes = sorted(size for size in curve if size)
        jumps, dips = _jumps(curve, sizes, tolerance), _dips(curve, sizes, tolerance)
        falls = case[2] > 1 and any(miss.ratio > _FALL for miss in jumps)
        advice = (_CLIFF_NETWORK if falls else _CLIFF_GPU) if log.of_gpus else _CLIFF_MPI
        words = "takes {ratio:.2f} x the time per byte of {by} at {size}"
        found += _finding("cliff", case, log.label, jumps, words, advice)
        words = "takes {ratio:.2f} x as long at {size} as at {by}"
        found += _finding("cliff", case, log.label, dips, words, _DIP)
    return found


def _jumps(curve: Curve, sizes: Sequence[int], tolerance: float) -> list[_Miss]:
    """Returns the sizes whose time per byte exceeds that of a smaller size, beyond the tolerance."""
    misses, best = [], None
    for size in sizes:
        if best is not None:
            expected = curve[best] * size / best
            if _is_longer(curve[size], expected, tolerance):
                misses.append(_Miss(size, curve[size], expected, by=size_text(best)))
        if best is None or curve[size] / size < curve[best] / best:
            best = size
    return misses


def _dips(curve: Curve, sizes: Sequence[int], tolerance: float) -> list[_Miss]:
    """Returns the sizes that take longer than a larger size, beyond a tolerance of at least `_SHORT_TOLERANCE`."""
    misses, least = [], None
    for size in reversed(sizes):
        if least is not None and curve[size] > curve[least] * (1 + max(tolerance, _SHORT_TOLERANCE)):
            misses.append(_Miss(size, curve[size], curve[least], by=size_text(least)))
        if least is None or curve[size] < curve[least]:
            least = size
    return misses


def _repeats(log: Log, tolerance: float) -> list[Finding]:
    """Finds sizes whose times in one log differ beyond the tolerance, which is at least `_SHORT_TOLERANCE`."""
    times: dict[_Case, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for point in log.points:
        times[point.collective, point.ranks, point.nodes][point.bytes].append(point.seconds)
    found = []
    for case, by_size in times.items():
        misses = [
            _Miss(size, max(of), min(of))
            for size, of in by_size.items()
            if max(of) > min(of) * (1 + max(tolerance, _SHORT_TOLERANCE))
        ]
        words = "takes up to {ratio:.2f} x its own least time at {size}"
        found += _finding("spread", case, log.label, misses, words, _REPEAT)
    return found


def _guidelines(logs: Sequence[Log], tolerance: float) -> list[Finding]:
    """Finds collectives that break a guideline; the guideline about halves of a vector counts as a cliff instead."""
    groups: dict[tuple[_Case, str], list[_Miss]] = defaultdict(list)
    for of in violations((point for log in logs for point in log.points), tolerance)[0]:
        if HALVES not in of.guideline and _is_longer(of.seconds, of.other_seconds, tolerance):
            case = (of.collective, of.ranks, of.nodes)
            groups[case, of.guideline].append(_Miss(of.bytes, of.seconds, of.other_seconds, by=of.guideline))
    found = []
    for (case, _), misses in groups.items():
        label = logs[0].label if len(logs) == 1 else "all logs"
        advice = _GUIDELINE_GPU if all(log.of_gpus for log in logs) else _GUIDELINE_MPI
        words = "breaks {by} by {ratio:.2f} x at {size}"
        found += _finding("guideline", case, label, misses, words, advice)
    return found


def _spreads(logs: Sequence[Log], tolerance: float) -> list[Finding]:
    """Finds logs with times that are longer, beyond the tolerance, than the lower quartile of all logs at that size."""
    cells: dict[tuple[_Case, int], dict[str, float]] = defaultdict(dict)
    for log in logs:
        for case, curve in _curves(log.points).items():
            for size, seconds in curve.items():
                cells[case, size][log.label] = seconds
    groups: dict[tuple[str, _Case], list[_Miss]] = defaultdict(list)
    common: Counter[tuple[str, _Case]] = Counter()
    for (case, size), times in cells.items():
        # The lower quartile is compared, because the least of many times may be an outlier, and the median may be slow
        # if more than half of the logs are.
        usual = sorted(times.values())[(len(times) - 1) // 4]
        for label, seconds in times.items():
            common[label, case] += len(times) > 1
            if _is_longer(seconds, usual, tolerance):
                groups[label, case].append(_Miss(size, seconds, usual))
    found = []
    for (label, case), misses in groups.items():
        only = _only_in(logs, {of for of, at in groups if at == case}, case)
        words = f"takes up to {{ratio:.2f}} x the time of other logs at {{sizes}} of {common[label, case]}, "
        words += "most at {size}"
        found += _finding("spread", case, label, misses, words, f"check {only}" if only else _SPREAD)
    return found


def _against_machine(log: Log, expected: Mapping[Key, Expected], tolerance: float) -> list[Finding]:
    slow: dict[_Case, list[_Miss]] = defaultdict(list)
    fast: dict[_Case, list[_Miss]] = defaultdict(list)
    wrong: dict[tuple[_Case, str], list[_Miss]] = defaultdict(list)
    for point in log.points:
        if (of := expected.get(key_of(point))) is None:
            continue
        case, allowed = (point.collective, point.ranks, point.nodes), 1 + max(tolerance, of.error)
        if of.ceiling is not None and point.seconds < of.ceiling * (1 - _CEILING_ROUNDED):
            fast[case].append(_Miss(point.bytes, point.seconds, of.ceiling, of.ceiling))
        if point.seconds > of.seconds * allowed:
            slow[case].append(_Miss(point.bytes, point.seconds, of.seconds, of.ceiling))
        used, better, advice = _choices(point.collective, of, log.remarks)
        if used and better and min(used.seconds, point.seconds) > better.seconds * allowed:
            names = f"{used.name}, where {better.name} is quicker"
            wrong[case, advice].append(_Miss(point.bytes, point.seconds, better.seconds, of.ceiling, by=names))
    found = []
    for case, misses in slow.items():
        words = "takes up to {ratio:.2f} x the expected time at {sizes}, most at {size}{rates}"
        advice = _SLOW_GPU if log.of_gpus else _SLOW_MPI
        if median(miss.ratio for miss in misses) > _OTHER:
            advice = f"the machine may be another one, or {advice}"
        found += _finding("below-expectation", case, log.label, misses, words, advice)
    for case, misses in fast.items():
        words = "is faster than the links of the machine allow at {size}"
        found += _finding("faster-than-possible", case, log.label, misses, words, _FAST)
    for (case, advice), misses in wrong.items():
        words = "uses {by} at {size}"
        found += _finding("algorithm", case, log.label, misses, words, advice)
    return found


def _choices(
    collective: str, expected: Expected, remarks: Sequence[Remark]
) -> tuple[Choice | None, Choice | None, str]:
    """Returns the library's choice under its settings, the best choice, and the setting for the best choice.

    Both choices are None if the log's settings permit no algorithm. Fitted times are compared only with other fitted
    times, because the library's own estimates are often shorter than measured times. If the library's own choice has no
    fitted time, it is the best choice, because the library minimizes its own estimates.
    """
    if expected.advice:
        return expected.choices[0], expected.choices[-1], expected.advice
    settings: dict[str, list[Remark]] = defaultdict(list)
    for remark in remarks:
        if remark.lists and remark.concerns(collective):
            settings[remark.variable].append(remark)

    def permits(variable: str, name: str) -> bool:
        return variable not in settings or any(of.permits(collective, name) for of in settings[variable])

    permitted = [
        one
        for one in expected.choices
        if permits("NCCL_ALGO", one.algorithm.replace("_", "")) and permits("NCCL_PROTO", one.protocol)
    ]
    if not permitted:
        return None, None, ""
    own, used = expected.choices[0], permitted[0]
    fitted = [one for one in expected.choices if one.is_fitted]
    best = min(fitted, key=lambda one: one.seconds) if own.is_fitted else own
    if used != own:
        return used, best, f"unset {' and '.join(sorted(settings))}"
    algorithm = best.algorithm.replace("_", "")
    return (
        used,
        best,
        f"set NCCL_ALGO={algorithm} NCCL_PROTO={best.protocol}, or write a tuner file ('plan --for nccl')",
    )


def _rates(collective: str, ranks: int, miss: _Miss) -> str:
    """Formats the measured and the expected bus bandwidth in brackets.

    The text is empty for less than 1 MiB, and for a collective without bus bandwidth.
    """
    rates = _core.bandwidths(collective, ranks, 1, 1.0)
    if not rates["busbw"] or not rates["algbw"] or miss.bytes < 1 << 20:
        return ""
    # A size is that of all blocks together, as for algbw.
    share = 1e-9 * miss.bytes * rates["busbw"] / rates["algbw"]
    return f" ({share / miss.measured:.1f} instead of {share / miss.expected:.1f} GB/s of busbw)"


def _only_in(logs: Sequence[Log], slow: Set[str], case: _Case) -> str:
    """Returns the names of at most `_HOSTS` hosts that occur only in slow logs of a case, the most frequent host first.

    The text is empty without such hosts, or if no other log of the case names hosts.
    """
    with_case = [log for log in logs if case in _curves(log.points)]
    quick = {host for log in with_case if log.label not in slow for host in log.hosts}
    count = Counter(host for log in with_case if log.label in slow for host in log.hosts - quick)
    most = count.most_common(_HOSTS)
    many = [f"{host} (in {times} of {len(slow)})" for host, times in most]
    return f"the hosts that only slow logs have: {', '.join(many)}" if quick and many else ""


def sentences(logs: Sequence[Log], found: Sequence[Finding], most: int) -> list[str]:
    """Returns sentences about the ``most`` costliest findings, with the first cause in the log.

    Each kind and case has at most one sentence.
    """
    shown = {log.label: log.remarks for log in logs}
    groups: dict[tuple[str, str, int, int], list[Finding]] = {}
    for of in found:
        groups.setdefault((of.kind, of.collective, of.ranks, of.nodes), []).append(of)
    made = []
    for first, *others in list(groups.values())[:most]:
        of_kind = first.kind in ("below-expectation", "cliff", "spread")
        causes = (
            of for of in shown.get(first.log, ()) if of_kind and not of.is_apart and of.concerns(first.collective)
        )
        cause = next(causes, None)
        advice = first.advice if cause is None else f"{cause.words}: {cause.advice}"
        labels = [label for label in dict.fromkeys(of.log for of in others) if label != first.log]
        also = f" (and {', '.join(labels[:_HOSTS])})" if labels else ""
        made.append(f"{first.words}{also}; {advice}")
    return made
