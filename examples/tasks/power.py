"""The largest eigenvalue of a matrix by power iteration: an all-gather of the vector and an allreduce of its norm."""

import numpy as np
from unisono.tasks import Program, View, all_, one_to_one

N, STEPS = 60, 8


def multiply(a: View, x: View, y: View) -> None:
    y[...] = (a * x).sum(axis=1)


def largest(y: View, norm: View) -> None:
    norm[...] = np.maximum(norm, np.abs(y).max())


def scale(y: View, norm: View, x: View) -> None:
    x[...] = y / norm


i = np.arange(N)
program = Program()
A = program.array((N, N), init=1 / (1 + np.abs(i[:, None] - i)), name="A")
x, y, norm = program.array(N, init=np.ones(N), name="x"), program.array(N, name="y"), program.array(1, name="norm")
for _ in range(STEPS):
    program.task(multiply, range=N, reads=[A[one_to_one], x[all_]], writes=[y[one_to_one]])
    program.task(largest, range=N, reads=[y[one_to_one]], reduces=[norm[all_]], op="max")
    program.task(scale, range=N, reads=[y[one_to_one], norm[all_]], writes=[x[one_to_one]])
result = program.fetch(norm)
