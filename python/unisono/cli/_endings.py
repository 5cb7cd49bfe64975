"""Checks the endings of files whose form follows from their name."""

from collections.abc import Mapping
from pathlib import PurePath

from unisono import InputError
from unisono.cli._output import one_of

#: The forms of schedules by the endings of their files.
SCHEDULE_FILES = {".sched": "text", ".json": "JSON"}


def check_ending(path: str | None, forms: Mapping[str, str]) -> None:
    """Raises an error if the ending of a file is not in ``forms``, which maps endings to forms.

    A name without an ending, such as ``/dev/stdout``, is accepted. An example of ``forms`` is ``{".csv": "a table"}``.

    Raises:
        InputError: the name has another ending.

    """
    if path is not None and PurePath(path).suffix.lower() not in ("", *forms):
        listed = one_of([f"{ending} ({form})" for ending, form in forms.items()])
        raise InputError(f"'{path}' has an ending that is not known here; accepted are {listed}")
