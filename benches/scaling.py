"""Strong scaling of two programs of tasks, by prediction: rows of benches/results/workloads.csv, and a picture.

Kernels are measured alone, so their column differs from run to run; the communication does not.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from unisono.tasks import Program, View, all_, neighborhood, one_to_one


def step(p: View, v: View) -> None:
    """Computes forces on some bodies at a time, so that memory never holds a distance of each pair."""
    for first in range(0, len(v), 64):
        part = v[first : first + 64]
        away = p[None] - p[v.offset[0] + first : v.offset[0] + first + len(part), None]
        part += 1e-3 * (away / (np.sqrt((away**2).sum(axis=2, keepdims=True)) + 1e-9) ** 3).sum(axis=1)


def move(v: View, p: View) -> None:
    """Moves the bodies."""
    p += 1e-3 * v


def n_body(bodies: int, steps: int) -> Program:
    """Returns direct N-body: one all-gather a step."""
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
    """Returns the wave equation: a halo of a row on each side a step."""
    program = Program()
    now, before = (program.array((size, size), init=1.0, name=name) for name in ("now", "before"))
    for _ in range(steps):
        program.task(relax, range=size, reads=[now[neighborhood(1)]], updates=[before[one_to_one]])
        now, before = before, now
    return program


def main() -> None:
    """Prints a table for each program and machine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--picture", type=Path, help="a PNG of N-body on paper-sim")
    parser.add_argument("--most", type=int, default=1024, help="the most nodes")
    options = parser.parse_args()
    nodes = [1 << k for k in range(options.most.bit_length())]
    for name, program in (
        ("N-body, 1024 bodies, 100 steps", n_body(1024, 100)),
        ("wave, 1024 x 1024, 100 steps", wave(1024, 100)),
    ):
        for machine in ("paper-sim", "hx2mesh-small"):
            begin = time.process_time()
            scaling = program.scaling(machine, nodes, simulate=True)
            print(f"\n{name} on {machine} ({time.process_time() - begin:.1f} s of one core)\n{scaling}")
            if options.picture and machine == "paper-sim" and name.startswith("N-body"):
                scaling.plot(options.picture, f"{name} on {machine}, predicted")


if __name__ == "__main__":
    main()
