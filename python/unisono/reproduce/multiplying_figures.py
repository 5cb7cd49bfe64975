"""Figs. 3, 4 and 12 of "Generalisation of recursive doubling for AllReduce" (2017), as PNG and CSV."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from unisono.base.files import write_figure
from unisono.base.tables import csv_text
from unisono.pictures import plots

__all__ = ["Compared", "figure_3", "figure_4", "figure_12"]

_PAPER = "Generalisation of recursive doubling for AllReduce, 2017"


class Compared(NamedTuple):
    """A row of Table 2: predicted and measured times in us, by `minimum` and `median`."""

    ranks: int
    schedule: str
    predicted: Mapping[str, float]
    measured: Mapping[str, float]


def figure_3(folder: Path, fan_outs: Sequence[tuple[float, float, float]]) -> list[str]:
    """Draws the best number of messages by ratio: by Eq. 5 as printed, and corrected."""
    curves = {
        "Eq. 5 with 1/e, the minimum of Eq. 4": [(ratio, corrected) for ratio, _, corrected in fan_outs],
        "Eq. 5 as printed": [(ratio, printed) for ratio, printed, _ in fan_outs],
    }
    title = "The best number of messages a stage"
    image = plots.curves(curves, "ratio of alpha_p to alpha_r", "best b", title, _after(3))
    return write_figure(folder, "fig3", image, csv_text(["ratio", "b_printed", "b_corrected"], fan_outs))


def figure_4(folder: Path, times: Mapping[int, Sequence[tuple[float, float]]], best: float) -> list[str]:
    """Draws Eq. 4 by b, a curve for each number of processes."""
    curves = {f"N = {ranks}": points for ranks, points in times.items()}
    title = f"Eq. 4 with alpha_p = 1 µs, alpha_r = 0.25 µs: least at b = {best:.2f}"
    image = plots.curves(curves, "messages a stage, b", "time (µs)", title, _after(4))
    rows = [[ranks, b, time] for ranks, points in times.items() for b, time in points]
    return write_figure(folder, "fig4", image, csv_text(["ranks", "b", "us"], rows))


def figure_12(folder: Path, rows: Sequence[Compared]) -> list[str]:
    """Draws Fig. 12, the relative excess of measured times over predicted times."""
    kinds = ("minimum", "median")
    curves = {
        f"{kind}, measured by the paper": [(r.ranks, r.measured[kind] / r.predicted[kind] - 1) for r in rows]
        for kind in kinds
    }
    title = "Measured time over the time by Eq. 3, less 1"
    image = plots.curves(curves, "processes N", "relative difference", title, _after(12), log_x=True)
    head = ["ranks", "schedule", *(f"{what}_{kind}_us" for kind in kinds for what in ("predicted", "measured"))]
    table = [[r.ranks, r.schedule, *(t for k in kinds for t in (r.predicted[k], r.measured[k]))] for r in rows]
    return write_figure(folder, "fig12", image, csv_text(head, table))


def _after(number: int) -> str:
    return f"after Fig. {number} of {_PAPER}"
