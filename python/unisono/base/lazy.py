"""Names of a package that are imported when they are first used.

NumPy alone takes longer to import than most commands take to run, so a package whose users need only some of its
names states the module of each in one table.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

__all__ = ["lazy"]


def lazy(package: str, homes: Mapping[str, Sequence[str]]) -> tuple[list[str], Callable[[str], Any]]:
    """The ``__all__`` and the ``__getattr__`` of a package, by the names that each of its modules has."""
    home = {name: module for module, names in homes.items() for name in names}

    def find(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{home[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return sorted(home), find
