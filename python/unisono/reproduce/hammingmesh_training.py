"""Computes what "HammingMesh" and its artifact state about training: times of iterations, and savings (Fig. 16).

The saving of a HammingMesh relative to another network is cost x communication overhead of that network, divided by
cost x overhead of the HammingMesh (section 5.2). The overhead of an iteration is its time minus the computing time of
the accelerator that computes longest. Costs are those of all planes, with the prices of Table 2.
"""

import io
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from unisono._core import workload_presets
from unisono.base.files import write_figure
from unisono.base.tables import csv_text
from unisono.machines.descriptions import machine
from unisono.planning.workloads import workload
from unisono.reproduce import Finding, Listed, checks_of, listed_claims
from unisono.reproduce.once import once

__all__ = ["CHECKS", "draw", "facts_of"]

#: The rows of Table 2, by the names of presets.
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
GRIDS = ("hyperx2d", "hx2mesh", "hx4mesh", "torus2d")
MESHES = ("hx2mesh", "hx4mesh")
#: Networks with one port of 1,600 Gb/s, and links between switches, that the artifact simulates in place of priced
#: ones.
SIMULATED = {"hyperx2d": "hyperx"}
#: The workloads that the artifact runs on small clusters; for GPT-3 with experts the cluster has 1,536 accelerators.
WORKLOADS = ("resnet-152", "cosmoflow", "dlrm", "gpt-3", "gpt-3-moe")
_COLORS = ("#3b6fb6", "#7fb069", "#d1495b", "#e0a030", "#8a5fbf")


def draw(folder: Path) -> list[str]:
    """Writes the modelled iterations as CSV, and draws the savings of the HammingMeshes like Fig. 16."""
    head = ["workload", "machine", "seconds", "overhead_seconds", "cost_usd"]
    head += [f"{mesh}_{whose}" for whose in ("saving", "artifact") for mesh in MESHES]
    rows = [row for name in WORKLOADS for row in _rows(name)]
    return write_figure(folder, "fig16", _figure(rows), csv_text(head, rows))


def _case(name: str, cluster: str) -> tuple[str, str]:
    """Returns the workload and the machine that the artifact simulates for a row and a column of Fig. 16."""
    size = "1536" if name == "gpt-3-moe" else "small"
    rings = "-rings" if name == "dlrm" and cluster not in (*GRIDS, *SIMULATED.values()) else ""
    return f"{name}-artifact{rings}", f"{cluster}-{size}-one-plane"


@once
def _timed(name: str, cluster: str, level: str, routing: str | None = None) -> tuple[float, float]:
    """Returns an iteration's time and overhead in seconds; ``routing`` replaces the network's routing."""
    variant, preset = _case(name, cluster)
    on = machine(preset)
    if routing is not None:
        on = on.changed("topology.routing", routing)
    seconds = workload(variant, on, level=level)["seconds"]
    compute = next(known["compute_seconds"] for known in workload_presets() if known["name"] == variant)
    return seconds, seconds - compute


def facts_of(preset: str) -> dict[str, Any]:
    """Returns the facts of a network's topology."""
    facts = machine(preset).topology
    assert facts is not None  # the presets of Table 2 are networks
    return facts


def _cost(cluster: str) -> float:
    return float(facts_of(f"{cluster}-small")["cost_usd"])


def _saving(name: str, mesh: str, cluster: str, level: str) -> float:
    costs = _cost(cluster) / _cost(mesh)
    return costs * _timed(name, SIMULATED.get(cluster, cluster), level)[1] / _timed(name, mesh, level)[1]


def _rows(name: str) -> list[list[Any]]:
    rows = []
    for cluster in CLUSTERS:
        savings = [_saving(name, mesh, cluster, "model") for mesh in MESHES]
        found = [_artifact_cells()[name, mesh].get(cluster, "") for mesh in MESHES]
        times = _timed(name, SIMULATED.get(cluster, cluster), "model")
        rows.append([name, cluster, *times, _cost(cluster), *savings, *found])
    return rows


