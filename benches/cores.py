"""Commands on one core and on two: wall seconds by turns, and that the output is the same.

The median of some rounds counts. The load beside each figure is that of the machine before the first round.
"""

import argparse
import os
import statistics
import tempfile
from pathlib import Path

import unisono as un
from common.commands import timed
from common.figures import Figures, Of, parsed

CASES = {
    "plan": "plan allreduce --machine torus2d-large --bytes 16MiB --json",
    "plan on a fat tree": "plan alltoall --machine fattree-large --bytes 1KiB --json",
    "plan on boards": "plan alltoall --machine hx2mesh-large --bytes 1KiB --json",
    "plan on a torus": "plan allgather --machine torus2d-large --bytes 1MiB --json",
    "plan rings": "plan allreduce --machine hx2mesh-small --bytes 16MiB --json",
    "plan on GPUs": "plan reduce --machine dgx-h100-x8 --bytes 16MiB --json",
    "plan an alltoall": "plan alltoall --machine torus2d-small --bytes 1KiB --json",
    "plan an allgather": "plan allgather --machine fattree-small --bytes 64KiB --json",
    "verify a .plan": "verify {table} --json",
    "verify lanes": "verify allreduce --machine torus2d-small --bytes 16MiB --algorithm forest --json",
    "verify a ring": "verify allreduce --machine archer --ranks 2048 --bytes 4MiB --algorithm ring --json",
    "compare": "compare resnet-152,cosmoflow,gpt-3,dlrm --machines hx2mesh-small,fattree-small,torus2d-small --json",
    "workload": "workload gpt-3 --machine hx2mesh-small --json",
    "what-if": "workload --from gpt-3 --machine hx2mesh-small --what-if machine=fattree-small --what-if "
    "machine=torus2d-small --what-if link_gbps=800 --json",
    "allocate": "allocate --machine hx2mesh-large --fail 50 --samples 300 --heuristic locality --json",
    "reproduce discovery": "reproduce discovery --json -o {folder}",
    "reproduce hammingmesh": "reproduce hammingmesh --json -o {folder}",
    "reproduce piuma": "reproduce piuma --json -o {folder}",
    "reproduce wafer": "reproduce wafer --json -o {folder}",
}

#: Its output has rates that it measures.
MEASURED = "reproduce discovery"


def table(path: Path) -> None:
    """Writes a plan file with schedules of three collectives on 96, 128 and 192 ranks."""
    rows = []
    for kind, name in (("allreduce", "ring"), ("alltoall", "pairwise"), ("allgather", "ring")):
        for ranks in (96, 128, 192):
            made = un.plan(kind, "archer", shape=ranks, bytes=1 << 16, algorithm=name)
            rows.append((made, 0, None))
    un.save_plans(rows, path, unlike_bits=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(CASES)} [all]")
    parser.add_argument("--rounds", type=int, default=3)
    given = parsed(parser)
    wrong = set(given.names) - set(CASES)
    if wrong:
        parser.error(f"no such case: {', '.join(sorted(wrong))}")
    note = "medians by turns; the same bytes out"
    with tempfile.TemporaryDirectory() as folder, Figures("program", "Commands on all cores", given, note=note) as all_:
        plans = Path(folder) / "table.plan"
        table(plans)
        for name in given.names or CASES:
            load = os.getloadavg()[0]
            command = CASES[name].format(table=plans, folder=f"{folder}/figures")
            runs = [{jobs: timed(command, jobs) for jobs in (1, 2)} for _ in range(given.rounds)]
            if name != MEASURED and len({run[jobs][2] for run in runs for jobs in run}) != 1:
                raise SystemExit(f"{name}: the outputs differ")
            wall = {jobs: statistics.median(run[jobs][0] for run in runs) for jobs in (1, 2)}
            cpu = {jobs: statistics.median(run[jobs][1] for run in runs) for jobs in (1, 2)}
            all_.add(
                f"{name}: {CASES[name].format(table='FILE.plan', folder='DIR')}",
                Of("2 cores", round(wall[2], 2), "s", "1 core", round(wall[1], 2), gain=True),
                note=f"load {load:.1f}; CPU {cpu[2]:.2f} and {cpu[1]:.2f} s",
            )


if __name__ == "__main__":
    main()
