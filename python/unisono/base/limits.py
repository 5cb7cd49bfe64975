"""Limits on the memory and the work of this process; see :func:`limits`."""

from types import EllipsisType, TracebackType
from typing import Self

from unisono import _core
from unisono._core import InputError, default_steps, note_large_work, set_cores
from unisono.base.inputs import parse_bytes, whole

__all__ = ["Limits", "default_steps", "limits", "note_large_work", "set_cores"]

#: The largest finite limit; the largest 64-bit number means no limit.
_LARGEST = 2**64 - 2


class Limits:
    """The limits that hold after a call of :func:`limits`. The end of a ``with`` block restores the previous limits."""

    memory: int | None
    steps: int | None

    def __init__(self, before: tuple[int | None, int | None, bool]) -> None:
        self._before = before
        self.memory, self.steps = _core.limits_now()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _core.set_limits(*self._before)

    def __repr__(self) -> str:
        return f"<unisono limits: memory {self.memory}, steps {self.steps}>"


def limits(*, memory: int | str | EllipsisType | None = ..., steps: int | EllipsisType | None = ...) -> Limits:
    """Sets limits for estimates of the work to come; work over a limit raises :class:`InputError` before it starts.

    The limits hold for the whole process from this call on, or until the end of a ``with`` block around it. Limits that
    are not given do not change, so ``limits()`` returns the limits in force.

    Args:
        memory: bytes, or a size such as ``"2GiB"``; ``None``: no limit; ``"free"``, the default: 80 % of the memory
            that is free when the work starts.
        steps: elementary steps, a few nanoseconds each; ``None``: no limit. The default is 2^36.

    Raises:
        InputError: a limit is not a number, or is below 1.

    """
    bytes_before, steps_before = _core.limits_now()
    followed = _core.limits_follow()
    follow, most = followed, bytes_before
    if isinstance(memory, str) and memory == "free":
        follow = True
    elif not isinstance(memory, EllipsisType):
        follow = False
        most = _checked("the limit on memory", parse_bytes(memory) if isinstance(memory, str) else memory)
    work = steps_before if isinstance(steps, EllipsisType) else _checked("the limit on steps", steps)
    _core.set_limits(None if most is None else min(most, _LARGEST), work, follow)
    return Limits((bytes_before, steps_before, followed))


def _checked(what: str, limit: int | None) -> int | None:
    if limit is None:
        return None
    limit = whole(what, limit)
    if limit < 1:
        raise InputError(f"{what} is {limit}; accepted are whole numbers from 1 on, and None for no limit (--no-limit)")
    return min(limit, _LARGEST)
