"""Prints for each ``call:bytes`` whether the call combines the ranks' operands in rank order.

Bytes are those of a vector of one rank. Elements are affine maps of 16 bytes, whose composition does not commute.
"""

import sys
from typing import Any

import numpy as np
from mpi4py import MPI

world = MPI.COMM_WORLD


def compose(first: Any, second: Any, _: MPI.Datatype) -> None:
    a, b = (np.frombuffer(of, "f8").reshape(-1, 2) for of in (first, second))
    b[:] = np.stack([a[:, 0] * b[:, 0], a[:, 0] * b[:, 1] + a[:, 1]], axis=1)


def is_right(call: str, count: int) -> bool:
    def reduce(root: int) -> bool:
        world.Reduce([own, count, affine], [sums, count, affine], composed, root)
        return world.rank != root or np.array_equal(sums, expected)

    own, sums = np.tile(given[world.rank], count), np.zeros(2 * count)
    expected = np.tile(composition, count)
    if call == "reduce":
        # Every rank takes part in the calls for all roots.
        found = [reduce(root) for root in range(world.size)]
        return all(found)
    if call == "allreduce":
        world.Allreduce([own, count, affine], [sums, count, affine], composed)
    else:
        world.Reduce_scatter_block([np.tile(own, world.size), count, affine], [sums, count, affine], composed)
    return np.array_equal(sums, expected)


composed = MPI.Op.Create(compose, commute=False)
affine = MPI.DOUBLE.Create_contiguous(2).Commit()
given = [np.array([rank + 3.0, 7.0 * rank * rank + 1]) for rank in range(world.size)]
composition = given[0].copy()
for factor in given[1:]:
    composition[:] = composition[0] * factor[0], composition[0] * factor[1] + composition[1]
for name in sys.argv[1:]:
    kind, size = name.split(":")
    all_right = world.allreduce(int(is_right(kind, int(size) // 16)), op=MPI.MIN)
    if world.rank == 0:
        print(name, "right" if all_right else "wrong", flush=True)
