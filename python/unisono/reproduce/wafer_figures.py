"""Figures 1, 8 and 10 of "Near-Optimal Wafer-Scale Reduce" (HPDC 2024), as PNG and CSV."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from unisono.base.files import write_figure
from unisono.base.reports import SweepPoint
from unisono.base.tables import csv_text, sweep_csv
from unisono.pictures import plots

__all__ = ["figure_1", "map_of_winners"]

_PAPER = "Near-Optimal Wafer-Scale Reduce, HPDC 2024"


def figure_1(folder: Path, ratios: dict[str, npt.NDArray[np.float64]], lengths: Sequence[int]) -> list[str]:
    """Draws the time of every 1D Reduce, divided by the lower bound; returns the paths written."""
    names = list(ratios)
    rows = (
        [row + 2, length, *(float(ratios[name][row, column]) for name in names)]
        for row in range(ratios[names[0]].shape[0])
        for column, length in enumerate(lengths)
    )
    title = "1D Reduce: predicted time over the lower bound of Lemma 5.5"
    table = csv_text(["pes", "wavelets", *(f"ratio_{name}" for name in names)], rows)
    return write_figure(
        folder, "fig1", plots.optimality_maps(ratios, lengths, title, f"after Fig. 1 of {_PAPER}"), table
    )


def map_of_winners(folder: Path, name: str, title: str, points: Sequence[SweepPoint]) -> list[str]:
    """Draws the best fixed algorithm of a sweep and its speed-up; returns the paths written."""
    number = name.removeprefix("fig")
    image = plots.speedup_map(points, title, f"after Fig. {number} of {_PAPER}; both times as predicted by Eq. 1")
    return write_figure(folder, name, image, sweep_csv(points))
