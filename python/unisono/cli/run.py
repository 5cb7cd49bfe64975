"""`unisono run`: runs an unmodified MPI program with planned collectives."""

import contextlib
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from difflib import get_close_matches

import click

from unisono import InputError
from unisono.base.files import check_regular, check_writable, exists
from unisono.base.switches import is_on
from unisono.cli._output import counted, print_lines
from unisono.cli._sources import NOT_OBSERVED, NOT_PLANNED, refuse_unused
from unisono.cli._types import INT
from unisono.mpi.launchers import check_program, environment, find_launcher, is_launcher, variables
from unisono.planning.plan_files import is_plan_file, ranks_of_rows

__all__ = ["note_unserved", "passing_signals", "run"]


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("-n", "--ranks", type=INT, required=True, metavar="N", help="Number of ranks.")
@click.option("--plan", metavar="FILE.plan", help="The plan that serves the program's collectives.")
@click.option("--report", metavar="FILE|stderr", help="Write a report of the calls when the program ends.")
@click.option(
    "--check",
    is_flag=True,
    help="Run every planned blocking collective also by the MPI library, and compare the results.",
)
@click.option(
    "--safe-ops",
    is_flag=True,
    help="State that the program's own operators are associative, so that the plan may serve them.",
)
@click.option(
    "--nonblocking", is_flag=True, help="Serve nonblocking and persistent collectives too, such as MPI_Iallreduce."
)
@click.option(
    "--unlike-bits",
    is_flag=True,
    help="Let a plan made with --unlike-bits serve an allreduce whose rounded results may have different bits on the "
    "ranks.",
)
@click.option(
    "--anywhere",
    is_flag=True,
    help="Use rows also under another MPI library, wait method or sharing of cores than those of their measurement.",
)
@click.option("--off", is_flag=True, help="Load the preload library, but leave all calls to MPI.")
@click.option(
    "--launcher",
    "--mpiexec",
    metavar="COMMAND",
    help="The command that starts the ranks, with its options, as 'srun -N 2' or 'mpiexec --hostfile hosts' [the "
    "mpiexec of the program's MPI].",
)
@click.option("--dry-run", is_flag=True, help="Print the command instead of running it.")
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- PROGRAM [ARGS]...")
def run(
    ranks: int,
    plan: str | None,
    report: str | None,
    check: bool,
    safe_ops: bool,
    nonblocking: bool,
    unlike_bits: bool,
    anywhere: bool,
    off: bool,
    launcher: str | None,
    dry_run: bool,
    program: tuple[str, ...],
) -> int:
    """Runs an unmodified MPI PROGRAM with the collectives of a plan; the exit code is the program's."""
    if ranks < 1:
        raise InputError(f"-n is {ranks}; accepted is a whole number from 1 on")
    if program[0].startswith("-"):
        # Unknown options are not refused by the parser, since they may be of the program.
        context = click.get_current_context()
        options = [name for option in context.command.params for name in option.opts if name.startswith("-")]
        raise click.NoSuchOption(program[0], possibilities=get_close_matches(program[0], options), ctx=context)
    if plan is not None and exists(plan):
        check_regular(plan)
    elif plan is not None:
        raise InputError(f"there is no plan '{plan}'; 'unisono plan ... -o FILE.plan' writes one")
    if plan is not None and not is_plan_file(plan):
        raise InputError(f"'{plan}' is not a plan file; 'unisono plan ... -o FILE.plan' and 'unisono tune' write them")
    has_plan = plan is not None or bool(os.environ.get("UNISONO_PLAN"))
    refuse_unused(NOT_OBSERVED if off else (), () if has_plan or off else NOT_PLANNED)
    if report is not None and report != "stderr":
        check_writable(report)
    if is_launcher(program[0]):
        raise InputError(
            f"'{program[0]}' starts ranks itself, and -n {ranks} would start it {ranks} times; name the program after "
            f"--, and give {program[0]}'s options as in --launcher '{program[0]} --hostfile hosts'"
        )
    starter = find_launcher(program[0], launcher, present=not dry_run)
    if not starter.options and starter.family != "other":
        # A launcher with its own options may look for the program in other folders, and a scheduler may look on other
        # nodes.
        check_program(program[0])
    cores = len(os.sched_getaffinity(0))
    switches = {
        "UNISONO_CHECK": check,
        "UNISONO_SAFE_OPS": safe_ops,
        "UNISONO_NONBLOCKING": nonblocking,
        "UNISONO_UNLIKE_BITS": unlike_bits,
        "UNISONO_ANYWHERE": anywhere,
        "UNISONO_OFF": off,
    }
    settings = variables(plan, report, [name for name, on in switches.items() if on])
    command = starter.command(ranks, ranks > cores, settings, list(program))
    if plan is not None:
        note_unserved(plan, ranks, off)
    if dry_run:
        print_lines(shlex.join(command))
        return 0
    if ranks > cores and not starter.options and starter.family != "other":
        slow = "; MPICH's waiting ranks do not yield, so expect it to be slow" if starter.family == "mpich" else ""
        click.echo(f"note: {ranks} ranks share {counted(cores, 'core')}{slow}", err=True)
    sys.stdout.flush()
    code = passing_signals(command, environment(starter))
    # For a process ended by a signal, shells report 128 plus the signal's number.
    return code if code >= 0 else 128 - code


