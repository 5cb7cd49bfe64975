"""Panels of a schedule that is too large for an animation: heat maps of loads and times, and a table of links."""

from collections.abc import Sequence
from math import ceil, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from unisono._core import Schedule, UnsupportedError, plane
from unisono.simulation.runs import Run
from unisono.simulation.schedules import simulate
from unisono.viewing.machines import cable_classes

__all__ = ["panels"]

#: The maximum number of nodes in a heat map, and the maximum number of instructions of a schedule that is simulated for
#: its page.
_MOST_PARTS, _MOST_INSTRUCTIONS = 1 << 20, 1 << 22
#: The directions of links on a wafer, by the step in rows and columns.
_DIRECTIONS = {(0, 1): "east", (0, -1): "west", (1, 0): "south", (-1, 0): "north"}
_COLUMNS = ["links", "of them loaded", "mean load", "largest load"]

Panel = dict[str, Any]
Numbers = npt.NDArray[Any]


def panels(schedule: Schedule) -> tuple[list[Panel], Run | None]:
    """Returns the panels, and the simulated run if there is one.

    There are no panels without a wafer or a network, for too many nodes, or on a network without a run.

    Raises:
        SimulationError: the schedule got stuck on its machine.

    """
    machine = schedule.machine
    offers = [] if machine is None else machine.offers
    if machine is None or schedule.nodes > _MOST_PARTS or not {"grid", "links"} & set(offers):
        return [], None
    run = _run(schedule)
    return (_wafer(schedule, run) if "grid" in offers else _network(schedule, run)), run


def _run(schedule: Schedule) -> Run | None:
    if schedule.instructions > _MOST_INSTRUCTIONS:
        return None
    try:
        return simulate(schedule)
    except UnsupportedError:
        return None


def _wafer(schedule: Schedule, run: Run | None) -> list[Panel]:
    assert schedule.machine is not None
    shape, found = schedule.machine.shape, schedule.link_loads()
    if shape is None or found is None:
        return []
    rows, columns = shape if len(shape) == 2 else (1, shape[0])
    source, target, load = (found[name].astype(np.int64) for name in ("source", "target", "elements"))
    layers = [_layer("largest load of a link out", "elements", _largest(source, load, rows * columns))]
    layers.append(_layer("elements sent to neighbors", "elements", _sums(source, load, rows * columns)))
    if run is not None:
        layers.append(_layer("end", "cycles", run.finish))
    steps = zip(
        (target // columns - source // columns).tolist(), (target % columns - source % columns).tolist(), strict=True
    )
    classes = np.array([_DIRECTIONS[step] for step in steps])
    along, across = rows * (columns - 1), (rows - 1) * columns
    totals = {"east": along, "west": along, "south": across, "north": across}
    table = [[name, *_loads(totals[name], load[classes == name])] for name in _DIRECTIONS.values()]
    return [
        _heat("PE", rows, columns, layers),
        {"kind": "table", "title": "Links by direction (elements)", "columns": ["direction", *_COLUMNS], "rows": table},
    ]


def _network(schedule: Schedule, run: Run | None) -> list[Panel]:
    if run is None or "link_packets" not in run.metrics:
        return []
    assert schedule.machine is not None
    found = plane(schedule.machine)
    packets = np.asarray(run.metrics["link_packets"].value, np.int64)
    count = int(found["accelerators"])
    source, target = np.concatenate([found["a"], found["b"]]), np.concatenate([found["b"], found["a"]])
    load = packets[np.concatenate([found["there"], found["back"]])]
    facts = schedule.machine.topology
    extents: Sequence[int] = [] if facts is None else facts["extents"]
    rows, columns = extents if len(extents) == 2 and extents[0] * extents[1] == count else _square(count)
    own = source < count
    sent, received = _sums(source[own], load[own], count), _sums(target[target < count], load[target < count], count)
    part = sent + received > 0
    layers = [
        _layer("largest load of a cable out", "packets", _largest(source[own], load[own], count), part),
        _layer("packets sent", "packets", sent, part),
        _layer("packets received", "packets", received, part),
    ]
    classes = np.concatenate([cable_classes(found)] * 2)
    table = [
        [name.replace("|", ", "), *_loads(int((classes == name).sum()), load[classes == name])]
        for name in sorted(set(classes.tolist()))
    ]
    return [
        _heat("accelerator", rows, columns, layers),
        {"kind": "table", "title": "Cables by class (packets)", "columns": ["class", *_COLUMNS], "rows": table},
    ]


def _square(count: int) -> tuple[int, int]:
    columns = ceil(sqrt(count))
    return ceil(count / columns), columns


def _largest(index: Numbers, load: Numbers, count: int) -> Numbers:
    found = np.zeros(count, np.int64)
    np.maximum.at(found, index, load)
    return found


def _sums(index: Numbers, load: Numbers, count: int) -> Numbers:
    return np.bincount(index, load, count).astype(np.int64)


def _loads(links: int, load: Numbers) -> list[float]:
    """Returns a table row of a class of links: number of links, of loaded links, mean and largest load."""
    return [links, int((load > 0).sum()), float(load.sum() / links) if links else 0.0, int(load.max(initial=0))]


def _layer(name: str, unit: str, values: Numbers, part: Numbers | None = None) -> Panel:
    """Returns a layer of a heat map; values outside of ``part`` are null."""
    listed = values.tolist()
    if part is not None:
        listed = [value if inside else None for value, inside in zip(listed, part.tolist(), strict=True)]
    return {"name": name, "unit": unit, "values": listed}


def _heat(cell: str, rows: int, columns: int, layers: list[Panel]) -> Panel:
    note = f"{rows:,} x {columns:,} {cell}s, too many to play the schedule; values of the whole run."
    return {
        "kind": "heat",
        "title": "Loads and times",
        "note": note,
        "cell": cell,
        "rows": rows,
        "columns": columns,
        "layers": layers,
    }
