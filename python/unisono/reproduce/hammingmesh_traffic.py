"""Computes what "HammingMesh" and its artifact say of bandwidth, and of training for the money."""

import io
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from unisono.base.files import write
from unisono.machines.descriptions import machine
from unisono.planning.workloads import workload
from unisono.reproduce import Finding
from unisono.simulation.network_traffic import traffic
from unisono.tables import csv_text

__all__ = ["CHECKS", "draw"]

Listed = dict[str, Any]

#: Workloads that fit on the small clusters; the rows of Table 2 as presets are named.
WORKLOADS = ("resnet-152", "cosmoflow", "dlrm", "gpt-3")
CLUSTERS = (
    "fattree",
    "fattree-tapered50",
    "fattree-tapered75",
    "dragonfly",
    "hyperx2d",
    "hx2mesh",
    "hx4mesh",
    "torus2d",
)
_COLORS = ("#3b6fb6", "#7fb069", "#d1495b", "#e0a030")


def draw(folder: Path) -> list[str]:
    """Writes the iterations of the workloads on the small clusters as CSV, and draws what they save as Fig. 16 does."""
    head = ["workload", "machine", "seconds", "exposed_seconds", "cost_usd", "saving"]
    rows = [row for name in WORKLOADS for row in _savings(name)]
    files: dict[Path, str | bytes] = {
        folder / "fig16.csv": csv_text(head, rows),
        folder / "fig16.png": _figure(rows),
    }
    for path, data in files.items():
        write(path, data)
    return [str(path) for path in files]


@cache
def _savings(name: str) -> list[list[Any]]:
    """Of each cluster: cost times time of the nonblocking fat tree over its own."""
    rows = []
    for cluster in CLUSTERS:
        preset = f"{cluster}-small"
        facts = machine(preset).topology
        assert facts is not None  # the presets of Table 2 are networks
        done = workload(name, preset)
        rows.append([name, preset, done["seconds"], done["exposed_seconds"], facts["cost_usd"]])
    base = rows[0]
    return [[*row, base[4] * base[2] / (row[4] * row[2])] for row in rows]


def _figure(rows: list[list[Any]]) -> bytes:
    figure = Figure(figsize=(10, 4), layout="constrained")
    axes = figure.subplots()
    width = 0.8 / len(WORKLOADS)
    for n, name in enumerate(WORKLOADS):
        heights = [row[5] for row in rows if row[0] == name]
        places = [at + (n - (len(WORKLOADS) - 1) / 2) * width for at in range(len(CLUSTERS))]
        axes.bar(places, heights, width, color=_COLORS[n], label=name)
    axes.axhline(1, color="0.3", linewidth=0.8)
    axes.set_xticks(range(len(CLUSTERS)), [cluster.replace("fattree-", "fattree\n") for cluster in CLUSTERS])
    axes.set_ylabel("cost x time of the fat tree, over its own")
    axes.set_title("What small clusters save on the network of a training iteration", fontsize=11)
    axes.grid(axis="y", color="0.92", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.legend(frameon=False, ncols=len(WORKLOADS))
    file = io.BytesIO()
    # No version in the file: same input, same bytes.
    with mpl.rc_context({"savefig.dpi": 150}):
        figure.savefig(file, format="png", metadata={"Software": None})
    return file.getvalue()


def _alltoall(listed: Listed) -> Finding:
    shares = []
    for preset in listed["presets"]:
        done = traffic("alltoall", preset, bytes=listed["bytes"], level=listed["level"])
        shares.append(100 * done.share_of_injection)
    return Finding(listed["reported"], shares)


def _allreduce(listed: Listed) -> Finding:
    shares = []
    for preset in listed["presets"]:
        done = traffic("allreduce", preset, bytes=listed["bytes"], algorithm=listed["algorithm"], level="flow")
        shares.append(100 * done.share_of_peak)
    return Finding(listed["reported"], shares)


def _saving(listed: Listed) -> Finding:
    rows = [row for name in WORKLOADS for row in _savings(name) if row[1] == f"{listed['cluster']}-small"]
    return Finding(listed["reported"], [row[5] for row in rows])


CHECKS: dict[str, Callable[[Listed], Finding]] = {
    "allreduce-share": _allreduce,
    "alltoall-share": _alltoall,
    "workload-saving": _saving,
}
