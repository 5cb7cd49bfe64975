"""Whole programs under a tuned plan and without: the same output, and the times of both (`make programs`).

A solver in the manner of HPCG (`programs/cg.c`) and a machine-learning loop of mpi4py (`programs/learning.py`) run in
turns, with the plan that `unisono tune` writes for this machine and with the library's own collectives.
Usage: programs.py [TURNS].
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from allreduce import BIN, ENVIRONMENT

FOLDER = Path(__file__).with_name("programs")
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


def ran(ranks: int, program: list[str], *options: str) -> tuple[str, float]:
    """The output of a program, and the seconds that it says it took."""
    command = [sys.executable, "-m", "unisono", "run", "-n", str(ranks), *options, "--", *program]
    done = subprocess.run(command, env=ENVIRONMENT, check=True, stdout=subprocess.PIPE, text=True)
    lines = dict(line.split(" ", 1) for line in done.stdout.replace("\0", "").splitlines())
    return lines["result"], float(lines["seconds"])


def main() -> None:
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    with tempfile.TemporaryDirectory() as own:
        folder = Path(own)
        solver = folder / "cg"
        subprocess.run([BIN / "mpicc", "-O2", FOLDER / "cg.c", "-o", solver, "-lm"], check=True)
        programs = {
            "conjugate gradients, 24^3": [str(solver), "24", "400"],
            "gradient descent, 4096 features": [str(BIN / "python"), str(FOLDER / "learning.py"), "4096", "200"],
        }
        print(f"{'program':<34} {'ranks':>5} {'planned_s':>10} {'library_s':>10} {'ratio':>6}  output")
        for ranks in (2, 4):
            plan = tune(folder, ranks)
            for name, program in programs.items():
                planned, library = [], []
                for turn in range(turns):
                    # Which one comes first changes from turn to turn.
                    for which in (planned, library) if turn % 2 else (library, planned):
                        which.append(ran(ranks, program, *(("--plan", str(plan)) if which is planned else ("--off",))))
                outputs = {output for output, _ in planned + library}
                p, b = (median(seconds for _, seconds in which) for which in (planned, library))
                told = "the same" if len(outputs) == 1 else f"differs: {sorted(outputs)}"
                print(f"{name:<34} {ranks:>5} {p:>10.4f} {b:>10.4f} {b / p:>6.2f}  {told}", flush=True)
                if len(outputs) > 1:
                    sys.exit(1)


if __name__ == "__main__":
    main()
