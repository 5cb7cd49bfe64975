"""Planned collectives beside the library's own on emulated clusters (`unisono lab`): rows of benches/results/mpi.csv.

For each network, collective and size the network's model alone chooses the schedule; nothing is timed for the choice.
`unisono bench` then times it and the library's own, turn by turn, in the same processes.
Usage: lab.py [--rounds N] [--mpi openmpi|mpich] [--sizes LIST] [NETWORK...].
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import unisono as un
from allreduce import BIN, LIBRARIES, ROOT
from unisono.base.inputs import parse_bytes

sys.path.insert(0, str(Path(__file__).parents[1] / "common"))
from figures import Figures, Of, add_option

#: The collectives, each with whether MPI counts the piece of one rank, in place of the whole vector.
COLLECTIVES = {
    "allreduce": False,
    "broadcast": False,
    "reduce": False,
    "allgather": True,
    "reduce-scatter": True,
    "alltoall": True,
}
FAST, SLOW = "gbps=100 ns=150", "gbps=25 ns=150"
#: Nanoseconds that an end of a message costs: a host of a lab needs some 0.2 ms, and a lab of these networks has a
#: thousandth of their rates.
OVERHEAD = 200


def leaves(hosts: int, switches: int, uplink: str) -> Iterator[str]:
    """Hosts that are dealt in turns to leaves, which one switch joins."""
    top = hosts + switches
    yield from (f"{host} {hosts + host % switches} {FAST}" for host in range(hosts))
    yield from (f"{leaf} {top} {uplink}" for leaf in range(hosts, top))


NETWORKS = {
    "star": (8, [f"{host} 8 {FAST}" for host in range(8)]),
    "two-leaves": (8, list(leaves(8, 2, "gbps=50 ns=150"))),
    "four-leaves": (16, list(leaves(16, 4, "gbps=100 ns=150"))),
    "slow-host": (8, [f"{host} 8 {SLOW if host == 3 else FAST}" for host in range(8)]),
}


def unisono(*words: str | Path, **variables: str) -> str:
    done = subprocess.run(
        [BIN / "unisono", *words], env={**os.environ, **variables}, check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout


def planned(machine: Path, collective: str, sizes: list[int], plan: Path) -> None:
    """Writes a plan of the best schedule for each size, by the model."""
    un.save_plans([(un.plan(collective, machine, bytes=size), size, size) for size in sizes], plan)


def main() -> None:
    words = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    words.add_argument("--rounds", default="9", help="interleaved rounds of each size")
    words.add_argument("--mpi", choices=LIBRARIES, default="openmpi")
    words.add_argument("--sizes", default="64KiB,512KiB", help="of a rank's whole vector")
    words.add_argument("networks", nargs="*", choices=[*NETWORKS, []], default=list(NETWORKS))
    add_option(words)
    given = words.parse_args()
    sizes = [parse_bytes(size) for size in given.sizes.split(",")]
    note = f"planned / library of {given.sizes} of a vector; networks of 100 Gb/s at a thousandth of their rate"
    figures = Figures("mpi", "Collectives on emulated clusters", given, note=note)
    # Sockets have short names.
    with figures, tempfile.TemporaryDirectory(prefix="lab", dir="/tmp") as own:
        os.environ["XDG_RUNTIME_DIR"] = own
        for name in given.networks:
            network(Path(own), name, given.mpi, sizes, given.rounds, figures)


def network(folder: Path, name: str, mpi: str, sizes: list[int], rounds: str, figures: Figures) -> None:
    """Adds the ratios of a network, and their geometric mean."""
    hosts, cables = NETWORKS[name]
    edges, machine, plan = folder / f"{name}.txt", folder / f"{name}.toml", folder / "bench.plan"
    edges.write_text("".join(f"{line}\n" for line in cables))
    unisono("machines", "import", edges, "--from", "edges", "--accelerators", str(hosts), "-o", machine)
    machine.write_text(machine.read_text().replace("host_overhead_ns = 0.0", f"host_overhead_ns = {OVERHEAD}"))
    unisono("lab", "up", machine)
    ratios: dict[str, list[float]] = {}
    try:
        for collective, in_pieces in COLLECTIVES.items():
            counted = [size // hosts if in_pieces else size for size in sizes]
            planned(machine, collective, counted, plan)
            under = ("lab", "run", "-n", str(hosts), "--", LIBRARIES[mpi] / "python", "-m", "unisono")
            options = ("--plan", plan, "--sizes", ",".join(map(str, counted)), "--rounds", rounds, "--json")
            # The package comes from here: the other environment has MPI and NumPy only.
            found = unisono(*under, "bench", collective, *options, PYTHONPATH=str(ROOT / "python"))
            for row in json.loads(found)["rows"]:
                ratios.setdefault(collective, []).append(row["seconds"] / row["default_seconds"])
    finally:
        unisono("lab", "down")
    every = [ratio for found in ratios.values() for ratio in found]
    figures.add(
        f"{name}, {mpi}",
        *(Of(collective, f"{min(found):.2f} to {max(found):.2f}") for collective, found in ratios.items()),
        Of("geometric mean", math.exp(sum(map(math.log, every)) / len(every))),
    )


if __name__ == "__main__":
    main()
