"""All-to-all exchanges: each participant sends to each other one."""

import numpy as np

from unisono.tasks._held import Held, Pending
from unisono.tasks._regions import Boxes, Data, pack_into, unpack, volume
from unisono.tasks.routes._about import About, ByLibrary, ByWorld, fits


class WorldAlltoall(ByWorld):
    """Every rank has as much for every other one."""

    #: The most ranks among which the elements of each pair are counted.
    MOST_RANKS = 512

    @classmethod
    def of(cls, about: About) -> "WorldAlltoall | None":
        """Where all pairs have equal parts."""
        few = len(about.participants) <= cls.MOST_RANKS
        count = about.discovery.even(about.operation) if about.everyone and few else None
        return None if count is None or not fits(about.moved) else cls(about, count * about.dtype.itemsize)

    def __init__(self, about: About, count: int) -> None:
        super().__init__(about, "alltoall", count, np.dtype(np.uint8))
        self._shape = (about.transport.ranks, count)

    def begin(self, held: Held) -> Pending:
        given, got = np.empty(self._shape, np.uint8), np.empty(self._shape, np.uint8)
        for k, region in self.about.sends.items():
            pack_into(given[k].view(held.data.dtype), held.data, region)
        # The part of a rank for itself stays where it is.
        given[self.about.rank] = 0
        started, served = self.start(given, got)

        def finish() -> None:
            for k, region in self.about.receives.items():
                unpack(held.data, region, got[k].view(held.data.dtype), region)

        return Pending(started.test, finish, served, (given, got))


class _Exchange(ByLibrary):
    """Pieces for each participant, and from each."""

    def __init__(self, about: About) -> None:
        super().__init__(about)
        self._out, self._in = self._layout(about.sends), self._layout(about.receives)

    def _layout(self, regions: dict[int, Boxes]) -> tuple[list[int], list[int]]:
        """Counts and places of bytes."""
        counts = [volume(regions.get(k, ())) * self.about.dtype.itemsize for k in self.about.participants]
        return counts, [0, *np.cumsum(counts)[:-1].tolist()]

    def _pack(self, held: Held) -> Data:
        packed, at = np.empty(sum(self._out[0]) // held.data.itemsize, held.data.dtype), 0
        for k in self.about.participants:
            if (region := self.about.sends.get(k)) is not None:
                pack_into(packed[at : at + volume(region)], held.data, region)
                at += volume(region)
        return packed

    def _room(self, held: Held) -> Data:
        return np.empty(sum(self._in[0]) // held.data.itemsize, held.data.dtype)

    def _unpack(self, held: Held, got: Data) -> None:
        at = 0
        for k in self.about.participants:
            if (region := self.about.receives.get(k)) is not None:
                unpack(held.data, region, got[at : at + volume(region)], region)
                at += volume(region)


class Alltoall(_Exchange):
    """Each pair has something of its own."""

    @classmethod
    def of(cls, about: About) -> "Alltoall | None":
        """Where MPI can count it."""
        return cls(about) if fits(about.moved) else None

    def begin(self, held: Held) -> Pending:
        packed, got, byte = self._pack(held), self._room(held), self.mpi.BYTE
        into = [got.view(np.uint8), self._in, byte]
        request = self.comm.Ialltoallv([packed.view(np.uint8), self._out, byte], into)
        return Pending(request.Test, lambda: self._unpack(held, got), "library", (packed, got))


class Scatter(_Exchange):
    """Only one has something, for each other one."""

    @classmethod
    def of(cls, about: About) -> "Scatter | None":
        """Where MPI can count it."""
        return cls(about) if about.operation.root is not None and fits(about.moved) else None

    def begin(self, held: Held) -> Pending:
        root = self.about.operation.root or 0
        packed, got = self._pack(held), self._room(held)
        given = [packed.view(np.uint8), self._out, self.mpi.BYTE] if self.about.rank == root else None
        request = self.comm.Iscatterv(given, got.view(np.uint8), self.about.place_of(root))
        return Pending(request.Test, lambda: self._unpack(held, got), "library", (packed, got))
