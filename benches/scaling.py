"""Strong scaling of two programs of tasks, by prediction: rows of benches/results/workloads.csv, and a picture.

Kernels are measured alone, so their column differs from run to run; the communication does not.
"""

import argparse
from pathlib import Path

import numpy as np
from common.figures import Figures, Of, parsed
from unisono.tasks import Program, View, all_, neighborhood, one_to_one


def step(p: View, v: View) -> None:
    """Accelerates the bodies of a view, 64 at a time to limit the memory for distances."""
    for first in range(0, len(v), 64):
        part = v[first : first + 64]
        away = p[None] - p[v.offset[0] + first : v.offset[0] + first + len(part), None]
        part += 1e-3 * (away / (np.sqrt((away**2).sum(axis=2, keepdims=True)) + 1e-9) ** 3).sum(axis=1)


def move(v: View, p: View) -> None:
    """Moves the bodies by one time step."""
    p += 1e-3 * v


def n_body(bodies: int, steps: int) -> Program:
    """Returns a program of direct N-body, which needs one all-gather a step."""
    program = Program()
    p = program.array((bodies, 3), init=np.random.default_rng(1).normal(size=(bodies, 3)), name="P")
    v = program.zeros((bodies, 3), name="V")
    for _ in range(steps):
        program.task(step, range=bodies, reads=[p[all_]], updates=[v[one_to_one]])
        program.task(move, range=bodies, reads=[v[one_to_one]], updates=[p[one_to_one]])
    return program


def relax(u: View, before: View) -> None:
    """Computes one step of the wave equation on the inner points."""
    top = before.offset[0] - u.offset[0]
    low, high = 1 - top, len(before) - (1 if len(u) - top == len(before) else 0)
    mid = u[top + low : top + high]
    around = u[top + low - 1 : top + high - 1, 1:-1] + u[top + low + 1 : top + high + 1, 1:-1]
    around += mid[:, :-2] + mid[:, 2:] - 4 * mid[:, 1:-1]
    before[low:high, 1:-1] = 2 * mid[:, 1:-1] - before[low:high, 1:-1] + 0.25 * around


def wave(size: int, steps: int) -> Program:
    """Returns a program of the wave equation, which needs a halo of one row on each side a step."""
    program = Program()
    now, before = (program.array((size, size), init=1.0, name=name) for name in ("now", "before"))
    for _ in range(steps):
        program.task(relax, range=size, reads=[now[neighborhood(1)]], updates=[before[one_to_one]])
        now, before = before, now
    return program


def main() -> None:
    """Records the times of each program on each machine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--picture", type=Path, help="a PNG of N-body on paper-sim")
    parser.add_argument("--most", type=int, default=1024, help="the most nodes")
    options = parsed(parser)
    nodes = [1 << k for k in range(options.most.bit_length())]
    for name, size, program in (
        ("N-body", "1,024 bodies, 100 steps", n_body(1024, 100)),
        ("a wave", "1,024 x 1,024 points, 100 steps", wave(1024, 100)),
    ):
        with Figures("workloads", f"Strong scaling of {name} by prediction", options, note=size) as figures:
            for machine, unit, seconds in (("paper-sim", "ms", 1e-3), ("hx2mesh-small", "µs", 1e-6)):
                scaling = program.scaling(machine, nodes, simulate=True)
                # On a machine without shared links, the peer is the same program with messages in place of collectives.
                peer = "messages alone" if machine == "paper-sim" else "simulated"
                for row in scaling.rows:
                    theirs = row["by_messages_seconds" if machine == "paper-sim" else "simulated_seconds"] / seconds
                    speedup = (peer, row["by_messages_speedup"]) if machine == "paper-sim" else ("", "")
                    figures.add(
                        f"{row['nodes']} nodes",
                        Of(f"{machine}, communication", row["communication_seconds"] / seconds, unit, peer, theirs),
                        Of(f"{machine}, speed-up", row["speedup"], "", *speedup),
                    )
                if options.picture and machine == "paper-sim" and name == "N-body":
                    scaling.plot(options.picture, f"{name}, {size}, on {machine}, predicted")


if __name__ == "__main__":
    main()
