"""Under mpiexec: prints a hash of the bits of float sums, which show the order in which an MPI library adds.

``python _bits.py BYTES...`` prints ``BYTES HASH`` for each size, or ``BYTES differ`` if the ranks do not agree. Each
hash is of the eighth of eight calls, because a library may choose otherwise from some call on. Needs NumPy and
mpi4py only.
"""

import hashlib
import sys

import numpy as np
from mpi4py import MPI


def main() -> None:
    """One line a size, from rank 0."""
    world = MPI.COMM_WORLD
    draw = np.random.default_rng(world.Get_rank())
    for size in map(int, sys.argv[1:]):
        # Magnitudes far apart, so that almost any other order rounds otherwise.
        scale = 10.0 ** draw.integers(-3, 4, size // 4)
        given = (draw.standard_normal(size // 4) * scale).astype(np.float32)
        result = np.empty_like(given)
        for _ in range(8):
            world.Allreduce(given, result)
        hashes = world.gather(hashlib.sha256(result.tobytes()).hexdigest()[:8])
        if hashes is not None:
            sys.stdout.write(f"{size} {hashes[0] if len(set(hashes)) == 1 else 'differ'}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
