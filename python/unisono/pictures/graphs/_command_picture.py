"""A picture of the commands of each rank: a lane for each rank, and each command below its predecessors."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, Patch, PathPatch, Rectangle
from matplotlib.path import Path

from unisono.base.pictures import Form
from unisono.pictures.graphs._commands import Command, CommandGraph, Place, command_graph
from unisono.pictures.graphs._sheet import COLORS, MESSAGE, ROW, WAIT, box, file, left_out, sheet, short
from unisono.pictures.graphs._tasks import Source

#: Limits of drawn ranks, and of drawn commands of a rank; the title states if there are more.
MOST_RANKS, MOST_COMMANDS = 8, 20

_NAMES = {"execute": "kernel", "push": "push", "await": "await", "collective": "collective"}
#: The width of a box, and the distance between lanes, in inches.
_WIDTH, _LANE = 1.75, 2.25


def draw(source: Source, title: str, form: Form = "png") -> bytes:
    """Returns the content of the picture's file."""
    graph = command_graph(source, range(min(source.nodes, MOST_RANKS)))
    tasks = 1 + max((command.task for command in graph.commands.values()), default=0)
    shown = _first_tasks(graph, tasks)
    kept = {place: command for place, command in graph.commands.items() if command.task < shown}
    messages = [(a, b) for a, b in graph.messages if a.place in kept and b.place in kept]
    graph = CommandGraph(graph.nodes, graph.ranks, kept, messages)
    rows = _rows(graph)
    high = 1 + max(rows.values(), default=0)
    figure, axes = sheet(len(graph.ranks) * _LANE, high * ROW + 0.4)
    axes.set_xlim(-_LANE / 2, (len(graph.ranks) - 0.5) * _LANE)
    top, bottom = -0.75, (high - 0.5) * ROW + 0.05
    axes.set_ylim(bottom, top)
    for rank in graph.ranks:
        x = rank * _LANE
        corner, width = (x - _LANE / 2 + 0.06, top), _LANE - 0.12
        axes.add_patch(Rectangle(corner, width, bottom - top, fc="0.965", ec="none", zorder=0))
        axes.text(x, -0.52, f"rank {rank}", ha="center", va="center", fontsize=9, fontweight="bold")
    for rank in graph.ranks:
        _waits(axes, graph, rank, rows)
    for command in kept.values():
        if command.kind != "collective":
            _command(axes, command, rank_x=command.rank * _LANE, y=rows[command.place] * ROW)
    for members in graph.operations().values():
        _operation(axes, members, graph.nodes, rows[members[0].place] * ROW)
    for a, b in messages:
        _message(axes, a, b, rows)
    parts = left_out(len(graph.ranks), graph.nodes, "ranks") + left_out(shown, tasks, "tasks")
    kinds = [kind for kind in COLORS if any(command.kind == kind for command in kept.values())]
    handles: list[Any] = [Patch(fc=COLORS[k][0], ec=COLORS[k][1], label=_NAMES[k]) for k in kinds]
    handles.append(Line2D([], [], color=WAIT, linewidth=0.9, label="waits for"))
    if messages:
        handles.append(Line2D([], [], color=MESSAGE, linewidth=1.1, linestyle=(0, (4, 2)), label="message"))
    return file(figure, title, parts, handles, form)


def _first_tasks(graph: CommandGraph, tasks: int) -> int:
    """Returns the largest number of first tasks, at least 1, for which no rank has too many commands."""
    counts = {rank: [0] * tasks for rank in graph.ranks}
    for command in graph.commands.values():
        counts[command.rank][command.task] += 1
    for shown in range(1, tasks):
        if any(sum(count[: shown + 1]) > MOST_COMMANDS for count in counts.values()):
            return shown
    return tasks


def _rows(graph: CommandGraph) -> dict[Place, int]:
    """Returns the row of each command: the first free row below its predecessors.

    For a collective, the row must be free in all lanes between its members.
    """
    levels, before, operations = graph.levels(), graph.before(), graph.operations()
    rows: dict[Place, int] = {}
    free = dict.fromkeys(graph.ranks, 0)
    # Collectives are placed first, because they need free space in several lanes.
    order = sorted((levels[place], command.kind != "collective", place) for place, command in graph.commands.items())
    for _, _, place in order:
        if place in rows:
            continue
        command = graph.commands[place]
        members = operations[command.group] if command.kind == "collective" else [command]
        lanes = range(members[0].rank, members[-1].rank + 1)
        below = (1 + rows[other] for member in members for other in before[member.place])
        row = max(*(free[lane] for lane in lanes), 0, *below)
        rows.update({member.place: row for member in members})
        free.update(dict.fromkeys(lanes, row + 1))
    return rows


