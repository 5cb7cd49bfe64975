"""Jacobi's method for a chain of springs, with halos; it ends when the greatest residual on all ranks is small."""

import numpy as np
from unisono.tasks import Program, View, all_, neighborhood, one_to_one

N, LIMIT = 32, 1e-2


def relax(u: View, new: View, residual: View) -> None:
    first = new.offset[0] - u.offset[0]
    wide = np.pad(u, (1 - first, 1 - (len(u) - first - len(new))))
    new[...] = (wide[:-2] + wide[2:] + 1 / N**2) / 2
    residual[...] = np.maximum(residual, np.abs(new - wide[1:-1]).max() * N**2)


def check(residual: View, seen: View) -> None:
    seen[...] = residual


program = Program()
u, new = program.zeros(N, name="u"), program.zeros(N, name="new")
residual, seen = program.array(1, name="residual"), program.array(N, name="seen")
for sweep in range(1000):
    reads = [u[neighborhood(1)]]
    writes, reduces = [new[one_to_one]], [residual[all_]]
    program.task(relax, range=N, reads=reads, writes=writes, reduces=reduces, op="max", operations=7)
    program.task(check, range=N, reads=[residual[all_]], writes=[seen[one_to_one]], operations=0)
    u, new = new, u
    if sweep % 20 == 19 and program.fetch(residual)[0] < LIMIT:
        break
result = program.fetch(u)
