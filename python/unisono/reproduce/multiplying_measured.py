"""Recursive doubling against multiplying on this machine's MPI: the comparison of Table 2 on 2 to 4 ranks of a node.

Run as a module under ``mpiexec``, it prints the times for one number of ranks; `measure` starts a run for each.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from unisono import InputError, plan, save_plans
from unisono.mpi.launchers import environment, find_launcher

__all__ = ["BYTES", "SCHEDULES", "main", "measure"]

#: The schedules of recursive doubling and recursive multiplying, by ranks. On two ranks the schedules are equal.
SCHEDULES = {2: ("a2", "a2"), 3: ("c2m2,a2,e2m2", "a3"), 4: ("a2,a2", "a4")}
#: A vector of the paper's size: one double.
BYTES = 8
_ROUNDS = 12
#: The time limit of a run, in seconds.
_SECONDS = 120


def measure() -> tuple[list[dict[str, Any]], str]:
    """Returns a row for each number of ranks, and a note on their value or on the reason why there are none."""
    if any(name in os.environ for name in ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK")):
        return [], "not measured: this runs under mpiexec itself; run it without"
    try:
        launcher = find_launcher(sys.executable)
    except InputError as error:
        return [], f"not measured: {error}"
    cores = len(os.sched_getaffinity(0))
    variables = environment(launcher)
    if launcher.family == "openmpi":
        # Ranks that share a core must yield while they wait, so that the other ranks can run.
        variables["OMPI_MCA_mpi_yield_when_idle"] = "1"
    rows: list[dict[str, Any]] = []
    for ranks in SCHEDULES:
        program = [sys.executable, "-m", __name__]
        command = launcher.command(ranks, ranks > cores, {}, program)
        try:
            done = subprocess.run(
                command, env=variables, capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return rows, f"{ranks} ranks were not done after {_SECONDS} seconds; larger numbers were left out"
        if done.returncode != 0:
            said = (done.stderr.strip() or done.stdout.strip() or "nothing was printed").splitlines()
            return rows, f"not measured on {ranks} ranks: {next((x for x in said if 'error' in x.lower()), said[0])}"
        rows.append(json.loads(done.stdout.replace("\0", "")) | {"shared_cores": ranks > cores})
    setting = (
        f"{BYTES} bytes, one node of {cores} cores, {launcher.family}; the paper had one rank a node of a Cray XC30"
    )
    if any(row["shared_cores"] for row in rows):
        setting += (
            "; more ranks than cores take turns, so their times are of switching between them as much as of messages"
        )
    return rows, setting


def main() -> None:
    """Times the library's allreduce, doubling and multiplying alternately, under mpiexec; rank 0 prints a row."""
    from unisono.mpi.collectives import Collectives
    from unisono.mpi.library import import_mpi
    from unisono.tuning.measuring import contest

    mpi = import_mpi()
    world = mpi.COMM_WORLD
    ranks = world.size
    with tempfile.TemporaryDirectory(prefix="unisono-") as own:
        folder = Path(world.bcast(own))
        if world.rank == 0:
            for number, schedule in enumerate(SCHEDULES[ranks]):
                params = {"schedule": schedule}
                made = plan(
                    "allreduce", "archer", shape=ranks, bytes=BYTES, algorithm="recursive-multiplying", params=params
                )
                save_plans([(made, 0, None)], folder / f"{number}.plan")
        world.Barrier()
        contestants = [Collectives(mpi, world), *(Collectives(mpi, world, folder / f"{n}.plan") for n in range(2))]
        result = contest(mpi, world, contestants, "allreduce", BYTES // 4, _ROUNDS)
        world.Barrier()
    if world.rank != 0:
        return
    library, doubling, multiplying = result.timings
    assert all(timing.served == timing.calls for timing in (doubling, multiplying)), "both run as planned"

    def decrease(before: float, after: float) -> float:
        return 100 * (before - after) / before

    row = {
        "ranks": ranks,
        "doubling": SCHEDULES[ranks][0],
        "multiplying": SCHEDULES[ranks][1],
        "doubling_seconds": {"minimum": min(doubling.rounds), "median": median(doubling.rounds)},
        "multiplying_seconds": {"minimum": min(multiplying.rounds), "median": median(multiplying.rounds)},
        "library_seconds": {"minimum": min(library.rounds), "median": median(library.rounds)},
        "decrease_percent": {
            "minimum": decrease(min(doubling.rounds), min(multiplying.rounds)),
            "median": decrease(median(doubling.rounds), median(multiplying.rounds)),
        },
        "rounds_won": result.won(2, 1),
        "rounds": _ROUNDS,
    }
    sys.stdout.write(json.dumps(row))


if __name__ == "__main__":
    main()
