"""A picture of strong scaling: parallel efficiency and times by the number of nodes."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from unisono.base.pictures import encoded

__all__ = ["draw"]

_FOUND, _ALONE, _COMPUTE = "#3b6fb6", "#d1495b", "0.6"


def draw(rows: Sequence[Mapping[str, Any]], title: str) -> bytes:
    """Draws efficiency and the times of computation and communication as PNG.

    Efficiency and communication are drawn with collectives, and by messages alone.
    """
    figure = Figure(figsize=(9.5, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    nodes = [row["nodes"] for row in rows]
    found = [100 * row["efficiency"] for row in rows]
    alone = [100 * row["by_messages_speedup"] / row["nodes"] for row in rows]
    left.plot(nodes, found, color=_FOUND, marker="o", label="collectives found")
    left.plot(nodes, alone, color=_ALONE, marker="s", label="messages alone")
    left.set_ylim(0, 105)
    left.set_ylabel("parallel efficiency (%)")
    several = [row for row in rows if row["nodes"] > 1]
    some = [row["nodes"] for row in several]
    right.plot(some, [row["compute_seconds"] for row in several], color=_COMPUTE, marker="^", label="computation")
    right.plot(some, [row["communication_seconds"] for row in several], color=_FOUND, marker="o")
    right.plot(some, [row["by_messages_seconds"] for row in several], color=_ALONE, marker="s")
    right.set_yscale("log")
    right.set_ylabel("seconds")
    for axes in (left, right):
        axes.set_xscale("log", base=2)
        axes.set_xlabel("nodes")
        axes.grid(color="0.92", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    figure.suptitle(title, fontsize=11)
    figure.legend(loc="outside lower center", ncols=4, frameon=False)
    return encoded(figure)
