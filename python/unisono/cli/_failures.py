"""Reports a failure by one sentence, never a traceback, and an exit code."""

import os
import sys
from contextlib import suppress

import click

from unisono import Error, InputError, NotExpressibleError, UnsupportedError
from unisono.base.interrupts import INTERRUPTED, UNREAD
from unisono.base.messages import sentence
from unisono.cli._output import print_json

NO, WRONG_INPUT = 1, 2
_PATH_ERRORS = (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError)


def report(failure: BaseException, as_json: bool = False) -> int:
    """Prints the sentence of a failure on standard error and returns the exit code.

    With ``as_json``, a negative answer is also printed as an object on standard output: ``error``, and the
    ``diagnostics`` of a refused schedule.
    """
    code = _code(failure)
    if as_json and code == NO and isinstance(failure, Error):
        found = getattr(failure, "diagnostics", None)
        with suppress(OSError):
            print_json({"error": sentence(str(failure))} | ({} if found is None else {"diagnostics": found}))
    return code


def _code(failure: BaseException) -> int:
    match failure:
        case SystemExit():
            return failure.code if isinstance(failure.code, int) else NO
        case click.exceptions.Exit():
            return failure.exit_code
        case KeyboardInterrupt() | click.Abort():
            return say("interrupted", INTERRUPTED)
        case BrokenPipeError():
            # The reader has closed the pipe. Standard output is redirected, because Python's flush at exit would fail
            # again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return UNREAD
        case click.UsageError():
            return say(_with_help(failure), WRONG_INPUT)
        case click.ClickException():
            return say(failure.format_message(), WRONG_INPUT)
        case NotExpressibleError():
            return say(str(failure), NO)
        case InputError() | UnsupportedError():
            return say(str(failure), WRONG_INPUT)
        case Error():
            return say(str(failure), NO)
        case FileNotFoundError() if failure.filename:
            accepted = (failure.strerror or "").partition("; ")[2]
            return say("; ".join(filter(None, [f"there is no file '{failure.filename}'", accepted])), WRONG_INPUT)
        case OSError():
            about = f"'{failure.filename}': " if failure.filename else ""
            text = f"{about}{failure.strerror or failure}"
            return say(text, WRONG_INPUT if isinstance(failure, _PATH_ERRORS) else NO)
        case UnicodeError():
            return say("an argument or a name is not valid text; accepted is UTF-8", WRONG_INPUT)
        case RecursionError():
            return say("the input nests too deeply", WRONG_INPUT)
        case OverflowError():
            return say(f"a number is too large: {failure}", WRONG_INPUT)
        case MemoryError():
            return say("there is not enough memory for this", NO)
        case _ if "KeyboardInterrupt" in str(failure):
            # The interrupt came during an import of the extension module, which raises it as an import error.
            return say("interrupted", INTERRUPTED)
        case _:
            return say(f"unexpected failure, please report it: {type(failure).__name__}: {failure}", NO)


def _with_help(failure: click.UsageError) -> str:
    command = failure.ctx.command_path if failure.ctx else "unisono"
    text = failure.format_message().rstrip(".")
    if isinstance(failure, click.NoSuchOption) and _takes_arguments(failure.ctx):
        text += f"; options of the program itself stand after --, as in PROGRAM.py -- {failure.option_name}"
    return f"{text} (see '{command} --help')"


def _takes_arguments(context: click.Context | None) -> bool:
    """Returns whether a command passes the words after ``--`` to a program."""
    return context is not None and any(parameter.name == "arguments" for parameter in context.command.params)


def say(text: str, code: int) -> int:
    """Prints the sentence on standard error and returns the code."""
    # If standard error is full or a closed pipe, the exit code alone must report the failure.
    with suppress(OSError):
        # Messages of parsers may have several lines; `sentence` joins and shortens them.
        print("error:", sentence(text), file=sys.stderr, flush=True)  # noqa: T201
    return code
