"""The common parts of pictures of programs: colors, boxes, the sheet and its file."""

import textwrap
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from unisono.base.pictures import Form, encoded

#: Colors of fill and edge by kind of command, as in timelines.
COLORS = {
    "execute": ("#f6dde0", "#d1495b"),
    "push": ("#dbe4f2", "#3b6fb6"),
    "await": ("#e3efdc", "#6a9a54"),
    "collective": ("#5b4a9e", "#5b4a9e"),
}
WAIT, MESSAGE = "0.55", "#3b6fb6"
#: The height of a box, and the distance between rows, in inches.
HEIGHT, ROW = 0.36, 0.58
#: The approximate width of a letter of the title, in inches.
_LETTER = 0.078


def sheet(width: float, height: float) -> tuple[Figure, Axes]:
    """Returns a figure with axes whose unit is an inch, without lines and numbers."""
    figure = Figure(figsize=(max(width, 6.5), height + 1.0), layout="constrained")
    axes = figure.subplots()
    axes.set_axis_off()
    axes.set_aspect("equal")
    return figure, axes


def box(axes: Axes, x: float, y: float, width: float, fill: str, line: str) -> None:
    """Draws a box with its left side at ``x`` and its vertical center at ``y``."""
    style = "round,pad=0,rounding_size=0.06"
    patch = FancyBboxPatch((x, y - HEIGHT / 2), width, HEIGHT, boxstyle=style, fc=fill, ec=line, linewidth=1, zorder=3)
    axes.add_patch(patch)


def short(text: str, most: int) -> str:
    """Returns a text, shortened to ``most`` letters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def left_out(shown: int, total: int, what: str) -> list[str]:
    """Returns a note on parts that a picture omits; an empty list if nothing is omitted."""
    return [] if shown >= total else [f"the first {shown} of {total} {what}"]


def file(figure: Figure, title: str, parts: Sequence[str], handles: Sequence[Any], form: Form) -> bytes:
    """Returns the content of a picture's file, with title, notes on omitted parts, and legend."""
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False, fontsize=8)
    wide = max(20, int(figure.get_figwidth() / _LETTER))
    lines = [title, *([f"shown: {', '.join(parts)}"] if parts else [])]
    figure.suptitle("\n".join(textwrap.fill(line, wide) for line in lines), fontsize=10)
    return encoded(figure, form)
