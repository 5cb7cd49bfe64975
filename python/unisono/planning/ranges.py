"""Divides a range of sizes among the plans that are best at some sizes of it."""

from collections.abc import Callable, Iterator, Sequence
from math import isqrt

__all__ = ["planned_sizes", "spans"]

#: The factor between the sizes at which a range is planned, and the largest such size in bytes without a last size.
_STEP, _MOST_PLANNED = 4, 512 * 1024 * 1024


def planned_sizes(first: int, last: int | None, element_bytes: int) -> list[int]:
    """Returns the numbers of elements at which a range of bytes is planned, ascending.

    They are those of the ends of the range (at least one element; `_MOST_PLANNED` bytes if ``last`` is None), and
    between the ends the powers of four.
    """
    low = max(first, element_bytes)
    high = max(low, _MOST_PLANNED if last is None else last)
    sizes, size = {low, high}, element_bytes
    while size < high:
        sizes.add(max(size, low))
        size *= _STEP
    return sorted({size // element_bytes for size in sizes})


def spans(
    planned: Sequence[int], served: tuple[int, int | None], same: Callable[[int, int], bool]
) -> Iterator[tuple[int, int, int | None]]:
    """Yields the index of a planned size with the first and last size in bytes that its plan serves (None: no limit).

    ``planned`` are sizes in bytes, ascending, and ``served`` is the whole range. Neighbors share one span, with the
    index of the larger, if ``same`` is true for their indices. Spans meet at the geometric mean of planned sizes.
    """
    first = served[0]
    for at, size in enumerate(planned):
        last = served[1]
        if at + 1 < len(planned):
            if same(at, at + 1):
                continue
            last = isqrt(size * planned[at + 1])
        yield at, first, last
        first = 0 if last is None else last + 1
