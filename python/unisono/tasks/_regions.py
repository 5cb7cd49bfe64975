"""Operations on regions: tuples of boxes ``(min, max)``, as in commands.

Results are cached, because loops use the same tuples repeatedly.
"""

import functools
from collections.abc import Iterator
from typing import Any

import numpy.typing as npt

Data = npt.NDArray[Any]
Box = tuple[tuple[int, ...], tuple[int, ...]]
Boxes = tuple[Box, ...]
Place = tuple[slice, ...]

#: The maximum number of results that each function caches.
_KEPT = 1 << 14


@functools.lru_cache(maxsize=_KEPT)
def place(box: Box) -> Place:
    """Returns a box as an index of a NumPy array."""
    return tuple(slice(low, high) for low, high in zip(*box, strict=True))


def common(a: Boxes, b: Boxes) -> Boxes:
    """Returns the intersection of two regions."""
    return tuple(both for one in a for other in b if (both := _intersection(one, other)))


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
    """Yields boxes that cover ``box`` without ``hole``: in each dimension those below and above the hole."""
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
