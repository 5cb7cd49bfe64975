"""The function that finds the collectives of a program of tasks, without running the program."""

import json
import os
from collections.abc import Mapping
from typing import Any, SupportsIndex

from unisono import _core
from unisono._core import InputError
from unisono.base.files import read_text, title
from unisono.base.inputs import MachineLike
from unisono.base.reports import DiscoveryReport
from unisono.discovery.devices import check_devices, devices_report
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
    devices: SupportsIndex | None = None,
    rank: SupportsIndex = 0,
    device_machine: MachineLike | None = None,
) -> DiscoveryReport:
    """Returns a program's operations in the order of issue, and the numbers of messages of all ranks.

    ``program`` is a dictionary or a JSON file: ``{"buffers": [...], "tasks": [...]}``, as described in
    docs/commands.md. ``rules`` is ``"paper"``, ``"full"`` or ``"off"``, for messages between pairs of ranks alone. With
    a machine of ranks or a network, the report has the times of communication: ``predicted``, and ``point_to_point``
    without collectives. ``simulate`` also runs every operation on the machine's simulator.

    ``devices`` is the number of devices of each process. The report's ``devices`` then lists the copies between the
    memories of process ``rank``, with their time on ``device_machine``: its rank 0 is the host, the next ranks are the
    devices.

    Raises:
        InputError: the program is damaged, or the machine does not exist or has fewer ranks than ``nodes``.
        UnsupportedError: the machine's ranks exchange no messages.

    """
    if isinstance(program, Mapping):
        try:
            text = json.dumps(dict(program))
        except (TypeError, ValueError) as wrong:
            raise InputError(f"the program does not have JSON's types: {wrong}") from wrong
        except RecursionError:
            raise InputError("the program is not read: it nests too deeply") from None
    else:
        text = read_text(program, kind="a program of tasks, in Python (.py) or JSON")
        if not text.lstrip().startswith("{"):
            if title(program).endswith(".py"):
                raise InputError(f"'{title(program)}' is a program in Python, which 'unisono discover' runs; give JSON")
            raise InputError(f"'{title(program)}' is no program; accepted are a .py file and a program in JSON")
    check_devices(devices, rank, device_machine)
    if machine is None:
        without_machine(model, simulate and device_machine is None)
        found = _core.discover(text, nodes, rules)
    else:
        report, predicted, alone = predictions(
            lambda rules: _core.discover_moved(text, nodes, rules), machine, nodes, rules, model, simulate
        )
        found = {**report, **as_report(predicted, alone)}
    if devices is None:
        return found
    tasks = _core.TaskList.of_json(text)
    return {**found, "devices": devices_report(tasks, nodes, rules, devices, rank, device_machine, simulate)}
