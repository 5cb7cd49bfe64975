"""Checks sizes and roots as users write them: a count of elements, bytes such as "64KiB", an index or (row, column).

These functions check only values that cannot be passed to the extension module, which checks all others.
"""

import math
import operator
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, SupportsIndex, TypeGuard

from unisono._core import InputError, Machine, dtypes
from unisono.base.messages import shown
from unisono.base.names import datatype

__all__ = [
    "GraphLike",
    "MachineLike",
    "Root",
    "checked_count",
    "checked_probability",
    "checked_root",
    "checked_seed",
    "element_count",
    "finite",
    "is_whole",
    "items",
    "parse_bytes",
    "whole",
]

#: An index in row-major order, or a row and a column.
Root = SupportsIndex | Sequence[SupportsIndex]


class GraphLike(Protocol):
    """An undirected graph with the interface of networkx."""

    @property
    def nodes(self) -> Any:
        """The nodes; ``nodes(data=True)`` are pairs of a node and its data."""

    @property
    def edges(self) -> Any:
        """The edges; ``edges(data=True)`` are triples of two nodes and the edge's data."""

    def is_directed(self) -> bool:
        """Returns whether edges have a direction."""


#: A machine: a ``Machine``, the name of a preset, the path of a file, the keys of such a file, or a graph.
MachineLike = Machine | str | os.PathLike[str] | Mapping[str, Any] | GraphLike

#: The bytes of each unit, by its name in lower case. K, M, G and T alone are powers of two, as in the tables of OSU and
#: NCCL.
_UNITS = {
    "": 1, "b": 1,
    "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
    "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40,
    "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
}  # fmt: skip
_SIZE = r"\s*([0-9]+)(?:\.([0-9]+))?\s*([A-Za-z]*)\s*"
#: The largest index of a rank.
_LARGEST = 2**32 - 1
#: The largest number of elements in plans and bounds, because the time to evaluate candidates grows with the number of
#: segments. A buffer of a schedule holds fewer than 2**32 elements.
_MOST_ELEMENTS = 2**36


def parse_bytes(text: str) -> int:
    """Returns the bytes of a size such as ``4096``, ``64KiB``, ``64K`` (equal to ``64KiB``) or ``1.5MB``.

    Raises:
        InputError: the text is not a size, is negative, names an unknown unit, is not a whole number of bytes, or has
            more than 19 digits before or after the point.

    """
    match = re.fullmatch(_SIZE, text)
    if match is not None and re.fullmatch("[KMGT]i?b", match[3]):
        of = match[3][0]
        raise InputError(
            f"{shown(text)} may mean bits; for bytes write {of}B (a power of ten), or {of} or {of}iB (powers of two)"
        )
    unit = _UNITS.get(match[3].lower()) if match else None
    if match is None or unit is None:
        raise InputError(
            f"{shown(text)} is not a size in bytes; accepted is a number from 0 on, alone or with B, kB, MB, GB, TB, "
            "KiB, MiB, GiB, TiB or K, M, G, T (powers of two), as in 64KiB"
        )
    whole_part, decimals = match[1], match[2] or ""
    # Python converts at most 4300 digits, and no size has more than 19.
    if len(whole_part) > 19 or len(decimals) > 19:
        raise InputError(f"{shown(text)} is not a size in bytes: it has more than 19 digits")
    size, rest = divmod(int(whole_part + decimals) * unit, int(10 ** len(decimals)))
    if rest:
        raise InputError(f"{shown(text)} is not a whole number of bytes")
    return size


