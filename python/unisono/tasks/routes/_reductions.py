"""Reductions to one rank, to all ranks, or of each part to one rank."""

from typing import Any

import numpy as np

from unisono._core import LibraryCollective
from unisono.mpi import OPERATORS
from unisono.tasks._local_arrays import LocalArray, Pending, nothing
from unisono.tasks._operators import NEUTRAL, by_mpi
from unisono.tasks._regions import Boxes, Data, gather_into, pack, packed_parts, shared_parts, unpack, volume
from unisono.tasks.routes._about import About, LibraryRoute, Side, WorldRoute, fits, library_call


class _Partial:
    """Packed partial results; a rank that does not contribute to an element has the neutral element there."""

    def __init__(self, about: About, boxes: Boxes, operator: str) -> None:
        self.boxes, self.size, self.mine = boxes, volume(boxes), about.given(about.rank)
        self.neutral, self.operator = NEUTRAL[operator](about.dtype), operator
        self.whole = boxes == self.mine

    @classmethod
    def of(cls, about: About, boxes: Boxes) -> "_Partial | None":
        """Returns them if MPI has the operator for the elements, and messages between pairs would not move less."""
        if about.operator is None or not by_mpi(about.dtype):
            return None
        found = cls(about, boxes, about.operator)
        return found if fits(found.size * about.dtype.itemsize) and not found._sparse(about) else None

    def _sparse(self, about: About) -> bool:
        """Returns whether so few ranks contribute to each element that messages between pairs move less."""
        moved, others = about.moved // about.dtype.itemsize, len(about.participants) - 1
        if about.operation.pattern != "allreduce":
            return moved < others * self.size
        # Pairs move all contributions but one for each element, and each result to the other ranks. MPI's best
        # algorithm moves two elements to each of the other ranks for each element.
        given = moved - (others - 1) * self.size
        return given < 2 * self.size

    def call(self, about: About, function: str, counts: list[int] | None = None, **options: Any) -> LibraryCollective:
        """Returns the library's function on the packed partial results; ``counts`` are the sizes of ranks' parts."""
        mpi, dtype = about.transport.mpi, about.dtype
        parts = packed_parts(self.boxes) if self.whole else shared_parts(self.mine, self.boxes)
        return library_call(
            about,
            function,
            datatype=mpi._handleof(mpi._typedict[dtype.char]),
            op=mpi._handleof(getattr(mpi, OPERATORS[self.operator])),
            given=(parts, self.size * dtype.itemsize, counts or [self.size], []),
            neutral=None if self.whole else np.full(1, self.neutral, dtype).tobytes(),
            **options,
        )

    def to_all_or_one(self, about: About) -> LibraryCollective:
        """Returns a reduction to all ranks or to one, in the memory of the partial results."""
        got: Side = packed_parts(self.boxes), self.size * about.dtype.itemsize, [self.size], []
        if about.operation.pattern == "allreduce":
            return self.call(about, "allreduce", got=got, shared=True)
        root = about.participants[0] if about.operation.root is None else about.operation.root
        place = about.place_of(root)
        if about.rank == root:
            return self.call(about, "reduce", root=place, got=got, shared=True)
        return self.call(about, "reduce", root=place)

    def pack(self, data: Data) -> Data:
        """Returns the partial results of this rank."""
        if self.whole:
            return pack(data, self.boxes)
        packed = np.full(self.size, self.neutral, data.dtype)
        gather_into(packed, self.boxes, data, self.mine)
        return packed


def _result(about: About) -> Boxes:
    """Returns the region of the result, on one rank or on all."""
    root = about.operation.root
    return about.received(about.rank if about.operation.pattern == "allreduce" or root is None else root)


