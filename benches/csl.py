"""The planner's choices for CSL, by grid and length: their times, and the size of the projects that are emitted.

Each schedule is proved before it is emitted. The tests of the planner run those up to 64x64 in an
interpreter of CSL.
"""

import argparse
import time

import unisono as un

ELEMENTS = (1, 16, 256, 4096)


def main() -> None:
    """Prints one row of a table for each choice."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sides", type=int, nargs="+", default=[16, 64], help="sides of square grids")
    sides = parser.parse_args().sides
    print("| grid | elements | collective | algorithm | cycles | by | project | seconds |")
    print("|---|---|---|---|---|---|---|---|")
    for side in sides:
        for elements in ELEMENTS:
            for collective in ("reduce", "allreduce"):
                start = time.perf_counter()
                plan = un.plan(collective, "wse2", shape=(side, side), elements=elements, target="csl")
                files = un.emit_files(plan.schedule, "csl")
                seconds = time.perf_counter() - start
                source = "simulation" if plan.predicted["source"] == "simulated" else "model"
                params = " ".join(f"{name}={value}" for name, value in plan.params.items() if name != "chunk")
                size = sum(len(text) for text in files.values()) / 1e6
                print(
                    f"| {side}x{side} | {elements} | {collective} | {plan.algorithm} {params} "
                    f"| {plan.predicted['cycles']:.0f} | {source} | {size:.2f} MB | {seconds:.1f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
