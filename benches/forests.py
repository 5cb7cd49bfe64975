"""Planned all-gathers beside their bounds and the figures of other programs: rows of benches/results/forests.csv.

The bound is the best of `unisono bounds`, named unless it is `cut`; simulations are packet by packet. CPU seconds
of a plan count the machine and all candidates; the first case also loads the module.
`--all` adds the cases whose simulation takes minutes.

Figures of ForestColl are those of its open program (github.com/liangyuRain/ForestColl, commit 3c13aee) on one core, and
the throughput that it finds is the bound `cut` of the same network. TACOS (github.com/astra-sim/tacos, commit 1811f1f)
finds 5168 µs for 32 x 32 accelerators with 1 MiB each, against 256 steps of one block, 5128 µs.
"""

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import unisono as un
from common.figures import Figures, Of, parsed

HERE = Path(__file__).parent
KIB = 1024
MIB = KIB * KIB


@dataclass(frozen=True)
class Case:
    """An all-gather; `slow` if its simulation takes minutes, `planned` if hours, so that it is not simulated."""

    machine: str
    block_bytes: int
    peer: str = ""
    nodes: int | None = None
    slow: bool = False
    planned: bool = False


CASES = (
    Case("dgx-a100", 64 * MIB, "ForestColl: height 7, 0.16 s"),
    Case("dgx-a100-x2", 64 * MIB, "ForestColl: height 9, 6.8 s"),
    Case("dgx-a100-x4", 64 * MIB, "ForestColl: height 19, 55 s"),
    Case("mi250", 64 * MIB, "ForestColl: height 14, 0.8 s"),
    Case("mi250-x2", 64 * MIB, "ForestColl: height 19, 46 s"),
    Case("ndv2", 64 * MIB),
    Case("dgx2", 64 * MIB),
    Case("mi300x", 64 * MIB),
    Case("dgx-a100-x4", MIB, nodes=32),
    Case("dgx-h100-x8", MIB, nodes=16),
    Case("dgx-h100-x8", MIB, nodes=64, slow=True),
    Case("dgx-h100-x8", MIB, nodes=128, planned=True),
    Case("torus-32x32", MIB, "TACOS: 5168 µs, 64 s", slow=True),
    Case("torus2d-small", KIB),
    Case("torus2d-small", 16 * KIB, slow=True),
    Case("torus2d-small", 128 * KIB, slow=True),
    Case("torus2d-large", KIB, planned=True),
)


def size(count: int) -> str:
    return f"{count // MIB} MiB" if count % MIB == 0 else f"{count // KIB} KiB"


def add_figures(case: Case, simulate: bool, figures: Figures) -> None:
    """Adds the figures of a case."""
    start = time.process_time()
    file = HERE / "machines" / f"{case.machine}.toml"
    machine = un.machine(str(file) if file.exists() else case.machine, nodes=case.nodes)
    plan = un.plan("allgather", machine, bytes=case.block_bytes)
    chosen = time.process_time()
    schedule = plan.schedule if simulate else None
    limits = {
        bound["name"]: float(bound["seconds"]) for bound in un.bounds("allgather", machine, bytes=case.block_bytes)
    }
    name = max(limits, key=limits.__getitem__)
    bound, predicted = limits[name], float(plan.predicted["seconds"])
    simulated: list[Of] = []
    if schedule is not None:
        seconds = un.simulate(schedule).seconds
        assert seconds is not None
        ranks = int(plan.report()["ranks"])
        gbps = ranks * case.block_bytes / seconds / 1e9
        simulated = [Of("simulated / bound", f"{seconds / bound:.3f}"), Of("throughput", gbps, "GB/s")]
    params = " ".join([plan.algorithm, *(f"{key}={value}" for key, value in sorted(plan.params.items()))])
    figures.add(
        f"{case.machine}{'' if case.nodes is None else f', {case.nodes} boxes'}, {size(case.block_bytes)} a rank",
        Of("bound", bound * 1e6, "µs"),
        Of("predicted / bound", f"{predicted / bound:.3f}"),
        *simulated,
        Of("plan", f"{chosen - start:.2f}", "CPU s"),
        note="; ".join(filter(None, (params, "" if name == "cut" else f"bound {name}", case.peer))),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="simulate the cases that take minutes too")
    parser.add_argument("--machines", nargs="+", metavar="NAME", help="only these machines")
    given = parsed(parser)
    with Figures("forests", "Forests on networks", given) as figures:
        for case in CASES:
            if given.machines and case.machine not in given.machines:
                continue
            add_figures(case, not case.planned and (given.all or not case.slow), figures)


main()
