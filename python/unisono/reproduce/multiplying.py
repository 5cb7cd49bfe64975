"""Computes what "Generalisation of recursive doubling for AllReduce: Now with simulation" (2017) claims."""

import json
import math
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import unisono as un
from unisono.planning.multiplying import best, cost, count, fan_out
from unisono.reproduce import Finding, multiplying_dissemination, multiplying_figures
from unisono.reproduce import multiplying_simulated as runs

__all__ = ["FORMULAS", "Row", "check", "doubling", "draw", "eq_2", "eq_4", "eq_4_minimum", "eq_5_printed"]

#: Table 1, minima and medians in us.
ALPHA_P, ALPHA_R = 1.34, 0.34
ALPHA_P_MEDIAN, ALPHA_R_MEDIAN = 1.51, 0.38
#: Figs. 3 and 4.
RATIOS = [1 + k / 4 for k in range(61)]
FIG_4_ALPHA_P, FIG_4_ALPHA_R = 1.0, 0.25
FIG_4_FAN_OUTS = list(range(1, 17))
FIG_4_RANKS = [2**k for k in range(2, 17, 2)]
#: A machine of Eq. 1: ns a message, and ns a byte to send and to add.
_POSTAL = {"alpha_ns": 1000.0, "beta_ns_per_byte": 0.5, "gamma_ns_per_byte": 0.25}

Listed = dict[str, Any]


class Row(NamedTuple):
    """A row of Table 2: times in us, measured on ARCHER by recursive doubling and by the schedule."""

    ranks: int
    schedule: str
    minimum: tuple[float, float]
    median: tuple[float, float]


TABLE_2 = [
    Row(4, "a4", (2.36, 1.87), (4.55, 3.65)),
    Row(6, "a6", (4.76, 2.87), (8.72, 5.75)),
    Row(8, "a2,a4", (4.37, 3.54), (9.38, 7.23)),
    Row(12, "a3,a4", (7.03, 4.43), (15.3, 11.6)),
    Row(16, "a4,a4", (6.85, 4.98), (19.1, 13.8)),
    Row(24, "a4,a6", (9.99, 6.91), (29.7, 25.5)),
    Row(32, "a8,a4", (12.9, 8.95), (30.9, 25.2)),
    Row(48, "a8,a6", (19.8, 13.3), (38.7, 32.1)),
    Row(64, "a8,a8", (24.2, 16.5), (47.4, 39.9)),
    Row(96, "a8,a3,a4", (25.3, 20.7), (51.7, 47.6)),
    Row(128, "a8,a4,a4", (25.1, 17.9), (101.0, 88.4)),
]


def check(listed: Listed) -> Finding:
    """Computes a claim as its file lists it."""
    return _CHECKS[listed["check"]](listed)


def draw(folder: Path, _full: bool = False) -> list[str]:
    """Draws Figs. 3, 4 and 12 as PNG and CSV, and Figs. 18 to 23 as PNG; makes the folder if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    fan_outs = [(ratio, eq_5_printed(ratio), fan_out(ratio)) for ratio in RATIOS]
    times = {n: [(b, eq_4(b, n, FIG_4_ALPHA_P, FIG_4_ALPHA_R)) for b in FIG_4_FAN_OUTS] for n in FIG_4_RANKS}
    return [
        *multiplying_figures.figure_3(folder, fan_outs),
        *multiplying_figures.figure_4(folder, times, fan_out(FIG_4_ALPHA_P / FIG_4_ALPHA_R)),
        *multiplying_figures.figure_12(folder, [_compared(row) for row in TABLE_2]),
        *runs.draw(folder),
    ]


def doubling(ranks: int) -> str:
    """Recursive doubling as MPICH does it, as a schedule."""
    whole = 1 << (ranks.bit_length() - 1)
    stages = ["a2"] * (whole.bit_length() - 1)
    pairs = 2 * (ranks - whole)
    return ",".join([f"c{pairs}m2", *stages, f"e{pairs}m2"] if pairs else stages)


def eq_2(ranks: float) -> float:
    """Recursive doubling, in alphas."""
    whole = math.log2(ranks)
    return whole if whole.is_integer() else math.floor(whole) + 2


def eq_4(b: float, ranks: float, alpha_p: float, alpha_r: float) -> float:
    """Recursive multiplying with b messages a stage."""
    return (alpha_p + b * alpha_r) * math.log(ranks) / math.log(b + 1)


def eq_5_printed(ratio: float) -> float:
    """The best b as printed, by Newton's method for W."""
    z, w = ratio - 1, math.log(max(ratio, 1.0))
    for _ in range(50):
        w -= (w * math.exp(w) - z) / (math.exp(w) * (w + 1))
    return math.exp(w + 1) - 1