def _figure(rows: list[list[Any]]) -> bytes:
    figure = Figure(figsize=(12, 4), layout="constrained")
    width = 0.8 / len(WORKLOADS)
    for column, mesh in enumerate(MESHES):
        axes = figure.add_subplot(1, len(MESHES), 1 + column)
        others = [cluster for cluster in CLUSTERS if cluster not in MESHES]
        for n, name in enumerate(WORKLOADS):
            heights = [row[5 + column] for row in rows if row[0] == name and row[1] in others]
            places = [at + (n - (len(WORKLOADS) - 1) / 2) * width for at in range(len(others))]
            axes.bar(places, heights, width, color=_COLORS[n], label=name)
        axes.axhline(1, color="0.3", linewidth=0.8)
        labels = [cluster.replace("fattree-", "fattree\n") for cluster in others]
        axes.set_xticks(range(len(others)), labels, fontsize=8)
        axes.set_ylabel("cost x overhead, over its own")
        axes.set_title(f"What {mesh}-small saves over other small clusters", fontsize=11)
        axes.grid(axis="y", color="0.92", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.legend(frameon=False, fontsize=8)
    file = io.BytesIO()
    # The file names no version, so that the same input gives the same bytes.
    with mpl.rc_context({"savefig.dpi": 150}):
        figure.savefig(file, format="png", metadata={"Software": None})
    return file.getvalue()


def _iteration(listed: Listed) -> Finding:
    found = [1e3 * _timed(listed["workload"], cluster, listed["level"])[0] for cluster in listed["clusters"]]
    return Finding(listed["reported"], found)


def _workload_saving(listed: Listed) -> Finding:
    """Computes for each workload the least saving relative to some clusters; with ``least``, the least of all."""
    found, shown = [], []
    for name in listed["workloads"]:
        over = {cluster: _saving(name, listed["mesh"], cluster, listed["level"]) for cluster in listed["over"]}
        least = min(over, key=lambda cluster: over[cluster])
        found.append(over[least])
        shown.append(f"{name} over {least}")
    return Finding(
        listed["reported"], min(found) if listed.get("least") else found, remark=f"Least: {', '.join(shown)}."
    )


def _artifact_cells() -> dict[tuple[str, str], dict[str, float]]:
    """Returns the artifact's savings, by workload and HammingMesh, relative to each other network."""
    (listed,) = (claim for claim in listed_claims("hammingmesh") if claim["id"] == "fig16-cells")
    return {
        (name, mesh): dict(zip(listed["over"], cells, strict=True))
        for name, of_meshes in listed["cells"].items()
        for mesh, cells in zip(MESHES, of_meshes, strict=True)
    }


def _cells(listed: Listed) -> Finding:
    """Counts the cells of the artifact's table from which our values differ by at most a fourth."""
    ratios = {
        (name, mesh, cluster): _saving(name, mesh, cluster, listed["level"]) / found
        for (name, mesh), cells in _artifact_cells().items()
        for cluster, found in cells.items()
    }
    close = [case for case, ratio in ratios.items() if 0.75 <= ratio <= 1.25]
    counts = (f"{name} {sum(case[0] == name for case in close)}" for name in WORKLOADS)
    return Finding(listed["reported"], len(close), remark=f"Of 12 each: {', '.join(counts)}.")


def _volumes(listed: Listed) -> Finding:
    """Computes the MiB per process of the largest alltoall, all blocks together, and of an iteration's allreduces."""
    phases = workload(listed["workload"], machine(listed["machine"]), level="model")["phases"]
    done = [one for phase in phases for one in phase["communication"]]
    alltoall = max(one["bytes"] * one["ranks"] for one in done if one["collective"] == "alltoall")
    allreduces = sum(one["bytes"] for one in done if one["collective"] == "allreduce")
    return Finding(listed["reported"], [alltoall / 2**20, allreduces / 2**20])


def _artifact_saving(listed: Listed) -> Finding:
    """Returns the artifact's least saving of each workload (``least``: of all), or the number of cells ``below``."""
    cells = [
        {cluster: _artifact_cells()[name, mesh][cluster] for cluster in listed["over"]}
        for mesh in listed["meshes"]
        for name in WORKLOADS
    ]
    if listed.get("least"):
        return Finding(listed["reported"], min(min(row.values()) for row in cells))
    if "below" in listed:
        return Finding(listed["reported"], sum(cell < listed["below"] for row in cells for cell in row.values()))
    return Finding(listed["reported"], [min(row.values()) for row in cells])


def _overheads(listed: Listed) -> Finding:
    """Divides the overheads of a workload on two networks."""

    def overhead(cluster: str) -> float:
        return _timed(listed["workload"], cluster, listed["level"], listed.get("routing"))[1]

    return Finding(listed["reported"], [overhead(one) / overhead(other) for one, other in listed["pairs"]])


CHECKS = checks_of(globals())
