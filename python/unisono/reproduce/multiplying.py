"""Computes what "Generalisation of recursive doubling for AllReduce: Now with simulation" (2017) claims."""

import json
import math
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from unisono.planning.multiplying import best, cost, count, fan_out
from unisono.reproduce import (
    Finding,
    Listed,
    checks_of,
    multiplying_dissemination,
    multiplying_figures,
    multiplying_table,
    multiplying_topology,
)
from unisono.reproduce import multiplying_simulated as runs
from unisono.reproduce.multiplying_table import ALPHAS, ROUNDING, TABLE_2, Row, predictions

__all__ = ["CHECKS", "FORMULAS", "draw", "eq_2", "eq_4", "eq_4_minimum", "eq_5_printed"]

#: Ratios of alpha_p to alpha_r in Fig. 3, and the alphas of Fig. 4 in us.
RATIOS = [1 + k / 4 for k in range(61)]
FIG_4_ALPHA_P, FIG_4_ALPHA_R = 1.0, 0.25
FIG_4_FAN_OUTS = list(range(1, 17))
FIG_4_RANKS = [2**k for k in range(2, 17, 2)]


def draw(folder: Path, _full: bool = False) -> list[str]:
    """Draws Figs. 3, 4 and 12 as PNG and CSV, and Figs. 18 to 23 as PNG; makes the folder if needed.

    The programs of Figs. 17 and 23 are written as GOAL.
    """
    folder.mkdir(parents=True, exist_ok=True)
    fan_outs = [(ratio, eq_5_printed(ratio), fan_out(ratio)) for ratio in RATIOS]
    times = {n: [(b, eq_4(b, n, FIG_4_ALPHA_P, FIG_4_ALPHA_R)) for b in FIG_4_FAN_OUTS] for n in FIG_4_RANKS}
    return [
        *multiplying_figures.figure_3(folder, fan_outs),
        *multiplying_figures.figure_4(folder, times, fan_out(FIG_4_ALPHA_P / FIG_4_ALPHA_R)),
        *multiplying_figures.figure_12(folder, [_compared(row) for row in TABLE_2]),
        *runs.draw(folder),
    ]


def eq_2(ranks: float) -> float:
    """Returns recursive doubling's time in alphas."""
    whole = math.log2(ranks)
    return whole if whole.is_integer() else math.floor(whole) + 2


def eq_4(b: float, ranks: float, alpha_p: float, alpha_r: float) -> float:
    """Returns the time of recursive multiplying, in the alphas' unit, if each process sends b messages in a stage."""
    return (alpha_p + b * alpha_r) * math.log(ranks) / math.log(b + 1)


def eq_5_printed(ratio: float) -> float:
    """Returns the best b by Eq. 5 as printed, with Newton's method for Lambert's W."""
    z, w = ratio - 1, math.log(max(ratio, 1.0))
    for _ in range(50):
        w -= (w * math.exp(w) - z) / (math.exp(w) * (w + 1))
    return math.exp(w + 1) - 1


def eq_4_minimum(ratio: float) -> float:
    """Returns the b at which Eq. 4 has its single minimum, by ternary search."""
    low, high = 1e-3, 10 * ratio + 10
    for _ in range(200):
        third = (high - low) / 3
        left, right = low + third, high - third
        if eq_4(left, 2, ratio, 1) < eq_4(right, 2, ratio, 1):
            high = right
        else:
            low = left
    return (low + high) / 2


