"""Computes what "Near-Optimal Wafer-Scale Reduce" (HPDC 2024) claims, with a function for each kind of claim."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from unisono import _core, sweep
from unisono.base.reports import SweepPoint, in_cycles
from unisono.reproduce import (
    Finding,
    Listed,
    checks_of,
    wafer_figures,
    wafer_recursions,
    wafer_reread,
    wafer_squares,
    wafer_star_of_two,
    wafer_statements,
    wafer_terms,
)
from unisono.reproduce import wafer_simulated as runs
from unisono.reproduce.once import once
from unisono.reproduce.wafer_formulas import FORMULAS
from unisono.reproduce.wafer_simulated_figures import figure as draw_runs
from unisono.reproduce.wafer_statements import LETTERS, cycles_by_algorithm, letters
from unisono.reproduce.wafer_terms import bound_of, terms_of

__all__ = ["CHECKS", "FIXED_1D", "FIXED_2D", "draw", "figure_8", "figure_10", "optimality", "winners"]

MACHINE = "wse2"
#: B = 1, 2, 4, ..., 32768 wavelets: the lengths of every figure.
LENGTHS = [2**k for k in range(16)]
#: The lengths of every figure and all from 1 to 32, because the worst ratios occur for short vectors.
DENSE_LENGTHS = sorted({*range(1, 33), *LENGTHS})
PES_MAX = 512
#: The fixed algorithms of Fig. 8 and of Fig. 10.
FIXED_1D = ("star", "tree", "two-phase", "chain", "ring")
FIXED_2D = ("star", "tree", "two-phase", "chain", "snake")


def draw(folder: Path, full: bool = False) -> list[str]:
    """Draws Figures 1, 8 and 10 to 13 as PNG and CSV; makes the folder if needed, and returns the paths.

    With ``full``, Fig. 13c has grids up to 512 x 512, which takes minutes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    columns = [DENSE_LENGTHS.index(length) for length in LENGTHS]
    return [
        *wafer_figures.figure_1(folder, {name: table[:, columns] for name, table in optimality().items()}, LENGTHS),
        *wafer_figures.map_of_winners(folder, "fig8", "1D AllReduce on a row of PEs", figure_8()),
        *wafer_figures.map_of_winners(folder, "fig10", "2D AllReduce on a grid of PEs", figure_10()),
        *draw_runs(folder, 11, "A row of 512 PEs", runs.figure_11()),
        *draw_runs(folder, 12, "Vectors of 1 KB", runs.figure_12()),
        *draw_runs(folder, 13, "Grids of PEs", runs.figure_13(full)),
    ]


@once
def optimality() -> dict[str, npt.NDArray[np.float64]]:
    """Returns by algorithm the time divided by the bound of Lemma 5.5: rows P = 2..512, columns the dense lengths."""
    return _core.reduce_optimality(PES_MAX, DENSE_LENGTHS)


@once
def winners(shape: tuple[int, ...]) -> list[SweepPoint]:
    """Returns a point for each length, with the cycles by Eq. 1 of the fixed algorithms of an AllReduce on a shape."""
    algorithms = FIXED_1D if len(shape) == 1 else FIXED_2D
    # The paper computes Figs. 8 and 10 by Eq. 1.
    return sweep(
        "allreduce", MACHINE, shapes=[shape], elements=LENGTHS, algorithms=algorithms, baseline="chain", model="paper"
    )


def figure_8() -> list[SweepPoint]:
    """Returns the points of Fig. 8: rows of 4, 8, ..., 512 PEs."""
    return [point for k in range(2, 10) for point in winners((2**k,))]


def figure_10() -> list[SweepPoint]:
    """Returns the points of Fig. 10: squares of 4 x 4, 8 x 8, ..., 512 x 512 PEs."""
    return [point for k in range(2, 10) for point in winners((2**k, 2**k))]


def _cycles(
    collective: str,
    point: list[int],
    algorithm: str,
    params: dict[str, str] | None = None,
    by: str = "schedule",
) -> float:
    """Returns the cycles by Eq. 1 at a point [P, B] or [M, N, B], from the schedule's terms or by the planner."""
    *shape, length = point
    made = runs.planned(collective, tuple(shape), length, algorithm, params)
    predicted = made.predicted if by == "plan" else made.schedule.predict("paper")
    return in_cycles(predicted)


def _worst_ratio(listed: Listed) -> Finding:
    """Computes the least or the greatest of the algorithms' largest quotients of time and bound."""
    choose = {"least": min, "greatest": max}[listed.get("which", "greatest")]
    ours, name = choose((float(optimality()[name].max()), name) for name in listed["algorithms"])
    row, column = np.unravel_index(int(optimality()[name].argmax()), optimality()[name].shape)
    return Finding(listed["reported"], ours, remark=f"Of {name} at P = {row + 2}, B = {DENSE_LENGTHS[column]}.")


def _least_advantage(listed: Listed) -> Finding:
    """Divides the best other pattern's time by Auto-Gen's; returns the least quotient of all of Fig. 1.

    The star's time is that of section 5.1's conclusion or, with ``star_by_lemma``, by Eq. 1 like the other patterns'.
    """
    ratios = dict(optimality())
    if listed["star_by_lemma"]:
        by_lemma = [
            [FORMULAS["star"](pes, length) / FORMULAS["star-sharper"](pes, length) for length in DENSE_LENGTHS]
            for pes in range(2, PES_MAX + 1)
        ]
        ratios["star"] = ratios["star"] * np.array(by_lemma)
    others = np.minimum.reduce([ratios[name] for name in listed["over"]])
    return Finding(listed["reported"], float((others / ratios["auto-gen"]).min()))


