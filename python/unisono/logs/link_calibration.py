"""Writes measured rates and latencies of links into a machine file.

Each measured rate becomes a fraction (``share``) of the data sheet's rate of the cables on its path:

- a direct cable between two GPUs gets the rate of the slower direction; the cable from a GPU to a switch gets the
  largest rate that any pair with this GPU reached;
- cables with equal rates in the data sheet get the median of their fractions; a cable that deviates further keeps its
  own rate;
- the cables of a network interface, outside and inside the box, get the median fraction of the interfaces of the same
  kind.

The rate of a copy engine replaces the rate that kernels reach only if it is lower. A latency is divided among the
cables of its path in proportion to their latencies in the file. The least time of a log is used, because lower bounds
use latencies too.
"""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from unisono._core import InputError, Machine
from unisono.logs.links import Interface, LinkLog, Pair, Profile
from unisono.machines.descriptions import machine as described

__all__ = ["Compared", "with_links", "with_share"]

#: If a rate deviates by more than this fraction from the rates of links that are equal in the file, it belongs to
#: another kind of link.
_ALIKE = 0.25
#: The relative deviation from the median up to which a fraction is replaced by the median.
_SAME = 0.03
#: A rate that exceeds the data sheet by at most this fraction is taken as equal to the data sheet, because logs are
#: rounded.
_ROUNDED = 0.005
_KINDS = ("graph", "boxes")


@dataclass(frozen=True)
class Compared:
    """A measured rate or latency, and the value of the fitted machine."""

    of: str
    #: The unit of both values: ``gbps`` or ``ns``.
    unit: str
    measured: float
    predicted: float

    @property
    def error(self) -> float:
        """Returns the relative error of the machine: predicted / measured - 1."""
        return self.predicted / self.measured - 1


@dataclass(eq=False)
class _Cable:
    """A line of the machine file: equal cables between two nodes.

    ``sheet`` is the data sheet's rate of one cable in Gb/s; ``share`` is the measured rate divided by ``sheet``; None
    if there is no measurement.
    """

    key: str
    ends: tuple[int, int]
    words: dict[str, str]
    sheet: float
    share: float | None
    ns: float
    #: True if ``share`` comes from copies by kernels.
    by_kernels: bool = False

    @property
    def rate(self) -> float:
        """Returns the rate of all cables of the line together, by the data sheet, in Gb/s."""
        return self.sheet * int(self.words.get("count", "1"))

    def line(self, table: dict[str, Any], own: float) -> str:
        """Returns the line for the file, without values that equal those of the whole machine."""
        words = dict(self.words)
        if self.share is not None:
            words["measured"] = f"{self.share * self.sheet:.6g}"
            if "gbps" not in words and "measured" not in self.words and float(words["measured"]) == float(f"{own:.6g}"):
                del words["measured"]
        if "ns" in words or f"{self.ns:.6g}" != f"{table['link_latency_ns']:.6g}":
            words["ns"] = f"{self.ns:.6g}"
        return " ".join([*map(str, self.ends), *(f"{key}={value}" if value else key for key, value in words.items())])


