"""Figs. 4 and 5 of "Accelerating Allreduce with in-network reduction on Intel PIUMA" (2022), as PNG and CSV."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from unisono.base.files import write_figure
from unisono.base.tables import csv_text
from unisono.pictures import plots

__all__ = ["bandwidth", "latency", "lengths", "shares", "speedups"]

Curves = Mapping[str, Sequence[tuple[float, float]]]
_PAPER = "In-network reduction on Intel PIUMA, 2022"


def latency(folder: Path, curves: Curves) -> list[str]:
    """Draws Fig. 4, the time of one element by the number of nodes."""
    return _draw(folder, "fig4-latency", curves, "nodes", "time (ns)", "Allreduce of one element on PIUMA", 4)


def bandwidth(folder: Path, curves: Curves) -> list[str]:
    """Draws Fig. 4, the bandwidth by the number of nodes."""
    return _draw(folder, "fig4-nodes", curves, "nodes", "bandwidth (Gbit/s)", "Allreduce of 128 KiB on PIUMA", 4)


def lengths(folder: Path, curves: Curves) -> list[str]:
    """Draws Fig. 4, the bandwidth by the length of the vector."""
    return _draw(folder, "fig4-lengths", curves, "bytes", "bandwidth (Gbit/s)", "Allreduce on 16 nodes of PIUMA", 4)


def shares(folder: Path, curves: Curves) -> list[str]:
    """Draws Fig. 5a, Allreduce's percentage of the time."""
    title = "VGG-16 on 16 nodes: share of Allreduce"
    return _draw(folder, "fig5a", curves, "images a node", "% of the time", title, 5)


def speedups(folder: Path, curves: Curves) -> list[str]:
    """Draws Fig. 5b, the speed-up."""
    title = "VGG-16 on 16 nodes: in-network over Rabenseifner"
    return _draw(folder, "fig5b", curves, "images a node", "speed-up", title, 5)


def _draw(folder: Path, name: str, curves: Curves, x: str, y: str, title: str, number: int) -> list[str]:
    image = plots.curves(curves, x, y, title, f"after Fig. {number} of {_PAPER}", log_x=True)
    rows = [[label, at, value] for label, points in curves.items() for at, value in points]
    return write_figure(folder, name, image, csv_text(["curve", x, y], rows))
