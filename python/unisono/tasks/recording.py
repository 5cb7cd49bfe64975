"""Records programs of tasks without executing their kernels.

The results of kernels are unknown in a recording. The first recording of a file returns zeros from its fetches. A loop
such as ``if fetch(residual) < LIMIT: break`` then ends in its first iteration. The file is therefore recorded a second
time, with fetched numbers that fall to almost 0 in a given number of rounds. The longer recording is used.
"""

import contextlib
import os
import runpy
import sys
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unisono._core import Error, InputError, UnsupportedError
from unisono.base.files import check_regular

__all__ = ["ROUNDS", "Recorded", "fetched", "made", "record", "recording"]

if TYPE_CHECKING:
    import numpy.typing as npt

    from unisono.tasks._arrays import Array
    from unisono.tasks._program import Program

#: The number of fetches by one line of a file after which a recording ends.
ROUNDS = 100


@dataclass
class Recorded:
    """The tasks and fetches that a file submits."""

    programs: list["Program"] = field(default_factory=list)
    #: Remarks on how the recording may differ from a run.
    notes: list[str] = field(default_factory=list)
    #: The number of fetches of an array by each line: file, line number and name of the array.
    _fetches: Counter[tuple[str, int, str]] = field(default_factory=Counter)
    #: The lines that fetched contents that kernels would have written.
    _unknown: set[tuple[str, int, str]] = field(default_factory=set)
    rounds: int = ROUNDS
    #: True if unknown contents fall from fetch to fetch, False if they are zeros.
    falling: bool = False
    #: The line whose number of fetches ended the recording.
    _ended: tuple[str, int, str] | None = None

    @property
    def program(self) -> "Program":
        """Returns the only program of the file."""
        return self.programs[0]

    @property
    def submitted(self) -> int:
        """Returns the number of tasks and fetches of all programs."""
        return sum(len(program._steps) for program in self.programs)


class _EnoughError(BaseException):
    """Raised to end a file in a long loop; not an `Exception`, so that programs do not catch it."""


#: The current recording; None if programs run.
_now: Recorded | None = None


def recording() -> bool:
    """Returns whether programs are only recorded."""
    return _now is not None


def made(program: "Program") -> None:
    """Adds a new program to the current recording, if any."""
    if _now is not None:
        _now.programs.append(program)


def fetched(array: "Array", initial: "npt.NDArray[Any] | None") -> "npt.NDArray[Any]":
    """Returns contents for a fetch of an array; ends the recording if the same line has fetched too often.

    ``initial`` has the contents of an array that no task has written; None stands for unknown contents.
    """
    assert _now is not None
    frame = sys._getframe(2)
    place = (frame.f_code.co_filename, frame.f_lineno, array.name)
    _now._fetches[place] += 1
    if initial is None:
        _now._unknown.add(place)
    left = _now.rounds - _now._fetches[place]
    if left < 0 or (left == 0 and not _now.falling):
        _now._ended = place
        raise _EnoughError
    if initial is not None:
        return initial.copy()
    return _filled(array, left if _now.falling else None)


def _filled(array: "Array", left: int | None) -> "npt.NDArray[Any]":
    """Returns contents that a loop interprets as "not converged", and in the last round as "converged".

    ``left`` is the number of rounds left; None stands for contents of zeros. Floating-point numbers are the number of
    rounds left, in the last round almost 0; integers are 1 and flags true, in the last round 0 and false; other
    elements are zeros.
    """
    # Most commands need no NumPy, whose import takes longer than they do.
    import numpy as np

    value: float = 0
    if left is not None and array.dtype.kind in "fc":
        value = float(left) if left else float(np.finfo(array.dtype).tiny)
    elif left is not None and array.dtype.kind in "iub":
        value = int(left > 0)
    filled = np.zeros(array.shape, array.dtype)
    if value:
        filled[...] = value
    return filled


@contextlib.contextmanager
def _record(rounds: int, *, falling: bool) -> Iterator[Recorded]:
    global _now
    before, _now = _now, Recorded(rounds=rounds, falling=falling)
    try:
        yield _now
    finally:
        _now = before


@contextlib.contextmanager
def _as_script(path: str, arguments: Sequence[str]) -> Iterator[None]:
    """Sets ``sys.argv`` and ``sys.path`` as when Python runs the file."""
    argv, path_before = sys.argv, sys.path[:]
    sys.argv = [path, *arguments]
    sys.path.insert(0, str(Path(path).resolve().parent))
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, path_before


