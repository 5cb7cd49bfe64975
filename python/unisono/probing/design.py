"""Sets of messages that load every link and distinguish slow links.

The messages of a set are sent at the same time. No accelerator sends or receives two messages of a set, and no link
gets more than its rate, so each message takes as long as it would alone, unless one of its links is slow. Messages with
a single route come first. Links that no such message uses, such as links between the switches of a fat tree, are loaded
by messages whose packets take several routes.

A set has about as many messages as there are accelerators, and a message splits each group of links that could not be
distinguished into used and unused links. So the number of sets grows with the logarithm of the number of links.
"""

import numpy as np

from unisono.probing.networks import Floats, Ints, Routes

__all__ = ["classes", "design"]

#: A link counts as fully loaded if a set gives it at least this fraction of the highest load on the link in any set.
FULL = 0.75
#: Each link should be fully loaded in at least this number of sets.
_TIMES = 3
#: A search stops after `_IDLE` successive sets that neither load nor distinguish more links, and after `_MOST` sets.
#: There are two searches: among messages of a single route, and then among messages over the links that the first
#: search leaves.
_IDLE, _MOST = 2, 24


def classes(routes: Routes, seed: int = 0) -> Ints:
    """Returns a number for each link: links with equal numbers carry equal fractions of the same messages."""
    drawn = np.random.default_rng(seed).integers(1, 2**62, len(routes.pairs))
    keys = np.zeros(len(routes.links.gbps), dtype=np.uint64)
    # Integer sums that wrap around do not depend on the order of additions, unlike floating-point sums.
    parts = drawn[routes.message].astype(np.uint64) * np.rint(routes.share * 2**20).astype(np.uint64)
    np.add.at(keys, routes.link, parts)
    return np.unique(keys, return_inverse=True)[1].reshape(-1).astype(np.int64)


def design(candidates: Routes, seed: int = 0) -> list[Routes]:
    """Returns sets of messages that load and distinguish links as far as the candidate messages allow."""
    every = np.arange(len(candidates.pairs))
    single = candidates.subset(every[candidates.is_single])
    found = _sets(single, np.ones(len(candidates.links.gbps), dtype=bool), seed)
    covered = np.zeros(len(candidates.links.gbps), dtype=bool)
    for routes in found:
        covered[routes.link] = True
    left = np.zeros_like(covered)
    left[candidates.link] = True
    left &= ~covered
    if left.any():
        several = np.unique(candidates.message[left[candidates.link]])
        found += _sets(candidates.subset(several), left, seed)
    return found


def _sets(pool: Routes, wanted: "np.typing.NDArray[np.bool_]", seed: int) -> list[Routes]:
    if not pool.pairs:
        return []
    random = np.random.default_rng(seed)
    usable = np.zeros(len(wanted), dtype=bool)
    usable[pool.link] = True
    usable &= wanted
    finest = _count(classes(pool), usable)
    highest, times = np.zeros(len(wanted)), np.zeros(len(wanted), dtype=np.int64)
    sets: list[Routes] = []
    idle = 0
    apart = np.zeros(len(wanted), dtype=np.int64)
    while len(sets) < _MOST and idle < _IDLE:
        if not (usable & (times < _TIMES)).any() and _count(apart, usable) >= finest:
            break
        need = usable * 2.0 * (times < _TIMES)
        needed = np.bincount(pool.message, weights=need[pool.link] * pool.share, minlength=len(pool.pairs))
        made = _packed(pool, needed + 0.5 * _splits(pool, apart, usable), random)
        load = made.of_link(made.load)
        before = (times.clip(max=_TIMES).sum(), _count(apart, usable))
        higher = load > highest / FULL + 1e-9
        times[higher] = 0
        highest = np.maximum(highest, load)
        times += load >= FULL * highest - 1e-12
        times[highest == 0] = 0
        sets.append(made)
        apart = classes(_joined(sets))
        idle = 0 if (times.clip(max=_TIMES).sum(), _count(apart, usable)) > before else idle + 1
    return sets


def _splits(pool: Routes, apart: Ints, usable: "np.typing.NDArray[np.bool_]") -> Floats:
    """Counts for each message the groups of undistinguished links of which the message uses some, but not all."""
    entries = np.flatnonzero(usable[pool.link])
    groups = int(apart.max()) + 1
    sizes = np.bincount(apart[usable], minlength=groups)
    keys, counts = np.unique(pool.message[entries] * groups + apart[pool.link[entries]], return_counts=True)
    splits = keys[counts < sizes[keys % groups]] // groups
    return np.bincount(splits, minlength=len(pool.pairs)).astype(np.float64)


def _packed(pool: Routes, needed: Floats, random: np.random.Generator) -> Routes:
    """Returns messages that can be sent at the same time.

    They are chosen in descending order of need, which is varied at random by up to a quarter. Messages with need 0 are
    added too, because they give evidence and do not lengthen the set.
    """
    score = (needed + 1e-6) * random.uniform(0.75, 1.25, len(needed))
    room = np.ones(len(pool.links.gbps)) + 1e-9
    sends, receives = set(), set()
    chosen = []
    for k in np.argsort(-score, kind="stable").tolist():
        a, b = pool.pairs[k]
        if a in sends or b in receives:
            continue
        entries = slice(pool.at[k], pool.at[k + 1])
        link, load = pool.link[entries], pool.load[entries]
        if (room[link] < load).any():
            continue
        room[link] -= load
        sends.add(a)
        receives.add(b)
        chosen.append(k)
    return pool.subset(chosen)


def _joined(sets: list[Routes]) -> Routes:
    """Returns the messages of all sets as one list."""
    first = sets[0]
    ends = np.cumsum([0, *(len(of.link) for of in sets)])
    at = np.concatenate([*(of.at[:-1] + end for of, end in zip(sets, ends[:-1], strict=True)), ends[-1:]])
    return Routes(
        first.links,
        [pair for of in sets for pair in of.pairs],
        np.concatenate([of.link for of in sets]),
        np.concatenate([of.share for of in sets]),
        at,
    )


def _count(apart: Ints, of: "np.typing.NDArray[np.bool_]") -> int:
    return len(np.unique(apart[of]))
