"""A network machine at rates that this computer carries.

All rates are divided, and all latencies multiplied, by one factor. So the
bytes that a link carries during its latency stay the same, and costs keep their ratios; the time of the processors
between messages shrinks beside them.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from unisono._core import InputError, Machine, plane
from unisono.base.names import did_you_mean

__all__ = ["MOST_FACTOR", "MOST_HOSTS", "Cable", "Network", "scaled"]

#: The most hosts of a lab: namespaces of one computer.
MOST_HOSTS = 64
#: Mbit/s of all hosts together, and of one, that the fabric carries with a fifth of a core.
_MBIT_OF_ALL, _MBIT_OF_ONE = 800.0, 100.0
#: The most times the least factor that may be asked for: slower cables do not carry the headers of TCP in time.
MOST_FACTOR = 1000
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
        """The name by which users fail it."""
        return f"{self.a}-{self.b}"


@dataclass(frozen=True)
class Network:
    """Hosts, switches and cables as the fabric has them."""

    machine: str
    hosts: tuple[str, ...]
    switches: tuple[str, ...]
    #: Rates are divided and latencies multiplied by it.
    scale: float
    cables: tuple[Cable, ...]

    def text(self) -> str:
        """The topology as the fabric reads it."""
        lines = [f"host {name}" for name in self.hosts] + [f"switch {name}" for name in self.switches]
        lines += [f"cable {c.a} {c.b} {c.mbit!r} {c.latency_us!r} {_BUFFER}" for c in self.cables]
        return "".join(f"{line}\n" for line in lines)

    def mbit_of(self, host: str) -> float:
        """The rate at which a host sends at most."""
        return sum(cable.mbit for cable in self.cables if host in (cable.a, cable.b))

    def cable(self, name: str) -> Cable:
        """The cable of a name, ``c0-s8``, or of the numbers of its nodes, ``0-8``; in either direction.

        Raises:
            InputError: there is none; the message has the nearest name.

        """
        known = {alias: cable for cable in self.cables for alias in _aliases(cable)}
        if name not in known:
            names = [cable.name for cable in self.cables]
            near = did_you_mean(name, names) or f"; the first is {names[0]}"
            raise InputError(f"'{name}' is no cable of {self.machine}{near}; 'unisono lab stats' lists all")
        return known[name]

    def slowed(self, shares: Mapping[str, float]) -> "Network":
        """The network with these cables at a share of their rates, and all others as they are.

        Raises:
            InputError: a cable does not exist, or a share is not above 0 and at most 1.

        """
        found = {self.cable(name): share for name, share in shares.items()}
        for cable, share in found.items():
            if not 0 < share <= 1:
                raise InputError(f"cable {cable.name} has {share} of its rate; accepted is a number above 0, at most 1")
        cables = tuple(replace(cable, mbit=cable.mbit * found.get(cable, 1.0)) for cable in self.cables)
        return replace(self, cables=cables)

    def report(self) -> dict[str, object]:
        """The network as JSON keeps it; :meth:`of_report` reads it."""
        return asdict(self)

    @classmethod
    def of_report(cls, report: dict[str, object]) -> "Network":
        """The network of a report."""
        values: dict[str, object] = {**report}
        listed = values.pop("cables")
        assert isinstance(listed, Sequence)
        for key in ("hosts", "switches"):
            values[key] = tuple(values[key])  # type: ignore[arg-type]
        return cls(cables=tuple(Cable(**cable) for cable in listed), **values)  # type: ignore[arg-type]


def _aliases(cable: Cable) -> list[str]:
    numbers = cable.a[1:], cable.b[1:]
    return [f"{a}-{b}" for a, b in ((cable.a, cable.b), (cable.b, cable.a), numbers, numbers[::-1])]


def scaled(machine: Machine, asked: float | None = None) -> Network:
    """The network of a machine: accelerator i as host ``ci``, switch j as ``sj``, by the numbers of its nodes.

    The planes of a machine are one, at their joined rate, and so are parallel cables. The factor is the one that is
    asked for, or else has two digits, and is 1 where this computer carries the machine's own rates.

    Raises:
        InputError: the machine is no network, or has too many accelerators, or the factor is below the least one.

    """
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
    names = [f"c{node}" if node < hosts else f"s{node}" for node in range(found["nodes"])]
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
    """The next number with two digits."""
    unit = 10.0 ** (math.floor(math.log10(scale)) - 1)
    return round(math.ceil(scale / unit - 1e-9) * unit, 6)
