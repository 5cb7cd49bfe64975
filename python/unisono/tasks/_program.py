"""Programs: arrays and tasks, in the order in which they are submitted."""

import itertools
import os
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import FunctionType, MethodType
from typing import Any

import numpy as np
import numpy.typing as npt

from unisono._core import Discovery, InputError, Moved, TaskList, TaskSchedule, WorkloadGraph
from unisono.base.inputs import MachineLike, whole
from unisono.base.reports import DiscoveryReport
from unisono.base.switches import is_on
from unisono.discovery.devices import check_devices, devices_report
from unisono.discovery.prediction import predictions, without_machine
from unisono.pictures.graphs import Source, write_graph
from unisono.tasks import _kernels, recording
from unisono.tasks._arrays import Access, Array, sizes_of
from unisono.tasks._check import check
from unisono.tasks._device import cupy
from unisono.tasks._exchange import Exchanges
from unisono.tasks._explanation import Explanation
from unisono.tasks._local_arrays import Command, LocalArray
from unisono.tasks._mappers import all_
from unisono.tasks._operators import by_mpi
from unisono.tasks._program_checksum import ProgramChecksum
from unisono.tasks._regions import Box, Boxes
from unisono.tasks._scaling import NODES, Scaling, scaling, timed
from unisono.tasks._schedule import carry_out
from unisono.tasks._submitted import Accesses, Fetch, Options, Task, task_of
from unisono.tasks._trace import recorder
from unisono.tasks._transport import transport
from unisono.tasks._workload import listed, workload

#: With the value 1, messages between pairs replace all collectives.
_SWITCH = "UNISONO_POINT_TO_POINT"
_numbers = itertools.count()
#: The types of kernels that are compared by their own equality: functions by identity, methods by function and object.
#: Other callables are compared by address, because they may have no hash.
_FUNCTIONS = (FunctionType, MethodType)
#: The maximum number of distinct tasks that a program caches.
_KEPT = 1024


