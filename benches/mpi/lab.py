"""Planned collectives beside the library's own on emulated clusters (`unisono lab`): rows of benches/results/mpi.csv.

For each network, `unisono calibrate --machine` measures the costs of messages, and `unisono tune` compares the model's
proposals with the library and writes a plan. Then `unisono bench` times the plan and the library, turn by turn, in the
same processes. Tuning and timing are two runs, so a plan is judged by times that its choice has not seen. All
hosts share the cores of this computer, which a cluster's do not: short messages and many ranks need a larger scale.
Usage: lab.py [--rounds N] [--mpi openmpi|mpich] [--sizes LIST] [--scale S] [NETWORK...].
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
from typing import Any

import unisono as un
from allreduce import BIN, LIBRARIES, ROOT
from unisono.base.inputs import parse_bytes

sys.path.insert(0, str(Path(__file__).parents[1]))
from common.figures import Figures, Of, parsed

#: The collectives; True if the counts of MPI are those of one rank's piece, False if of the whole vector.
COLLECTIVES = {
    "allreduce": False,
    "broadcast": False,
    "reduce": False,
    "allgather": True,
    "reduce-scatter": True,
    "alltoall": True,
}
FAST, SLOW = "gbps=100 ns=150", "gbps=25 ns=150"
#: Nanoseconds that each end of a message costs: a host of a lab needs some 0.2 ms, and the lab is a thousand times
#: slower than the network.
OVERHEAD = 200


def leaves(hosts: int, switches: int, uplink: str) -> Iterator[str]:
    """Yields cables of hosts that are dealt round-robin to leaf switches, and of these to one top switch."""
    top = hosts + switches
    yield from (f"{host} {hosts + host % switches} {FAST}" for host in range(hosts))
    yield from (f"{leaf} {top} {uplink}" for leaf in range(hosts, top))


NETWORKS = {
    "star": (8, [f"{host} 8 {FAST}" for host in range(8)]),
    "two-leaves": (8, list(leaves(8, 2, "gbps=50 ns=150"))),
    "four-leaves": (16, list(leaves(16, 4, "gbps=100 ns=150"))),
    "slow-host": (8, [f"{host} 8 {SLOW if host == 3 else FAST}" for host in range(8)]),
    "four-by-four": (4, [f"{host} 4 {FAST}" for host in range(4)]),
}
#: Ranks on each host, if several.
PER_HOST = {"four-by-four": 4}


def unisono(*words: str | Path, **variables: str) -> str:
    done = subprocess.run(
        [BIN / "unisono", *words], env={**os.environ, **variables}, check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout


def planned(machine: Path, collective: str, sizes: list[int], plan: Path) -> None:
    """Writes a plan of the schedule with the least predicted time for each size in bytes."""
    un.save_plans([(un.plan(collective, machine, bytes=size), size, size) for size in sizes], plan)


def main() -> None:
    words = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    words.add_argument("--rounds", default="9", help="interleaved rounds of each size")
    words.add_argument("--mpi", choices=LIBRARIES, default="openmpi")
    words.add_argument("--sizes", default="64KiB,1MiB", help="of a rank's whole vector")
    words.add_argument(
        "--scale", default="4000", help="the factor of the lab: the slower its wire, the more it decides"
    )
    words.add_argument("--candidates", default="2", help="schedules that tune compares at a size")
    words.add_argument("--collectives", default=",".join(COLLECTIVES))
    words.add_argument("networks", nargs="*", choices=[*NETWORKS, []], default=list(NETWORKS))
    given = parsed(words)
    note = f"networks of 100 Gb/s at 1/{given.scale} of their rate; plans calibrated and tuned on the lab"
    figures = Figures("mpi", "Tuned collectives on emulated clusters", given, note=note)
    # Sockets need short paths.
    with figures, tempfile.TemporaryDirectory(prefix="lab", dir="/tmp") as own:
        os.environ["XDG_RUNTIME_DIR"] = own
        for name in given.networks:
            network(Path(own), name, given, figures)


def network(folder: Path, name: str, given: argparse.Namespace, figures: Figures) -> None:
    """Adds the ratios of a network, and their geometric mean."""
    hosts, cables = NETWORKS[name]
    per_host = PER_HOST.get(name, 1)
    ranks, scale = hosts * per_host, float(given.scale)
    edges, bare, machine, plan = (folder / file for file in (f"{name}.txt", "bare.toml", f"{name}.toml", "bench.plan"))
    edges.write_text("".join(f"{line}\n" for line in cables))
    unisono("machines", "import", edges, "--from", "edges", "--accelerators", str(hosts), "-o", bare)
    unisono("lab", "up", bare, "--scale", given.scale, "--per-host", str(per_host))

    def on_hosts(*words: str | Path) -> str:
        # PYTHONPATH provides the package, because the environment of MPICH has only MPI and NumPy.
        own = (LIBRARIES[given.mpi] / "python", "-m", "unisono")
        return unisono("lab", "run", "-n", str(ranks), "--", *own, *words, PYTHONPATH=str(ROOT / "python"))

    sizes = [parse_bytes(size) for size in given.sizes.split(",")]
    every: list[float] = []
    near: list[bool] = []
    firsts: list[bool] = []
    try:
        on_hosts("calibrate", "--machine", bare, "-o", machine, "--rounds", "20")
        for collective in given.collectives.split(","):
            # A piece has at least one element of 4 bytes.
            counted = ",".join(str(max(size // ranks, 4) if COLLECTIVES[collective] else size) for size in sizes)
            tuning = ("--machine", machine, "--candidates", given.candidates, "--sizes", counted)
            cells = json.loads(on_hosts("tune", collective, *tuning, "--rounds", "5", "-o", plan, "--json"))["cells"]
            ratios = [first_over_best(machine, collective, cell) for cell in cells]
            options = ("--plan", plan, "--sizes", counted, "--rounds", given.rounds, "--json")
            rows = json.loads(on_hosts("bench", collective, *options))["rows"]
            for size, row, over in zip(given.sizes.split(","), rows, ratios, strict=True):
                ratio = row["seconds"] / row["default_seconds"]
                of = [Of("planned / library", f"{ratio:.2f}")]
                if over is not None:
                    of.append(Of("model's first / best", f"{over:.2f}"))
                    firsts.append(over <= 1.1)
                if row["algorithm"] != "library":
                    every.append(ratio)
                    shares = predicted(machine, collective, row) * scale / row["seconds"]
                    near.append(0.85 <= shares <= 1.2)
                    of.append(Of("predicted / measured", f"{shares:.2f}"))
                words = " ".join([row["algorithm"], *(f"{key}={value}" for key, value in row["params"].items())])
                figures.add(f"{name}, {given.mpi}: {collective}; {size}", *of, note=f"{words}; load {load():.0f}")
    finally:
        unisono("lab", "down")
    if every:
        mean = Of("geometric mean", math.exp(sum(map(math.log, every)) / len(every)))
        within = Of("within 0.85 to 1.2", sum(near), "cells", "served", len(near))
        figures.add(f"{name}, {given.mpi}: all of {given.sizes}; served cells", mean, within)
    if firsts:
        first = Of("first of the model within 1.1 of the best", sum(firsts), "cells", "cells", len(firsts))
        figures.add(f"{name}, {given.mpi}: all of {given.sizes}; {given.candidates} candidates a cell", first)


def first_over_best(machine: Path, collective: str, cell: dict[str, Any]) -> float | None:
    """Returns the time of the model's first schedule, divided by the least of its schedules; None without a second."""
    # The library comes first.
    schedules = cell["contenders"][1:]
    if len(schedules) < 2:
        return None
    first = min(schedules, key=lambda one: predicted(machine, collective, {**one, "bytes": cell["bytes"]}))
    return float(first["seconds"] / min(one["seconds"] for one in schedules))


def predicted(machine: Path, collective: str, row: dict[str, Any]) -> float:
    """Returns the predicted seconds of the schedule in a row of `unisono bench`."""
    asked: dict[str, Any] = {"bytes": row["bytes"], "algorithm": row["algorithm"], "params": row["params"] or None}
    made = un.plan(collective, machine, **asked)
    seconds = made.predicted["seconds"]
    assert seconds is not None, "a machine of the lab has times in seconds"
    return seconds


def load() -> float:
    """Returns the mean number of busy processes of this computer in the last minute."""
    return os.getloadavg()[0]


if __name__ == "__main__":
    main()
