"""The program `unisono`: one command a file, each in the list below.

Exit codes: 0 done; 1 the answer is no, or the run failed; 2 wrong input; 130 interrupted. Failures are one sentence on
standard error.
"""

import io
import sys
from collections.abc import Sequence

import click

from unisono import __version__
from unisono._core import note_large_work
from unisono.cli import _failures
from unisono.cli.algorithms import algorithms
from unisono.cli.allocate import allocate
from unisono.cli.bench import bench
from unisono.cli.bound import bound
from unisono.cli.calibrate import calibrate
from unisono.cli.discover import discover
from unisono.cli.emit import emit
from unisono.cli.export import export
from unisono.cli.import_ import import_
from unisono.cli.machines import machines
from unisono.cli.plan import plan
from unisono.cli.reproduce import reproduce
from unisono.cli.run import run
from unisono.cli.schedule import schedule
from unisono.cli.simulate import simulate
from unisono.cli.sweep import sweep
from unisono.cli.topology import topology
from unisono.cli.traffic import traffic
from unisono.cli.tune import tune
from unisono.cli.verify import verify
from unisono.cli.workload import workload

COMMANDS: tuple[click.Command, ...] = (
    algorithms,
    allocate,
    bench,
    bound,
    calibrate,
    discover,
    emit,
    export,
    import_,
    machines,
    plan,
    reproduce,
    run,
    schedule,
    simulate,
    sweep,
    topology,
    traffic,
    tune,
    verify,
    workload,
)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="unisono", message="%(prog)s %(version)s")
def program() -> None:
    """Plans, proves, predicts and runs collective communication."""


for _command in COMMANDS:
    program.add_command(_command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the program on the arguments of the process, or on these, and returns its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    # Work that one command does in several parts is noted once.
    noted: set[str] = set()
    note_large_work(lambda sentence: _note(sentence, noted))
    if arguments is None:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                # Names of files may hold bytes and characters that the output cannot.
                stream.reconfigure(errors="backslashreplace")
    try:
        with program.make_context("unisono", given or ["--help"]) as context:
            code = program.invoke(context)
        sys.stdout.flush()
    except BaseException as failure:
        return _failures.report(failure)
    finally:
        note_large_work(None)
    return code if isinstance(code, int) else 0


def _note(sentence: str, noted: set[str]) -> None:
    if sentence not in noted:
        noted.add(sentence)
        click.echo(f"note: {sentence}", err=True)
