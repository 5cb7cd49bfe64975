"""Figures 11, 12 and 13 of "Near-Optimal Wafer-Scale Reduce" (HPDC 2024), as PNG and CSV: predicted and simulated."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from unisono.base.files import write_figure
from unisono.base.tables import csv_text
from unisono.pictures import plots
from unisono.reproduce.wafer_simulated import Point

__all__ = ["figure"]

_PAPER = "Near-Optimal Wafer-Scale Reduce, HPDC 2024"
_HEAD = [
    "panel", "collective", "shape", "elements", "algorithm", "predicted_cycles", "simulated_cycles", "relative_error",
]  # fmt: skip


def figure(folder: Path, number: int, title: str, panels: Mapping[str, Sequence[Point]]) -> list[str]:
    """Draws a figure; returns the paths written."""
    drawn = [
        plots.Panel(
            title=f"{name[0]}) {_label(points)}",
            xlabel="PEs" if _over_pes(points) else "vector length B (wavelets)",
            curves=_curves(points),
        )
        for name, points in panels.items()
    ]
    source = f"after Fig. {number} of {_PAPER}, which measured on hardware"
    return write_figure(folder, f"fig{number}", plots.model_and_runs(drawn, title, source), _table(panels))


def _curves(points: Sequence[Point]) -> dict[str, list[tuple[float, float, float | None]]]:
    over_pes = _over_pes(points)
    curves: dict[str, list[tuple[float, float, float | None]]] = {}
    for point in points:
        x = point.shape[0] if over_pes else point.elements
        curves.setdefault(point.algorithm, []).append((x, point.predicted, point.simulated))
    return curves


def _over_pes(points: Sequence[Point]) -> bool:
    return len({point.shape for point in points}) > 1


def _label(points: Sequence[Point]) -> str:
    point = points[0]
    grid = "grids" if len(point.shape) > 1 else "rows"
    size = f"B = {point.elements}, {grid}" if _over_pes(points) else f"{'x'.join(map(str, point.shape))} PEs"
    return f"{point.collective}, {size}"


def _table(panels: Mapping[str, Sequence[Point]]) -> str:
    rows = [
        [name[0], p.collective, "x".join(map(str, p.shape)), p.elements, p.algorithm, p.predicted, p.simulated, p.error]
        for name, points in panels.items()
        for p in points
    ]
    return csv_text(_HEAD, rows)
