"""The wave equation on a grid: each rank exchanges the rows at its borders with the ranks next to it."""

import numpy as np
from unisono.tasks import Program, View, neighborhood, one_to_one

N, STEPS, C = 48, 6, 0.25


def step(u: View, before: View) -> None:
    # The view of u is wider by a row on each side, except at the edges of the grid.
    top = before.offset[0] - u.offset[0]
    wide = np.pad(u, ((1 - top, 1 - (len(u) - top - len(before))), (1, 1)), mode="edge")
    around = wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:] - 4 * wide[1:-1, 1:-1]
    before[...] = 2 * wide[1:-1, 1:-1] - before + C * around


x = np.linspace(-1, 1, N)
hill = np.exp(-20 * (x[:, None] ** 2 + x**2))
program = Program()
now, before = program.array((N, N), init=hill, name="now"), program.array((N, N), init=hill, name="before")
for _ in range(STEPS):
    program.task(step, range=N, reads=[now[neighborhood(1)]], updates=[before[one_to_one]])
    now, before = before, now
result = program.fetch(now)
