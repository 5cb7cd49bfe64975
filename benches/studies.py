"""A study on a Dask cluster of this computer: a worker is killed half-way, then a whole study, which is begun again.

Both kills are SIGKILL. Tables that differ from that of one core are an error.
"""

import argparse
import os
import subprocess
import tempfile
import time
from pathlib import Path

from common.dask_cluster import begin, cluster, errors, kept, same, sweep, wait_for_points
from common.figures import Figures, Of, parsed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=2000, help="points of the study (2000)")
    given = parsed(parser)
    command, half = sweep(given.points), given.points // 2
    note = f"load {os.getloadavg()[0]:.0f}; 2 workers of one thread; the same bytes as on one core"
    with tempfile.TemporaryDirectory() as folder, Figures("program", "Studies on Dask", given, note=note) as figures:
        one, lost, killed = (Path(folder) / name for name in ("one", "lost", "killed"))
        for made in (one, lost, killed):
            made.mkdir()
        start = time.perf_counter()
        begin(command, one, "--jobs", "1").wait()
        seconds = time.perf_counter() - start

        def end(study: "subprocess.Popen[bytes]", where: Path) -> float:
            """Waits for the end of a study, checks its table, and returns the clock's time."""
            code = study.wait()
            if code != 0 or not same(where, one) or kept(where) != given.points:
                raise SystemExit(f"{where.name}: exit code {code}, {kept(where)} points, {errors(where)}")
            return time.perf_counter()

        with cluster(Path(folder)) as (file, (_, worker, _)):
            options = ("--executor", str(file))
            start = time.perf_counter()
            study = begin(command, killed, *options)
            before = wait_for_points(killed, half, study)
            study.kill()
            study.wait()
            stop = time.perf_counter()
            again = end(begin(command, killed, *options), killed)
            last = time.perf_counter()
            study = begin(command, lost, *options)
            wait_for_points(lost, half, study)
            worker.kill()
            without = end(study, lost) - last
        case = f"sweep of {given.points} points"
        figures.add(f"{case}, on one core", Of("wall", seconds, "s"))
        figures.add(f"{case}, a worker killed half-way", Of("wall", without, "s"))
        figures.add(
            f"{case}, killed half-way and begun again",
            Of("points kept", before),
            Of("wall until the kill", stop - start, "s"),
            Of("wall", again - stop, "s"),
        )


if __name__ == "__main__":
    main()
