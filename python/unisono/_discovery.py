"""The collectives of a program of tasks, found without a network."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, SupportsIndex

from unisono import _core
from unisono._core import InputError


def discover(program: Mapping[str, Any] | str | Path, nodes: SupportsIndex, rules: str = "full") -> dict[str, Any]:
    """The forwards of a program in the order of issue, and the messages of all ranks.

    ``program`` is a dictionary or a JSON file: ``{"buffers": [...], "tasks": [...]}``, as docs/commands.md has it.
    ``rules`` is ``"paper"``, ``"full"`` or ``"off"``, for messages between pairs of ranks alone.
    """
    if isinstance(program, Mapping):
        try:
            text = json.dumps(program)
        except TypeError as wrong:
            raise InputError(f"the program does not have JSON's types: {wrong}") from wrong
    else:
        try:
            text = Path(program).read_text(encoding="utf-8")
        except UnicodeDecodeError as wrong:
            raise InputError(f"'{program}' is not a text file: {wrong.reason}") from wrong
    return _core.discover(text, nodes, rules)
