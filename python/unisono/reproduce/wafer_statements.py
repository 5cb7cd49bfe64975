"""Computes the statements of "Near-Optimal Wafer-Scale Reduce" (HPDC 2024) outside of its lemmas and figures.

These are best algorithms, gains over the vendor, colors, errors and start times. Runs on the simulated fabric replace
measurements.
"""

import json
from collections.abc import Iterable
from itertools import groupby, pairwise
from typing import Any

import numpy as np

from unisono import Schedule, ScheduleBuilder, Stream, machine, plan, simulate
from unisono.base.reports import SweepPoint, in_cycles
from unisono.reproduce import Finding, Listed, checks_of, each
from unisono.reproduce import wafer_simulated as runs
from unisono.reproduce.wafer_formulas import star_of_two
from unisono.reproduce.wafer_terms import terms_of

__all__ = ["CHECKS", "cycles_by_algorithm", "letters"]

MACHINE = "wse2"
LETTERS = {"S": "star", "T": "tree", "2": "two-phase", "C": "chain", "R": "ring", "N": "snake"}


def cycles_by_algorithm(point: SweepPoint) -> dict[str, float]:
    """Returns the cycles of each algorithm at a point of a sweep of a wafer."""
    cycles = point["cycles_by_algorithm"]
    assert cycles is not None, "a wafer has cycles"
    return cycles


def letters(names: Iterable[str]) -> str:
    """Returns the letters by which the figures denote algorithms."""
    by_name = {name: letter for letter, name in LETTERS.items()}
    return "".join(by_name[name] for name in names)


def _predicted(listed: Listed, algorithms: Iterable[str]) -> list[dict[str, float]]:
    """Returns the cycles of each algorithm by Eq. 1, for every shape and length of a claim."""
    return runs.cycles(listed["collective"], listed["shapes"], listed["wavelets"], [*algorithms])


def _simulated(listed: Listed, algorithms: Iterable[str]) -> list[dict[str, float]]:
    """Returns the simulated cycles for every shape and length of a claim; slow simulations are omitted."""
    found = []
    for shape in listed["shapes"]:
        for length in listed["wavelets"]:
            ran = (runs.point(listed["collective"], tuple(shape), length, name) for name in algorithms)
            found.append({at.algorithm: float(at.simulated) for at in ran if at.simulated is not None})
    return found


def _times(listed: Listed, algorithms: Iterable[str]) -> list[dict[str, float]]:
    return {"model": _predicted, "simulation": _simulated}[listed["by"]](listed, algorithms)


def _winner_order(listed: Listed) -> Finding:
    """Lists the best fixed algorithms in the order of shapes or lengths, without repetitions."""
    best = [min(times, key=times.__getitem__) for times in _times(listed, listed["algorithms"])]
    ours = letters(name for name, _ in groupby(best))
    return Finding(listed["reported"], ours, remark=f"Point by point: {letters(best)}.")


def _winners_where_equal(listed: Listed) -> Finding:
    """Lists, for each number of PEs, the best fixed pattern by Eq. 1 of a Reduce of as many wavelets as PEs."""
    found = [_predicted(listed | {"shapes": [[n]], "wavelets": [n]}, listed["algorithms"])[0] for n in listed["pes"]]
    return Finding(listed["reported"], letters(min(times, key=times.__getitem__) for times in found))


def _better_than_auto_gen(listed: Listed) -> Finding:
    """Lists the shapes on which an algorithm is faster than Auto-Gen."""
    name = listed["algorithm"]
    times = _times(listed, ["auto-gen", name])
    better = ["x".join(map(str, shape)) for shape, at in zip(listed["shapes"], times, strict=True) if _beats(at, name)]
    return Finding(listed["reported"], " ".join(better))


def _beats(times: dict[str, float], name: str) -> bool:
    return name in times and times[name] < times["auto-gen"]