class _Network:
    """The cables of a machine.

    ``within`` are the cables inside a box; ``doors`` has, for each network interface, its cables to the outside and to
    the inside of the box.
    """

    def __init__(self, machine: Machine) -> None:
        self.table = machine.describe()
        topology = self.table.get("topology", {})
        if topology.get("name") not in _KINDS or self.table.get("planes") != 1:
            raise InputError(
                f"{machine.name} has no list of cables of one plane; rates of links are fitted on "
                "servers and clusters of them, as dgx-a100 or dgx-h100-x8"
            )
        self.name, self.gpus = machine.name, topology["accelerators"]
        self.cables = [
            self._cable(key, line)
            for key in ("edges", "inside", "uplinks", "outside")
            for line in topology.get(key, "").splitlines()
            if line.strip()
        ]
        uplinks = [cable for cable in self.cables if cable.key == "uplinks"]
        doors = {cable.ends[0] for cable in uplinks}
        self.within = [cable for cable in self.cables if cable.key in ("edges", "inside") and not {*cable.ends} & doors]
        #: For each uplink: the uplink itself, and the cables of the same rate that lead to its interface inside the
        #: box.
        self.doors = [
            [up, *(c for c in self.cables if c.key == "inside" and up.ends[0] in c.ends and c.sheet == up.sheet)]
            for up in uplinks
        ]

    def _cable(self, key: str, line: str) -> _Cable:
        words = line.split()
        given = {word.partition("=")[0]: word.partition("=")[2] for word in words[2:]}
        sheet = float(given.get("gbps", self.table["link_gbps"]))
        own = self.table.get("measured_gbps") if "gbps" not in given else None
        measured = given.get("measured", own)
        ns = float(given.get("ns", self.table["link_latency_ns"]))
        return _Cable(
            key, (int(words[0]), int(words[1])), given, sheet, None if measured is None else float(measured) / sheet, ns
        )

    def way(self, pair: tuple[int, int]) -> list[list[_Cable]]:
        """Returns the path between two GPUs as one or two steps, each a list of parallel lines of cables.

        Without a direct cable, the path crosses the switch with the highest rate. The path is empty if no switch joins
        the GPUs.
        """
        between: dict[tuple[int, int], list[_Cable]] = {}
        for cable in self.within:
            between.setdefault((min(cable.ends), max(cable.ends)), []).append(cable)
        direct = between.get((min(pair), max(pair)))
        if direct:
            return [direct]
        middles = {node for ends in between for node in ends if node >= self.gpus}
        ways = [
            [between[min(end, node), max(end, node)] for end in pair]
            for node in middles
            if all((min(end, node), max(end, node)) in between for end in pair)
        ]
        return max(ways, key=lambda way: min(_rate(step) for step in way), default=[])

    def made(self) -> Machine:
        """Returns the machine with the fitted rates and latencies of its cables."""
        table, topology = dict(self.table), dict(self.table["topology"])
        plain = [cable for cable in self.cables if "gbps" not in cable.words and "measured" not in cable.words]
        shares = [cable.share for cable in plain if cable.share is not None]
        if shares and len(shares) == len(plain):
            table["measured_gbps"] = float(f"{statistics.mode(shares) * table['link_gbps']:.6g}")
        latencies = {cable.ns for cable in self.cables if "ns" not in cable.words}
        if len(latencies) == 1:
            table["link_latency_ns"] = float(f"{latencies.pop():.6g}")
        own = table.get("measured_gbps", 0.0)
        for key in {cable.key for cable in self.cables}:
            topology[key] = "".join(f"{cable.line(table, own)}\n" for cable in self.cables if cable.key == key)
        return described({**table, "topology": topology})


def _rate(step: Iterable[_Cable]) -> float:
    return sum(cable.rate for cable in step)


def with_share(machine: Machine, share: float | None) -> Machine:
    """Returns the machine with every cable at a fraction of its data sheet's rate; None: at the full rate."""
    table = machine.describe()
    if table.get("topology", {}).get("name") not in _KINDS:
        rates = {} if share is None else {"measured_gbps": float(f"{share * table['link_gbps']:.6g}")}
        return described({**{key: value for key, value in table.items() if key != "measured_gbps"}, **rates})
    network = _Network(machine)
    network.table.pop("measured_gbps", None)
    for cable in network.cables:
        cable.share = share
        cable.words.pop("measured", None)
    return network.made()


def with_latency(machine: Machine, ns: float) -> Machine:
    """Returns the machine with ``ns`` nanoseconds added to a cable for each of its ends that is an accelerator.

    Raises:
        InputError: the machine has no list of cables.

    """
    network = _Network(machine)
    for cable in network.cables:
        cable.ns += ns * sum(end < network.gpus for end in cable.ends)
    return network.made()


def with_links(machine: Machine, logs: Sequence[LinkLog]) -> tuple[Machine, list[Compared], list[str]]:
    """Returns the machine with the rates and latencies of logs, a comparison of both, and sentences about the logs.

    Raises:
        InputError: the machine has no list of cables, or has none of the measured cables.

    """
    network = _Network(machine)
    notes = [note for log in logs for note in log.notes]
    compared: list[Compared] = []
    if pairs := [pair for log in logs for pair in log.pairs]:
        compared += _fit_pairs(network, pairs, notes)
    if interfaces := [one for log in logs for one in log.interfaces]:
        compared += _fit_interfaces(network, interfaces, notes)
    for log in logs:
        if log.profile is not None:
            compared += _fit_profile(network, log.profile, log.origin, notes)
    if not compared:
        raise InputError(f"no figure is of a cable of {machine.name}: {notes[-1]}")
    return network.made(), compared, notes


