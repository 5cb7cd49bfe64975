"""Schedules run on a simulated machine, and traces of such runs."""

import json
import os
from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from unisono import _core
from unisono._core import InputError, Machine, Schedule, Simulation, UnsupportedError
from unisono._files import check_writable, write
from unisono._inputs import checked_probability, checked_seed, items, named, whole
from unisono._machines import with_shape
from unisono._messages import shown

#: The most PEs that one trace records.
MOST_TRACED = 4096
#: PEs of a trace where nobody says which.
SAMPLED = 256


class Run:
    """One run of a schedule on the simulated fabric of a wafer, data included."""

    def __init__(
        self, schedule: Schedule, simulation: Simulation, options: tuple[int | None, float, int], traced: list[int]
    ) -> None:
        self._schedule = schedule
        self._simulation = simulation
        self._options = options
        self._traced = traced

    @property
    def cycles(self) -> int:
        """Cycles until the last operation ended."""
        return self._simulation.cycles

    @property
    def seconds(self) -> float:
        """The same by the machine's clock."""
        return self._simulation.seconds

    @property
    def finish(self) -> npt.NDArray[np.uint32]:
        """For each PE the cycle when its last operation ended; 0 for one without any."""
        return self._simulation.finish

    @property
    def events(self) -> int:
        """Moves of wavelets and element operations that were simulated."""
        return self._simulation.events

    @property
    def hops(self) -> int:
        """Moves of wavelets from one router to the next."""
        return self._simulation.hops

    @property
    def stalls(self) -> int:
        """Cycles that wavelets waited at routers, added up."""
        return self._simulation.stalls

    @property
    def result_correct(self) -> bool:
        """Whether the data that came out is what plain arithmetic gives."""
        return self._simulation.result_correct

    @property
    def mismatch(self) -> str | None:
        """The first element that differs from plain arithmetic."""
        return self._simulation.mismatch

    @property
    def wall_seconds(self) -> float:
        """How long the simulation took."""
        return self._simulation.wall_seconds

    def trace(self, path: str | os.PathLike[str], pes: Sequence[int] | None = None) -> None:
        """Writes the run as trace events for Perfetto or ``chrome://tracing``: a track for each thread of each PE.

        One microsecond of the file stands for one cycle. ``pes`` chooses other PEs than the run was asked to record,
        which repeats the run; without any, an even sample of at most 256 is taken.

        Raises:
            InputError: a PE does not exist, they are more than 4096, or the path cannot be a file.
            OSError: it cannot be written; no half-written file is left.

        """
        check_writable(path)
        chosen = list(pes) if pes is not None else self._traced or sample(self._schedule.nodes, SAMPLED)
        if chosen != self._traced:
            checked = checked_pes(chosen, self._schedule.nodes)
            self._simulation = _core.simulate(self._schedule, *self._options, checked)
            self._traced = chosen
        write(path, trace_text(self._schedule, self._simulation))

    def __repr__(self) -> str:
        correct = "correct" if self.result_correct else "wrong"
        return f"<unisono.Run {self.cycles} cycles, result {correct}>"


class TimedRun(Run):
    """A run on a machine whose clock counts nanoseconds, not cycles."""

    _result: Any

    @property
    def cycles(self) -> int:
        """There are none on these machines.

        Raises:
            UnsupportedError: always; :attr:`seconds` says the time.

        """
        raise UnsupportedError("a run on this machine has no cycles; .seconds says its time")

    @property
    def seconds(self) -> float:
        """Until the last rank was done, or had given and got everything."""
        return float(self._result.nanoseconds) / 1e9

    @property
    def nanoseconds(self) -> float:
        """The same in nanoseconds, as exact as the clock of the simulation."""
        return float(self._result.nanoseconds)

    @property
    def finish(self) -> npt.NDArray[Any]:
        """For each rank when it was done, seconds."""
        return self.finish_ns / 1e9

    @property
    def finish_ns(self) -> npt.NDArray[np.float64]:
        """The same in nanoseconds."""
        found: npt.NDArray[np.float64] = self._result.finish_ns
        return found

    @property
    def events(self) -> int:
        """What the simulation computed one by one: tasks and messages of ranks, packets at the engines of switches."""
        return int(self._result.events)

    @property
    def wall_seconds(self) -> float:
        """How long the simulation took."""
        return float(self._result.wall_seconds)


