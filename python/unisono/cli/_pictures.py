"""Checks the names of picture files that commands write."""

from unisono import InputError
from unisono.base.files import check_writable
from unisono.base.pictures import FORMS
from unisono.cli._output import one_of


def check_picture(path: str | None) -> None:
    """Raises an error early if the picture cannot be written.

    Raises:
        InputError: the name has another ending, or cannot be a file.

    """
    if path is None:
        return
    endings = [f".{form}" for form in FORMS]
    if not path.lower().endswith(tuple(endings)):
        raise InputError(f"'{path}' is no name of a picture; accepted are names that end in {one_of(endings)}")
    check_writable(path)
