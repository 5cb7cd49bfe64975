"""The common parts of pictures of networks: accelerators, switches, boards, and cables by kind in color."""

from collections.abc import Sequence
from textwrap import wrap
from typing import Any, Literal

from matplotlib.collections import LineCollection, PatchCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch, Patch, Rectangle

from unisono.base.pictures import Form, encoded

Point = tuple[float, float]
Kind = Literal["board", "dac", "aoc"]

#: The kinds of cables; a kind's index is its number in the array ``kind`` of a plane.
KINDS: tuple[Kind, ...] = ("board", "dac", "aoc")
#: Blue and vermilion of Okabe and Ito, which are distinguishable with any color vision.
COLORS: dict[Kind, str] = {"board": "0.55", "dac": "#0072B2", "aoc": "#D55E00"}
_NAMES: dict[Kind, str] = {
    "board": "free, on a board or in a switch",
    "dac": "copper cable (DAC)",
    "aoc": "optical cable (AoC)",
}
_ACCELERATOR, _SWITCH, _BOARD = "#F0E442", "0.25", "0.94"
_INCHES = (4.5, 13.0)
#: Half the side of an accelerator's square.
HALF = 0.3


class Canvas:
    """Collects shapes, in units of the distance of neighboring accelerators, and draws all of them at once."""

    def __init__(self) -> None:
        self._lines: dict[tuple[Kind, float, str], list[Sequence[Point]]] = {}
        self._accelerators: list[Rectangle] = []
        self._switches: list[FancyBboxPatch] = []
        self._boards: list[FancyBboxPatch] = []
        self._dots: dict[Kind, list[Point]] = {}
        self._texts: list[tuple[Point, str, str, float, str]] = []
        self._corners: list[Point] = []

    def accelerator(self, at: Point, name: str = "", half: float = HALF) -> None:
        """Adds an accelerator: a square, with a name if given."""
        x, y = at
        self._accelerators.append(Rectangle((x - half, y - half), 2 * half, 2 * half))
        self._corners += [(x - half, y - half), (x + half, y + half)]
        if name:
            self.text(at, name, size=6)

    def switch(self, at: Point, width: float = 0.6, height: float = 0.6, name: str = "") -> None:
        """Adds a switch: a dark box with center ``at``."""
        x, y = at
        corner = (x - width / 2, y - height / 2)
        style = f"round,pad=0,rounding_size={min(0.12, 0.4 * width, 0.4 * height)}"
        self._switches.append(FancyBboxPatch(corner, width, height, boxstyle=style))
        self._corners += [corner, (x + width / 2, y + height / 2)]
        if name:
            self.text(at, name, size=6, color="white")

    def board(self, corner: Point, width: float, height: float) -> None:
        """Adds a board: a light box behind all other shapes."""
        self._boards.append(FancyBboxPatch(corner, width, height, boxstyle="round,pad=0,rounding_size=0.15"))
        self._corners += [corner, (corner[0] + width, corner[1] + height)]

    def cable(self, points: Sequence[Point], kind: Kind, width: float = 1.1, style: str = "solid") -> None:
        """Adds a cable: a line through points."""
        self._lines.setdefault((kind, width, style), []).append(points)
        self._corners += points

    def dot(self, at: Point, kind: Kind) -> None:
        """Adds a dot where a cable is joined to a bar; cables that only cross the bar have none."""
        self._dots.setdefault(kind, []).append(at)

    def text(self, at: Point, text: str, align: str = "center", size: float = 8, color: str = "black") -> None:
        """Adds text beside a point, or centered on it."""
        self._texts.append((at, text, align, size, color))
        self._corners.append(at)

    def picture(self, title: str, part: str, form: Form) -> bytes:
        """Returns the content of the picture's file."""
        (left, bottom), (right, top) = (tuple(map(side, zip(*self._corners, strict=True))) for side in (min, max))
        width, height = right - left + 1.2, top - bottom + 1.2
        scale = min(max(0.42, _INCHES[0] / max(width, height)), _INCHES[1] / max(width, height))
        inches = max(width * scale, 8.0)
        figure = Figure(figsize=(inches, height * scale + 1.3), layout="constrained")
        axes = figure.subplots()
        axes.set_xlim(left - 0.6, right + 0.6)
        axes.set_ylim(bottom - 0.6, top + 0.6)
        axes.set_aspect("equal")
        axes.set_axis_off()
        axes.add_collection(PatchCollection(self._boards, facecolor=_BOARD, edgecolor="0.7", linewidth=0.8))
        for (kind, thick, style), cables in self._lines.items():
            axes.add_collection(
                LineCollection(cables, colors=COLORS[kind], linewidths=thick, linestyles=style, capstyle="round")
            )
        for kind, dots in self._dots.items():
            axes.scatter(
                [x for x, _ in dots],
                [y for _, y in dots],
                s=14,
                color=COLORS[kind],
                edgecolors="white",
                linewidths=0.4,
                zorder=5,
            )
        yellow: dict[str, Any] = {"facecolor": _ACCELERATOR, "edgecolor": "0.3", "linewidth": 0.7}
        axes.add_collection(PatchCollection(self._accelerators, zorder=4, **yellow))
        axes.add_collection(PatchCollection(self._switches, facecolor=_SWITCH, edgecolor="none", zorder=4))
        for (x, y), text, align, size, color in self._texts:
            axes.text(x, y, text, ha=align, va="center", fontsize=size, color=color, zorder=5)
        used = {kind for kind, _, _ in self._lines}
        handles: list[Patch | Line2D] = [Patch(label="accelerator", **yellow)]
        handles += [Patch(label="switch", facecolor=_SWITCH)] if self._switches else []
        handles += [Line2D([], [], color=COLORS[k], label=_NAMES[k], linewidth=1.6) for k in KINDS if k in used]
        figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False, fontsize=8)
        lines = [line for text in (title, part) for line in wrap(text, int(13 * inches))]
        figure.suptitle("\n".join(lines), fontsize=9)
        return encoded(figure, form)


def count(number: int, one: str) -> str:
    """Returns a number with its noun: ``1 switch``, ``2 switches``."""
    many = f"{one}es" if one.endswith(("ch", "x")) else f"{one}s"
    return f"{number:,} {one if number == 1 else many}"


def arc(a: Point, b: Point, bulge: float) -> list[Point]:
    """Returns points of a curve between two points, whose middle is ``bulge`` left of the straight line."""
    (ax, ay), (bx, by) = a, b
    length = ((bx - ax) ** 2 + (by - ay) ** 2) ** 0.5 or 1.0
    nx, ny = -(by - ay) / length, (bx - ax) / length
    steps = 16
    return [
        (
            ax + (bx - ax) * t + 4 * bulge * t * (1 - t) * nx,
            ay + (by - ay) * t + 4 * bulge * t * (1 - t) * ny,
        )
        for t in (k / steps for k in range(steps + 1))
    ]
