"""Worlds: planned collectives of a communicator, and calls under way; see :mod:`unisono.mpi`."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from unisono import _core
from unisono._core import InputError, Machine
from unisono.base import names
from unisono.base.facts import reduces
from unisono.base.switches import report_unknown
from unisono.mpi.library import import_mpi
from unisono.mpi.sources import BOTH, Array, Call, CallFacts, Group, LibraryOnly, Model, Source, Table

__all__ = ["OPERATORS", "CallFacts", "Operation", "World", "world"]

#: The names of operators in MPI, by their names here.
OPERATORS = {
    "sum": "SUM",
    "prod": "PROD",
    "min": "MIN",
    "max": "MAX",
    "land": "LAND",
    "lor": "LOR",
    "lxor": "LXOR",
    "band": "BAND",
    "bor": "BOR",
    "bxor": "BXOR",
}
#: The operators that MPI defines for each kind of NumPy type; for kinds that are not listed (integers), all.
_DEFINED = {
    "b": ("land", "lor", "lxor"),
    "f": ("sum", "prod", "min", "max"),
    "c": ("sum", "prod"),
}

#: The functions of mpi4py; names of nonblocking functions begin with an additional I.
_FUNCTIONS = {
    "allgather": "Allgather",
    "allreduce": "Allreduce",
    "alltoall": "Alltoall",
    "barrier": "Barrier",
    "broadcast": "Bcast",
    "gather": "Gather",
    "reduce": "Reduce",
    "reduce-scatter": "Reduce_scatter_block",
    "scan": "Scan",
    "scatter": "Scatter",
}
#: The collectives whose result replaces the contents of the array.
_IN_PLACE = {"allreduce", "reduce", "broadcast", "scan"}
#: The collectives whose result has the whole array of each rank.
_JOINED = {"allgather", "gather"}
#: The largest number of choices that a world caches.
_KEPT = 4096


class Operation:
    """A collective call under way."""

    def __init__(self, result: Array | None, ran: CallFacts, poll: Callable[[], bool]) -> None:
        self._poll = poll
        self._done = False
        #: The result on this rank, which must not be accessed before the call is complete.
        self.result = result
        #: The algorithm that runs, and the reason for it.
        self.ran = ran

    def test(self) -> bool:
        """Advances the call, and returns whether it is complete."""
        self._done = self._done or self._poll()
        return self._done

    def wait(self) -> Array | None:
        """Waits until the call is complete, and returns its result."""
        while not self.test():
            # This lets other ranks on the same core run.
            os.sched_yield()
        return self.result


class World:
    """Collectives among the ranks of a communicator; `world` makes a `World`."""

    #: The algorithm of the latest call, and the reason for it; None before the first call.
    last: CallFacts | None = None

    def __init__(self, mpi: Any, comm: Any, channels: int, safe_ops: bool) -> None:
        """Makes a world that uses the library's own collectives, until `use_machine` or `use_plan`."""
        self._mpi, self._comm, self._safe_ops = mpi, comm, safe_ops
        self._channels = [_core.Channel(mpi._handleof(comm)) for _ in range(channels)]
        self._pending: list[Operation | None] = [None] * channels
        self._issued = 0
        #: The choices, by the arguments that are equal on all ranks. ``_operators`` has MPI's handles, by operator and
        #: datatype.
        self._chosen: dict[tuple[Any, ...], tuple[int | None, CallFacts]] = {}
        self._operators: dict[tuple[str, str], tuple[int, int]] = {}
        self._group = Group(comm, self._channels)
        self._source: Source = LibraryOnly(self._group)
        self.ranks = self._group.ranks
        self.rank = self._group.rank
        self.per_node = self._group.per_node

    def __repr__(self) -> str:
        return f"<unisono.mpi.World of {self.ranks} ranks, this one rank {self.rank}>"

    def use_machine(self, machine: Machine | str | os.PathLike[str]) -> None:
        """Plans later calls by a machine's model; all ranks call this together.

        Raises:
            InputError: rank 0 finds no such machine of ranks.

        """
        self._source = Model(self._group, machine)
        self._chosen.clear()

    def use_plan(self, plan: str | os.PathLike[str]) -> None:
        """Serves later calls from a plan file; all ranks call this together.

        Raises:
            InputError: rank 0 cannot use the file.

        """
        self._source = Table(self._group, plan)
        self._chosen.clear()

    def allreduce(self, x: Array, op: Any = "sum") -> Array:
        """Replaces every rank's ``x`` by the element-wise reduction of all ranks' arrays by ``op``, and returns it."""
        return self._made("allreduce", x, op=op)

    def reduce(self, x: Array, op: Any = "sum", root: int = 0) -> Array:
        """Replaces the root's ``x`` by the reduction of all ranks' arrays by ``op``; others' ``x`` is unchanged."""
        return self._made("reduce", x, op=op, root=root)

    def bcast(self, x: Array, root: int = 0) -> Array:
        """Replaces every rank's ``x`` by the root's, and returns it."""
        return self._made("broadcast", x, root=root)

    def scan(self, x: Array, op: Any = "sum") -> Array:
        """Replaces rank ``k``'s ``x`` by the reduction of the arrays of ranks 0 to ``k`` by ``op``, and returns it."""
        return self._made("scan", x, op=op)

    def gather(self, x: Array, root: int = 0, out: Array | None = None) -> Array | None:
        """Returns the arrays of all ranks at the root: ``out[k]`` is rank ``k``'s ``x``; elsewhere returns None."""
        call = self._describe("gather", x, "sum", root, out)
        self._issue(call, call.got, wait=True)
        return call.got

    def scatter(self, x: Array | None = None, root: int = 0, out: Array | None = None) -> Array:
        """Returns on rank ``k`` the root's ``x[k]``.

        Only the root's ``x`` is read. Other ranks do not know its type and shape, so they give the array ``out`` that
        receives the item, of the type and shape of an item of ``x``.
        """
        return self._made("scatter", x, root=root, out=out)

    def allgather(self, x: Array, out: Array | None = None) -> Array:
        """Returns the arrays of all ranks: ``out[k]`` is rank ``k``'s ``x``."""
        return self._made("allgather", x, out=out)

    def reduce_scatter(self, x: Array, op: Any = "sum", out: Array | None = None) -> Array:
        """Returns on rank ``k`` the reduction of all ranks' ``x[k]`` by ``op``; ``x`` has one item a rank."""
        return self._made("reduce-scatter", x, op=op, out=out)

    def alltoall(self, x: Array, out: Array | None = None) -> Array:
        """Sends ``x[k]`` to rank ``k``, and returns ``out``, where ``out[k]`` is the item that rank ``k`` sent here."""
        return self._made("alltoall", x, out=out)

    def barrier(self) -> None:
        """Waits until all ranks have called this function."""
        self._issue(self._describe("barrier", None, "sum", 0, None), None, wait=True)

    def start(
        self, collective: str, x: Array | None = None, *, op: Any = "sum", root: int = 0, out: Array | None = None
    ) -> Operation:
        """Begins a collective and returns at once.

        The arrays are as for the method of that name. The operation keeps them alive until it is complete. If all
        channels are busy, the function first waits for the oldest call.
        """
        call = self._describe(collective, x, op, root, out)
        result = None if collective == "barrier" else x if collective in _IN_PLACE else call.got
        return self._issue(call, result, wait=False)

    def prepare(
        self, collective: str, count: int, dtype: npt.DTypeLike = np.uint8, *, op: str = "sum", root: int = 0
    ) -> CallFacts:
        """Returns the algorithm of later calls of ``count`` elements; all ranks call this together.

        If each rank has a piece, ``count`` is the number of elements of a piece. If a model makes the plan, the ranks
        wait for each other here, so that a later call of this size begins without a wait.
        """
        if collective not in _FUNCTIONS or collective == "barrier":
            known = ", ".join(name for name in _FUNCTIONS if name != "barrier")
            raise InputError(f"'{collective}' is nothing to prepare; accepted are {known}")
        if count < 0:
            raise InputError(f"count is {count}; accepted is a whole number from 0 on")
        kind = np.dtype(dtype)
        call = Call(collective, count * kind.itemsize, 1, root)
        if reduces(collective):
            call.elements, call.unit = count, kind.itemsize
            self._set_operator(call, op, kind)
        return self._choice(call)[1]

    def is_free(self) -> bool:
        """Returns whether the next call of :meth:`start` begins without waiting for an earlier call."""
        before = self._pending[self._issued % len(self._channels)]
        return before is None or before.test()

    def close(self) -> None:
        """Waits for the end of all calls, and frees the world's communicators; all ranks call this together."""
        for operation in self._pending:
            if operation is not None:
                operation.wait()
        for channel in self._channels:
            channel.close()

    def _made(
        self, collective: str, x: Array | None, op: Any = "sum", root: int = 0, out: Array | None = None
    ) -> Array:
        call = self._describe(collective, x, op, root, out)
        result = x if collective in _IN_PLACE else call.got
        self._issue(call, result, wait=True)
        assert result is not None, "all but a barrier and a gather have one"
        return result

    def _issue(self, call: Call, result: Array | None, wait: bool) -> Operation:
        at = self._issued % len(self._channels)
        self._issued += 1
        if (before := self._pending[at]) is not None:
            before.wait()
            self._pending[at] = None
        number, self.last = self._choice(call)
        if number is None:
            request = self._by_library(call, result, wait)
            held = (request, call.given, call.got, result)
            poll = _over if request is None else _core.LibraryCall(self._mpi._handleof(request), held).poll
        else:
            channel = self._channels[at]
            call_words = (call.collective, call.root, call.elements, call.unit, call.datatype, call.op)
            given, got = _with_axis(call.given), _with_axis(call.got)
            done = channel.start(number, *call_words, given, got, call.in_place, wait)
            poll = _over if done else channel.poll
        operation = Operation(result, self.last, poll)
        if not wait:
            self._pending[at] = operation
        return operation

    def _choice(self, call: Call) -> tuple[int | None, CallFacts]:
        """Returns the source's choice for a call, cached by the arguments that are equal on all ranks.

        Choices for operators of the program are not cached, because their handles may be reused.
        """
        if not call.predefined:
            return self._source.choose(call)
        key = (call.collective, call.elements, call.unit, call.root, call.datatype, call.op)
        found = self._chosen.get(key)
        if found is None:
            if len(self._chosen) >= _KEPT:
                self._chosen.clear()
            found = self._chosen[key] = self._source.choose(call)
        return found

    def _by_library(self, call: Call, result: Array | None, wait: bool) -> Any:
        """Makes a call by the MPI library; returns its request if the call is not waited for."""
        name = _FUNCTIONS[call.collective]
        function = getattr(self._comm, name if wait else f"I{name.lower()}")
        given = self._mpi.IN_PLACE if call.in_place else call.given
        reduces = [] if call.op is None else [self._mpi.Op.fromhandle(call.op)]
        match call.collective:
            case "barrier":
                return function()
            case "broadcast":
                return function(result, call.root)
            case "reduce" | "gather" | "scatter":
                return function(given, call.got, *reduces, call.root)
            case _:
                return function(given, call.got, *reduces)

    def _describe(self, collective: str, x: Array | None, op: Any, root: int, out: Array | None) -> Call:
        if collective not in _FUNCTIONS:
            raise InputError(f"'{collective}' is no collective of a world; accepted are {', '.join(_FUNCTIONS)}")
        if not 0 <= root < self.ranks:
            raise InputError(f"root is {root}; accepted are 0 to {self.ranks - 1}")
        if collective == "barrier":
            # A barrier has one element, whose value is unused but which needs memory.
            return Call(collective, 1, 1, given=np.zeros(1, np.uint8), got=np.zeros(1, np.uint8))
        is_root = self.rank == root
        if collective == "scatter" and not is_root:
            if out is None:
                raise InputError(
                    f"out is missing on rank {self.rank}; scatter needs an array for the item of this rank"
                )
            _check("out", out, writable=True)
            return Call(collective, out.nbytes, 1, root, got=out)
        if x is None:
            raise InputError(f"{collective} needs an array")
        gets = {"allreduce": True, "scan": True, "reduce": is_root, "broadcast": not is_root}.get(collective, False)
        _check("the array", x, writable=gets)
        # In collectives that only move data, an element is a byte.
        call = Call(collective, x.nbytes, 1, root, given=x)
        if reduces(collective):
            call.elements, call.unit = x.size, x.itemsize
            self._set_operator(call, op, x.dtype)
        match collective:
            case "allreduce" | "scan":
                call.got, call.in_place = x, True
            case "reduce":
                call.got, call.in_place = (x, True) if is_root else (None, False)
            case "broadcast":
                call.given, call.got = (x, None) if is_root else (None, x)
            case "gather" if not is_root:
                if out is not None:
                    raise InputError(f"out is given on rank {self.rank}; only the root, {root}, has a result of gather")
            case _:
                call.got = self._result(collective, x, out)
                call.elements = call.elements if collective in _JOINED else call.elements // self.ranks
        return call

    def _set_operator(self, call: Call, op: Any, dtype: np.dtype[Any]) -> None:
        mpi = self._mpi
        if isinstance(op, str) and dtype.isnative and (known := self._operators.get((op, dtype.char))):
            call.datatype, call.op = known
            return
        datatype = mpi._typedict.get(dtype.char)
        if datatype is None or dtype.kind not in "?bBiufc" or not dtype.isnative:
            raise InputError(f"arrays of {dtype} cannot be reduced by MPI; accepted are numbers and bool")
        name = op
        if not isinstance(op, mpi.Op):
            op = names.operator(op, tuple(OPERATORS), ", and operators of mpi4py")
            _check_defined(op, dtype)
            op = getattr(mpi, OPERATORS[op])
        elif (own := next((key for key, of in OPERATORS.items() if op == getattr(mpi, of)), None)) is not None:
            _check_defined(own, dtype)
        else:
            if op.is_predefined:
                call.refused = "no plan serves this operator"
            elif not self._safe_ops:
                call.refused = "the operator is the program's own, and was not declared safe"
            call.commutes, call.predefined = op.Is_commutative(), op.is_predefined
        call.datatype, call.op = mpi._handleof(datatype), mpi._handleof(op)
        if isinstance(name, str):
            self._operators[name, dtype.char] = call.datatype, call.op

    def _result(self, collective: str, x: Array, out: Array | None) -> Array:
        if collective not in _JOINED and (x.ndim == 0 or x.shape[0] != self.ranks):
            message = f"{collective} on {self.ranks} ranks needs a first axis of {self.ranks}"
            raise InputError(f"the array's shape is {x.shape}; {message}")
        shape = x.shape if collective == "alltoall" else x.shape[1:]
        if collective in _JOINED:
            shape = (self.ranks, *x.shape)
        if out is None:
            return np.empty(shape, x.dtype)
        _check("out", out, writable=True)
        if out.shape != shape or out.dtype != x.dtype:
            raise InputError(f"out is {out.dtype} of shape {out.shape}; {collective} needs {x.dtype} of shape {shape}")
        if np.may_share_memory(out, x):
            raise InputError(f"out and the array share memory; {collective} needs another array for its result")
        return out


