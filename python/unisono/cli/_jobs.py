"""Options and executors for commands that compute on several cores or on remote workers."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from unisono import InputError
from unisono.base.files import is_file
from unisono.base.limits import limits, set_cores

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from unisono.base.studies import KeptPoints, ShardEnded

_F = TypeVar("_F", bound=Callable[..., Any])

#: The most memory that a row of a paper needs.
_ROW_BYTES = 1_500_000_000
#: True if threads of a command that failed or was interrupted still compute.
_abandoned = False


def cores() -> int:
    """Counts the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _use_cores(context: click.Context, _: click.Parameter, jobs: int) -> int:
    """Sets the number of cores that the extension module uses, until the command ends."""
    before = set_cores(jobs)
    context.call_on_close(lambda: set_cores(before))
    return jobs


def _rows_at_once() -> int:
    """Counts the rows of papers that the cores and the limit on memory permit at the same time."""
    memory = limits().memory
    return cores() if memory is None else min(cores(), max(memory // _ROW_BYTES, 1))


def _threads(*, is_parameter: bool, default: int | Callable[[], int], shown: str) -> Callable[[_F], _F]:
    return click.option(
        "--jobs",
        type=click.IntRange(min=1),
        metavar="N",
        default=default,
        expose_value=is_parameter,
        callback=_use_cores,
        help=f"Number of threads, without effect on the result [{shown}].",
    )


#: The options of commands that compute on several cores. Only the first two pass the number of cores to the command;
#: for all other commands the number only limits the extension module.
rows_option = _threads(is_parameter=True, default=_rows_at_once, shown="all cores, with 1.5 GB of memory each")
points_option = _threads(is_parameter=True, default=cores(), shown="all cores")
cores_option = _threads(is_parameter=False, default=cores(), shown="all cores")


def study_options(command: _F) -> _F:
    """Adds the options of a command that computes many independent points."""
    options = (
        click.option(
            "--executor",
            metavar="WHERE",
            help="Compute points in other processes: mpi (the ranks of mpiexec), the address of a Dask scheduler, as "
            "tcp://HOST:PORT, or the file that the scheduler wrote.",
        ),
        click.option(
            "--resume",
            metavar="FILE",
            help="Store each finished point in FILE, and do not repeat the points that FILE already has.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


@contextmanager
def study(
    jobs: int,
    executor: str | None,
    resume: str | None,
    shard: tuple[int, int] | None = None,
    threads: "Callable[[int], Executor] | None" = None,
) -> "Iterator[tuple[Executor | None, KeptPoints | None]]":
    """Yields the executor of the points of a study, and the file that saves the points.

    ``threads`` makes the pool of threads; by default, the standard library makes it.

    On a rank of MPI that computes points for rank 0, and in a job with a shard, the command ends here.

    Raises:
        InputError: no scheduler answers, or the file is not a file of points.

    """
    # Imported late, because every command imports this module at its start, and few commands are studies.
    from unisono.base.studies import KeptPoints, ShardEnded

    if shard is not None and resume is None:
        raise click.UsageError("--shard computes a share of the points; name the file that keeps them with --resume")
    given = click.get_current_context().params
    without_effect = [option for name, option in (("output", "-o"), ("plot", "--plot")) if given.get(name) is not None]
    if shard is not None and without_effect:
        raise click.UsageError(
            f"--shard writes points alone, and {without_effect[0]} needs all of them: drop it, join the files with "
            "'unisono merge', and give it to the same command without --shard"
        )
    with ExitStack() as stack:
        by = stack.enter_context(pool(jobs, threads) if executor is None else _elsewhere(executor))
        kept = None if resume is None else stack.enter_context(KeptPoints(resume, shard))
        try:
            yield by, kept
        except ShardEnded as ended:
            assert shard is not None
            ended_shard = ended
        else:
            return
    _report_shard(ended_shard, shard, resume)


def _report_shard(ended: "ShardEnded", shard: tuple[int, int], file: str | None) -> NoReturn:
    # Imported late, because every command imports this module at its start, and few commands have shards.
    from unisono.cli._output import print_json, print_lines

    if click.get_current_context().params["as_json"]:
        print_json({"shard": list(shard), "points": ended.share, "total": ended.total, "files": [file]})
    else:
        print_lines(f"kept in {file}: {ended.share} of {ended.total} points, shard {shard[0]} of {shard[1]}")
    raise click.exceptions.Exit(0)


@contextmanager
def _elsewhere(where: str) -> "Iterator[Executor]":
    if where == "mpi":
        with _ranks() as executor:
            if executor is not None:
                yield executor
                return
        # A rank that computes points for rank 0 reaches this line after the last point.
        raise click.exceptions.Exit(0)
    # A client of Dask waits for ever for a missing file.
    if "://" not in where and not is_file(where):
        raise InputError(
            f"the executor is '{where}'; accepted are mpi, the address of a Dask scheduler, as tcp://HOST:PORT, and "
            "the file that it wrote"
        )
    from unisono.cli._dask import dask_executor

    with dask_executor(where) as executor:
        yield executor


@contextmanager
def _ranks() -> "Iterator[Executor | None]":
    """Yields on rank 0 an executor of the other ranks of MPI; on the other ranks None, after the last point."""
    try:
        from mpi4py import MPI
        from mpi4py.futures import MPICommExecutor, MPIPoolExecutor
    except ImportError:
        raise InputError("ranks of MPI need the package mpi4py; install it: pip install 'unisono[mpi]'") from None
    if MPI.COMM_WORLD.size == 1:
        raise InputError("the executor mpi needs ranks that compute: mpiexec -n 3 unisono ... --executor mpi")
    # If the program was started by `python -m mpi4py.futures`, the other ranks already wait for points.
    by: Any = MPIPoolExecutor() if "mpi4py.futures" in sys.orig_argv else MPICommExecutor(MPI.COMM_WORLD, root=0)
    with by as executor:
        yield executor


@contextmanager
def pool(jobs: int, threads: "Callable[[int], Executor] | None" = None) -> "Iterator[Executor | None]":
    """Yields a pool of ``jobs`` threads, or None for one thread.

    Threads suffice, because the extension module computes without Python's lock. After a failure or an interrupt, work
    that has not begun is dropped, and work in progress is not awaited.
    """
    global _abandoned
    if jobs == 1:
        yield None
        return
    # The import takes a tenth of the program's start time, and most commands do not need threads.
    from concurrent.futures import ThreadPoolExecutor

    executor = (threads or ThreadPoolExecutor)(jobs)
    try:
        yield executor
    except BaseException:
        _abandoned = True
        executor.shutdown(wait=False, cancel_futures=True)
        raise
    executor.shutdown()


def end(code: int) -> int:
    """Returns the exit code, or ends the process if abandoned threads still compute, for which Python would wait."""
    if _abandoned:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):
                stream.flush()
        os._exit(code)
    return code
