"""Ways to carry out a collective: by a plan, by the library, or by messages.

Which way serves an operation is decided once, from what all ranks know, so that all decide alike; what a loop repeats
is only packing and beginning. Each way is one class; `WAYS` lists for each pattern the ways that are asked, in order,
and `Messages` serves what none of them does.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from unisono._core import Discovery, Operation
from unisono.mpi import OPERATORS
from unisono.tasks import _transport
from unisono.tasks._held import Held, Pending, Route, nothing
from unisono.tasks._messages import Messages
from unisono.tasks._operators import NEUTRAL, by_mpi
from unisono.tasks._regions import Boxes, Data, gather_into, interval, pack, pack_into, unpack, volume

#: MPI counts and places bytes with 32 bits.
_MOST = (1 << 31) - 1


@dataclass(frozen=True)
class About:
    """An operation on an array, and this rank's view of it."""

    transport: _transport.Transport
    discovery: Discovery
    operation: Operation
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    #: What combines partial results, where that is one operator.
    operator: str | None

    @cached_property
    def participants(self) -> tuple[int, ...]:
        """The ranks that take part."""
        return tuple(self.operation.participants)

    @property
    def everyone(self) -> bool:
        """Whether all ranks take part."""
        return len(self.participants) == self.transport.ranks

    @property
    def rank(self) -> int:
        """Its own number."""
        return self.transport.rank

    @property
    def comm(self) -> Any:
        """The participants' communicator; they ask for it together."""
        return self.transport.among(self.participants)

    @cached_property
    def moved(self) -> int:
        """The bytes that ranks receive."""
        return self.discovery.elements(self.operation) * self.dtype.itemsize

    def place_of(self, rank: int) -> int:
        """A rank's number in the communicator."""
        return self.participants.index(rank)

    def given(self, rank: int) -> Boxes:
        """What a rank gives."""
        return self.discovery.given(self.operation, rank)

    def received(self, rank: int) -> Boxes:
        """What a rank has new afterwards."""
        return self.discovery.received(self.operation, rank)

    @cached_property
    def sends(self) -> dict[int, Boxes]:
        """What this rank sends to whom."""
        return dict(self.discovery.sends(self.operation, self.rank))

    @cached_property
    def receives(self) -> dict[int, Boxes]:
        """What this rank receives from whom."""
        return dict(self.discovery.receives(self.operation, self.rank))


class Way(Protocol):
    """Makes routes."""

    def __call__(self, about: About, /) -> Route | None:
        """None where it does not serve the operation, on all ranks alike."""


def route(about: About, by_messages: bool) -> Route:
    """The first way that serves."""
    for way in () if by_messages else WAYS[about.operation.pattern]:
        if (found := way(about)) is not None:
            return found
    return Messages(about.transport, about.discovery, about.operation, about.moved)


def _fits(size: int) -> bool:
    return size <= _transport.LARGEST


class _ByWorld(Route):
    """By a plan where there is one: all ranks take part, with equal parts."""

    by_world = True

    def __init__(self, about: About, collective: str, count: int, dtype: np.dtype[Any], **options: Any) -> None:
        self.about, self.bytes, self._options = about, about.moved, options
        self._world, self._call = about.transport.world, (collective, count, dtype)
        self.prepare()

    def prepare(self) -> None:
        self._world.prepare(*self._call, **self._options)

    def start(self, x: Data, out: Data | None = None) -> tuple[Any, str]:
        started = self._world.start(self._call[0], x, out=out, **self._options)
        ran = started.ran
        return started, f"plan: {ran.algorithm}" if ran.planned else "library"


class _ByLibrary(Route):
    """By the MPI library, among the participants."""

    def __init__(self, about: About) -> None:
        self.about, self.bytes, self.mpi, self.comm = about, about.moved, about.transport.mpi, about.comm


class _Parts:
    """What each participant gives to all, or to one."""

    def __init__(self, about: About) -> None:
        self.regions = [about.given(k) for k in about.participants]
        self.counts = [volume(region) * about.dtype.itemsize for region in self.regions]
        self.starts = [0, *np.cumsum(self.counts).tolist()]
        self.wanted = about.receives
        self.mine = about.given(about.rank)
        # What arrives may go to its place at once where the place is contiguous and all of it is wanted: what is not
        # may be written by a kernel meanwhile. What this rank gives lies in the same memory, which is MPI's while the
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


class WorldAllgather(_ByWorld):
    """Equal parts of all ranks."""

    @classmethod
    def of(cls, about: About) -> "WorldAllgather | None":
        """Where parts are equal."""
        parts = _Parts(about)
        equal = len(set(parts.counts)) == 1 and about.operation.root is None
        return cls(about, parts) if about.everyone and equal and _fits(parts.starts[-1]) else None

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


class Gather(_ByLibrary):
    """Parts of any size, to all or to one."""

    @classmethod
    def of(cls, about: About) -> "Gather | None":
        """Where MPI can count the parts."""
        parts = _Parts(about)
        return cls(about, parts) if _fits(parts.starts[-1]) else None

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
        told = [into, (self._parts.counts, places), self.mpi.BYTE]
        if self._root is None:
            return self.comm.Iallgatherv(mine, told)
        return self.comm.Igatherv(mine, told, self.about.place_of(self._root))


