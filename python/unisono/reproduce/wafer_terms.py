"""Computes statements of "Near-Optimal Wafer-Scale Reduce" (HPDC 2024) on terms of Eq. 1, bounds and groups."""

import math
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, cast

from unisono import Schedule, ScheduleBuilder, Stream, bounds, machine, plan, simulate
from unisono.base.reports import in_cycles
from unisono.reproduce import Finding, Listed, checks_of, each
from unisono.reproduce import wafer_simulated as runs
from unisono.reproduce.wafer_formulas import FORMULAS

__all__ = ["CHECKS", "bound_of", "terms_of"]

MACHINE = "wse2"
#: The cycles of each dependent operation, 2 T_R + 1, and of a ramp, T_R.
_STEP, _RAMP = 5, 2

Terms = dict[str, float]


def bound_of(collective: str, point: Sequence[int], name: str) -> float:
    """Returns a lower bound of the library at a point [P, B] or [M, N, B], in cycles."""
    *shape, length = point
    found = {bound["name"]: bound for bound in bounds(collective, MACHINE, shape=tuple(shape), elements=length)}
    return in_cycles(found[name])


def terms_of(point: Sequence[int], algorithm: str, params: dict[str, str] | None = None) -> Terms:
    """Returns the cost terms of a Reduce at a point [P, B] or [M, N, B]."""
    *shape, length = point
    terms = runs.planned("reduce", tuple(shape), length, algorithm, params).predicted["terms"]
    assert terms is not None, "a wafer has terms"
    return cast(Terms, terms)


def _fastest(listed: Listed, point: Sequence[int]) -> tuple[float, str]:
    """Returns the cycles and the name of the pattern that is fastest at a point, simulated."""
    *shape, length = point
    ran = (runs.point("reduce", tuple(shape), length, name) for name in listed["algorithms"])
    return min((float(at.simulated), at.algorithm) for at in ran if at.simulated is not None)


def _bound_over_fastest(listed: Listed) -> Finding:
    """Divides a printed lower bound by the least simulated time of the patterns, at every point."""
    found = [_fastest(listed, point) for point in listed["points"]]
    printed = [FORMULAS[listed["form"]](*point) for point in listed["points"]]
    pairs = list(zip(printed, found, strict=True))
    remark = "; ".join(f"{bound:.3f} over {cycles:.0f} of the {name}" for bound, (cycles, name) in pairs) + "."
    return Finding(listed["reported"], [bound / cycles for bound, (cycles, _) in pairs], remark=remark)


def _fastest_over_bound(listed: Listed) -> Finding:
    """Computes the largest quotient, for all shapes and lengths, of the patterns' least time by Eq. 1 and a bound."""
    worst: tuple[float, list[int]] = (0.0, [])
    for shape in listed["shapes"]:
        for length in listed["wavelets"]:
            best = min(_eq_1(terms_of([*shape, length], name)) for name in listed["algorithms"])
            worst = max(worst, (best / bound_of("reduce", [*shape, length], listed["bound"]), [*shape, length]))
    *shape, length = worst[1]
    return Finding(listed["reported"], worst[0], remark=f"At {'x'.join(map(str, shape))} PEs and B = {length}.")


@each("points", "Simulated cycles: {}.")
def _improvement(point: Any, listed: Listed) -> tuple[Any, str]:
    """Divides the least simulated time of the patterns by that of this project's best plan."""
    *shape, length = point
    best, name = _fastest(listed, point)
    made = plan("reduce", MACHINE, shape=tuple(shape), elements=length)
    cycles = simulate(made.schedule).cycles or math.nan
    return best / cycles, f"{name} {best:.0f}, {made.algorithm} {cycles}"


def _eq_1(terms: Terms, distance: bool = True, depth: bool = True, ramp: int = _RAMP) -> float:
    """Returns Eq. 1 of the terms, optionally without distance or depth, with a ramp latency."""
    way = terms["energy"] / terms["links"] + (terms["distance"] if distance else 0)
    return max(terms["contention"], way) + ((2 * ramp + 1) * terms["depth"] if depth else 0)


#: Eq. 1 with all terms, and without some terms.
_WITHOUT: dict[str, Callable[[Terms], float]] = {
    "all terms": _eq_1,
    "congestion only": lambda terms: _eq_1(terms, distance=False, depth=False),
    "no distance": lambda terms: _eq_1(terms, distance=False),
    "no depth": lambda terms: _eq_1(terms, depth=False),
}


