"""Records actions of ranks as trace events for Perfetto: kernels, exchanges, and arrows from pushes to awaits.

Every rank records by its own clock. Rank 0 requests the time of each other rank several times, when the recording
begins and when the file is written. The fastest answer gives the offset between the clocks, with an error of half its
round trip. Between the two measured offsets a constant drift is assumed. The file states the error.
"""

import atexit
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from unisono._core import Error
from unisono.base.files import check_writable, write

#: The environment variable with the trace file of programs that name none.
SWITCH = "UNISONO_TRACE"
#: The number of requests to each rank for its time.
_QUESTIONS = 32
_TAG = 2
#: The tracks of a rank: track 1 for kernels, and from track 2 on as many as there are overlapping exchanges.
_KERNELS, _EXCHANGES = 1, 2
_files: dict[str, "_File"] = {}

Event = dict[str, Any]


class RankGroup(Protocol):
    """The interface of a group of ranks, which `Transport` implements."""

    mpi: Any
    comm: Any
    rank: int
    ranks: int
    #: The functions that are called when the ranks have agreed on the end.
    at_end: list[Callable[[], None]]


@dataclass
class _Offset:
    """The ns by which a rank's clock is ahead of rank 0's, at a time of rank 0."""

    at: int
    ahead: float
    error: float


@dataclass
class _File:
    path: str
    transport: RankGroup | None
    events: list[Event] = field(default_factory=list)
    #: The numbers of messages so far, by the other rank.
    sent: Counter[int] = field(default_factory=Counter)
    received: Counter[int] = field(default_factory=Counter)
    first: list[_Offset] = field(default_factory=list)

    def write(self) -> None:
        """Writes the file on rank 0. All ranks call this together."""
        transport = self.transport
        if transport is None:
            write(self.path, trace_text([self.events], [], []))
            return
        last = _offsets(transport)
        everyone = transport.comm.gather(self.events)
        if transport.rank == 0:
            write(self.path, trace_text(everyone, self.first, last))


class Recorder:
    """The recorder of one program."""

    def __init__(
        self, path: str, transport: RankGroup | None, task: Callable[[int], str], arrays: Sequence[Any]
    ) -> None:
        """Opens the recorder, on all ranks together. ``task`` returns the name of a task; ``arrays`` have names."""
        if path not in _files:
            _check(path, transport)
            made = _files[path] = _File(path, transport)
            if transport is None:
                atexit.register(made.write)
            else:
                made.first = _offsets(transport)
                transport.at_end.append(made.write)
        self._file, self._task, self._arrays = _files[path], task, arrays

    def write(self) -> None:
        """Writes the events recorded so far. All ranks call this together."""
        self._file.write()

    def now(self) -> int:
        """Returns the time of the rank's clock in nanoseconds."""
        return time.perf_counter_ns()

    def kernel(self, start: int, number: int, low: Sequence[int], high: Sequence[int]) -> None:
        """Records a kernel that has ended."""
        self._add("kernel", self._task(number), start, {"min": list(low), "max": list(high)})

    def begin(self, command: tuple[Any, ...]) -> Event:
        """Records the beginning of an exchange; messages between two ranks are numbered in their order."""
        kind, file = command[0], self._file
        event: Event = {"start": self.now()}
        rank = file.transport.rank if file.transport else 0
        if kind == "push":
            event["to"] = [rank, command[5], file.sent[command[5]]]
            file.sent[command[5]] += 1
        elif kind == "await":
            event["from"] = [[source, rank, file.received[source]] for source, _ in command[5]]
            file.received.update(source for source, _ in command[5])
        return event

    def end(self, event: Event, command: tuple[Any, ...], served: str, size: int, schedule: str | None) -> None:
        """Records the end of an exchange; ``size`` is in bytes, for a collective the bytes that all ranks receive."""
        kind, array = command[0], self._arrays[command[4]].name
        args = {"array": array, "bytes": size, "before": self._task(command[2])}
        if schedule is not None:
            args["schedule"] = schedule
        if kind == "collective":
            operation = command[6]
            kind, ranks = operation.pattern, operation.participants
            args |= {"served": served, "group": command[5], "ranks": _ranges(ranks)}
            if operation.root is not None:
                args["root"] = operation.root
        elif kind == "push":
            args["to"] = command[5]
        else:
            args["from"] = [source for source, _ in command[5]]
        self._add(command[0], f"{kind} {array}", event.pop("start"), args, **event)

    def _add(self, kind: str, name: str, start: int, args: Event, **more: Any) -> None:
        self._file.events.append({"cat": kind, "name": name, "start": start, "end": self.now(), "args": args, **more})


def recorder(
    path: str | os.PathLike[str] | None, transport: RankGroup | None, task: Callable[[int], str], arrays: Sequence[Any]
) -> Recorder | None:
    """Returns a recorder if the program or the environment names a trace file, else None."""
    path = os.fspath(path) if path is not None else os.environ.get(SWITCH, "")
    return Recorder(path, transport, task, arrays) if path else None


