"""Links that explain slow messages.

The slowest link of a message determines its time. A slow message therefore makes all of its links suspects. A set
clears a link if the set's messages together fully load the link and are not slow. The result is a small number of
suspects that explain the slow messages. They are chosen greedily: each time, the suspect that explains most of the
messages that are not yet explained. (The time is a maximum of links and not a sum, so least squares do not apply.)

Measured times are divided by the times of the packet simulator on the machine without slow links. The usual quotient is
an effect of the protocol or of an emulated cluster, and the quotients are divided by it. The limit for a slow message
depends on the spread of these quotients, and is at least a quarter above the usual quotient.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from unisono.probing.design import FULL
from unisono.probing.networks import Floats, Ints, Routes

__all__ = ["Evidence", "Suspect", "accuse"]

#: The minimum and the maximum of the limit above which a message is slow, as multiples of the product of its expected
#: time and the usual quotient.
_LEAST_CUT, _HIGHEST_CUT = 1.25, 2.5
#: The number of standard deviations above the usual quotient from which a message is slow.
_DEVIATIONS = 6.0
#: The quantile of all quotients that is taken as the usual quotient, so up to three quarters of the messages may be
#: slow.
_USUAL = 0.25


@dataclass
class Evidence:
    """The expected and measured times of sets of messages."""

    sets: list[Routes]
    #: For each set, the seconds of its messages without slow links.
    expected: list[Floats]
    #: For each set, measured seconds: a row per round.
    measured: list[Floats]
    #: The usual quotient of measured and expected time.
    factor: float = field(init=False)
    #: A message is slow above `cut * factor` times the expected time.
    cut: float = field(init=False)

    def __post_init__(self) -> None:
        logs = np.log(np.concatenate([m.min(axis=0) / e for m, e in zip(self.measured, self.expected, strict=True)]))
        usual = float(np.quantile(logs, _USUAL))
        # Noise and slow links both lengthen times. The spread is therefore computed from quotients below the usual
        # quotient or slightly above it.
        near = np.abs(logs[logs < usual + np.log(_LEAST_CUT)] - usual)
        spread = 1.4826 * float(np.median(near)) if len(near) else 0.0
        self.factor = float(np.exp(usual))
        self.cut = float(np.clip(np.exp(_DEVIATIONS * spread), _LEAST_CUT, _HIGHEST_CUT))

    def ratios(self, of: int) -> Floats:
        """Returns for each message of a set its least measured time, divided by `factor` and by the expected time."""
        least: Floats = self.measured[of].min(axis=0)
        return least / (self.expected[of] * self.factor)

    def slow(self, of: int) -> "np.typing.NDArray[np.bool_]":
        """Returns whether each message of a set is slow."""
        slow: np.typing.NDArray[np.bool_] = self.ratios(of) > self.cut
        return slow

    def add(self, of: int, measured: Floats) -> None:
        """Adds measured rounds to a set."""
        self.measured[of] = np.concatenate([self.measured[of], measured])

    def unexplained_share(self, cables: Sequence[int]) -> float:
        """Returns the fraction of measurements that are slow, among messages that use none of these cables.

        One slow measurement and one other are added, so that the fraction is above 0.
        """
        slow, count = 1.0, 2.0
        for routes, expected, measured in zip(self.sets, self.expected, self.measured, strict=True):
            touched = np.zeros(len(routes.pairs), dtype=bool)
            touched[routes.message[np.isin(routes.links.cable[routes.link], cables)]] = True
            is_slow = measured[:, ~touched] > self.cut * self.factor * expected[~touched]
            slow, count = slow + is_slow.sum(), count + is_slow.size
        return slow / count


@dataclass
class Suspect:
    """Cables of which one explains slow messages. Each of these cables could explain the same messages."""

    cables: list[int]
    #: The slow messages that the suspect explains: by set, the indices of messages.
    slow: dict[int, list[int]]
    #: The number of messages over the first cable, in a direction that may be slow.
    seen: int
    confidence: float = 0.0

    @property
    def count(self) -> int:
        """Returns the number of slow messages that the suspect explains."""
        return sum(map(len, self.slow.values()))


def accuse(evidence: Evidence) -> tuple[list[Suspect], int, Floats]:
    """Returns a small number of suspects that explain the slow messages, the number of unexplained messages, and rates.

    The rates are, for each link, the largest fraction of its usual rate that a set reached; 0 without messages.
    """
    links = evidence.sets[0].links
    count = len(links.gbps)
    loads = [of.of_link(of.load) for of in evidence.sets]
    highest = np.max(loads, axis=0)
    reached = np.zeros(count)
    for at, (routes, load) in enumerate(zip(evidence.sets, loads, strict=True)):
        carried = routes.of_link(routes.load / np.maximum(evidence.ratios(at), 1e-9)[routes.message])
        full = (load >= FULL * highest) & (load > 0)
        reached[full] = np.maximum(reached[full], carried[full] / load[full])
    doubted = (highest > 0) & (reached < 1 / evidence.cut)
    # Slow messages are numbered across all sets; `explains` maps a cable to the slow messages that it may explain.
    offset = np.cumsum([0, *(len(of.pairs) for of in evidence.sets)])
    explains: dict[int, set[int]] = {}
    left: set[int] = set()
    for at, routes in enumerate(evidence.sets):
        slow = evidence.slow(at)
        left |= set((np.flatnonzero(slow) + offset[at]).tolist())
        entries = np.flatnonzero(slow[routes.message] & doubted[routes.link])
        numbers = (routes.message[entries] + offset[at]).tolist()
        for cable, number in zip(links.cable[routes.link[entries]].tolist(), numbers, strict=True):
            explains.setdefault(cable, set()).add(number)
    suspects = []
    while left:
        most = max((len(numbers & left) for numbers in explains.values()), default=0)
        if most == 0:
            break
        best = [cable for cable, numbers in explains.items() if len(numbers & left) == most]
        first = explains[best[0]] & left
        alike = sorted(cable for cable in best if explains[cable] & left == first)
        suspects.append(_suspect(evidence, alike, sorted(first), offset, doubted))
        left -= first
    _judge(evidence, suspects, count)
    return suspects, len(left), reached


def _suspect(
    evidence: Evidence, cables: list[int], slow: list[int], offset: Ints, doubted: "np.typing.NDArray[np.bool_]"
) -> Suspect:
    cable_of = evidence.sets[0].links.cable
    seen = 0
    of_sets: dict[int, list[int]] = {}
    for at, routes in enumerate(evidence.sets):
        through = (cable_of[routes.link] == cables[0]) & doubted[routes.link]
        seen += len(np.unique(routes.message[through]))
        mine = [number - int(offset[at]) for number in slow if offset[at] <= number < offset[at + 1]]
        if mine:
            of_sets[at] = mine
    return Suspect(cables, of_sets, seen)


def _judge(evidence: Evidence, suspects: list[Suspect], links: int) -> None:
    """Sets confidences: the probability that noise did not cause the slow messages, divided by the number of cables."""
    accused = [cable for suspect in suspects for cable in suspect.cables]
    chance = evidence.unexplained_share(accused)
    for suspect in suspects:
        rounds = max(len(evidence.measured[at]) for at in suspect.slow)
        by_noise = min(1.0, links * chance ** (rounds * min(suspect.count, 8)))
        suspect.confidence = (1 - by_noise) / len(suspect.cables)