def _combinations(n: int) -> int:
    """Returns the number of ordered factorisations of n, including n itself."""
    return 1 + sum(_combinations(n // factor) for factor in range(2, n) if n % factor == 0)


#: The functions by which claims without a printed number compute the reported value at their points.
FORMULAS: dict[str, Callable[..., float]] = {
    "combinations": _combinations,
    "eq1": lambda ranks, bytes: (1.0 + 0.00075 * bytes) * math.log2(ranks),
    "eq2": eq_2,
    "eq2-pipelining": lambda ranks: (FIG_4_ALPHA_P + FIG_4_ALPHA_R) * eq_2(ranks),
    "eq3": lambda b, bytes: FIG_4_ALPHA_P + b * (FIG_4_ALPHA_R + 0.00075 * bytes),
    "eq4": lambda b, stages: eq_4(b, (b + 1) ** stages, FIG_4_ALPHA_P, FIG_4_ALPHA_R),
    "eq4-minimum": eq_4_minimum,
    "eq5-printed": eq_5_printed,
    "total-cost": lambda *factors: FIG_4_ALPHA_P * len(factors) + FIG_4_ALPHA_R * sum(b - 1 for b in factors),
}


#: The simulated runs that the equations describe: a machine, and a function that returns the ranks, the schedule, and
#: the bytes (None if bytes take no time).
_RUNS: dict[str, tuple[str, Callable[..., tuple[int, str, int | None]]]] = {
    "eq1": ("postal", lambda ranks, bytes: (ranks, runs.doubling(ranks), bytes)),
    "eq2": ("postal", lambda ranks: (ranks, runs.doubling(ranks), None)),
    "eq2-pipelining": ("pipelining", lambda ranks: (ranks, runs.doubling(ranks), None)),
    "eq3": ("pipelining", lambda b, bytes: (b + 1, f"a{b + 1}", bytes)),
    "eq4": ("pipelining", lambda b, stages: ((b + 1) ** stages, ",".join([f"a{b + 1}"] * stages), None)),
    "total-cost": ("pipelining", lambda *b: (math.prod(b), ",".join(f"a{factor}" for factor in b), None)),
}


def _formula(listed: Listed) -> list[float]:
    return [FORMULAS[listed["formula"]](*point) for point in listed["points"]]


def _simulated(listed: Listed) -> Finding:
    """Computes the simulated us of the runs that a formula describes."""
    on, run = _RUNS[listed["formula"]]
    return Finding(_formula(listed), [runs.time(on, *run(*point)) / 1000 for point in listed["points"]])


def _factorisations(listed: Listed) -> Finding:
    return Finding(_formula(listed), [count(n)["factored"] for (n,) in listed["points"]])


def _prime_threshold(listed: Listed) -> Finding:
    """Counts the exceptions to both parts of the claim.

    A single stage is best up to some prime, and for no larger prime; that prime does not fall as the ratio grows.
    """
    primes = [n for n in range(2, listed["largest"]) if all(n % d for d in range(2, n))]
    faults, thresholds = 0, []
    for ratio in listed["ratios"]:
        single = []
        for n in primes:
            found = best(n, ratio, 1)
            assert found is not None  # every number has a schedule
            single.append(cost(f"a{n}", n, ratio, 1) <= found.cost * (1 + 1e-9))
        first = single.index(False)
        faults += sum(single[first:])
        thresholds.append(primes[first - 1])
    faults += sum(later < before for before, later in pairwise(thresholds))
    shown = ", ".join(f"{n} at {ratio:g}" for n, ratio in zip(thresholds, listed["ratios"], strict=True))
    return Finding(listed["reported"], faults, remark=f"The largest prime in a single stage, by ratio: {shown}.")


def _fan_out(listed: Listed) -> Finding:
    return Finding(_formula(listed), [fan_out(ratio) for (ratio,) in listed["points"]])


def _stages(listed: Listed) -> Finding:
    # With alpha_p = 1 and alpha_r = 0 the cost is the number of stages.
    pairs = zip(listed["schedules"], listed["ranks"], strict=True)
    return Finding(listed["reported"], [cost(schedule, ranks, 1, 0) for schedule, ranks in pairs])


def _counts(listed: Listed) -> Finding:
    counts = [count(ranks) for ranks in range(2, listed["ranks_max"] + 1)]
    return Finding(listed["reported"], [sum(c[kind] for c in counts) for kind in ("factored", "split", "merge")])


def _choice(listed: Listed) -> Finding:
    """Computes the worst excess cost by the minima, or counts best choices by the medians, as in section 5.7."""
    by_cost = listed["column"] == "cost"
    alphas = ALPHAS["minimum" if by_cost else "median"]
    ratios, other = [], []
    for row in TABLE_2:
        found = best(row.ranks, *alphas, kind="factored")
        assert found is not None  # every number has a factored schedule
        ratios.append(cost(row.schedule, row.ranks, *alphas) / found.cost)
        # Half a unit of the last digit of Table 1, added or subtracted in favor of the measured schedule.
        digits = 0.0 if by_cost else ROUNDING
        prices = [(alphas[0] + a, alphas[1] + b) for a in (-digits, digits) for b in (-digits, digits)]
        behind = min(cost(row.schedule, row.ranks, *at) - cost(found.schedule, row.ranks, *at) for at in prices)
        if behind > 1e-9:
            other.append(f"{row.ranks} {found.schedule} ({row.schedule} takes {ratios[-1] - 1:.1%} more)")
    remark = "Predicted to be better: " + ", ".join(other) + "." if other else ""
    return Finding(listed["reported"], max(ratios) if by_cost else len(TABLE_2) - len(other), remark=remark)


def _elimination_rounds(listed: Listed) -> Finding:
    ours = [runs.rounds(ranks, "elimination", {"protocol": listed["protocol"]}) for ranks in listed["ranks"]]
    return Finding(listed["reported"], ours)


def _elimination_excess(listed: Listed) -> Finding:
    """Counts the N up to ``largest`` whose elimination needs many rounds.

    More than ceil(log2 N) rounds by the overlapping protocol; the same by the better protocol; more than ceil(log2 N) +
    1 by the worse protocol.
    """
    excess = []
    for ranks in range(2, listed["largest"] + 1):
        found = [runs.rounds(ranks, "elimination", {"protocol": name}) for name in ("overlapping", "non-overlapping")]
        excess.append([rounds - math.ceil(math.log2(ranks)) for rounds in (found[0], min(found), max(found))])
    overlapping, better, worse = zip(*excess, strict=True)
    counts = [sum(x > most for x in each) for each, most in ((overlapping, 0), (better, 0), (worse, 1))]
    return Finding(listed["reported"], counts)


def _elimination_gain(listed: Listed) -> Finding:
    ranks = listed["ranks"]
    times = [runs.run(ranks, "elimination", {"protocol": name}).nanoseconds for name in listed["protocols"]]
    return Finding(listed["reported"], times[0] - times[1])


def _program(listed: Listed) -> Finding:
    """Counts the start, put and compute tasks of a figure's program."""
    lines = runs.goal(listed["figure"]).splitlines()
    kinds = (r"rank \d+ \{", r"l\d+: send .*", r"l\d+: calc [1-9]\d*")
    return Finding(listed["reported"], [sum(bool(re.fullmatch(kind, line)) for line in lines) for kind in kinds])


def _consistent(listed: Listed) -> Finding:
    """Counts the schedules that are proved to give all processes the same bits."""
    name, param = listed["algorithm"]
    made = [runs.program(ranks, name, {param: text}) for ranks, text in listed["schedules"]]
    return Finding(listed["reported"], sum(schedule.verify().repeatable for schedule in made))


def _critical_path(listed: Listed) -> Finding:
    """Computes the change in the best schedule's number of stages from each ratio to the next."""
    found = [best(listed["ranks"], ratio, 1) for ratio in listed["ratios"]]
    stages = [one.schedule.count(",") + 1 for one in found if one is not None]
    return Finding(listed["reported"], [after - before for before, after in pairwise(stages)], f"Stages: {stages}.")


def _best_costs(listed: Listed) -> Finding:
    """Divides the best cost, in units of alpha_p, at each ratio by that at the ratio before."""
    found = [best(listed["ranks"], ratio, 1) for ratio in listed["ratios"]]
    costs = [one.cost / ratio for one, ratio in zip(found, listed["ratios"], strict=True) if one is not None]
    remark = f"In alpha_p: {' '.join(f'{one:.2f}' for one in costs)}."
    return Finding(listed["reported"], [after / before for before, after in pairwise(costs)], remark)


def _elimination_bound(listed: Listed) -> Finding:
    """Counts the N, no powers of two, whose bound ceil(log2 N) + 1 is below the stages of Eq. 2."""
    counts = [n for n in range(3, listed["largest"] + 1) if n & (n - 1)]
    below = sum(math.ceil(math.log2(n)) + 1 < eq_2(n) for n in counts)
    return Finding(listed["reported"], below, remark=f"Of {len(counts)}.")


def _rounds(listed: Listed) -> Finding:
    """Computes the rounds of messages of an algorithm, for each value of its parameter."""
    ours = [runs.rounds(listed["ranks"], listed["algorithm"], {"ways": str(ways)}) for ways in listed["ways"]]
    return Finding(listed["reported"], ours)


def _order_traffic(listed: Listed) -> Finding:
    """Divides the numbers of messages between nodes of two schedules."""
    found = []
    for text in listed["schedules"]:
        made = runs.program(listed["ranks"], "recursive-multiplying", {"schedule": text})
        streams = json.loads(made.to_json())["streams"]
        ends = [(stream["source"], sink) for stream in streams for sink in stream["sinks"]]
        found.append(sum(source // listed["per_node"] != sink // listed["per_node"] for source, sink in ends))
    return Finding(listed["reported"], found[0] / found[1], remark=f"{found[0]} and {found[1]} messages.")


def _elimination_over_split(listed: Listed) -> Finding:
    ranks = listed["ranks"]
    split = max(runs.finish(ranks, listed["split"]))
    times = [runs.run(ranks, "elimination", {"protocol": name}).nanoseconds for name in listed["protocols"]]
    return Finding(listed["reported"], [time / split for time in times])


def _compared(row: Row) -> multiplying_figures.Compared:
    predicted = {column: predictions(row, column)[1] for column in ALPHAS}
    measured = {"minimum": row.minimum[1], "median": row.median[1]}
    return multiplying_figures.Compared(row.ranks, row.schedule, predicted, measured)


CHECKS = {
    **checks_of(globals()),
    "orders-on-dragonfly": multiplying_topology.orders,
    "self-congestion": multiplying_topology.congestion,
    "unrepaired": multiplying_dissemination.unrepaired,
    **multiplying_table.CHECKS,
    **runs.CHECKS,
}