def _check(path: str, transport: RankGroup | None) -> None:
    """Raises an error on all ranks if rank 0 cannot write the file."""
    problem: Error | None = None
    if transport is None or transport.rank == 0:
        try:
            check_writable(path)
        except Error as error:
            problem = error
    problem = problem if transport is None else transport.comm.bcast(problem)
    if problem is not None:
        raise problem


def trace_text(everyone: Sequence[list[Event]], first: Sequence[_Offset], last: Sequence[_Offset]) -> str:
    """Returns all ranks' events as JSON text, one event a line; times are in microseconds of rank 0's clock."""
    clocks = [_clock(*pair) for pair in zip(first, last, strict=True)] or [float]
    begun = min((clock(e["start"]) for clock, own in zip(clocks, everyone, strict=True) for e in own), default=0.0)
    lines: list[Event] = []
    for rank, (clock, own) in enumerate(zip(clocks, everyone, strict=True)):
        lines += _of_rank(rank + 1, own, lambda at, clock=clock: round((clock(at) - begun) / 1e3, 3))  # type: ignore[misc]
    errors = [max(one.error, other.error) for one, other in zip(first, last, strict=True)]
    about = {"time": "of rank 0", "ranks": len(everyone), "clock_error_ns": errors or [0.0]}
    text = ",\n".join(json.dumps(event, ensure_ascii=False) for event in lines)
    head = f'{{"displayTimeUnit":"ns","otherData":{json.dumps(about, ensure_ascii=False)},"traceEvents":[\n'
    return f"{head}{text}\n]}}\n"


def _of_rank(pid: int, own: list[Event], time_of: Callable[[int], float]) -> list[Event]:
    tracks: list[int] = []
    spans, arrows = [], []
    for event in sorted(own, key=lambda e: (e["start"], e["end"])):
        tid = _KERNELS
        if event["cat"] != "kernel":
            # The event goes to the first free track.
            free = next((k for k, until in enumerate(tracks) if until <= event["start"]), len(tracks))
            tracks[free : free + 1] = [event["end"]]
            tid = _EXCHANGES + free
        start, end = time_of(event["start"]), time_of(event["end"])
        about = {"name": event["name"], "cat": event["cat"], "ph": "X", "pid": pid, "tid": tid}
        spans.append({**about, "ts": start, "dur": round(end - start, 3), "args": event["args"]})
        both = {"name": "message", "cat": "message", "pid": pid, "tid": tid}
        if "to" in event:
            arrows.append({**both, "id": _id(event["to"]), "ph": "s", "ts": start})
        arrows += [{**both, "id": _id(row), "ph": "f", "bp": "e", "ts": end} for row in event.get("from", ())]
    names = ["kernels", *(f"exchanges {k + 1}" if k else "exchanges" for k in range(len(tracks)))]
    heads = [_metadata("process_name", pid, 0, {"name": f"rank {pid - 1}"})]
    for k, name in enumerate(names):
        heads.append(_metadata("thread_name", pid, k + 1, {"name": name}))
        heads.append(_metadata("thread_sort_index", pid, k + 1, {"sort_index": k + 1}))
    return [*heads, *spans, *arrows]


def _metadata(name: str, pid: int, tid: int, arguments: Event) -> Event:
    return {"name": name, "ph": "M", "pid": pid, "tid": tid, "args": arguments}


def _id(row: Iterable[int]) -> str:
    return "-".join(map(str, row))


def _ranges(ranks: Sequence[int]) -> str:
    """Formats ranks like ``0-3, 5``."""
    found: list[list[int]] = []
    for rank in ranks:
        if found and found[-1][1] == rank - 1:
            found[-1][1] = rank
        else:
            found.append([rank, rank])
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in found)


def _clock(first: _Offset, last: _Offset) -> Callable[[int], float]:
    """Returns the function that converts a rank's time to rank 0's time."""
    span = last.at - first.at
    drift = (last.ahead - first.ahead) / span if span > 0 else 0.0
    return lambda at: at - first.ahead - drift * (at - first.ahead - first.at)


def _offsets(transport: RankGroup) -> list[_Offset]:
    """Measures the offset of each rank's clock, on rank 0. All ranks call this together."""
    comm, found = transport.comm, [_Offset(time.perf_counter_ns(), 0.0, 0.0)]
    if transport.rank > 0:
        for _ in range(_QUESTIONS):
            comm.recv(source=0, tag=_TAG)
            comm.send(time.perf_counter_ns(), dest=0, tag=_TAG)
        return []
    for rank in range(1, transport.ranks):
        best: _Offset | None = None
        for _ in range(_QUESTIONS):
            asked = time.perf_counter_ns()
            comm.send(None, dest=rank, tag=_TAG)
            told = comm.recv(source=rank, tag=_TAG)
            answered = time.perf_counter_ns()
            error = (answered - asked) / 2
            if best is None or error < best.error:
                best = _Offset((asked + answered) // 2, told - (asked + answered) / 2, error)
        assert best is not None
        found.append(best)
    return found
