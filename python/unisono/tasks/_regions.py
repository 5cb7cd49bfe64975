"""Regions as Discovery returns them, tuples of boxes ``(min, max)``, and their data in one contiguous piece.

The places of a region are computed once, since loops use the same tuples again.
"""

import functools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

Data = npt.NDArray[Any]
Box = tuple[tuple[int, ...], tuple[int, ...]]
Boxes = tuple[Box, ...]
Place = tuple[slice, ...]
#: A box, the element of packed memory at which the box around it begins, and that outer box.
Part = tuple[Box, int, Box]

#: The largest number of results that each function keeps.
_KEPT = 1 << 14


@functools.lru_cache(maxsize=_KEPT)
def place(box: Box) -> Place:
    """Returns a box as an index."""
    return tuple(slice(low, high) for low, high in zip(*box, strict=True))


@functools.lru_cache(maxsize=_KEPT)
def volume(boxes: Boxes) -> int:
    """Returns the number of elements of a region."""
    return sum(math.prod(_shape(box)) for box in boxes)


@functools.lru_cache(maxsize=_KEPT)
def interval(boxes: Boxes, shape: tuple[int, ...]) -> tuple[int, int] | None:
    """Returns the first element and the one after the last if a region is contiguous in an array of that shape."""
    if len(boxes) != 1:
        return None
    low, extents = boxes[0][0], _shape(boxes[0])
    cut = next((d for d, extent in enumerate(extents) if extent > 1), len(extents))
    if extents[cut + 1 :] != shape[cut + 1 :]:
        return None
    strides = [math.prod(shape[d + 1 :]) for d in range(len(shape))]
    start = sum(at * stride for at, stride in zip(low, strides, strict=True))
    return start, start + math.prod(extents)


def pieces(packed: Data, boxes: Boxes) -> Iterator[tuple[Box, Data]]:
    """Yields the part of a packed region that belongs to each of its boxes, in the box's shape."""
    for box, (_, start, end, shape) in zip(boxes, _cuts(boxes), strict=True):
        yield box, packed[start:end].reshape(shape)


def pack(data: Data, boxes: Boxes) -> Data:
    """Returns a contiguous copy of a region."""
    cuts = _cuts(boxes)
    if len(cuts) == 1:
        return data[cuts[0][0]].flatten()
    packed = np.empty(volume(boxes), data.dtype)
    pack_into(packed, data, boxes)
    return packed


def pack_into(packed: Data, data: Data, boxes: Boxes) -> None:
    """Copies a region into contiguous memory."""
    for at, start, end, shape in _cuts(boxes):
        packed[start:end].reshape(shape)[...] = data[at]


def unpack(data: Data, wanted: Boxes, packed: Data, boxes: Boxes) -> None:
    """Copies the elements of ``wanted`` from a packed region to the array."""
    for at, start, end, shape, within in _shared(wanted, boxes):
        data[at] = packed[start:end].reshape(shape)[within]


def gather_into(packed: Data, boxes: Boxes, data: Data, wanted: Boxes) -> None:
    """Copies the elements of ``wanted`` from the array into a packed region."""
    for at, start, end, shape, within in _shared(wanted, boxes):
        packed[start:end].reshape(shape)[within] = data[at]


def packed_parts(boxes: Boxes, first: int = 0) -> list[Part]:
    """Returns the parts of a packed region that begins at element ``first`` of packed memory."""
    return [(box, first + start, box) for box, (_, start, _, _) in zip(boxes, _cuts(boxes), strict=True)]


def shared_parts(wanted: Boxes, boxes: Boxes, first: int = 0) -> list[Part]:
    """Returns the parts of ``wanted`` in a packed region, as `packed_parts`."""
    return [
        (both, first + start, box)
        for box, (_, start, _, _) in zip(boxes, _cuts(boxes), strict=True)
        for other in wanted
        if (both := _intersection(box, other))
    ]


def common(a: Boxes, b: Boxes) -> Boxes:
    """Returns the intersection of two regions."""
    return tuple(both for one in a for other in b if (both := _intersection(one, other)))


@functools.lru_cache(maxsize=_KEPT)
def _cuts(boxes: Boxes) -> list[tuple[Place, int, int, tuple[int, ...]]]:
    """Returns for each box its index, its part of the packed region, and its shape."""
    found, at = [], 0
    for box in boxes:
        shape = _shape(box)
        size = math.prod(shape)
        found.append((place(box), at, at + size, shape))
        at += size
    return found


@functools.lru_cache(maxsize=_KEPT)
def _shared(wanted: Boxes, boxes: Boxes) -> list[tuple[Place, int, int, tuple[int, ...], Place]]:
    """Returns the intersections of packed and wanted boxes: each with its index, and its place in the packed box."""
    return [
        (place(both), start, end, shape, within(both, box))
        for box, (_, start, end, shape) in zip(boxes, _cuts(boxes), strict=True)
        for other in wanted
        if (both := _intersection(box, other))
    ]


def _shape(box: Box) -> tuple[int, ...]:
    return tuple(high - low for low, high in zip(*box, strict=True))


def _intersection(a: Box, b: Box) -> Box | None:
    low = tuple(map(max, a[0], b[0]))
    high = tuple(map(min, a[1], b[1]))
    return (low, high) if all(x < y for x, y in zip(low, high, strict=True)) else None


def without(a: Boxes, b: Boxes) -> Boxes:
    """Returns the difference of two regions."""
    left = list(a)
    for hole in b:
        left = [piece for box in left for piece in _cut(box, hole)]
    return tuple(left)


def around(a: Box, b: Box) -> Box:
    """Returns the smallest box that contains both."""
    return tuple(map(min, a[0], b[0])), tuple(map(max, a[1], b[1]))


def within(box: Box, outer: Box) -> Place:
    """Returns a box as an index into the data of a box around it."""
    return tuple(slice(a - o, b - o) for a, b, o in zip(*box, outer[0], strict=True))


def _cut(box: Box, hole: Box) -> Iterator[Box]:
    """Yields the rest of a box around a hole: in each dimension the parts below and above, within the ranges left."""
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
