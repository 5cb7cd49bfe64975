"""The planner's choices for CSL, by grid and length: their times beside the best plan, and the size of the projects.

The best plan is that without the limits of CSL. Each schedule is proved before it is emitted. The tests of the planner
run those up to 64x64 in an interpreter of CSL.
"""

import argparse
import itertools
import time

import unisono as un
from common.figures import Figures, Of, parsed
from unisono.base.reports import in_cycles

ELEMENTS = (1, 16, 256, 4096)


def main() -> None:
    """Adds the figures of each choice."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sides", type=int, nargs="+", default=[16, 64], help="sides of square grids")
    given = parsed(parser)
    with Figures("wafer", "Projects in CSL", given) as figures:
        for side, elements in itertools.product(given.sides, ELEMENTS):
            for collective in ("reduce", "allreduce"):
                best = un.plan(collective, "wse2", shape=(side, side), elements=elements)
                start = time.perf_counter()
                plan = un.plan(collective, "wse2", shape=(side, side), elements=elements, target="csl")
                files = un.emit_files(plan.schedule, "csl")
                seconds = time.perf_counter() - start
                source = "simulation" if plan.predicted["source"] == "simulated" else "model"
                params = " ".join(f"{name}={value}" for name, value in plan.params.items() if name != "chunk")
                size = sum(len(text) for text in files.values()) / 1e6
                figures.add(
                    f"{side} x {side}; {collective} of {elements}",
                    Of("cycles", in_cycles(plan.predicted), "", "best plan", in_cycles(best.predicted)),
                    Of("project", size, "MB"),
                    Of("plan, proof and project", seconds, "s"),
                    note=f"{plan.algorithm} {params}, by {source}",
                )


if __name__ == "__main__":
    main()
