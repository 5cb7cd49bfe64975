"""Under mpiexec: collectives of mpi4py with a count for every rank, and between two groups."""

import numpy as np
from mpi4py import MPI

world = MPI.COMM_WORLD
rank, ranks = world.rank, world.size
world.barrier()
world.allreduce(1)
world.Allreduce(np.ones(1), np.empty(1))
mine = np.arange(5) + 10.0 * rank
expected = np.concatenate([np.arange(5) + 10.0 * r for r in range(ranks)])
for unlike in (False, True) * 3:
    counts = [5 - (unlike and r > 0) for r in range(ranks)]
    found = np.zeros(5 * ranks)
    world.Allgatherv(mine[: counts[rank]], [found, counts, [5 * r for r in range(ranks)], MPI.DOUBLE])
    for r, count in enumerate(counts):
        assert np.array_equal(found[5 * r : 5 * r + count], expected[5 * r : 5 * r + count]), found
    total = np.zeros(counts[rank])
    world.Reduce_scatter(np.arange(sum(counts)) + 1.0 * rank, total, counts)
    first = sum(counts[:rank])
    assert np.array_equal(total, ranks * np.arange(first, first + counts[rank]) + sum(range(ranks))), total
side = world.Split(rank % 2)
assert isinstance(side, MPI.Intracomm)
if ranks > 1:
    both = side.Create_intercomm(0, world, 1 - rank % 2)
    others = both.remote_size
    found = np.zeros(2 * others)
    both.Allgatherv(np.full(2, float(rank)), [found, [2] * others, [2 * r for r in range(others)], MPI.DOUBLE])
    assert found[0] == 1 - rank % 2, found
if rank == 0:
    print(f"ok {ranks}", flush=True)
