"""Logistic regression by gradient descent with mpi4py: each rank has a part of the samples, and gradients are summed.

Usage: learning.py FEATURES STEPS. Rank 0 prints "result STEPS LOSS NORM" and "seconds S".
"""

import sys

import numpy as np
from mpi4py import MPI

world = MPI.COMM_WORLD
features, steps = int(sys.argv[1]), int(sys.argv[2])
# All ranks draw all samples and keep their own, so that the data do not depend on the number of ranks.
random = np.random.default_rng(7)
samples = random.standard_normal((480, features))
truth = random.standard_normal(features)
labels = (samples @ truth > 0).astype(np.float64)
own = slice(world.rank * 480 // world.size, (world.rank + 1) * 480 // world.size)
x, y = np.ascontiguousarray(samples[own]), labels[own]
weights = random.standard_normal(features) if world.rank == 0 else np.empty(features)
world.Bcast(weights, 0)
summed = np.empty(features + 1)
world.Barrier()
start = MPI.Wtime()
for _ in range(steps):
    scores = x @ weights
    loss = np.sum(np.logaddexp(0, scores) - y * scores)
    gradient = np.append(x.T @ (0.5 + 0.5 * np.tanh(scores / 2) - y), loss)
    world.Allreduce(gradient, summed)
    weights -= 0.01 / np.sqrt(features) * summed[:-1]
took = MPI.Wtime() - start
if world.rank == 0:
    # Sums in another order differ in their last digits.
    print(f"result {steps} {summed[-1]:.6e} {np.linalg.norm(weights):.8e}")
    print(f"seconds {took:.6f}", flush=True)
