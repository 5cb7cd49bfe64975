"""Checks kernels: runs each task as a whole and in the parts of several ranks, and compares the results.

A kernel that treats the edge of its view as the edge of the array is correct on one rank and wrong on two. All runs are
in this process. Each task starts from the results of the previous tasks on one rank, so the first task that differs has
the fault. Exchanges are not checked, because they are proved.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unisono._core import Discovery, InputError, UnsupportedError
from unisono.base.inputs import whole
from unisono.tasks import _kernels
from unisono.tasks._local_arrays import LocalArray
from unisono.tasks._operators import COMBINE, NEUTRAL
from unisono.tasks._regions import Box, Boxes, Data, place
from unisono.tasks._submitted import Task

if TYPE_CHECKING:
    from unisono.tasks._program import Program

#: Two permitted differences of floating-point results, as multiples of the machine epsilon times the largest finite
#: absolute value: of results of kernels, and of sums and products by reductions.
_ROUNDED, _SUMMED = 1e4, 1e8


class _Changed(NamedTuple):
    """The contents that the kernel of one rank wrote to an array."""

    array: int
    mode: str
    region: Boxes
    data: Data


class _Rank:
    """The parts of all tasks that one of several ranks executes."""

    def __init__(self, program: "Program", ranks: int, rank: int) -> None:
        self.rank = rank
        self._discovery = Discovery(ranks, rank, "off", rows=True, report=False)
        program._submit(self._discovery)
        self._discovery.flush()
        commands = (command for command in self._discovery.commands() if command[0] == "execute")
        self.chunks: dict[int, Box] = {command[2]: (command[4], command[5]) for command in commands}

    def run(self, program: "Program", number: int, task: Task, state: Sequence[Data]) -> list[_Changed]:
        """Runs the kernel on copies of the arrays that it changes, so that ``state`` keeps its contents."""
        if number not in self.chunks:
            return []
        changed = {array for array, mode, _ in task.accesses if mode != "read"}
        local = {
            array: LocalArray(state[array].copy() if array in changed else state[array])
            for array, _, _ in task.accesses
        }
        parts = [
            _kernels.Part(local[array], program.arrays[array].name, mode, box, region)
            for (array, mode, _), (box, region) in zip(task.accesses, self._discovery.views(number), strict=True)
        ]
        _kernels.call(task.name, task.kernel, parts, task.operator, "host", task.offsets)
        return [
            _Changed(array, mode, part.region, local[array].data)
            for (array, mode, _), part in zip(task.accesses, parts, strict=True)
            if mode != "read"
        ]


def check(program: "Program", ranks: int) -> None:
    """Implements :meth:`Program.check`."""
    count = whole("ranks", ranks)
    if count < 2:
        raise InputError(f"ranks is {count}; accepted are numbers from 2 on")
    if program._transport is not None and program._transport.ranks > 1:
        raise UnsupportedError("kernels are checked by one process alone; run this without mpiexec")
    on_devices = next((task.name for task in program.tasks if task.on == "cupy"), None)
    if on_devices is not None:
        raise UnsupportedError(f"task '{on_devices}' runs on a device; accepted are programs whose kernels do not")
    alone, several = _Rank(program, 1, 0), [_Rank(program, count, rank) for rank in range(count)]
    state = [local.latest().copy() for local in program._local_arrays]
    for number, task in enumerate(program._steps):
        if not isinstance(task, Task) or task.once:
            continue
        expected = _merged(task, state, [alone.run(program, number, task, state)])
        parts = [(rank, rank.run(program, number, task, state)) for rank in several]
        found = _merged(task, state, [changed for _, changed in parts])
        for changed, data in expected.items():
            _compare(program, number, task, changed, data, found[changed], parts)
            state[changed] = data


def _merged(task: Task, state: Sequence[Data], ranks: Iterable[Sequence[_Changed]]) -> dict[int, Data]:
    """Returns the arrays that a task changes, merged from the contents that each rank wrote."""
    all_changed = [changed for rank in ranks for changed in rank]
    merged = {changed.array: state[changed.array].copy() for changed in all_changed}
    reduced = [changed for changed in all_changed if changed.mode == "reduce"]
    for changed in reduced:
        for piece in changed.region:
            merged[changed.array][place(piece)] = NEUTRAL[task.operator](changed.data.dtype)
    for changed in all_changed:
        for piece in changed.region:
            into = merged[changed.array][place(piece)]
            if changed.mode == "reduce":
                COMBINE[task.operator](into, changed.data[place(piece)], out=into)
            else:
                into[...] = changed.data[place(piece)]
    return merged


def _compare(
    program: "Program",
    number: int,
    task: Task,
    array: int,
    expected: Data,
    found: Data,
    parts: Sequence[tuple[_Rank, Sequence[_Changed]]],
) -> None:
    """Raises an error if results of a task differ by more than rounding.

    Raises:
        InputError: an element differs.

    """
    wrong = np.argwhere(_differ(expected, found, task.operator if array in task.reduced else None))
    if not len(wrong):
        return
    at = tuple(map(int, wrong[0]))
    name, place_of = program.arrays[array].name, ", ".join(map(str, at))
    why = "its kernel may take the edge of a view for the edge of the array, or depend on the length of its part"
    by = f"on {len(parts)} ranks"
    if array not in task.reduced:
        inside = ((rank, changed) for rank, listed in parts for changed in listed if changed.array == array)
        owner = next(rank for rank, changed in inside if any(_holds(box, at) for box in changed.region))
        low, high = owner.chunks[number]
        chunk = " x ".join(f"[{a}, {b})" for a, b in zip(low, high, strict=True))
        by += f", by rank {owner.rank} with the part {chunk} of the range"
    raise InputError(
        f"task '{task.name}' depends on the number of ranks: {name}[{place_of}] is {expected[at]} on one rank and "
        f"{found[at]} {by}; {why}"
    )


def _differ(expected: Data, found: Data, operator: str | None) -> Any:
    """Returns a mask of the elements in which two arrays differ beyond rounding."""
    if expected.dtype.kind not in "fc":
        return expected != found
    finite = np.abs(expected[np.isfinite(expected)])
    unit = float(np.finfo(expected.dtype).eps) * (_SUMMED if operator in ("sum", "prod") else _ROUNDED)
    largest = float(finite.max()) if finite.size else 0.0
    return ~np.isclose(found, expected, rtol=0, atol=unit * largest, equal_nan=True)


def _holds(box: Box, at: tuple[int, ...]) -> bool:
    return all(low <= index < high for low, index, high in zip(box[0], at, box[1], strict=True))
