"""Data-parallel training, reduced to its MPI calls: one broadcast, then an allreduce of the gradient in each step.

    mpiexec -n 8 python examples/mpi/sgd.py [STEPS] [PARAMETERS]

Rank 0 prints the seconds of the steps on the slowest rank, and a result that does not depend on the number of ranks.
"""

import sys

import numpy as np
from mpi4py import MPI


def main() -> None:
    """Runs the steps."""
    steps, parameters = (int(word) for word in [*sys.argv[1:], *("8", "131072")[len(sys.argv) - 1 :]])
    world = MPI.COMM_WORLD
    weights = np.arange(parameters, dtype=np.float32) % 5 if world.rank == 0 else np.empty(parameters, np.float32)
    gradient = np.empty_like(weights)
    goal = np.arange(parameters, dtype=np.float32) % 3
    world.Barrier()
    begin = MPI.Wtime()
    world.Bcast(weights)
    for _ in range(steps):
        world.Allreduce(weights - goal, gradient)
        weights -= np.float32(0.25) * gradient / np.float32(world.size)
    seconds = world.reduce(MPI.Wtime() - begin, MPI.MAX)
    if seconds is not None:
        print(f"{steps} steps of {parameters} parameters on {world.size} ranks: {seconds:.3f} s, sum {weights.sum():g}")


if __name__ == "__main__":
    main()
