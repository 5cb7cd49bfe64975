"""What the ranks of a program compute and communicate, as a program that is put on a machine."""

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
    tasks = TaskList()
    program._declare(tasks)
    for step in steps:
        step.list_in(tasks)
    return WorkloadGraph.of_tasks(tasks, name, count, strict, program._reduced_by_messages())