def record(path: str, arguments: Sequence[str] = (), rounds: int = ROUNDS) -> Recorded:
    """Executes a file with these arguments, without its kernels, and returns its recording.

    Fetched contents that kernels would have written are zeros, or numbers that fall to almost 0 in ``rounds`` fetches
    of one line; of these two recordings the one with more submissions is returned. If one line fetches an array
    ``rounds`` times with zeros, a loop is assumed to wait for its contents: the recording ends there, with a note.
    Output of the file goes to standard error.

    Raises:
        Error: the file fails.
        InputError: the file makes no program with tasks, or several.

    """
    check_regular(path)
    found, failure = _attempt(path, arguments, rounds, falling=False)
    if found._unknown:
        with Path(os.devnull).open("w", encoding="utf-8") as nowhere, contextlib.redirect_stderr(nowhere):
            other, failed = _attempt(path, arguments, rounds, falling=True)
        longer = failure is not None or other.submitted > found.submitted
        # If neither recording ends by itself, the recording with zeros is returned.
        if failed is None and longer and (found._ended is None or other._ended is None):
            found, failure = other, None
    if failure is not None:
        raise failure
    found.notes.extend(_notes(found))
    found.programs = [program for program in found.programs if program.tasks]
    if len(found.programs) != 1:
        makes = f"{len(found.programs)} programs" if found.programs else "no program"
        raise InputError(f"'{path}' makes {makes} with tasks; accepted is one")
    return found


def _attempt(path: str, arguments: Sequence[str], rounds: int, *, falling: bool) -> tuple[Recorded, Error | None]:
    """Returns one recording of a file, and the error with which the file failed; None if it did not fail."""
    with (
        _record(rounds, falling=falling) as found,
        contextlib.redirect_stdout(sys.stderr),
        _as_script(path, arguments),
    ):
        try:
            runpy.run_path(path, run_name="__main__")
        except _EnoughError:
            pass
        except SystemExit as ended:
            if ended.code not in (None, 0):
                failure = Error(f"'{path}' ended with {ended.code}")
                failure.__cause__ = ended
                return found, failure
        except Error as refused:
            return found, _refused(path, refused)
        except Exception as wrong:
            unknown = ", after a fetch, which gives zeros where a program is only recorded" if found._unknown else ""
            failure = Error(f"'{path}'{_place(path, wrong)} failed{unknown}: {_last_line(wrong)}")
            failure.__cause__ = wrong
            return found, failure
    return found, None


def _refused(path: str, refused: Error) -> Error:
    """Returns an error of Unisono with the line of the file that caused it."""
    place = _place(path, refused)
    if not place or type(refused) not in (InputError, UnsupportedError):
        return refused
    failure = type(refused)(f"'{path}'{place.rstrip(',')}: {str(refused) or type(refused).__name__}")
    failure.__cause__ = refused
    return failure


def _place(path: str, wrong: Exception) -> str:
    """Returns the line of a file that raised an exception; empty if the file never ran, as after a syntax error."""
    own = [frame for frame in traceback.extract_tb(wrong.__traceback__) if frame.filename == path]
    if not own:
        return ""
    return f", line {own[-1].lineno} (`{own[-1].line}`)," if own[-1].line else f", line {own[-1].lineno},"


def _last_line(wrong: Exception) -> str:
    """Returns the exception as in the last line of a traceback: its name, and its message if any."""
    try:
        message = str(wrong)
    except Exception:
        message = "its message could not be made"
    return f"{type(wrong).__name__}: {message}" if message else type(wrong).__name__


def _notes(found: Recorded) -> list[str]:
    """Returns remarks on how the recording may differ from a run."""
    if found._ended is not None:
        file, line, name = found._ended
        times = found._fetches[found._ended]
        return [
            f"line {line} of {Path(file).name} fetched '{name}' {times} times, and the recording ended there: "
            f"contents are {'made up' if found.falling else 'zeros'} here, so a loop that waits for them would not end "
            "(--rounds records more)"
        ]
    if not found._unknown:
        return []
    count = len(found._unknown)
    places = f"contents were fetched at {count} {'place' if count == 1 else 'places'} and are"
    way_out = "program.explain after a run shows what it did"
    if found.falling:
        rounds = "1 round" if found.rounds == 1 else f"{found.rounds} rounds"
        return [
            f"{places} made up here: they fall to almost 0 in {rounds}, so that loops that wait for small numbers are "
            f"recorded as often (--rounds records more); when the program runs, it may take other turns ({way_out})"
        ]
    return [f"{places} zeros here; where the program decides by them, it may take other turns when it runs ({way_out})"]
