"""Computes what "HammingMesh" and its artifact state about jobs on boards: sizes, and traffic above the leaves."""

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import unisono as un
from unisono.base.files import write_figure
from unisono.base.tables import csv_text
from unisono.machines.allocation import allocate, submesh
from unisono.machines.descriptions import machine
from unisono.pictures.plots import allocations
from unisono.reproduce import Finding, Listed, checks_of, each

__all__ = ["CHECKS", "draw"]

HEURISTICS = ("greedy", "transpose", "aspect", "sort", "locality")
#: The numbers of failed boards in the artifact, for small and large clusters.
FAILURES = {"small": (0, 20, 40), "large": (0, 50, 100)}


def draw(folder: Path, full: bool = False) -> list[str]:
    """Writes the utilization by heuristic and failures as CSV, and draws jobs around failed boards."""
    head = ["machine", "heuristic", "failed", "utilization_mean", "utilization_p1", "upper_alltoall", "upper_allreduce"]
    rows = []
    for size, failures in FAILURES.items():
        for board in ("hx2mesh", "hx4mesh"):
            for heuristic in HEURISTICS:
                for fail in failures:
                    found = allocate(f"{board}-{size}", heuristic=heuristic, fail=fail, samples=1000 if full else 100)
                    shares = [found["utilization_mean"], found["utilization_p1"], *found["upper_level"].values()]
                    rows.append([found["machine"], heuristic, fail, *shares])
    example = allocate("hx2mesh-small", fail=20, samples=1, seed=3)
    return write_figure(
        folder, "allocation", allocations.mapping(example, "Jobs of the trace on hx2mesh-small"), csv_text(head, rows)
    )


def _upper_level(listed: Listed) -> Finding:
    """Computes the percentage of traffic through the upper level, for one job on all boards."""
    sides = "x".join(map(str, listed["job"]))
    found: Mapping[str, Any] = allocate(listed["machine"], [sides], samples=1)["upper_level"]
    return Finding(listed["reported"], 100 * found[listed["collective"]])


def _upper_lines(listed: Listed) -> Finding:
    """Computes the percentage of alltoall traffic through the upper level, the mean of jobs on each line of boards."""
    rows, columns = listed["boards"]
    topology = {"name": "hxmesh", "board": [2, 2], "boards": [rows, columns]}
    mesh = machine({**machine(listed["machine"]).describe(), "topology": topology})
    line = {
        sides: allocate(mesh, [sides], samples=1)["upper_level"]["alltoall"] for sides in (f"1x{columns}", f"{rows}x1")
    }
    mean = (rows * line[f"1x{columns}"] + columns * line[f"{rows}x1"]) / (rows + columns)
    return Finding(listed["reported"], 100 * mean)


def _heuristics(listed: Listed) -> Finding:
    """Computes the largest loss of mean utilization from one heuristic to the next, in percentage points."""
    found = [
        allocate(listed["machine"], heuristic=heuristic, samples=listed["samples"])["utilization_mean"]
        for heuristic in listed["heuristics"]
    ]
    shown = ", ".join(f"{name} {100 * share:.2f} %" for name, share in zip(listed["heuristics"], found, strict=True))
    falls = max(before - after for before, after in pairwise(found))
    return Finding(listed["reported"], 100 * falls, remark=f"{shown}.")


@each("fail", "{}.")
def _over_torus(fail: Any, listed: Listed) -> tuple[Any, str]:
    """Divides the mean utilization of a HammingMesh by that of a torus, for each number of failures."""
    mesh, torus = (
        allocate(preset, fail=fail, samples=listed["samples"])["utilization_mean"] for preset in listed["presets"]
    )
    return mesh / torus, f"{fail} fail: {100 * mesh:.2f} and {100 * torus:.2f} %"


def _scattered(listed: Listed) -> Finding:
    """Divides the time of a simulated allreduce on scattered boards by that on adjacent boards, at each length."""
    rows, columns, on = listed["rows"], listed["columns"], listed["machine"]
    extents = [2 * len(rows), 2 * len(columns)]
    both = [submesh(on, *lines)[0] for lines in ((rows, columns), (range(len(rows)), range(len(columns))))]
    ours = []
    for size in listed["bytes"]:
        plan = un.plan("allreduce", on, shape=extents, bytes=size, algorithm=listed["algorithm"], params={})
        scattered, adjacent = (un.simulate(plan.schedule, on, places=places).seconds for places in both)
        ours.append(scattered / adjacent)
    return Finding(listed["reported"], ours)


CHECKS = checks_of(globals())
