"""Machines by the name of a preset, or from a TOML file."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, SupportsIndex

from unisono._core import InputError, Machine, parse_shape, preset_names, require_offer
from unisono.base import names
from unisono.base.file_types import MACHINE, reading
from unisono.base.files import (
    MOST_DESCRIPTION_BYTES,
    check_regular,
    exists,
    file_name,
    is_file,
    is_folder,
    read_inside,
    read_text,
    title,
)
from unisono.base.inputs import MachineLike, is_whole, items, whole
from unisono.base.messages import shown
from unisono.machines.graphs import is_graph, of_graph

__all__ = ["DATA_SHEET", "Shape", "by_rates", "machine", "of_ranks", "shape_of", "with_shape"]

#: The model with data sheets' rates in place of measured rates.
DATA_SHEET = "data-sheet"

#: The sides of a grid, or a number of ranks: ``"512"``, ``"512x512"``, ``512`` or ``(rows, columns)``.
Shape = str | SupportsIndex | Sequence[SupportsIndex]


def shape_of(shape: Shape | None) -> tuple[int, ...] | None:
    """Returns the sides of a shape as whole numbers, as the extension module takes them; None for None.

    Raises:
        InputError: ``shape`` is not a shape.

    """
    if shape is None or isinstance(shape, str):
        return None if shape is None else parse_shape(shape)
    message = f"{shown(shape)} is not a shape; accepted are N, (rows, columns), and text such as '4x4'"
    sides = [shape] if is_whole(shape) else items(shape, message)
    # The sides are converted to text, because the checks of shapes are in the reader of their text form.
    return parse_shape("x".join(str(whole("a side of the shape", side)) for side in sides))


def machine(
    name: MachineLike,
    shape: Shape | None = None,
    *,
    nodes: SupportsIndex | None = None,
    subset: Sequence[SupportsIndex] | None = None,
    failed: Iterable[SupportsIndex | str] | None = None,
) -> Machine:
    """Returns the machine of that name: a preset such as ``"wse2"``, or the path of a TOML file.

    A dictionary with the keys of such a file is a machine too, and so is a graph of networkx: a node with
    ``switch=True`` is a switch, all others are accelerators; an edge may have ``gbps``, ``ns`` and ``count``.

    ``shape`` chooses the part of the machine that runs collectives, by default all of it: the number of ranks, or the
    sides of a grid. ``nodes`` is the number of nodes of a machine whose switches reduce, of which those of ``subset``
    take part (all by default), or the number of boxes of a network of boxes; a box that names a ``cluster`` is repeated
    with its own rates. On a network ``failed`` lists missing links and nodes of every plane: ``"3-17"`` for all cables
    between two nodes, ``"3-17:1"`` for one of these cables, ``17`` for a node, the name of a part, and ``"plane 2"``
    for one of several planes. Numbers are those of the machine without failures. Accelerators after a failed one are
    numbered one lower.

    Raises:
        InputError: no such preset or file, a damaged file, a shape that the machine does not have, failures that do not
            exist, are named twice or cut off accelerators, or ``nodes`` for a network whose own failures would name
            other nodes then.

    """
    made, sides, failures = _machine(name), shape_of(shape), _failures(failed)
    count = None if nodes is None else _node("nodes", nodes)
    listed = None
    if subset is not None:
        among = items(subset, f"subset is {shown(subset)}, and must be a list of nodes")
        listed = [_node("a node of the subset", node) for node in among]
    is_same = count is None and listed is None and not failures
    # A `Machine` that already has this shape is returned unchanged, so that it keeps its subset.
    if is_same and (sides is None or (isinstance(name, Machine) and sides == made.shape)):
        return made
    return made.asked(sides, count, listed, failures)


def _failures(failed: Iterable[SupportsIndex | str] | None) -> list[str]:
    if failed is None:
        return []
    what = "failed must be a list of links, as in '3-17', and nodes"
    found = [
        failure if isinstance(failure, str) else str(_node("a node that failed", failure))
        for failure in items(failed, f"{what}; {shown(failed)} is not")
    ]
    # Several failures A-B:N of the same nodes are added; every other failure may be named only once.
    again = next((one for one in found if ":" not in one and found.count(one) > 1), None)
    if again is not None:
        raise InputError(f"the failure '{again}' is named {found.count(again)} times; name it once")
    return found


def _node(what: str, value: SupportsIndex) -> int:
    number = whole(what, value)
    if not 0 <= number < 2**32:
        raise InputError(f"{what} is {number}; accepted are whole numbers from 0 on")
    return number


def _machine(name: Any) -> Machine:
    if isinstance(name, Machine):
        return name
    if isinstance(name, Mapping):
        return _described(name)
    if is_graph(name):
        return of_graph(name)
    if not isinstance(name, str | os.PathLike):
        raise InputError(
            f"{shown(name)} is not a machine; accepted are the name of a preset, a path, a Machine, a graph of "
            "networkx, and a dictionary with the keys of a machine file"
        )
    text = file_name(name)
    presets = preset_names()
    looks_like_a_path = text.endswith(".toml") or "/" in text or os.sep in text or not isinstance(name, str)
    if text in presets:
        return Machine.preset(text)
    if not (looks_like_a_path or is_file(text)):
        if (now := names.RENAMED_PRESETS.get(text)) is not None:
            raise InputError(
                f"the preset '{text}' is '{now}' now, which has what was measured; --model data-sheet leaves that out"
            )
        known = names.preset(text)
        if known is None:
            if is_folder(text):
                check_regular(text)
            near = names.did_you_mean(text, presets)
            # A list of all presets would fill a screen and hide the proposed name.
            listed = "'unisono machines' lists the presets"
            raise InputError(f"'{title(text)}' is neither a machine preset nor a machine file{near}; {listed}")
        return Machine.preset(known)
    if not exists(text):
        raise InputError(f"the machine file '{title(text)}' does not exist; 'unisono machines' lists the presets")
    description = read_text(text, MOST_DESCRIPTION_BYTES)
    with reading(text, "machine file", (MACHINE,), "'unisono machines NAME -o FILE.toml' writes one"):
        return Machine.from_toml(description, title(text), None, _named_files(description, text))


def _described(keys: Mapping[str, Any]) -> Machine:
    """Returns the machine that a dictionary describes, with the keys of ``Machine.describe()`` and of files."""
    # Imported late, because most machines are presets.
    import tomli_w

    # TOML has no None: such keys are omitted.
    given = {key: value for key, value in keys.items() if value is not None}
    try:
        text = tomli_w.dumps(given)
    except (TypeError, ValueError, AttributeError) as error:
        raise InputError(f"the dictionary of a machine has a value that no machine file has: {error}") from None
    return Machine.from_toml(text, shown(keys.get("name", "machine")))


def _named_files(description: str, path: str) -> dict[str, str]:
    """Returns, by its name, the text of the file with the cables of a graph; empty if the description names none.

    Raises:
        InputError: the named file is in another folder, or does not exist.

    """
    # Imported late, because most machines are presets.
    import tomllib
    from pathlib import Path

    try:
        topology = tomllib.loads(description).get("topology")
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}  # The extension module reads the description again and reports the error, with the line.
    named = topology.get("file") if isinstance(topology, dict) else None
    if not isinstance(named, str):
        return {}
    return {named: read_inside(Path(path).parent, named, "the file of the cables of the topology,")}


def with_shape(machine_or_name: MachineLike, shape: Shape | None, ranks: SupportsIndex | None = None) -> Machine:
    """Returns a machine at a shape or at a number of ranks; without both, a `Machine` is returned unchanged.

    Raises:
        InputError: as :func:`machine` does, or both are given.

    """
    if ranks is None:
        return machine(machine_or_name, shape)
    if shape is not None:
        raise InputError(f"shape={shown(shape)} and ranks={shown(ranks)} both choose the part of the machine; give one")
    return machine(machine_or_name, whole("ranks", ranks))


def of_ranks(machine_or_name: MachineLike, ranks: int, purpose: str) -> Machine:
    """Returns the machine with ``ranks`` ranks that exchange messages; ``purpose`` begins the error message.

    Raises:
        InputError: as :func:`machine` does, or the machine's ranks exchange no messages.

    """
    found = with_shape(machine_or_name, ranks)
    require_offer(found, "messages", purpose)
    return found


def by_rates(on: MachineLike, model: str | None) -> Machine:
    """Returns the machine with the rates of a model; without a model, with its own rates.

    Raises:
        InputError: there is no such model, or the machine has no data sheet.

    """
    found = machine(on)
    if model is None:
        return found
    if model != DATA_SHEET:
        raise InputError(f"{shown(model)} is not a model of workloads; accepted is {DATA_SHEET}")
    return found.data_sheet()
