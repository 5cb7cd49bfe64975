"""Divides a range of sizes among the plans that are best at some sizes of it."""

from collections.abc import Callable, Iterator, Sequence
from math import exp, isqrt, log

__all__ = ["crossing", "planned_sizes", "spans"]

#: The factor between successive sizes at which a range is planned, and the largest such size in bytes if the range has
#: no last size.
_STEP, _MOST_PLANNED = 4, 512 * 1024 * 1024


def planned_sizes(first: int, last: int | None, element_bytes: int) -> list[int]:
    """Returns the numbers of elements at which a range of bytes is planned, ascending.

    These are the two ends of the range, and the powers of four between them. The first end has at least one element; if
    ``last`` is None, the last end has `_MOST_PLANNED` bytes.
    """
    low = max(first, element_bytes)
    high = max(low, _MOST_PLANNED if last is None else last)
    sizes, size = {low, high}, element_bytes
    while size < high:
        sizes.add(max(size, low))
        size *= _STEP
    return sorted({size // element_bytes for size in sizes})


def crossing(sizes: tuple[int, int], one: tuple[float, float], other: tuple[float, float]) -> int:
    """Returns the last size at which a plan is as fast as another plan.

    The other plan must be as fast or faster at the larger size.

    ``one`` and ``other`` are the times of both plans at the two ``sizes`` in bytes; between these sizes, the logarithm
    of the quotient of the times is interpolated linearly over the logarithm of the size. The result is below the larger
    size.
    """
    before, after = (log(a / b) for a, b in zip(one, other, strict=True))
    share = -before / (after - before) if before < 0 <= after else 0.5
    low, high = (log(max(size, 1)) for size in sizes)
    return max(sizes[0], min(sizes[1] - 1, int(exp(low + share * (high - low)))))


def spans(
    planned: Sequence[int],
    served: tuple[int, int | None],
    same: Callable[[int, int], bool],
    border: Callable[[int, int], int | None] = lambda _, __: None,
) -> Iterator[tuple[int, int, int | None]]:
    """Yields the index of a planned size with the first and last size in bytes that its plan serves (None: no limit).

    ``planned`` are sizes in bytes, ascending, and ``served`` is the whole range. Neighboring sizes share one span, with
    the index of the larger size, if ``same`` is true for their indices. A span ends at the ``border`` of two indices,
    by default (None) at the geometric mean of their sizes.
    """
    first = served[0]
    for at, size in enumerate(planned):
        last = served[1]
        if at + 1 < len(planned):
            if same(at, at + 1):
                continue
            at_border = border(at, at + 1)
            last = isqrt(size * planned[at + 1]) if at_border is None else at_border
        yield at, first, last
        first = 0 if last is None else last + 1