def _auto_gen_behind(listed: Listed) -> Finding:
    """Computes the largest number of cycles by which the best fixed pattern is faster than Auto-Gen."""
    found = _times(listed, ["auto-gen", *listed["algorithms"]])
    lost = [max(0.0, times["auto-gen"] - min(times.values())) for times in found]
    at = max(range(len(lost)), key=lost.__getitem__)
    best = min(found[at], key=found[at].__getitem__)
    remark = f"{best} takes {found[at][best]:.0f} and Auto-Gen {found[at]['auto-gen']:.0f} cycles." if lost[at] else ""
    return Finding(listed["reported"], lost[at], remark=remark)


def _over_auto_gen(listed: Listed) -> Finding:
    name = listed["algorithm"]
    ratios = [times[name] / times["auto-gen"] for times in _times(listed, ["auto-gen", name])]
    return Finding(listed["reported"], max(ratios), remark="By shape: " + " ".join(f"{r:.3f}" for r in ratios) + ".")


def _over_best(listed: Listed) -> Finding:
    """Computes the least, among patterns, of a pattern's largest time relative to the best pattern's."""
    found = _times(listed, listed["algorithms"])
    ours = [max(times[name] / min(times.values()) for times in found) for name in listed["patterns"]]
    remark = ", ".join(f"{name} {ratio:.1f}" for name, ratio in zip(listed["patterns"], ours, strict=True)) + "."
    return Finding(listed["reported"], min(ours), remark=remark)


def _star_of_two(listed: Listed) -> Finding:
    """Lists by length if stars to two PEs, along rows and then columns, are faster or slower than all patterns."""
    ours, times = [], _predicted(listed, listed["algorithms"])
    points = ((shape, length) for shape in listed["shapes"] for length in listed["wavelets"])
    for (shape, length), found in zip(points, times, strict=True):
        star = sum(star_of_two(pes, length) for pes in shape)
        ours.append("faster" if star < min(found.values()) else "slower")
    remark = f"It is faster for {ours.count('faster')} of {len(ours)} lengths."
    return Finding(listed["reported"], " ".join(name for name, _ in groupby(ours)), remark=remark)


@each("points", "They take {} cycles.", ", ")
def _ring_mapped_chain(point: Any, _: Listed) -> tuple[Any, str]:
    """Counts the roots at which a simulated chain along the ring of Fig. 7b gives the right result."""
    pes, length = point
    ran = [simulate(_chain_to(root, pes, length), MACHINE) for root in range(pes)]
    cycles = [one.cycles for one in ran if one.cycles is not None]
    return sum(bool(one.result_correct) for one in ran), f"{min(cycles)} to {max(cycles)}"


def _chain_to(root: int, pes: int, length: int) -> Schedule:
    """Returns a chain along the ring of even PEs outwards and odd PEs back, cut behind the root."""
    ring = [*range(0, pes, 2), *reversed(range(1, pes, 2))]
    cut = ring.index(root) + 1
    order = ring[cut:] + ring[:cut]
    made = ScheduleBuilder(pes, length, "reduce", root=root)
    before: list[Stream] = []
    for pe, to in pairwise(order):
        sent = made.stream(pe, to)
        made.combine(pe, [made.input(pe), *before], [sent])
        before = [sent]
    made.combine(root, [made.input(root), *before], [made.output(root)])
    return made.build()


def _prediction_error(listed: Listed) -> Finding:
    """Computes the largest error of Eq. 1, as a fraction of the simulated cycles."""
    points = [
        runs.point(listed["collective"], tuple(shape), length, listed["algorithm"])
        for shape in listed["shapes"]
        for length in listed["wavelets"]
    ]
    errors = [abs(at.error) for at in points if at.error is not None]
    return Finding(listed["reported"], max(errors), remark=f"The largest of {len(errors)} points.")


