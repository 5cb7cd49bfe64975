"""Under mpiexec: every collective that rules can choose an algorithm for, several sizes, against plain arithmetic."""

import sys

import numpy as np
from mpi4py import MPI

world = MPI.COMM_WORLD
rank, ranks = world.Get_rank(), world.Get_size()


def given(of: int, count: int) -> np.ndarray:
    """What a rank brings: whole numbers, so that sums are exact in any order."""
    return np.arange(count, dtype=np.int64) * 7 + of * of + 1


def check(name: str, found: np.ndarray, expected: np.ndarray) -> None:
    if not np.array_equal(found, expected):
        sys.stdout.write(f"WRONG {name} on rank {rank}\n")
        world.Abort(1)


for count in (0, 1, 3, 64, 1000, 20_000):
    for root in {0, ranks - 1}:
        mine = given(rank, count)
        total = np.sum([given(r, count) for r in range(ranks)], axis=0)
        result = np.zeros(count, np.int64)
        world.Allreduce(mine, result)
        check("allreduce", result, total)
        copied = given(root, count) if rank == root else np.zeros(count, np.int64)
        world.Bcast(copied, root)
        check("bcast", copied, given(root, count))
        result = np.zeros(count, np.int64)
        world.Reduce(mine, result, root=root)
        if rank == root:
            check("reduce", result, total)
        every = np.zeros(count * ranks, np.int64)
        world.Allgather(mine, every)
        check("allgather", every, np.concatenate([given(r, count) for r in range(ranks)]))
        every = np.zeros(count * ranks, np.int64)
        world.Gather(mine, every, root)
        if rank == root:
            check("gather", every, np.concatenate([given(r, count) for r in range(ranks)]))
        part = np.zeros(count, np.int64)
        world.Scatter(given(root, count * ranks), part, root)
        check("scatter", part, given(root, count * ranks)[rank * count : (rank + 1) * count])
        part = np.zeros(count, np.int64)
        world.Reduce_scatter_block(given(rank, count * ranks), part)
        whole = np.sum([given(r, count * ranks) for r in range(ranks)], axis=0)
        check("reduce_scatter_block", part, whole[rank * count : (rank + 1) * count])
        every = np.zeros(count * ranks, np.int64)
        world.Alltoall(given(rank, count * ranks), every)
        blocks = [given(r, count * ranks)[rank * count : (rank + 1) * count] for r in range(ranks)]
        check("alltoall", every, np.concatenate(blocks))
        result = np.zeros(count, np.int64)
        world.Scan(mine, result)
        check("scan", result, np.sum([given(r, count) for r in range(rank + 1)], axis=0))
        world.Barrier()
if rank == 0:
    sys.stdout.write("all right\n")
