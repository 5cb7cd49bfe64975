"""Every registered algorithm, forced by a plan, under programs that check their results: `make conformance`.

Random collectives of all kinds, datatypes, operators, roots and layouts run beside their non-blocking forms, which no
plan serves; wrong arguments must end as the library's own calls do. Programs in C and C++ run under every plan, and
programs in Fortran if there is a compiler with the bindings of a library. Each program of communicators, threads,
datatypes and processes runs under one plan of each number of ranks. A line for each algorithm states the number of
calls that it served; none is an error. Words after the command choose the ABIs (openmpi, mpich, abi), numbers the
numbers of ranks.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import unisono as un

from ..python.test_mpi import COMPILERS, SOURCES, report, run

__all__ = ["PROGRAMS", "Program", "compile_for", "forced", "served"]

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
REDUCTIONS = ("allreduce", "reduce", "reduce-scatter", "scan")
#: Random calls of a program by ABI, on own cores and on shared ones. Waiting ranks of MPICH do not yield, so more ranks
#: than cores are slow.
CALLS = {"openmpi": 140, "mpich": 70, "abi": 70}
CALLS_ON_SHARED_CORES = {"openmpi": 140, "mpich": 14, "abi": 14}


@dataclass(frozen=True)
class Program:
    """A program of the suite; ``{ranks}``, ``{seed}`` and ``{calls}`` in `arguments` and `expected` are filled in."""

    name: str
    arguments: tuple[str, ...] = ()
    expected: str = "ok {ranks}\n"
    #: True if the program runs under every plan, False if it runs under one plan of each number of ranks.
    under_all: bool = True
    #: True if the program permits schedules after which ranks have different bits.
    unlike_bits: bool = True


PROGRAMS = (
    Program("random", ("{seed}", "{calls}", "users"), "ok {ranks} {calls}\n"),
    Program("faults", ("planned",)),
    Program("begun", ("5",)),
    Program("vectors", ("12",)),
    Program("pieces", ("12",)),
    Program("persistent", ("3",)),
    Program("objects"),
    Program("fortran"),
    Program("datatypes", (), "ok {ranks} all\n", under_all=False),
    Program("operators", ("users",), under_all=False, unlike_bits=False),
    Program("worlds", under_all=False),
    Program("threads", under_all=False),
    Program("many", ("40", "60"), under_all=False),
    Program("dynamic", ("both",), under_all=False),
    Program("hostile", under_all=False),
)
#: Debian's names of MPI libraries by ABI; unlike the wheels, its packages have bindings for Fortran.
FORTRAN = {"openmpi": "openmpi", "mpich": "mpich"}


def schedules(kind: str, ranks: int, op: str = "sum", dtype: str = "f32") -> Iterator[un.Plan]:
    """Yields a plan of each algorithm that MPI can run for this collective and number of ranks."""
    node = next((str(n) for n in range(2, ranks) if ranks % n == 0), None)
    for algorithm in un.algorithms():
        name, machines = algorithm["name"], algorithm["machines"]
        if kind not in algorithm["collectives"] or not {"endpoint", "network"} & set(machines):
            continue
        machine = un.machine("archer" if "endpoint" in machines else "torus2d-small", ranks)
        levels = {"node": node} if name == "hierarchical" and node else None
        elements = None if kind == "barrier" else 8 * ranks
        try:
            plan = un.plan(kind, machine=machine, elements=elements, algorithm=name, params=levels, op=op, dtype=dtype)
        except un.UnsupportedError:
            continue
        if is_stored(plan):
            yield plan


def is_stored(plan: un.Plan) -> bool:
    """Returns whether a plan file can store the schedule; it cannot store reductions in switches."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            un.save_plans([(plan, 0, None)], Path(folder) / "t.plan")
        except un.UnsupportedError:
            return False
    return True


def forced(ranks: int, folder: Path) -> list[Path]:
    """Writes plans that together have every algorithm; each plan has one algorithm of every collective, for all sizes.

    If an algorithm supports operators that do not commute, the plan has a row for these too.
    """
    paths = []
    columns = [list(schedules(kind, ranks)) for kind in KINDS]
    ordered = {(kind, plan.algorithm): plan for kind in REDUCTIONS for plan in schedules(kind, ranks, "ordered", "i64")}
    for number, made in enumerate(zip_longest(*columns)):
        paths.append(folder / f"{ranks}-{number}.plan")
        plans = [(kind, plan) for kind, plan in zip(KINDS, made, strict=True) if plan is not None]
        also = [ordered[kind, plan.algorithm] for kind, plan in plans if (kind, plan.algorithm) in ordered]
        un.save_plans([(plan, 0, None) for plan in [*(plan for _, plan in plans), *also]], paths[-1], unlike_bits=True)
    return paths