def _check(what: str, x: Array, writable: bool) -> None:
    if not isinstance(x, np.ndarray):
        raise InputError(f"{what} is a {type(x).__name__}; accepted are arrays of NumPy")
    if isinstance(x, np.ma.MaskedArray):
        raise InputError(f"{what} is masked, and MPI would ignore its mask; give its .filled(VALUE), or its .data")
    if x.dtype.hasobject:
        raise InputError(f"{what} holds Python objects; accepted are numbers and bool")
    if not x.flags.c_contiguous:
        raise InputError(f"{what} is not contiguous; np.ascontiguousarray makes one that is")
    if writable and not x.flags.writeable:
        raise InputError(f"{what} is read-only, and the result goes there")


def _check_defined(op: str, dtype: np.dtype[Any]) -> None:
    """Refuses an operator that MPI does not define for a type, for which an MPI library would abort the program."""
    accepted = _DEFINED.get(dtype.kind, tuple(OPERATORS))
    if op not in accepted:
        other = "; to count, convert the array with astype(np.int64)" if dtype.kind == "b" else ""
        raise InputError(
            f"op is {op!r}, which MPI does not define for {dtype}; accepted are {', '.join(accepted)}{other}"
        )


def _with_axis(x: Array | None) -> Array | None:
    """Returns an array without axes as a view with one axis and one element.

    The shape of a buffer without axes cannot be read.
    """
    return x.reshape(1) if x is not None and x.ndim == 0 else x


