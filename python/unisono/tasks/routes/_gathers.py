"""All-gathers, gathers and scatters, and broadcasts: parts of all participants, or of one."""

from typing import Any

import numpy as np

from unisono.tasks._held import Held, Pending, nothing
from unisono.tasks._regions import Data, interval, pack, unpack, volume
from unisono.tasks.routes._about import About, ByLibrary, ByWorld, fits

#: MPI counts and places bytes with 32 bits.
_MOST = (1 << 31) - 1


class _Parts:
    """The parts of all participants, gathered on all or on one."""

    def __init__(self, about: About) -> None:
        self.regions = [about.given(k) for k in about.participants]
        self.counts = [volume(region) * about.dtype.itemsize for region in self.regions]
        self.starts = [0, *np.cumsum(self.counts).tolist()]
        self.wanted = about.receives
        self.mine = about.given(about.rank)
        # What arrives may go to its place at once where the place is contiguous and all of it is wanted: what is not
        # may be written by a kernel meanwhile. The part of this rank lies in the same memory, which is MPI's while the
        # call lasts: so this is for arrays that nothing else looks at.
        others = [(k, r) for k, r in zip(about.participants, self.regions, strict=True) if k != about.rank]
        places = [interval(region, about.shape) for region in self.regions]
        wanted = all(self.wanted.get(k, ()) == region for k, region in others)
        #: The first byte of each part in the array; none where parts are packed.
        self.places: list[int] | None = None
        if wanted and all(found or not count for found, count in zip(places, self.counts, strict=True)):
            self.places = [found[0] * about.dtype.itemsize if found else 0 for found in places]

    def unpack(self, held: Held, got: Data, participants: tuple[int, ...]) -> None:
        """Takes what is wanted from the parts of all."""
        for k, rank in enumerate(participants):
            if rank in self.wanted:
                part = got[self.starts[k] : self.starts[k + 1]].view(held.data.dtype)
                unpack(held.data, self.wanted[rank], part, self.regions[k])


class WorldAllgather(ByWorld):
    """Equal parts of all ranks."""

    @classmethod
    def of(cls, about: About) -> "WorldAllgather | None":
        """Where parts are equal."""
        parts = _Parts(about)
        equal = len(set(parts.counts)) == 1 and about.operation.root is None
        return cls(about, parts) if about.everyone and equal and fits(parts.starts[-1]) else None

    def __init__(self, about: About, parts: _Parts) -> None:
        super().__init__(about, "allgather", parts.counts[0], np.dtype(np.uint8))
        self._parts, self._shape = parts, (about.transport.ranks, parts.counts[0])
        at = parts.places
        in_row = at is not None and all(at[k] == at[0] + start for k, start in enumerate(parts.starts[:-1]))
        self._at, self.in_place = at[0] if at else 0, in_row

    def begin_in_place(self, held: Held) -> Pending:
        parts = self._parts
        mine = pack(held.data, parts.mine).view(np.uint8)
        into = held.data.reshape(-1).view(np.uint8)[self._at : self._at + parts.starts[-1]]
        started, served = self.start(mine, into.reshape(self._shape))
        return Pending(started.test, nothing, served, (mine, into))

    def begin(self, held: Held) -> Pending:
        parts, participants = self._parts, self.about.participants
        mine = pack(held.data, parts.mine).view(np.uint8)
        got = np.empty(parts.starts[-1], np.uint8)
        started, served = self.start(mine, got.reshape(self._shape))
        return Pending(started.test, lambda: parts.unpack(held, got, participants), served, (mine, got))