def eq_4_minimum(ratio: float) -> float:
    """The b that makes Eq. 4 least, by narrowing an interval: Eq. 4 has one minimum."""
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
    """The products of the prime factors of n in every order: ordered factorisations, with n itself as one."""
    return 1 + sum(_combinations(n // factor) for factor in range(2, n) if n % factor == 0)


#: The functions that claims without a printed number evaluate at their points.
FORMULAS: dict[str, Callable[..., float]] = {
    "combinations": _combinations,
    "eq1": lambda ranks, bytes: (
        (_POSTAL["alpha_ns"] + bytes * (_POSTAL["beta_ns_per_byte"] + _POSTAL["gamma_ns_per_byte"])) * math.log2(ranks)
    ),
    "eq2": eq_2,
    "eq4": lambda b, stages: eq_4(b, (b + 1) ** stages, FIG_4_ALPHA_P, FIG_4_ALPHA_R),
    "eq4-minimum": eq_4_minimum,
    "eq5-printed": eq_5_printed,
    "total-cost": lambda *factors: FIG_4_ALPHA_P * len(factors) + FIG_4_ALPHA_R * sum(b - 1 for b in factors),
}


def _formula(listed: Listed) -> list[float]:
    return [FORMULAS[listed["formula"]](*point) for point in listed["points"]]


def _doubling(listed: Listed) -> Finding:
    # alpha = alpha_p + alpha_r; how it is shared does not matter where a stage sends one message.
    return Finding(_formula(listed), [cost(doubling(n), n, 0.75, 0.25) for (n,) in listed["points"]])


def _equal_stages(listed: Listed) -> Finding:
    ours = [
        cost(",".join([f"a{b + 1}"] * stages), (b + 1) ** stages, FIG_4_ALPHA_P, FIG_4_ALPHA_R)
        for b, stages in listed["points"]
    ]
    return Finding(_formula(listed), ours)


def _postal(listed: Listed) -> Finding:
    """Recursive doubling, simulated on a machine of the postal model."""
    on = {"name": "postal", "kind": "endpoint", "model": "hockney", **_POSTAL}
    ours = []
    for ranks, bytes in listed["points"]:
        made = un.plan("allreduce", on, shape=ranks, bytes=bytes, algorithm="recursive-doubling")
        ours.append(un.simulate(made.schedule, on).nanoseconds)
    return Finding(_formula(listed), ours)


def _total_cost(listed: Listed) -> Finding:
    schedules = [(",".join(f"a{b}" for b in factors), math.prod(factors)) for factors in listed["points"]]
    return Finding(_formula(listed), [cost(text, n, FIG_4_ALPHA_P, FIG_4_ALPHA_R) for text, n in schedules])


def _factorisations(listed: Listed) -> Finding:
    return Finding(_formula(listed), [count(n)["factored"] for (n,) in listed["points"]])


def _prime_threshold(listed: Listed) -> Finding:
    """The primes, and the ratios, that have no threshold as the text says."""
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


def _rank_correlation(listed: Listed) -> Finding:
    """Spearman's coefficient of process count and decrease; rows are in ascending order of process counts."""
    ours = []
    for column in ("minimum", "median"):
        decreases = [1 - after / before for before, after in (getattr(row, column) for row in TABLE_2)]
        ranks = [sorted(decreases).index(decrease) for decrease in decreases]
        n = len(ranks)
        ours.append(1 - 6 * sum((at - rank) ** 2 for at, rank in enumerate(ranks)) / (n * (n * n - 1)))
    return Finding(listed["reported"], ours)


def _fan_out(listed: Listed) -> Finding:
    return Finding(_formula(listed), [fan_out(ratio) for (ratio,) in listed["points"]])


def _stages(listed: Listed) -> Finding:
    # With a latency of 1 and free messages the cost is the number of stages.
    pairs = zip(listed["schedules"], listed["ranks"], strict=True)
    return Finding(listed["reported"], [cost(schedule, ranks, 1, 0) for schedule, ranks in pairs])


def _counts(listed: Listed) -> Finding:
    counts = [count(ranks) for ranks in range(2, listed["ranks_max"] + 1)]
    return Finding(listed["reported"], [sum(c[kind] for c in counts) for kind in ("factored", "split", "merge")])


def _decrease(listed: Listed) -> Finding:
    times = [getattr(row, listed["column"]) for row in TABLE_2]
    return Finding(listed["reported"], [100 * (before - after) / before for before, after in times])


def _predicted(listed: Listed) -> Finding:
    at = {"doubling": 0, "multiplying": 1}[listed["column"]]
    return Finding(listed["reported"], [_predictions(row)[at] for row in TABLE_2])


def _measured_over_predicted(listed: Listed) -> Finding:
    errors = {row.ranks: row.minimum[1] / _predictions(row)[1] - 1 for row in TABLE_2}
    below = [error for ranks, error in errors.items() if ranks < listed["ranks_below"]]
    remark = "By N: " + ", ".join(f"{ranks} {error:+.0%}" for ranks, error in errors.items()) + "."
    return Finding(listed["reported"], max(map(abs, below)), remark=remark)


def _choice(listed: Listed) -> Finding:
    """Computes the cost by the minima and, as section 5.7 says it of the medians, by these for the choice itself."""
    by_cost = listed["column"] == "cost"
    alphas = (ALPHA_P, ALPHA_R) if by_cost else (ALPHA_P_MEDIAN, ALPHA_R_MEDIAN)
    ratios, other = [], []
    for row in TABLE_2:
        found = best(row.ranks, *alphas, kind="factored")
        assert found is not None  # every number has a factored schedule
        ratios.append(cost(row.schedule, row.ranks, *alphas) / found.cost)
        if ratios[-1] > 1 + 1e-9:
            other.append(f"{row.ranks} {found.schedule} ({row.schedule} takes {ratios[-1] - 1:.1%} more)")
    remark = "Predicted to be better: " + ", ".join(other) + "." if other else ""
    return Finding(listed["reported"], max(ratios) if by_cost else len(TABLE_2) - len(other), remark=remark)


def _simulated_time(listed: Listed) -> Finding:
    return Finding(listed["reported"], [max(runs.finish(*run)) for run in listed["runs"]])


def _simulated_skew(listed: Listed) -> Finding:
    times = [runs.finish(*run) for run in listed["runs"]]
    remark = "Done after, by rank: " + "; ".join(" ".join(f"{t:.0f}" for t in each) for each in times) + " ns."
    return Finding(listed["reported"], [max(each) - min(each) for each in times], remark=remark)


def _simulated_gain(listed: Listed) -> Finding:
    over = max(runs.finish(*listed["over"]))
    return Finding(listed["reported"], [over - max(runs.finish(*run)) for run in listed["runs"]])


def _elimination_rounds(listed: Listed) -> Finding:
    ours = [runs.rounds(ranks, "elimination", {"protocol": listed["protocol"]}) for ranks in listed["ranks"]]
    return Finding(listed["reported"], ours)


def _elimination_gain(listed: Listed) -> Finding:
    ranks = listed["ranks"]
    times = [runs.run(ranks, "elimination", {"protocol": name}).nanoseconds for name in listed["protocols"]]
    return Finding(listed["reported"], times[0] - times[1])


def _buffers(listed: Listed) -> Finding:
    """The messages that a process receives in a stage of b messages, each into a buffer of its own."""
    ours = []
    for b in listed["messages"]:
        made = runs.program(b + 1, "recursive-multiplying", {"schedule": f"a{b + 1}"})
        ours.append(made.streams / (b + 1))
    return Finding(listed["reported"], ours)


def _program(listed: Listed) -> Finding:
    """Start, put and compute tasks of a figure's program."""
    lines = runs.goal(listed["figure"]).splitlines()
    kinds = (r"rank \d+ \{", r"l\d+: send .*", r"l\d+: calc [1-9]\d*")
    return Finding(listed["reported"], [sum(bool(re.fullmatch(kind, line)) for line in lines) for kind in kinds])


def _ratio_only(listed: Listed) -> Finding:
    """The process counts whose best schedule is the same when both parts of the latency are multiplied."""
    scale = listed["scale"]
    pairs = [(best(row.ranks, ALPHA_P, ALPHA_R), best(row.ranks, scale * ALPHA_P, scale * ALPHA_R)) for row in TABLE_2]
    return Finding(
        listed["reported"], sum(a is not None and b is not None and a.schedule == b.schedule for a, b in pairs)
    )


def _consistent(listed: Listed) -> Finding:
    """The schedules of a row whose proof says that all processes end with the same bits."""
    made = [runs.program(ranks, "recursive-multiplying", {"schedule": text}) for ranks, text in listed["schedules"]]
    return Finding(listed["reported"], sum(schedule.verify().repeatable for schedule in made))


def _gains(listed: Listed) -> Finding:
    """The decreases of one process count over those of another, of the minimum and of the median."""
    rows = {row.ranks: row for row in TABLE_2}
    before, after = (rows[ranks] for ranks in listed["ranks"])

    def decrease(times: tuple[float, float]) -> float:
        return 1 - times[1] / times[0]

    ours = [decrease(after.minimum) / decrease(before.minimum), decrease(after.median) / decrease(before.median)]
    return Finding(listed["reported"], ours)


def _rounds(listed: Listed) -> Finding:
    """The rounds of messages of an algorithm, for each of its parameters."""
    ours = [runs.rounds(listed["ranks"], listed["algorithm"], {"ways": str(ways)}) for ways in listed["ways"]]
    return Finding(listed["reported"], ours)


def _order_traffic(listed: Listed) -> Finding:
    """The messages between nodes by one schedule over those by another."""
    found = []
    for text in listed["schedules"]:
        made = runs.program(listed["ranks"], "recursive-multiplying", {"schedule": text})
        streams = json.loads(made.to_json())["streams"]
        ends = [(stream["source"], sink) for stream in streams for sink in stream["sinks"]]
        found.append(sum(source // listed["per_node"] != sink // listed["per_node"] for source, sink in ends))
    return Finding(listed["reported"], found[0] / found[1], remark=f"{found[0]} and {found[1]} messages.")


def _decrease_range(listed: Listed) -> Finding:
    decreases = [100 * (1 - after / before) for row in TABLE_2 for before, after in (row.minimum, row.median)]
    return Finding(listed["reported"], [min(decreases), max(decreases)])


def _elimination_over_split(listed: Listed) -> Finding:
    ranks = listed["ranks"]
    split = max(runs.finish(ranks, listed["split"]))
    times = [runs.run(ranks, "elimination", {"protocol": name}).nanoseconds for name in listed["protocols"]]
    return Finding(listed["reported"], [time / split for time in times])


def _predictions(row: Row) -> tuple[float, float]:
    """Recursive doubling and the schedule of a row, by the minima of Table 1."""
    return cost(doubling(row.ranks), row.ranks, ALPHA_P, ALPHA_R), cost(row.schedule, row.ranks, ALPHA_P, ALPHA_R)


def _compared(row: Row) -> multiplying_figures.Compared:
    predicted = {
        "minimum": cost(row.schedule, row.ranks, ALPHA_P, ALPHA_R),
        "median": cost(row.schedule, row.ranks, ALPHA_P_MEDIAN, ALPHA_R_MEDIAN),
    }
    measured = {"minimum": row.minimum[1], "median": row.median[1]}
    return multiplying_figures.Compared(row.ranks, row.schedule, predicted, measured)


_CHECKS: dict[str, Callable[[Listed], Finding]] = {
    "buffers": _buffers,
    "choice": _choice,
    "consistent": _consistent,
    "counts": _counts,
    "decrease": _decrease,
    "decrease-range": _decrease_range,
    "doubling": _doubling,
    "elimination-gain": _elimination_gain,
    "elimination-over-split": _elimination_over_split,
    "elimination-rounds": _elimination_rounds,
    "equal-stages": _equal_stages,
    "factorisations": _factorisations,
    "fan-out": _fan_out,
    "gains": _gains,
    "measured-over-predicted": _measured_over_predicted,
    "order-traffic": _order_traffic,
    "postal": _postal,
    "predicted": _predicted,
    "prime-threshold": _prime_threshold,
    "program": _program,
    "rank-correlation": _rank_correlation,
    "ratio-only": _ratio_only,
    "rounds": _rounds,
    "simulated-gain": _simulated_gain,
    "simulated-skew": _simulated_skew,
    "simulated-time": _simulated_time,
    "stages": _stages,
    "total-cost": _total_cost,
    "unrepaired": multiplying_dissemination.unrepaired,
}
