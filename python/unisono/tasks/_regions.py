"""Regions as Discovery tells them, tuples of boxes ``(min, max)``, and their data in one contiguous piece."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Data = npt.NDArray[Any]
Box = tuple[tuple[int, ...], tuple[int, ...]]
Boxes = Sequence[Box]


def place(box: Box) -> tuple[slice, ...]:
    """A box as an index."""
    return tuple(slice(low, high) for low, high in zip(*box, strict=True))


def volume(boxes: Boxes) -> int:
    """The elements of a region."""
    return sum(math.prod(high - low for low, high in zip(*box, strict=True)) for box in boxes)


def pieces(packed: Data, boxes: Boxes) -> Iterator[tuple[Box, Data]]:
    """The part of a packed region that belongs to each of its boxes, in the box's shape."""
    at = 0
    for box in boxes:
        shape = tuple(high - low for low, high in zip(*box, strict=True))
        size = math.prod(shape)
        yield box, packed[at : at + size].reshape(shape)
        at += size


def pack(data: Data, boxes: Boxes) -> Data:
    """A contiguous copy of a region."""
    packed = np.empty(volume(boxes), data.dtype)
    for box, piece in pieces(packed, boxes):
        piece[...] = data[place(box)]
    return packed


def unpack(data: Data, wanted: Boxes, packed: Data, boxes: Boxes) -> None:
    """Puts what is ``wanted`` of a packed region in its place."""
    for box, piece in pieces(packed, boxes):
        for other in wanted:
            if both := _intersection(box, other):
                data[place(both)] = piece[within(both, box)]


def gather_into(packed: Data, boxes: Boxes, data: Data, wanted: Boxes) -> None:
    """The other way round: puts what is ``wanted`` of the data into a packed region."""
    for box, piece in pieces(packed, boxes):
        for other in wanted:
            if both := _intersection(box, other):
                piece[within(both, box)] = data[place(both)]


def common(a: Boxes, b: Boxes) -> list[Box]:
    """What two regions share."""
    return [both for one in a for other in b if (both := _intersection(one, other))]


def _intersection(a: Box, b: Box) -> Box | None:
    low = tuple(map(max, a[0], b[0]))
    high = tuple(map(min, a[1], b[1]))
    return (low, high) if all(x < y for x, y in zip(low, high, strict=True)) else None


def without(a: Boxes, b: Boxes) -> list[Box]:
    """What one region has and another has not."""
    left = list(a)
    for hole in b:
        left = [piece for box in left for piece in _cut(box, hole)]
    return left


def around(a: Box, b: Box) -> Box:
    """The least box that holds both."""
    return tuple(map(min, a[0], b[0])), tuple(map(max, a[1], b[1]))


def within(box: Box, outer: Box) -> tuple[slice, ...]:
    """A box as an index into the data of a box around it."""
    return tuple(slice(a - o, b - o) for a, b, o in zip(*box, outer[0], strict=True))


def _cut(box: Box, hole: Box) -> Iterator[Box]:
    """What is left of a box: below and above the hole in each dimension, among what is beside it in none before."""
    both = _intersection(box, hole)
    if both is None:
        yield box
        return
    low, high = list(box[0]), list(box[1])
    for dim, (first, last) in enumerate(zip(*both, strict=True)):
        if low[dim] < first:
            yield tuple(low), (*high[:dim], first, *high[dim + 1 :])
        if last < high[dim]:
            yield (*low[:dim], last, *low[dim + 1 :]), tuple(high)
        low[dim], high[dim] = first, last
