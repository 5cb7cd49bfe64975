"""A Fourier transform in two dimensions: of all rows, then, after an all-to-all that transposes, of all columns."""

import numpy as np
from unisono.tasks import Program, View, one_to_one, transposed

N = 32


def rows(a: View) -> None:
    a[...] = np.fft.fft(a, axis=1)


def turn(a: View, b: View) -> None:
    b[...] = a.T


program = Program()
signal = np.random.default_rng(2).normal(size=(N, N))
a, b = program.array((N, N), init=signal, dtype=complex, name="a"), program.array((N, N), dtype=complex, name="b")
program.task(rows, range=(N, N), updates=[a[one_to_one]])
program.task(turn, range=(N, N), reads=[a[transposed()]], writes=[b[one_to_one]])
program.task(rows, range=(N, N), updates=[b[one_to_one]])
result = program.fetch(b)
