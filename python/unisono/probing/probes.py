"""The probe of a network: measures sets of messages, repeats those with slow messages, and accuses cables."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unisono._core import InputError, Machine
from unisono.probing.design import design
from unisono.probing.inference import Evidence, Suspect, accuse
from unisono.probing.measuring import Measurer, Simulated
from unisono.probing.networks import Floats, Links, Pairs, Routes

__all__ = ["MessageSets", "Probe", "SlowCable", "check_rounds", "probe_sets"]


@dataclass(frozen=True)
class SlowCable:
    """A slow cable, or several cables one of which is slow."""

    #: The names of the cables, in the form that `--fail` takes.
    cables: list[str]
    #: The rate in Gb/s with which the first cable makes simulated messages as slow as measured ones.
    rate: float
    #: The rate in Gb/s of the first cable if it is not slow: the machine's rate divided by ``Probe.factor``.
    expected: float
    #: The probability, from 0 to 1, that the first cable of the list is the slow one.
    confidence: float
    #: The number of slow messages explained.
    slow: int
    #: The number of messages over the first cable, in a direction that may be slow.
    seen: int


@dataclass
class Probe:
    """The result of a probe."""

    machine: str
    ranks: int
    bytes: int
    rounds: int
    sets: int
    messages: int
    #: The usual quotient of a measured time and the time simulated without slow cables.
    factor: float
    #: A message is slow if its time is more than `cut * factor` times the simulated time.
    cut: float
    accused: list[SlowCable]
    #: Nodes with several tested cables, each of which is accused without an alternative.
    nodes: list[int]
    #: Cables that no message between the ranks uses.
    untested: list[str]
    notes: list[str] = field(default_factory=list)
    #: All cables: ``link``, ``expected`` in Gb/s, and ``reached``, a lower limit of the rate (the measured rate for an
    #: accused cable, None without messages).
    cables: list[dict[str, Any]] = field(default_factory=list)
    #: The description of the network, from which :func:`unisono.view` draws it.
    description: dict[str, Any] = field(default_factory=dict)

    def report(self) -> dict[str, Any]:
        """Returns the result as a dictionary for JSON."""
        links = [
            {
                "link": of.cables[0],
                "or": of.cables[1:],
                "rate": of.rate,
                "expected": of.expected,
                "confidence": of.confidence,
                "slow": of.slow,
                "seen": of.seen,
            }
            for of in self.accused
        ]
        return {**vars(self), "accused": len(self.accused), "links": links}


class MessageSets:
    """The sets of messages for the first ranks of a machine, and the simulated times without slow links."""

    def __init__(
        self,
        machine: Machine,
        ranks: int | None = None,
        bytes: int | None = None,
        seed: int = 0,
        pairs: list[Pairs] | None = None,
    ) -> None:
        """Designs the sets, or takes the sets in ``pairs``; ``bytes`` is the size of a message.

        Raises:
            InputError: the machine is not a network, there are too many or too few ranks, or ``bytes`` is out of range.

        """
        self.links = Links(machine)
        most = self.links.accelerators
        self.ranks = most if ranks is None else ranks
        if not 2 <= self.ranks <= most:
            raise InputError(
                f"{machine.name} has {most} accelerators, and this is a probe of {self.ranks} ranks; accepted are 2 to "
                f"{most}, rank k on accelerator k"
            )
        self.bytes = self.links.suggested_bytes if bytes is None else bytes
        if not 1 <= self.bytes < 2**31:
            raise InputError(f"a message has {self.bytes} bytes; accepted are 1 to 2^31 - 1")
        self.healthy = Simulated(self.links)
        if pairs is None:
            self.sets = design(Routes.candidates(self.links, self.ranks), seed)
        else:
            self.sets = [Routes.of(self.links, of) for of in pairs]
        self.expected = [self.healthy.run(of.pairs, self.bytes)[0] for of in self.sets]


def check_rounds(rounds: int) -> None:
    """Refuses a wrong number of rounds.

    Raises:
        InputError: the number is below 1 or too large.

    """
    if not 1 <= rounds <= _MOST_ROUNDS:
        raise InputError(f"the number of rounds is {rounds}; accepted are 1 to {_MOST_ROUNDS}")


def probe_sets(
    sets: MessageSets, measurer: Measurer, rounds: int = 3, on_step: Callable[[int, int], None] | None = None
) -> Probe:
    """Measures the sets, and returns the cables that are slow.

    Sets with slow messages are measured again before a cable is accused. ``on_step`` is called with the number of
    finished steps, and with their total, 2.

    Raises:
        InputError: the number of rounds is wrong.

    """
    check_rounds(rounds)
    step = on_step or (lambda _done, _all: None)
    step(0, 2)
    measured = measurer.measure([of.pairs for of in sets.sets], sets.bytes, rounds)
    evidence = Evidence(sets.sets, sets.expected, measured)
    step(1, 2)
    again = [at for at in range(len(sets.sets)) if evidence.slow(at).any()]
    if again:
        for at, times in zip(
            again, measurer.measure([sets.sets[at].pairs for at in again], sets.bytes, rounds), strict=True
        ):
            evidence.add(at, times)
    suspects, left, reached = accuse(evidence)
    step(2, 2)
    found = _found(sets, evidence, suspects, left, rounds)
    found.cables = _cables(sets, found, reached)
    # Simulated times contain no costs of hosts. A large factor therefore means that most cables are slow.
    if isinstance(measurer, Simulated) and evidence.factor >= evidence.cut:
        found.notes.append(
            f"most messages take {evidence.factor:.3g} times as long as expected, so most cables may be slow; the "
            "others are compared with them"
        )
    return found


#: The largest accepted number of rounds.
_MOST_ROUNDS = 1000
#: The upper limit of confidences: finitely many messages prove nothing.
_MOST_CONFIDENCE = 0.999
#: The smallest reported fraction of a cable's rate, and the bisection steps that find it within 1 %.
_LEAST_SHARE, _HALVINGS = 1e-3, 9
#: If the quotient of measured and simulated times is at least this value, or at most its inverse, a note states that
#: the scales differ.
_OTHER_SCALE = 3.0


def _share(sets: MessageSets, evidence: Evidence, suspect: Suspect) -> float:
    """Returns the fraction of its rate at which a suspect's first cable makes messages as slow as measured.

    Only the first set with slow messages of the suspect is used. The fraction is found by bisection of its logarithm;
    the packet simulator computes the times for each fraction.
    """
    at, slow = next(iter(suspect.slow.items()))
    pairs, expected = evidence.sets[at].pairs, evidence.expected[at][slow]
    measured = float(np.median(evidence.ratios(at)[slow]))
    low, high = _LEAST_SHARE, 1.0
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        seconds, _ = Simulated(sets.links, {sets.links.name(suspect.cables[0]): middle}).run(pairs, sets.bytes)
        if np.median(seconds[slow] / expected) > measured:
            low = middle
        else:
            high = middle
    return math.sqrt(low * high)


def _found(sets: MessageSets, evidence: Evidence, suspects: list[Suspect], left: int, rounds: int) -> Probe:
    links = sets.links
    accused = []
    for of in suspects:
        expected = float(links.gbps[links.of_cable(of.cables[0])[0]]) / evidence.factor
        confidence = float(min(of.confidence, _MOST_CONFIDENCE))
        names = [links.name(cable) for cable in of.cables]
        accused.append(SlowCable(names, _share(sets, evidence, of) * expected, expected, confidence, of.count, of.seen))
    tested = np.zeros(len(links.gbps), dtype=bool)
    for routes in sets.sets:
        tested[routes.link] = True
    untested = [links.name(int(cable)) for cable in links.cables if not tested[links.of_cable(int(cable))].any()]
    notes = []
    if sets.bytes < links.suggested_bytes:
        notes.append(
            f"messages of {sets.bytes} bytes are short, so latencies may hide a slow cable; accepted without this note "
            f"are --bytes from {links.suggested_bytes} on"
        )
    if not 1 / _OTHER_SCALE < evidence.factor < _OTHER_SCALE:
        notes.append(
            f"most messages take {evidence.factor:.3g} times as long as on {links.machine.name}; cables are compared "
            "with each other"
        )
    if left:
        notes.append(
            f"slow messages that no cable explains, as others over the same cables are in time: {left}; other work is "
            "the likely cause, and more --rounds tell"
        )
    notes += [_doubt(evidence, of) for of in suspects if len(of.cables) > 1]
    return Probe(
        machine=links.machine.name,
        ranks=sets.ranks,
        bytes=sets.bytes,
        rounds=rounds,
        sets=len(sets.sets),
        messages=sum(len(of.pairs) for of in sets.sets),
        factor=evidence.factor,
        cut=evidence.cut,
        accused=accused,
        nodes=_nodes(sets, suspects, tested),
        untested=untested,
        notes=notes,
        description=links.machine.describe(),
    )


def _cables(sets: MessageSets, found: Probe, reached: Floats) -> list[dict[str, Any]]:
    """Returns the rates of all cables, in the order of their numbers."""
    links = sets.links
    slow = {name: of.rate for of in found.accused for name in of.cables}
    untested = set(found.untested)
    rows = []
    for cable in links.cables.tolist():
        name, own = links.name(cable), links.of_cable(cable)
        expected = float(links.gbps[own[0]]) / found.factor
        # A direction without messages has no measured rate.
        part = min((float(one) for one in reached[own] if one > 0), default=0.0)
        rate = slow.get(name, min(part, 1.0) * expected)
        rows.append({"link": name, "expected": expected, "reached": None if name in untested else rate})
    return rows


def _doubt(evidence: Evidence, suspect: Suspect) -> str:
    """Returns a sentence on cables that the probe cannot distinguish, and on ways to find the slow cable."""
    links = evidence.sets[0].links
    cables = [links.name(cable) for cable in suspect.cables]
    ends = set.intersection(*(set(cable.split("-")) for cable in cables))
    shared = f" (all end at node {ends.pop()})" if ends else ""
    names = f"{' or '.join(cables[:4])}{f' or {len(cables) - 4} others' if len(cables) > 4 else ''}"
    at, slow = next(iter(suspect.slow.items()))
    if evidence.sets[at].is_single[slow].all():
        return (
            f"cable {names}{shared}: the same messages cross all of them; to settle it, swap cable {cables[0]} "
            "with one of another place and probe again"
        )
    return (
        f"cable {names}{shared}: the switches choose among them for each packet, so that no message is bound to one; "
        "to settle it, read the counters of their ports, or take one down and probe again"
    )


def _nodes(sets: MessageSets, suspects: list[Suspect], tested: "np.typing.NDArray[np.bool_]") -> list[int]:
    """Returns the nodes with several tested cables, each of which is accused without an alternative."""
    links = sets.links
    guilty = {cable for of in suspects for cable in of.cables if len(of.cables) == 1}
    found = []
    for node in np.unique(links.ends).tolist():
        own = {int(links.cable[link]) for link in np.flatnonzero((links.ends[:, 0] == node) & tested)}
        if len(own) > 1 and own <= guilty:
            found.append(node)
    return found
