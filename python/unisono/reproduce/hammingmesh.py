"""Computes what "HammingMesh: A Network Topology for Large-Scale Deep Learning" (2022) claims."""

from pathlib import Path
from typing import Any

from unisono._core import check_routing
from unisono.base.files import write
from unisono.base.tables import csv_text
from unisono.machines.descriptions import machine
from unisono.pictures.networks import draw as draw_network
from unisono.reproduce import (
    Finding,
    Listed,
    checks_of,
    hammingmesh_allocation,
    hammingmesh_traffic,
    hammingmesh_training,
)
from unisono.reproduce.hammingmesh_training import facts_of

__all__ = ["CHECKS", "draw"]

#: The rows of Table 2.
TOPOLOGIES = hammingmesh_training.CLUSTERS
SIZES = ("small", "large")
#: The mesh of 4x4 boards of 2x2 accelerators that is drawn in place of the paper's figure.
_STRUCTURE = 'name = "hxmesh"\nboard = [2, 2]\nboards = [4, 4]'


def draw(folder: Path, full: bool = False) -> list[str]:
    """Writes Table 2 as CSV, draws a HammingMesh, allocations and savings; makes the folder if needed."""
    folder.mkdir(parents=True, exist_ok=True)
    head = ["topology", "accelerators", "planes", "switches", "dac", "aoc", "cost_usd", "diameter", "bisection_share"]
    rows = []
    for size in SIZES:
        for name in TOPOLOGIES:
            facts = facts_of(f"{name}-{size}")
            bought = [facts["accelerators"], facts["planes"], facts["switches"], *facts["cables"].values()]
            rows.append([facts["name"], *bought, facts["cost_usd"], facts["diameter"], facts["bisection_share"]])
    files: dict[Path, str | bytes] = {
        folder / "table2.csv": csv_text(head, rows),
        folder / "structure.png": draw_network(
            hammingmesh_traffic.network("structure", "Hx2Mesh of 4 x 4 boards", 4, _STRUCTURE)
        ),
    }
    for path, data in files.items():
        write(path, data)
    drawn = [str(path) for path in files]
    return [*drawn, *hammingmesh_allocation.draw(folder, full), *hammingmesh_training.draw(folder)]


def _rows(listed: Listed) -> list[dict[str, Any]]:
    """Returns the facts of the topologies of a cluster size that a claim is about."""
    named = listed.get("only") or [name for name in TOPOLOGIES if name not in listed.get("without", [])]
    return [facts_of(f"{name}-{listed['size']}") for name in named]


def _bill(listed: Listed) -> Finding:
    items = ({"switches": facts["switches"], **facts["cables"]} for facts in _rows(listed))
    return Finding(listed["reported"], [bought[listed["item"]] for bought in items])


def _cost(listed: Listed) -> Finding:
    millions = [facts["cost_usd"] / 1e6 for facts in _rows(listed)]
    printed = [round(cost, digits) for cost, digits in zip(millions, listed["digits"], strict=True)]
    return Finding(listed["reported"], printed, remark=f"Exactly {' '.join(f'{cost:.6f}' for cost in millions)}.")


def _saving(listed: Listed) -> Finding:
    costs = [facts["cost_usd"] for facts in _rows(listed)]
    return Finding(listed["reported"], [costs[0] / cost for cost in costs])


def _cost_at_scale(listed: Listed) -> Finding:
    """Divides the cost ratio of two networks for large clusters by that for small clusters."""
    small, large = (
        facts_of(f"{listed['over'][0]}-{size}")["cost_usd"] / facts_of(f"{listed['over'][1]}-{size}")["cost_usd"]
        for size in SIZES
    )
    remark = f"{small:.2f} small, {large:.2f} large."
    return Finding(listed["reported"], large / small, remark=remark)


def _fewer(listed: Listed) -> Finding:
    """Divides the switches and cables of the nonblocking tree by those of each HammingMesh."""

    def parts(preset: str) -> tuple[int, int]:
        facts = facts_of(preset)
        return facts["switches"], sum(facts["cables"].values())

    ours = []
    for size in SIZES:
        tree = parts(f"fattree-{size}")
        for mesh in hammingmesh_training.MESHES:
            ours += [of_tree / own for of_tree, own in zip(tree, parts(f"{mesh}-{size}"), strict=True)]
    return Finding(listed["reported"], ours)


def _diameter(listed: Listed) -> Finding:
    return Finding(listed["reported"], [facts["diameter"] for facts in _rows(listed)])


def _bisection(listed: Listed) -> Finding:
    return Finding(listed["reported"], [100 * facts_of(preset)["bisection_share"] for preset in listed["presets"]])


def _deadlock(listed: Listed) -> Finding:
    found = [check_routing(machine(facts["name"])) for facts in _rows(listed)]
    return Finding(listed["reported"], sum(not routing["deadlock_free"] for routing in found))


CHECKS = {
    **checks_of(globals()),
    **hammingmesh_allocation.CHECKS,
    **hammingmesh_traffic.CHECKS,
    **hammingmesh_training.CHECKS,
}
