"""A program: arrays and tasks, in the order in which they are written."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from unisono._core import Discovery, InputError, Mapper
from unisono.tasks import _recording
from unisono.tasks._arrays import Access, Array, View

#: What combines partial results, and what it starts from.
_OPERATORS: dict[str, Callable[[np.dtype[Any]], Any]] = {
    "sum": lambda _: 0,
    "prod": lambda _: 1,
    "max": lambda dtype: -np.inf if dtype.kind == "f" else np.iinfo(dtype).min,
    "min": lambda dtype: np.inf if dtype.kind == "f" else np.iinfo(dtype).max,
}


@dataclass(frozen=True)
class Task:
    """A task as it was submitted."""

    name: str
    kernel: Callable[..., Any]
    sizes: tuple[int, ...]
    accesses: list[tuple[int, str, Mapper]]
    operator: str
    options: dict[str, Any] = field(default_factory=dict)

    def submit(self, to: Discovery) -> int:
        """Hands the task to a discovery."""
        return to.task(self.name, self.sizes, self.accesses, **self.options)


class Explanation:
    """What a program communicates on so many nodes; printed as a table."""

    def __init__(self, found: Mapping[str, Any]) -> None:
        """From the report of a discovery."""
        self.nodes: int = found["nodes"]
        self.forwards: list[dict[str, Any]] = found["forwards"]
        self.messages: dict[str, int] = found["messages"]

    def report(self) -> dict[str, Any]:
        """The same as a dictionary."""
        return {"nodes": self.nodes, "forwards": self.forwards, "messages": self.messages}

    def __str__(self) -> str:
        """A line for each forward, and the messages of all ranks."""
        lines = [
            f"{f['after_task']} -> {f['before_task']}: {f['buffer']} {f['collective'] or 'point-to-point'}"
            for f in self.forwards
        ]
        m = self.messages
        collectives = f"{m['collective']} collectives ({m['collective_bytes']} bytes)"
        messages = f"{m['p2p']} messages ({m['p2p_bytes']} bytes)"
        return "\n".join([*lines, f"{self.nodes} nodes: {collectives}, {messages}"])

    __repr__ = __str__


class Program:
    """Arrays, and tasks over them.

    A task is checked when it is submitted and executed by :meth:`run`, which does what was submitted since last time.
    """

    def __init__(self) -> None:
        """An empty program."""
        self.arrays: list[Array] = []
        self.tasks: list[Task] = []
        self._data: list[npt.NDArray[Any]] = []
        self._initialized: list[bool] = []
        self._discovery = Discovery(1, 0, rows=True, report=False)
        _recording.made(self)

    def array(
        self,
        shape: int | Sequence[int],
        init: npt.ArrayLike | None = None,
        dtype: npt.DTypeLike | None = None,
        name: str = "",
    ) -> Array:
        """An array with contents, or without where ``init`` is missing: a task must write those first."""
        sizes = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
        given = None if init is None else np.array(init, dtype=dtype)
        kind = np.dtype(float if dtype is None else dtype) if given is None else given.dtype
        name = name or f"a{len(self.arrays)}"
        if kind.hasobject:
            raise InputError(f"array '{name}' has dtype {kind}; accepted are dtypes of fixed size")
        number = self._discovery.buffer(name, sizes, kind.itemsize, initialized=given is not None)
        made = Array(self, number, name, tuple(map(int, sizes)), kind)
        data = np.zeros(made.shape, kind)
        if given is not None:
            try:
                data[...] = given
            except ValueError as wrong:
                raise InputError(f"array '{name}' has shape {made.shape}; its contents have {given.shape}") from wrong
        self.arrays.append(made)
        self._data.append(data)
        self._initialized.append(given is not None)
        return made

    def zeros(self, shape: int | Sequence[int], dtype: npt.DTypeLike = float, name: str = "") -> Array:
        """An array of zeros."""
        return self.array(shape, init=0, dtype=dtype, name=name)

    def task(
        self,
        kernel: Callable[..., Any],
        range: int | Sequence[int],  # noqa: A002
        reads: Sequence[Access] = (),
        writes: Sequence[Access] = (),
        updates: Sequence[Access] = (),
        reduces: Sequence[Access] = (),
        *,
        op: str = "sum",
        name: str = "",
        offset: int | Sequence[int] | None = None,
        granularity: int | Sequence[int] | None = None,
        split: str = "1d",
    ) -> None:
        """Submits a task: ``kernel`` gets its views in the order reads, writes, updates, reduces.

        Views of reads are read-only. What is written loses its old contents; what is reduced starts from the operator's
        neutral element on each rank, and the ranks' results are combined by ``op``: sum, prod, min or max.
        """
        name = name or getattr(kernel, "__name__", "task")
        if op not in _OPERATORS:
            raise InputError(f"task '{name}': op is '{op}'; accepted are {', '.join(_OPERATORS)}")
        accesses = []
        for mode, listed in (("read", reads), ("write", writes), ("read_write", updates), ("reduce", reduces)):
            for access in listed:
                if not isinstance(access, Access) or access.array.program is not self:
                    raise InputError(f"task '{name}' accesses {access!r}; accepted are array[mapper] of this program")
                accesses.append((access.array.number, mode, access.mapper))
        sizes = (range,) if isinstance(range, int | np.integer) else tuple(range)
        options = {"offset": offset, "granularity": granularity, "split": split}
        task = Task(name, kernel, sizes, accesses, op, options)
        # Wrong tasks are refused here, where the program's line is still known.
        task.submit(self._discovery)
        self.tasks.append(task)

    def run(self) -> None:
        """Executes what was submitted since last time."""
        self._discovery.flush()
        if _recording.recording():
            self._discovery.commands()
            return
        for command in self._discovery.commands():
            # Alone there is nothing but kernels.
            self._execute(command[2])

    def fetch(self, array: Array) -> npt.NDArray[Any]:
        """A copy of an array's contents, once all that was submitted is done."""
        if array.program is not self:
            raise InputError(f"array '{array.name}' belongs to another program")
        self.run()
        return self._data[array.number].copy()

    def explain(self, nodes: int, rules: str = "full") -> Explanation:
        """What would be communicated on so many nodes."""
        discovery = Discovery(nodes, rules=rules, rows=True)
        for array, there in zip(self.arrays, self._initialized, strict=True):
            discovery.buffer(array.name, array.shape, array.dtype.itemsize, initialized=there)
        for task in self.tasks:
            task.submit(discovery)
        discovery.flush()
        return Explanation(discovery.report())

    def _execute(self, number: int) -> None:
        task = self.tasks[number]
        views = []
        for (buffer, mode, _), (low, high) in zip(task.accesses, self._discovery.views(number), strict=True):
            place = tuple(slice(a, b) for a, b in zip(low, high, strict=True))
            data = self._data[buffer][place]
            if mode == "reduce":
                data[...] = _OPERATORS[task.operator](data.dtype)
            views.append(View.of(data, low, writable=mode != "read"))
        task.kernel(*views)
