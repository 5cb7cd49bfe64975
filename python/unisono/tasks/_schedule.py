"""The execution of a rank's commands.

The loop is in `unisono._core.TaskSchedule`: exchanges begin in the order of commands, which is the same on all ranks,
and kernels run in it. An exchange does not wait for kernels that it does not depend on, and progresses while they run.
"""

from collections.abc import Callable

from unisono._core import TaskSchedule
from unisono.tasks._local_arrays import Command
from unisono.tasks._progress import ProgressThread

#: Runs the kernel of a task, by its number; the command is given if traces or devices need it.
Execute = Callable[[int, Command | None], None]


def carry_out(schedule: TaskSchedule, execute: Execute, thread: ProgressThread) -> None:
    """Executes all of a rank's commands."""
    with thread.of(schedule):
        schedule.carry_out(execute, thread)
