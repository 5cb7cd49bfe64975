"""A rank's part in the collectives of a program, begun and asked for: by a plan, by the library, or by messages."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unisono._core import Discovery, Operation
from unisono.mpi import OPERATORS
from unisono.tasks._device import Mirror
from unisono.tasks._operators import COMBINE, NAMES, NEUTRAL, by_mpi
from unisono.tasks._regions import Boxes, Data, common, gather_into, pack, pieces, place, unpack, volume
from unisono.tasks._transport import EXCHANGE, LARGEST, PUSH, Poll, Transport

_REDUCES = ("reduce", "allreduce", "reduce-scatter")


@dataclass
class Pending:
    """What is under way: whether it is over, and what then remains to be done."""

    poll: Poll
    finish: Callable[[], None]


@dataclass
class Held:
    """An array as this rank holds it: in full size, of which memory pages that nothing touches take no room."""

    data: Data
    #: The operator that combines its partial results.
    operator: str | None = None
    #: For each element the last operator's number, where tasks have several.
    codes: npt.NDArray[np.uint8] | None = None
    #: Its copy on a device, where kernels there touch it; it may have the latest contents alone.
    mirror: Mirror | None = None

    def to_host(self, region: Boxes) -> None:
        """Sees to it that ``data`` has the latest contents of a region."""
        if self.mirror:
            self.mirror.to_host(region)

    def host_wrote(self, region: Boxes) -> None:
        """A region of ``data`` gets new contents."""
        if self.mirror:
            self.mirror.host_wrote(region)

    def combine_by(self, operator: str) -> None:
        """Another task reduces it."""
        if self.operator not in (None, operator) and self.codes is None:
            self.codes = np.full(self.data.shape, NAMES.index(self.operator or operator), np.uint8)
        self.operator = self.operator or operator


class Exchanges:
    """Begins pushes, receipts and collectives."""

    def __init__(self, transport: Transport, discovery: Discovery, by_messages: bool) -> None:
        """For the program that a discovery reads."""
        self._transport, self._discovery, self._by_messages = transport, discovery, by_messages

    def push(self, held: Held, to: int, region: Boxes) -> None:
        """Sends a copy, so that the array is free at once."""
        self._transport.send(to, pack(held.data, region), PUSH)

    def receive(self, held: Held, rows: list[tuple[int, Boxes]]) -> Pending:
        """What others push for one read."""
        got = [(region, np.empty(volume(region), held.data.dtype)) for _, region in rows]
        requests = []
        for (source, _), (_, data) in zip(rows, got, strict=True):
            requests += self._transport.receive(source, data, PUSH)

        def finish() -> None:
            for region, data in got:
                unpack(held.data, region, data, region)

        return Pending(self._transport.all_of(requests), finish)

    def collective(self, held: Held, operation: Operation) -> Pending:
        """What this rank does in it; all that take part begin it in the same order."""
        pattern = operation.pattern
        # All ranks come to the same answer: it depends on nothing that is a rank's own.
        fits = held.data.nbytes * len(operation.participants) <= LARGEST
        if self._by_messages or not fits or pattern == "reduce-scatter":
            return self._messages(held, operation)
        if pattern in _REDUCES:
            if held.operator is None or held.codes is not None or not by_mpi(held.data.dtype):
                return self._messages(held, operation)
            return self._reduction(held, operation, held.operator)
        if pattern == "broadcast" and operation.root is not None:
            return self._broadcast(held, operation, operation.root)
        if pattern in ("gather", "allgather"):
            return self._gather(held, operation)
        return self._alltoall(held, operation)

    def _messages(self, held: Held, operation: Operation) -> Pending:
        """Every pair by itself. Partial results are combined in the order of ranks, so to the same bits everywhere."""
        discovery, rank = self._discovery, self._transport.rank
        coded = operation.pattern in _REDUCES and held.codes is not None
        for to, region in discovery.sends(operation, rank):
            self._transport.send(to, pack(held.data, region), EXCHANGE)
            if coded and held.codes is not None:
                self._transport.send(to, pack(held.codes, region), EXCHANGE)
        parts: list[tuple[int, Boxes, Data, Data | None]] = []
        requests = []
        for source, region in discovery.receives(operation, rank):
            data = np.empty(volume(region), held.data.dtype)
            requests += self._transport.receive(source, data, EXCHANGE)
            codes = np.empty(data.size, np.uint8) if coded else None
            if codes is not None:
                requests += self._transport.receive(source, codes, EXCHANGE)
            parts.append((source, region, data, codes))
        if operation.pattern not in _REDUCES:

            def finish() -> None:
                for _, region, data, _ in parts:
                    unpack(held.data, region, data, region)

            return Pending(self._transport.all_of(requests), finish)
        given = common(discovery.given(operation, rank), discovery.received(operation, rank))
        own = (rank, given, pack(held.data, given), pack(held.codes, given) if held.codes is not None else None)
        parts = sorted([*parts, own], key=lambda part: part[0])
        return Pending(self._transport.all_of(requests), lambda: _combine(held, parts))

    def _reduction(self, held: Held, operation: Operation, operator: str) -> Pending:
        root, discovery, rank = operation.root, self._discovery, self._transport.rank
        everywhere = operation.pattern == "allreduce"
        result = discovery.received(operation, rank if everywhere or root is None else root)
        # Who contributes nothing to an element brings what changes nothing.
        packed = np.full(volume(result), NEUTRAL[operator](held.data.dtype), held.data.dtype)
        gather_into(packed, result, held.data, discovery.given(operation, rank))
        finish = (lambda: unpack(held.data, result, packed, result)) if everywhere or rank == root else _nothing
        participants = tuple(operation.participants)
        # Some schedules of allreduce add in another order on each rank, which shows in floating-point numbers.
        exact = not everywhere or held.data.dtype.kind in "iu"
        if exact and len(participants) == self._transport.ranks:
            started = self._transport.world.start(operation.pattern, packed, op=operator, root=root or 0)
            return Pending(started.test, finish)
        mpi, comm = self._transport.mpi, self._transport.among(participants)
        op = getattr(mpi, OPERATORS[operator])
        if everywhere:
            return Pending(comm.Iallreduce(mpi.IN_PLACE, packed, op).Test, finish)
        at = participants.index(root or 0)
        given, got = (mpi.IN_PLACE, packed) if rank == root else (packed, None)
        return Pending(_holding(comm.Ireduce(given, got, op, at), packed), finish)

    def _broadcast(self, held: Held, operation: Operation, root: int) -> Pending:
        rank, participants = self._transport.rank, tuple(operation.participants)
        region = self._discovery.given(operation, root)
        packed = pack(held.data, region) if rank == root else np.empty(volume(region), held.data.dtype)
        octets, wanted = packed.view(np.uint8), self._discovery.received(operation, rank)
        if len(participants) == self._transport.ranks:
            poll = self._transport.world.start("broadcast", octets, root=root).test
        else:
            comm = self._transport.among(participants)
            poll = _holding(comm.Ibcast(octets, participants.index(root)), packed)
        return Pending(poll, lambda: unpack(held.data, wanted, packed, region))

    def _gather(self, held: Held, operation: Operation) -> Pending:
        """One rank, or all, get what each gives, and take from it what they lack."""
        rank, participants = self._transport.rank, tuple(operation.participants)
        discovery, size = self._discovery, held.data.itemsize
        regions = [discovery.given(operation, k) for k in participants]
        counts = [volume(region) * size for region in regions]
        starts = np.concatenate([[0], np.cumsum(counts)])
        mine = pack(held.data, discovery.given(operation, rank)).view(np.uint8)
        gets = operation.pattern == "allgather" or rank == operation.root
        got = np.empty(starts[-1] if gets else 0, np.uint8)
        if gets and len(participants) == self._transport.ranks and len(set(counts)) == 1 and operation.root is None:
            shaped = got.reshape(len(participants), counts[0])
            poll = self._transport.world.start("allgather", mine, out=shaped).test
        else:
            mpi, comm = self._transport.mpi, self._transport.among(participants)
            into = [got, (counts, starts[:-1].tolist()), mpi.BYTE]
            if operation.pattern == "allgather":
                request = comm.Iallgatherv(mine, into)
            else:
                request = comm.Igatherv(mine, into if gets else None, participants.index(operation.root or 0))
            poll = _holding(request, mine, got)
        wanted = dict(discovery.receives(operation, rank)) if gets else {}

        def finish() -> None:
            for k, source in enumerate(participants):
                if source in wanted:
                    part = got[starts[k] : starts[k + 1]].view(held.data.dtype)
                    unpack(held.data, wanted[source], part, regions[k])

        return Pending(poll, finish)

    def _alltoall(self, held: Held, operation: Operation) -> Pending:
        """Each pair has something of its own; a scatter too, where only one has something."""
        rank, participants = self._transport.rank, tuple(operation.participants)
        mpi, comm, size = self._transport.mpi, self._transport.among(participants), held.data.itemsize
        sends = dict(self._discovery.sends(operation, rank))
        receives = dict(self._discovery.receives(operation, rank))

        def layout(regions: Mapping[int, Boxes]) -> tuple[list[int], list[int]]:
            counts = [volume(regions.get(k, ())) * size for k in participants]
            return counts, np.concatenate([[0], np.cumsum(counts)])[:-1].tolist()

        packed = [pack(held.data, sends[k]) for k in participants if k in sends]
        mine = np.concatenate(packed).view(np.uint8) if packed else np.empty(0, np.uint8)
        got = np.empty(sum(volume(region) for region in receives.values()), held.data.dtype)
        request = comm.Ialltoallv([mine, layout(sends), mpi.BYTE], [got.view(np.uint8), layout(receives), mpi.BYTE])

        def finish() -> None:
            at = 0
            for k in participants:
                if k in receives:
                    size = volume(receives[k])
                    unpack(held.data, receives[k], got[at : at + size], receives[k])
                    at += size

        return Pending(_holding(request, mine, got), finish)


def _combine(held: Held, parts: list[tuple[int, Boxes, Data, Data | None]]) -> None:
    """What all brought, in the place of the result: neutral elements first, then each rank's."""
    for start in (True, False):
        for _, region, data, codes in parts:
            numbers = pieces(codes, region) if codes is not None else ((box, None) for box in region)
            for (box, piece), (_, coded) in zip(pieces(data, region), numbers, strict=True):
                into = held.data[place(box)]
                names = [held.operator or "sum"] if coded is None else [NAMES[code] for code in np.unique(coded)]
                for name in names:
                    where = ... if coded is None else coded == NAMES.index(name)
                    into[where] = NEUTRAL[name](into.dtype) if start else COMBINE[name](into[where], piece[where])


def _holding(request: Any, *buffers: Data) -> Poll:
    """A request with the memory that it works on."""
    return lambda: bool(buffers is not None and request.Test())


def _nothing() -> None:
    """Where nothing remains to be done."""
