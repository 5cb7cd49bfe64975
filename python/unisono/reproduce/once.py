"""Results that several rows of a paper share, computed once even if rows are computed in parallel."""

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import wraps
from threading import Condition, Lock, get_ident, local
from typing import Any, ParamSpec, TypeVar

__all__ = ["RowPool", "begin", "once"]

_P = ParamSpec("_P")
_R = TypeVar("_R")

#: The number of threads for each thread that computes. The other threads wait for results, or for their turn.
_THREADS = 4
_own = local()


class RowPool(ThreadPoolExecutor):
    """A pool of threads, of which at most ``jobs`` compute at the same time. Rows begin in their order.

    While a thread waits for a result of :func:`once` that another thread computes, the next row begins.
    """

    def __init__(self, jobs: int) -> None:
        super().__init__(_THREADS * jobs)
        self._free = jobs
        #: The threads that wait for their turn; the first thread of the queue is the next.
        self._queue: deque[int] = deque()
        self._changed = Condition()

    def submit(self, function: Callable[_P, _R], /, *args: _P.args, **named: _P.kwargs) -> Future[_R]:
        """Submits a call, which begins when fewer than ``jobs`` threads compute."""

        def call() -> _R:
            with self.turn():
                return function(*args, **named)

        return super().submit(call)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Waits until this thread may compute; the thread then computes until the context ends."""
        with self._changed:
            self._queue.append(get_ident())
            self._take()
        _own.pool = self
        try:
            yield
        finally:
            del _own.pool
            self._end()

    def await_without_turn(self, future: "Future[Any]") -> None:
        """Gives the turn of this thread to another thread, and waits for the result.

        This thread then continues before further rows begin.
        """
        self._end()
        wait([future])
        with self._changed:
            self._queue.appendleft(get_ident())
            self._take()

    def _take(self) -> None:
        """Waits until this thread is the next one and fewer than ``jobs`` threads compute."""
        self._changed.wait_for(lambda: self._free > 0 and self._queue[0] == get_ident())
        self._queue.popleft()
        self._free -= 1
        self._changed.notify_all()

    def _end(self) -> None:
        with self._changed:
            self._free += 1
            self._changed.notify_all()


def once(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Keeps the result of each distinct call; a thread waits for a result that another thread computes.

    Failures are not kept, as with ``functools.cache``. The arguments must be hashable.
    """
    results: dict[Hashable, Future[_R]] = {}
    lock = Lock()

    @wraps(function)
    def call(*args: _P.args, **named: _P.kwargs) -> _R:
        key = (args, tuple(sorted(named.items())))
        with lock:
            known = results.get(key)
            future = known or results.setdefault(key, Future())
        if known is None:
            try:
                future.set_result(function(*args, **named))
            except BaseException as failure:
                with lock:
                    del results[key]
                future.set_exception(failure)
        if not future.done() and (pool := _pool()) is not None:
            pool.await_without_turn(future)
        return future.result()

    return call


def begin(function: Callable[..., Any], calls: Iterable[tuple[Any, ...]]) -> None:
    """Submits the calls of a function that keeps its results, if this thread computes in a pool.

    The thread must need all of these results.
    """
    if (pool := _pool()) is not None:
        for call in calls:
            pool.submit(function, *call)


def _pool() -> RowPool | None:
    return getattr(_own, "pool", None)
