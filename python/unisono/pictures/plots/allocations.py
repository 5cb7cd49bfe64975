"""A picture of the jobs on the boards of a network."""

from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from unisono.base.pictures import Form, encoded
from unisono.base.reports import AllocationReport, Job

__all__ = ["mapping"]

#: Neighboring jobs have different colors; greys are for boards without a job.
_COLORS = mpl.colormaps["tab20"].colors  # type: ignore[attr-defined]
_FAILED, _IDLE = "#202020", "#ececec"
#: The largest number of boards in a line for which each has room for a number.
_NUMBERED = 24


def mapping(report: AllocationReport, title: str, form: Form = "png") -> bytes:
    """Draws the boards of the first sample of :func:`unisono.allocate`: one color a job.

    Jobs are numbered by size if there is room. The boards of a job are at the crossings of its rows and columns, so a
    job may be in several pieces.
    """
    rows, columns = report["boards"]
    first = report["first"]
    width = min(0.34 * columns, 9.5) if columns <= _NUMBERED else 9.5
    figure = Figure(figsize=(width + 1.4, width * rows / columns + 1.7), layout="constrained")
    axes = figure.subplots()
    axes.add_patch(Rectangle((0, 0), columns, rows, facecolor=_IDLE, edgecolor="none"))
    numbered = max(rows, columns) <= _NUMBERED
    placed = [job for job in first["jobs"] if job["rows"] is not None]
    largest = sorted(placed, key=lambda job: -len(job["rows"] or ()) * len(job["columns"] or ()))
    for number, job in enumerate(largest):
        _draw(axes, job, _COLORS[number % len(_COLORS)], str(number + 1) if numbered else "")
    for row, column in first["failed"]:
        axes.add_patch(Rectangle((column, row), 1, 1, facecolor=_FAILED, edgecolor="white", linewidth=0.4))
        if numbered:
            axes.plot([column + 0.25, column + 0.75], [row + 0.25, row + 0.75], color="white", linewidth=0.8)
            axes.plot([column + 0.25, column + 0.75], [row + 0.75, row + 0.25], color="white", linewidth=0.8)
    axes.set_xlim(0, columns)
    axes.set_ylim(rows, 0)
    axes.set_aspect("equal")
    step = 1 if numbered else max(rows, columns) // 8
    axes.set_xticks([c + 0.5 for c in range(0, columns, step)], [str(c) for c in range(0, columns, step)], fontsize=7)
    axes.set_yticks([r + 0.5 for r in range(0, rows, step)], [str(r) for r in range(0, rows, step)], fontsize=7)
    axes.tick_params(length=0)
    axes.set_xlabel("column of boards")
    axes.set_ylabel("row of boards")
    refused = sum(job["rows"] is None for job in first["jobs"])
    axes.set_title(
        f"{title}\n{len(largest)} jobs placed, {refused} refused, {len(first['failed'])} boards failed", fontsize=10
    )
    handles = [Patch(facecolor=_FAILED, label="failed"), Patch(facecolor=_IDLE, edgecolor="#aaaaaa", label="idle")]
    handles.append(Patch(facecolor=_COLORS[0], label="a job (boards of one color; colors repeat)"))
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    return encoded(figure, form)


def _draw(axes: Axes, job: Job, color: Any, number: str) -> None:
    dark = sum(to_rgb(color)) < 1.6
    for row in job["rows"] or ():
        for column in job["columns"] or ():
            axes.add_patch(Rectangle((column, row), 1, 1, facecolor=color, edgecolor="white", linewidth=0.4))
            if number:
                style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 6}
                axes.text(column + 0.5, row + 0.5, number, color="white" if dark else "black", **style)
