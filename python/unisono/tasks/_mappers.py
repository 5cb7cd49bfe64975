"""Range mappers: the part of an array that a part of a task's range accesses. `docs/tasks.md` lists them."""

from collections.abc import Callable, Sequence
from typing import Any

from unisono._core import InputError, Mapper

#: A mapper to the whole array.
all_ = Mapper("all")
#: A mapper to the indices of the chunk, and to all indices in dimensions that only the array has.
one_to_one = Mapper("one_to_one")


def fixed(offset: int | Sequence[int], extent: int | Sequence[int]) -> Mapper:
    """Returns a mapper to the box of ``extent`` from ``offset`` on."""
    return Mapper("fixed", offset=offset, extent=extent)


def slice_(dim: int) -> Mapper:
    """Returns a mapper to the indices of the part of the range, with the whole extent of dimension ``dim``."""
    return Mapper("slice", dim=dim)


def neighborhood(*widths: int) -> Mapper:
    """Returns a mapper to the indices of the part of the range, extended by width i on both sides of dimension i."""
    return Mapper("neighborhood", halo=widths)


#: Another usual name of `neighborhood`.
halo = neighborhood


def transposed(*order: int) -> Mapper:
    """Returns a mapper from dimension ``order[i]`` of the range to dimension i of the array; (1, 0) by default."""
    return Mapper("transposed", perm=order or (1, 0))


def row(index: int) -> Mapper:
    """Returns a mapper to one row, with all columns."""
    return Mapper("row", index=index)


def row_chunk(index: int) -> Mapper:
    """Returns a mapper to one row and the part's columns: array dimension d is dimension d - 1 of the range."""
    return Mapper("row_chunk", index=index)


def shift(*offset: int) -> Mapper:
    """Returns a mapper to the indices of the part of the range, moved by ``offset``."""
    return Mapper("shift", offset=offset)


def project(dim: int) -> Mapper:
    """Returns a mapper from dimension ``dim`` of the range to an array of one dimension."""
    return Mapper("project", kernel_dim=dim)


def even_split(granularity: int = 1) -> Mapper:
    """Returns a mapper to equal parts of the rows, one for each point of the range, at multiples of ``granularity``."""
    return Mapper("even_split", granularity=granularity)


def mapper(function: Callable[..., Any]) -> Mapper:
    """Returns a mapper by a function of ``(min, max, shape)`` that returns a list of boxes ``(min, max)``.

    ``min`` is the first index of the part of the range, ``max`` one beyond the last; ``shape`` is that of the array.
    Each has one number for each dimension of the range or of the array. The function must be pure and monotone. A view
    spans all boxes; a kernel may not use elements between them. Keep the returned mapper: mappers of two calls are not
    equal, even for the same function.
    """
    if not callable(function):
        raise InputError(f"{function!r} is no function; accepted is one of (min, max, shape)")
    return Mapper.of(getattr(function, "__name__", "function"), function)
