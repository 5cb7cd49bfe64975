"""Planned broadcasts and reduces on an emulated cluster beside each algorithm that Open MPI can be forced to run.

Hosts of one switch: the model of the network alone chooses the schedules. Then `unisono bench` runs once for each of
the library's algorithms, forced by a variable of Open MPI. Each run times the plan and the library by turns in the same
processes, so other work on the cores slows both alike. A row is the largest ratio plan / forced algorithm.
Usage: rooted.py [--ranks LIST] [--sizes LIST] [--rounds N].
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

import unisono as un
from allreduce import LIBRARIES
from lab import FAST, OVERHEAD, planned, unisono
from unisono.base.inputs import parse_bytes

sys.path.insert(0, str(Path(__file__).parents[1]))
from common.figures import Figures, Of, parsed

#: The collectives, each with the variable that forces an algorithm and the names of the algorithms, counted from 1.
FORCED = {
    "broadcast": (
        "bcast",
        "linear,chain,pipeline,split binary tree,binary tree,binomial,knomial,scatter allgather,scatter ring allgather",
    ),
    "reduce": ("reduce", "linear,chain,pipeline,binary,binomial,in-order binary,rabenseifner"),
}


def beside(plan: Path, collective: str, ranks: int, number: int, given: argparse.Namespace) -> dict[int, float]:
    """Returns, by size in bytes, the time of the plan divided by that of the library's forced algorithm `number`."""
    variables = {
        "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
        f"OMPI_MCA_coll_tuned_{FORCED[collective][0]}_algorithm": str(number),
    }
    under = ("lab", "run", "-n", str(ranks), "--", LIBRARIES["openmpi"] / "python", "-m", "unisono")
    options = ("--plan", plan, "--sizes", given.sizes, "--rounds", given.rounds, "--json")
    rows = json.loads(unisono(*under, "bench", collective, *options, **variables))["rows"]
    return {row["bytes"]: row["seconds"] / row["default_seconds"] for row in rows}


def add_ranks(folder: Path, ranks: int, given: argparse.Namespace, figures: Figures) -> None:
    """Adds the figures of all collectives and sizes on `ranks` hosts of one switch."""
    edges, machine, plan = folder / "star.txt", folder / f"star{ranks}.toml", folder / "bench.plan"
    edges.write_text("".join(f"{host} {ranks} {FAST}\n" for host in range(ranks)))
    unisono("machines", "import", edges, "--from", "edges", "--accelerators", str(ranks), "-o", machine)
    machine.write_text(machine.read_text().replace("host_overhead_ns = 0.0", f"host_overhead_ns = {OVERHEAD}"))
    unisono("lab", "up", machine)
    try:
        for collective in given.collectives.split(","):
            planned(machine, collective, [parse_bytes(size) for size in given.sizes.split(",")], plan)
            names = FORCED[collective][1].split(",")
            found = {name: beside(plan, collective, ranks, at, given) for at, name in enumerate(names, start=1)}
            rows = {row["first_bytes"]: row["algorithm"] or "library" for row in un.load_plans(plan)}
            for size in given.sizes.split(","):
                ratios = {name: by_size[parse_bytes(size)] for name, by_size in found.items()}
                best = max(ratios, key=ratios.__getitem__)
                figure = Of("planned / best forced", f"{ratios[best]:.2f}")
                figures.add(f"{collective}, {ranks} hosts; {size}", figure, note=f"{rows[parse_bytes(size)]}; {best}")
    finally:
        unisono("lab", "down")


def main() -> None:
    words = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    words.add_argument("--ranks", default="5,7,8")
    words.add_argument("--collectives", default=",".join(FORCED))
    words.add_argument("--sizes", default="64KiB,512KiB,4MiB")
    words.add_argument("--rounds", default="5", help="interleaved rounds of each size and algorithm")
    given = parsed(words)
    topic = "Broadcasts and reduces beside forced algorithms on emulated clusters"
    # Sockets need short paths.
    with Figures("mpi", topic, given) as figures, tempfile.TemporaryDirectory(prefix="lab", dir="/tmp") as own:
        os.environ["XDG_RUNTIME_DIR"] = own
        for ranks in map(int, given.ranks.split(",")):
            add_ranks(Path(own), ranks, given, figures)


if __name__ == "__main__":
    main()
