"""The presets of clusters beside the collectives that the benchmark suite PICO measured there.

FOLDER is the unpacked folder `results` of github.com/HLC-Lab/pico. The machines are fitted to a quarter of the points,
and compared with the others. A point is an algorithm that Unisono has too, at one size, with one rank a node. The same
point measured in several runs shows how well a cluster repeats its own times.
Usage: clusters.py FOLDER [--fit] [--record]; --fit prints the parameters of the presets.
"""

import argparse
import itertools
import random
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import unisono as un
from common.figures import Figures, Of, parsed
from unisono.tuning.measurements import Point, read_pico

#: Each preset, with PICO's name of the system and the endings of its algorithms. Those of libbine (`_over`) and of Open
#: MPI are public; Cray's library may replace an algorithm by another.
CLUSTERS = {"lumi": ("lumi", ("_over",)), "marenostrum5": ("mare_nostrum", ("_over", "_ompi"))}
ALGORITHMS = {
    ("allreduce", "recursive_doubling"): "recursive-doubling",
    ("allreduce", "ring"): "ring",
    ("allreduce", "rabenseifner"): "rabenseifner",
    ("allgather", "ring"): "ring",
    ("allgather", "recursive_doubling"): "recursive-doubling",
    ("allgather", "neighbor"): "neighbor",
    ("reduce_scatter", "ring"): "ring",
    ("bcast", "binomial"): "binomial",
    ("bcast", "scatter_allgather"): "scatter-allgather",
    ("reduce", "binomial"): "binomial",
    ("reduce", "rabenseifner"): "reduce-scatter-gather",
    ("alltoall", "pairwise"): "balanced-shift",
    ("scatter", "binomial"): "binomial",
    ("gather", "binomial"): "binomial",
}
COLLECTIVES = {"bcast": "broadcast", "reduce_scatter": "reduce-scatter"}
BLOCKS = ("allgather", "alltoall", "gather", "scatter", "reduce-scatter")
#: The possible shortest messages of a protocol, in bytes.
LIMITS = [4**k for k in range(3, 12)]

#: A collective, its algorithm, the number of ranks, and the elements of the vector or of a block.
Cell = tuple[str, str, int, int]


