"""Planned allreduces beside the library's own, at 2 and 4 ranks, 8 B to 16 MiB.

`unisono calibrate` and `unisono tune` make the plan, at other sizes than are timed here; then `allreduce.c` is compiled
and runs under it. Usage: allreduce.py [ROUNDS [PLAN]]; a plan that is there is used, else it is written.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import unisono as un

ROOT = Path(__file__).resolve().parents[2]
BIN = ROOT / ".venv" / "bin"
#: What the plan is tuned at; the program's sizes are powers of 8 from 8 bytes on.
SIZES = "8,32,128,512,2KiB,8KiB,32KiB,128KiB,512KiB,2MiB,16MiB"
# On shared cores a rank that waits must yield, or the others get no turn.
ENVIRONMENT = {
    **os.environ,
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}


def tune(folder: Path, plan: Path) -> None:
    """Writes a plan for 2 and 4 ranks of this machine."""
    machine = folder / "machine.toml"
    under: list[str | Path] = [BIN / "mpiexec", "--oversubscribe", "-n", "4", BIN / "unisono"]
    subprocess.run([*under, "calibrate", "-o", machine], env=ENVIRONMENT, check=True, stdout=subprocess.DEVNULL)
    options: list[str | Path] = ["--machine", machine, "--ranks", "2,4", "--sizes", SIZES, "--rounds", "12", "-o", plan]
    subprocess.run([*under, "tune", "allreduce", *options], env=ENVIRONMENT, check=True)


def main() -> None:
    rounds = sys.argv[1] if len(sys.argv) > 1 else "6"
    with tempfile.TemporaryDirectory() as own:
        folder = Path(own)
        plan = Path(sys.argv[2]) if len(sys.argv) > 2 else folder / "tuned.plan"
        if not plan.exists():
            tune(folder, plan)
        program = folder / "allreduce"
        source = Path(__file__).with_name("allreduce.c")
        subprocess.run([BIN / "mpicc", "-O2", source, "-o", program], check=True)
        for ranks in (2, 4):
            table = [row for row in un.load_plans(plan) if row["ranks"] == ranks]
            told = [f"{row['algorithm'] or 'library'} from {row['first_bytes']}" for row in table]
            print(f"{ranks} ranks: " + ", ".join(told), flush=True)
            command = [sys.executable, "-m", "unisono", "run", "-n", str(ranks), "--plan", str(plan), "--"]
            subprocess.run([*command, str(program), rounds], env=ENVIRONMENT, check=True)


if __name__ == "__main__":
    main()
