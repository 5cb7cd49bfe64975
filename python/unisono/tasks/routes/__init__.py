"""Ways to carry out a collective: by a plan, by the library, or by messages.

Which way serves an operation is decided once, from what all ranks know, so that all decide alike; what a loop repeats
is only packing and beginning. Each way is one class; `WAYS` lists for each pattern the ways that are asked, in order,
and `Messages` serves what none of them does.
"""

from collections.abc import Callable

from unisono.base.facts import reduces
from unisono.tasks._held import Route
from unisono.tasks._messages import Messages
from unisono.tasks.routes._about import About
from unisono.tasks.routes._exchanges import Alltoall, Scatter, WorldAlltoall
from unisono.tasks.routes._gathers import Broadcast, Gather, WorldAllgather, WorldBroadcast
from unisono.tasks.routes._reductions import ReduceScatter, Reduction, WorldReduceScatter, WorldReduction

__all__ = ["WAYS", "About", "route"]

#: Makes a route, or none where it does not serve the operation, on all ranks alike.
Way = Callable[[About], Route | None]

#: For each pattern the ways that are asked, in order.
WAYS: dict[str, tuple[Way, ...]] = {
    "gather": (Gather.of,),
    "allgather": (WorldAllgather.of, Gather.of),
    "broadcast": (WorldBroadcast.of, Broadcast.of, Alltoall.of),
    "scatter": (Scatter.of, Alltoall.of),
    "alltoall": (WorldAlltoall.of, Alltoall.of),
    "reduce": (WorldReduction.of, Reduction.of),
    "allreduce": (WorldReduction.of, Reduction.of),
    "reduce-scatter": (WorldReduceScatter.of, ReduceScatter.of),
}


def route(about: About, by_messages: bool) -> Route:
    """The first way that serves."""
    for way in () if by_messages else WAYS[about.operation.pattern]:
        if (found := way(about)) is not None:
            return found
    # Where tasks had several operators, the number of each element's operator goes with it.
    codes = int(about.operator is None and reduces(about.operation.pattern))
    size = about.dtype.itemsize + codes
    return Messages(about.transport, about.discovery, about.operation, about.moved, size, about.shape)