class _Broadcast:
    """What the root has for the others."""

    def __init__(self, about: About, root: int) -> None:
        self.root, self.region, self.wanted = root, about.given(root), about.received(about.rank)
        self.is_root = about.rank == root
        self.bytes = volume(self.region) * about.dtype.itemsize
        # The root's part stays as it is until all is over.
        found = interval(self.region, about.shape) if self.is_root or self.wanted == self.region else None
        self.at = None if found is None else slice(*(n * about.dtype.itemsize for n in found))

    def octets(self, held: Held) -> Data:
        """What goes out or comes in: a part of the array, or apart from it."""
        if self.at is not None:
            return held.data.reshape(-1).view(np.uint8)[self.at]
        packed = pack(held.data, self.region) if self.is_root else np.empty(self.bytes, np.uint8)
        return packed.view(np.uint8)

    def finish(self, held: Held, octets: Data) -> None:
        """Puts what came in its place."""
        if self.at is None and not self.is_root:
            unpack(held.data, self.wanted, octets.view(held.data.dtype), self.region)


class WorldBroadcast(_ByWorld):
    """To all ranks."""

    @classmethod
    def of(cls, about: About) -> "WorldBroadcast | None":
        """Where one rank has what all others need."""
        root = about.operation.root
        if root is None or not about.everyone:
            return None
        found = _Broadcast(about, root)
        return cls(about, found) if _fits(found.bytes) else None

    def __init__(self, about: About, broadcast: _Broadcast) -> None:
        super().__init__(about, "broadcast", broadcast.bytes, np.dtype(np.uint8), root=broadcast.root)
        self._broadcast = broadcast

    def begin(self, held: Held) -> Pending:
        octets = self._broadcast.octets(held)
        started, served = self.start(octets)
        return Pending(started.test, lambda: self._broadcast.finish(held, octets), served, (octets,))


class Broadcast(_ByLibrary):
    """To some ranks."""

    @classmethod
    def of(cls, about: About) -> "Broadcast | None":
        """Where one rank has what the others need."""
        root = about.operation.root
        if root is None:
            return None
        found = _Broadcast(about, root)
        return cls(about, found) if _fits(found.bytes) else None

    def __init__(self, about: About, broadcast: _Broadcast) -> None:
        super().__init__(about)
        self._broadcast = broadcast

    def begin(self, held: Held) -> Pending:
        octets = self._broadcast.octets(held)
        request = self.comm.Ibcast(octets, self.about.place_of(self._broadcast.root))
        return Pending(request.Test, lambda: self._broadcast.finish(held, octets), "library", (octets,))


class _Partial:
    """Partial results, packed; who contributes nothing to an element brings what changes nothing."""

    def __init__(self, about: About, boxes: Boxes, operator: str) -> None:
        self.boxes, self.size, self.mine = boxes, volume(boxes), about.given(about.rank)
        self.neutral, self.operator = NEUTRAL[operator](about.dtype), operator
        self.whole = boxes == self.mine

    @classmethod
    def of(cls, about: About, boxes: Boxes) -> "_Partial | None":
        if about.operator is None or not by_mpi(about.dtype):
            return None
        found = cls(about, boxes, about.operator)
        return found if _fits(found.size * about.dtype.itemsize) else None

    def pack(self, data: Data) -> Data:
        """Its own."""
        if self.whole:
            return pack(data, self.boxes)
        packed = np.full(self.size, self.neutral, data.dtype)
        gather_into(packed, self.boxes, data, self.mine)
        return packed


def _result(about: About) -> Boxes:
    """What is reduced to one rank or to all."""
    root = about.operation.root
    return about.received(about.rank if about.operation.pattern == "allreduce" or root is None else root)


class WorldReduction(_ByWorld):
    """Of all ranks, to all or to one."""

    @classmethod
    def of(cls, about: About) -> "WorldReduction | None":
        """Where all ranks then have the same bits: some schedules of allreduce add in another order on each."""
        exact = about.operation.pattern == "reduce" or about.dtype.kind in "iu"
        partial = _Partial.of(about, _result(about)) if exact and about.everyone else None
        return None if partial is None else cls(about, partial)

    def __init__(self, about: About, partial: _Partial) -> None:
        self._root = about.operation.root or 0
        pattern = about.operation.pattern
        super().__init__(about, pattern, partial.size, about.dtype, op=partial.operator, root=self._root)
        self._partial, self._gets = partial, pattern == "allreduce" or about.rank == self._root

    def begin(self, held: Held) -> Pending:
        packed, boxes = self._partial.pack(held.data), self._partial.boxes
        started, served = self.start(packed)
        finish = (lambda: unpack(held.data, boxes, packed, boxes)) if self._gets else nothing
        return Pending(started.test, finish, served, (packed,))


