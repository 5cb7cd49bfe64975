"""Computes gains on squares of PEs (Figs. 13a and 13b) of "Near-Optimal Wafer-Scale Reduce" (HPDC 2024), simulated.

An X-Y Reduce on a square takes twice as long as a Reduce on a row; an AllReduce takes the time of the broadcast in
addition. The claim ``xy-of-rows`` checks this by simulated squares, so that lengths whose squares take too long to
simulate follow from rows.
"""

import math
from collections.abc import Callable

from unisono.reproduce import Finding, Listed, checks_of
from unisono.reproduce import wafer_simulated as runs
from unisono.reproduce.wafer_formulas import FORMULAS

__all__ = ["CHECKS"]


def _simulated_gain_2d(listed: Listed) -> Finding:
    """Divides the chain's time by Auto-Gen's at every point, with all PEs of the square simulated."""

    def cycles(name: str, shape: tuple[int, ...], length: int) -> float:
        return runs.point(listed["collective"], shape, length, name, math.inf).simulated or math.nan

    return _beside_formula(listed, listed["points"], cycles)


def _gain_of_rows(listed: Listed) -> Finding:
    """Divides the chain's time by Auto-Gen's at every length, from simulated rows."""

    def cycles(name: str, shape: tuple[int, ...], length: int) -> float:
        return _of_rows(listed["collective"], name, shape[0], length)

    side = listed["side"]
    return _beside_formula(listed, [[side, side, length] for length in runs.LENGTHS], cycles)


def _beside_formula(
    listed: Listed, points: list[list[int]], cycles: Callable[[str, tuple[int, ...], int], float]
) -> Finding:
    ours, shown = [], []
    for *shape, length in points:
        chain, best = (cycles(name, tuple(shape), length) for name in ("chain", "auto-gen"))
        ours.append(chain / best)
        shown.append(f"{length} {chain:.0f}/{best:.0f}")
    remark = f"Simulated cycles of the chain and of Auto-Gen, by B: {', '.join(shown)}."
    return Finding([FORMULAS[listed["formula"]](*point) for point in points], ours, remark=remark)


def _xy_of_rows(listed: Listed) -> Finding:
    """Computes the largest relative difference of times computed from rows from those of simulated squares."""
    ours, remarks = [], []
    for side in listed["sides"]:
        worst = (0.0, "")
        for collective in ("reduce", "allreduce"):
            for name in listed["algorithms"]:
                for length in runs.LENGTHS:
                    whole = runs.point(collective, (side, side), length, name).simulated
                    # A square that did not run makes the claim fail.
                    off = abs(_of_rows(collective, name, side, length) / whole - 1) if whole else math.inf
                    worst = max(worst, (off, f"{collective} by {name} at B = {length} on {side} x {side}"))
        ours.append(worst[0])
        remarks += [worst[1]] if worst[0] else []
    return Finding(listed["reported"], ours, remark=f"Largest: {', '.join(remarks)}." if remarks else "")


def _of_rows(collective: str, name: str, side: int, length: int) -> float:
    row = runs.point("reduce", (side,), length, name).simulated or math.nan
    return 2 * row + (FORMULAS["broadcast-2d"](side, side, length) if collective == "allreduce" else 0)


CHECKS = checks_of(globals())
