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
from pathlib import Path
from typing import Any

import numpy as np
import unisono as un
from common.figures import Figures, Of, parsed
from unisono.logs.message_prices import Form, fit
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
UNIT = un.machine(Form("hockney").machine([1.0, 1.0, 1.0]))

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
            seen = set(random.Random(1).sample(order, len(order) // 4))
            if given.fit:
                print(preset, fitted({cell: times[cell] for cell in seen}))
            judge(made, preset, {cell: times[cell] for cell in order if cell not in seen}, len(seen))
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
    return {cell: times for cell, times in found.items() if predicted(UNIT, cell)}


def predicted(machine: un.Machine, cell: Cell) -> float | None:
    """Returns the predicted seconds, or None if the algorithm does not take this number of ranks."""
    collective, algorithm, ranks, elements = cell
    try:
        plan = un.plan(collective, machine, shape=ranks, elements=elements, algorithm=algorithm)
    except un.UnisonoError:
        return None
    return plan.predicted["seconds"]


def fitted(times: dict[Cell, list[float]]) -> dict[str, Any]:
    """Returns the machine of Hockney's model, with up to two protocols, that predicts the times best."""

    def seconds(description: dict[str, Any]) -> list[float]:
        machine = un.machine(description)
        return [predicted(machine, cell) or 0.0 for cell, found in times.items() for _ in found]

    return fit(seconds, [t for found in times.values() for t in found], "hockney").machine()


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
