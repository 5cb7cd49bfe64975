"""All-to-all exchanges and scatters: different data for each receiver."""

import numpy as np

from unisono._core import LibraryCollective
from unisono.tasks._local_arrays import LocalArray, Pending
from unisono.tasks._regions import Boxes, pack_into, packed_parts, unpack, volume
from unisono.tasks.routes._about import About, LibraryRoute, Side, WorldRoute, fits, library_call, side


def _side(about: About, regions: dict[int, Boxes]) -> Side:
    """Returns packed memory with a part for each participant, in their order."""
    parts, counts, places, at = [], [], [], 0
    for rank in about.participants:
        region = regions.get(rank, ())
        parts += packed_parts(region, at)
        counts.append(volume(region) * about.dtype.itemsize)
        places.append(at * about.dtype.itemsize)
        at += volume(region)
    return parts, at * about.dtype.itemsize, counts, places


def _alltoall(about: About) -> LibraryCollective:
    return library_call(about, "alltoallv", given=_side(about, about.sends), got=_side(about, about.receives))


class WorldAlltoall(WorldRoute):
    """An all-to-all of all ranks, with equal parts for all pairs."""

    #: The largest number of ranks for which the elements of every pair are counted.
    MOST_RANKS = 512

    @classmethod
    def of(cls, about: About) -> "WorldAlltoall | None":
        """Returns a route if all pairs have equal parts."""
        few = len(about.participants) <= cls.MOST_RANKS
        count = about.discovery.even(about.operation) if about.everyone and few else None
        return None if count is None or not fits(about.moved) else cls(about, count * about.dtype.itemsize)

    def __init__(self, about: About, count: int) -> None:
        self._shape = (about.transport.ranks, count)
        super().__init__(about, "alltoall", count, np.dtype(np.uint8))

    def call(self, about: About) -> LibraryCollective:
        return _alltoall(about)

    def begin(self, local: LocalArray) -> Pending:
        given, got = np.empty(self._shape, np.uint8), np.empty(self._shape, np.uint8)
        for k, region in self.about.sends.items():
            pack_into(given[k].view(local.data.dtype), local.data, region)
        # The part of a rank for itself is not sent.
        given[self.about.rank] = 0
        started, served = self.start(given, got)

        def finish() -> None:
            for k, region in self.about.receives.items():
                unpack(local.data, region, got[k].view(local.data.dtype), region)

        return Pending(started.test, finish, served, (given, got))


class Alltoall(LibraryRoute):
    """An all-to-all with parts of any size."""

    @classmethod
    def of(cls, about: About) -> "Alltoall | None":
        """Returns a route if MPI can count the bytes."""
        return cls(about) if fits(about.moved) else None

    def call(self, about: About) -> LibraryCollective:
        return _alltoall(about)


class Scatter(LibraryRoute):
    """A scatter from one participant to the others."""

    @classmethod
    def of(cls, about: About) -> "Scatter | None":
        """Returns a route if there is a root and MPI can count the bytes."""
        return cls(about) if about.operation.root is not None and fits(about.moved) else None

    def call(self, about: About) -> LibraryCollective:
        root = about.operation.root or 0
        parts, size, *_ = _side(about, about.receives)
        given = _side(about, about.sends) if about.rank == root else None
        return library_call(about, "scatterv", root=about.place_of(root), given=given, got=side(parts, size))
