"""Simulated 2D reduces that go beyond the paper, beside the best of the paper's: rows of benches/results/wafer.csv.

`make bench` runs the four points of `--small`; all points take some ten minutes. `--large` adds 256 x 256 at B = 1024
and 512 x 512 at B = 256, and `--points` names others. All run on the fabric simulator with the machine's queue depth;
the snake is by its formula, which the simulator meets.
"""

import argparse
import sys

import unisono as un
from common.figures import Figures, Of, parsed
from unisono.base.reports import in_cycles

SIDES = (32, 64, 128)
LENGTHS = (64, 256, 1024, 4096)
SMALL = ((32, 64), (32, 256), (64, 64), (64, 256))
LARGE = ((256, 1024), (512, 256))
PAPER = ("star", "tree", "chain", "two-phase", "auto-gen")
BEYOND: tuple[tuple[str, dict[str, str]], ...] = (
    ("kd-tree", {"trees": "2"}),
    ("kd-tree", {"trees": "4"}),
    ("quad-chain", {}),
    ("slack-tree", {"trees": "2", "children": "2"}),
    ("slack-tree", {"trees": "4", "children": "2", "chains": "80"}),
)
#: The paper's algorithms whose time by Eq. 1 exceeds the least by this factor are not simulated: Eq. 1 errs by less.
HOPELESS = 1.4


def simulated(side: int, length: int, algorithm: str, params: dict[str, str] | None = None) -> int:
    machine = un.machine("wse2", shape=(side, side))
    run = un.simulate(un.plan("reduce", machine, elements=length, algorithm=algorithm, params=params).schedule)
    if not run.result_correct:
        sys.exit(f"{algorithm} on {side}x{side} at B = {length}: {run.mismatch}")
    assert run.cycles is not None, "a wafer has cycles"
    return run.cycles


def papers(side: int, length: int) -> dict[str, int]:
    """Returns the simulated cycles of the paper's reduces that may be the fastest; the snake's are by formula."""
    machine = un.machine("wse2", shape=(side, side))
    times: dict[str, float] = {
        name: in_cycles(un.plan("reduce", machine, elements=length, algorithm=name, model="paper").predicted)
        for name in PAPER
    }
    snake = length + 6 * (side * side - 1)
    least = min(*times.values(), snake)
    found = {f"X-Y {name}": simulated(side, length, name) for name, by in times.items() if by <= HOPELESS * least}
    return {**found, "snake (formula)": snake}


def beyond(side: int, length: int) -> dict[str, int | None]:
    """Returns the simulated cycles of the reduces in `BEYOND`; None for reduces that do not support this grid."""
    found: dict[str, int | None] = {}
    for name, params in BEYOND:
        label = " ".join([name, *(f"{key}={value}" for key, value in params.items())])
        try:
            found[label] = simulated(side, length, name, params)
        except un.UnsupportedError:
            found[label] = None
    return found


def add_figures(side: int, length: int, figures: Figures) -> None:
    """Adds the figures of a reduce on `side` x `side` PEs."""
    of_paper, ours = papers(side, length), beyond(side, length)
    name = min(of_paper, key=of_paper.__getitem__)
    ran = {label: cycles for label, cycles in ours.items() if cycles is not None}
    winner = min(ran, key=ran.__getitem__)
    bound = length + 2 * side - 2 + 5
    picked = un.plan("reduce", "wse2", shape=(side, side), elements=length)
    planned = " ".join([picked.algorithm, *(f"{key}={value}" for key, value in picked.params.items())])
    figures.add(
        f"{side} x {side}; B={length}",
        Of("cycles", ran[winner], "", "paper's best", of_paper[name], gain=True),
        Of("over the bound", f"{ran[winner] / bound:.2f}"),
        note=f"{winner}; the paper's {name}; planned: {planned}",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="four small points only")
    parser.add_argument("--large", action="store_true", help="256/1024 and 512/256 too")
    parser.add_argument("--points", nargs="+", metavar="N/B", help="these only, as in 64/256")
    given = parsed(parser)
    points = SMALL if given.small else tuple((side, length) for side in SIDES for length in LENGTHS)
    if given.points:
        points = tuple((int(side), int(length)) for side, length in (text.split("/") for text in given.points))
    points += LARGE if given.large else ()
    with Figures("wafer", "Reduce on n x n PEs, root in the corner", given) as figures:
        for side, length in points:
            add_figures(side, length, figures)


main()
