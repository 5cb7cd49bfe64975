"""LAMMPS as Debian ships it on an emulated cluster, with a tuned plan and without: the same table, and both times.

Eight hosts on two leaves with 8:1 uplinks. `unisono calibrate` and `unisono tune` run on the lab under the Open MPI of
this project; LAMMPS is linked to Debian's, and not rebuilt. Runs with the plan and without alternate. A tuned plan may
leave the short vectors of this program to the library; with --forced the model alone plans all of them.
Usage: lab_programs.py [--turns N] [--scale S] [--forced].
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
from pathlib import Path
from statistics import median

import unisono as un
from allreduce import BIN, LIBRARIES
from lab import NETWORKS, load, unisono

sys.path.insert(0, str(Path(__file__).parents[1] / "common"))
from figures import Figures, Of, add_option

INPUT = Path(__file__).with_name("programs") / "melt.lammps"
COLLECTIVES = "allreduce,broadcast,reduce"
SIZES = "8,16,64,512,4KiB"


def lammps(hosts: int, *options: str) -> tuple[str, float]:
    """Returns a digest of the table that LAMMPS prints, a row for each step, and the seconds of its loop."""
    under: list[str | Path] = [BIN / "unisono", "lab", "run", "-n", str(hosts), *options]
    command = [*under, "--", "lmp", "-in", INPUT, "-log", "none"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found = re.search(r"^Step .*?\n(.*?)^Loop time of (\S+)", done.stdout.replace("\0", ""), re.DOTALL | re.MULTILINE)
    assert found is not None, done.stdout
    return hashlib.sha256(found[1].encode()).hexdigest()[:16], float(found[2])


def tuned(folder: Path, bare: Path, hosts: int) -> Path:
    """Returns a plan for the sizes that the program uses, calibrated and tuned on the lab."""
    machine, plan = folder / "measured.toml", folder / "tuned.plan"
    under = ("lab", "run", "-n", str(hosts), "--", LIBRARIES["openmpi"] / "python", "-m", "unisono")
    unisono(*under, "calibrate", "--machine", bare, "-o", machine, "--rounds", "20")
    options = ("--machine", machine, "--sizes", SIZES, "--candidates", "2", "-o", plan)
    sys.stderr.write(unisono(*under, "tune", COLLECTIVES, *options))
    return plan


def forced(folder: Path, bare: Path) -> Path:
    """Returns a plan that serves every call of `COLLECTIVES` with the schedule that the model chooses for 16 bytes."""
    plan = folder / "forced.plan"
    un.save_plans([(un.plan(name, bare, bytes=16), 0, None) for name in COLLECTIVES.split(",")], plan)
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
    words.add_argument("--turns", type=int, default=5, help="runs with the plan, and without")
    words.add_argument("--scale", default="1000", help="the factor of the lab")
    words.add_argument("--forced", action="store_true", help="serve every allreduce, broadcast and reduce")
    add_option(words)
    given = words.parse_args()
    if shutil.which("lmp") is None or shutil.which("mpiexec.openmpi") is None:
        raise SystemExit("LAMMPS is not run: Debian's packages lammps and openmpi-bin are not installed")
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
            plan = forced(folder, bare) if given.forced else tuned(folder, bare, hosts)
            runs: dict[bool, list[tuple[str, float]]] = {True: [], False: []}
            for turn in range(given.turns):
                # The order of the runs with and without the plan alternates.
                for planned in (True, False) if turn % 2 else (False, True):
                    options = ("--plan", str(plan), "--report", str(report)) if planned else ()
                    runs[planned].append(lammps(hosts, *options))
        finally:
            unisono("lab", "down")
        tables = {table for of in runs.values() for table, _ in of}
        if len(tables) > 1:
            raise SystemExit(f"the tables of LAMMPS differ: {sorted(tables)}")
        p, b = (median(seconds for _, seconds in runs[planned]) for planned in (True, False))
        note = f"two leaves at 1/{given.scale} of 100 Gb/s; {calls(report)}; load {load():.0f}"
        case = f"LAMMPS, a melt of 23,328 atoms on {hosts} hosts, {'forced' if given.forced else 'tuned'} plan"
        figures.add(case, Of("planned", p, "s", "library", b, gain=True), note=note)


if __name__ == "__main__":
    main()
