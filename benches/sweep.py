"""Times `unisono sweep` of Fig. 8 (8 rows of PEs x 16 lengths), as a process and in this one. Run by `make bench`."""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import unisono as un
from common.figures import Figures, Of, parsed

RUNS = 5
FIXED = ["star", "tree", "two-phase", "chain", "ring"]
PROGRAM = Path(sys.executable).with_name("unisono")


def as_process(output: Path) -> None:
    command = [str(PROGRAM), "sweep", "allreduce", "--machine", "wse2", "--shapes", "4..512", "--elements", "1..32768"]
    command += ["--algorithms", ",".join(FIXED), "-o", str(output)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def in_process() -> None:
    shapes, lengths = [2**k for k in range(2, 10)], [2**k for k in range(16)]
    un.sweep("allreduce", "wse2", shapes=shapes, elements=lengths, algorithms=FIXED, baseline="chain")


def timed(name: str, work: Callable[[], None], figures: Figures) -> None:
    """Adds the median wall seconds of `RUNS` runs."""
    seconds = []
    for _ in range(RUNS):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    figures.add(name, Of("time", median(seconds), "s"), note=f"{min(seconds):.3f} to {max(seconds):.3f} s")


def main() -> None:
    given = parsed(argparse.ArgumentParser(description=__doc__))
    note = f"8 sizes x 16 lengths; median of {RUNS}"
    with Figures("wafer", "Sweep of Fig. 8", given, note=note) as figures:
        with tempfile.TemporaryDirectory() as folder:
            timed("as a process", lambda: as_process(Path(folder) / "fig8.csv"), figures)
        timed("in this process", in_process, figures)


main()
