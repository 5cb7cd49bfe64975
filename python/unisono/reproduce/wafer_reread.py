"""Computes sentences of "Near-Optimal Wafer-Scale Reduce" (HPDC 2024) that other numbers of the text decide.

Among them are the errors that the paper's own gains imply, the printed formula of clocks, and trees that are faster by
Eq. 1 than the paper's best tree.
"""

import math
from collections.abc import Iterator
from typing import Any

from unisono import plan, simulate
from unisono.base.reports import in_cycles
from unisono.reproduce import Finding, Listed, checks_of, each
from unisono.reproduce import wafer_simulated as runs
from unisono.reproduce.wafer_formulas import FORMULAS, auto_gen, star_of_two_of_grid
from unisono.reproduce.wafer_terms import terms_of

__all__ = ["CHECKS"]

MACHINE = "wse2"
_STEP = 5


def _largest_gain(listed: Listed) -> Finding:
    """Computes the largest simulated gain of Auto-Gen over the chain on a row, or on a square, from its rows."""
    found = []
    for length in runs.LENGTHS:
        times = []
        for name in ("chain", "auto-gen"):
            if listed["square"]:
                row = runs.point("reduce", runs.ROW, length, name).simulated or math.nan
                flood = FORMULAS["broadcast-2d"](512, 512, length) if listed["collective"] == "allreduce" else 0
                times.append(2 * row + flood)
            else:
                times.append(runs.point(listed["collective"], runs.ROW, length, name).simulated or math.nan)
        found.append((times[0] / times[1], length))
    gain, length = max(found)
    return Finding(listed["reported"], gain, remark=f"At B = {length}.")


def _implied_error(listed: Listed) -> Finding:
    """Computes the least relative error of both times by which a predicted gain g can be m: (g - m) / (g + m)."""
    chain, best = (
        in_cycles(runs.planned(listed["collective"], 512, 1, name, {}).predicted) for name in ("chain", "auto-gen")
    )
    gain, measured = chain / best, listed["measured"]
    return Finding(
        listed["reported"], (gain - measured) / (gain + measured), remark=f"The predicted gain is {gain:.2f}."
    )


@each("shapes")
def _clock_spread(shape: Any, _: Listed) -> Any:
    """Computes the spread of the printed clocks of PEs that start simultaneously.

    The trigger reaches PE (i, j) i + j + 2 cycles after it is sent. T_R contains these cycles, so that
    T - (T_R + i + j + 2) subtracts them twice.
    """
    rows, columns = (1, *shape)[-2:]
    printed = [-(arrival + arrival) for arrival in (i + j + 2 for i in range(rows) for j in range(columns))]
    return max(printed) - min(printed)


def _pre_order_trees(pes: int) -> Iterator[list[int]]:
    """Yields the parents of all PEs, for every pre-order tree: a parent is the last PE or one of its ancestors."""

    def further(parents: list[int]) -> Iterator[list[int]]:
        if len(parents) == pes:
            yield parents
            return
        ancestor = len(parents) - 1
        while True:
            yield from further([*parents, ancestor])
            if ancestor == 0:
                return
            ancestor = parents[ancestor]

    yield from further([0])


def _eq_1_of_tree(parents: list[int], length: int) -> float:
    depth = [0] * len(parents)
    for pe in range(1, len(parents)):
        depth[pe] = depth[parents[pe]] + 1
    energy = sum(pe - parents[pe] for pe in range(1, len(parents)))
    contention = max(parents[1:].count(pe) for pe in range(len(parents)))
    others = len(parents) - 1
    return max(length * contention, length * energy / others + others) + _STEP * max(depth)


@each("points", "{}.")
def _auto_gen_over_trees(point: Any, _: Listed) -> tuple[Any, str]:
    """Divides Auto-Gen's time by its recursion by the least time by Eq. 1 of all pre-order trees, at every point."""
    pes, length = point
    best = min(_pre_order_trees(pes), key=lambda parents: _eq_1_of_tree(parents, length))
    text = f"parents {' '.join(map(str, best[1:]))}: {_eq_1_of_tree(best, length):.2f}"
    return auto_gen(pes, length) / _eq_1_of_tree(best, length), text


