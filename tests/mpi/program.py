"""An ordinary mpi4py program; prints "ok RANKS" from rank 0."""

import array
import sys

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000

for repeat in range(5):
    mine = array.array("d", (rank + k for k in range(count)))
    total = array.array("d", bytes(8 * count))
    world.Allreduce(mine, total)
    assert all(total[k] == size * (size - 1) // 2 + size * k for k in range(count)), "Allreduce"
    world.Allreduce(MPI.IN_PLACE, mine, op=MPI.MAX)
    assert all(mine[k] == size - 1 + k for k in range(count)), "Allreduce in place"
    world.Bcast(mine, root=repeat % size)
    gathered = array.array("d", bytes(8 * size))
    world.Allgather(array.array("d", [rank]), gathered)
    assert list(gathered) == list(range(size)), "Allgather"
    world.Barrier()
    # mpi4py sends Python objects, as bytes, by calls of MPI too.
    assert world.allreduce(rank) == size * (size - 1) // 2

half = world.Split(rank % 2, rank)
assert half.allreduce(1) == half.Get_size()
half.Free()
if rank == 0:
    print(f"ok {size}")
