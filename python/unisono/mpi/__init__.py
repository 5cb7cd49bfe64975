"""Planned collectives on NumPy arrays, under ``mpiexec``.

>>> from unisono import mpi  # doctest: +SKIP
>>> world = mpi.world(machine="cluster.toml")  # doctest: +SKIP
>>> world.allreduce(x)  # doctest: +SKIP
>>> print(world.last)  # doctest: +SKIP
allreduce of 8000 bytes on 4 ranks: rabenseifner, first by the model pipelining-postal of cluster, 12.1 µs predicted

With a machine, rank 0 plans a collective at the first call of a size class, and sends the proven schedule to all ranks.
With a plan file, the rows of the file serve calls. The MPI library makes all other calls, for the reason in
`World.last`.

All ranks make the same calls in the same order. `World.start` begins a call and returns at once. Each channel can carry
one call at a time, and messages of different channels never match.

If the program drops a call under way, the arrays are kept until the call is complete. Later calls advance it, and so
does the end of the program, before MPI is finalized. If no call progresses for `UNISONO_PATIENCE` seconds at the end
(30 by default), the arrays are never freed.
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
