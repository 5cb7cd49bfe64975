"""Maps of the best algorithms by shape and length, and curves.

Colors are from cividis and viridis, which are distinguishable with any color vision and in grey.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from unisono.base.letters import letters
from unisono.base.pictures import Form, encoded, thousands
from unisono.base.reports import SweepPoint
from unisono.base.tables import source_word

__all__ = ["Panel", "curves", "model_and_runs", "optimality_maps", "speedup_map"]

#: The largest number of cells of a map that have room for a letter.
_LETTERED = 400
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


def speedup_map(
    points: Sequence[SweepPoint], title: str, source: str = "", form: Form = "png", *, nodes: str = "PEs"
) -> bytes:
    """Draws the best algorithms of a sweep by shape (up) and length (right); colors show speed-ups.

    ``nodes`` is the unit of shapes. In a map that is not too large, cells have the best algorithm's letter and its
    speed-up over the baseline. If only some cells are simulated, these have a star. Lines separate algorithms. The
    sweep must be a full grid, as :func:`unisono.sweep` returns.
    """
    lengths = list(dict.fromkeys(point["elements"] for point in points))
    shapes = list(dict.fromkeys("x".join(map(str, point["shape"])) for point in points))
    gains = np.array([_nan(point["baseline_ratio"]) for point in points]).reshape(len(shapes), len(lengths))
    letter = letters(point["best"] for point in points)
    winners = np.array([letter[point["best"]] for point in points]).reshape(gains.shape)
    words = [source_word(point["source"]) for point in points]
    is_mixed = len(set(words)) > 1
    stars = np.array(["*" if is_mixed and word == "simulated" else "" for word in words]).reshape(gains.shape)
    source = source or ("* simulated, others by the model" if is_mixed else "")

    # Even a map of few cells needs room for the title, the color bar and the legend.
    size = (max(2.4 + 0.62 * len(lengths), 4.2), max(1.9 + 0.5 * len(shapes), 3.2))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots()
    top = max(float(np.nanmax(gains)) if np.isfinite(gains).any() else 1.0, 1.01)
    low = min(float(np.nanmin(gains)) if np.isfinite(gains).any() else 1.0, 1.0)
    image = axes.imshow(gains, origin="lower", aspect="auto", cmap="cividis", norm=Normalize(low, top))
    if gains.size <= _LETTERED:
        _write_cells(axes, winners, gains, low + 0.45 * (top - low), stars)
    _draw_borders(axes, winners)
    axes.set_xticks(range(len(lengths)), [_short(length) for length in lengths])
    axes.set_yticks(range(len(shapes)), shapes)
    axes.set_xlabel("vector length B (elements)")
    axes.set_ylabel(nodes)
    axes.set_title(title if not source else f"{title}\n{source}", fontsize=11)
    axes.tick_params(length=0)
    figure.colorbar(image, ax=axes, label=f"speed-up over {points[0]['baseline']}", pad=0.01)
    handles = [
        Line2D([], [], linestyle="", marker=f"$\\mathdefault{{{mark}}}$", color="black") for mark in letter.values()
    ]
    figure.legend(handles, list(letter), loc="outside lower center", ncols=min(len(letter), 8), frameon=False)
    return encoded(figure, form)


def optimality_maps(
    ratios: dict[str, npt.NDArray[np.float64]],
    wavelets: Sequence[int],
    title: str,
    source: str = "",
    form: Form = "png",
) -> bytes:
    """Draws a map per algorithm of its time divided by the lower bound, by P (up) and length (right).

    ``ratios`` maps a name to an array with one row for each P from 2 on and one column for each of ``wavelets``.
    """
    figure = Figure(figsize=(2.5 * len(ratios) + 1.2, 3.6), layout="constrained")
    panels = figure.subplots(1, len(ratios), sharey=True, squeeze=False)[0]
    # All panels have the same scale of colors, which ends at 10 times the bound.
    norm = LogNorm(1, 10)
    edges = np.array([wavelets[0] / 2**0.5, *(length * 2**0.5 for length in wavelets)])
    image = None
    for axes, (name, values) in zip(panels, ratios.items(), strict=True):
        rows = np.arange(2, values.shape[0] + 3) - 0.5
        image = axes.pcolormesh(edges, rows, np.clip(values, 1, 10), cmap="viridis_r", norm=norm, rasterized=True)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        axes.set_title(f"{name}\nat most {_ratio(float(np.nanmax(values)))}", fontsize=10)
        axes.set_xlabel("B (wavelets)")
    panels[0].set_ylabel("P (PEs in a row)")
    figure.suptitle(title if not source else f"{title}\n{source}", fontsize=11)
    if image is not None:
        bar = figure.colorbar(image, ax=panels, label="time / lower bound", extend="max", pad=0.01)
        ticks = [1, 1.5, 2, 3, 5, 10]
        bar.set_ticks(ticks, labels=[f"{tick:g}" for tick in ticks])
        bar.minorticks_off()
    return encoded(figure, form)


@dataclass(frozen=True)
class Panel:
    """A plot of :func:`model_and_runs`: by name, the points (x, predicted, simulated or None)."""

    title: str
    xlabel: str
    curves: Mapping[str, Sequence[tuple[float, float, float | None]]]


def model_and_runs(panels: Sequence[Panel], title: str, source: str = "", form: Form = "png") -> bytes:
    """Draws plots with logarithmic axes: predictions are lines, simulated runs are markers; a color per name."""
    figure = Figure(figsize=(4.4 * len(panels) + 0.4, 4.6), layout="constrained")
    names = list(dict.fromkeys(name for panel in panels for name in panel.curves))
    shades = mpl.colormaps["viridis"](np.linspace(0, 0.92, max(len(names), 2)))
    style = {name: (shades[at], _MARKERS[at % len(_MARKERS)]) for at, name in enumerate(names)}
    for axes, panel in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        for name, points in panel.curves.items():
            color, marker = style[name]
            axes.plot([x for x, _, _ in points], [y for _, y, _ in points], color=color, linewidth=1.4)
            ran = [(x, y) for x, _, y in points if y is not None]
            axes.plot(*zip(*ran, strict=True), linestyle="", marker=marker, color=color, markersize=5) if ran else None
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_title(panel.title, fontsize=10)
        axes.set_xlabel(panel.xlabel)
        axes.set_ylabel("cycles")
        axes.grid(color="0.9", linewidth=0.6)
    handles = [
        Line2D([], [], color=color, marker=marker, markersize=5, linewidth=1.4) for color, marker in style.values()
    ]
    figure.legend(handles, names, loc="outside lower center", ncols=min(len(names), 8), frameon=False)
    figure.suptitle(f"{title}: lines by Eq. 1, markers simulated" + (f"\n{source}" if source else ""), fontsize=11)
    return encoded(figure, form)


def curves(
    named: Mapping[str, Sequence[tuple[float, float]]],
    xlabel: str,
    ylabel: str,
    title: str,
    source: str = "",
    *,
    log_x: bool = False,
    log_y: bool = False,
    form: Form = "png",
) -> bytes:
    """Draws named curves in one plot, with one color and marker each."""
    figure = Figure(figsize=(6.4, 4.8), layout="constrained")
    axes = figure.subplots()
    shades = mpl.colormaps["viridis"](np.linspace(0, 0.92, max(len(named), 2)))
    for at, (name, points) in enumerate(named.items()):
        # Only curves of few points have markers.
        marker = _MARKERS[at % len(_MARKERS)] if len(points) <= 20 else ""
        axes.plot(*zip(*points, strict=True), color=shades[at], marker=marker, markersize=4, linewidth=1.4, label=name)
    if log_x:
        axes.set_xscale("log", base=2)
    if log_y:
        axes.set_yscale("log")
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.grid(color="0.9", linewidth=0.6)
    axes.set_title(title if not source else f"{title}\n{source}", fontsize=10)
    if not log_y:
        thousands(axes.yaxis)
    # A line of the legend has room for about 90 letters, and each name has a mark as wide as about 8 letters.
    columns = max(1, 90 // (8 + max(map(len, named))))
    figure.legend(loc="outside lower center", ncols=min(len(named), 4, columns), frameon=False, fontsize=8)
    return encoded(figure, form)


def _write_cells(
    axes: Axes, winners: npt.NDArray[Any], gains: npt.NDArray[np.float64], middle: float, stars: npt.NDArray[Any]
) -> None:
    for (row, column), mark in np.ndenumerate(winners):
        gain = gains[row, column]
        color = "white" if not gain > middle else "black"
        axes.text(column, row + 0.16, mark, ha="center", va="center", color=color, fontsize=9, fontweight="bold")
        if np.isfinite(gain):
            axes.text(
                column,
                row - 0.24,
                f"{gain:.2f}{stars[row, column]}",
                ha="center",
                va="center",
                color=color,
                fontsize=6.5,
            )


def _draw_borders(axes: Axes, winners: npt.NDArray[Any]) -> None:
    rows, columns = winners.shape
    style: dict[str, Any] = {"color": "white", "linewidth": 2.2, "solid_capstyle": "round"}
    for row in range(rows):
        for column in range(columns):
            if column + 1 < columns and winners[row, column] != winners[row, column + 1]:
                axes.plot([column + 0.5] * 2, [row - 0.5, row + 0.5], **style)
            if row + 1 < rows and winners[row, column] != winners[row + 1, column]:
                axes.plot([column - 0.5, column + 0.5], [row + 0.5] * 2, **style)


def _ratio(value: float) -> str:
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def _short(count: int) -> str:
    for unit, name in ((2**30, "Gi"), (2**20, "Mi"), (2**10, "Ki")):
        if count >= unit and count % unit == 0:
            return f"{count // unit}{name}"
    return str(count)


def _nan(value: float | None) -> float:
    return float("nan") if value is None else value
