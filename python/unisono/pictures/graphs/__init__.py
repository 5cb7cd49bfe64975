"""Files with graphs of programs of tasks: Graphviz text, or a picture."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from unisono._core import InputError, Mapper
from unisono.base.files import check_writable, write
from unisono.base.pictures import FORMS, form_of
from unisono.pictures.graphs import _commands, _tasks
from unisono.pictures.graphs._tasks import Source

__all__ = ["KINDS", "Source", "check_graph", "of_json", "write_graph"]

KINDS = ("commands", "tasks")
_FORMS = (".dot", *(f".{form}" for form in FORMS))


def check_graph(file: str | os.PathLike[str], kind: str) -> None:
    """Raises the errors that :func:`write_graph` would raise later."""
    if kind not in KINDS:
        raise InputError(f"kind of graph is '{kind}'; accepted are {', '.join(KINDS)}")
    if Path(file).suffix not in _FORMS:
        accepted = ", ".join(_FORMS)
        raise InputError(f"'{os.fspath(file)}' is no name of a graph; accepted are names that end in {accepted}")
    check_writable(file)


def write_graph(source: Source, file: str | os.PathLike[str], kind: str, title: str) -> None:
    """Writes the graph of each rank's commands (``commands``), or of the data that tasks read (``tasks``)."""
    check_graph(file, kind)
    nodes = "1 node" if source.nodes == 1 else f"{source.nodes} nodes"
    write(file, _made(source, os.fspath(file), kind, f"{title}: {kind}, {nodes}, rules {source.rules}"))


def _made(source: Source, file: str, kind: str, title: str) -> str | bytes:
    if file.endswith(".dot"):
        return _commands.dot(source, title) if kind == "commands" else _tasks.dot(source, title)
    # Imported late, because only pictures need matplotlib.
    from unisono.pictures.graphs import _command_picture, _task_picture

    if kind == "commands":
        return _command_picture.draw(source, title, form_of(file))
    return _task_picture.draw(source, title, form_of(file))


def of_json(program: dict[str, Any]) -> Callable[[Any], None]:
    """Returns a function that submits a program in JSON form, which must have been checked."""

    def build(to: Any) -> None:
        buffers = {}
        for given in program["buffers"]:
            name, initialized = given["name"], given.get("host_initialized", False)
            buffers[name] = to.buffer(name, given["shape"], given.get("element_bytes", 8), initialized=initialized)
        for number, task in enumerate(program["tasks"]):
            accesses = [(buffers[a["buffer"]], a["mode"], _mapper(a["mapper"])) for a in task.get("accesses", ())]
            options = {name: task[name] for name in ("offset", "granularity", "split") if task.get(name) is not None}
            to.task(task.get("name") or f"task {number}", task["range"], accesses, **options)

    return build


def _mapper(given: dict[str, Any]) -> Mapper:
    params = {name: value for name, value in given.items() if name != "kind" and value is not None}
    # `granularity` is the only parameter that may be missing.
    defaults = {"granularity": 1} if given["kind"] == "even_split" else {}
    return Mapper(given["kind"], **defaults | params)