def _over() -> bool:
    return True


def world(
    machine: Machine | str | os.PathLike[str] | None = None,
    *,
    plan: str | os.PathLike[str] | None = None,
    comm: Any = None,
    channels: int = 1,
    safe_ops: bool = False,
) -> World:
    """Returns planned collectives of MPI's world or of ``comm`` of mpi4py; all its ranks call this together.

    ``machine`` is a preset's name, a machine file as ``unisono calibrate`` writes it, or a `Machine`; ``plan`` a plan
    file as ``unisono tune`` writes it. Rank 0 reads them for all ranks. ``safe_ops`` declares that the program's own
    operators (``mpi4py.MPI.Op``) are associative and combine element by element, so that a plan may serve them.

    Raises:
        InputError: there is no MPI, a file cannot be used, or both a machine and a plan are given.

    """
    if machine is not None and plan is not None:
        raise InputError(BOTH)
    if channels < 1:
        raise InputError(f"channels is {channels}; accepted is a whole number from 1 on")
    report_unknown()
    mpi = import_mpi()
    comm = mpi.COMM_WORLD if comm is None else comm
    if comm.Is_inter():
        raise InputError("the communicator connects two groups; a world needs an intra-communicator")
    made = World(mpi, comm, channels, safe_ops)
    if machine is not None:
        made.use_machine(machine)
    if plan is not None:
        made.use_plan(plan)
    return made