class Reduction(_ByLibrary):
    """Of some ranks, or to the same bits on all."""

    @classmethod
    def of(cls, about: About) -> "Reduction | None":
        """Where MPI knows the operator and the elements."""
        partial = _Partial.of(about, _result(about))
        return None if partial is None else cls(about, partial)

    def __init__(self, about: About, partial: _Partial) -> None:
        super().__init__(about)
        self._partial, self._everywhere = partial, about.operation.pattern == "allreduce"
        root = about.operation.root
        self._root = about.participants[0] if root is None else root

    def begin(self, held: Held) -> Pending:
        mpi, packed, boxes = self.mpi, self._partial.pack(held.data), self._partial.boxes
        op = getattr(mpi, OPERATORS[self._partial.operator])
        is_root = self.about.rank == self._root
        if self._everywhere:
            request = self.comm.Iallreduce(mpi.IN_PLACE, packed, op)
        else:
            given, got = (mpi.IN_PLACE, packed) if is_root else (packed, None)
            request = self.comm.Ireduce(given, got, op, self.about.place_of(self._root))
        gets = self._everywhere or is_root
        finish = (lambda: unpack(held.data, boxes, packed, boxes)) if gets else nothing
        return Pending(request.Test, finish, "library", (packed,))


def _shares(about: About) -> tuple[_Partial, list[int]] | None:
    """Partial results in the order of those who get them, and how much each gets; no element goes to two ranks."""
    regions = [about.received(k) for k in about.participants]
    partial = _Partial.of(about, tuple(box for region in regions for box in region))
    return None if partial is None else (partial, [volume(region) for region in regions])


class WorldReduceScatter(_ByWorld):
    """Equal parts to all ranks."""

    @classmethod
    def of(cls, about: About) -> "WorldReduceScatter | None":
        """Where parts are equal."""
        found = _shares(about) if about.everyone else None
        return None if found is None or len(set(found[1])) > 1 else cls(about, *found)

    def __init__(self, about: About, partial: _Partial, counts: list[int]) -> None:
        super().__init__(about, "reduce-scatter", counts[0], about.dtype, op=partial.operator)
        self._partial, self._shape, self._wanted = partial, (len(counts), counts[0]), about.received(about.rank)

    def begin(self, held: Held) -> Pending:
        packed, wanted = self._partial.pack(held.data).reshape(self._shape), self._wanted
        got = np.empty(self._shape[1], held.data.dtype)
        started, served = self.start(packed, got)
        return Pending(started.test, lambda: unpack(held.data, wanted, got, wanted), served, (packed, got))


class ReduceScatter(_ByLibrary):
    """Parts of any size to some ranks."""

    @classmethod
    def of(cls, about: About) -> "ReduceScatter | None":
        """Where MPI knows the operator and the elements."""
        found = _shares(about)
        return None if found is None else cls(about, *found)

    def __init__(self, about: About, partial: _Partial, counts: list[int]) -> None:
        super().__init__(about)
        self._partial, self._counts, self._wanted = partial, counts, about.received(about.rank)

    def begin(self, held: Held) -> Pending:
        packed, wanted = self._partial.pack(held.data), self._wanted
        got = np.empty(volume(wanted), held.data.dtype)
        op = getattr(self.mpi, OPERATORS[self._partial.operator])
        request = self.comm.Ireduce_scatter(packed, got, self._counts, op)
        return Pending(request.Test, lambda: unpack(held.data, wanted, got, wanted), "library", (packed, got))


class WorldAlltoall(_ByWorld):
    """Every rank has as much for every other one."""

    #: Above so many ranks nobody counts what each pair has.
    MOST_RANKS = 512

    @classmethod
    def of(cls, about: About) -> "WorldAlltoall | None":
        """Where all pairs have equal parts."""
        few = len(about.participants) <= cls.MOST_RANKS
        count = about.discovery.even(about.operation) if about.everyone and few else None
        return None if count is None or not _fits(about.moved) else cls(about, count * about.dtype.itemsize)

    def __init__(self, about: About, count: int) -> None:
        super().__init__(about, "alltoall", count, np.dtype(np.uint8))
        self._shape = (about.transport.ranks, count)

    def begin(self, held: Held) -> Pending:
        given, got = np.empty(self._shape, np.uint8), np.empty(self._shape, np.uint8)
        for k, region in self.about.sends.items():
            pack_into(given[k].view(held.data.dtype), held.data, region)
        # What a rank has for itself stays where it is.
        given[self.about.rank] = 0
        started, served = self.start(given, got)

        def finish() -> None:
            for k, region in self.about.receives.items():
                unpack(held.data, region, got[k].view(held.data.dtype), region)

        return Pending(started.test, finish, served, (given, got))


class _Exchange(_ByLibrary):
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
        return cls(about) if _fits(about.moved) else None

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
        return cls(about) if about.operation.root is not None and _fits(about.moved) else None

    def begin(self, held: Held) -> Pending:
        root = self.about.operation.root or 0
        packed, got = self._pack(held), self._room(held)
        given = [packed.view(np.uint8), self._out, self.mpi.BYTE] if self.about.rank == root else None
        request = self.comm.Iscatterv(given, got.view(np.uint8), self.about.place_of(root))
        return Pending(request.Test, lambda: self._unpack(held, got), "library", (packed, got))


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