class Program:
    """Arrays, and tasks that access arrays.

    A task is checked when it is submitted. :meth:`run` executes the tasks submitted since its last call.

    Under ``mpiexec`` all ranks write the same program, and each rank executes its parts of the tasks. A machine or a
    plan file selects algorithms for the collectives as in `unisono.mpi`; the MPI library executes the other
    collectives.
    """

    def __init__(
        self,
        machine: MachineLike | None = None,
        plan: str | os.PathLike[str] | None = None,
        *,
        trace: str | os.PathLike[str] | None = None,
        devices: int | None = None,
    ) -> None:
        """Creates an empty program.

        The actions of its ranks are recorded in the file ``trace``, which is written when the process ends.

        With ``devices``, kernels with ``on="cupy"`` run on that many devices of each process, which share its part of
        the range; otherwise they run on CuPy's current device.
        """
        if devices is not None and whole("devices", devices) < 1:
            raise InputError(f"devices is {devices}; accepted are numbers from 1 on")
        self._devices = devices
        self.arrays: list[Array] = []
        self.tasks: list[Task] = []
        # The tasks and fetches, in the order of submission.
        self._steps: list[Task | Fetch] = []
        self._numbered: dict[int, Task] = {}
        #: The submitted tasks, by their arguments.
        self._forms: dict[Hashable, Task] = {}
        #: True if all kernels get views of host memory and no array has several operators.
        self._plain = True
        self._local_arrays: list[LocalArray] = []
        self._initialized: list[bool] = []
        self._checksum = ProgramChecksum()
        #: The name of the task whose kernel failed; None if no kernel has failed.
        self._failed: str | None = None
        self._number = next(_numbers)
        self._transport = None if recording.recording() else transport(machine, plan)
        nodes, rank = (self._transport.ranks, self._transport.rank) if self._transport else (1, 0)
        by_messages = is_on(_SWITCH)
        self._rules = "off" if by_messages else "full"
        self._discovery = Discovery(nodes, rank, self._rules, rows=True, report=False)
        self._exchanges = Exchanges(self._transport, by_messages) if self._transport else None
        self._trace = None
        if not recording.recording():
            self._trace = recorder(trace, self._transport, self._discovery.task_name, self.arrays)
        recording.made(self)

    def __repr__(self) -> str:
        return f"<unisono.tasks.Program of {len(self.arrays)} arrays, with {len(self.tasks)} distinct tasks>"

    def array(
        self,
        shape: int | Sequence[int],
        init: npt.ArrayLike | None = None,
        dtype: npt.DTypeLike | None = None,
        name: str = "",
    ) -> Array:
        """Returns a new array; without ``init`` a task must write the elements before they are read."""
        name = name or f"a{len(self.arrays)}"
        if any(other.name == name for other in self.arrays):
            raise InputError(f"there is an array '{name}' already; give another name")
        sizes = sizes_of(f"array '{name}': shape", shape, " (its contents are given as init=)")
        if isinstance(init, np.ma.MaskedArray):
            raise InputError(f"init of array '{name}' is masked; give its .filled(VALUE), or its .data")
        given = None if init is None else np.array(init, dtype=dtype)
        kind = np.dtype(float if dtype is None else dtype) if given is None else given.dtype
        if kind.hasobject:
            raise InputError(f"array '{name}' has dtype {kind}; accepted are dtypes of fixed size")
        number = self._discovery.buffer(name, sizes, kind.itemsize, initialized=given is not None)
        made = Array(self, number, name, sizes, kind)
        data = np.zeros(made.shape, kind)
        # `np.zeros` provides the zeros, on pages that use no memory until they are accessed.
        if given is not None and any(given.tobytes() if given.ndim == 0 else b"1"):
            try:
                data[...] = given
            except ValueError as wrong:
                raise InputError(f"array '{name}' has shape {made.shape}; its contents have {given.shape}") from wrong
        self.arrays.append(made)
        self._local_arrays.append(LocalArray(data, devices=self._devices))
        if self._exchanges:
            self._exchanges.hold(data)
        self._checksum.add(kind.str)
        if given is not None and self._transport:
            self._checksum.add_contents(name, given)
        self._initialized.append(given is not None)
        return made

    def zeros(self, shape: int | Sequence[int], dtype: npt.DTypeLike = float, name: str = "") -> Array:
        """Returns a new array of zeros."""
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
        on: str = "numpy",
        offsets: bool = False,
        operations: float | None = None,
    ) -> None:
        """Submits a task: ``kernel`` gets its views in the order reads, writes, updates, reduces.

        Views of reads are read-only. A view of a write has undefined contents. A view of a reduction starts from the
        operator's neutral element on each rank, and the ranks' results are combined by ``op``: sum, prod, min or max.

        With ``on="cupy"`` the kernel gets CuPy arrays, which are never read-only. ``on="host"`` means the same as
        ``"numpy"``, and :meth:`explain` keeps such a kernel on the host if processes have devices. With ``offsets`` the
        kernel gets one more argument, which Numba's kernels need: for each view the index of its first element in the
        whole array.

        ``operations`` is the number of arithmetic operations per point of the range, for :meth:`workload`.
        """
        options = (op, name, offset, granularity, split, on, offsets, operations, False)
        self._take(kernel, range, (reads, writes, updates, reduces), options)

    def _take(
        self,
        kernel: Callable[..., Any],
        sizes: int | Sequence[int],
        given: tuple[Sequence[Access], ...],
        options: tuple[Any, ...],
    ) -> None:
        """Submits a task, or repeats a task that was submitted with equal arguments (``options`` as in `Options`)."""
        try:
            accesses = tuple(map(tuple, given))
        except TypeError as wrong:
            name = Options(*options).name or getattr(kernel, "__name__", "task")
            raise InputError(f"task '{name}': what it accesses is a list; write [array[mapper]]") from wrong
        form: Task | None = None
        key: Hashable = None
        try:
            at = kernel if type(kernel) in _FUNCTIONS else id(kernel)
            key = (at, sizes, accesses, options)
            form = self._forms.get(key)
        except TypeError:
            # An argument such as a list has no hash, so the task is not cached. `task_of` reports wrong arguments.
            key = None
        if form is not None:
            self._add(form, self._discovery.again(form.first))
            return
        made = task_of(self, kernel, sizes, Accesses(*accesses), Options(*options))
        # Wrong tasks are refused now, while the traceback still shows the line that submits them.
        made.first = made.submit(self._discovery)
        if key is not None:
            if len(self._forms) >= _KEPT:
                self._forms.clear()
            self._forms[key] = made
        self._add(made, made.first)

    def _add(self, task: Task, number: int) -> None:
        """Appends a task, whose number in the discovery is ``number``."""
        self._numbered[number] = task
        self.tasks.append(task)
        self._steps.append(task)
        for array in task.reduced:
            if self._local_arrays[array].combine_by(task.operator) and self._exchanges:
                self._exchanges.hold_codes(array, self._local_arrays[array])
            self._checksum.add(task.operator)
        if task.on == "cupy" or any(self._local_arrays[array].codes is not None for array in task.reduced):
            self._plain = False

    def host_task(
        self,
        function: Callable[..., Any],
        reads: Sequence[Access | Array] = (),
        writes: Sequence[Access | Array] = (),
        updates: Sequence[Access | Array] = (),
        *,
        name: str = "",
    ) -> None:
        """Submits a function that rank 0 alone executes once, in order with the tasks: to print, or to write a file.

        The function gets NumPy views as a kernel does. An array without a mapper stands for the whole array.
        """
        try:
            given = [[a[all_] if isinstance(a, Array) else a for a in listed] for listed in (reads, writes, updates)]
        except TypeError as wrong:
            raise InputError(f"host task '{name}': what it accesses is a list of arrays or array[mapper]") from wrong
        options = Options("sum", name, None, None, "1d", "host", offsets=False, operations=None, once=True)
        self._take(function, 1, (*given, ()), tuple(options))

    def run(self) -> None:
        """Executes the tasks submitted since the last call. All ranks call this at the same points of the program."""
        self._discovery.flush()
        if recording.recording():
            self._discovery.commands()
            return
        self._carry_out("run")

    def fence(self) -> None:
        """Executes all submitted tasks and returns when all ranks have done so."""
        self.run()
        if self._transport:
            self._transport.barrier()

    def fetch(self, array: Array) -> npt.NDArray[Any]:
        """Executes all submitted tasks and returns a copy of an array's contents, on every rank.

        Raises:
            InputError: an element of the array was never written.

        """
        if array.program is not self:
            raise InputError(f"array '{array.name}' belongs to another program")
        step = Fetch(array.name, array.number, array.shape)
        step.submit(self._discovery)
        self._steps.append(step)
        local = self._local_arrays[array.number]
        if recording.recording():
            changed = ((number, mode) for task in reversed(self.tasks) for number, mode, _ in task.accesses)
            unknown = any(number == array.number and mode != "read" for number, mode in changed)
            return recording.fetched(array, None if unknown else local.data)
        self._carry_out(f"fetch of '{array.name}'")
        return local.latest().copy()

    def write_trace(self) -> None:
        """Writes the trace recorded so far, before the end of the process. All ranks call this together."""
        if self._trace is None:
            raise InputError("the program records no trace; accepted is Program(trace=FILE), or UNISONO_TRACE=FILE")
        if self._transport:
            what = f"trace of program {self._number}"
            self._transport.agree(what, self._discovery, self._checksum)
        self._trace.write()

    def explain(
        self,
        nodes: int,
        rules: str = "full",
        *,
        machine: MachineLike | None = None,
        model: str | None = None,
        simulate: bool = False,
        devices: int | None = None,
        rank: int = 0,
        device_machine: MachineLike | None = None,
    ) -> Explanation:
        """Returns the communication on a number of nodes, and its time on ``machine``.

        The machine is one of ranks, such as ``"archer"``, or a network, such as ``"hx2mesh-small"``. With ``simulate``
        every operation also runs on the machine's simulator.

        ``devices`` is the number of devices that each node drives, by default the program's. Kernels with ``on="cupy"``
        run on devices; if no task has ``on="cupy"``, all kernels do, except those with ``on="host"``. The result then
        includes the copies between the memories of node ``rank``, and their time on ``device_machine``: its rank 0 is
        the host, and its next ranks are the devices.
        """
        check_devices(devices if self._devices is None else self._devices, rank, device_machine)
        copies = None
        devices = self._devices if devices is None else devices
        if devices is not None:
            tasks = listed(self, self._steps)
            copies = devices_report(tasks, nodes, rules, devices, rank, device_machine, simulate)
        if machine is None:
            without_machine(model, simulate and device_machine is None)
            return Explanation(self._discovered(nodes, rules).report(), devices=copies)

        def found(rules: str) -> tuple[DiscoveryReport, list[Moved]]:
            discovery = self._discovered(nodes, rules)
            return discovery.report(), discovery.moved(self._reduced_by_messages())

        return Explanation(*predictions(found, machine, nodes, rules, model, simulate), devices=copies)

    def workload(self, ranks: int, *, name: str = "tasks", strict: bool = False) -> WorkloadGraph:
        """Returns the computation and communication of the ranks, as a program for ``unisono.step``.

        The cost of a kernel is the ``operations`` of its task and the memory traffic of its accesses. The report counts
        tasks without ``operations`` in ``unknown``; with ``strict`` they are an error.

        Raises:
            InputError: too many ranks; with ``strict``, a task without ``operations``.

        """
        return workload(self, self._steps, ranks, name, strict=strict)

    def scaling(
        self,
        machine: MachineLike,
        nodes: Iterable[int] = NODES,
        *,
        kernels: Mapping[str, float] | None = None,
        model: str | None = None,
        simulate: bool = False,
    ) -> Scaling:
        """Estimates the program's time on increasing numbers of nodes of a machine.

        ``kernels`` gives by name the CPU seconds of all tasks with that name when one node executes them; names without
        a time are measured now, on copies of the arrays. Each node takes the fraction of these seconds that its part of
        the range is of the whole range. Communication takes the time that :meth:`explain` predicts; nothing overlaps. A
        :meth:`host_task` is not executed: it takes the time in ``kernels`` on every number of nodes, or none.
        """
        return scaling(self, nodes, machine, kernels, model, simulate)

    def check(self, ranks: int) -> None:
        """Runs each kernel on its whole range and in the parts of ``ranks`` ranks, and compares the results.

        All runs are in this process, on copies of the current arrays. The check finds kernels that treat the edge of a
        view as the edge of the array. A :meth:`host_task` is not executed. While a file is only recorded, the method
        does nothing.

        Raises:
            InputError: the results of a task depend on the number of ranks beyond rounding.
            UnsupportedError: kernels run on devices, or the program runs on several ranks.

        """
        if not recording.recording():
            check(self, ranks)

    def _reduced_by_messages(self) -> dict[int, int]:
        """Returns the arrays that only messages can reduce, with the extra bytes per element for operator codes."""
        coded = ((array, int(self._local_arrays[array.number].codes is not None)) for array in self.arrays)
        return {array.number: extra for array, extra in coded if extra or not by_mpi(array.dtype)}

    def _copy_from(self, other: "Program") -> None:
        """Copies the arrays of another program and submits its tasks."""
        for array, local, there in zip(other.arrays, other._local_arrays, other._initialized, strict=True):
            self.array(array.shape, local.latest() if there else None, array.dtype, array.name)
        for task in other.tasks:
            # `run` is cleared, because it is bound to the arrays of the other program.
            self._numbered[task.submit(self._discovery)] = replace(task, run=None)
            self._plain = self._plain and other._plain

    def _timed(self) -> dict[str, float]:
        """Executes the submitted tasks except host tasks, and returns the CPU seconds by task name."""
        self._discovery.flush()
        seconds = dict.fromkeys((task.name for task in self._numbered.values() if not task.once), 0.0)
        for command in self._discovery.commands():
            number = command[2]
            if not self._numbered[number].once:
                timed(seconds, self._numbered[number].name, lambda number=number: self._execute(number))
        return seconds

    def _discovered(self, nodes: int, rules: str) -> Discovery:
        discovery = Discovery(nodes, rules=rules, rows=True)
        self._submit(discovery)
        discovery.flush()
        return discovery

    def graph(
        self, nodes: int, file: str | os.PathLike[str], kind: str = "commands", rules: str = "full", title: str = ""
    ) -> None:
        """Draws the commands of each rank, or with ``kind="tasks"`` the dependencies between tasks.

        A file name that ends in ``.dot`` gives a graph for Graphviz; ``.svg`` and ``.png`` give pictures, which show
        the beginning of long programs and the first of many ranks.
        """
        write_graph(Source(self._submit, nodes, rules, rows=True), file, kind, title or "program of tasks")

    def _submit(self, to: Discovery) -> None:
        """Submits all arrays and tasks to a discovery or a list of tasks."""
        self._declare(to)
        for step in self._steps:
            step.submit(to)

    def _declare(self, to: Discovery | TaskList) -> None:
        for array, there in zip(self.arrays, self._initialized, strict=True):
            to.buffer(array.name, array.shape, array.dtype.itemsize, initialized=there)

    def _carry_out(self, what: str) -> None:
        if self._transport is None or self._exchanges is None:
            self._carry_out_alone()
            return
        self._transport.agree(f"{what} of program {self._number}, rules {self._rules}", self._discovery, self._checksum)
        exchanges, detailed = self._exchanges, not self._plain
        with self._transport.proving():
            schedule = TaskSchedule(
                self._discovery, exchanges.memory, exchanges, self._local_arrays, self._trace, detailed
            )
        schedule.prepare(self._discovery)
        try:
            carry_out(schedule, self._execute_or_end, self._transport.progress_thread)
        except BaseException:
            self._transport.abort("an exchange")

    def _carry_out_alone(self) -> None:
        """Executes the commands of a program on a single rank, which are all kernels."""
        commands = self._discovery.commands()
        if self._failed is not None:
            raise InputError(f"task '{self._failed}' has failed, and what depends on it cannot be done")
        for command in commands:
            try:
                self._execute_traced(command[2], command)
            except BaseException:
                self._failed = self._discovery.task_name(command[2])
                raise

    def _execute_or_end(self, number: int, command: Command | None) -> None:
        try:
            self._execute_traced(number, command)
        except BaseException:
            # An exit or an interrupt ends all ranks too, because the other ranks would wait for this rank.
            assert self._transport is not None
            self._transport.abort(f"task '{self._discovery.task_name(number)}'")

    def _execute_traced(self, number: int, command: Command | None) -> None:
        if self._trace is None or command is None or number not in self._numbered:
            self._execute(number)
            return
        start = self._trace.now()
        self._execute(number)
        self._trace.kernel(start, number, *command[4:6])

    def _execute(self, number: int) -> None:
        task = self._numbered.pop(number, None)
        if task is None:
            return
        if self._plain and task.run is not None:
            task.run()
            return
        parts = self._parts(task, self._discovery.views(number))
        if task.on == "cupy" and self._devices is not None:
            cupy(self._devices)
            of_each = [self._parts(task, views) for views in self._discovery.device_views(number, self._devices)]
            _kernels.call_on_devices(task.name, task.kernel, of_each, parts, task.operator, task.offsets)
            return
        if self._plain:
            task.run = _kernels.bound(task.name, task.kernel, parts, task.operator, task.offsets)
            task.run()
        else:
            _kernels.call(task.name, task.kernel, parts, task.operator, task.on, task.offsets)

    def _parts(self, task: Task, views: Iterable[tuple[Box, Boxes]]) -> list[_kernels.Part]:
        """Returns the parts of arrays that a task accesses through its views."""
        return [
            _kernels.Part(self._local_arrays[buffer], self.arrays[buffer].name, mode, box, region)
            for (buffer, mode, _), (box, region) in zip(task.accesses, views, strict=True)
        ]
