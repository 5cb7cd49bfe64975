"""Range mappers: which part of an array a part of a task's range touches. `docs/commands.md` lists them."""

from collections.abc import Callable, Sequence
from typing import Any

from unisono._core import InputError, Mapper

#: The whole array.
all_ = Mapper("all")
#: The same indices; where the array has more dimensions than the range, whole rows.
one_to_one = Mapper("one_to_one")


def fixed(offset: int | Sequence[int], extent: int | Sequence[int]) -> Mapper:
    """Always the box of ``extent`` from ``offset`` on."""
    return Mapper("fixed", offset=offset, extent=extent)


def slice_(dim: int) -> Mapper:
    """The part, with the whole extent of one dimension."""
    return Mapper("slice", dim=dim)


def neighborhood(*widths: int) -> Mapper:
    """The part, wider by so much on both sides of each dimension."""
    return Mapper("neighborhood", halo=widths)


#: Another name for the same.
halo = neighborhood


def transposed(*order: int) -> Mapper:
    """Dimension i of the array is dimension ``order[i]`` of the range; the reverse order by default."""
    return Mapper("transposed", perm=order or (1, 0))


def row(index: int) -> Mapper:
    """One row, with all columns."""
    return Mapper("row", index=index)


def row_chunk(index: int) -> Mapper:
    """One row, at the columns of the part: dimension d of the array follows dimension d - 1 of the range."""
    return Mapper("row_chunk", index=index)


def shift(*offset: int) -> Mapper:
    """The same indices, moved."""
    return Mapper("shift", offset=offset)


def project(dim: int) -> Mapper:
    """An array of one dimension over one dimension of the range."""
    return Mapper("project", kernel_dim=dim)


def even_split(granularity: int = 1) -> Mapper:
    """The array's rows in as many equal parts as the range has points; parts begin at multiples of ``granularity``."""
    return Mapper("even_split", granularity=granularity)


def mapper(function: Callable[..., Any]) -> Mapper:
    """A function as mapper: from ``(min, max, shape)`` of a part and the array to a list of boxes ``(min, max)``.

    ``min`` is the first index of the part, ``max`` one beyond the last. They have as many numbers as the range has
    dimensions, ``shape`` as the array has. The function must be pure and monotone. A view spans all boxes; a kernel may
    not use what lies between them. Keep what this returns: a function is equal to itself through one mapper only.
    """
    if not callable(function):
        raise InputError(f"{function!r} is no function; accepted is one of (min, max, shape)")
    return Mapper.of(getattr(function, "__name__", "function"), function)
