"""Growth of the work of every algorithm among ranks: the exponents of planning, proving and simulating.

The number of ranks is doubled until a schedule has ``--most`` instructions. The exponents are the slopes of CPU seconds
over instructions, both as logarithms, through the last four doublings. Seconds below 0.004 are not fitted.
"""

import argparse
import gc
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import unisono as un
from common.figures import Figures, Of, parsed

#: The number of points of a fit: four doublings.
POINTS = 5
#: CPU seconds below this are mostly those of the command.
LEAST_SECONDS = 0.004
#: Exponents above this are counted.
LINEAR = 1.2
#: The numbers of ranks; only algorithms with few instructions reach the largest.
RANKS = [16 << doubling for doubling in range(10)]


@dataclass
class Point:
    """The ranks and instructions of one schedule, and the CPU seconds to plan, verify and simulate it."""

    ranks: int
    instructions: int
    plan: float
    verify: float
    simulate: float


def seconds(work: Callable[[], object]) -> float:
    """Returns the CPU seconds of some work."""
    gc.collect()
    begin = time.process_time()
    work()
    return time.process_time() - begin


def measured(collective: str, algorithm: str, machine: str, ranks: int, size: str) -> Point:
    """Plans, proves and simulates; the proof that a simulation includes is not counted."""

    def planned() -> un.Plan:
        data = None if collective == "barrier" else size
        return un.plan(collective, machine, shape=ranks, algorithm=algorithm, bytes=data)

    plan = seconds(planned)
    schedule = planned().schedule
    verify = seconds(schedule.verify)
    simulate = seconds(lambda: un.simulate(schedule)) - verify
    return Point(ranks, schedule.instructions, plan, verify, simulate)


def points(collective: str, algorithm: str, machine: str, size: str, most: int) -> Iterator[Point]:
    """Yields points until a doubling of the ranks, up to 4 times the instructions, may exceed `most` instructions."""
    for ranks in RANKS:
        try:
            point = measured(collective, algorithm, machine, ranks, size)
        except un.UnsupportedError:
            continue
        yield point
        if 4 * point.instructions > most:
            return


def exponent(instructions: list[int], times: list[float]) -> float | None:
    """Returns the slope of log(seconds) against log(instructions).

    The slope is ``None`` if fewer than three points take `LEAST_SECONDS` or more.
    """
    fitted = [(n, s) for n, s in zip(instructions, times, strict=True) if s >= LEAST_SECONDS]
    if len(fitted) < 3 or fitted[0][0] == fitted[-1][0]:
        return None
    x, y = np.log(np.array(fitted)).T
    return float(np.polyfit(x, y, 1)[0])


def main() -> None:
    """Adds the figures of each collective and algorithm, and prints the number of exponents above 1.2."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machine", default="archer", help="ranks that exchange messages (archer)")
    parser.add_argument("--bytes", default="64KiB", help="length of the vector (64KiB)")
    parser.add_argument("--most", type=int, default=1 << 17, help="instructions of the largest schedules")
    parser.add_argument("--algorithm", help="this one only")
    options = parsed(parser)
    with Figures("ranks", "How work grows among ranks", options, note="exponents over instructions") as figures:
        above = add_figures(options, figures)
    sys.stdout.write(f"{above} exponents above {LINEAR}\n")


def add_figures(options: argparse.Namespace, figures: Figures) -> int:
    """Adds the figures, and returns the number of exponents above 1.2."""
    above = 0
    un.plan("broadcast", options.machine, shape=16, bytes=options.bytes)  # Reads the machine before the first point.
    for entry in un.algorithms():
        if "endpoint" not in entry["machines"] or options.algorithm not in (None, entry["name"]):
            continue
        for collective in entry["collectives"]:
            found = list(points(collective, entry["name"], options.machine, options.bytes, options.most))[-POINTS:]
            if not found:
                sys.stdout.write(f"{collective}, {entry['name']}: not on {options.machine}\n")
                continue
            last, sizes = found[-1], [point.instructions for point in found]
            stages = ("plan", "verify", "simulate")
            slopes = {stage: exponent(sizes, [getattr(point, stage) for point in found]) for stage in stages}
            above += sum(slope is not None and slope > LINEAR for slope in slopes.values())
            figures.add(
                f"{collective}; {entry['name']}, {last.ranks} ranks",
                *(Of(stage, f"{getattr(last, stage):.2f}", "CPU s") for stage in stages),
                *(Of(f"exponent of {stage}", f"{slope:.2f}") for stage, slope in slopes.items() if slope is not None),
            )
    return above


if __name__ == "__main__":
    main()
