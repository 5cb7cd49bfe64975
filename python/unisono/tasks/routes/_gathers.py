"""All-gathers, gathers and broadcasts: the same parts for every receiver, from all participants or from one."""

import numpy as np

from unisono._core import LibraryCollective
from unisono.tasks._local_arrays import LocalArray, Pending, nothing
from unisono.tasks._regions import Data, Part, interval, pack, packed_parts, shared_parts, unpack, volume
from unisono.tasks.routes._about import About, LibraryRoute, Side, WorldRoute, fits, library_call, side

#: The largest count and offset, in bytes, of MPI's 32-bit integers.
_MOST = (1 << 31) - 1


class _Parts:
    """The parts of all participants, gathered on all or on one."""

    def __init__(self, about: About) -> None:
        self.regions = [about.given(k) for k in about.participants]
        self.counts = [volume(region) * about.dtype.itemsize for region in self.regions]
        self.starts = [0, *np.cumsum(self.counts).tolist()]
        self.wanted = about.receives
        self.mine = about.given(about.rank)
        # Parts may arrive in the array itself if each place is contiguous and all of each part is wanted, because a
        # kernel may write unwanted elements meanwhile. The part of this rank is in the same memory, which belongs to
        # MPI during the call. So this is for arrays that nothing else accesses.
        others = [(k, r) for k, r in zip(about.participants, self.regions, strict=True) if k != about.rank]
        places = [interval(region, about.shape) for region in self.regions]
        wanted = all(self.wanted.get(k, ()) == region for k, region in others)
        #: The first byte of each part in the array; None if parts are packed.
        self.places: list[int] | None = None
        if wanted and all(found or not count for found, count in zip(places, self.counts, strict=True)):
            self.places = [found[0] * about.dtype.itemsize if found else 0 for found in places]

    def given(self, about: About) -> Side:
        """Returns the part of this rank."""
        return side(packed_parts(self.mine), volume(self.mine) * about.dtype.itemsize)

    def got(self, about: About) -> list[Part]:
        """Returns the wanted pieces of the parts of all."""
        starts = [start // about.dtype.itemsize for start in self.starts]
        rows = zip(about.participants, self.regions, starts[:-1], strict=True)
        return [part for k, r, start in rows if k in self.wanted for part in shared_parts(self.wanted[k], r, start)]

    def unpack(self, local: LocalArray, got: Data, participants: tuple[int, ...]) -> None:
        """Copies the wanted pieces of the parts of all to the array."""
        for k, rank in enumerate(participants):
            if rank in self.wanted:
                part = got[self.starts[k] : self.starts[k + 1]].view(local.data.dtype)
                unpack(local.data, self.wanted[rank], part, self.regions[k])


class WorldAllgather(WorldRoute):
    """An all-gather of equal parts of all ranks."""

    @classmethod
    def of(cls, about: About) -> "WorldAllgather | None":
        """Returns a route if all ranks have equal parts."""
        parts = _Parts(about)
        equal = len(set(parts.counts)) == 1 and about.operation.root is None
        return cls(about, parts) if about.everyone and equal and fits(parts.starts[-1]) else None

    def __init__(self, about: About, parts: _Parts) -> None:
        self._parts, self._shape = parts, (about.transport.ranks, parts.counts[0])
        at = parts.places
        in_row = at is not None and all(at[k] == at[0] + start for k, start in enumerate(parts.starts[:-1]))
        self._at, self.in_place = at[0] if at else 0, in_row
        super().__init__(about, "allgather", parts.counts[0], np.dtype(np.uint8))

    def call(self, about: About) -> LibraryCollective:
        parts = self._parts
        got: Side = parts.got(about), parts.starts[-1], parts.counts[:1], []
        in_place: tuple[int, list[int]] | None = (self._at, []) if self.in_place else None
        return library_call(about, "allgather", given=parts.given(about), got=got, in_place=in_place)

    def begin_in_place(self, local: LocalArray) -> Pending:
        parts = self._parts
        mine = pack(local.data, parts.mine).view(np.uint8)
        into = local.data.reshape(-1).view(np.uint8)[self._at : self._at + parts.starts[-1]]
        started, served = self.start(mine, into.reshape(self._shape))
        return Pending(started.test, nothing, served, (mine, into))

    def begin(self, local: LocalArray) -> Pending:
        parts, participants = self._parts, self.about.participants
        mine = pack(local.data, parts.mine).view(np.uint8)
        got = np.empty(parts.starts[-1], np.uint8)
        started, served = self.start(mine, got.reshape(self._shape))
        return Pending(started.test, lambda: parts.unpack(local, got, participants), served, (mine, got))


class Gather(LibraryRoute):
    """A gather of parts of any size, to all or to one."""

    @classmethod
    def of(cls, about: About) -> "Gather | None":
        """Returns a route if MPI can count the parts."""
        parts = _Parts(about)
        return cls(about, parts) if fits(parts.starts[-1]) else None

    def __init__(self, about: About, parts: _Parts) -> None:
        self._parts = parts
        super().__init__(about)

    def call(self, about: About) -> LibraryCollective:
        parts, root = self._parts, about.operation.root
        given, got, in_place = parts.given(about), None, None
        if root is None or about.rank == root:
            got = parts.got(about), parts.starts[-1], parts.counts, parts.starts[:-1]
            in_place = self._in_place()
            self.in_place = in_place is not None
        if root is None:
            return library_call(about, "allgatherv", given=given, got=got, in_place=in_place)
        place = about.place_of(root)
        return library_call(about, "gatherv", root=place, given=given, got=got, in_place=in_place)

    def _in_place(self) -> tuple[int, list[int]] | None:
        """Returns the first byte of all parts in the array and their offsets from it, or None if they exceed MPI."""
        parts = self._parts
        if parts.places is None or not parts.starts[-1]:
            return None
        used = [(at, at + count) for at, count in zip(parts.places, parts.counts, strict=True) if count]
        base, end = min(low for low, _ in used), max(high for _, high in used)
        places = [at - base if count else 0 for at, count in zip(parts.places, parts.counts, strict=True)]
        return (base, places) if end - base <= _MOST else None


class _Broadcast:
    """The region that the root sends to the others."""

    def __init__(self, about: About, root: int) -> None:
        self.root, self.region, self.wanted = root, about.given(root), about.received(about.rank)
        self.is_root = about.rank == root
        self.bytes = volume(self.region) * about.dtype.itemsize
        # No task writes the root's region before the exchange is over.
        found = interval(self.region, about.shape) if self.is_root or self.wanted == self.region else None
        self.at = None if found is None else slice(*(n * about.dtype.itemsize for n in found))

    def call(self, about: About) -> LibraryCollective:
        """Returns the library's broadcast."""
        size, root = self.bytes, about.place_of(self.root)
        if self.at is not None:
            return library_call(about, "broadcast", root=root, got=side([], size), shared=True, at=self.at.start)
        given = side(packed_parts(self.region), size) if self.is_root else None
        got = side([] if self.is_root else shared_parts(self.wanted, self.region), size)
        return library_call(about, "broadcast", root=root, given=given, got=got, shared=True)

    def octets(self, local: LocalArray) -> Data:
        """Returns the buffer that is sent or received: a part of the array, or separate memory."""
        if self.at is not None:
            return local.data.reshape(-1).view(np.uint8)[self.at]
        packed = pack(local.data, self.region) if self.is_root else np.empty(self.bytes, np.uint8)
        return packed.view(np.uint8)

    def finish(self, local: LocalArray, octets: Data) -> None:
        """Copies received packed elements to the array."""
        if self.at is None and not self.is_root:
            unpack(local.data, self.wanted, octets.view(local.data.dtype), self.region)


class WorldBroadcast(WorldRoute):
    """A broadcast to all ranks."""

    @classmethod
    def of(cls, about: About) -> "WorldBroadcast | None":
        """Returns a route if one rank sends and all ranks take part."""
        root = about.operation.root
        if root is None or not about.everyone:
            return None
        found = _Broadcast(about, root)
        return cls(about, found) if fits(found.bytes) else None

    def __init__(self, about: About, broadcast: _Broadcast) -> None:
        self._broadcast = broadcast
        super().__init__(about, "broadcast", broadcast.bytes, np.dtype(np.uint8), root=broadcast.root)

    def call(self, about: About) -> LibraryCollective:
        return self._broadcast.call(about)

    def begin(self, local: LocalArray) -> Pending:
        octets = self._broadcast.octets(local)
        started, served = self.start(octets)
        return Pending(started.test, lambda: self._broadcast.finish(local, octets), served, (octets,))


class Broadcast(LibraryRoute):
    """A broadcast to some ranks."""

    @classmethod
    def of(cls, about: About) -> "Broadcast | None":
        """Returns a route if one rank sends."""
        root = about.operation.root
        if root is None:
            return None
        found = _Broadcast(about, root)
        return cls(about, found) if fits(found.bytes) else None

    def __init__(self, about: About, broadcast: _Broadcast) -> None:
        self._broadcast = broadcast
        super().__init__(about)

    def call(self, about: About) -> LibraryCollective:
        return self._broadcast.call(about)
