"""Work of one command on several cores."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import Executor

__all__ = ["cores", "end", "pool"]

#: True if threads of a command that failed or was interrupted still compute.
_abandoned = False


def cores() -> int:
    """Counts the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def pool(jobs: int) -> "Iterator[Executor | None]":
    """Returns threads for that many jobs, or None for one; the extension module computes without Python's lock.

    After a failure or an interrupt, work that has not begun is dropped, and work in progress is not awaited.
    """
    global _abandoned
    if jobs == 1:
        yield None
        return
    # The import takes a tenth of the time of a start, and most commands need no threads.
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
    """Returns the exit code, or ends the process now if threads still compute, for which Python would wait."""
    if _abandoned:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):
                stream.flush()
        os._exit(code)
    return code