def _terms_needed(listed: Listed) -> Finding:
    """Divides mean errors of Eq. 1 without some terms by that with all terms, for simulated Fig. 11b."""
    means: dict[str, list[float]] = {name: [] for name in _WITHOUT}
    for algorithm in listed["algorithms"]:
        errors: dict[str, list[float]] = {name: [] for name in _WITHOUT}
        for length in runs.LENGTHS:
            cycles = runs.point("reduce", runs.ROW, length, algorithm).simulated
            if cycles is not None:
                terms = terms_of([*runs.ROW, length], algorithm)
                for name, by in _WITHOUT.items():
                    errors[name].append(abs(by(terms) / cycles - 1))
        for name, found in errors.items():
            means[name].append(sum(found) / len(found))
    overall = {name: sum(found) / len(found) for name, found in means.items()}
    shown = ", ".join(f"{name} " + " ".join(f"{100 * one:.1f}" for one in found) for name, found in means.items())
    ours = [overall[name] / overall["all terms"] for name in _WITHOUT if name != "all terms"]
    return Finding(listed["reported"], ours, remark=f"Mean errors in %, {', '.join(listed['algorithms'])}: {shown}.")


def _other_ramps(listed: Listed) -> Finding:
    """Computes the mean relative error of Eq. 1 for the snake, for each of some other ramp latencies.

    The remark has the error with the machine's own ramp latency.
    """
    means = {}
    for ramp in (_RAMP, *listed["ramps"]):
        errors = []
        for *shape, length in listed["points"]:
            cycles = runs.point("reduce", tuple(shape), length, "snake").simulated or math.nan
            errors.append(abs(_eq_1(terms_of([*shape, length], "snake"), ramp=ramp) / cycles - 1))
        means[ramp] = sum(errors) / len(errors)
    remark = f"With T_R = {_RAMP} it is {means[_RAMP]:.1%}."
    return Finding(listed["reported"], [means[ramp] for ramp in listed["ramps"]], remark=remark)


@each("points", "{}.")
def _group_choice(point: Any, listed: Listed) -> tuple[Any, str]:
    """Divides a term of Two-Phase with groups of sqrt P by the least of all other group sizes, at every point."""
    chosen = math.isqrt(point[0])
    sizes = [2**k for k in range(1, point[0].bit_length() - 1)]
    found = {size: terms_of(point, "two-phase", {"group": str(size)})[listed["term"]] for size in sizes}
    text = ", ".join(f"S = {size}: {cost:.0f}" for size, cost in found.items())
    return found[chosen] / min(cost for size, cost in found.items() if size != chosen), text


def _group_order(listed: Listed) -> Finding:
    """Divides the cycles of Two-Phase with groups counted from the end by those from the root; the largest."""
    ratios = []
    for pes, length in listed["points"]:
        size = math.isqrt(pes)
        sizes = [size] * (pes // size) + ([pes % size] if pes % size else [])
        ran = [simulate(_two_phase(order, length), MACHINE) for order in (sizes[::-1], sizes)]
        if not all(one.result_correct for one in ran):
            raise RuntimeError(f"two-phase on {pes} PEs gives a wrong result")
        ratios.append((ran[0].cycles or math.nan) / (ran[1].cycles or math.nan))
    remark = "By point: " + " ".join(f"{ratio:.3f}" for ratio in ratios) + "."
    return Finding(listed["reported"], max(ratios), remark=remark)


def _two_phase(sizes: Sequence[int], length: int) -> Schedule:
    """Returns a Reduce by chains in groups of these sizes along a row from the root, and a chain of their first PEs."""
    pes = sum(sizes)
    first = [0, *accumulate(sizes)][:-1]
    made = ScheduleBuilder(pes, length, "reduce", root=0)
    arriving: list[list[Stream]] = [[] for _ in range(pes)]
    # The chains of the groups come before the chain of their first PEs.
    for pe in [*(pe for pe in reversed(range(pes)) if pe not in first), *reversed(first)]:
        to = pe - 1 if pe not in first else first[first.index(pe) - 1]
        if pe == 0:
            made.combine(0, [made.input(0), *arriving[0]], [made.output(0)])
        else:
            sent = made.stream(pe, to)
            made.combine(pe, [made.input(pe), *arriving[pe]], [sent])
            arriving[to].append(sent)
    return made.build()


@each("wavelets")
def _one_ramp(length: Any, _: Listed) -> Any:
    """Computes the cycles per wavelet of a corner PE to which the other PEs of 2 x 2 send simultaneously."""
    made = ScheduleBuilder(4, length, "reduce", root=0)
    arriving = [made.stream(pe, 0) for pe in (1, 2, 3)]
    for pe, sent in enumerate(arriving, 1):
        made.combine(pe, [made.input(pe)], [sent])
    made.combine(0, [made.input(0), *arriving], [made.output(0)])
    ran = simulate(made.build(), machine(MACHINE, shape=(2, 2)))
    return (ran.cycles or math.nan) / length if ran.result_correct else math.nan


CHECKS = checks_of(globals())