def note_unserved(plan: str, ranks: int, off: bool) -> None:
    """Prints a note if a plan serves no call of the communicator of all ranks."""
    if off or is_on("UNISONO_OFF"):
        click.echo(
            f"note: '{plan}' serves nothing: {'--off' if off else 'UNISONO_OFF'} leaves all calls to MPI", err=True
        )
        return
    try:
        placed = ranks_of_rows(plan)
    except InputError:
        # The plan cannot be read. Nothing is printed here, because the ranks print the reason.
        return
    if ranks not in placed:
        known = ", ".join(map(str, placed)) or "none"
        click.echo(
            f"note: '{plan}' has no rows for {ranks} ranks, whose calls are left to MPI; it has them for {known}",
            err=True,
        )


#: Signals by which schedulers and users end a job.
_PASSED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: The seconds in which a launcher must end after such a signal: Slurm's default for a job (KillWait).
_SECONDS_TO_END = 30


def passing_signals(
    command: list[str],
    variables: dict[str, str],
    inner: Callable[[int], int] | None = None,
    is_stuck: Callable[[int], bool] | None = None,
) -> int:
    """Runs a command, passes signals that would end this process to it, and returns its exit code.

    ``inner`` maps the command's process id to the id of the process that gets the signals, if the command only waits
    for this process and ignores signals of the keyboard. A command that still runs `_SECONDS_TO_END` seconds after a
    signal is killed, and a command for whose process id ``is_stuck``, which is called every second, returns true.

    Raises:
        KeyboardInterrupt: the command failed after an interrupt, because launchers return codes of their own.

    """
    waited = {*_PASSED, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, waited)

    def begin() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if inner is not None:
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    try:
        # `preexec_fn` is safe, because this process has no other thread.
        child = subprocess.Popen(command, env=variables, preexec_fn=begin)
        ends, is_interrupted = False, False
        while (code := child.poll()) is None:
            limit = _SECONDS_TO_END if ends else None if is_stuck is None else 1
            found = signal.sigwaitinfo(waited) if limit is None else signal.sigtimedwait(waited, limit)
            if found is None:
                if ends or is_stuck is None or is_stuck(child.pid):
                    child.kill()
                continue
            is_interrupted |= found.si_signo == signal.SIGINT
            # The kernel sends signals of the keyboard to the launcher too, so they are not passed on.
            if found.si_signo in _PASSED and found.si_code <= 0:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child.pid if inner is None else inner(child.pid), found.si_signo)
                ends = True
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    if is_interrupted and code:
        raise KeyboardInterrupt
    return code
