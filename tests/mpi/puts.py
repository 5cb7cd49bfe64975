"""Under mpiexec: runs schedules of allreduces by one-sided puts. Its arguments are files of schedules."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from mpi4py import MPI

world = MPI.COMM_WORLD
rank, ranks = world.rank, world.size


def run(schedule: dict[str, Any], mine: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], int]:
    """Returns the result of this rank and the number of its puts.

    Each message has its own memory in the window of its receiver. A fence ends each stage, so no receive is posted and
    no message is matched.
    """
    size = len(mine)
    memory = np.full(len(schedule["streams"]) * size, -1, dtype=np.int64)
    window = MPI.Win.Create(memory, memory.itemsize, comm=world)
    (steps,) = schedule["programs"][rank]["lanes"]
    assert all(step["length"] == size for step in steps)
    out = np.empty_like(mine)

    def at(end: dict[str, int]) -> npt.NDArray[np.int64]:
        if "stream" in end:
            return memory[end["stream"] * size :][:size]
        return mine if "in" in end else out

    # A put reads its source until the fence.
    sources = []
    window.Fence()
    for phase in range(len(schedule["phases"])):
        taken = False
        for step in (step for step in steps if step["phase"] == phase):
            if not taken and any("stream" in end for end in step["sources"]):
                window.Fence()
                taken = True
            value = np.sum([at(end) for end in step["sources"]], axis=0)
            for end in step["sinks"]:
                if "stream" not in end:
                    out[:] = value
                    continue
                (to,) = schedule["streams"][end["stream"]]["sinks"]
                window.Put(value, to, target=end["stream"] * size)
                sources.append(value)
        if not taken:
            window.Fence()
    window.Fence()
    window.Free()
    return out, len(sources)


for file in sys.argv[1:]:
    schedule = json.loads(Path(file).read_text())
    size = schedule["collective"]["elements"]
    inputs = np.arange(size) + 100 * np.arange(ranks)[:, None]
    result, puts = run(schedule, inputs[rank])
    assert np.array_equal(result, inputs.sum(axis=0)), (file, rank, result)
    total = world.reduce(puts)
    if rank == 0:
        print(f"ok {total}", flush=True)
