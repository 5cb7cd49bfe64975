"""A network machine, slowed down to rates that this computer can carry.

All rates are divided, and all latencies multiplied, by one factor. The bytes that a link carries during its latency
therefore stay the same, and so do the ratios of costs. Computation between messages is not slowed down.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from unisono._core import InputError, Machine, part_names, plane
from unisono.base.names import did_you_mean
from unisono.machines.hosts import without_ranks

__all__ = ["MOST_FACTOR", "MOST_HOSTS", "Cable", "Network", "scaled"]

#: The largest number of hosts of a lab.
MOST_HOSTS = 64
#: Two rates in Mbit/s: of all hosts together, and of one host. The fabric, the program that carries packets, needs a
#: fifth of a core for them.
_MBIT_OF_ALL, _MBIT_OF_ONE = 800.0, 100.0
#: The limit of a requested factor, as a multiple of the least factor. With slower cables, TCP headers would be delayed
#: too long.
MOST_FACTOR = 1000
#: The pattern of names of hosts that cables and scripts can use.
_HOST_NAME = re.compile("[A-Za-z][A-Za-z0-9-]{0,62}")
#: Bytes that a port holds before it drops packets.
_BUFFER = 2_000_000


@dataclass(frozen=True)
class Cable:
    """A cable between two nodes, equal in both directions."""

    a: str
    b: str
    mbit: float
    latency_us: float

    @property
    def name(self) -> str:
        """Returns the cable's name in commands."""
        return f"{self.a}-{self.b}"


@dataclass(frozen=True)
class Network:
    """The hosts, switches and cables of the emulated network."""

    machine: str
    hosts: tuple[str, ...]
    switches: tuple[str, ...]
    #: The factor by which rates are divided and latencies multiplied.
    scale: float
    cables: tuple[Cable, ...]

    def text(self) -> str:
        """Returns the topology in the text form that the fabric reads."""
        lines = [f"host {name}" for name in self.hosts] + [f"switch {name}" for name in self.switches]
        lines += [f"cable {c.a} {c.b} {c.mbit!r} {c.latency_us!r} {_BUFFER}" for c in self.cables]
        return "".join(f"{line}\n" for line in lines)

    @property
    def nap_ns(self) -> int:
        """The minimum time, in ns, that a rank sleeps between two polls.

        It is a fifth of the least latency of a cable, but 50 to 150 us. A poll needs some microseconds of a core, which
        all ranks share. Longer sleeps would disturb the times of short messages.
        """
        least = min((cable.latency_us for cable in self.cables), default=0.0)
        return round(1000 * min(max(least / 5, 50.0), 150.0))

    def mbit_of(self, host: str) -> float:
        """Returns the greatest rate at which a host sends, in Mbit/s."""
        return sum(cable.mbit for cable in self.cables if host in (cable.a, cable.b))

    def cable(self, name: str) -> Cable:
        """Returns the cable with a name, ``c0-s8``, or with numbers of nodes, ``0-8``; in either direction.

        If the machine states names of nodes, this method accepts both these names and names such as ``c0`` and ``s8``.

        Raises:
            InputError: there is no such cable; the message has the nearest name, or the first.

        """
        nodes = [*self.hosts, *self.switches]
        # If the stated name of one node equals the name that another node has by its number, the stated name takes
        # precedence.
        of_nodes = [list(map(str, range(len(nodes)))), [_name(at, len(self.hosts)) for at in range(len(nodes))], nodes]
        known: dict[str, Cable] = {}
        for names in of_nodes:
            called = dict(zip(nodes, names, strict=True))
            for cable in self.cables:
                a, b = called[cable.a], called[cable.b]
                known |= {f"{a}-{b}": cable, f"{b}-{a}": cable}
        if name not in known:
            names = [cable.name for cable in self.cables]
            near = did_you_mean(name, names) or f"; the first is {names[0]}"
            raise InputError(f"'{name}' is no cable of {self.machine}{near}; 'unisono lab stats' lists all")
        return known[name]

    def slowed(self, shares: Mapping[str, float]) -> "Network":
        """Returns the network with the named cables at a fraction of their rates.

        Raises:
            InputError: a cable does not exist, or a fraction is not above 0 and at most 1.

        """
        found = {self.cable(name): share for name, share in shares.items()}
        for cable, share in found.items():
            if not 0 < share <= 1:
                raise InputError(f"cable {cable.name} has {share} of its rate; accepted is a number above 0, at most 1")
        cables = tuple(replace(cable, mbit=cable.mbit * found.get(cable, 1.0)) for cable in self.cables)
        return replace(self, cables=cables)

    def report(self) -> dict[str, object]:
        """Returns the network as a dictionary for JSON; :meth:`of_report` reads it."""
        return asdict(self)

    @classmethod
    def of_report(cls, report: dict[str, object]) -> "Network":
        """Returns the network that :meth:`report` described."""
        values: dict[str, object] = {**report}
        listed = values.pop("cables")
        assert isinstance(listed, Sequence)
        for key in ("hosts", "switches"):
            values[key] = tuple(values[key])  # type: ignore[arg-type]
        return cls(cables=tuple(Cable(**cable) for cable in listed), **values)  # type: ignore[arg-type]


