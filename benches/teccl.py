"""Planned all-gathers beside the 99 that TE-CCL publishes: rows of benches/results/forests.csv.

`teccl.csv` holds their finish times and solver times, from github.com/microsoft/TE-CCL (commit c128bf2), files under
teccl/examples/experiments/output_provided, keys `4-Collective_Finish_Time` and `Solver_Time`. `machines/` holds their
networks. Their size S is in decimal bytes over all ranks, so a block has S / ranks bytes. Two DGX-2 with
`Fast_Early_Stop` have blocks twice as long, since their inputs (teccl/examples/json_gen.py) count 8 GPUs a box. A block
is rounded up to whole elements of 4 bytes here.

TE-CCL's links between boxes are one-way and leave and enter a box at different GPUs; here one cable with two directions
stands for two such links, with the same bound `cut` and the same longest way. TE-CCL's switches copy a chunk to any
number of GPUs; here every message has one receiver. TE-CCL has no buffers, so those of these machines never fill. It
counts time in epochs and leaves out a latency of less than a tenth of an epoch.

The bound is the best of `unisono bounds` and of the longest of all shortest ways, which broadcasts from each rank give.
The certificate of the bound `cut` is written and checked for each plan. CPU seconds are those of planning, of the
certificate with its check, and of the simulation, packet by packet.
"""

import argparse
import csv
import itertools
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import unisono as un
from common.figures import Figures, Of, parsed

HERE = Path(__file__).parent
#: Times within this relative difference are a tie.
TIE = 0.01


@dataclass(frozen=True)
class Run:
    """An all-gather that TE-CCL publishes."""

    network: str
    size: str
    variant: str
    block_bytes: float
    finish_us: float
    solver_s: float


@dataclass
class Result:
    """Our plan of the same all-gather."""

    label: str
    bound: str
    bound_us: float
    predicted_us: float
    simulated_us: float
    plan_s: float
    check_s: float
    simulate_s: float


def published() -> list[Run]:
    with (HERE / "teccl.csv").open(newline="") as file:
        return [
            Run(
                row["network"],
                row["size"],
                row["variant"],
                float(row["block_bytes"]),
                float(row["finish_us"]),
                float(row["solver_s"]),
            )
            for row in csv.DictReader(file)
        ]


def longest_way_us(machine: un.Machine, ranks: int) -> float:
    """Returns the largest latency bound of a broadcast from any rank, since an all-gather contains all of these."""
    bounds = (bound for root in range(ranks) for bound in un.bounds("broadcast", machine, bytes=4, root=root))
    return max(float(bound["seconds"]) for bound in bounds if bound["name"] == "latency") * 1e6


def ours(machine: un.Machine, block_bytes: float, way_us: float, folder: Path) -> Result:
    count = -(-int(-(-block_bytes // 1)) // 4) * 4
    start = time.process_time()
    plan = un.plan("allgather", machine, bytes=count)
    schedule = plan.schedule
    planned = time.process_time()
    file = folder / "bound.json"
    file.write_text(plan.certificate())
    proof = un.check_bound(file, machine)
    assert proof["holds"], proof["reason"]
    limits = {bound["name"]: float(bound["seconds"]) * 1e6 for bound in un.bounds("allgather", machine, bytes=count)}
    limits["latency"] = max(limits["latency"], way_us)
    checked = time.process_time()
    assert proof["seconds"] is not None
    assert abs(proof["seconds"] * 1e6 / limits["cut"] - 1) < 1e-6
    run = un.simulate(schedule)
    ended = time.process_time()
    assert run.seconds is not None
    bound = max(limits, key=limits.__getitem__)
    return Result(
        " ".join([plan.algorithm, *(f"{key}={value}" for key, value in plan.params.items())]),
        bound,
        limits[bound],
        float(plan.predicted["seconds"]) * 1e6,
        run.seconds * 1e6,
        planned - start,
        checked - planned,
        ended - checked,
    )


def verdict(own: float, their: float) -> str:
    return "tied" if abs(own / their - 1) <= TIE else "beaten" if own < their else "lost"


def add_figures(runs: list[Run], result: Result, figures: Figures) -> None:
    """Adds the figures of the runs of one block size."""
    best = min(runs, key=lambda run: run.finish_us)
    bound, solver_s = result.bound_us, sum(run.solver_s for run in runs)
    figures.add(
        f"{best.network}; {best.size}, blocks of {best.block_bytes:.10g} B",
        Of("simulated", result.simulated_us, "µs", "TE-CCL", best.finish_us, gain=True),
        Of("over the bound", f"{result.simulated_us / bound:.3f}", "", "TE-CCL", f"{best.finish_us / bound:.3f}"),
        Of("plan", f"{result.plan_s:.2f}", "CPU s", "TE-CCL's solver", f"{solver_s:.0f}"),
        note=f"{result.label}; {verdict(result.simulated_us, best.finish_us)}",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", nargs="+", metavar="NAME", help="only these of dgx2-x2, ndv2-x2 and ndv2-x4")
    given = parsed(parser)
    groups: list[tuple[list[Run], Result]] = []
    with Figures("forests", "TE-CCL's all-gathers", given) as figures, tempfile.TemporaryDirectory() as folder:
        for name, runs in itertools.groupby(published(), key=lambda run: run.network):
            if given.networks and name not in given.networks:
                continue
            machine = un.machine(str(HERE / "machines" / f"teccl-{name}.toml"))
            way_us = longest_way_us(machine, {"ndv2-x2": 16}.get(name, 32))
            ordered = sorted(runs, key=lambda run: (run.block_bytes, run.size))
            for _, cases in itertools.groupby(ordered, key=lambda run: (run.block_bytes, run.size)):
                group = list(cases)
                groups.append((group, ours(machine, group[0].block_bytes, way_us, Path(folder))))
                add_figures(*groups[-1], figures)
    counts: dict[str, Counter[str]] = {}
    for group, result in groups:
        for run in group:
            for name in (run.network, "all"):
                counts.setdefault(name, Counter())[verdict(result.simulated_us, run.finish_us)] += 1
    with Figures("forests", "TE-CCL's all-gathers, runs", given, note="a tie is within 1 %") as figures:
        for name in sorted(counts, key=lambda name: (name == "all", name)):
            verdicts = (Of(word, counts[name][word]) for word in ("tied", "beaten", "lost"))
            figures.add(name, Of("runs", counts[name].total()), *verdicts)
        spent = {part: sum(getattr(of, f"{part}_s") for _, of in groups) for part in ("plan", "check", "simulate")}
        solver_s = sum(run.solver_s for group, _ in groups for run in group)
        parts = f"plans {spent['plan']:.1f}, bounds and certificates {spent['check']:.1f}, "
        cpu = Of("CPU", f"{sum(spent.values()):.1f}", "s", "TE-CCL's solver", f"{solver_s:.0f}")
        figures.add("all", cpu, note=f"{parts}simulations {spent['simulate']:.1f}")


main()
