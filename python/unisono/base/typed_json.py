"""Compares values of JSON with the types of reports, for files that another program may have written."""

import types
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

__all__ = ["has_type"]


def has_type(value: object, type_: Any) -> bool:
    """Returns whether a value of JSON has a type: a TypedDict, list, tuple, dict, union, literal or plain type.

    JSON writes a tuple as a list, and may write a float without a fraction.
    """
    origin, of = get_origin(type_), get_args(type_)
    if type_ is Any or type_ is object:
        return True
    if is_typeddict(type_):
        hints = _hints(type_)
        is_known = isinstance(value, dict) and type_.__required_keys__ <= value.keys() <= hints.keys()
        return is_known and all(has_type(one, hints[key]) for key, one in value.items())  # type: ignore[attr-defined]
    if origin in (Union, types.UnionType):
        return any(has_type(value, one) for one in of)
    if origin is Literal:
        return any(value is one or (type(value) is type(one) and value == one) for one in of)
    if origin is tuple and of[-1] is not Ellipsis:
        return isinstance(value, list | tuple) and len(value) == len(of) and all(map(has_type, value, of))
    if origin in (list, tuple):
        return isinstance(value, list | tuple) and all(has_type(one, of[0]) for one in value)
    if origin in (dict, Mapping):
        return isinstance(value, dict) and all(has_type(k, of[0]) and has_type(v, of[1]) for k, v in value.items())
    if type_ is None or type_ is type(None):
        return value is None
    if type_ in (int, float):
        return isinstance(value, (int, float) if type_ is float else int) and not isinstance(value, bool)
    return isinstance(value, type_)


@cache
def _hints(type_: type) -> dict[str, Any]:
    return get_type_hints(type_)
