"""Schedules as code for other tools."""

import os

from unisono import _core
from unisono._core import Schedule
from unisono._files import check_folder, write_folder


def emit_files(schedule: Schedule, target: str) -> dict[str, str]:
    """The files of a target, by relative path; the schedule is proved first.

    Raises:
        InputError: there is no such target, or the schedule has no machine.
        VerifyError: the proof fails.
        UnsupportedError: the target cannot express the schedule, with the reason.

    """
    return _core.emit(schedule, target)


def emit(schedule: Schedule, target: str, folder: str | os.PathLike[str]) -> list[str]:
    """Writes a schedule as code for ``target`` (``"csl"``) into a folder, and returns the files' names.

    Raises:
        InputError: there is no such target, the folder cannot be one, or the schedule has no machine.
        VerifyError: the proof fails.
        UnsupportedError: the target cannot express the schedule, with the reason; nothing is written.

    """
    check_folder(folder)
    return write_folder(folder, emit_files(schedule, target))
