"""Under mpiexec, prints hashes of the results of collectives; hashes of float sums show the order of additions.

``python _bits.py COLLECTIVE:BYTES...`` prints ``COLLECTIVE:BYTES HASH`` for each, with ``differ`` in place of the hash
if the ranks have different results of an allreduce. Each hash is of the last of eight calls, because a library may
change its algorithm after some calls. The program imports only mpi4py, so that it runs in any environment of an MPI
library.
"""

import hashlib
import random
import sys
from array import array
from typing import Any

#: The number of calls; the result of the last call is hashed.
CALLS = 8
#: The methods of mpi4py whose names differ from the name of their collective.
_CALLS = {"reduce-scatter": "Reduce_scatter_block"}
#: The period after which the numbers of a vector repeat.
_PERIOD = 1009


def given(rank: int, count: int) -> "array[float]":
    """Returns float32 numbers of a rank.

    Their magnitudes differ so much that most orders of addition round differently.
    """
    draw = random.Random(rank)
    drawn = array("f", (draw.gauss(0, 1) * 10.0 ** draw.randint(-3, 3) for _ in range(min(count, _PERIOD))))
    return (drawn * (count // _PERIOD + 1))[:count]


def call(world: Any, collective: str, own: Any, block: int) -> Any:
    """Makes one call and returns the result of this rank; ``block`` is the number of elements of a rank's piece."""
    ranks, rank = world.Get_size(), world.Get_rank()
    size = block * ranks if collective in ("allgather", "alltoall", "gather") else block
    result = array("f", bytes(4 * size))
    if collective == "barrier":
        world.Barrier()
    elif collective == "broadcast":
        result = array("f", own) if rank == 0 else result
        world.Bcast(result)
    else:
        sent = own if collective != "scatter" or rank == 0 else None
        getattr(world, _CALLS.get(collective, collective.capitalize()))(sent, result)
    return result


def main() -> None:
    """Makes the calls on the command line; rank 0 prints a line for each."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    for name in sys.argv[1:]:
        collective, size = name.split(":")
        block = int(size) // 4
        count = block * (world.Get_size() if collective in ("reduce-scatter", "alltoall", "scatter") else 1)
        own = given(world.Get_rank(), count)
        for _ in range(CALLS):
            result = call(world, collective, own, block)
        hashes = world.gather(hashlib.sha256(result.tobytes()).hexdigest()[:8])
        if hashes is not None:
            if collective == "allreduce":
                found = hashes[0] if len(set(hashes)) == 1 else "differ"
            else:
                found = hashlib.sha256(" ".join(hashes).encode()).hexdigest()[:8]
            sys.stdout.write(f"{name} {found}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
