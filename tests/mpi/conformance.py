"""Every registered algorithm, forced by a plan, under programs that check their results: `make conformance`.

Random collectives of all kinds, datatypes, operators, roots and layouts run beside their non-blocking forms, which no
plan serves; wrong arguments must end as the library's own calls do. One line is printed for each algorithm, with the
number of calls that it served. Words after the command choose the ABIs (openmpi, mpich, abi), numbers the ranks.
"""

import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

import unisono as un

from ..python.test_mpi import COMPILERS, SOURCES, report, run

__all__ = ["compile_for", "forced", "served"]

KINDS = (
    "allreduce",
    "reduce",
    "broadcast",
    "allgather",
    "reduce-scatter",
    "alltoall",
    "barrier",
    "gather",
    "scatter",
    "scan",
)
#: Random calls of a program. The waiting ranks of MPICH do not yield, so that more of them than cores are slow.
CALLS = {"openmpi": 140, "mpich": 70, "abi": 70}
CALLS_ON_SHARED_CORES = {"openmpi": 140, "mpich": 14, "abi": 14}


def schedules(kind: str, ranks: int) -> Iterator[un.Plan]:
    """A plan of each algorithm for this collective and number of ranks that MPI can run."""
    node = next((str(n) for n in range(2, ranks) if ranks % n == 0), None)
    for algorithm in un.algorithms():
        name, machines = algorithm["name"], algorithm["machines"]
        if kind not in algorithm["collectives"] or not {"endpoint", "network"} & set(machines):
            continue
        machine = un.machine("archer" if "endpoint" in machines else "torus2d-small", ranks)
        levels = {"node": node} if name == "hierarchical" and node else None
        elements = None if kind == "barrier" else 8 * ranks
        try:
            yield un.plan(kind, machine=machine, elements=elements, algorithm=name, params=levels)
        except un.UnsupportedError:
            continue


def forced(ranks: int, folder: Path) -> list[Path]:
    """Plans that together have every algorithm: each has one of every collective, for all sizes."""
    paths = []
    columns = [list(schedules(kind, ranks)) for kind in KINDS]
    for number, made in enumerate(zip_longest(*columns)):
        paths.append(folder / f"{ranks}-{number}.plan")
        rows: list[tuple[un.Plan, int, None]] = []
        for plan in made:
            if plan is not None:
                try:
                    un.save_plans([(plan, 0, None)], paths[-1])
                except un.UnsupportedError:
                    # In-network schedules: no program of MPI runs them.
                    continue
                rows.append((plan, 0, None))
        un.save_plans(rows, paths[-1], unlike_bits=True)
    return paths


def compile_for(abi: str, folder: Path) -> dict[str, Path]:
    """The programs of the suite."""
    programs = {
        name: folder / f"{name}-{abi}" for name in ("random", "faults", "begun", "vectors", "pieces", "persistent")
    }
    for name, target in programs.items():
        command = [str(COMPILERS[abi]), "-O1", str(SOURCES / f"{name}.c"), "-o", str(target), "-lm"]
        subprocess.run(command, check=True)
    # One in C++, by the same wrapper, which knows the library and its headers.
    programs["objects"] = folder / f"objects-{abi}"
    cxx = [str(COMPILERS[abi]), "-O1", "-x", "c++", str(SOURCES / "objects.cpp"), "-o", str(programs["objects"])]
    subprocess.run([*cxx, "-lstdc++"], check=True)
    return programs


def served(plan: Path, ranks: int, abi: str, programs: dict[str, Path], seed: int) -> Counter[tuple[str, str]]:
    """Runs the programs under a plan, and returns the calls that it served, by collective and algorithm.

    Raises:
        AssertionError: a program printed a wrong value, or ended otherwise than without the plan.

    """
    said = plan.with_suffix(".report")
    options = ("--plan", str(plan), "--safe-ops", "--nonblocking", "--report", str(said))
    calls = str((CALLS if ranks <= 2 else CALLS_ON_SHARED_CORES)[abi])
    found: Counter[tuple[str, str]] = Counter()
    for program, arguments, expected in (
        ("random", (str(seed), calls, "users"), f"ok {ranks} {calls}\n"),
        ("faults", ("planned",), f"ok {ranks}\n"),
        ("begun", ("5",), f"ok {ranks}\n"),
        ("vectors", ("12",), f"ok {ranks}\n"),
        ("pieces", ("12",), f"ok {ranks}\n"),
        ("persistent", ("3",), f"ok {ranks}\n"),
        ("objects", (), f"ok {ranks}\n"),
    ):
        env = {"UNISONO_UNLIKE_BITS": "1"}
        done = run(ranks, programs[program], *arguments, options=options, env=env)
        assert (done.code, done.out) == (0, expected), f"{abi}, {ranks} ranks, {plan.name}: {done.out}{done.err}"
        found.update({key: n for key, n in report(said).items() if key[1] != "library"})
    return found


def main(words: list[str]) -> None:
    """Runs the suite, and prints what served how many calls."""
    abis = [word for word in words if word in COMPILERS] or list(COMPILERS)
    counts = [int(word) for word in words if word.isdigit()] or list(range(2, 10))
    total, runs = 0, 0
    for ranks in counts:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            plans = forced(ranks, folder)
            for abi in abis:
                programs = compile_for(abi, folder)
                found: Counter[tuple[str, str]] = Counter()
                for number, plan in enumerate(plans):
                    found.update(served(plan, ranks, abi, programs, 100 * ranks + number))
                    runs += len(programs)
                for (collective, algorithm), calls in sorted(found.items()):
                    sys.stdout.write(f"{abi:<8} {ranks:>2} ranks  {collective:<15} {algorithm:<24} {calls:>6} served\n")
                sys.stdout.flush()
                total += found.total()
    sys.stdout.write(f"{runs} programs ended as without a plan; {total} calls were served\n")


if __name__ == "__main__":
    main(sys.argv[1:])