def main() -> None:
    words = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    words.add_argument("folder", type=Path)
    words.add_argument("--fit", action="store_true")
    given = parsed(words)
    points, _ = read_pico(given.folder)
    with Figures("choices", "Clusters beside published measurements", given) as made:
        for preset, (system, endings) in CLUSTERS.items():
            times = cells(points, system, endings)
            order = sorted(times)
            fitted = set(random.Random(1).sample(order, len(order) // 4))
            if given.fit:
                print(preset, fit({cell: times[cell] for cell in fitted}))
            judge(made, preset, {cell: times[cell] for cell in order if cell not in fitted}, len(fitted))
            repeats(made, preset, times)


def cells(points: Sequence[Point], system: str, endings: tuple[str, ...]) -> dict[Cell, list[float]]:
    """Returns the seconds of each cell, one for each run."""
    found = defaultdict(list)
    for point in points:
        ending = next((e for e in endings if point.algorithm.endswith(e)), None)
        algorithm = ending and ALGORITHMS.get((point.collective, point.algorithm.removesuffix(ending)))
        if point.system == system and point.setting[1:] == ("1", "no") and algorithm and point.bytes >= 256:
            collective = COLLECTIVES.get(point.collective, point.collective)
            elements = max(1, point.bytes // 4 // (point.ranks if collective in BLOCKS else 1))
            found[collective, algorithm, point.ranks, elements].append(point.seconds)
    return {cell: times for cell, times in found.items() if predicted(un.machine(description([1], [1], 1)), cell)}


def description(alphas: Any, betas: Any, gamma: float, limits: Sequence[int] = ()) -> dict[str, Any]:
    """Returns a machine of Hockney's model, with the prices of the shortest messages first."""
    first, *others = [{"alpha_ns": float(a), "beta_ns_per_byte": float(b)} for a, b in zip(alphas, betas, strict=True)]
    protocols = [{"from_bytes": limit} | prices for limit, prices in zip(limits, others, strict=True)]
    own = {"name": "fitted", "kind": "endpoint", "model": "hockney", "gamma_ns_per_byte": float(gamma)}
    return own | first | {"protocols": protocols}


def predicted(machine: un.Machine, cell: Cell) -> float | None:
    """Returns the predicted seconds, or None if the algorithm does not take this number of ranks."""
    collective, algorithm, ranks, elements = cell
    try:
        plan = un.plan(collective, machine, shape=ranks, elements=elements, algorithm=algorithm)
    except un.UnisonoError:
        return None
    return plan.predicted["seconds"]


@cache
def shares(cell: Cell) -> list[float]:
    """Returns the nanoseconds of a cell if one parameter is 1 and all others are 0, for each parameter.

    The parameters are the alphas and the betas of all LIMITS, and gamma.
    """
    sides = len(LIMITS) + 1
    unit = np.eye(2 * sides + 1)
    machines = [un.machine(description(u[:sides], u[sides:-1], u[-1], LIMITS)) for u in unit * 1000]
    return [(predicted(machine, cell) or 0.0) * 1e6 for machine in machines]


def fit(times: dict[Cell, list[float]]) -> dict[str, Any]:
    """Returns the machine with up to two protocols whose logarithms of times have the least mean error.

    The time of a message never falls with its length.
    """
    rows = np.array([shares(cell) for cell, found in times.items() for _ in found])
    measured = np.array([t * 1e9 for found in times.values() for t in found])
    best: tuple[float, dict[str, Any]] = (float("inf"), {})
    sides = len(LIMITS) + 1
    for cuts in itertools.chain.from_iterable(itertools.combinations(range(1, sides), n) for n in range(3)):
        edges = list(itertools.pairwise([0, *cuts, sides]))
        joined = [rows[:, at + a : at + b].sum(axis=1) for at in (0, sides) for a, b in edges]
        error, values = solve(np.stack([*joined, rows[:, -1]], axis=1) / measured[:, None])
        alphas, betas = values[: len(edges)], values[len(edges) : -1]
        limits = [LIMITS[cut - 1] for cut in cuts]
        steps = zip(limits, itertools.pairwise(zip(alphas, betas, strict=True)), strict=True)
        rises = all(a + b * limit <= c + d * limit for limit, ((a, b), (c, d)) in steps)
        if error < best[0] and rises:
            best = (error, description(alphas, betas, values[-1], limits))
    return best[1]


def solve(rows: Any) -> tuple[float, Any]:
    """Returns the mean error of logarithms, and non-negative values whose products with the rows are close to 1."""
    weights, kept = np.ones(len(rows)), np.arange(rows.shape[1])
    values = np.zeros(rows.shape[1])
    for _ in range(60):
        found = np.linalg.lstsq(rows[:, kept] * weights[:, None], weights, rcond=None)[0]
        if (found < 0).any():
            kept = kept[found >= 0]
            continue
        values = np.zeros(rows.shape[1])
        values[kept] = found
        ratio = np.maximum(rows @ values, 1e-3)
        # With these weights, the sum of squares becomes the sum of the errors of the logarithms.
        error = np.abs(np.log(ratio))
        weights = np.sqrt(error / np.maximum(np.abs(ratio - 1), 1e-9) / np.maximum(np.abs(ratio - 1), 0.02))
    return float(np.abs(np.log(np.maximum(rows @ values, 1e-3))).mean()), values


def judge(made: Figures, preset: str, times: dict[Cell, list[float]], fitted: int) -> None:
    machine = un.machine(preset)
    ratios = [(predicted(machine, cell) or 0.0) / t for cell, found in times.items() for t in found]
    share(
        made,
        f"{preset}, predicted / measured",
        ratios,
        f"{len(ratios)} times of points that the fit to {fitted} had not",
    )


def repeats(made: Figures, preset: str, times: dict[Cell, list[float]]) -> None:
    ratios = [a / b for found in times.values() for a, b in itertools.permutations(found, 2)]
    if ratios:
        share(made, f"{preset}, one run / another", ratios, f"{len(ratios) // 2} pairs of runs of a point")


def share(made: Figures, name: str, ratios: Sequence[float], note: str) -> None:
    for least, most in ((0.85, 1.2), (2 / 3, 1.5)):
        within = sum(least <= ratio <= most for ratio in ratios) / len(ratios)
        made.add(name, Of(f"within {least:.2f} to {most}", 100 * within, "%"), note=note)
    made.add(name, Of("median", float(np.median(ratios))), note=note)


if __name__ == "__main__":
    main()