def simulate(
    schedule: Schedule,
    machine: Machine | str | os.PathLike[str] | None = None,
    *,
    queue_depth: int | None = None,
    noop_probability: float = 0.0,
    seed: SupportsIndex = 0,
    trace_pes: Sequence[int] | None = None,
    model: str | None = None,
    late: Sequence[float] | None = None,
    noise: tuple[str, float] | tuple[str, float, float] | None = None,
    places: Sequence[SupportsIndex] | None = None,
) -> Run:
    """Runs a schedule on its machine, or on ``machine``.

    The schedule is proved first. On a wafer it runs wavelet by wavelet on the fabric, with data through it. Among ranks
    its messages run at the prices of the machine, by ``model`` where that is not the machine's own; rank ``k`` begins
    ``late[k]`` nanoseconds after the first, and ``noise``, ``("uniform", most)``, ``("normal", mean, deviation)`` or
    ``("exponential", mean)`` in nanoseconds, lengthens what holds a CPU, drawn by ``seed``. On a network they travel as
    packets; the run is a :class:`unisono.NetworkRun`. Rank ``k`` is on accelerator ``places[k]``, as of
    :func:`unisono.submesh`, else where the schedule is placed, or on accelerator ``k`` of the part that the shape of
    ``machine`` names. In switches that reduce, its packets flow through them with their data; the run is a
    :class:`unisono.EngineRun`.

    On a wafer ``queue_depth`` replaces the machine's wavelets that wait at a router, per color and input. With
    ``noop_probability`` a PE idles in so many of its cycles, as it does against overheating, drawn by ``seed``.
    ``trace_pes`` (or ranks) are recorded for :meth:`Run.trace`.

    Raises:
        InputError: no machine, or a wrong value.
        UnsupportedError: the schedule needs more colors, switch positions or the like than the machine has.
        VerifyError: the schedule is refused; ``.diagnostics`` lists why.
        SimulationError: the run got stuck, or wavelets met that must not; ``.stuck`` lists where.

    """
    if not isinstance(schedule, Schedule):
        raise InputError(f"{shown(schedule)} is not a schedule; a plan has one as .schedule")
    if machine is not None:
        machine = with_shape(machine, None)
    if model is not None:
        named("the model", model)
    lie = None if places is None else checked_places(places)
    where = machine or schedule.machine
    placed = schedule if (machine is None and lie is None) or where is None else schedule.on(where, lie)
    traced = [] if trace_pes is None else listed_pes(trace_pes)
    kind = None if placed.machine is None else placed.machine.kind
    if kind == "endpoint":
        # Imported here, for that module is built on this one.
        from unisono._endpoint import simulate_ranks

        if queue_depth is not None or noop_probability != 0:
            raise InputError("queue_depth and noop_probability are a wafer's; among ranks there are late and noise")
        return simulate_ranks(placed, model, late, noise, seed, checked_pes(traced, placed.nodes))
    if kind == "network":
        from unisono._network import simulate_on_network

        if queue_depth is not None or noop_probability != 0 or model is not None:
            raise InputError("queue_depth and noop_probability are a wafer's, and a network has one model; drop them")
        return simulate_on_network(placed, late, noise, seed, checked_pes(traced, placed.nodes))
    if kind == "in-network":
        # Imported here, for that module is built on this one.
        from unisono._switches import EngineRun

        return EngineRun(placed)
    if model is not None or late is not None or noise is not None:
        raise InputError("model, late and noise are for ranks; on a wafer there are queue_depth and noop_probability")
    if queue_depth is not None and not 0 <= whole("queue_depth", queue_depth) < 2**32:
        raise InputError(f"queue_depth is {queue_depth}; accepted are whole numbers of 32 bits from 0 on")
    options = (queue_depth, checked_probability("noop_probability", noop_probability), checked_seed(seed))
    return Run(placed, _core.simulate(placed, *options, checked_pes(traced, placed.nodes)), options, traced)


