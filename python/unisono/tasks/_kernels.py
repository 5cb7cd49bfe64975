"""Calls kernels with views of host memory, compiled or not, or of a device's memory.

A kernel compiled by Numba gets a view as an ordinary array, without `View.offset`. To support the attribute, Numba
would need an array type with its own layout in memory, conversions and array functions, on internals that change with
its versions. With ``offsets=True`` every kernel receives the offsets as an additional argument, a tuple of tuples.
"""

import inspect
import itertools
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from unisono._core import InputError
from unisono.tasks import _device
from unisono.tasks._arrays import View
from unisono.tasks._local_arrays import LocalArray
from unisono.tasks._operators import NAMES, NEUTRAL
from unisono.tasks._regions import Box, Boxes, common, place

Kernel = Callable[..., Any]


class Part(NamedTuple):
    """The region of an array that an access uses, for a rank's or device's part of a task."""

    local: LocalArray
    name: str
    mode: str
    #: The box of the view. ``region`` is the part of the box that the access uses. A mapper may leave gaps in the box,
    #: which a kernel may not read.
    box: Box
    region: Boxes

    def kept(self, parts: "Sequence[Part]") -> bool:
        """Returns whether the task changes elements of this read-only view through another access of its ``parts``.

        The kernel then gets a copy of the old contents. Otherwise the view would have new elements of this rank and old
        elements of other ranks, and the result would depend on the number of ranks.
        """
        if self.writes:
            return False
        return any(p.writes and p.local is self.local and common((self.box,), p.region) for p in parts)

    @property
    def reads(self) -> bool:
        """Returns whether the kernel needs the latest contents."""
        return self.mode in ("read", "read_write")

    @property
    def writes(self) -> bool:
        """Returns whether the kernel changes the contents."""
        return self.mode != "read"


def _host(parts: Sequence[Part], operator: str) -> list[Any]:
    """Returns views of host memory, read-only if the task only reads them."""
    mirrored = [part for part in parts if part.local.mirror]
    for part in mirrored:
        if part.reads:
            part.local.to_host(part.region)
    for part in mirrored:
        if part.writes:
            part.local.host_wrote(part.region)
    seen = [part.local.data[place(part.box)] for part in parts]
    seen = [data.copy() if part.kept(parts) else data for part, data in zip(parts, seen, strict=True)]
    for part in parts:
        if part.mode == "reduce":
            for piece in part.region:
                part.local.data[place(piece)] = NEUTRAL[operator](part.local.data.dtype)
    return [View.of(data, part.box[0], writable=part.writes) for part, data in zip(parts, seen, strict=True)]


#: The functions that make the views, by the value of ``on``.
PLACES: dict[str, Callable[[Sequence[Part], str], list[Any]]] = {
    "numpy": _host,
    "cupy": _device.views,
    "host": _host,
}


def call(task: str, kernel: Kernel, parts: Sequence[Part], operator: str, on: str, offsets: bool) -> None:
    """Runs a task's kernel on its parts of arrays."""
    _number(parts, operator)
    _run(task, kernel, parts, PLACES[on](parts, operator), offsets, 0 if on == "cupy" else None)


def call_on_devices(
    task: str,
    kernel: Kernel,
    devices: Sequence[Sequence[Part]],
    whole: Sequence[Part],
    operator: str,
    offsets: bool,
) -> None:
    """Runs a task's kernel on each device of the process; ``whole`` has the parts of the process."""
    _number(whole, operator)
    number = itertools.count()
    _device.call_each(
        devices,
        whole,
        operator,
        lambda parts, views: _run(task, kernel, parts, views, offsets, next(number)),
    )


def _number(parts: Sequence[Part], operator: str) -> None:
    """Stores, in arrays with operator codes, the code of the operator for each element that the task reduces."""
    for part in parts:
        if part.mode == "reduce" and part.local.codes is not None:
            for piece in part.region:
                part.local.codes[place(piece)] = NAMES.index(operator)


def _run(
    task: str, kernel: Kernel, parts: Sequence[Part], views: Sequence[Any], offsets: bool, device: int | None
) -> None:
    """Calls a kernel; on a device, checks its read-only arguments if ``UNISONO_CHECK_READS`` is on."""
    arguments = [*views, tuple(part.box[0] for part in parts)] if offsets else views
    before = None if device is None else _device.contents_read(parts, device)
    try:
        kernel(*arguments)
    except Exception as failure:
        _explain(task, kernel, parts, arguments, failure)
        raise
    if before and device is not None:
        _device.check_reads(task, parts, before, device)


