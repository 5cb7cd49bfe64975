"""Under mpiexec: prints a hash of the bits of collectives' results; those of float sums show the order of additions.

``python _bits.py COLLECTIVE:BYTES...`` prints ``COLLECTIVE:BYTES HASH`` for each, with ``differ`` in place of the hash
if the ranks do not agree on the result of an allreduce. Each hash is of the eighth of eight calls, because a library
may choose otherwise from some call on. Needs NumPy and mpi4py only.
"""

import hashlib
import sys
from typing import Any

import numpy as np
from mpi4py import MPI

#: Calls of which the last one counts.
CALLS = 8


def call(world: Any, collective: str, given: Any, block: int) -> Any:
    """Makes one call and returns the result of this rank; ``block`` is the elements of one rank's piece."""
    ranks, rank = world.Get_size(), world.Get_rank()
    result = np.zeros(block * ranks if collective in ("allgather", "alltoall", "gather") else block, np.float32)
    if collective == "allreduce":
        world.Allreduce(given, result)
    elif collective == "reduce":
        world.Reduce(given, result)
    elif collective == "scan":
        world.Scan(given, result)
    elif collective == "reduce-scatter":
        world.Reduce_scatter_block(given, result)
    elif collective == "broadcast":
        result[:] = given if rank == 0 else 0
        world.Bcast(result)
    elif collective == "allgather":
        world.Allgather(given, result)
    elif collective == "alltoall":
        world.Alltoall(given, result)
    elif collective == "gather":
        world.Gather(given, result)
    elif collective == "scatter":
        world.Scatter(given if rank == 0 else None, result)
    else:
        world.Barrier()
    return result


def main() -> None:
    """One line a call, from rank 0."""
    world = MPI.COMM_WORLD
    draw = np.random.default_rng(world.Get_rank())
    for name in sys.argv[1:]:
        collective, size = name.split(":")
        block = int(size) // 4
        count = block * (world.Get_size() if collective in ("reduce-scatter", "alltoall", "scatter") else 1)
        # Magnitudes far apart, so that almost any other order rounds otherwise.
        scale = 10.0 ** draw.integers(-3, 4, count)
        given = (draw.standard_normal(count) * scale).astype(np.float32)
        for _ in range(CALLS):
            result = call(world, collective, given, block)
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
