"""A rank's exchanges: the memory that messages and collectives use, and the routes of collectives."""

import numpy as np

from unisono._core import Discovery, Operation, TaskMemory
from unisono.base.facts import reduces
from unisono.tasks import _transport
from unisono.tasks._local_arrays import LocalArray, Route
from unisono.tasks._regions import Data
from unisono.tasks.routes import About, route

#: The largest number of routes that are kept.
_KEPT = 1 << 14


class Exchanges:
    """The memory of the arrays, and the routes of their collectives."""

    def __init__(self, transport: _transport.Transport, discovery: Discovery, by_messages: bool) -> None:
        """Creates the exchanges of the program that a discovery reads."""
        self._transport, self._discovery, self._by_messages = transport, discovery, by_messages
        self._routes: dict[tuple[Operation, int, str | None], Route] = {}
        #: The memory in which messages are packed and received.
        self.memory = TaskMemory(transport.mpi._handleof(transport.comm), _transport.LARGEST)

    def hold(self, data: Data) -> None:
        """Adds the program's next array."""
        self.memory.hold(data.reshape(-1).view(np.uint8), data.shape, data.itemsize)

    def route(self, operation: Operation, array: int, local: LocalArray) -> Route:
        """Returns the route of an operation, prepared. All ranks call it together, once for each run."""
        codes = local.codes is not None and reduces(operation.pattern)
        key = operation, array, None if codes else local.operator
        known = self._routes.get(key)
        if known is None:
            if len(self._routes) >= _KEPT:
                self._routes.clear()
            about = About(self._transport, self._discovery, operation, local.data.dtype, local.data.shape, key[2])
            known = self._routes[key] = route(about, self._by_messages)
        else:
            known.prepare()
        return known

    def can_begin(self, route: Route) -> bool:
        """Returns whether the route can begin without waiting for a channel."""
        return not route.by_world or self._transport.world.is_free()

    @property
    def sending(self) -> bool:
        """Returns whether partial results are being sent."""
        return self._transport.sending

    def carry_sends(self) -> None:
        """Advances these sends."""
        self._transport.carry_sends()
