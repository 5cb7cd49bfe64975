"""Programs that are only written down, not run."""

import contextlib
import runpy
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from unisono._core import Error, InputError
from unisono.base.files import check_regular

__all__ = ["made", "record", "recording"]

if TYPE_CHECKING:
    from unisono.tasks._program import Program

#: Programs made while a file is recorded; none while nothing is recorded.
_made: list["Program"] | None = None


def recording() -> bool:
    """Whether programs are written down only."""
    return _made is not None


def made(program: "Program") -> None:
    """Remembers a program."""
    if _made is not None:
        _made.append(program)


@contextlib.contextmanager
def _record() -> Iterator[list["Program"]]:
    global _made
    before, _made = _made, []
    try:
        yield _made
    finally:
        _made = before


def record(path: str) -> "Program":
    """Executes a file without running its program, and returns that. Its output goes to standard error."""
    check_regular(path)
    with _record() as found, contextlib.redirect_stdout(sys.stderr):
        try:
            runpy.run_path(path, run_name="__main__")
        except SystemExit as ended:
            if ended.code not in (None, 0):
                raise Error(f"'{path}' ended with {ended.code}") from ended
        except Error:
            raise
        except Exception as failure:
            raise Error(f"'{path}' failed: {type(failure).__name__}: {failure}") from failure
        programs = [program for program in found if program.tasks]
    if len(programs) != 1:
        raise InputError(f"'{path}' makes {len(programs)} programs with tasks; accepted is one")
    return programs[0]