def _allreduce_adds_broadcast(listed: Listed) -> Finding:
    """Computes how far a simulated AllReduce differs from Reduce plus Broadcast, as a fraction of this sum."""
    worst = {}
    for name in listed["algorithms"]:
        shares = []
        for length in runs.LENGTHS:
            whole = runs.point("allreduce", runs.ROW, length, name).simulated
            reduce = runs.point("reduce", runs.ROW, length, name).simulated
            broadcast = runs.point("broadcast", runs.ROW, length, "flood").simulated
            if whole and reduce and broadcast:
                shares.append(abs(whole / (reduce + broadcast) - 1))
        worst[name] = max(shares)
    remark = ", ".join(f"{name} {share:.1%}" for name, share in worst.items()) + "."
    return Finding(listed["reported"], max(worst.values()), remark=remark)


def _broadcast_growth(listed: Listed) -> Finding:
    """Computes the cycles for each further wavelet of a simulated broadcast."""
    lengths = listed["wavelets"]
    times = [runs.point("broadcast", runs.ROW, length, "flood").simulated or float("nan") for length in lengths]
    pairs = zip(lengths, lengths[1:], times, times[1:], strict=False)
    return Finding(listed["reported"], [(later - before) / (long - short) for short, long, before, later in pairs])


@each("shapes")
def _colors(shape: Any, listed: Listed) -> Any:
    """Computes the largest number of colors of any algorithm with a right simulated result."""
    most = 0
    for collective in ("reduce", "allreduce", "broadcast"):
        for name in ["flood"] if collective == "broadcast" else listed["algorithms"]:
            if name == "snake" and len(shape) == 1:
                continue
            for length in listed["wavelets"]:
                most = max(most, _colors_of(collective, tuple(shape), length, name))
    return most


def _colors_of(collective: str, shape: tuple[int, ...], length: int, name: str) -> int:
    made = runs.planned(collective, shape, length, name, {})
    if not simulate(made.schedule).result_correct:
        return -1
    colors = json.loads(made.schedule.to_json())["placement"]["colors"]
    # A stream without a color in the placement gets a color of its own, so it is counted as one color.
    return len({color for color in colors if color is not None}) + sum(color is None for color in colors)


@each("shapes")
def _start_spread(shape: Any, listed: Listed) -> Any:
    """Simulates section 8.3: the spread of start times of PEs that wait by position after a broadcast."""
    rows, columns = (1, *shape)[-2:]
    ran = simulate(plan("broadcast", MACHINE, shape=tuple(shape), elements=1, algorithm="flood", params={}).schedule)
    at = np.asarray(ran.finish).reshape(rows, columns)
    wait = rows + columns - np.add.outer(np.arange(rows), np.arange(columns))
    start = at + listed["wait_parameter"] * wait
    return float(start.max() - start.min())


@each("points")
def _terms(point: Any, listed: Listed) -> Any:
    """Computes a cost term of an algorithm, with ``over_chain`` divided by the chain's term."""
    value = terms_of(point, listed["algorithm"])[listed["term"]]
    return value / (terms_of(point, "chain")[listed["term"]] if listed["over_chain"] else 1)


def _ratio(listed: Listed) -> Finding:
    """Divides the times of two plans, by Eq. 1 or simulated, at every point."""
    ours = [_planned(listed["upper"], point) / _planned(listed["lower"], point) for point in listed["points"]]
    return Finding([listed["reported"]] * len(ours), ours)


def _planned(what: dict[str, Any], point: list[int]) -> float:
    """Returns the cycles of a plan, or with ``count`` a number of the point: wavelets, or PEs minus 1."""
    *shape, length = point
    if "count" in what:
        return float({"length": length, "others": int(np.prod(shape)) - 1}[what["count"]])
    if what.get("by") == "simulation":
        return float(runs.point(what["collective"], tuple(shape), length, what["algorithm"]).simulated or "nan")
    on = int(np.prod(shape)) if what.get("row", False) else tuple(shape)
    made = runs.planned(what["collective"], on, length, what["algorithm"], what.get("params", {}))
    return in_cycles(made.predicted)


def _facts(listed: Listed) -> Finding:
    described = machine(MACHINE).describe()
    # The sides of a shape are multiplied.
    found = [float(np.prod(described[key])) for key in listed["keys"]]
    return Finding(listed["reported"], [listed["together"] * np.prod(found)] if "together" in listed else found)


CHECKS = checks_of(globals())