def _command(axes: Axes, command: Command, rank_x: float, y: float) -> None:
    box(axes, rank_x - _WIDTH / 2, y, _WIDTH, *COLORS[command.kind])
    part = command.part.replace("\n", ", ")
    if command.kind == "await" and len(part) > 34:
        part = f"from {', '.join(map(str, command.peers))}"
    _words(axes, rank_x, y, command.what, part, "black")


def _words(axes: Axes, x: float, y: float, what: str, part: str, color: str) -> None:
    axes.text(x, y - 0.075, short(what, 28), ha="center", va="center", fontsize=7.5, color=color, zorder=4)
    axes.text(x, y + 0.085, short(part, 38), ha="center", va="center", fontsize=5.8, color=color, zorder=4)


def _operation(axes: Axes, members: Sequence[Command], nodes: int, y: float) -> None:
    """Draws a collective: bars across neighboring lanes of members, and a thin bar across all other lanes between."""
    fill, line = COLORS["collective"]
    ranks = [command.rank for command in members]
    axes.plot([ranks[0] * _LANE, ranks[-1] * _LANE], [y, y], color=line, linewidth=3, zorder=2)
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and rank == runs[-1][-1] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    more = sum(rank > ranks[-1] for rank in members[0].participants) if len(members[0].participants) > len(ranks) else 0
    for run in runs:
        x, width = run[0] * _LANE - _WIDTH / 2, (run[-1] - run[0]) * _LANE + _WIDTH
        box(axes, x, y, width, fill, line)
        others = f"with {more} more of {nodes} ranks" if more else ""
        part = others or (members[0].part if len(ranks) == 1 else f"{len(ranks)} ranks")
        _words(axes, x + width / 2, y, members[0].what, part, "white")


def _waits(axes: Axes, graph: CommandGraph, rank: int, rows: dict[Place, int]) -> None:
    """Draws lines from a rank's commands to their predecessors, around other boxes.

    Dependencies that follow from other dependencies, or from the order of a rank's kernels, are not drawn.
    """
    x, side = rank * _LANE, rank * _LANE - _WIDTH / 2
    before: dict[int, set[int]] = {}
    kernel: set[int] = set()
    for command in (command for command in graph.commands.values() if command.rank == rank):
        waits = {number for number in command.waits if (rank, number) in graph.commands}
        order = kernel if command.kind == "execute" else set()
        implied = set().union(*(before[number] for number in waits | order))
        before[command.number] = waits | order | implied
        if command.kind == "execute":
            kernel = {command.number}
        row = rows[command.place]
        for other in (rows[rank, number] for number in sorted(waits - implied)):
            style: dict[str, Any] = {"linewidth": 0.9, "zorder": 1}
            if other + 1 == row:
                axes.plot([x, x], [other * ROW, row * ROW], color=WAIT, **style)
                continue
            bulge = side - min(0.08 + 0.03 * (row - other), 0.22)
            points = [(side, other * ROW), (bulge, other * ROW), (bulge, row * ROW), (side, row * ROW)]
            curve = Path(points, [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4])
            axes.add_patch(PathPatch(curve, fill=False, edgecolor=WAIT, **style))


def _message(axes: Axes, push: Command, await_: Command, rows: dict[Place, int]) -> None:
    side = 1 if await_.rank > push.rank else -1
    start = (push.rank * _LANE + side * _WIDTH / 2, rows[push.place] * ROW)
    end = (await_.rank * _LANE - side * _WIDTH / 2, rows[await_.place] * ROW)
    arrow = FancyArrowPatch(
        start, end, arrowstyle="-|>", mutation_scale=8, shrinkA=0, shrinkB=0, color=MESSAGE, linewidth=1.1,
        linestyle=(0, (4, 2)), zorder=2,
    )  # fmt: skip
    axes.add_patch(arrow)
