"""Allreduces on networks with and without switches that reduce: rows of benches/results/networks.csv.

For each machine file with `[[switches]]` the same machine without these entries is planned too. The choice of the
default model is simulated packet by packet on both. The gain is the time without over the time with such switches.
"""

import argparse
import tempfile
from pathlib import Path
from typing import NamedTuple

import unisono as un
from common.figures import Figures, Of, parsed

MACHINES = Path(__file__).resolve().parent.parent / "machines"
NAMES = ("dgx-h100", "dgx-h100-x8", "dgx-h100-x8-sharp", "fattree-small-reducing", "hx2mesh-small-reducing")
SIZES = (1 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20)


class Row(NamedTuple):
    """The choice on a machine, with its predicted, simulated and least possible seconds."""

    algorithm: str
    predicted: float
    simulated: float
    bound: float


def chosen(machine: un.Machine, size: int) -> Row:
    """Plans, proves and simulates an allreduce of ``size`` bytes."""
    plan = un.plan("allreduce", machine, bytes=size)
    params = ", ".join(f"{key}={value}" for key, value in plan.params.items())
    run = un.simulate(plan.schedule)
    named = f"{plan.algorithm} ({params})" if params else plan.algorithm
    return Row(named, plan.predicted["seconds"], run.seconds, plan.bound["seconds"])


def pair(name: str, folder: Path) -> tuple[un.Machine, un.Machine]:
    """Returns a preset, and the same machine with switches that only forward."""
    text = (MACHINES / f"{name}.toml").read_text()
    plain = folder / f"{name}.toml"
    plain.write_text(text[: text.index("[[switches]]")])
    return un.machine(name), un.machine(str(plain))


def main() -> None:
    """Records the times of each machine and size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machines", nargs="+", default=NAMES, choices=NAMES)
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES, help="bytes of the vector")
    args = parsed(parser)
    topic = "Switches that reduce on any network"
    with Figures("networks", topic, args) as figures, tempfile.TemporaryDirectory() as folder:
        for name in args.machines:
            reducing, plain = pair(name, Path(folder))
            for size in args.sizes:
                before, after = chosen(plain, size), chosen(reducing, size)
                figures.add(
                    f"{name}; {size:,} B",
                    Of(
                        "switches reduce", after.simulated * 1e6, "µs", "switches forward", before.simulated * 1e6, True
                    ),
                    Of("over its bound", after.simulated / after.bound),
                    note=f"{after.algorithm}; without: {before.algorithm}",
                )


if __name__ == "__main__":
    main()
