"""The choices of the default model of networks beside simulations: rows of benches/results/choices.csv.

A case is a collective of one length on one preset. `--model packets` simulates every candidate that the default model
predicts to take at most 4 times as long as its best. The ratio of a case is the simulated time of the default model's
choice over the least simulated time.

With `--random N` the cases are on N networks of up to 12 nodes that are drawn from their number: links of unlike rates
and latencies, switches, and small buffers.
"""

import argparse
import itertools
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import unisono as un
from common.figures import Figures, Of, parsed

#: Presets, with the shape of the used part; None for the whole machine.
MACHINES: tuple[tuple[str, tuple[int, ...] | None], ...] = (
    ("dgx-a100", None),
    ("dgx-a100-x2", None),
    ("dgx-a100-x4", None),
    ("dgx-h100", None),
    ("dgx2", None),
    ("dragonfly-small", (16,)),
    ("fattree-small", (16,)),
    ("hx2mesh-small", (2, 8)),
    ("hx2mesh-small", (4, 4)),
    ("hx4mesh-small", (4, 4)),
    ("hyperx2d-small", (16,)),
    ("mi250", None),
    ("mi250-x2", None),
    ("mi300x", None),
    ("ndv2", None),
    ("torus2d-small", (4, 4)),
    ("torus2d-small", (4, 8)),
)
COLLECTIVES = ("allgather", "allreduce", "alltoall", "broadcast", "reduce", "reduce-scatter")
SIZES = (8 << 10, 64 << 10, 1 << 20, 16 << 20)
#: Collectives whose length is that of one rank's block, here a 16th of the size.
BLOCKS = ("allgather", "alltoall", "reduce-scatter")
#: The rates of links in random networks, in Gbit/s.
GBPS = (50, 100, 200, 400, 800, 1600)
LATENCIES_NS = (40, 100, 350, 700, 2000)
#: The largest `Case.ratio` that is not reported.
MOST = 1.05


class Case(NamedTuple):
    """A case: the choice of the default model, and the best by simulation with its `least` seconds."""

    machine: str
    collective: str
    size: int
    chosen: str
    predicted: float
    simulated: float
    best: str
    least: float
    plan_s: float
    simulate_s: float

    @property
    def ratio(self) -> float:
        """The simulated time of the choice divided by the least simulated time."""
        return self.simulated / self.least


def named(algorithm: str, params: dict[str, str]) -> str:
    """Formats an algorithm with its parameters."""
    return algorithm if not params else f"{algorithm} ({', '.join(f'{k}={v}' for k, v in params.items())})"


def measured(label: str, machine: un.Machine, collective: str, size: int) -> Case:
    """Plans a collective by the default model and by `packets`."""
    start = time.process_time()
    plan = un.plan(collective, machine, bytes=size)
    planned = time.process_time()
    by_packets = un.plan(collective, machine, bytes=size, model="packets")
    simulated = {
        named(one["algorithm"], one["params"]): one["seconds"]
        for one in by_packets.candidates
        if one["source"] == "simulated"
    }
    chosen, best = named(plan.algorithm, plan.params), named(by_packets.algorithm, by_packets.params)
    seconds = (planned - start, time.process_time() - planned)
    if chosen not in simulated:
        # The timetable predicts more than 4 times its best time, so `packets` did not simulate the choice.
        run = un.simulate(plan.schedule)
        assert run.seconds is not None
        simulated[chosen] = run.seconds
    best = min((best, chosen), key=simulated.__getitem__)
    return Case(
        label, collective, size, chosen, plan.predicted["seconds"], simulated[chosen], best, simulated[best], *seconds
    )


def cases(every: bool, names: list[str] | None) -> Iterator[tuple[str, un.Machine, str, int]]:
    """Yields each collective on each machine with one of the `SIZES`, by rotation, or with every size."""
    pairs = itertools.product(MACHINES, COLLECTIVES)
    for at, ((name, shape), collective) in enumerate(pairs):
        if names and name not in names:
            continue
        label = name if shape is None else f"{name} {'x'.join(map(str, shape))}"
        machine = un.machine(name, shape) if shape else un.machine(name)
        # Each machine skips one size: otherwise six collectives would meet only two of the four sizes each.
        turn = at + at // len(COLLECTIVES)
        for size in SIZES if every else (SIZES[turn % len(SIZES)],):
            yield label, machine, collective, size // 16 if collective in BLOCKS else size


