"""The computation and communication of the ranks of a program, as a program to execute on a machine."""

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
    """Discovers the communication of the steps of a program.

    Raises:
        InputError: a number of ranks that is not accepted; with ``strict``, a task without ``operations``.

    """
    count = whole("ranks", ranks)
    if not 1 <= count < 2**32:
        raise InputError(f"ranks is {count}; accepted are numbers from 1 on")
    return WorkloadGraph.of_tasks(listed(program, steps), name, count, strict, program._reduced_by_messages())


def listed(program: "Program", steps: Sequence[Task | Fetch]) -> TaskList:
    """Returns the steps of a program as a list of tasks.

    Kernels with ``on="cupy"`` are on devices; if there is none, all kernels are, except those with ``on="host"``.
    """
    tasks = TaskList()
    program._declare(tasks)
    named = any(isinstance(step, Task) and step.on == "cupy" for step in steps)
    host = ("numpy", "host") if named else ("host",)
    for step in steps:
        step.list_in(tasks, host)
    return tasks
