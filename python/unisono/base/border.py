"""Errors of calls to the extension module: arguments of a wrong type, or out of range, raise ``InputError``.

The extension module calls :func:`install` while it is imported. Its conversions of arguments raise ``TypeError``,
``OverflowError`` or ``UnicodeEncodeError``, whose messages do not contain the value. If such an error names the
argument, this module replaces the error. A call with a wrong keyword or a wrong number of arguments raises
``TypeError``, as everywhere in Python.
"""

import functools
import inspect
import re
from collections.abc import Callable
from types import BuiltinFunctionType, MethodDescriptorType, ModuleType
from typing import Any

from unisono.base.messages import shown

__all__ = ["install"]

#: The classes whose methods are checked. Methods of other classes are called in loops and skip the check.
_CLASSES = ("Machine", "Plan", "Proof", "Schedule", "ScheduleBuilder")
#: The note in which the extension module names the argument whose conversion failed.
_NOTE = r"while processing '(\w+)'"
_WANTED = r"is not an instance of '(\w+)'"
_WORDS = {"str": "text", "Mapping": "a dictionary", "Sequence": "a list", "bytes": "bytes", "PathLike": "a path"}


def install(module: ModuleType) -> None:
    """Wraps the functions of the extension module and the methods of the classes ``_CLASSES`` in a check."""
    check = functools.partial(_checked, module.InputError)
    for name, member in list(vars(module).items()):
        if isinstance(member, BuiltinFunctionType):
            setattr(module, name, check(member))
    for kind in (getattr(module, name) for name in _CLASSES):
        for name, member in list(vars(kind).items()):
            if isinstance(member, MethodDescriptorType):
                setattr(kind, name, check(member))
            elif isinstance(member, staticmethod) and not name.startswith("__"):
                setattr(kind, name, staticmethod(check(member.__func__)))


def _checked(error: type[Exception], function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*places: Any, **words: Any) -> Any:
        try:
            return function(*places, **words)
        except (TypeError, ValueError, OverflowError) as wrong:
            match = re.fullmatch(_NOTE, (getattr(wrong, "__notes__", None) or [""])[0])
            if match is None:
                raise
            raise error(_sentence(function, match[1], places, words, wrong)) from None

    return call


def _sentence(
    function: Callable[..., Any], name: str, places: tuple[Any, ...], words: dict[str, Any], wrong: Exception
) -> str:
    value = inspect.signature(function).bind(*places, **words).arguments.get(name)
    return f"{name} is {shown(value)}; accepted is {_accepted(wrong)}"


def _accepted(wrong: Exception) -> str:
    if isinstance(wrong, UnicodeError):
        return "text, without halves of characters"
    if isinstance(wrong, OverflowError):
        return "a whole number that is neither negative nor too large for its kind"
    text = str(wrong)
    if (match := re.search(_WANTED, text)) is not None:
        return _WORDS.get(match[1], f"a {match[1]}")
    if "integer" in text:
        return "a whole number"
    if "real number" in text:
        return "a number"
    return "a list" if "Vec" in text else "a value of another type"
