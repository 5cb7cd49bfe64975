"""Work of one command on several cores."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import Executor

__all__ = ["cores", "end", "pool"]

#: Whether threads of a command that failed or was interrupted still compute.
_abandoned = False


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def pool(jobs: int) -> "Iterator[Executor | None]":
    """Threads for so many jobs at the same time; none for one job. The extension module computes without Python's lock.

    After a failure or an interrupt, work that has not begun is dropped, and nobody waits for the rest.
    """
    global _abandoned
    if jobs == 1:
        yield None
        return
    # It takes a tenth of the time of a start, and most commands need no threads.
    from concurrent.futures import ThreadPoolExecutor

    executor = ThreadPoolExecutor(jobs)
    try:
        yield executor
    except BaseException:
        _abandoned = True
        executor.shutdown(wait=False, cancel_futures=True)
        raise
    executor.shutdown()


def end(code: int) -> int:
    """The exit code, unless threads still compute: Python would wait for them, so the process ends here."""
    if _abandoned:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):
                stream.flush()
        os._exit(code)
    return code
