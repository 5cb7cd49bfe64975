"""Whole programs under a tuned plan and without: the same output, and the times of both (`make programs`).

A solver in the manner of HPCG (`programs/cg.c`), a machine-learning loop of mpi4py (`programs/learning.py`) and a melt
of LAMMPS (`programs/melt.lammps`) run by turns with the plan that `unisono tune` writes for this machine and with the
library's own collectives. LAMMPS also runs once under a plan for every allreduce and broadcast. LAMMPS is the package
of Debian, built with Debian's Open MPI; if it is not installed, a line reports this. Usage: programs.py [TURNS].
"""

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median

import unisono as un
from allreduce import BIN, ENVIRONMENT

sys.path.insert(0, str(Path(__file__).parents[1]))
from common.figures import Figures, Of, parsed

FOLDER = Path(__file__).with_name("programs")
MELT = "LAMMPS, a melt of 23,328 atoms"
COLLECTIVES = "allreduce,broadcast"
SIZES = "8,64,512,4KiB,32KiB,128KiB"


def tune(folder: Path, ranks: int) -> Path:
    """Writes a plan for the sizes that the programs use."""
    machine, plan = folder / "machine.toml", folder / f"{ranks}.plan"
    under: list[str | Path] = [BIN / "mpiexec", "--oversubscribe", "-n", str(ranks), BIN / "unisono"]
    subprocess.run([*under, "calibrate", "-o", machine], env=ENVIRONMENT, check=True, stdout=subprocess.DEVNULL)
    options: list[str | Path] = ["--machine", machine, "--sizes", SIZES, "--rounds", "8", "-o", plan]
    said = subprocess.run([*under, "tune", COLLECTIVES, *options], env=ENVIRONMENT, check=True, stdout=subprocess.PIPE)
    sys.stderr.buffer.write(said.stdout)
    return plan


def forced(folder: Path, ranks: int) -> Path:
    """Writes a plan for every allreduce and broadcast, since a tuned plan may leave short vectors to the library."""
    plan = folder / f"forced-{ranks}.plan"
    names = {"allreduce": "recursive-doubling", "broadcast": "binomial"}
    machine = un.machine("archer", ranks)
    made = [un.plan(kind, machine=machine, elements=ranks, algorithm=name) for kind, name in names.items()]
    un.save_plans([(of, 0, None) for of in made], plan)
    return plan


def ran(ranks: int, program: list[str], *options: str) -> tuple[str, float]:
    """Returns the output of a program, and the seconds that it reports."""
    command = [sys.executable, "-m", "unisono", "run", "-n", str(ranks), *options, "--", *program]
    done = subprocess.run(command, env=ENVIRONMENT, check=True, stdout=subprocess.PIPE, text=True)
    lines = dict(line.split(" ", 1) for line in done.stdout.replace("\0", "").splitlines())
    return lines["result"], float(lines["seconds"])


def lammps(ranks: int, launcher: str, *options: str) -> tuple[str, float]:
    """Returns a digest of the table that LAMMPS prints, a row for each step, and the seconds of its loop."""
    # Debian's builds of the library otherwise report missing hardware.
    own = {"OMPI_MCA_mca_base_component_show_load_errors": "0", "OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,vader"}
    under = ["-m", "unisono", "run", "-n", str(ranks), "--launcher", launcher, *options]
    command = [sys.executable, *under, "--", "lmp", "-in", str(FOLDER / "melt.lammps"), "-log", "none"]
    env = {**ENVIRONMENT, **own, "OMPI_MCA_rmaps_base_oversubscribe": "1"}
    done = subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE, text=True)
    found = re.search(r"^Step .*?\n(.*?)^Loop time of (\S+)", done.stdout.replace("\0", ""), re.DOTALL | re.MULTILINE)
    assert found is not None, done.stdout
    assert found[1].count("\n") == 101, "a row for each step"
    return hashlib.sha256(found[1].encode()).hexdigest()[:16], float(found[2])


def main() -> None:
    words = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    words.add_argument("turns", nargs="?", type=int, default=7, help="runs of each program")
    given = parsed(words)
    turns: int = given.turns
    figures = Figures("mpi", "Whole programs under a plan", given)
    with figures, tempfile.TemporaryDirectory() as own:
        folder = Path(own)
        solver = folder / "cg"
        subprocess.run([BIN / "mpicc", "-O2", FOLDER / "cg.c", "-o", solver, "-lm"], check=True)
        learning = [str(BIN / "python"), str(FOLDER / "learning.py"), "4096", "200"]
        programs: dict[str, Callable[..., tuple[str, float]]] = {
            "conjugate gradients, 24^3": lambda ranks, *how: ran(ranks, [str(solver), "24", "400"], *how),
            "gradient descent, 4096 features": lambda ranks, *how: ran(ranks, learning, *how),
        }
        launcher = shutil.which("mpiexec.openmpi")
        if launcher and shutil.which("lmp"):
            programs[MELT] = lambda ranks, *how: lammps(ranks, launcher, *how)
        else:
            sys.stderr.write("LAMMPS is not run: Debian's packages lammps and openmpi-bin are not installed\n")
        for ranks in (2, 4):
            plan = tune(folder, ranks)
            for name, program in programs.items():
                planned: list[tuple[str, float]] = []
                library: list[tuple[str, float]] = []
                for turn in range(turns):
                    # The order of the runs with and without the plan alternates.
                    for which in (planned, library) if turn % 2 else (library, planned):
                        which.append(program(ranks, *(("--plan", str(plan)) if which is planned else ("--off",))))
                outputs = {output for output, _ in planned + library}
                if name == MELT:
                    # The vectors of LAMMPS are short, and a tuned plan may leave all of them to the library.
                    outputs.add(program(ranks, "--plan", str(forced(folder, ranks)))[0])
                p, b = (median(seconds for _, seconds in which) for which in (planned, library))
                if len(outputs) > 1:
                    raise SystemExit(f"{name} on {ranks} ranks: the outputs differ: {sorted(outputs)}")
                figures.add(f"{name}, tuned plan, {ranks} ranks", Of("planned", p, "s", "library", b, gain=True))


if __name__ == "__main__":
    main()
