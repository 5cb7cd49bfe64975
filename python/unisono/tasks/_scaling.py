"""Strong scaling of a program: kernel times measured in one process, communication predicted."""

import math
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from unisono._core import Discovery, InputError, UnsupportedError
from unisono.base.files import check_writable, write
from unisono.base.inputs import MachineLike
from unisono.tasks._submitted import Task

if TYPE_CHECKING:
    from unisono.tasks._program import Program

#: The default numbers of nodes.
NODES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


@dataclass(frozen=True)
class Scaling:
    """A program on increasing numbers of nodes of a machine; printed as a table.

    Each row has ``nodes``, ``compute_seconds``, ``communication_seconds``, their sum ``seconds``, ``speedup`` relative
    to one node, ``efficiency`` (``speedup`` / ``nodes``), and ``by_messages_seconds`` and ``by_messages_speedup``
    without collectives; with a simulation ``simulated_seconds`` and ``by_messages_simulated_seconds`` of the
    communication.
    """

    machine: str
    rows: list[dict[str, Any]]
    #: Sentences on effects that the times of communication omit.
    notes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """Returns a line for each number of nodes, and the notes."""
        simulated = any("simulated_seconds" in row for row in self.rows)
        titles = ["nodes", "compute", "communication", "simulated", "speed-up", "efficiency", "by messages", "speed-up"]
        lines = [titles]
        for row in self.rows:
            lines.append(
                [
                    str(row["nodes"]),
                    _time(row["compute_seconds"]),
                    _time(row["communication_seconds"]),
                    _time(row.get("simulated_seconds", math.nan)),
                    f"{row['speedup']:.4g}",
                    f"{row['efficiency']:.1%}",
                    _time(row["by_messages_seconds"]),
                    f"{row['by_messages_speedup']:.4g}",
                ]
            )
        if not simulated:
            lines = [[cell for at, cell in enumerate(line) if at != 3] for line in lines]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        table = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
        return "\n".join([*table, *(["", *self.notes] if self.notes else [])])

    __repr__ = __str__

    def plot(self, path: str | os.PathLike[str], title: str = "") -> None:
        """Draws the efficiency and the times of computation and communication as PNG.

        Raises:
            InputError: the path has another ending.
            OSError: the file cannot be written.

        """
        # The import takes half a second.
        from unisono.pictures.plots import scaling

        if not os.fspath(path).endswith(".png"):
            raise InputError(f"'{path}' does not end in .png, and the picture is one")
        check_writable(path)
        write(path, scaling.draw(self.rows, title or f"Predicted on {self.machine}"))


def scaling(
    program: "Program",
    nodes: Iterable[int],
    machine: MachineLike,
    kernels: Mapping[str, float] | None,
    model: str | None,
    simulate: bool,
) -> Scaling:
    """Implements :meth:`Program.scaling`."""
    alone = measured(program) if kernels is None else checked(program, kernels)
    base = sum(alone.values())
    rows: list[dict[str, Any]] = []
    name, notes = "", dict[str, None]()
    for count in nodes:
        explained = program.explain(count, machine=machine, model=model, simulate=simulate)
        predicted, by_messages = explained.prediction, explained.by_messages
        assert predicted is not None
        assert by_messages is not None
        name = predicted.machine
        notes |= dict.fromkeys(predicted.notes)
        compute = sum(seconds * share for seconds, share in shares(program, count, alone))
        seconds, otherwise = compute + predicted.seconds, compute + by_messages.seconds
        row: dict[str, Any] = {
            "nodes": explained.nodes,
            "compute_seconds": compute,
            "communication_seconds": predicted.seconds,
            "seconds": seconds,
            "speedup": base / seconds if seconds > 0 else 1.0,
            "efficiency": base / seconds / count if seconds > 0 else 1.0,
            "by_messages_seconds": by_messages.seconds,
            "by_messages_speedup": base / otherwise if otherwise > 0 else 1.0,
        }
        if simulate:
            row["simulated_seconds"] = predicted.simulated_seconds
            row["by_messages_simulated_seconds"] = by_messages.simulated_seconds
        rows.append(row)
    return Scaling(name, rows, list(notes))


def measured(program: "Program") -> dict[str, float]:
    """Returns the CPU seconds of all tasks of each name in this process, on copies of the current arrays.

    Raises:
        UnsupportedError: the program runs on several ranks, none of which has all elements.

    """
    alone = type(program)()
    if alone._transport is not None:
        raise UnsupportedError("kernels are measured by one process alone; run this without mpiexec, or give kernels=")
    alone._copy_from(program)
    return alone._timed()


def checked(program: "Program", kernels: Mapping[str, float]) -> dict[str, float]:
    """Checks and returns the given seconds of each task's kernels.

    Raises:
        InputError: a task is missing or unknown, or a time is not a finite number from 0 on.

    """
    names = dict.fromkeys(task.name for task in program.tasks if not task.once)
    known = dict.fromkeys(task.name for task in program.tasks)
    if not set(names) <= set(kernels) <= set(known):
        given = ", ".join(map(str, kernels)) or "nothing"
        raise InputError(f"kernels gives the seconds of {given}; the tasks are {', '.join(known)}")
    for name, seconds in kernels.items():
        if not 0 <= seconds < math.inf:
            raise InputError(f"the kernels of '{name}' take {seconds} seconds; accepted are numbers from 0 on")
    return {name: float(kernels[name]) for name in known if name in kernels}


def shares(program: "Program", nodes: int, alone: Mapping[str, float]) -> list[tuple[float, float]]:
    """Returns, for each task name, the seconds in one process and the largest fraction of these on one node."""
    done: dict[str, float] = {}
    whole: dict[str, float] = {}
    # The first parts are up to one granule larger than the other parts, and the last part may have the remainder. The
    # largest part is therefore the first or the last.
    parts = [_parts(program, nodes, rank) for rank in {0, nodes - 1}]
    # Fetches and tasks are numbered together.
    for at, task in enumerate(program._steps):
        if not isinstance(task, Task) or task.name not in alone:
            continue
        whole[task.name] = whole.get(task.name, 0.0) + math.prod(task.sizes)
        done[task.name] = done.get(task.name, 0.0) + max(part.get(at, 0) for part in parts)
    return [(seconds, done[name] / whole[name] if whole[name] else 0.0) for name, seconds in alone.items()]


def _parts(program: "Program", nodes: int, rank: int) -> dict[int, int]:
    """Returns, by the number of the submission, the number of points of its range that a rank executes."""
    discovery = Discovery(nodes, rank, "off", rows=True, report=False)
    program._submit(discovery)
    discovery.flush()
    executed = (command for command in discovery.commands() if command[0] == "execute")
    return {
        command[2]: math.prod(high - low for low, high in zip(command[4], command[5], strict=True))
        for command in executed
    }


def timed(seconds: dict[str, float], name: str, kernel: Any) -> None:
    """Calls a kernel, and adds its CPU time to the seconds of a name."""
    begin = time.process_time()
    kernel()
    seconds[name] = seconds.get(name, 0.0) + time.process_time() - begin


def _time(seconds: float) -> str:
    if math.isnan(seconds):
        return "-"
    for factor, unit in ((1.0, "s"), (1e3, "ms")):
        if seconds * factor >= 1:
            return f"{seconds * factor:.4g} {unit}"
    return f"{seconds * 1e6:.4g} µs"