def _group_energy(listed: Listed) -> Finding:
    """Divides Two-Phase's energy with groups from the end by that with groups from the root: the largest quotient."""
    ratios = []
    for pes in range(2, listed["pes"] + 1):
        size = math.isqrt(pes)
        sizes = [size] * (pes // size) + ([pes % size] if pes % size else [])
        # A group of g PEs sends g - 1 hops, and its first PE sends to the first PE of the group before.
        energies = [sum(g - 1 for g in order) + sum(order[:-1]) for order in (sizes[::-1], sizes)]
        ratios.append(energies[0] / energies[1])
    remark = f"It is less on {sum(ratio < 1 for ratio in ratios)} of {len(ratios)} rows."
    return Finding(listed["reported"], max(ratios), remark=remark)


@each("points", "C over E / N + L: {}.", ", ")
def _contention_only(point: Any, listed: Listed) -> tuple[Any, str]:
    """Divides the simulated time of a pattern by C + 5 D, where the contention C is at least E / N + L."""
    pes, length = point
    terms = terms_of([pes, length], listed["algorithm"])
    way = terms["energy"] / terms["links"] + terms["distance"]
    simulated = runs.point("reduce", (pes,), length, listed["algorithm"]).simulated or math.nan
    return simulated / (terms["contention"] + _STEP * terms["depth"]), f"{terms['contention'] / way:.2f}"


def _ring_over_chain(listed: Listed) -> Finding:
    """Computes the least quotient of the ring's time and that of the best other fixed algorithm, by Eq. 1."""
    patterns = ["star", "tree", "two-phase", "chain", "ring"]
    times = runs.cycles("allreduce", [(pes,) for pes in listed["pes"]], listed["wavelets"], patterns)
    ratios = [by["ring"] / min(time for name, time in by.items() if name != "ring") for by in times]
    at = min(range(len(ratios)), key=ratios.__getitem__)
    return Finding(listed["reported"], ratios[at], remark=f"At B = {listed['wavelets'][at % len(listed['wavelets'])]}.")


def _compared_with_allreduce(listed: Listed) -> Finding:
    """Counts cells of Fig. 8, by Eq. 1, that have a property.

    With ``counted`` = ``same``, Reduce's best pattern is the best of the AllReduce's patterns too, apart from the ring;
    with ``faster``, one of the AllReduce's patterns beats the ring.
    """
    patterns, lengths = ["star", "tree", "two-phase", "chain"], [2**k for k in range(16)]
    same = faster = 0
    for pes in listed["pes"]:
        times = (
            runs.cycles(collective, [(pes,)], lengths, names)
            for collective, names in (("reduce", patterns), ("allreduce", [*patterns, "ring"]))
        )
        for reduce, allreduce in zip(*times, strict=True):
            ring = allreduce["ring"]
            direct = {name: cycles for name, cycles in allreduce.items() if name != "ring"}
            best = min(reduce, key=reduce.__getitem__)
            same += direct[best] <= min(direct.values()) * (1 + 1e-9)
            faster += min(direct.values()) < ring
    return Finding(listed["reported"], {"same": same, "faster": faster}[listed["counted"]])


@each("points")
def _ring_mappings(point: Any, _: Listed) -> Any:
    """Divides the simulated time of the ring with neighbors at most two PEs apart by that with one long link."""
    pes, length = point
    times = [
        simulate(
            plan("allreduce", MACHINE, shape=pes, elements=length, algorithm="ring", params=params).schedule
        ).cycles
        or math.nan
        for params in ({"mapping": "fold"}, None)
    ]
    return times[0] / times[1]


@each("wavelets")
def _star_of_two_of_grid(length: Any, listed: Listed) -> Any:
    """Divides the time of stars to two PEs of a grid by the least time of the patterns, by Eq. 1, at every length."""
    rows, columns = listed["shape"]
    (others,) = runs.cycles("allreduce", [(rows, columns)], [length], listed["algorithms"])
    return star_of_two_of_grid(rows, columns, length) / min(others.values())


@each("points")
def _packed(point: Any, listed: Listed) -> Any:
    """Divides the simulated cycles of 2 B elements of 16 bits by those of B elements of 32 bits, at every point."""
    *shape, length = point
    made = [
        plan(
            "reduce",
            MACHINE,
            shape=tuple(shape),
            elements=count,
            dtype=dtype,
            algorithm=listed["algorithm"],
            params={},
        )
        for count, dtype in ((2 * length, "i16"), (length, "i32"))
    ]
    ran = [simulate(one.schedule) for one in made]
    right = all(one.result_correct for one in ran)
    return (ran[0].cycles or math.nan) / (ran[1].cycles or math.nan) if right else math.nan


CHECKS = checks_of(globals())