def element_count(
    elements: SupportsIndex | None, bytes: SupportsIndex | str | None, dtype: str, collective: str = ""
) -> int:
    """Returns the number of elements given by exactly one of ``elements`` and ``bytes``; a barrier needs neither.

    Raises:
        InputError: none or both are given, the size is negative or too large, the datatype is unknown, or the bytes
            are not a whole number of elements.

    """
    name = datatype(dtype)
    width = dtypes()[name]
    if collective == "barrier" and elements is None and bytes is None:
        return 0
    if (elements is None) == (bytes is None):
        given = "neither is" if elements is None else "both are"
        raise InputError(f"the size is given by the elements or by the bytes, and {given} given")
    if elements is not None:
        return checked_count(elements)
    size = parse_bytes(bytes) if isinstance(bytes, str) else whole("the size in bytes", bytes)
    if size < 0:
        raise InputError(f"the size in bytes is {size}, and must be 0 or more")
    count, rest = divmod(size, width)
    if rest:
        raise InputError(f"{size} bytes are no whole number of elements of {name} ({width} bytes each)")
    return checked_count(count)


def checked_count(elements: SupportsIndex) -> int:
    """Returns a valid number of elements.

    Raises:
        InputError: the value is not a whole number, is negative, or exceeds the limit.

    """
    count = whole("the number of elements", elements)
    if count < 0:
        raise InputError(f"the number of elements is {count}, and must be 0 or more")
    if count > _MOST_ELEMENTS:
        raise InputError(f"the number of elements is {count}, and must be at most {_MOST_ELEMENTS}")
    return count


def checked_root(root: Root) -> int | tuple[int, int]:
    """Returns a valid root, as Python numbers.

    Raises:
        InputError: the root is neither an index nor a row and a column, or a number is out of range.

    """
    message = f"the root is {shown(root)}, and must be an index or a row and a column, all from 0 on"
    match [root] if is_whole(root) else items(root, message):
        case [index] if _fits(index):
            return operator.index(index)
        case [row, column] if _fits(row) and _fits(column):
            return operator.index(row), operator.index(column)
    raise InputError(message)


def _fits(part: object) -> bool:
    return is_whole(part) and 0 <= operator.index(part) <= _LARGEST


def checked_seed(seed: SupportsIndex) -> int:
    """Returns a valid seed.

    Raises:
        InputError: the seed is not a whole number, is negative, or has more than 64 bits.

    """
    number = whole("the seed", seed)
    if not 0 <= number < 2**64:
        raise InputError(f"the seed is {number}, and must be a whole number from 0 to 2^64 - 1")
    return number


def checked_probability(name: str, value: float) -> float:
    """Returns a probability below 1.

    Raises:
        InputError: the value is not at least 0 and below 1.

    """
    if not 0 <= finite(name, value) < 1:
        raise InputError(f"{name} is {value}, and must be at least 0 and below 1")
    return value


def is_whole(value: object) -> TypeGuard[SupportsIndex]:
    """Returns whether a value is a whole number of Python or NumPy, and not a bool."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        return False
    try:
        operator.index(value)
    except TypeError:
        # Every NumPy array has `__index__`, but only an array of a single whole number can be used as an index.
        return False
    return True


def whole(what: str, value: object) -> int:
    """Returns the value as an integer of Python, whose absolute value is below 2^127.

    Raises:
        InputError: the value is not a whole number.

    """
    if not is_whole(value):
        raise InputError(f"{what} is {shown(value)}, and must be a whole number")
    number = operator.index(value)
    # Python writes at most 4300 digits, so a message could not contain every larger number.
    if abs(number) >= 2**127:
        raise InputError(f"{what} is {shown(number)}, and a whole number with that many digits is not accepted")
    return number


def finite(what: str, value: object) -> float:
    """Returns the value as a floating-point number of Python.

    Raises:
        InputError: the value is not a single finite number, or is text or a bool.

    """
    try:
        if isinstance(value, str | bytes | bytearray | bool) or not math.isfinite(value):  # type: ignore[arg-type]
            raise TypeError
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{what} is {shown(value)}, and must be a finite number") from None


def items(values: object, message: str) -> list[Any]:
    """Returns the items of an iterable. Text and bytes are not accepted, although Python iterates over them.

    Raises:
        InputError: the value is text, bytes or not iterable; the error has the text ``message``.

    """
    if isinstance(values, str | bytes | bytearray) or not isinstance(values, Iterable):
        raise InputError(message)
    try:
        return list(values)
    except TypeError:
        # NumPy raises this error for an array without dimensions.
        raise InputError(message) from None
