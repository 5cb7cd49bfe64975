"""A small trace of two ranks as PyTorch's profiler writes it, made by hand: a step of data-parallel training.

    python examples/programs/ddp.py FOLDER

writes ``step.0.json`` and ``step.1.json``. Four layers compute forward and backward, the gradients of each layer are
summed while the next one computes, and the optimizer waits for all sums. For a trace of your own, use
``torch.profiler`` with a process group of NCCL and ``export_chrome_trace``, one file a rank.
"""

import json
import sys
from pathlib import Path
from typing import Any

LAYERS = 4
#: Elements of the gradients of a layer.
GRADIENTS = 12_000_000
FORWARD_US = 900.0
BACKWARD_US = 1800.0
SUM_US = 1100.0
OPTIMIZER_US = 600.0
#: The time before the host launches the first kernel of the optimizer.
LATE_US = 40.0


def event(name: str, begin: float, taken: float, stream: int, **more: Any) -> dict[str, Any]:
    """Returns the event of a kernel on a stream, with begin and duration in microseconds."""
    args = {"stream": stream, "device": 0, **more}
    head = {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": stream}
    return {**head, "ts": begin, "dur": taken, "args": args}


def trace(rank: int) -> dict[str, Any]:
    """Returns the trace of a rank; rank 1 computes 5 % longer than rank 0."""
    slower = 1.05 if rank else 1.0
    events, now, free = [], 0.0, 0.0
    for layer in range(LAYERS):
        events.append(event(f"forward_{layer}", now, FORWARD_US * slower, 7))
        now += FORWARD_US * slower
    for layer in reversed(range(LAYERS)):
        events.append(event(f"backward_{layer}", now, BACKWARD_US * slower, 7))
        now += BACKWARD_US * slower
        metadata = {
            "Collective name": "allreduce",
            "In msg nelems": GRADIENTS,
            "Out msg nelems": GRADIENTS,
            "Group size": 2,
            "dtype": "Float",
            "Process Group Name": "0",
            "Process Group Ranks": "[0, 1]",
        }
        begin = max(now, free)
        events.append(event("ncclDevKernel_AllReduce_Sum_f32_RING_LL", begin, SUM_US, 20, **metadata))
        free = begin + SUM_US
    events.append(event("optimizer", free + LATE_US, OPTIMIZER_US * slower, 7))
    return {
        "schemaVersion": 1,
        "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 2},
        "traceEvents": events,
    }


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for rank in range(2):
        (folder / f"step.{rank}.json").write_text(json.dumps(trace(rank), indent=1) + "\n")
