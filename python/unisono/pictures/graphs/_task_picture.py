"""A picture of the data that tasks read: on the right, data that moves between ranks; on the left, local data."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, Patch
from matplotlib.path import Path

from unisono.base.pictures import Form
from unisono.pictures.graphs._sheet import COLORS, MESSAGE, ROW, WAIT, box, file, left_out, sheet, short
from unisono.pictures.graphs._tasks import P2P, Edge, Source, task_graph

#: The limit of drawn tasks; the title states if there are more.
MOST_TASKS = 24
#: Half the width of a task's box, and the distances between lanes on its right and on its left, in inches.
_HALF, _RIGHT, _LEFT = 0.95, 1.45, 0.22


def draw(source: Source, title: str, form: Form = "png") -> bytes:
    """Returns the content of the picture's file: tasks in the order of submission, one round of each loop."""
    graph = task_graph(source).folded()
    shown = min(len(graph.tasks), MOST_TASKS)
    edges = [edge for edge in graph.edges if max(edge.after, edge.before) < shown]
    moved, stays = (_lanes([edge for edge in edges if bool(edge.by) is there]) for there in (True, False))
    left, right = (_LEFT * _count(stays), _RIGHT * _count(moved))
    figure, axes = sheet(2 * _HALF + left + right + 0.9, shown * ROW)
    axes.set_xlim(-_HALF - left - 0.3, _HALF + right + 0.6)
    axes.set_ylim((shown - 0.4) * ROW, -0.6 * ROW)
    fill, line = COLORS["execute"]
    for place, task in enumerate(graph.tasks[:shown]):
        box(axes, -_HALF, place * ROW, 2 * _HALF, fill, line)
        text = task.text(short(task.name, 22 if task.rounds == 1 else 14))
        axes.text(0, place * ROW, text, ha="center", va="center", fontsize=7.5, zorder=4)
    for edge, lane in stays:
        _arrow(axes, edge, -_HALF, -_HALF - (lane + 1) * _LEFT, 0.9)
    for edge, lane in moved:
        x = _HALF + 0.25 + lane * _RIGHT
        _arrow(axes, edge, _HALF, x, 1.3)
        label, middle = f"{edge.buffer}\n{edge.by}", (edge.after + edge.before) / 2 * ROW
        behind = {"fc": "white", "ec": "none", "pad": 0.6}
        axes.text(x + 0.05, middle, label, va="center", fontsize=7.5, color=_color(edge), bbox=behind, zorder=5)
    names = {COLORS["collective"][0]: "by a collective", MESSAGE: "by messages", WAIT: "stays on its rank"}
    used = {_color(edge) for edge in edges}
    lines = [Line2D([], [], color=color, linewidth=1.3, label=name) for color, name in names.items() if color in used]
    if any(edge.leads_back for edge in edges):
        lines.append(Line2D([], [], color="0.3", linewidth=1.3, linestyle="dashed", label="to a later round"))
    handles = [Patch(fc=fill, ec=line, label="task"), *lines]
    return file(figure, title, left_out(shown, len(graph.tasks), "tasks"), handles, form)


def _arrow(axes: Axes, edge: Edge, side: float, x: float, width: float) -> None:
    """Draws an arrow from the bottom of a box along a lane to the top of a second box."""
    top, bottom = edge.after * ROW + 0.09, edge.before * ROW - 0.09
    path = Path([(side, top), (x, top), (x, bottom), (side, bottom)])
    dashes = "dashed" if edge.leads_back else "solid"
    style: dict[str, Any] = {
        "linestyle": dashes,
        "color": _color(edge),
        "linewidth": width,
        "mutation_scale": 8,
        "fill": False,
    }
    axes.add_patch(FancyArrowPatch(path=path, arrowstyle="-|>", zorder=2, **style))


def _color(edge: Edge) -> str:
    # A halo exchange has a name like a collective, but consists of messages.
    return {"": WAIT, P2P: MESSAGE, "halo": MESSAGE}.get(edge.by, COLORS["collective"][0])


def _covered(edge: Edge) -> tuple[float, float]:
    """Returns the range of rows beside an edge; an edge to a later round extends beyond both tasks."""
    return (edge.before - 0.2, edge.after + 0.2) if edge.leads_back else (edge.after, edge.before)


def _count(lanes: Sequence[tuple[Edge, int]]) -> int:
    return 1 + max((lane for _, lane in lanes), default=-1)


def _lanes(edges: Sequence[Edge]) -> list[tuple[Edge, int]]:
    """Returns each edge with a lane in which no edges overlap; short edges get the nearest lanes."""
    lanes: list[list[tuple[float, float]]] = []
    placed = []
    for edge in sorted(edges, key=lambda edge: (abs(edge.before - edge.after), edge.after, edge.before, edge.buffer)):
        first, last = _covered(edge)
        free = (all(last <= start or end <= first for start, end in lane) for lane in lanes)
        number = next((number for number, is_free in enumerate(free) if is_free), len(lanes))
        if number == len(lanes):
            lanes.append([])
        lanes[number].append((first, last))
        placed.append((edge, number))
    return placed