def _name(node: int, hosts: int) -> str:
    return f"{'c' if node < hosts else 's'}{node}"


def _names(machine: Machine, nodes: int, hosts: int) -> list[str]:
    """Returns the names that the machine states, if all of them can be names of hosts.

    Otherwise the names are made from node numbers.
    """
    if "names" in machine.describe().get("topology", {}):
        stated = part_names(machine)
        is_distinct = len({"localhost", *map(str.lower, stated)}) == len(stated) + 1
        if is_distinct and all(map(_HOST_NAME.fullmatch, stated)):
            return stated
    return [_name(node, hosts) for node in range(nodes)]


def scaled(machine: Machine, asked: float | None = None) -> Network:
    """Returns the slowed network: accelerator i is host ``ci``, and the switch with node number j is ``sj``.

    If the machine states names of nodes, and all can be names of hosts, its nodes have these names.
    All planes are merged into one with the sum of their rates, and so are parallel cables, with their least latency.
    The factor is ``asked``, or else the least one, rounded up to two digits; 1 if this computer carries the machine's
    own rates.

    Raises:
        InputError: the machine is no network, has too few or too many accelerators or one without a cable, or the
            factor is outside its limits.

    """
    machine = without_ranks(machine)
    facts = machine.topology
    if facts is None:
        raise InputError(
            f"{machine.name} is of kind {machine.kind}, and a lab needs a network: a preset as dgx-h100, or a file "
            "with kind = \"network\" ('unisono machines import' writes one from a list of cables)"
        )
    hosts = int(facts["accelerators"])
    if not 2 <= hosts <= MOST_HOSTS:
        raise InputError(
            f"{machine.name} has {hosts} accelerators, and a lab has 2 to {MOST_HOSTS} hosts; name a smaller machine"
        )
    found = plane(machine)
    names = _names(machine, found["nodes"], hosts)
    rates: dict[tuple[int, int], float] = {}
    latencies: dict[tuple[int, int], float] = {}
    for a, b, gbps, ns in zip(*(found[key].tolist() for key in ("a", "b", "gbps", "latency_ns")), strict=True):
        ends = (min(a, b), max(a, b))
        rates[ends] = rates.get(ends, 0.0) + gbps * 1000 * facts["working_planes"]
        latencies[ends] = min(latencies.get(ends, math.inf), ns / 1000)
    own = [sum(rate for ends, rate in rates.items() if host in ends) for host in range(hosts)]
    if not min(own) > 0:
        raise InputError(f"accelerator {own.index(min(own))} of {machine.name} has no cable; a host needs one")
    least = _rounded(max(1.0, sum(own) / _MBIT_OF_ALL, max(own) / _MBIT_OF_ONE))
    scale = least if asked is None else asked
    if not least <= scale <= MOST_FACTOR * least:
        raise InputError(
            f"--scale is {scale:g}; accepted for {machine.name} is a number from {least:g}, with which this computer "
            f"carries its rates, to {MOST_FACTOR * least:g}"
        )
    cables = tuple(
        Cable(names[a], names[b], rate / scale, latencies[a, b] * scale) for (a, b), rate in sorted(rates.items())
    )
    return Network(machine.name, tuple(names[:hosts]), tuple(names[hosts:]), scale, cables)


def _rounded(scale: float) -> float:
    """Returns a number, rounded up to two significant digits."""
    unit = 10.0 ** (math.floor(math.log10(scale)) - 1)
    return round(math.ceil(scale / unit - 1e-9) * unit, 6)