def drawn(number: int) -> str:
    """Returns the text of a machine file of a random network: a path through all nodes, and random cables."""
    draw = random.Random(number)
    nodes = draw.randint(2, 12)
    ranks = draw.randint(2, nodes)
    order = draw.sample(range(nodes), nodes)
    pairs = [*itertools.pairwise(order), *(draw.sample(range(nodes), 2) for _ in range(draw.randint(0, 2 * nodes)))]
    cables = {(min(a, b), max(a, b)): (draw.choice(GBPS), draw.choice(LATENCIES_NS)) for a, b in pairs}
    edges = "\n".join(f"{a} {b} gbps={gbps} ns={ns}" for (a, b), (gbps, ns) in sorted(cables.items()))
    packets = draw.choice((4, 16, 256))
    return f"""name = "drawn-{number}"
kind = "network"
summary = "a network that was drawn"
planes = 1
link_gbps = 400
link_latency_ns = 100
input_latency_ns = 0
output_latency_ns = 0
packet_bytes = 4096
buffer_bytes = {4096 * packets}
host_overhead_ns = {draw.choice((0, 1, 100))}
gamma_ns_per_byte = 0.0025
send_machines = {draw.randint(1, 4)}
send_machines_per = "{draw.choice(("link", "accelerator"))}"

[topology]
name = "graph"
accelerators = {ranks}
edges = '''
{edges}
'''
"""


def random_cases(count: int) -> Iterator[tuple[str, un.Machine, str, int]]:
    """Yields a collective and a length on each of ``count`` random networks."""
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            file = Path(folder) / f"drawn-{number}.toml"
            file.write_text(drawn(number))
            collective, size = COLLECTIVES[number % len(COLLECTIVES)], SIZES[number // len(COLLECTIVES) % len(SIZES)]
            yield f"drawn-{number}", un.machine(str(file)), collective, size // 16 if collective in BLOCKS else size


def length(size: int) -> str:
    """Formats a number of bytes."""
    for unit, shift in (("MiB", 20), ("KiB", 10)):
        if size >= 1 << shift:
            return f"{size >> shift} {unit}"
    return f"{size} B"


def add_figures(found: list[Case], figures: Figures) -> None:
    """Adds the figures of each machine and of all machines, and prints the cases whose ratio exceeds `MOST`."""
    groups = [(name, list(group)) for name, group in itertools.groupby(found, lambda case: case.machine)]
    for name, group in [*groups, ("all", found)]:
        off = sorted(case.predicted / case.simulated for case in group)
        over = sum(case.ratio > MOST for case in group)
        worst = max(case.ratio for case in group)
        figures.add(
            name,
            Of("cases", len(group)),
            Of(f"above {MOST}", over, "", "required", 0),
            Of("worst ratio", f"{worst:.2f}"),
            Of("predicted / simulated", f"{off[0]:.2f} to {off[-1]:.2f}"),
            Of("plan", sum(case.plan_s for case in group), "CPU s"),
        )
    for case in sorted(found, key=lambda case: -case.ratio):
        if case.ratio > MOST:
            sys.stdout.write(
                f"{case.machine}, {case.collective}, {length(case.size)}: {case.chosen}, predicted "
                f"{case.predicted * 1e6:.2f} µs, simulated {case.simulated * 1e6:.2f} µs; best {case.best}, simulated "
                f"{case.least * 1e6:.2f} µs\n"
            )


def main() -> None:
    """Measures the cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", dest="every", help="every length of every collective")
    parser.add_argument("--machine", action="append", help="this preset only; repeatable")
    parser.add_argument("--random", type=int, metavar="N", help="on N networks that are drawn, in place of presets")
    parser.add_argument("--json", action="store_true", help="a line of JSON a case")
    given = parsed(parser)
    found = []
    for case in random_cases(given.random) if given.random else cases(given.every, given.machine):
        found.append(measured(*case))
        if given.json:
            sys.stdout.write(json.dumps({**found[-1]._asdict(), "ratio": found[-1].ratio}) + "\n")
    if found and not given.json:
        topic = "Choices on random networks" if given.random else "Choices on networks"
        note = "8 KiB to 16 MiB; ratio: simulated time of the choice over the best"
        with Figures("choices", topic, given, note=note) as figures:
            add_figures(found, figures)


if __name__ == "__main__":
    main()
