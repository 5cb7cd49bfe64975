"""Planned all-gathers beside the 99 that TE-CCL publishes, as markdown tables.

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
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import unisono as un

HERE = Path(__file__).parent
#: Times within this relative difference are a tie.
TIE = 0.01


@dataclass(frozen=True)
class Run:
    """One published all-gather."""

    network: str
    size: str
    variant: str
    block_bytes: float
    finish_us: float
    solver_s: float


@dataclass
class Result:
    """One plan of ours, proven to be no faster than its bound."""

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
    """Returns the longest latency between two ranks; every all-gather contains a broadcast from each rank."""
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


def row(runs: list[Run], result: Result) -> Iterator[str]:
    best = min(runs, key=lambda run: run.finish_us)
    yield from (best.network, best.size, f"{best.block_bytes:.10g}", result.label)
    yield f"{result.bound_us:.4g} {result.bound}"
    yield f"{result.simulated_us:.4g}"
    yield f"{result.simulated_us / result.bound_us:.3f}"
    yield f"{best.finish_us:.4g} {best.variant}"
    yield f"{best.finish_us / result.bound_us:.3f}"
    yield f"{best.finish_us / result.simulated_us:.2f}"
    yield verdict(result.simulated_us, best.finish_us)
    yield f"{result.plan_s:.2f}"
    yield f"{sum(run.solver_s for run in runs):.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", nargs="+", metavar="NAME", help="only these of dgx2-x2, ndv2-x2 and ndv2-x4")
    given = parser.parse_args()
    groups: list[tuple[list[Run], Result]] = []
    heads: tuple[str, ...] = ("network", "size", "block (B)", "plan", "bound (µs)", "simulated (µs)", "over the bound")
    heads += ("TE-CCL (µs)", "over the bound", "TE-CCL / ours", "verdict", "plan (CPU s)", "their solver (s)")
    print("| " + " | ".join(heads) + " |")
    print("|" + "---|" * len(heads))
    with tempfile.TemporaryDirectory() as folder:
        for name, runs in itertools.groupby(published(), key=lambda run: run.network):
            if given.networks and name not in given.networks:
                continue
            machine = un.machine(str(HERE / "machines" / f"teccl-{name}.toml"))
            way_us = longest_way_us(machine, {"ndv2-x2": 16}.get(name, 32))
            ordered = sorted(runs, key=lambda run: (run.block_bytes, run.size))
            for _, cases in itertools.groupby(ordered, key=lambda run: (run.block_bytes, run.size)):
                group = list(cases)
                groups.append((group, ours(machine, group[0].block_bytes, way_us, Path(folder))))
                print("| " + " | ".join(row(*groups[-1])) + " |", flush=True)
    print("\n| network | runs | tied | beaten | lost |")
    print("|---|---|---|---|---|")
    counts: dict[str, Counter[str]] = {}
    for group, result in groups:
        for run in group:
            for name in (run.network, "all"):
                counts.setdefault(name, Counter())[verdict(result.simulated_us, run.finish_us)] += 1
    for name in sorted(counts, key=lambda name: (name == "all", name)):
        words = (str(counts[name][word]) for word in ("tied", "beaten", "lost"))
        print(f"| {name} | {counts[name].total()} | " + " | ".join(words) + " |")
    spent = [sum(getattr(result, f"{part}_s") for _, result in groups) for part in ("plan", "check", "simulate")]
    print(f"\nCPU seconds: {sum(spent):.1f} (plans {spent[0]:.1f}, bounds and certificates {spent[1]:.1f}, ", end="")
    print(
        f"simulations {spent[2]:.1f}); their solver: {sum(run.solver_s for group, _ in groups for run in group):.0f} s."
    )


main()