class WorldReduction(WorldRoute):
    """A reduction of all ranks' results, to all or to one."""

    @classmethod
    def of(cls, about: About) -> "WorldReduction | None":
        """Returns a route if all ranks get the same bits; some allreduce schedules add in different orders."""
        exact = about.operation.pattern == "reduce" or about.dtype.kind in "iu"
        partial = _Partial.of(about, _result(about)) if exact and about.everyone else None
        return None if partial is None else cls(about, partial)

    def __init__(self, about: About, partial: _Partial) -> None:
        self._root = about.operation.root or 0
        pattern = about.operation.pattern
        self._partial, self._gets = partial, pattern == "allreduce" or about.rank == self._root
        super().__init__(about, pattern, partial.size, about.dtype, op=partial.operator, root=self._root)

    def call(self, about: About) -> LibraryCollective:
        return self._partial.to_all_or_one(about)

    def begin(self, local: LocalArray) -> Pending:
        packed, boxes = self._partial.pack(local.data), self._partial.boxes
        started, served = self.start(packed)
        finish = (lambda: unpack(local.data, boxes, packed, boxes)) if self._gets else nothing
        return Pending(started.test, finish, served, (packed,))


class Reduction(LibraryRoute):
    """A reduction of some ranks, or with the same bits on all."""

    @classmethod
    def of(cls, about: About) -> "Reduction | None":
        """Returns a route if MPI has the operator for the elements."""
        partial = _Partial.of(about, _result(about))
        return None if partial is None else cls(about, partial)

    def __init__(self, about: About, partial: _Partial) -> None:
        self._partial = partial
        super().__init__(about)

    def call(self, about: About) -> LibraryCollective:
        return self._partial.to_all_or_one(about)


def _shares(about: About) -> tuple[_Partial, list[int]] | None:
    """Returns partial results in the order of their receivers, and each receiver's count; the parts are disjoint."""
    regions = [about.received(k) for k in about.participants]
    partial = _Partial.of(about, tuple(box for region in regions for box in region))
    return None if partial is None else (partial, [volume(region) for region in regions])


class WorldReduceScatter(WorldRoute):
    """A reduce-scatter of equal parts to all ranks."""

    @classmethod
    def of(cls, about: About) -> "WorldReduceScatter | None":
        """Returns a route if all ranks get equal parts."""
        found = _shares(about) if about.everyone else None
        return None if found is None or len(set(found[1])) > 1 else cls(about, *found)

    def __init__(self, about: About, partial: _Partial, counts: list[int]) -> None:
        self._partial, self._shape, self._wanted = partial, (len(counts), counts[0]), about.received(about.rank)
        super().__init__(about, "reduce-scatter", counts[0], about.dtype, op=partial.operator)

    def call(self, about: About) -> LibraryCollective:
        count = self._shape[1]
        got: Side = packed_parts(self._wanted), count * about.dtype.itemsize, [count], []
        return self._partial.call(about, "reduce-scatter-block", [count], got=got)

    def begin(self, local: LocalArray) -> Pending:
        packed, wanted = self._partial.pack(local.data).reshape(self._shape), self._wanted
        got = np.empty(self._shape[1], local.data.dtype)
        started, served = self.start(packed, got)
        return Pending(started.test, lambda: unpack(local.data, wanted, got, wanted), served, (packed, got))


class ReduceScatter(LibraryRoute):
    """A reduce-scatter of parts of any size to some ranks."""

    @classmethod
    def of(cls, about: About) -> "ReduceScatter | None":
        """Returns a route if MPI has the operator for the elements."""
        found = _shares(about)
        return None if found is None else cls(about, *found)

    def __init__(self, about: About, partial: _Partial, counts: list[int]) -> None:
        self._partial, self._counts = partial, counts
        super().__init__(about)

    def call(self, about: About) -> LibraryCollective:
        wanted, itemsize = about.received(about.rank), about.dtype.itemsize
        got: Side = packed_parts(wanted), volume(wanted) * itemsize, [volume(wanted)], []
        return self._partial.call(about, "reduce-scatter", self._counts, got=got)
