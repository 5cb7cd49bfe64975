"""Collectives by messages between pairs: those that no other way supports, or all if the environment says so.

`Discovery.direct` makes one schedule of the messages of an operation, which predictions use too, proves it, and returns
this rank's part. The rank sends and receives in the order of its instructions, in the array itself if the place there
is contiguous. It combines partial results once all of them have arrived, in the order of the schedule.
"""

import numpy as np

from unisono._core import Discovery, Operation, PairMessages
from unisono.base.facts import reduces
from unisono.tasks._local_arrays import LocalArray, Pending, PythonRoute
from unisono.tasks._operators import COMBINE, NAMES
from unisono.tasks._regions import Boxes, Data, pack, pieces, place, volume
from unisono.tasks._transport import EXCHANGE, Transport

#: The elements of a message, and the codes of their operators if an array has several.
Contribution = tuple[Data, Data | None]


class Messages(PythonRoute):
    """Messages between pairs; partial results are combined in the order of ranks, so to the same bits everywhere."""

    def __init__(
        self,
        transport: Transport,
        discovery: Discovery,
        operation: Operation,
        moved: int,
        size: int,
        shape: tuple[int, ...],
    ) -> None:
        """Proves the messages, of elements of ``size`` bytes; ``moved`` are the bytes that ranks receive."""
        self.bytes, self._size = moved, size
        self._transport = transport
        with transport.proving():
            self._sends, self._receives, listed, _, self.schedule = discovery.direct(operation, size)
        self._pieces: list[tuple[int, Boxes, int, bool]] = []
        self._own: Boxes = ()
        for source, region, start, first in listed:
            if source != transport.rank:
                self._pieces.append((source, region, start, first))
            elif not first:
                self._pieces.append((source, region, volume(self._own), first))
                self._own += region
            # A first contribution of this rank is in its place already, since the array is both input and output.
        if not reduces(operation.pattern):
            self.here = PairMessages(shape, size, self._sends, self._receives)

    def begin(self, local: LocalArray) -> Pending:
        """Sends this rank's partial results, and receives those of others."""
        transport, coded = self._transport, local.codes is not None
        for to, region in self._sends:
            data, codes = _contribution(local, region)
            transport.send(to, data if codes is None else np.concatenate([data.view(np.uint8), codes]), EXCHANGE)
        parts = {transport.rank: _contribution(local, self._own)}
        requests = []
        for source, region in self._receives:
            octets = np.empty(volume(region) * self._size, np.uint8)
            requests += transport.receive(source, octets, EXCHANGE)
            end = volume(region) * local.data.itemsize
            parts[source] = octets[:end].view(local.data.dtype), octets[end:] if coded else None
        return Pending(transport.all_of(requests), lambda: self._combine(local, parts))

    def _combine(self, local: LocalArray, parts: dict[int, Contribution]) -> None:
        """Copies the first contribution to each element, and combines the others with it."""
        for source, region, start, first in self._pieces:
            end = start + volume(region)
            data, codes = parts[source]
            numbers = pieces(codes[start:end], region) if codes is not None else ((box, None) for box in region)
            for (box, piece), (_, coded) in zip(pieces(data[start:end], region), numbers, strict=True):
                into = local.data[place(box)]
                if first:
                    into[...] = piece
                elif coded is None:
                    COMBINE[local.operator or "sum"](into, piece, out=into)
                else:
                    for code in np.unique(coded):
                        where = coded == code
                        into[where] = COMBINE[NAMES[code]](into[where], piece[where])


def _contribution(local: LocalArray, region: Boxes) -> Contribution:
    """Returns a copy of a region, with the codes of its operators."""
    return pack(local.data, region), None if local.codes is None else pack(local.codes, region)
