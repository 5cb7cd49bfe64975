"""The program `unisono`: one command a file, each in the list below.

Exit codes: 0 success; 1 a negative answer, or a failed run; 2 wrong input; 130 interrupted; 141 closed output pipe.
Every failure, except a closed pipe, prints one sentence on standard error.
"""

import codecs
import io
import os
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from keyword import iskeyword
from pkgutil import get_data
from typing import Any

import click

from unisono import InputError, __version__
from unisono.base import interrupts
from unisono.base.files import check_distinct
from unisono.base.limits import note_large_work
from unisono.base.switches import report_unknown
from unisono.cli import _failures, _jobs
from unisono.cli._examples import EXAMPLES, UNDER_MPI

__all__ = ["COMMANDS", "GROUPS", "NAMES", "OUTPUTS", "command", "main", "program"]

#: The names of the commands by purpose. Each command has its own module, which is imported at its first use.
GROUPS = {
    "Plan, prove and simulate": (
        "plan", "bound", "expect", "schedule", "verify", "simulate", "sweep", "merge", "emit", "import", "show",
        "view", "algorithms", "machines",
    ),
    "MPI programs": ("calibrate", "tune", "bench", "run", "lab", "export", "check-guidelines", "diagnose", "probe"),
    "Networks and training": ("topology", "traffic", "allocate", "workload", "compare"),
    "Programs of tasks": ("discover",),
    "Unisono itself": ("demo", "doctor", "reproduce"),
}  # fmt: skip
#: The names of all commands, sorted.
NAMES = tuple(sorted(name for group in GROUPS.values() for name in group))
#: The key of the context's entry with sentences about repeated options.
_REPEATED = "unisono.repeated"
#: The names of parameters that are files which a command writes.
OUTPUTS = ("output", "trace", "timeline", "certificate", "plot", "report", "resume")
#: The environment variable in which a shell requests completions from click.
_COMPLETE = "_UNISONO_COMPLETE"
#: All commands; the first access imports them.
COMMANDS: tuple[click.Command, ...]


def _word(name: str) -> str:
    """Returns the name of a command's module and function; a keyword of Python gets an underscore."""
    return f"{name}_" if iskeyword(name) else name.replace("-", "_")


#: The options that print the help of a command.
HELP = ["-h", "--help"]


def command(name: str) -> click.Command:
    """Returns the command of that name, which is one of :data:`NAMES`."""
    word = _word(name)
    with interrupts.importing():
        found: click.Command = getattr(import_module(f"{__name__}.{word}"), word)
    if found.epilog is None:
        found.epilog = _examples(name)
    # click caches the help option of a command's first context, which may be made elsewhere with other names of the
    # option. So the first context is made here.
    found.get_help_option(click.Context(found, help_option_names=HELP))
    return found


def _examples(name: str) -> str:
    before = "mpiexec -n 4 unisono" if name in UNDER_MPI else "unisono"
    # The mark `\b` keeps click from joining the lines.
    return "\n".join(["\b", "Examples:", *(f"  {before} {line}" for line in EXAMPLES[name])])


