"""Under mpiexec: neighborhood collectives on a ring of all ranks; prints the number of calls of each."""

import numpy as np
from mpi4py import MPI

world = MPI.COMM_WORLD
ring = world.Create_cart([world.size], periods=[True])
before, after = ring.Shift(0, 1)
own = np.full(2, world.rank, np.int32)
got = np.zeros(4, np.int32)
both = np.array([world.rank, world.rank], np.int32)

ring.Neighbor_allgather(own, got)
assert got.tolist() == [before, before, after, after]
ring.Neighbor_allgatherv(own, (got, [2, 2]))
ring.Neighbor_alltoall(both, got[:2])
assert got[:2].tolist() == [before, after]
ring.Neighbor_alltoallv((both, [1, 1]), (got[:2], [1, 1]))
ring.Ineighbor_alltoall(both, got[:2]).Wait()
assert got[:2].tolist() == [before, after]
world.Allreduce(MPI.IN_PLACE, own)
if world.rank == 0:
    print(f"ok {world.size}")
