"""Computes points of a study by the workers of a Dask cluster."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

from unisono import Error, InputError


class _Workers(Executor):
    """An executor that submits calls to the client of a Dask cluster.

    Dask's own executor waits for ever if the scheduler is lost.
    """

    def __init__(self, client: Any) -> None:
        self._client = client

    def submit(self, function: Callable[..., Any], /, *args: Any, **named: Any) -> "Future[Any]":
        # Points are pure functions, but ``pure=True`` would make Dask hash the machine, which takes longer than most
        # points.
        begun = self._client.submit(function, *args, pure=False, **named)

        async def ended() -> Any:
            return await begun

        return asyncio.run_coroutine_threadsafe(ended(), self._client.loop.asyncio_loop)


@contextmanager
def dask_executor(where: str) -> Iterator[Executor]:
    """Yields an executor of the workers of a scheduler, given by its address or by the file that it wrote.

    Raises:
        InputError: Dask is not installed, or no scheduler answers.
        Error: the connection to the scheduler was lost, or the same point failed with several workers in turn.

    """
    try:
        distributed: Any = import_module("distributed")
    except ImportError:
        raise InputError("workers of Dask need the package distributed: pip install 'unisono[dask]'") from None
    # Dask logs a traceback for each lost worker, although it computes the worker's points again.
    logging.disable(logging.CRITICAL)
    try:
        client = distributed.Client(**{"address" if "://" in where else "scheduler_file": where}, timeout=10)
    except (OSError, ValueError) as reason:
        raise InputError(f"no Dask scheduler answers at {where}: {reason}") from None
    goes_on = "with --resume FILE the same command keeps the points that end, and begins with those that are there"
    try:
        yield _Workers(client)
    except (CancelledError, distributed.comm.CommClosedError):
        raise Error(f"the Dask scheduler at {where} was lost; start it again; {goes_on}") from None
    except distributed.KilledWorker as lost:
        raise Error(
            f"{lost.allowed_failures + 1} workers were lost, one after the other, with the same point, which may need "
            f"more memory than they have; {goes_on}"
        ) from None
    finally:
        with suppress(Exception):
            client.close(timeout=10)
