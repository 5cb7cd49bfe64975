"""A collective by messages between pairs: what no other way serves, and all where collectives are switched off."""

import numpy as np

from unisono._core import Discovery, Operation
from unisono.tasks._held import Held, Pending
from unisono.tasks._operators import COMBINE, NAMES, NEUTRAL
from unisono.tasks._regions import Boxes, Data, common, pack, pieces, place, unpack, volume
from unisono.tasks._transport import EXCHANGE, Transport

REDUCES = ("reduce", "allreduce", "reduce-scatter")


class Messages:
    """Every pair by itself. Partial results are combined in the order of ranks, so to the same bits everywhere."""

    by_world = False

    def __init__(self, transport: Transport, discovery: Discovery, operation: Operation, moved: int) -> None:
        """For an operation on arrays of any type; ``moved`` are the bytes that ranks receive."""
        self.bytes = moved
        rank = transport.rank
        self._transport, self._reduces = transport, operation.pattern in REDUCES
        self._sends, self._receives = discovery.sends(operation, rank), discovery.receives(operation, rank)
        self._own: Boxes = ()
        if self._reduces:
            self._own = common(discovery.given(operation, rank), discovery.received(operation, rank))

    def prepare(self) -> None:
        """Nothing is needed."""

    def begin(self, held: Held) -> Pending:
        """Sends and receives."""
        transport, coded = self._transport, self._reduces and held.codes is not None
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
        if not self._reduces:

            def finish() -> None:
                for _, region, data, _ in parts:
                    unpack(held.data, region, data, region)

            return Pending(transport.all_of(requests), finish)
        own_codes = pack(held.codes, self._own) if held.codes is not None else None
        own = (transport.rank, self._own, pack(held.data, self._own), own_codes)
        parts = sorted([*parts, own], key=lambda part: part[0])
        return Pending(transport.all_of(requests), lambda: _combine(held, parts))


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
