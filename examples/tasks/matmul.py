"""The product of a matrix and the transpose of a second matrix; the transposition is an all-to-all."""

import numpy as np
from unisono.tasks import Program, View, all_, one_to_one, transposed

N = 40


def fill(a: View, b: View) -> None:
    i, j = np.ogrid[a.offset[0] : a.offset[0] + len(a), :N]
    a[...], b[...] = np.cos(i * j), np.sin(i + 2 * j)


def turn(b: View, t: View) -> None:
    t[...] = b.T


def multiply(a: View, t: View, c: View) -> None:
    # A row at a time, so that the result has the same bits however the rows are divided.
    for row, out in zip(a, c, strict=True):
        out[...] = (row[:, None] * t).sum(axis=0)


program = Program()
A, B, T, C = (program.array((N, N), name=name) for name in "ABTC")
program.task(fill, range=(N, N), writes=[A[one_to_one], B[one_to_one]])
program.task(turn, range=(N, N), reads=[B[transposed()]], writes=[T[one_to_one]])
program.task(multiply, range=N, reads=[A[one_to_one], T[all_]], writes=[C[one_to_one]])
result = program.fetch(C)
