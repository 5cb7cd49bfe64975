"""Programs of tasks beside the same programs by hand, under mpiexec: rows of benches/results/tasks.csv.

An all-gather loop and a stencil, both without work, and direct N-body, each run three ways in one process: as a program
with collectives, with messages between pairs only (as with UNISONO_POINT_TO_POINT=1), and by hand with mpi4py. The ways
alternate in each round. A time is the median of the rounds, of a step on the slowest rank with its submission. The
ratio of CPU times, of all ranks, is the median of the rounds' ratios. Usage: tasks.py [ROUNDS [RANKS,...]].
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from common.figures import Figures, Of, parsed

BIN = Path(__file__).resolve().parents[2] / ".venv" / "bin"
# On shared cores a waiting rank must yield, or other ranks do not run.
ENVIRONMENT = {
    **os.environ,
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
#: Sizes: doubles of the gathered array, doubles in a row of the stencil's grid, and bodies.
GATHERED = (64, 4096, 262144)
WIDTHS = (8, 512, 32768)
BODIES = (256, 1024, 2048)

#: A function that executes a number of steps.
Way = Callable[[int], None]


def program(by_messages: bool) -> Any:
    from unisono.tasks import Program

    os.environ["UNISONO_POINT_TO_POINT"] = "1" if by_messages else "0"
    return Program()


def gathering(n: int) -> dict[str, Way]:
    """Returns the three ways of an all-gather of `n` doubles, of which each rank writes an equal part."""
    import numpy as np
    from mpi4py import MPI
    from unisono.tasks import all_, one_to_one

    def found(by_messages: bool) -> Way:
        p = program(by_messages)
        a = p.zeros(n)

        def look(a: Any) -> None:
            pass

        def run(steps: int) -> None:
            for _ in range(steps):
                p.task(look, range=n, reads=[a[all_]])
                p.task(look, range=n, updates=[a[one_to_one]])
            p.run()

        return run

    comm = MPI.COMM_WORLD.Dup()
    part = n // comm.size
    whole = np.zeros(n)
    mine = whole[comm.rank * part : (comm.rank + 1) * part].copy()

    def by_hand(steps: int) -> None:
        for _ in range(steps):
            comm.Allgather(mine, whole)

    return {"hand": by_hand, "found": found(False), "messages": found(True)}


def borders(width: int) -> dict[str, Way]:
    """Returns the three ways of a stencil's halo exchange: neighbors exchange rows of `width` doubles."""
    import numpy as np
    from mpi4py import MPI
    from unisono.tasks import neighborhood, one_to_one

    comm = MPI.COMM_WORLD.Dup()
    n = 4 * comm.size

    def found(by_messages: bool) -> Way:
        p = program(by_messages)
        a, b = p.zeros((n, width)), p.zeros((n, width))

        def look(a: Any, b: Any) -> None:
            pass

        def run(steps: int) -> None:
            for k in range(steps):
                x, y = (a, b) if k % 2 == 0 else (b, a)
                p.task(look, range=n, reads=[x[neighborhood(1)]], writes=[y[one_to_one]])
            p.run()

        return run

    grid = np.zeros((6, width))
    up, down = (k if 0 <= k < comm.size else MPI.PROC_NULL for k in (comm.rank - 1, comm.rank + 1))

    def by_hand(steps: int) -> None:
        for _ in range(steps):
            requests = [comm.Irecv(grid[0], up), comm.Irecv(grid[5], down)]
            requests += [comm.Isend(grid[1], up), comm.Isend(grid[4], down)]
            MPI.Request.Waitall(requests)

    return {"hand": by_hand, "found": found(False), "messages": found(True)}


