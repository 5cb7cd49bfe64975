"""A collective by messages between pairs: what no other way serves, and all where collectives are switched off."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from unisono._core import Discovery, Operation
from unisono.base.facts import reduces
from unisono.tasks._held import Held, Pending, Route
from unisono.tasks._operators import COMBINE, NAMES, NEUTRAL
from unisono.tasks._regions import Boxes, Data, common, in_place, pack, pieces, place, unpack, volume
from unisono.tasks._transport import EXCHANGE, Transport


def receive(
    transport: Transport, held: Held, rows: Sequence[tuple[int, Boxes]], tag: int, sends: Sequence[Any] = ()
) -> Pending:
    """Data from others, in its place at once where that is contiguous: nothing else touches it before all is over."""
    apart: list[tuple[Boxes, Data]] = []
    requests = list(sends)
    for source, region in rows:
        data = in_place(held.data, region)
        if data is None:
            data = np.empty(volume(region), held.data.dtype)
            apart.append((region, data))
        requests += transport.receive(source, data, tag)

    def finish() -> None:
        for region, data in apart:
            unpack(held.data, region, data, region)

    return Pending(transport.all_of(requests), finish)


class Messages(Route):
    """Every pair by itself. Partial results are combined in the order of ranks, so to the same bits everywhere."""

    def __init__(self, transport: Transport, discovery: Discovery, operation: Operation, moved: int) -> None:
        """For an operation on arrays of any type; ``moved`` are the bytes that ranks receive."""
        self.bytes = moved
        rank = transport.rank
        self._transport, self._reduces = transport, reduces(operation.pattern)
        self._sends, self._receives = discovery.sends(operation, rank), discovery.receives(operation, rank)
        self._own: Boxes = ()
        if self._reduces:
            self._own = common(discovery.given(operation, rank), discovery.received(operation, rank))

    def begin(self, held: Held) -> Pending:
        """Sends and receives."""
        return self._combining(held) if self._reduces else self._moving(held)

    def _moving(self, held: Held) -> Pending:
        sends = []
        for to, region in self._sends:
            # The region sent does not change until the exchange is over.
            data = in_place(held.data, region)
            data = pack(held.data, region) if data is None else data
            sends += self._transport.start_sending(to, data, EXCHANGE)
        return receive(self._transport, held, self._receives, EXCHANGE, sends)

    def _combining(self, held: Held) -> Pending:
        transport, coded = self._transport, held.codes is not None
        for to, region in self._sends:
            transport.send(to, pack(held.data, region), EXCHANGE)
            if coded and held.codes is not None:
                transport.send(to, pack(held.codes, region), EXCHANGE)
        parts: list[tuple[int, Boxes, Data, Data | None]] = []
        requests = []
        for source, region in self._receives:
            data = np.empty(volume(region), held.data.dtype)
            requests += transport.receive(source, data, EXCHANGE)
            codes = np.empty(data.size, np.uint8) if coded else None
            if codes is not None:
                requests += transport.receive(source, codes, EXCHANGE)
            parts.append((source, region, data, codes))
        own_codes = pack(held.codes, self._own) if held.codes is not None else None
        own = (transport.rank, self._own, pack(held.data, self._own), own_codes)
        parts = sorted([*parts, own], key=lambda part: part[0])
        return Pending(transport.all_of(requests), lambda: _combine(held, parts))


def _combine(held: Held, parts: list[tuple[int, Boxes, Data, Data | None]]) -> None:
    """Combines the parts of all ranks in the place of the result, which begins as neutral elements."""
    for start in (True, False):
        for _, region, data, codes in parts:
            numbers = pieces(codes, region) if codes is not None else ((box, None) for box in region)
            for (box, piece), (_, coded) in zip(pieces(data, region), numbers, strict=True):
                into = held.data[place(box)]
                names = [held.operator or "sum"] if coded is None else [NAMES[code] for code in np.unique(coded)]
                for name in names:
                    where = ... if coded is None else coded == NAMES.index(name)
                    into[where] = NEUTRAL[name](into.dtype) if start else COMBINE[name](into[where], piece[where])