def _summary(name: str) -> str:
    """Returns the first line of a command's help, read from its file, because importing all commands is slow."""
    word = _word(name)
    text = (get_data(__name__, f"{word}.py") or b"").decode()
    found = re.search(rf'^def {word}\(.*?^    """(.*?)(?:"""|\n)', text, re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


def __getattr__(name: str) -> Any:
    if name == "COMMANDS":
        return tuple(map(command, NAMES))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _Program(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(NAMES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        return command(cmd_name) if cmd_name in NAMES else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Returns the command, and stores a note about each option that takes one value and is given twice.

        Raises:
            InputError: an output of the command would replace another file of the command.

        """
        name, found, rest = super().resolve_command(ctx, args)
        if found is not None:
            context = found.context_class(found, parent=ctx, **found.context_settings)
            # Wrong options are ignored here, because the command itself reports them.
            with suppress(click.UsageError):
                values, _, order = found.make_parser(context).parse_args(list(rest))
                ctx.meta[_REPEATED] = _repeated(order)
                _check_outputs(found, values)
        return name, found, rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        for title, names in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name, _summary(name)) for name in names], col_max=14)


@click.group(cls=_Program, context_settings={"help_option_names": HELP, "max_content_width": 110})
@click.option(
    "--load",
    "scripts",
    multiple=True,
    metavar="FILE.py",
    help="Run this Python file first; its algorithms (unisono.algorithm) are ranked beside the built-in ones.",
)
@click.version_option(__version__, "-V", "--version", prog_name="unisono", message="%(prog)s %(version)s")
def program(scripts: tuple[str, ...]) -> None:
    """Plans, proves, predicts and runs collective communication."""
    if scripts:
        with interrupts.importing():
            load_scripts = import_module(f"{__name__}._scripts").load_scripts
        load_scripts(scripts)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the program on the arguments of the process, or on ``arguments``, and returns its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    given = ["--version"] if given == ["version"] else given
    try:
        interrupts.end_at_once(False)
        # A command that repeats the same large computation prints its note once.
        noted: set[str] = set()
        note_large_work(lambda sentence: _note(sentence, noted))
        if arguments is None:
            for stream in (sys.stdout, sys.stderr):
                if isinstance(stream, io.TextIOWrapper):
                    # Names of files may have characters that the output encoding lacks.
                    stream.reconfigure(errors="unisono")
        asked = os.environ.get(_COMPLETE)
        if asked and arguments is None:
            from click.shell_completion import shell_complete

            return shell_complete(program, {}, "unisono", _COMPLETE, asked)
        if arguments is None:
            report_unknown(of_program=False)
        with program.make_context("unisono", given or ["--help"]) as context:
            code = program.invoke(context)
            # The notes are printed only here, because a failure prints a single sentence.
            for sentence in context.meta.get(_REPEATED, ()):
                click.echo(f"note: {sentence}", err=True)
        sys.stdout.flush()
    except BaseException as failure:
        code = _failures.report(failure, "--json" in given)
        if arguments is not None:
            return code
        if code:
            # Imported late, because only a failure needs it.
            from unisono.mpi.library import end_other_ranks

            end_other_ranks(code)
        # Ends the process if threads still compute results that are not needed.
        return _jobs.end(code)
    finally:
        note_large_work(None)
    return code if isinstance(code, int) else 0


def _repeated(order: Sequence[click.Parameter]) -> list[str]:
    """Returns a sentence for each repeated option whose last value counts."""
    return [
        f"{option.opts[-1]} is given {times} times; the last one counts"
        for option, times in Counter(order).items()
        # A repeated flag has the same effect as a single one, unless it can be negated.
        if times > 1
        and isinstance(option, click.Option)
        and not option.multiple
        and (option.secondary_opts or not option.is_flag)
    ]


def _check_outputs(command: click.Command, values: Mapping[str, Any]) -> None:
    for of in command.params:
        if of.name in OUTPUTS and values.get(of.name) == "":
            raise InputError(f"{of.opts[0]} is empty; name a file")
    outputs = {of.opts[0]: values[of.name] for of in command.params if of.name in OUTPUTS and values.get(of.name)}
    others = [value for name, value in values.items() if name not in OUTPUTS]
    texts = [text for value in others for text in (value if isinstance(value, list | tuple) else [value])]
    # Some options take a list of files with commas.
    words = [word for text in texts if isinstance(text, str) for word in (text, *text.split(","))]
    check_distinct(outputs, words)


def _spell(failure: UnicodeError) -> tuple[str | bytes, int]:
    """Replaces characters that the output cannot encode: the micro sign by u, all others by escapes."""
    if isinstance(failure, UnicodeEncodeError):
        if failure.object[failure.start] in "\u00b5\u03bc":
            return "u", failure.start + 1
        # Only one character is replaced at a time, because the next one may be a micro sign.
        failure.end = failure.start + 1
    return codecs.backslashreplace_errors(failure)


codecs.register_error("unisono", _spell)


def _note(sentence: str, noted: set[str]) -> None:
    # Numbers are ignored in the comparison, because the estimates in a note may grow while a computation runs.
    words = re.sub(r"\d[\d.e]*", "", sentence)
    if words not in noted:
        noted.add(words)
        click.echo(f"note: {sentence}", err=True)
