"""The files of pictures that commands draw."""

from unisono import InputError
from unisono.base.files import check_writable
from unisono.cli._output import one_of

__all__ = ["check_picture"]


def check_picture(path: str | None, *forms: str) -> None:
    """Fails before long work where the picture cannot be written; ``forms`` are the endings that are accepted.

    Raises:
        InputError: the name has another ending, or cannot be a file.

    """
    if path is None:
        return
    endings = [f".{form}" for form in forms]
    if not path.endswith(tuple(endings)):
        raise InputError(f"'{path}' is no name of a picture; accepted are names that end in {one_of(endings)}")
    check_writable(path)
