"""Ways to carry out a collective: by a plan, by the MPI library, or by messages.

The way of an operation is chosen once, from facts that all ranks have, so that all ranks choose alike; each repetition
in a loop only packs and begins. Each way is one class. `WAYS` lists the ways of each pattern in the order in which they
are tried; `Messages` carries out the operations that all of them refuse.
"""

from collections.abc import Callable

from unisono.base.facts import reduces
from unisono.tasks._local_arrays import Route
from unisono.tasks._messages import Messages
from unisono.tasks.routes._about import About
from unisono.tasks.routes._exchanges import Alltoall, Scatter, WorldAlltoall
from unisono.tasks.routes._gathers import Broadcast, Gather, WorldAllgather, WorldBroadcast
from unisono.tasks.routes._reductions import ReduceScatter, Reduction, WorldReduceScatter, WorldReduction

__all__ = ["WAYS", "About", "route"]

#: Returns a route, or on all ranks None if it does not support the operation.
Way = Callable[[About], Route | None]

#: The ways of each pattern, in the order in which they are tried.
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
    """Returns the first route that supports the operation."""
    for way in () if by_messages else WAYS[about.operation.pattern]:
        if (found := way(about)) is not None:
            return found
    # If tasks had several operators, the code of each element's operator is sent with the element.
    codes = int(about.operator is None and reduces(about.operation.pattern))
    size = about.dtype.itemsize + codes
    return Messages(about.transport, about.discovery, about.operation, about.moved, size, about.shape)
