"""Trace events of simulated runs, as files for Perfetto or ``chrome://tracing``."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from unisono._core import InputError, Simulation, simulators
from unisono.base.inputs import items, whole
from unisono.base.messages import shown

__all__ = [
    "MOST_TRACED",
    "SIMULATORS",
    "TIMELINES",
    "TRACES",
    "Simulator",
    "Traced",
    "checked_pes",
    "listed_pes",
    "operations_and_messages",
]

#: The largest number of PEs or ranks in a trace.
MOST_TRACED = 4096


class Simulator(NamedTuple):
    """A simulator: its summary, whether it takes a model of messages, and what it records (pes, ranks or nothing)."""

    summary: str
    takes_model: bool
    records: str


#: All simulators by name.
SIMULATORS = {name: Simulator(*about) for name, about in simulators().items()}


@dataclass
class Traced:
    """The facts of a run that its trace states, and the PEs or ranks that the run recorded."""

    title: str
    nodes: int
    machine: str
    shape: tuple[int, ...]
    recorded: list[int]


def listed_pes(pes: Sequence[int]) -> list[int]:
    """Returns the PEs or ranks of a trace as a list; refuses too long a range before expanding it.

    Raises:
        InputError: ``pes`` is not a list of whole numbers, or is too long a range.

    """
    message = f"the PEs of a trace are {shown(pes)}, and must be a list"
    if isinstance(pes, range) and len(pes) > MOST_TRACED:
        raise InputError(f"a trace of {len(pes)} PEs was asked for, and at most {MOST_TRACED} are recorded")
    return [whole("a PE of the trace", pe) for pe in items(pes, message)]


def checked_pes(pes: Sequence[int], count: int) -> list[int]:
    """Returns the PEs after a check that they exist and are not too many.

    Raises:
        InputError: there are more PEs than a trace records, or a PE does not exist.

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
    """Returns at most ``size`` PEs, evenly spaced, including the first, and the last if ``size`` is above 1."""
    if size >= count:
        return list(range(count))
    if size == 1:
        return [0]
    return [at * (count - 1) // (size - 1) for at in range(size)]


def pe_trace(run: Traced, simulation: Simulation) -> str:
    """Returns the trace of recorded PEs, one event a line; a microsecond of the file stands for a cycle."""
    columns = run.shape[-1]
    recorded = simulation.trace_events
    # Each thread of a PE has its own track, shown in this order.
    tracks = sorted({(event["pe"], event["thread"]) for event in recorded})
    track = {key: at + 1 for at, key in enumerate(tracks)}
    events = [_metadata("process_name", 0, {"name": run.title})]
    for (pe, thread), tid in track.items():
        row, column = divmod(pe, columns)
        label = f"PE {row},{column}" + (f" thread {thread}" if thread else "")
        events.append(_metadata("thread_name", tid, {"name": label}))
        events.append(_metadata("thread_sort_index", tid, {"sort_index": tid}))
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
        "machine": run.machine,
        "shape": list(run.shape),
    }
    return _file(about, events)


def rank_trace(run: Traced, simulation: Simulation) -> str:
    """Returns the trace of recorded ranks and the messages between these, with times in microseconds."""
    operations, messages = operations_and_messages(simulation)
    events = [_metadata("process_name", 0, {"name": run.title})]
    for rank in sorted({operation["rank"] for operation in operations}):
        events.append(_metadata("thread_name", rank + 1, {"name": f"rank {rank}"}))
        events.append(_metadata("thread_sort_index", rank + 1, {"sort_index": rank + 1}))
    for operation in operations:
        events.append(
            {
                "name": operation["kind"],
                "cat": operation["kind"],
                "ph": "X",
                "pid": 1,
                "tid": operation["rank"] + 1,
                "ts": operation["start_ns"] / 1e3,
                # Messages without bytes may have a negative cost in LogGOPSim's arithmetic; such a bar has no length.
                "dur": max(0.0, operation["end_ns"] - operation["start_ns"]) / 1e3,
                "args": {"bytes": operation["bytes"], "rank": operation["rank"]},
            }
        )
    for at, message in enumerate(messages):
        # A flow arrow leads from the issue of a message to its arrival.
        common = {"name": "message", "cat": "message", "id": at, "pid": 1}
        events.append({**common, "ph": "s", "tid": message["source"] + 1, "ts": message["issued_ns"] / 1e3})
        events.append({**common, "ph": "f", "bp": "e", "tid": message["target"] + 1, "ts": message["arrived_ns"] / 1e3})
    return _file({"seconds": simulation.seconds, "events": simulation.events}, events)


def operations_and_messages(simulation: Simulation) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Returns operations of the recorded ranks' CPUs, and messages between these ranks, in nanoseconds.

    An operation has ``rank``, ``kind`` (send, receive, calc, reduce), ``bytes``, ``start_ns`` and ``end_ns``; a message
    has ``source``, ``target``, ``bytes``, ``issued_ns`` and ``sent_ns`` (when its issue began and ended), and
    ``arrived_ns``.
    """
    per_ns = simulation.ticks_per_ns
    assert per_ns is not None, "runs among ranks count ticks"
    operations = []
    leaving: dict[tuple[int, int, int], list[tuple[float, float]]] = {}
    messages = []
    for event in simulation.trace_events:
        kind = {"recv": "receive"}.get(event["kind"], event["kind"])
        start, end = event["start"] / per_ns, event["end"] / per_ns
        operations.append(
            {"rank": event["rank"], "kind": kind, "bytes": event["bytes"], "start_ns": start, "end_ns": end}
        )
        if kind == "send":
            leaving.setdefault((event["rank"], event["peer"], event["bytes"]), []).append((start, end))
    # Messages of the same pair and length arrive in the order in which they left.
    arrived: dict[tuple[int, int, int], int] = {}
    for event in simulation.trace_events:
        key = (event["peer"], event["rank"], event["bytes"])
        if event["kind"] == "recv" and key in leaving:
            at = arrived.get(key, 0)
            arrived[key] = at + 1
            if at < len(leaving[key]):
                messages.append(
                    {
                        "source": key[0],
                        "target": key[1],
                        "bytes": key[2],
                        "issued_ns": leaving[key][at][0],
                        "sent_ns": leaving[key][at][1],
                        "arrived_ns": event["start"] / per_ns,
                    }
                )
    return operations, messages


def _metadata(name: str, tid: int, arguments: dict[str, Any]) -> dict[str, Any]:
    """Returns a trace event that names a process or a track."""
    return {"name": name, "ph": "M", "pid": 1, "tid": tid, "args": arguments}


def _file(about: dict[str, Any], events: Iterable[dict[str, Any]]) -> str:
    lines = ",\n".join(json.dumps(event, ensure_ascii=False) for event in events)
    head = f'{{"displayTimeUnit":"ns","otherData":{json.dumps(about, ensure_ascii=False)},"traceEvents":[\n'
    return f"{head}{lines}\n]}}\n"


#: The functions that return traces as text: by the nodes that a simulator records, and then by simulator.
_WRITERS: dict[str, Callable[[Traced, Simulation], str]] = {"pes": pe_trace, "ranks": rank_trace}
TRACES = {name: _WRITERS[about.records] for name, about in SIMULATORS.items() if about.records in _WRITERS}
#: Simulators whose runs have timelines.
TIMELINES = tuple(name for name, about in SIMULATORS.items() if about.records == "ranks")
