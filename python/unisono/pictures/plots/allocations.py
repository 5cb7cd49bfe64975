"""A picture of the jobs on the boards of a network."""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from unisono.base.pictures import Form, encoded
from unisono.base.reports import AllocationReport

__all__ = ["mapping"]

#: The colors of jobs, different for successive jobs.
_COLORS = mpl.colormaps["tab20"].colors  # type: ignore[attr-defined]
#: Greys of failed and idle boards.
_FAILED, _IDLE = "#202020", "#ececec"
#: The largest number of boards in a row or column for which boards have room for a number.
_NUMBERED = 24


def mapping(report: AllocationReport, title: str, form: Form = "png") -> bytes:
    """Draws the boards of the first sample of :func:`unisono.allocate`, with a color for each job.

    Jobs are numbered by size if there is room. The boards of a job are at the crossings of its positions, so a job may
    be in several pieces. Boards of one dimension are drawn leaf by leaf, or in a square without leaves; of three or
    more dimensions, the last is one side of the picture, and all others together are the second.
    """
    grid = _Grid.of(report["boards"], report["leaf"])
    rows, columns = grid.rows, grid.columns
    first = report["first"]
    width = min(0.34 * columns, 9.5) if columns <= _NUMBERED else 9.5
    figure = Figure(figsize=(width + 1.4, width * rows / columns + 1.7), layout="constrained")
    axes = figure.subplots()
    axes.add_patch(Rectangle((0, 0), columns, rows, facecolor=_IDLE, edgecolor="none"))
    for row, column in grid.beyond():
        axes.add_patch(Rectangle((column, row), 1, 1, facecolor="white", edgecolor="none"))
    numbered = max(rows, columns) <= _NUMBERED
    placed = [job for job in first["jobs"] if job["positions"] is not None]
    largest = sorted(placed, key=lambda job: -math.prod(map(len, job["positions"] or ())))
    for number, job in enumerate(largest):
        cells = grid.cells(job["positions"] or [])
        _draw(axes, cells, _COLORS[number % len(_COLORS)], str(number + 1) if numbered else "")
    for board in first["failed"]:
        row, column = next(grid.cells([[at] for at in board]))
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
    axes.set_xlabel(grid.labels[1])
    axes.set_ylabel(grid.labels[0])
    refused = sum(job["positions"] is None for job in first["jobs"])
    axes.set_title(
        f"{title}\n{len(largest)} jobs placed, {refused} refused, {len(first['failed'])} boards failed", fontsize=10
    )
    handles = [Patch(facecolor=_FAILED, label="failed"), Patch(facecolor=_IDLE, edgecolor="#aaaaaa", label="idle")]
    handles.append(Patch(facecolor=_COLORS[0], label="a job (boards of one color; colors repeat)"))
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    return encoded(figure, form)


@dataclass(frozen=True)
class _Grid:
    """The cells of a drawing, one for each board.

    If boards have no rows and columns, the longer side of the grid is horizontal.
    """

    count: list[int]
    rows: int
    columns: int
    #: The labels of the vertical and of the horizontal side.
    labels: tuple[str, str]
    is_turned: bool = False

    @classmethod
    def of(cls, count: list[int], leaf: list[int]) -> "_Grid":
        """Returns the grid for the numbers of boards in each dimension."""
        if len(count) == 2:
            return cls(count, count[0], count[1], ("row of boards", "column of boards"))
        labels = ("other dimensions", "last dimension")
        line = count[-1]
        if len(count) == 1:
            is_leaf = 1 < leaf[0] < count[0]
            line = leaf[0] if is_leaf else math.isqrt(count[0] - 1) + 1
            labels = ("leaf, group or box", "board of it") if is_leaf else ("boards", "board")
        lines = -(-math.prod(count) // line)
        return cls(count, line, lines, labels[::-1], True) if lines > line else cls(count, lines, line, labels)

    def cell(self, number: int) -> tuple[int, int]:
        """Returns the row and the column of a board, by its row-major number."""
        at, place = divmod(number, self.rows if self.is_turned else self.columns)
        return (place, at) if self.is_turned else (at, place)

    def cells(self, positions: Sequence[Iterable[int]]) -> Iterator[tuple[int, int]]:
        """Yields the cells of the boards whose number along each dimension is in ``positions``."""
        for at in itertools.product(*positions):
            number = 0
            for position, extent in zip(at, self.count, strict=True):
                number = number * extent + position
            yield self.cell(number)

    def beyond(self) -> Iterator[tuple[int, int]]:
        """Yields the cells after the last board."""
        return map(self.cell, range(math.prod(self.count), self.rows * self.columns))


def _draw(axes: Axes, cells: Iterable[tuple[int, int]], color: Any, number: str) -> None:
    dark = sum(to_rgb(color)) < 1.6
    for row, column in cells:
        axes.add_patch(Rectangle((column, row), 1, 1, facecolor=color, edgecolor="white", linewidth=0.4))
        if number:
            style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 6}
            axes.text(column + 0.5, row + 0.5, number, color="white" if dark else "black", **style)