class Gather(ByLibrary):
    """Parts of any size, to all or to one."""

    @classmethod
    def of(cls, about: About) -> "Gather | None":
        """Where MPI can count the parts."""
        parts = _Parts(about)
        return cls(about, parts) if fits(parts.starts[-1]) else None

    def __init__(self, about: About, parts: _Parts) -> None:
        super().__init__(about)
        self._parts, self._root = parts, about.operation.root
        self._gets = self._root is None or about.rank == self._root
        if (places := parts.places) is not None and self._gets and parts.starts[-1]:
            used = [(at, at + count) for at, count in zip(places, parts.counts, strict=True) if count]
            base, end = min(low for low, _ in used), max(high for _, high in used)
            self._memory = slice(base, end)
            self._places = [at - base if count else 0 for at, count in zip(places, parts.counts, strict=True)]
            self.in_place = end - base <= _MOST

    def begin_in_place(self, held: Held) -> Pending:
        into = held.data.reshape(-1).view(np.uint8)[self._memory]
        return Pending(self._begin(self.mpi.IN_PLACE, into, self._places).Test, nothing, "library", (into,))

    def begin(self, held: Held) -> Pending:
        parts, participants = self._parts, self.about.participants
        if not self._gets:
            mine = pack(held.data, parts.mine).view(np.uint8)
            request = self.comm.Igatherv(mine, None, self.about.place_of(self._root or 0))
            return Pending(request.Test, nothing, "library", (mine,))
        mine, got = pack(held.data, parts.mine).view(np.uint8), np.empty(parts.starts[-1], np.uint8)
        request = self._begin(mine, got, parts.starts[:-1])
        return Pending(request.Test, lambda: parts.unpack(held, got, participants), "library", (mine, got))

    def _begin(self, mine: Any, into: Data, places: list[int]) -> Any:
        received = [into, (self._parts.counts, places), self.mpi.BYTE]
        if self._root is None:
            return self.comm.Iallgatherv(mine, received)
        return self.comm.Igatherv(mine, received, self.about.place_of(self._root))


class _Broadcast:
    """The parts that the root has for the others."""

    def __init__(self, about: About, root: int) -> None:
        self.root, self.region, self.wanted = root, about.given(root), about.received(about.rank)
        self.is_root = about.rank == root
        self.bytes = volume(self.region) * about.dtype.itemsize
        # The root's part stays as it is until all is over.
        found = interval(self.region, about.shape) if self.is_root or self.wanted == self.region else None
        self.at = None if found is None else slice(*(n * about.dtype.itemsize for n in found))

    def octets(self, held: Held) -> Data:
        """The buffer that is sent or received: a part of the array, or memory apart from it."""
        if self.at is not None:
            return held.data.reshape(-1).view(np.uint8)[self.at]
        packed = pack(held.data, self.region) if self.is_root else np.empty(self.bytes, np.uint8)
        return packed.view(np.uint8)

    def finish(self, held: Held, octets: Data) -> None:
        """Puts what came in its place."""
        if self.at is None and not self.is_root:
            unpack(held.data, self.wanted, octets.view(held.data.dtype), self.region)


class WorldBroadcast(ByWorld):
    """To all ranks."""

    @classmethod
    def of(cls, about: About) -> "WorldBroadcast | None":
        """Where one rank has what all others need."""
        root = about.operation.root
        if root is None or not about.everyone:
            return None
        found = _Broadcast(about, root)
        return cls(about, found) if fits(found.bytes) else None

    def __init__(self, about: About, broadcast: _Broadcast) -> None:
        super().__init__(about, "broadcast", broadcast.bytes, np.dtype(np.uint8), root=broadcast.root)
        self._broadcast = broadcast

    def begin(self, held: Held) -> Pending:
        octets = self._broadcast.octets(held)
        started, served = self.start(octets)
        return Pending(started.test, lambda: self._broadcast.finish(held, octets), served, (octets,))


class Broadcast(ByLibrary):
    """To some ranks."""

    @classmethod
    def of(cls, about: About) -> "Broadcast | None":
        """Where one rank has what the others need."""
        root = about.operation.root
        if root is None:
            return None
        found = _Broadcast(about, root)
        return cls(about, found) if fits(found.bytes) else None

    def __init__(self, about: About, broadcast: _Broadcast) -> None:
        super().__init__(about)
        self._broadcast = broadcast

    def begin(self, held: Held) -> Pending:
        octets = self._broadcast.octets(held)
        request = self.comm.Ibcast(octets, self.about.place_of(self._broadcast.root))
        return Pending(request.Test, lambda: self._broadcast.finish(held, octets), "library", (octets,))