def bodies(n: int) -> dict[str, Way]:
    """Returns the three ways of direct N-body in double precision, with one all-gather of positions a step."""
    import numpy as np
    from mpi4py import MPI
    from unisono.tasks import all_, one_to_one

    start, dt = np.random.default_rng(1).normal(size=(n, 3)), 1e-3
    comm = MPI.COMM_WORLD.Dup()
    part = n // comm.size
    first = comm.rank * part

    def kick(p: Any, v: Any, first: int) -> None:
        away = p[None] - p[first : first + len(v), None]
        v += dt * (away / (np.sqrt((away**2).sum(axis=2, keepdims=True)) + 1e-9) ** 3).sum(axis=1)

    def step(p: Any, v: Any) -> None:
        kick(np.asarray(p), np.asarray(v), v.offset[0])

    def move(v: Any, p: Any) -> None:
        p += dt * v

    def found(by_messages: bool) -> Way:
        p = program(by_messages)
        places, speeds = p.array((n, 3), init=start), p.zeros((n, 3))

        def run(steps: int) -> None:
            for _ in range(steps):
                p.task(step, range=n, reads=[places[all_]], updates=[speeds[one_to_one]])
                p.task(move, range=n, reads=[speeds[one_to_one]], updates=[places[one_to_one]])
            p.run()

        return run

    places, speeds = start.copy(), np.zeros((part, 3))
    mine = places[first : first + part].copy()

    def by_hand(steps: int) -> None:
        for _ in range(steps):
            kick(places, speeds, first)
            move(speeds, mine)
            comm.Allgather(mine, places)

    return {"hand": by_hand, "found": found(False), "messages": found(True)}


def measure(figures: Figures, name: str, size: int, ways: dict[str, Way], steps: int, rounds: int) -> None:
    """Adds the figures of a program and a size, with `steps` steps a round."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    walls: dict[str, list[float]] = {way: [] for way in ways}
    cpus: dict[str, list[float]] = {way: [] for way in ways}
    for at in range(rounds + 1):
        for way, run in ways.items():
            comm.Barrier()
            wall, cpu = time.perf_counter(), time.process_time()
            run(steps)
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            wall, cpu = comm.allreduce(wall, MPI.MAX), comm.allreduce(cpu)
            # The first round makes plans and allocates memory, and is not counted.
            if at > 0:
                walls[way].append(wall / steps * 1e6)
                cpus[way].append(cpu / steps * 1e6)

    if comm.rank == 0:
        found, by_hand, messages = (statistics.median(walls[way]) for way in ("found", "hand", "messages"))
        cpu = statistics.median(a / b for a, b in zip(cpus["found"], cpus["hand"], strict=True))
        ranks = f"{comm.size} rank{'s' * (comm.size > 1)}"
        figures.add(
            f"{name}, {ranks}; {size:,} {'bodies' if name == 'N-body' else 'B'}",
            Of("found", found, "µs", "by hand", by_hand, gain=True),
            Of("messages alone", messages, "µs"),
            Of("CPU found / by hand", cpu),
        )


def inner(rounds: int, figures: Figures) -> None:
    """Measures on the ranks of this launcher."""
    for n in GATHERED:
        measure(figures, "all-gather", 8 * n, gathering(n), max(10, 2000 * 256 // (256 + n // 64)), rounds)
    for width in WIDTHS:
        measure(figures, "halo", 8 * width, borders(width), max(10, 2000 * 256 // (256 + width // 8)), rounds)
    for n in BODIES:
        measure(figures, "N-body", n, bodies(n), max(2, 2_000_000 // (n * n)), rounds)


def main() -> None:
    words = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    words.add_argument("rounds", nargs="?", default="7", help="rounds of each way")
    words.add_argument("ranks", nargs="?", default="1,2,4", help="numbers of ranks")
    words.add_argument("--inner", action="store_true", help="measure on the ranks of the launcher")
    given = parsed(words)
    if given.inner:
        with Figures("tasks", "Programs of tasks beside the same by hand", given) as figures:
            inner(int(given.rounds), figures)
        return
    for ranks in given.ranks.split(","):
        under: list[str | Path] = [BIN / "mpiexec", "--oversubscribe", "-n", ranks]
        command = [*under, BIN / "python", __file__, given.rounds, ranks, "--inner"]
        subprocess.run([*command, *["--record"] * given.record], env=ENVIRONMENT, check=True)


if __name__ == "__main__":
    main()