def bound(task: str, kernel: Kernel, parts: Sequence[Part], operator: str, offsets: bool) -> Callable[[], None]:
    """Returns a function that runs a task's kernel on host arrays with one operator each.

    The slices of the views are computed once. Every run creates new views, because a kernel may keep or change them.
    """
    made = [_of_each_run(part, parts) for part in parts]
    reduced = [part for part in parts if part.mode == "reduce"]
    fresh = [(p.local.data[place(piece)], NEUTRAL[operator](p.local.data.dtype)) for p in reduced for piece in p.region]
    last = (tuple(part.box[0] for part in parts),) if offsets else ()

    def run() -> None:
        # Old contents are copied before the neutral elements overwrite them.
        arguments = [view() for view in made]
        for data, neutral in fresh:
            data[...] = neutral
        try:
            kernel(*arguments, *last)
        except Exception as failure:
            _explain(task, kernel, parts, [*arguments, *last], failure)
            raise

    return run


def _of_each_run(part: Part, parts: Sequence[Part]) -> Callable[[], View]:
    """Returns a function that makes the view of one part of the task's ``parts`` for a run."""
    data, offset = part.local.data[place(part.box)], part.box[0]
    if part.kept(parts):
        return lambda: View.of(data.copy(), offset, writable=False)
    return View.of(data, offset, writable=part.writes).view


def _explain(task: str, kernel: Kernel, parts: Sequence[Part], arguments: Sequence[Any], failure: Exception) -> None:
    """Explains a failure of a kernel: adds a note to the exception, or raises an error in its place.

    An error is raised if the kernel has another number of parameters, or if Numba cannot compile it.
    """
    if isinstance(failure, TypeError):
        _check_count(task, kernel, arguments, len(parts))
    errors = sys.modules.get("numba.core.errors")
    if errors is None or not isinstance(failure, errors.NumbaError):
        read_only = ", ".join(dict.fromkeys(part.name for part in parts if not part.writes)) or "none"
        failure.add_note(f"in the kernel of task '{task}'; arrays that it only reads, which are read-only: {read_only}")
        return
    said = str(failure).strip()
    if written := _written(kernel, parts, arguments):
        names = ", ".join(f"'{name}'" for name in written)
        why = next((line for line in said.splitlines() if "modify readonly" in line), said.splitlines()[0]).strip("> ")
        raise InputError(
            f"task '{task}': its kernel writes to {names}, which the task only reads; accepted are writes to arrays in "
            f"writes, updates or reduces (Numba: {why})"
        ) from failure
    hint = "; offsets come as a last argument of tasks with offsets=True" if "attribute 'offset'" in said else ""
    raise InputError(f"task '{task}': Numba cannot compile its kernel{hint}: {said}") from failure


def _check_count(task: str, kernel: Kernel, arguments: Sequence[Any], views: int) -> None:
    """Refuses a kernel that does not accept its number of arguments.

    Raises:
        InputError: the kernel takes more or fewer arguments; a kernel without a signature is accepted.

    """
    try:
        signature = inspect.signature(getattr(kernel, "py_func", kernel))
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*arguments)
    except TypeError as wrong:
        gets = f"{views} {'view' if views == 1 else 'views'}{' and the offsets' if len(arguments) > views else ''}"
        raise InputError(
            f"task '{task}': its kernel gets {gets}, one view for each access, and its parameters are {signature} "
            f"({wrong}); give as many accesses as the kernel has parameters for views"
        ) from wrong


def _written(kernel: Kernel, parts: Sequence[Part], arguments: Sequence[Any]) -> list[str]:
    """Returns the read-only arrays that a compiled kernel writes.

    The kernel is compiled again with one argument read-only at a time; it writes to the arguments for which this fails.
    """
    function = getattr(kernel, "py_func", None)
    if function is None:
        return []
    numba = sys.modules["numba"]
    types = [numba.typeof(argument) for argument in arguments]
    free = [kind.copy(readonly=False) if at < len(parts) else kind for at, kind in enumerate(types)]

    def compiles(signature: Sequence[Any]) -> bool:
        try:
            numba.njit(function).compile(tuple(signature))
        except numba.core.errors.NumbaError:
            return False
        return True

    if not compiles(free):
        return []
    reads = [at for at, part in enumerate(parts) if not part.writes]
    return [parts[at].name for at in reads if not compiles([*free[:at], types[at], *free[at + 1 :]])]
