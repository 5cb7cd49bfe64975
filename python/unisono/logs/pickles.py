"""Reads pickles that hold plain data: None, bools, numbers, texts, bytes, lists, tuples and dictionaries.

This module interprets the operations itself, so that no class is looked up, no function is called, and the memory is at
most a constant multiple of the file's size. Type tags of TorchScript (``torch.jit._pickle``) are dropped.
"""

import pickletools
from typing import Any

from unisono._core import InputError

__all__ = ["loads"]

#: Operations that push their argument.
_VALUES = frozenset(
    f"{kind}{length}"
    for kind, lengths in {
        "INT": ("",), "BININT": ("", "1", "2"), "LONG": ("", "1", "4"), "FLOAT": ("",), "BINFLOAT": ("",),
        "STRING": ("",), "BINSTRING": ("",), "SHORT_BINSTRING": ("",), "UNICODE": ("",), "BINUNICODE": ("", "8"),
        "SHORT_BINUNICODE": ("",), "BINBYTES": ("", "8"), "SHORT_BINBYTES": ("",),
    }.items()
    for length in lengths
)  # fmt: skip
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_EMPTY = {"EMPTY_LIST": list, "EMPTY_DICT": dict, "EMPTY_TUPLE": tuple}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
#: Functions of TorchScript that return their first argument.
_TAGS = frozenset(
    f"torch.jit._pickle {name}" for name in ("restore_type_tag", "build_intlist", "build_doublelist", "build_boollist")
)
_MARK, _TAG = object(), object()


def loads(data: bytes, origin: str) -> Any:
    """Returns the value of a pickle; ``origin`` begins error messages.

    Raises:
        InputError: the pickle is damaged or incomplete, or holds more than plain data.

    """
    stack: list[Any] = []
    memo: dict[int, Any] = {}
    try:
        for operation, argument, _ in pickletools.genops(data):
            if operation.name == "STOP":
                return stack.pop()
            _apply(operation.name, argument, stack, memo)
    except _NotPlainError as found:
        raise InputError(f"{origin} is a pickle with {found}; accepted is plain data, which runs no code") from None
    except (ValueError, IndexError, KeyError, TypeError, AttributeError, OverflowError) as damage:
        raise InputError(f"{origin} is a damaged or cut pickle: {damage}") from None
    raise InputError(f"{origin} is a cut pickle: it has no end")


class _NotPlainError(Exception):
    """An operation that would call or import something."""


def _apply(name: str, argument: Any, stack: list[Any], memo: dict[int, Any]) -> None:
    match name:
        case "PROTO" | "FRAME":
            pass
        case "MARK":
            stack.append(_MARK)
        case "POP":
            stack.pop()
        case "APPEND":
            value = stack.pop()
            stack[-1].append(value)
        case "APPENDS":
            values = _marked(stack)
            stack[-1].extend(values)
        case "SETITEM" | "SETITEMS":
            values = _marked(stack) if name == "SETITEMS" else [stack.pop(-2), stack.pop()]
            stack[-1].update(_pairs(values))
        case "LIST":
            stack.append(_marked(stack))
        case "TUPLE":
            stack.append(tuple(_marked(stack)))
        case "DICT":
            stack.append(_pairs(_marked(stack)))
        case "PUT" | "BINPUT" | "LONG_BINPUT":
            memo[argument] = stack[-1]
        case "MEMOIZE":
            memo[len(memo)] = stack[-1]
        case "GET" | "BINGET" | "LONG_BINGET":
            stack.append(memo[argument])
        case "GLOBAL" if argument in _TAGS:
            stack.append(_TAG)
        case "REDUCE" if len(stack) > 1 and stack[-2] is _TAG:
            arguments = stack.pop()
            stack[-1] = arguments[0]
        case _ if name in _VALUES:
            stack.append(argument)
        case _ if name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        case _ if name in _EMPTY:
            stack.append(_EMPTY[name]())
        case _ if name in _TUPLES:
            count = _TUPLES[name]
            values = stack[-count:]
            del stack[-count:]
            stack.append(tuple(values))
        case _:
            raise _NotPlainError(f"the operation {name}" + (f" ({argument})"[:80] if isinstance(argument, str) else ""))


def _marked(stack: list[Any]) -> list[Any]:
    """Removes the values above the last mark, and the mark, from the stack; returns the values."""
    at = len(stack) - 1
    while stack[at] is not _MARK:
        at -= 1
        if at < 0:
            raise ValueError("a mark is missing")
    values = stack[at + 1 :]
    del stack[at:]
    return values


def _pairs(values: list[Any]) -> dict[Any, Any]:
    return dict(zip(values[::2], values[1::2], strict=True))
