"""Imports the names of a package when they are first used.

The import of NumPy alone takes longer than most commands. A package whose users need few of its names lists them once,
for type checkers and for :func:`lazy`, in lines ``from MODULE import NAME as NAME`` of a block ``if TYPE_CHECKING:``.
"""

from collections.abc import Callable
from importlib import import_module
from pkgutil import get_data
from typing import Any

__all__ = ["lazy"]


def lazy(package: str, names: dict[str, Any]) -> tuple[list[str], Callable[[str], Any]]:
    """Returns the ``__all__`` and the ``__getattr__`` of a package; ``names`` are the ``globals()`` of the package."""
    source = get_data(package, "__init__.py") or b""
    # The lines are split and not matched by a pattern, because every start of the program would compile the pattern.
    lines = (line.split(" ") for line in source.decode().split("\n") if line.startswith("    from unisono"))
    homes = {words[-1]: words[5] for words in lines if words[6:] == ["import", words[-1], "as", words[-1]]}

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        names[name] = getattr(import_module(homes[name]), name)
        return names[name]

    return sorted(homes), find
