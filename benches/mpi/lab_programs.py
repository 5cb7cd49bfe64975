"""Programs as Debian ships them on an emulated cluster, with a tuned plan and without: the same results, both times.

LAMMPS and Quantum ESPRESSO run on eight hosts on two leaves with 8:1 uplinks. `unisono calibrate` and `unisono tune`
run on the lab under the Open MPI of this project; the programs are linked to Debian's, and not rebuilt. Runs with the
plan and without alternate. A tuned plan may leave the short vectors of LAMMPS to the library; with --forced the model
alone plans all calls. Usage: lab_programs.py [--program NAME] [--turns N] [--scale S] [--forced].
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from allreduce import BIN, LIBRARIES
from lab import NETWORKS, load, unisono

sys.path.insert(0, str(Path(__file__).parents[1]))
from common.figures import Figures, Of, parsed

INPUTS = Path(__file__).with_name("programs")


@dataclass(frozen=True)
class Program:
    """A program: its case in the table of results, its command, and the collectives and sizes that a plan serves."""

    case: str
    package: str
    command: tuple[str, ...]
    collectives: str
    sizes: str
    #: Finds the results, of which a digest is compared, and then the seconds.
    output: re.Pattern[str]


PROGRAMS = {
    "lammps": Program(
        "LAMMPS, a melt of 23,328 atoms",
        "lammps",
        ("lmp", "-in", str(INPUTS / "melt.lammps"), "-log", "none"),
        "allreduce,broadcast,reduce",
        "8,16,64,512,4KiB",
        re.compile(r"^Step .*?\n(.*?)^Loop time of (\S+)", re.DOTALL | re.MULTILINE),
    ),
    "espresso": Program(
        "Quantum ESPRESSO, 8 atoms of silicon",
        "quantum-espresso",
        ("pw.x", "-ndiag", "1", "-in", str(INPUTS / "silicon.pw")),
        "allreduce,broadcast,alltoall",
        "8,128,1KiB,8KiB,64KiB",
        re.compile(r"^! +total energy += +(\S+?\.\d{6}).*?PWSCF .*? (\S+)s WALL", re.DOTALL | re.MULTILINE),
    ),
}


def run(program: Program, hosts: int, *options: str) -> tuple[str, float]:
    """Returns a digest of the results of a program, and the seconds that it states."""
    under: list[str | Path] = [BIN / "unisono", "lab", "run", "-n", str(hosts), *options]
    done = subprocess.run([*under, "--", *program.command], check=True, stdout=subprocess.PIPE, text=True)
    found = program.output.search(done.stdout.replace("\0", ""))
    assert found is not None, done.stdout
    return hashlib.sha256(found[1].encode()).hexdigest()[:16], float(found[2])


def tuned(program: Program, folder: Path, bare: Path, hosts: int) -> Path:
    """Returns a plan for the sizes that the program uses, calibrated and tuned on the lab."""
    machine, plan = folder / "measured.toml", folder / "tuned.plan"
    under = ("lab", "run", "-n", str(hosts), "--", LIBRARIES["openmpi"] / "python", "-m", "unisono")
    unisono(*under, "calibrate", "--machine", bare, "-o", machine, "--rounds", "20")
    options = ("--machine", machine, "--sizes", program.sizes, "--candidates", "2", "-o", plan)
    sys.stderr.write(unisono(*under, "tune", program.collectives, *options))
    return plan


def forced(program: Program, folder: Path, bare: Path) -> Path:
    """Returns a plan that serves every call of the collectives with the schedule that the model chooses by size."""
    plan = folder / "forced.plan"
    served = ("--machine", bare, "--serve", "all", "--bytes", "16", "-o", plan)
    unisono("plan", program.collectives, *served)
    return plan


def calls(report: Path) -> str:
    """Returns the numbers of calls that the plan served, and that it left to the library, by collective."""
    served: Counter[str] = Counter()
    left: Counter[str] = Counter()
    for line in report.read_text().splitlines()[2:]:
        words = line.split()
        (left if "library" in words[5:] else served)[words[0]] += int(words[3])
    return "; ".join(
        f"{name} {', '.join(f'{count} {kind}' for kind, count in of.items())}"
        for name, of in (("served", served), ("left to the library", left))
        if of
    )


def main() -> None:
    words = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    words.add_argument("--program", choices=PROGRAMS, default="lammps")
    words.add_argument("--turns", type=int, default=5, help="runs with the plan, and without")
    words.add_argument("--scale", default="1000", help="the factor of the lab")
    words.add_argument("--forced", action="store_true", help="serve every allreduce, broadcast and reduce")
    given = parsed(words)
    program = PROGRAMS[given.program]
    if shutil.which(program.command[0]) is None or shutil.which("mpiexec.openmpi") is None:
        raise SystemExit(f"not run: Debian's packages {program.package} and openmpi-bin are not installed")
    hosts, cables = NETWORKS["two-leaves"]
    # Sockets need short paths.
    with (
        Figures("mpi", "Programs on emulated clusters", given) as figures,
        tempfile.TemporaryDirectory(prefix="lab", dir="/tmp") as own,
    ):
        os.environ["XDG_RUNTIME_DIR"] = own
        folder = Path(own)
        edges, bare, report = folder / "tree.txt", folder / "tree.toml", folder / "report"
        edges.write_text("".join(f"{line}\n" for line in cables))
        unisono("machines", "import", edges, "--from", "edges", "--accelerators", str(hosts), "-o", bare)
        unisono("lab", "up", bare, "--scale", given.scale)
        try:
            plan = forced(program, folder, bare) if given.forced else tuned(program, folder, bare, hosts)
            runs: dict[bool, list[tuple[str, float]]] = {True: [], False: []}
            for turn in range(given.turns):
                # The order of the runs with and without the plan alternates.
                for planned in (True, False) if turn % 2 else (False, True):
                    options = ("--plan", str(plan), "--report", str(report)) if planned else ()
                    runs[planned].append(run(program, hosts, *options))
        finally:
            unisono("lab", "down")
        tables = {table for of in runs.values() for table, _ in of}
        if len(tables) > 1:
            raise SystemExit(f"the results differ: {sorted(tables)}")
        p, b = (median(seconds for _, seconds in runs[planned]) for planned in (True, False))
        note = f"two leaves at 1/{given.scale} of 100 Gb/s; {calls(report)}; load {load():.0f}"
        case = f"{program.case} on {hosts} hosts, {'forced' if given.forced else 'tuned'} plan"
        figures.add(case, Of("planned", p, "s", "library", b, gain=True), note=note)


if __name__ == "__main__":
    main()