def _best_of_manual(listed: Listed) -> Finding:
    worst = {name: float(optimality()[name].max()) for name in ("star", "chain", "tree", "two-phase")}
    others = min(ratio for name, ratio in worst.items() if name != "two-phase")
    remark = ", ".join(f"{name} {ratio:.2f}" for name, ratio in worst.items()) + "."
    return Finding(listed["reported"], others / worst["two-phase"], remark=remark)


def _formula(listed: Listed) -> Finding:
    reported = [FORMULAS[listed["formula"]](*point) for point in listed["points"]]
    collective, algorithm = listed["collective"], listed["algorithm"]
    params, by = listed.get("params", {}), listed.get("by", "schedule")
    ours = [_cycles(collective, point, algorithm, params, by) for point in listed["points"]]
    return Finding(reported, ours)


def _bound(listed: Listed) -> Finding:
    reported = [FORMULAS[listed["formula"]](*point) for point in listed["points"]]
    ours = [bound_of(listed["collective"], point, listed["bound"]) for point in listed["points"]]
    return Finding(reported, ours)


def _broadcast_over_message(listed: Listed) -> Finding:
    ratios = [_cycles("broadcast", p, "flood") / _cycles("message", p, "message") for p in listed["points"]]
    return Finding([listed["reported"]] * len(ratios), ratios)


def _snake_over_bound(listed: Listed) -> Finding:
    (point,) = listed["points"]
    return Finding(listed["reported"], _cycles("reduce", point, "snake") / bound_of("reduce", point, listed["bound"]))


def _snake_depth(listed: Listed) -> Finding:
    (point,) = listed["points"]
    return Finding(listed["reported"], terms_of(point, "snake")["depth"])


def _winners(listed: Listed) -> Finding:
    ours = ""
    for letter, point in zip(listed["reported"], winners(tuple(listed["shape"])), strict=True):
        cycles = cycles_by_algorithm(point)
        tie = cycles[LETTERS[letter]] <= min(cycles.values()) * (1 + listed["tolerance"])
        ours += letter if tie else letters([min(cycles, key=cycles.__getitem__)])
    return Finding(listed["reported"], ours)


def _longest_winners(listed: Listed) -> Finding:
    """Lists the best fixed algorithm of an AllReduce for the longest vectors, by shape."""
    times = [cycles_by_algorithm(winners(tuple(shape))[-1]) for shape in listed["shapes"]]
    return Finding(listed["reported"], letters(min(by, key=by.__getitem__) for by in times))


def _gains(listed: Listed) -> Finding:
    shape, lengths = listed["shape"], LENGTHS[:13]
    reported = listed.get("reported") or [FORMULAS[listed["formula"]](*shape, length) for length in lengths]
    times = runs.cycles(listed["collective"], [shape], lengths, ["auto-gen", "chain"])
    return Finding(reported, [by["chain"] / by["auto-gen"] for by in times])


def _ring_over_best(listed: Listed) -> Finding:
    choose = {"least": min, "greatest": max}[listed["which"]]
    gains: dict[int, float] = {}
    for pes in listed["pes"]:
        points = [p for p in winners((pes,)) if p["elements"] in listed["wavelets"]]
        gains[pes] = choose(_without_ring(point) for point in points)
    remark = "By P: " + ", ".join(f"{pes}: {gain:.2f}" for pes, gain in gains.items()) + "." if len(gains) > 1 else ""
    return Finding(listed["reported"], choose(gains.values()), remark=remark)


def _without_ring(point: SweepPoint) -> float:
    cycles = cycles_by_algorithm(point)
    return float(cycles["ring"] / min(time for name, time in cycles.items() if name != "ring"))


def _simulated_closed_form(listed: Listed) -> Finding:
    worst, pes, length = runs.worst_difference(listed["collective"], listed["algorithm"], FORMULAS[listed["form"]])
    return Finding(listed["reported"], worst, remark=f"Largest at P = {pes}, B = {length}." if worst else "")


def _simulated_model_error(listed: Listed) -> Finding:
    name = listed["algorithm"]
    points = [runs.point("reduce", (pes,), length, name) for pes in listed["pes"] for length in runs.LENGTHS]
    found = sorted(((abs(at.error or 0), at) for at in points), key=lambda pair: -pair[0])
    above = [f"{(at.error or 0):+.1%} at P = {at.shape[0]}, B = {at.elements}" for error, at in found if error > 0.06]
    mean = sum(error for error, _ in found) / len(found)
    remark = f"Mean {mean:.1%} of {len(found)} points" + (f"; beyond it: {', '.join(above)}." if above else ".")
    return Finding(listed["reported"], found[0][0], remark=remark)


def _simulated_mean_error(listed: Listed) -> Finding:
    found = runs.errors(listed["panel"])
    means = {name: sum(values) / len(values) for name, values in found.items()}
    remark = ", ".join(f"{name} {mean:.1%} of {len(found[name])} points" for name, mean in means.items()) + "."
    return Finding(listed["reported"], max(means.values()), remark=remark)


def _simulated_mispredictions(listed: Listed) -> Finding:
    lost = runs.mispredictions()
    if not lost:
        return Finding(listed["reported"], 0, remark="Every pair of patterns is put in the right order.")
    cycles, length, chosen, better = lost[0]
    remark = f"{len(lost)} pairs; the worst at B = {length}: {chosen} is predicted to beat {better}."
    return Finding(listed["reported"], cycles, remark=remark)


CHECKS = {
    **checks_of(globals()),
    **wafer_recursions.CHECKS,
    **wafer_reread.CHECKS,
    **wafer_squares.CHECKS,
    **wafer_star_of_two.CHECKS,
    **wafer_statements.CHECKS,
    **wafer_terms.CHECKS,
}
