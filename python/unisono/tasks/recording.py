"""Programs that are only written down, not run."""

import contextlib
import runpy
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from unisono._core import Error, InputError
from unisono.base.files import check_regular

__all__ = ["ROUNDS", "Recorded", "fetched", "made", "record", "recording"]

if TYPE_CHECKING:
    from unisono.tasks._program import Program

#: How often one line of a file may fetch contents before the recording ends.
ROUNDS = 100


@dataclass
class Recorded:
    """What a file submits."""

    programs: list["Program"] = field(default_factory=list)
    #: What the reader of an explanation must know about the recording.
    notes: list[str] = field(default_factory=list)
    #: How often each line, by file and number, fetched an array of that name.
    _fetches: Counter[tuple[str, int, str]] = field(default_factory=Counter)
    rounds: int = ROUNDS

    @property
    def program(self) -> "Program":
        """The one program of the file."""
        return self.programs[0]


class _EnoughError(BaseException):
    """Ends a file whose loop goes on; programs that catch all exceptions do not catch it."""


#: What is recorded now, if anything is.
_now: Recorded | None = None


def recording() -> bool:
    """Whether programs are written down only."""
    return _now is not None


def made(program: "Program") -> None:
    """Remembers a program."""
    if _now is not None:
        _now.programs.append(program)


def fetched(name: str) -> None:
    """Counts a fetch of an array, which gives zeros in a recording, and ends the recording where a loop goes on."""
    if _now is None:
        return
    frame = sys._getframe(2)
    place = (frame.f_code.co_filename, frame.f_lineno, name)
    _now._fetches[place] += 1
    if _now._fetches[place] >= _now.rounds:
        raise _EnoughError


@contextlib.contextmanager
def _record(rounds: int) -> Iterator[Recorded]:
    global _now
    before, _now = _now, Recorded(rounds=rounds)
    try:
        yield _now
    finally:
        _now = before


@contextlib.contextmanager
def _as_script(path: str, arguments: Sequence[str]) -> Iterator[None]:
    """The arguments and the search path of a file that Python runs."""
    argv, path_before = sys.argv, sys.path[:]
    sys.argv = [path, *arguments]
    sys.path.insert(0, str(Path(path).resolve().parent))
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, path_before


def record(path: str, arguments: Sequence[str] = (), rounds: int = ROUNDS) -> Recorded:
    """Executes a file with these arguments, without its kernels, and returns what it submits.

    Contents are not computed, so ``fetch`` gives zeros. Where one line has fetched an array ``rounds`` times, a loop is
    taken to wait for its contents: the recording ends there, with a note. Output goes to standard error.

    Raises:
        Error: the file fails.
        InputError: it makes no program with tasks, or several.

    """
    check_regular(path)
    with _record(rounds) as found, contextlib.redirect_stdout(sys.stderr), _as_script(path, arguments):
        try:
            runpy.run_path(path, run_name="__main__")
        except _EnoughError:
            file, line, name = next(place for place, count in found._fetches.items() if count >= rounds)
            found.notes.append(
                f"line {line} of {Path(file).name} fetched '{name}' {rounds} times, and the recording ended there: "
                "contents are zeros here, so a loop that waits for them would not end (--rounds records more)"
            )
        except SystemExit as ended:
            if ended.code not in (None, 0):
                raise Error(f"'{path}' ended with {ended.code}") from ended
        except Error:
            raise
        except Exception as failure:
            zeros = ", after a fetch, which gives zeros where a program is only recorded" if found._fetches else ""
            raise Error(f"'{path}' failed{zeros}: {type(failure).__name__}: {failure}") from failure
    if found._fetches and not found.notes:
        places = len(found._fetches)
        found.notes.append(
            f"contents were fetched at {places} {'place' if places == 1 else 'places'} and are zeros here; where the "
            "program decides by them, it may take other turns when it runs"
        )
    found.programs = [program for program in found.programs if program.tasks]
    if len(found.programs) != 1:
        raise InputError(f"'{path}' makes {len(found.programs)} programs with tasks; accepted is one")
    return found