def _fit_pairs(network: _Network, pairs: Sequence[Pair], notes: list[str]) -> list[Compared]:
    """Sets the rates of cables between GPUs, and returns the comparison."""
    ways: dict[tuple[int, int], list[list[_Cable]]] = {}
    kept, absent, fast = [], [], []
    for pair in pairs:
        ends = (min(pair.source, pair.target), max(pair.source, pair.target))
        if ends not in ways:
            ways[ends] = network.way(ends) if ends[1] < network.gpus else []
        if not ways[ends]:
            absent.append(ends)
        elif pair.gbps > (1 + _ROUNDED) * min(map(_rate, ways[ends])):
            fast.append((pair, min(map(_rate, ways[ends]))))
        else:
            kept.append((pair, ends))
    if absent:
        notes.append(
            f"{network.name} has no cable of {len(absent)} pairs, as {absent[0][0]} and {absent[0][1]}, neither direct "
            "nor over one switch; their rates are left out"
        )
    if fast:
        pair, sheet = fast[0]
        notes.append(
            f"{len(fast)} rates are above the data sheet and are left out, as {pair.gbps / 8:.1f} GB/s from GPU "
            f"{pair.source} to {pair.target}, where {network.name} has {sheet / 8:.1f}: check the unit of the log "
            "(GB/s) and of link_gbps (Gb/s)"
        )
    compared = []
    for by_kernels in (True, False):
        of = [(pair, ends) for pair, ends in kept if pair.by_kernels == by_kernels]
        shares = _fit_kind(network, [(pair, ways[ends]) for pair, ends in of], by_kernels, notes)
        for pair, ends in of:
            reached = [sum(cable.rate * shares[id(cable)] for cable in step) for step in ways[ends]]
            named = f"{'kernels' if by_kernels else 'copies'} from GPU {pair.source} to {pair.target}"
            compared.append(Compared(named, "gbps", pair.gbps, min(reached)))
    return compared


def _fit_kind(
    network: _Network, rates: Sequence[tuple[Pair, list[list[_Cable]]]], by_kernels: bool, notes: list[str]
) -> dict[int, float]:
    """Sets the rates that kernels or copy engines reached; returns the fractions of all cables that they crossed.

    A rate of copies does not replace a rate of kernels, or a lower measured rate.
    """
    slowest: dict[int, dict[frozenset[int], float]] = {}
    for pair, way in rates:
        for step in way:
            share = min(1.0, pair.gbps / _rate(step))
            for cable in step:
                # If both directions of a pair were measured, the slower direction is used.
                of, ends = slowest.setdefault(id(cable), {}), frozenset((pair.source, pair.target))
                of[ends] = min(share, of.get(ends, 1.0))
    shares = {key: max(of.values()) for key, of in slowest.items()}
    for sheet in sorted({cable.sheet for cable in network.within if id(cable) in shares}, reverse=True):
        like = [cable for cable in network.within if cable.sheet == sheet]
        crossed = [cable for cable in like if id(cable) in shares]
        middle = statistics.median(shares[id(cable)] for cable in crossed)
        for cable in crossed:
            if abs(shares[id(cable)] - middle) <= _SAME * middle:
                shares[id(cable)] = middle
            else:
                notes.append(
                    f"the cable {cable.ends[0]} {cable.ends[1]} reaches {shares[id(cable)] * cable.rate / 8:.1f} GB/s, "
                    f"and its like {middle * cable.rate / 8:.1f}"
                )
        kept, lowered = 0, 0
        for cable in like:
            share = shares.get(id(cable), middle)
            if not by_kernels and cable.share is not None:
                if cable.by_kernels or cable.share <= share:
                    kept += 1
                    continue
                lowered += 1
            cable.share, cable.by_kernels = share, by_kernels
        if not by_kernels:
            _note_copies(notes, sheet, middle, kept, lowered, len(like))
    return shares


def _note_copies(notes: list[str], sheet: float, share: float, kept: int, lowered: int, count: int) -> None:
    reached = f"copies reach {share * sheet / 8:.1f} of {sheet / 8:.1f} GB/s"
    if kept:
        notes.append(f"{reached}; {kept} of {count} cables keep the measured rate of the machine, which is of kernels")
    if lowered:
        notes.append(f"{reached}, less than the measured rate of the machine; written to {lowered} of {count} cables")
    if kept + lowered < count:
        notes.append(
            f"{reached}; written to {count - kept - lowered} of {count} cables, which had no measured rate; kernels "
            "may reach less, as NCCL 80 GB/s on A100 where copies reach 94"
        )


