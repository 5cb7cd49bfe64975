"""Results that several rows of a paper share, computed once even if rows are computed in parallel."""

from collections.abc import Callable, Hashable
from concurrent.futures import Future
from functools import wraps
from threading import Lock
from typing import ParamSpec, TypeVar

__all__ = ["once"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


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
        return future.result()

    return call
