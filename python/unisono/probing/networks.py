"""The links of a network and the routes of messages between its accelerators.

A link is one direction of a cable, numbered as in one plane of the machine. Planes are equal, and every message is
split evenly among planes, so links, rates and loads here are those of one plane.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from unisono import _core
from unisono._core import InputError, Machine

__all__ = ["Floats", "Links", "Pairs", "Routes"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
#: Messages of one set: the sender and the receiver of each.
Pairs = list[tuple[int, int]]


class Links:
    """The links of one plane."""

    def __init__(self, machine: Machine) -> None:
        if "links" not in machine.offers:
            raise InputError(
                f"{machine.name} is of kind {machine.kind}, and a probe needs the cables of a network: a preset such "
                "as dgx-h100, or a file with kind = \"network\", as 'unisono machines import' writes it"
            )
        found = _core.plane(machine)
        there, back = found["there"].astype(np.int64), found["back"].astype(np.int64)
        count = 2 * len(there)
        self.machine = machine
        self.accelerators = int(found["accelerators"])
        #: The two nodes of each link: from, to.
        self.ends: Ints = np.zeros((count, 2), dtype=np.int64)
        #: The rate of each link in Gb/s.
        self.gbps: Floats = np.zeros(count)
        #: The cable number of each link; all equal cables between the same nodes have the number of the first such
        #: cable.
        self.cable: Ints = np.zeros(count, dtype=np.int64)
        ends = np.stack([found["a"], found["b"]], axis=1).astype(np.int64)
        self.ends[there], self.ends[back] = ends, ends[:, ::-1]
        self.gbps[there] = self.gbps[back] = found["gbps"]
        _, first, number = np.unique(np.sort(ends, axis=1), axis=0, return_index=True, return_inverse=True)
        self.cable[there] = self.cable[back] = first[number.reshape(-1)]
        self._cable_ends = ends
        self._latency_ns = np.zeros(count)
        self._latency_ns[there] = self._latency_ns[back] = found["latency_ns"]

    @cached_property
    def cables(self) -> Ints:
        """Returns the numbers of all cables."""
        return np.unique(self.cable)

    def name(self, cable: int) -> str:
        """Returns the name of a cable, in the form that `--fail` takes."""
        a, b = sorted(self._cable_ends[cable].tolist())
        return f"{a}-{b}"

    def of_cable(self, cable: int) -> Ints:
        """Returns the links of a cable, both directions."""
        return np.flatnonzero(self.cable == cable)

    def named(self, name: str) -> Ints:
        """Returns the links of the cable with that name.

        Raises:
            InputError: no cable has the name.

        """
        parts = name.split("-")
        wanted = sorted(int(part) for part in parts) if len(parts) == 2 and all(map(str.isdecimal, parts)) else None
        found = np.flatnonzero((np.sort(self.ends, axis=1) == wanted).all(axis=1)) if wanted else np.zeros(0, np.int64)
        if not len(found):
            raise InputError(
                f"'{name}' is no cable of {self.machine.name}; accepted is A-B, the numbers of the two nodes that it "
                f"joins, as {self.name(int(self.cables[0]))}"
            )
        return found

    @cached_property
    def suggested_bytes(self) -> int:
        """Returns the bytes of a message whose time depends mostly on rates: a power of two, 2^18 to 2^24."""
        facts = self.machine.topology or {}
        own = self.machine.describe()
        hop_ns = float(self._latency_ns.max()) + float(own.get("input_latency_ns", 0) + own.get("output_latency_ns", 0))
        planes = int(facts.get("working_planes", 1))
        bytes_per_ns = float(self.gbps.max()) / 8 * planes
        wanted = 2 * bytes_per_ns * hop_ns * int(facts.get("diameter", 2))
        # A message needs many packets, because adaptive routing does not spread a few packets evenly.
        wanted = max(wanted, _PACKETS * planes * float(own["packet_bytes"]))
        return int(2 ** min(max(np.ceil(np.log2(wanted)), 18), 24))


@dataclass
class Routes:
    """Messages and their routes: message k puts the fractions `share` on the links `link[at[k] : at[k + 1]]`."""

    links: Links
    pairs: Pairs
    link: Ints
    share: Floats
    at: Ints

    @classmethod
    def of(cls, links: Links, pairs: Pairs) -> "Routes":
        """Returns the routes of the messages between these pairs."""
        found = _core.message_routes(links.machine, pairs)
        at = np.cumsum([0, *map(len, found)])
        flat = [part for route in found for part in route]
        link = np.array([part[0] for part in flat], dtype=np.int64)
        return cls(links, pairs, link, np.array([part[1] for part in flat], dtype=np.float64), at)

    @classmethod
    def candidates(cls, links: Links, ranks: int) -> "Routes":
        """Lists messages among the first ranks: between all pairs, or at some distances of ranks if there are many.

        In regular networks, the numbers of neighbors differ by a small number or a power of two.
        """
        if ranks <= _ALL_PAIRS:
            pairs = [(a, b) for a in range(ranks) for b in range(ranks) if a != b]
        else:
            steps = sorted({3, *(2**k for k in range((ranks - 1).bit_length()))})
            around = ((a, (a + d) % ranks) for a in range(ranks) for step in steps for d in (-step, step))
            pairs = [*dict.fromkeys(around)]
        return cls.of(links, pairs)

    @cached_property
    def message(self) -> Ints:
        """Returns the message index of each entry of `link`."""
        return np.repeat(np.arange(len(self.pairs)), np.diff(self.at))

    @cached_property
    def rate(self) -> Floats:
        """Returns the rate in Gb/s, in one plane, that each message reaches alone, limited by its slowest link."""
        return np.minimum.reduceat(self.links.gbps[self.link] / self.share, self.at[:-1])

    @cached_property
    def is_single(self) -> npt.NDArray[np.bool_]:
        """Returns for each message whether all its packets take the same route."""
        return np.minimum.reduceat(self.share, self.at[:-1]) > 1 - 1e-9

    @cached_property
    def load(self) -> Floats:
        """Returns for each entry of `link` the fraction of the link's rate that the message uses."""
        return self.rate[self.message] * self.share / self.links.gbps[self.link]

    def of_link(self, values: Floats) -> Floats:
        """Returns for each link the sum of ``values``, which has a value for each entry of `link`."""
        return np.bincount(self.link, weights=values, minlength=len(self.links.gbps)).astype(np.float64)

    def subset(self, messages: Sequence[int] | Ints) -> "Routes":
        """Returns the routes of some of the messages."""
        parts = [np.arange(self.at[k], self.at[k + 1]) for k in messages]
        entries = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
        at = np.cumsum([0, *map(len, parts)])
        return Routes(self.links, [self.pairs[k] for k in messages], self.link[entries], self.share[entries], at)


#: The smallest number of packets in one plane of a message of the suggested size, unless this size would exceed 2^24.
_PACKETS = 32
#: Up to this number of ranks, messages between all pairs are candidates.
_ALL_PAIRS = 64
