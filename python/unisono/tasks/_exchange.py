"""The functions that `unisono._core.TaskSchedule` calls for communicators and planned collectives."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unisono._core import Reducing, TaskMemory, WorldCall
from unisono.mpi import OPERATORS
from unisono.tasks import _transport
from unisono.tasks._local_arrays import LocalArray
from unisono.tasks._operators import NAMES, NEUTRAL, by_mpi
from unisono.tasks._regions import Data


@dataclass
class Planned:
    """A planned collective under way: `poll` returns whether it has ended, and `finish` then completes it."""

    poll: Callable[[], bool]
    finish: Callable[[], None]
    #: The name of the plan that carries out the collective.
    served: str


class Exchanges:
    """The memory of the arrays, and the planned collectives."""

    def __init__(self, transport: _transport.Transport, by_messages: bool) -> None:
        """Creates the exchanges of one program."""
        self._transport = transport
        #: The memory in which messages are packed and received.
        self.memory = TaskMemory(transport.mpi._handleof(transport.comm), _transport.LARGEST, by_messages)

    def hold(self, data: Data) -> None:
        """Adds the program's next array."""
        self.memory.hold(data.reshape(-1).view(np.uint8), data.shape, data.itemsize)

    def hold_codes(self, number: int, local: LocalArray) -> None:
        """Adds the operator codes of an array whose tasks have several operators."""
        if local.codes is not None:
            self.memory.hold_codes(number, local.codes.reshape(-1), local.codes.shape)

    def reducing(self, local: LocalArray) -> Reducing:
        """Returns the operator that combines an array's partial results; with operator codes, the elements name it."""
        if local.codes is not None:
            return Reducing(None)
        operator, dtype, mpi = local.operator or "sum", local.data.dtype, self._transport.mpi
        if not by_mpi(dtype):
            return Reducing(NAMES.index(operator))
        return Reducing(
            NAMES.index(operator),
            datatype=mpi._handleof(mpi._typedict[dtype.char]),
            op=mpi._handleof(getattr(mpi, OPERATORS[operator])),
            neutral=np.full(1, NEUTRAL[operator](dtype), dtype).tobytes(),
            exact=dtype.kind in "iu",
        )

    def communicator(self, participants: tuple[int, ...]) -> int:
        """Returns the handle of a communicator; the participants call this in the order of their collectives."""
        handle: int = self._transport.mpi._handleof(self._transport.among(participants))
        return handle

    def is_planned(self, call: WorldCall, local: LocalArray) -> bool:
        """Prepares a collective, and returns whether a plan carries it out. All ranks call this together."""
        dtype = local.data.dtype if call.combines else np.dtype(np.uint8)
        world, op = self._transport.world, local.operator or "sum"
        return world.prepare(call.collective, call.count, dtype, op=op, root=call.root).planned

    def can_start(self) -> bool:
        """Returns whether the next planned collective begins without waiting for a channel."""
        return self._transport.world.is_free()

    def start(self, call: WorldCall, local: LocalArray, in_place: bool) -> Planned:
        """Begins a planned collective. With ``in_place`` the result is written directly into the array."""
        octets = local.data.reshape(-1).view(np.uint8)
        if call.at is None:
            given = np.empty(call.bytes, np.uint8)
            call.pack(given)
        else:
            given = octets[call.at : call.at + call.bytes]
        got, into = None, call.in_place if in_place else None
        if call.result_bytes is not None:
            got = np.empty(call.result_bytes, np.uint8) if into is None else octets[into : into + call.result_bytes]
        dtype, ranks = local.data.dtype if call.combines else np.dtype(np.uint8), self._transport.ranks
        x, out = given.view(dtype), None if got is None else got.view(dtype)
        if call.collective in {"alltoall", "reduce-scatter"}:
            x = x.reshape(ranks, -1)
        if out is not None and call.collective in {"alltoall", "allgather"}:
            out = out.reshape(ranks, -1)
        op = local.operator or "sum"
        started = self._transport.world.start(call.collective, x, out=out, op=op, root=call.root)

        def finish() -> None:
            if call.at is None and into is None:
                call.unpack(given if got is None else got)

        return Planned(started.test, finish, f"plan: {started.ran.algorithm}" if started.ran.planned else "library")

    def unproved(self, error: Exception) -> None:
        """Ends all ranks after a failed proof of this rank's messages, since it may have failed on this rank alone."""
        with self._transport.proving():
            raise error
