"""Broadcasts and reduces on this computer beside each algorithm of Open MPI, pair by pair: rows of results/mpi.csv.

The recipe of docs/mpi.md chooses: `tune --for openmpi-rules` times the library's own algorithms, and under its rules
`tune` times schedules. Then each start of the ranks times the choice and one forced algorithm turn by turn, algorithm
after algorithm. A row is the largest median over starts of these ratios, and the range of the same ratio over starts.
The choice beside a second copy of itself shows the noise of such a median.
Usage: forced.py [--ranks LIST] [--sizes LIST] [--starts N] [--candidates N] [--rounds N].
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from allreduce import BIN
from rooted import FORCED
from unisono.base.inputs import parse_bytes
from unisono.mpi.collectives import Collectives
from unisono.mpi.forcing import forced, variables_of
from unisono.mpi.library import import_mpi
from unisono.planning.decision_tables import read_table
from unisono.tuning.measuring import contest

sys.path.insert(0, str(Path(__file__).parents[1]))
from common.figures import Figures, Of, parsed

_ROUNDS = 5
#: The name of the choice where it is timed beside a second copy of itself.
_ITSELF = "itself"


def on_ranks(ranks: int, *words: str | Path, **variables: str) -> str:
    """Runs Python with the given words on ranks of this computer, which share its cores, and returns the output."""
    launcher: list[str | Path] = [BIN / "mpiexec", "--allow-run-as-root", "--oversubscribe"]
    launcher += ["--mca", "coll", "^acoll", "-n", str(ranks), BIN / "python"]
    done = subprocess.run(
        [*launcher, *words],
        env={**os.environ, **variables},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return done.stdout


def choose(folder: Path, ranks: int, given: argparse.Namespace) -> tuple[Path, Path]:
    """Returns two files that the recipe makes: the table of the library's algorithms, and the plan of schedules."""
    machine, own, rules, plan = (folder / f"{ranks}{end}" for end in (".toml", "own.plan", ".conf", ".plan"))
    module = ("-m", "unisono")
    on_ranks(ranks, *module, "calibrate", "-o", machine)
    tune = (*module, "tune", given.collectives, "--machine", machine, "--sizes", given.sizes, "--rounds", given.rounds)
    on_ranks(ranks, *tune, "--for", "openmpi-rules", "--candidates", given.candidates, "-o", own)
    exported = subprocess.run(
        [BIN / "unisono", "export", own, "--format", "openmpi-rules", "--no-check", "-o", rules], check=False
    )
    variables = {
        "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
        "OMPI_MCA_coll_tuned_dynamic_rules_filename": str(rules),
    }
    # A table that leaves all calls to the library has no rules.
    on_ranks(ranks, *tune, "-o", plan, **(variables if exported.returncode == 0 else {}))
    return own, plan


def ruled(own: str, collective: str, ranks: int, size: int) -> dict[str, int | str]:
    """Returns the variables that have the effect of the rules for calls of a size."""
    for row in read_table(own):
        last = size if row["last_bytes"] is None else row["last_bytes"]
        alike = (row["collective"], row["ranks"]) == (collective, ranks) and row["first_bytes"] <= size <= last
        if alike and row["algorithm"] != "library":
            return variables_of({**row, "first_bytes": size, "last_bytes": size})
    return {f"coll_tuned_{FORCED[collective][0]}_algorithm": 0}


def ratios(mpi: Any, own: str, plan: str, collective: str, sizes: list[int]) -> Iterator[tuple[int, str, str, float]]:
    """Yields by size and forced algorithm, or _ITSELF, the kind of choice and its time divided by that algorithm's."""
    world = mpi.COMM_WORLD
    variable, names = f"coll_tuned_{FORCED[collective][0]}_algorithm", FORCED[collective][1].split(",")
    lanes: list[dict[int, dict[str, int | str]]]
    lanes = [{size // 4: {variable: number} for size in sizes} for number in range(1, len(names) + 1)]
    lanes += 2 * [{size // 4: ruled(own, collective, world.size, size) for size in sizes}]
    planned, again = Collectives(mpi, world, plan), Collectives(mpi, world, plan)
    with forced(mpi, world, lanes) as (*each, rules, same):
        for size in sizes:
            (first,) = contest(mpi, world, [planned], collective, size // 4, 2).timings
            # Every rank counts calls that the plan serves, also ranks that only send or receive.
            serves = world.allreduce(first.served, op=mpi.MIN) > 0
            copy = again if serves else same
            for name, other in zip((*names, _ITSELF), (*each, copy), strict=True):
                pair = [planned if serves else rules, other]
                mine, theirs = contest(mpi, world, pair, collective, size // 4, _ROUNDS).timings
                ratio = median(a / b for a, b in zip(mine.rounds, theirs.rounds, strict=True))
                yield size, name, "schedule" if serves else "rules", ratio


def add_ranks(folder: Path, ranks: int, given: argparse.Namespace, figures: Figures) -> None:
    """Adds the figures of all collectives and sizes on `ranks` ranks."""
    own, plan = choose(folder, ranks, given)
    for collective in given.collectives.split(","):
        found: dict[tuple[int, str], list[float]] = defaultdict(list)
        kinds = {}
        for _ in range(given.starts):
            words = ("--pairs", f"{own},{plan},{collective}", "--sizes", given.sizes)
            for size, name, kind, ratio in json.loads(on_ranks(ranks, __file__, *words)):
                found[size, name].append(ratio)
                kinds[size] = kind
        for size in map(parse_bytes, given.sizes.split(",")):
            itself = found.pop((size, _ITSELF))
            by_name = {name: each for (of, name), each in found.items() if of == size}
            worst = max(by_name, key=lambda name: median(by_name[name]))
            figure = Of("chosen / best forced", f"{median(by_name[worst]):.2f}")
            spread = f"{min(by_name[worst]):.2f} to {max(by_name[worst]):.2f} over starts"
            noise = f"beside itself {median(itself):.2f}, {min(itself):.2f} to {max(itself):.2f}"
            note = f"{kinds[size]}; {worst}; {spread}; {noise}"
            figures.add(f"{collective}, {ranks} ranks; {size}", figure, note=note)


def main() -> None:
    words = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    words.add_argument("--ranks", default="5,7,8")
    words.add_argument("--collectives", default=",".join(FORCED))
    words.add_argument("--sizes", default="64KiB,512KiB,4MiB")
    words.add_argument("--candidates", default="24", help="algorithms of the library that are timed at a size")
    words.add_argument("--rounds", default="12", help="interleaved rounds of tune")
    words.add_argument("--starts", type=int, default=5)
    words.add_argument("--pairs", help=argparse.SUPPRESS)
    given = parsed(words)
    if given.pairs is not None:
        mpi = import_mpi(measures=True)
        own, plan, collective = given.pairs.split(",")
        rows = list(ratios(mpi, own, plan, collective, [parse_bytes(size) for size in given.sizes.split(",")]))
        if mpi.COMM_WORLD.rank == 0:
            sys.stdout.write(json.dumps(rows))
        return
    topic = "Broadcasts and reduces beside forced algorithms, without a network"
    with Figures("mpi", topic, given) as figures, tempfile.TemporaryDirectory() as folder:
        for ranks in map(int, given.ranks.split(",")):
            add_ranks(Path(folder), ranks, given, figures)


if __name__ == "__main__":
    main()