def _fit_interfaces(network: _Network, interfaces: Sequence[Interface], notes: list[str]) -> list[Compared]:
    """Sets the rates and the latency of the cables of network interfaces, and returns the comparison."""
    if not network.doors:
        raise InputError(
            f"{network.name} has no interfaces, and a log measures one; name "
            + (network.table.get("cluster") or 'a file of several boxes with their network ([topology] name = "boxes")')
        )
    best: dict[str, float] = {}
    for one in interfaces:
        if one.gbps is not None:
            best[one.device] = max(one.gbps, best.get(one.device, 0.0))
    sheets = sorted({door[0].rate for door in network.doors})
    of_sheet: dict[float, dict[str, float]] = {}
    for device, gbps in best.items():
        sheet = next((rate for rate in sheets if gbps <= (1 + _ROUNDED) * rate), None)
        if sheet is None:
            notes.append(
                f"{device} reaches {gbps:.1f} Gb/s, above the {sheets[-1]:g} of the data sheet in {network.name}, and "
                "is left out: check the unit, and gbps of the machine"
            )
        else:
            of_sheet.setdefault(sheet, {})[device] = gbps
    compared = []
    for sheet, rates in of_sheet.items():
        least = (1 - _ALIKE) * max(rates.values())
        middle = statistics.median(gbps for gbps in rates.values() if gbps >= least)
        for device, gbps in rates.items():
            compared.append(Compared(device, "gbps", gbps, middle))
            if gbps < least:
                notes.append(
                    f"{device} reaches {gbps:.1f} Gb/s, and its like {middle:.1f}, and is left out: another interface, "
                    "or a link at a part of its width"
                )
        if middle < (1 - _ALIKE) * sheet:
            notes.append(f"interfaces reach {middle:.1f} of {sheet:g} Gb/s: look for a link at a part of its width")
        for cable in (cable for door in network.doors if door[0].rate == sheet for cable in door):
            cable.share = min(1.0, middle / sheet)
    if times := {one.device: one.latency_ns for one in interfaces if one.latency_ns is not None}:
        middle = statistics.median(times.values())
        _write_latency(network, middle)
        compared += [Compared(device, "ns", ns, middle) for device, ns in times.items()]
        notes += [
            f"{device} takes {ns / 1000:.2f} µs one way, and its like {middle / 1000:.2f}"
            for device, ns in times.items()
            if abs(ns - middle) > _ALIKE * middle
        ]
    return compared


def _write_latency(network: _Network, one_way_ns: float) -> None:
    """Divides a latency among the cables from a GPU to the next box, in proportion to their latencies."""
    before = {id(cable): cable.ns for door in network.doors for cable in door}
    for door in network.doors:
        # The path crosses an inner cable and an uplink in both boxes; several inner cables are parallel.
        total = 2 * sum(before[id(cable)] for cable in door[:2])
        for cable in door:
            cable.ns = one_way_ns * before[id(cable)] / total if total else one_way_ns / (2 * len(door[:2]))


def _fit_profile(network: _Network, profile: Profile, origin: str, notes: list[str]) -> list[Compared]:
    """Sets the links of a profile of TACCL, whose times may be scaled by a common power of ten."""
    ways = [network.way((a, b)) for b in range(network.gpus) for a in range(b)]
    steps = [step for way in ways for step in way]
    sheets = sorted({_rate(step) for step in steps}, reverse=True)
    if len(sheets) != len(profile.betas):
        raise InputError(
            f"{origin} has {len(profile.betas)} rates of links inside a box, and {network.name} has {len(sheets)}; "
            "name the machine that was measured"
        )
    bits = 8e-3 * profile.size
    factor = next((10**at for at in range(4) if bits * 10**at / profile.betas[0] > 0.1 * sheets[0]), 1)
    rates = [bits * factor / beta for beta in profile.betas]
    if any(not 0.1 < rate / sheet <= 1 + _ROUNDED for rate, sheet in zip(rates, sheets, strict=True)):
        raise InputError(
            f"{origin}: {profile.betas[0]:g} µs for {profile.size} bytes are {bits / profile.betas[0] / 8:.3g} GB/s, "
            f"and links of {network.name} have {sheets[0] / 8:g}; the name states another size or machine"
        )
    if factor > 1:
        notes.append(f"{origin}: times are taken as {factor} times those of the links, as TACCL's guide permits")
    shares = {sheet: min(1.0, rate / sheet) for rate, sheet in zip(rates, sheets, strict=True)}
    for step in steps:
        for cable in step:
            cable.share = shares[_rate(step)]
    alpha = 1e3 * profile.alpha / factor
    for cable in network.within:
        cable.ns = alpha / min(len(way) for way in ways if way)
    compared = [
        Compared(f"{origin}, beta {beta:g}", "gbps", rate, shares[sheet] * sheet)
        for beta, rate, sheet in zip(profile.betas, rates, sheets, strict=True)
    ]
    compared.append(Compared(f"{origin}, alpha", "ns", alpha, alpha))
    if profile.remote is not None and network.doors:
        beta, remote = profile.remote
        between = Interface(f"{origin}, remote", bits * factor / beta, 1e3 * remote / factor)
        return compared + _fit_interfaces(network, [between], notes)
    if profile.remote is not None:
        notes.append(f"{origin}: {network.name} has no cables between boxes; the remote values are left out")
    return compared
