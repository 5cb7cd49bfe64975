"""The collectives of a program of tasks, found without a network."""

import json
import os
from collections.abc import Mapping
from typing import Any, SupportsIndex

from unisono import _core
from unisono._core import InputError
from unisono.base.files import read_text, title
from unisono.base.inputs import MachineLike
from unisono.base.reports import DiscoveryReport
from unisono.discovery.prediction import as_report, predictions, without_machine

__all__ = ["discover"]


def discover(
    program: Mapping[str, Any] | str | os.PathLike[str],
    nodes: SupportsIndex,
    rules: str = "full",
    *,
    machine: MachineLike | None = None,
    model: str | None = None,
    simulate: bool = False,
) -> DiscoveryReport:
    """The forwards of a program in the order of issue, and the messages of all ranks.

    ``program`` is a dictionary or a JSON file: ``{"buffers": [...], "tasks": [...]}``, as docs/commands.md has it.
    ``rules`` is ``"paper"``, ``"full"`` or ``"off"``, for messages between pairs of ranks alone. With a machine, among
    ranks or a network, what its communication takes there comes too: ``predicted``, and ``point_to_point`` without
    collectives; ``simulate`` runs every operation on the machine's simulator as well.

    Raises:
        InputError: a program that is not as expected, no such machine, or one of fewer ranks.
        UnsupportedError: the machine is of another kind.

    """
    if isinstance(program, Mapping):
        try:
            text = json.dumps(dict(program))
        except (TypeError, ValueError) as wrong:
            raise InputError(f"the program does not have JSON's types: {wrong}") from wrong
        except RecursionError:
            raise InputError("the program is not read: it nests too deeply") from None
    else:
        text = read_text(program)
        if not text.lstrip().startswith("{"):
            raise InputError(f"'{title(program)}' is no program; accepted are a .py file and a program in JSON")
    if machine is None:
        without_machine(model, simulate)
        return _core.discover(text, nodes, rules)
    found, predicted, alone = predictions(
        lambda rules: _core.discover_moved(text, nodes, rules), machine, nodes, rules, model, simulate
    )
    return {**found, **as_report(predicted, alone)}
