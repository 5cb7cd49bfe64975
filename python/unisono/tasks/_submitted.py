"""Tasks and fetches as a program submits them."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from unisono._core import Discovery, InputError, Mapper, TaskList
from unisono.base import names
from unisono.base.inputs import finite
from unisono.tasks import _kernels
from unisono.tasks._arrays import Access, sizes_of
from unisono.tasks._kernel_source import check_writes
from unisono.tasks._mappers import one_to_one
from unisono.tasks._operators import KIND_NAMES, KINDS, NAMES

_MOST_OPERATIONS = 1e30


class Accesses(NamedTuple):
    """The accesses of a task, by their modes."""

    reads: tuple[Access, ...]
    writes: tuple[Access, ...]
    updates: tuple[Access, ...]
    reduces: tuple[Access, ...]


class Options(NamedTuple):
    """The options of a task, as in `Program.task`; ``once`` is set for a `Program.host_task`."""

    op: str
    name: str
    offset: int | Sequence[int] | None
    granularity: int | Sequence[int] | None
    split: str
    on: str
    offsets: bool
    operations: float | None
    once: bool


@dataclass(eq=False, slots=True)
class Task:
    """A submitted task; a loop submits the same object again."""

    name: str
    kernel: Callable[..., Any]
    sizes: tuple[int, ...]
    accesses: tuple[tuple[int, str, Mapper], ...]
    operator: str
    #: The offset, the granularity and the split of the range.
    options: tuple[Any, Any, str]
    #: The value of the option ``on`` of `Program.task`, which selects the memory of the kernel's views. ``offsets`` is
    #: true if the kernel also receives the offsets of its views.
    on: str
    offsets: bool
    #: The numbers of the arrays that the task reduces.
    reduced: tuple[int, ...]
    #: The number of arithmetic operations per point of the range, if given.
    operations: float | None = None
    #: True for a `Program.host_task`, which only rank 0 executes.
    once: bool = False
    #: The number of the task's first submission.
    first: int = -1
    #: Runs the kernel on views of host memory; made at first execution.
    run: Callable[[], None] | None = None

    def submit(self, to: Discovery) -> int:
        """Submits the task to a discovery."""
        return to.task(self.name, self.sizes, self.accesses, *self.options)

    def list_in(self, tasks: TaskList, host: Collection[str]) -> int:
        """Adds the task to a list, with its operations; kernels whose ``on`` is in ``host`` do not run on devices."""
        on_host = self.on in host
        return tasks.task(self.name, self.sizes, self.accesses, *self.options, self.operations, on_host)


class Fetch(NamedTuple):
    """A request for the contents of a whole array on every rank."""

    name: str
    number: int
    shape: tuple[int, ...]

    def submit(self, to: Discovery | TaskList) -> int:
        """Submits the fetch to a discovery."""
        return to.fence(f"fetch of {self.name}", self.number, [0] * len(self.shape), self.shape)

    def list_in(self, tasks: TaskList, host: Collection[str]) -> int:  # noqa: ARG002
        """Adds the fetch to a list."""
        return self.submit(tasks)


def task_of(
    program: object, kernel: Callable[..., Any], sizes: int | Sequence[int], given: Accesses, options: Options
) -> Task:
    """Checks the arguments of a task, and returns the task before its submission.

    Raises:
        InputError: an option or an access is not accepted, or the kernel does not fit its accesses.

    """
    name = options.name or getattr(kernel, "__name__", "task")
    try:
        options = options._replace(op=names.operator(options.op, tuple(NAMES)))
    except InputError as wrong:
        raise InputError(f"task '{name}': {wrong}") from None
    if options.on not in _kernels.PLACES:
        raise InputError(f"task '{name}': on is {options.on!r}; accepted are {', '.join(_kernels.PLACES)}")
    accesses = []
    for mode, listed in zip(("read", "write", "read_write", "reduce"), given, strict=True):
        for access in listed:
            if not isinstance(access, Access):
                raise InputError(f"task '{name}' accesses {access!r}; accepted are array[mapper] of this program")
            if access.array.program is not program:
                raise InputError(
                    f"task '{name}' accesses array '{access.array.name}' of another program; accepted are arrays of "
                    "this program, which submits the task"
                )
            accesses.append((access.array.number, mode, access.mapper))
    for reduced in (access.array for access in given.reduces):
        if reduced.dtype.kind not in KINDS[options.op]:
            kinds = ", ".join(KIND_NAMES[kind] for kind in KINDS[options.op])
            raise InputError(
                f"task '{name}' reduces array '{reduced.name}' of dtype {reduced.dtype} by {options.op}, which accepts "
                f"dtypes of kind {kinds}"
            )
    listed = (*given.reads, *given.writes, *given.updates, *given.reduces)
    checked = sizes_of(f"task '{name}': range", sizes)
    check_range(name, checked, options.offset, listed)
    check_operations(name, options.operations)
    check_writes(name, kernel, [access.array.name for access in listed], len(given.reads))
    return Task(
        name,
        kernel,
        checked,
        tuple(accesses),
        options.op,
        (options.offset, options.granularity, options.split),
        options.on,
        options.offsets,
        tuple(access.array.number for access in given.reduces),
        options.operations,
        options.once,
    )


def check_operations(name: str, operations: float | None) -> None:
    """Checks a number of operations.

    Raises:
        InputError: the number is not from 0 to 1e30.

    """
    if operations is not None and not 0 <= finite(f"task '{name}': operations", operations) <= _MOST_OPERATIONS:
        raise InputError(f"task '{name}': operations is {operations}; accepted are 0 to 1e30 for a point of the range")


def check_range(
    name: str, sizes: tuple[int, ...], offset: int | Sequence[int] | None, accesses: Sequence[Access]
) -> None:
    """Refuses a range that exceeds an array accessed point by point, because the excess points would do nothing.

    Raises:
        InputError: there is such an array.

    """
    starts = sizes_of(f"task '{name}': offset", 0 if offset is None else offset)
    for access in accesses:
        array = access.array
        if access.mapper != one_to_one:
            continue
        for at, (size, extent) in enumerate(zip(sizes, array.shape, strict=False)):
            end = size + (starts[at] if at < len(starts) else 0)
            if end > extent:
                raise InputError(
                    f"task '{name}': its range ends at {end} in dimension {at}, and array '{array.name}', accessed "
                    f"one to one, has {extent} there"
                )
