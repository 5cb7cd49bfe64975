"""Evaluates the recursions of sections 5.5 and 5.6 of "Near-Optimal Wafer-Scale Reduce" as printed, and counts steps.

A step is one choice of i in a minimum. The library has closed forms of both recursions instead.
"""

import math
from collections.abc import Callable
from itertools import product

from unisono.reproduce import Finding, Listed, checks_of
from unisono.reproduce.wafer_formulas import auto_gen_energy

__all__ = ["CHECKS"]


def _auto_gen_steps(pes: int) -> int:
    """Counts the steps for the energies of all trees of up to ``pes`` PEs, and checks the energies."""
    most = range(1, pes)
    energy = {(1, depth, contention): 0.0 for depth, contention in product(range(pes), repeat=2)}
    steps = 0
    for p, depth, contention in product(range(2, pes + 1), range(pes), range(pes)):
        best = math.inf
        for i in most[: p - 1] if depth and contention else ():
            best = min(best, energy[i, depth, contention - 1] + energy[p - i, depth - 1, contention] + i)
            steps += 1
        energy[p, depth, contention] = best
        if best != (auto_gen_energy(p, depth, contention) if depth else math.inf):
            raise AssertionError(f"{p} PEs, depth {depth}, contention {contention}: {best}")
    return steps


def _bound_steps(pes: int, depths: int) -> int:
    """Counts the steps for the least energies of sums of up to ``pes`` scalars, for ``depths`` depths."""
    shallower, steps = [0.0, 0.0, *[math.inf] * (pes - 1)], 0
    for _ in range(depths):
        deeper = shallower[:2]
        for p in range(2, pes + 1):
            best = math.inf
            for i in range(1, p):
                best = min(best, deeper[i] + shallower[p - i] + min(i, p - i + 1))
                steps += 1
            deeper.append(best)
        shallower = deeper
    return steps


#: Functions from a number of PEs to steps: for trees, for bounds of all depths, for bounds of one depth.
_STEPS: list[Callable[[int], int]] = [
    _auto_gen_steps,
    lambda pes: _bound_steps(pes, pes - 1),
    lambda pes: _bound_steps(pes, 1),
]


def _recursion_exponents(listed: Listed) -> Finding:
    """Computes the exponents by which the steps grow from half of the PEs to all PEs."""
    pes = listed["pes"]
    return Finding(listed["reported"], [math.log2(steps(pes) / steps(pes // 2)) for steps in _STEPS])


CHECKS = checks_of(globals())
