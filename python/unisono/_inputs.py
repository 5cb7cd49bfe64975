"""Sizes and roots as people give them: a count of elements, bytes such as "64KiB", an index or (row, column).

What is checked here is only what cannot be handed to the extension module; everything else it checks itself.
"""

import re

from unisono._core import InputError

#: Bytes of one element, by the name of its datatype.
DTYPE_BYTES = {"f32": 4, "f64": 8, "f16": 2, "bf16": 2, "i32": 4, "i64": 8}

_UNITS = {"": 1, "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_SIZE = re.compile(r"\s*([0-9]+)\s*([A-Za-z]*)\s*")
#: Elements are counted in 32 bits.
_LARGEST = 2**32 - 1


def parse_bytes(text: str) -> int:
    """Bytes of a size such as ``4096``, ``64KiB`` or ``1MB``.

    Raises:
        InputError: the text is no size, is negative, or names an unknown unit.

    """
    match = _SIZE.fullmatch(text)
    unit = {name.lower(): name for name in _UNITS}.get(match[2].lower()) if match else None
    if match is None or unit is None:
        raise InputError(
            f"'{text}' is not a size in bytes; accepted is a whole number from 0 on, alone or with B, kB, MB, GB, KiB, "
            "MiB or GiB, as in 64KiB"
        )
    return int(match[1]) * _UNITS[unit]


def element_count(elements: int | None, bytes: int | str | None, dtype: str) -> int:
    """Elements of ``dtype`` that exactly one of ``elements`` and ``bytes`` asks for.

    Raises:
        InputError: none or both are given, the size is negative or too large, the datatype is unknown, or the bytes
            are no whole number of elements.

    """
    if dtype not in DTYPE_BYTES:
        raise InputError(f"'{dtype}' is not a datatype; accepted are {', '.join(DTYPE_BYTES)}")
    if (elements is None) == (bytes is None):
        given = "neither is" if elements is None else "both are"
        raise InputError(f"the size is given by the elements or by the bytes, and {given} given")
    if elements is None:
        size = parse_bytes(bytes) if isinstance(bytes, str) else int(bytes or 0)
        if size < 0:
            raise InputError(f"the size in bytes is {size}, and must be 0 or more")
        elements, rest = divmod(size, DTYPE_BYTES[dtype])
        if rest:
            raise InputError(
                f"{size} bytes are no whole number of elements of {dtype} ({DTYPE_BYTES[dtype]} bytes each)"
            )
    return checked_count(elements)


def checked_count(elements: int) -> int:
    """The same count, once it is known to be one.

    Raises:
        InputError: it is negative, or beyond what a machine word holds.

    """
    if elements < 0:
        raise InputError(f"the number of elements is {elements}, and must be 0 or more")
    if elements > _LARGEST:
        raise InputError(f"the number of elements is {elements}, and must be at most {_LARGEST}")
    return elements


def checked_root(root: int | tuple[int, int]) -> int | tuple[int, int]:
    """The same root, once no part of it is negative or beyond what a machine word holds.

    Raises:
        InputError: one is.

    """
    for part in (root,) if isinstance(root, int) else root:
        if not 0 <= part <= _LARGEST:
            raise InputError(f"the root is {root}, and must be an index or a row and a column, all from 0 on")
    return root


def checked_seed(seed: int) -> int:
    """The same seed, once it is one.

    Raises:
        InputError: it is negative, or beyond what 64 bits hold.

    """
    if not 0 <= seed < 2**64:
        raise InputError(f"the seed is {seed}, and must be a whole number from 0 to 2^64 - 1")
    return seed


def checked_probability(name: str, value: float) -> float:
    """The same value, once it is a probability below 1.

    Raises:
        InputError: it is not.

    """
    if not 0 <= value < 1:
        raise InputError(f"{name} is {value}, and must be at least 0 and below 1")
    return value
