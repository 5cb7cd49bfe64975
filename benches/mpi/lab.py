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
    given = words.parse_args()
    # Sockets have short names.
    with tempfile.TemporaryDirectory(prefix="lab", dir="/tmp") as own:
        os.environ["XDG_RUNTIME_DIR"] = own
        print("| network | collective | bytes | planned | planned ms | library ms | planned / library | rounds won |")
        print("|---|---|---|---|---|---|---|---|")
        for name in given.networks:
            network(Path(own), name, given.mpi, [parse_bytes(size) for size in given.sizes.split(",")], given.rounds)


def network(folder: Path, name: str, mpi: str, sizes: list[int], rounds: str) -> None:
    """Prints the rows of a network, and the geometric mean of its ratios."""
    hosts, cables = NETWORKS[name]
    edges, machine, plan = folder / f"{name}.txt", folder / f"{name}.toml", folder / "bench.plan"
    edges.write_text("".join(f"{line}\n" for line in cables))
    unisono("machines", "import", edges, "--from", "edges", "--accelerators", str(hosts), "-o", machine)
    machine.write_text(machine.read_text().replace("host_overhead_ns = 0.0", f"host_overhead_ns = {OVERHEAD}"))
    unisono("lab", "up", machine)
    ratios = []
    try:
        for collective, in_pieces in COLLECTIVES.items():
            counted = [size // hosts if in_pieces else size for size in sizes]
            planned(machine, collective, counted, plan)
            under = ("lab", "run", "-n", str(hosts), "--", LIBRARIES[mpi] / "python", "-m", "unisono")
            options = ("--plan", plan, "--sizes", ",".join(map(str, counted)), "--rounds", rounds, "--json")
            # The package comes from here: the other environment has MPI and NumPy only.
            found = unisono(*under, "bench", collective, *options, PYTHONPATH=str(ROOT / "python"))
            for row in json.loads(found)["rows"]:
                ratios.append(row["seconds"] / row["default_seconds"])
                algorithm = " ".join([row["algorithm"], *(f"{key}={value}" for key, value in row["params"].items())])
                times = f"{row['seconds'] * 1e3:.1f} | {row['default_seconds'] * 1e3:.1f} | {ratios[-1]:.2f}"
                won = f"{row['rounds_won']}/{row['rounds']}"
                print(f"| {name} | {collective} | {row['bytes']} | {algorithm} | {times} | {won} |", flush=True)
    finally:
        unisono("lab", "down")
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"{name}: the geometric mean of planned / library is {mean:.2f}", file=sys.stderr)


if __name__ == "__main__":
    main()
