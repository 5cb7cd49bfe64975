"""Converts a program of tasks to a `WorkloadGraph`, whose time on a machine can be predicted."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from unisono._core import InputError, TaskList, WorkloadGraph
from unisono.base.inputs import whole
from unisono.tasks._submitted import Fetch, Task

if TYPE_CHECKING:
    from unisono.tasks._program import Program


def workload(
    program: "Program", steps: Sequence[Task | Fetch], ranks: int, name: str, *, strict: bool
) -> WorkloadGraph:
    """Returns the computation and the discovered communication of the steps of a program.

    Raises:
        InputError: the number of ranks is not accepted; with ``strict``, a task has no ``operations``.

    """
    count = whole("ranks", ranks)
    if not 1 <= count < 2**32:
        raise InputError(f"ranks is {count}; accepted are numbers from 1 on")
    return WorkloadGraph.of_tasks(listed(program, steps), name, count, strict, program._reduced_by_messages())


def listed(program: "Program", steps: Sequence[Task | Fetch]) -> TaskList:
    """Returns the steps of a program as a list of tasks.

    Kernels with ``on="cupy"`` run on devices; if there are none, all kernels do, except those with ``on="host"``.
    """
    tasks = TaskList()
    program._declare(tasks)
    named = any(isinstance(step, Task) and step.on == "cupy" for step in steps)
    host = ("numpy", "host") if named else ("host",)
    for step in steps:
        step.list_in(tasks, host)
    return tasks
