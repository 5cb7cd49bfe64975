"""Results that several rows of a paper share, computed once also where rows are computed at the same time."""

from collections.abc import Callable, Hashable
from concurrent.futures import Future
from functools import wraps
from threading import Lock
from typing import ParamSpec, TypeVar

__all__ = ["once"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


def once(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Keeps the result of each distinct call; a thread that needs one which another computes waits for it.

    A failed call is made again, as ``functools.cache`` does it. The arguments must be hashable.
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
