"""A picture of a run of ranks: a row per rank, bars while its CPU is busy, and a line for each message."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.collections import LineCollection, PatchCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from unisono.base.pictures import Form, encoded, thousands

__all__ = ["MOST_RANKS", "draw"]

#: The largest number of ranks in a picture.
MOST_RANKS = 64

_BARS = {"send": "#3b6fb6", "receive": "#7fb069", "calc": "#d1495b", "reduce": "#d1495b"}
_MESSAGE = "0.45"


def draw(
    operations: Sequence[Mapping[str, Any]],
    messages: Sequence[Mapping[str, Any]],
    finish_ns: Sequence[float],
    title: str,
    form: Form = "png",
) -> bytes:
    """Returns the file of a run's picture.

    An operation has ``rank``, ``kind`` (send, receive, calc, reduce), ``start_ns`` and ``end_ns``; a message has
    ``source``, ``target``, ``sent_ns`` and ``arrived_ns``. Rank 0 is the uppermost row.
    """
    ranks = len(finish_ns)
    figure = Figure(figsize=(11, 1.5 + 0.42 * ranks), layout="constrained")
    axes = figure.subplots()
    bars: dict[str, list[Rectangle]] = {}
    for operation in operations:
        width = operation["end_ns"] - operation["start_ns"]
        if width > 0:
            low = operation["rank"] - 0.32
            bars.setdefault(operation["kind"], []).append(Rectangle((operation["start_ns"], low), width, 0.64))
    lines = [[(m["sent_ns"], m["source"]), (m["arrived_ns"], m["target"])] for m in messages]
    axes.add_collection(LineCollection(lines, colors=_MESSAGE, linewidths=0.9, zorder=1))
    for name, patches in bars.items():
        axes.add_collection(PatchCollection(patches, facecolor=_BARS[name], edgecolor="white", linewidth=0.5, zorder=2))
    for rank, end in enumerate(finish_ns):
        axes.plot([end, end], [rank - 0.42, rank + 0.42], color="black", linewidth=1.4, zorder=3)
    last = max(finish_ns, default=0.0)
    axes.set_xlim(0, last * 1.02 if last > 0 else 1)
    axes.set_ylim(ranks - 0.4, -0.6)
    axes.set_yticks(range(ranks), [f"rank {rank}" for rank in range(ranks)])
    axes.set_xlabel("time (ns)")
    thousands(axes.xaxis)
    axes.set_title(title, fontsize=11)
    axes.grid(axis="x", color="0.92", linewidth=0.6)
    axes.set_axisbelow(True)
    names = {"send": "issue of a message", "receive": "receive", "reduce": "reduction", "calc": "computation"}
    handles: list[Any] = [Patch(color=_BARS[name], label=names[name]) for name in names if name in bars]
    handles += [
        Line2D([], [], color=_MESSAGE, linewidth=0.9, label="message"),
        Line2D([], [], color="black", linewidth=1.4, label="rank is done"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False)
    return encoded(figure, form)
