"""Partial results, combined on one rank, on all, or each part on one."""

import numpy as np

from unisono.mpi import OPERATORS
from unisono.tasks._held import Held, Pending, nothing
from unisono.tasks._operators import NEUTRAL, by_mpi
from unisono.tasks._regions import Boxes, Data, gather_into, pack, unpack, volume
from unisono.tasks.routes._about import About, ByLibrary, ByWorld, fits


class _Partial:
    """Partial results, packed; who contributes nothing to an element brings what changes nothing."""

    def __init__(self, about: About, boxes: Boxes, operator: str) -> None:
        self.boxes, self.size, self.mine = boxes, volume(boxes), about.given(about.rank)
        self.neutral, self.operator = NEUTRAL[operator](about.dtype), operator
        self.whole = boxes == self.mine

    @classmethod
    def of(cls, about: About, boxes: Boxes) -> "_Partial | None":
        """Where MPI knows the operator and the elements, and messages between pairs would not move less."""
        if about.operator is None or not by_mpi(about.dtype):
            return None
        found = cls(about, boxes, about.operator)
        return found if fits(found.size * about.dtype.itemsize) and not found._sparse(about) else None

    def _sparse(self, about: About) -> bool:
        """Whether so few contribute to an element that MPI, for which all do, would move more than pairs would."""
        moved, others = about.moved // about.dtype.itemsize, len(about.participants) - 1
        if about.operation.pattern != "allreduce":
            return moved < others * self.size
        # All contributions but one move for each element, and each result to the others. Pairs would move
        # every contribution to the others, MPI's best algorithm two elements to each for each element.
        given = moved - (others - 1) * self.size
        return given < 2 * self.size

    def pack(self, data: Data) -> Data:
        """Its own."""
        if self.whole:
            return pack(data, self.boxes)
        packed = np.full(self.size, self.neutral, data.dtype)
        gather_into(packed, self.boxes, data, self.mine)
        return packed


def _result(about: About) -> Boxes:
    """A reduction to one rank or to all."""
    root = about.operation.root
    return about.received(about.rank if about.operation.pattern == "allreduce" or root is None else root)


class WorldReduction(ByWorld):
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


class Reduction(ByLibrary):
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


class WorldReduceScatter(ByWorld):
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


class ReduceScatter(ByLibrary):
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