def compile_for(abi: str, folder: Path, programs: Sequence[Program] = PROGRAMS) -> dict[str, Path]:
    """Compiles programs of the suite, the one in Fortran only if there is a compiler with bindings."""
    built: dict[str, Path] = {}
    for program in programs:
        target = folder / f"{program.name}-{abi}"
        if program.name == "fortran":
            fortran = shutil.which(f"mpif90.{FORTRAN.get(abi)}")
            if fortran is None:
                continue
            words = ["-w", "-fallow-argument-mismatch", "-DBINDING=3", str(SOURCES / "fortran" / "collectives.F90")]
            command = [fortran, *words]
        elif program.name == "objects":
            # The wrapper for C also compiles C++: it adds the library and its headers.
            command = [str(COMPILERS[abi]), "-x", "c++", str(SOURCES / "objects.cpp"), "-lstdc++"]
        else:
            command = [str(COMPILERS[abi]), str(SOURCES / f"{program.name}.c"), "-lm"]
        # The headers of C++ take seconds, and twice as long with optimization.
        subprocess.run(
            [*command, "-O0" if program.name == "objects" else "-O1", "-o", str(target)], check=True, cwd=folder
        )
        built[program.name] = target
    return built


def under(number: int, plans: int) -> list[Program]:
    """Returns the programs that run under plan `number` of `plans`: those for all plans, and a part of the others."""
    others = [program for program in PROGRAMS if not program.under_all]
    return [*(program for program in PROGRAMS if program.under_all), *others[number::plans]]


def served(
    plan: Path, ranks: int, abi: str, built: dict[str, Path], seed: int, programs: list[Program]
) -> Counter[tuple[str, str]]:
    """Runs programs under a plan, and returns the numbers of calls that the plan served, by collective and algorithm.

    Raises:
        AssertionError: a program printed a wrong value, or did not end as without the plan.

    """
    said = plan.with_suffix(".report")
    options = ("--plan", str(plan), "--safe-ops", "--nonblocking", "--report", str(said))
    words = {"ranks": ranks, "seed": seed, "calls": (CALLS if ranks <= 2 else CALLS_ON_SHARED_CORES)[abi]}
    found: Counter[tuple[str, str]] = Counter()
    for program in programs:
        if program.name not in built:
            continue
        env: dict[str, str] = {"UNISONO_UNLIKE_BITS": "1"} if program.unlike_bits else {}
        more: tuple[str, ...] = options
        if program.name == "fortran":
            more = (*options, "--launcher", f"mpiexec.{FORTRAN[abi]}")
            # Debian's builds of the library otherwise report missing hardware.
            env |= {"OMPI_MCA_mca_base_component_show_load_errors": "0", "OMPI_MCA_pml": "ob1"}
            env |= {"OMPI_MCA_btl": "self,vader", "OMPI_MCA_rmaps_base_oversubscribe": "1"}
        arguments = [argument.format(**words) for argument in program.arguments]
        done = run(ranks, built[program.name], *arguments, options=more, env=env)
        told = f"{abi}, {ranks} ranks, {plan.name}, {program.name}: {done.out}{done.err}"
        assert (done.code, done.out) == (0, program.expected.format(**words)), told
        found.update({key: n for key, n in report(said).items() if key[1] != "library"})
    return found


def idle(plan: Path, found: Counter[tuple[str, str]]) -> list[str]:
    """Returns the rows of a plan that served no call."""
    rows = {(row["collective"], row["algorithm"]) for row in un.load_plans(plan)}
    return [f"{collective} by {algorithm}" for collective, algorithm in sorted(rows - set(found))]


def word(text: str) -> str | int:
    """Parses an ABI's name, or a number of ranks from 2 on."""
    if text in COMPILERS:
        return text
    if text.isdigit() and int(text) > 1:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(COMPILERS)}, and no number of ranks from 2 on")


def main() -> None:
    """Runs the suite, and prints the number of calls that each algorithm served."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument(
        "words", nargs="*", type=word, help="ABIs (openmpi, mpich, abi) and numbers of ranks [all; 2 to 9]"
    )
    words: list[str | int] = parser.parse_args().words
    abis = [abi for abi in words if isinstance(abi, str)] or list(COMPILERS)
    counts = [ranks for ranks in words if isinstance(ranks, int)] or list(range(2, 10))
    total, runs = 0, 0
    missing: list[str] = []
    for ranks in counts:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            plans = forced(ranks, folder)
            for abi in abis:
                built = compile_for(abi, folder)
                every: Counter[tuple[str, str]] = Counter()
                for number, plan in enumerate(plans):
                    programs = under(number, len(plans))
                    found = served(plan, ranks, abi, built, 100 * ranks + number, programs)
                    missing += [f"{abi}, {ranks} ranks: {row}" for row in idle(plan, found)]
                    runs += sum(program.name in built for program in programs)
                    every.update(found)
                for (collective, algorithm), calls in sorted(every.items()):
                    sys.stdout.write(f"{abi:<8} {ranks:>2} ranks  {collective:<15} {algorithm:<24} {calls:>6} served\n")
                without = "" if "fortran" in built else ", none of them in Fortran, of which no bindings were found"
                sys.stdout.write(f"{abi:<8} {ranks:>2} ranks  {every.total()} calls were served{without}\n")
                sys.stdout.flush()
                total += every.total()
    sys.stdout.write(f"{runs} programs ended as without a plan; {total} calls were served\n")
    if missing:
        sys.exit("rows that served no call:\n" + "\n".join(missing))


if __name__ == "__main__":
    main()
