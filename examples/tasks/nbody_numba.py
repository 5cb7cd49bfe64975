"""The bodies of `nbody.py` with kernels that Numba compiles: the views' offsets are a further, last argument."""

from typing import Any

import numba
import numpy as np
from unisono.tasks import Program, all_, one_to_one

N, STEPS, DT = 96, 5, 1e-3


@numba.njit
def step(p: Any, v: Any, offsets: Any) -> None:
    first = offsets[1][0]
    for i in range(len(v)):
        for j in range(len(p)):
            square = 0.0
            for k in range(3):
                square += (p[j, k] - p[first + i, k]) ** 2
            for k in range(3):
                v[i, k] += DT * (p[j, k] - p[first + i, k]) / (np.sqrt(square) + 1e-9) ** 3


@numba.njit
def move(v: Any, p: Any) -> None:
    for i in range(len(p)):
        for k in range(3):
            p[i, k] += DT * v[i, k]


program = Program()
P = program.array((N, 3), init=np.random.default_rng(1).normal(size=(N, 3)), name="P")
V = program.zeros((N, 3), name="V")
for _ in range(STEPS):
    program.task(step, range=N, reads=[P[all_]], updates=[V[one_to_one]], offsets=True)
    program.task(move, range=N, reads=[V[one_to_one]], updates=[P[one_to_one]])
result = program.fetch(P)
