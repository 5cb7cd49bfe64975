"""Links that explain slow messages.

The time of a message is that of the slowest of its links, so a slow message accuses all of its links, and a set of
messages that together load a link and arrive in time acquits it. Of the links that are left, as few as possible have to
explain all slow messages. (Times are a maximum over links and not a sum, so no least squares of sums fit here.)

Measured times are compared with those of the packet simulator on the machine without slow links. Their common factor,
the quotient of most messages, is that of the protocol or of an emulated cluster, and drops out. A message is slow by
the spread of these quotients, and by not less than a quarter.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from unisono.probing.design import FULL
from unisono.probing.networks import Floats, Ints, Routes

__all__ = ["Evidence", "Suspect", "accuse"]

#: A message is slow from this multiple of its expected time on, if the spread is small.
_LEAST_CUT, _HIGHEST_CUT = 1.25, 2.5
#: Deviations of the spread.
_DEVIATIONS = 6.0
#: The quantile of all quotients that counts as undisturbed: no more than three quarters of the messages may be slow.
_USUAL = 0.25


@dataclass
class Evidence:
    """The measurements of sets."""

    sets: list[Routes]
    #: Seconds of each message without slow links.
    expected: list[Floats]
    #: Seconds measured, a row a round.
    measured: list[Floats]
    #: The measured time of most messages as a multiple of the expected one, and the multiple that is slow beyond it.
    factor: float = field(init=False)
    cut: float = field(init=False)

    def __post_init__(self) -> None:
        logs = np.log(np.concatenate([m.min(axis=0) / e for m, e in zip(self.measured, self.expected, strict=True)]))
        usual = float(np.quantile(logs, _USUAL))
        # Noise and slow links both lengthen times, so the spread is taken below the usual quotient and a little above.
        near = np.abs(logs[logs < usual + np.log(_LEAST_CUT)] - usual)
        spread = 1.4826 * float(np.median(near)) if len(near) else 0.0
        self.factor = float(np.exp(usual))
        self.cut = float(np.clip(np.exp(_DEVIATIONS * spread), _LEAST_CUT, _HIGHEST_CUT))

    def ratios(self, of: int) -> Floats:
        """Returns for each message of a set the multiple of its expected time: the least of all rounds."""
        least: Floats = self.measured[of].min(axis=0)
        return least / (self.expected[of] * self.factor)

    def slow(self, of: int) -> "np.typing.NDArray[np.bool_]":
        """Returns whether each message of a set is slow."""
        slow: np.typing.NDArray[np.bool_] = self.ratios(of) > self.cut
        return slow

    def add(self, of: int, measured: Floats) -> None:
        """Adds rounds of a set."""
        self.measured[of] = np.concatenate([self.measured[of], measured])

    def unexplained_share(self, cables: Sequence[int]) -> float:
        """Returns how often a message of one round without any of these cables is slow, never 0."""
        slow, count = 1.0, 2.0
        for routes, expected, measured in zip(self.sets, self.expected, self.measured, strict=True):
            touched = np.zeros(len(routes.pairs), dtype=bool)
            touched[routes.message[np.isin(routes.links.cable[routes.link], cables)]] = True
            is_slow = measured[:, ~touched] > self.cut * self.factor * expected[~touched]
            slow, count = slow + is_slow.sum(), count + is_slow.size
        return slow / count


@dataclass
class Suspect:
    """Cables of which one explains slow messages; no message crosses only a part of them."""

    cables: list[int]
    #: Slow messages that it explains, by their numbers in each set, and messages that it may have made slow.
    slow: dict[int, list[int]]
    seen: int
    confidence: float = 0.0

    @property
    def count(self) -> int:
        """Returns the number of slow messages."""
        return sum(map(len, self.slow.values()))


def accuse(evidence: Evidence) -> tuple[list[Suspect], int, Floats]:
    """Returns the fewest cables that explain the slow messages, the number of those left unexplained, and rates.

    The rates are for each link the part of its own that messages reached over it, 0 without messages.
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
    # Slow messages have numbers; each cable has the numbers of those that it may explain.
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
    """Sets confidences: that no noise made all messages of a suspect slow, and that it is this one of its cables."""
    accused = [cable for suspect in suspects for cable in suspect.cables]
    chance = evidence.unexplained_share(accused)
    for suspect in suspects:
        rounds = max(len(evidence.measured[at]) for at in suspect.slow)
        by_noise = min(1.0, links * chance ** (rounds * min(suspect.count, 8)))
        suspect.confidence = (1 - by_noise) / len(suspect.cables)
