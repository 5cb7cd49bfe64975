"""A rank's exchanges, begun and asked for: messages between pairs, and collectives by their routes."""

from collections.abc import Sequence
from typing import Any

from unisono._core import Discovery, Operation
from unisono.base.facts import reduces
from unisono.tasks._held import Held, Pending, Route
from unisono.tasks._messages import receive
from unisono.tasks._regions import Boxes, pack
from unisono.tasks._transport import PUSH, Transport
from unisono.tasks.routes import About, route

#: Routes that are kept.
_KEPT = 1 << 14


class Exchanges:
    """Begins pushes, receipts and collectives."""

    def __init__(self, transport: Transport, discovery: Discovery, by_messages: bool) -> None:
        """For the program that a discovery reads."""
        self._transport, self._discovery, self._by_messages = transport, discovery, by_messages
        self._routes: dict[tuple[Operation, int, str | None], Route] = {}

    def prepare(self, commands: Sequence[tuple[Any, ...]], held: Sequence[Held]) -> dict[int, Route]:
        """The routes of collectives, by command. All ranks call it together.

        Communicators are made here and schedules planned, for which ranks wait for each other: with nothing under way,
        and in one order. So what begins later never waits.
        """
        found: dict[int, Route] = {}
        prepared: set[int] = set()
        for command in commands:
            if command[0] == "collective":
                array, operation = command[4], command[6]
                codes = held[array].codes is not None and reduces(operation.pattern)
                key = operation, array, None if codes else held[array].operator
                known = self._routes.get(key)
                if known is None:
                    if len(self._routes) >= _KEPT:
                        self._routes.clear()
                    data, transport = held[array].data, self._transport
                    about = About(transport, self._discovery, operation, data.dtype, data.shape, key[2])
                    known = self._routes[key] = route(about, self._by_messages)
                elif id(known) not in prepared:
                    known.prepare()
                prepared.add(id(known))
                found[command[1]] = known
        return found

    def can_begin(self, route: Route) -> bool:
        """Whether beginning it waits for nothing."""
        return not route.by_world or self._transport.world.is_free()

    @property
    def sending(self) -> bool:
        """Whether anything is on its way to others."""
        return self._transport.sending

    def carry_sends(self) -> None:
        """Carries that on."""
        self._transport.carry_sends()

    def push(self, held: Held, to: int, region: Boxes) -> None:
        """Sends a copy, so that the array is free at once."""
        self._transport.send(to, pack(held.data, region), PUSH)

    def receive(self, held: Held, rows: Sequence[tuple[int, Boxes]]) -> Pending:
        """The data that others push for one read."""
        return receive(self._transport, held, rows, PUSH)