def checked_places(places: Sequence[SupportsIndex]) -> list[int]:
    """Accelerators of ranks as a list.

    Raises:
        InputError: they are not a list of whole numbers from 0 to 2^32 - 1.

    """
    listed = items(places, f"places is {shown(places)}, and must be a list of accelerators")
    checked = [whole("the place of a rank", place) for place in listed]
    for at in checked:
        if not 0 <= at < 2**32:
            raise InputError(f"the place of a rank is {at}; accepted are numbers of accelerators, from 0 on")
    return checked


def listed_pes(pes: Sequence[int]) -> list[int]:
    """The PEs or ranks of a trace as a list; a range stays short until it is known to be.

    Raises:
        InputError: they are not a list of whole numbers.

    """
    message = f"the PEs of a trace are {shown(pes)}, and must be a list"
    if isinstance(pes, range) and len(pes) > MOST_TRACED:
        raise InputError(f"a trace of {len(pes)} PEs was asked for, and at most {MOST_TRACED} are recorded")
    return [whole("a PE of the trace", pe) for pe in items(pes, message)]


def checked_pes(pes: Sequence[int], count: int) -> list[int]:
    """The same PEs, once there are not too many and each exists.

    Raises:
        InputError: they are more than a trace records, or one does not exist.

    """
    if len(pes) > MOST_TRACED:
        raise InputError(
            f"a trace of {len(pes)} PEs was asked for, and at most {MOST_TRACED} are recorded: "
            "take an even sample, as --trace-pes 256 does, or name fewer"
        )
    for pe in pes:
        if not 0 <= pe < count:
            raise InputError(f"PE {pe} of the trace does not exist; accepted are 0 to {count - 1}")
    return [int(pe) for pe in pes]


def sample(count: int, size: int) -> list[int]:
    """At most that many PEs, evenly spaced, the first and the last among them."""
    if size >= count:
        return list(range(count))
    if size == 1:
        return [0]
    return [at * (count - 1) // (size - 1) for at in range(size)]


def trace_text(schedule: Schedule, simulation: Simulation) -> str:
    """The recorded operations as a file of trace events in JSON, one event a line."""
    machine = schedule.machine
    shape = machine.shape if machine is not None and machine.shape is not None else (schedule.nodes,)
    columns = shape[-1]
    recorded = simulation.trace_events
    # A track of its own for each thread of a PE; tracks are shown in this order.
    tracks = sorted({(event["pe"], event["thread"]) for event in recorded})
    track = {key: at + 1 for at, key in enumerate(tracks)}
    name = f"{schedule.collective} of {schedule.elements} {schedule.dtype} on {'x'.join(map(str, shape))} PEs"
    events: list[dict[str, Any]] = [metadata("process_name", 0, {"name": name})]
    for (pe, thread), tid in track.items():
        row, column = divmod(pe, columns)
        label = f"PE {row},{column}" + (f" thread {thread}" if thread else "")
        events.append(metadata("thread_name", tid, {"name": label}))
        events.append(metadata("thread_sort_index", tid, {"sort_index": tid}))
    phases = simulation.phases
    for event in recorded:
        phase = phases[event["phase"]] if event["phase"] < len(phases) else ""
        events.append(
            {
                "name": f"{phase} i{event['instr']}".lstrip(),
                "cat": phase or "operation",
                "ph": "X",
                "pid": 1,
                "tid": track[event["pe"], event["thread"]],
                "ts": event["start"],
                "dur": max(event["end"] - event["start"], 1),
                "args": {"elements": event["elements"], "instruction": event["instr"], "pe": event["pe"]},
            }
        )
    about = {
        "time": "1 us stands for 1 cycle",
        "cycles": simulation.cycles,
        "seconds": simulation.seconds,
        "machine": machine.name if machine is not None else "",
        "shape": list(shape),
    }
    lines = ",\n".join(json.dumps(event, ensure_ascii=False) for event in events)
    head = f'{{"displayTimeUnit":"ns","otherData":{json.dumps(about, ensure_ascii=False)},"traceEvents":[\n'
    return f"{head}{lines}\n]}}\n"


def metadata(name: str, tid: int, arguments: dict[str, Any]) -> dict[str, Any]:
    """A trace event that names a process or a track."""
    return {"name": name, "ph": "M", "pid": 1, "tid": tid, "args": arguments}
