"""Bodies that attract each other; ranks communicate by one all-gather of positions a step."""

import numpy as np
from unisono.tasks import Program, View, all_, one_to_one

N, STEPS, DT = 96, 5, 1e-3


def step(p: View, v: View) -> None:
    away = p[None] - p[v.offset[0] : v.offset[0] + len(v), None]
    v += DT * (away / (np.sqrt((away**2).sum(axis=2, keepdims=True)) + 1e-9) ** 3).sum(axis=1)


def move(v: View, p: View) -> None:
    p += DT * v


program = Program()
P = program.array((N, 3), init=np.random.default_rng(1).normal(size=(N, 3)), name="P")
V = program.zeros((N, 3), name="V")
for _ in range(STEPS):
    program.task(step, range=N, reads=[P[all_]], updates=[V[one_to_one]], operations=20 * N)
    program.task(move, range=N, reads=[V[one_to_one]], updates=[P[one_to_one]], operations=6)
result = program.fetch(P)
