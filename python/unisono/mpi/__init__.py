"""Planned collectives on NumPy arrays, under ``mpiexec``.

>>> from unisono import mpi  # doctest: +SKIP
>>> world = mpi.world(machine="cluster.toml")  # doctest: +SKIP
>>> world.allreduce(x)  # doctest: +SKIP
>>> print(world.last)  # doctest: +SKIP
allreduce of 8000 bytes on 4 ranks: rabenseifner, first by the model pipelining-postal of cluster, 12.1 µs predicted

With a machine, a collective is planned when the first call of its size class comes, by rank 0, which hands the proven
schedule to all; with a plan file, its rows serve. Every other call is the library's own, and `World.last` says why.

All ranks make the same calls in the same order. `World.start` begins one and returns at once; as many may be under way
as there are channels, each of which has messages of its own.

A call that the program drops keeps its arrays until it is over: later calls carry it on, and so does the end of the
program, before MPI is finalized. Where other ranks do not take part within half a minute, its arrays are never freed.
"""

from typing import TYPE_CHECKING

from unisono.base.lazy import lazy

if TYPE_CHECKING:
    # The names of the package; launching imports none of them, and no NumPy.
    from unisono.mpi.communicator import OPERATORS as OPERATORS
    from unisono.mpi.communicator import Operation as Operation
    from unisono.mpi.communicator import World as World
    from unisono.mpi.communicator import world as world
    from unisono.mpi.exports import export as export
    from unisono.mpi.sources import CallFacts as CallFacts

__all__, __getattr__ = lazy(__name__, globals())
