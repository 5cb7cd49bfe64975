"""Executes the commands of a rank.

The loop is in `unisono._core.TaskSchedule`: exchanges begin in the order of commands, which is the same on all ranks,
and kernels also run in this order. An exchange waits only for kernels that it depends on, and progresses while other
kernels run.
"""

from collections.abc import Callable

from unisono._core import TaskSchedule
from unisono.tasks._local_arrays import Command
from unisono.tasks._progress import ProgressThread

#: A function that runs the kernel of a task, given by its number; the command is passed if traces or devices need it.
Execute = Callable[[int, Command | None], None]


def carry_out(schedule: TaskSchedule, execute: Execute, thread: ProgressThread) -> None:
    """Executes all of a rank's commands."""
    with thread.of(schedule):
        schedule.carry_out(execute, thread)
