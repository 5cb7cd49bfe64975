"""The actions of ranks as trace events for Perfetto: kernels, exchanges, and arrows from pushes to their awaits.

Every rank records by its own clock. Rank 0 asks each other rank for its time, when the recording begins and when the
file is written, several times; the quickest answer gives the offset between the clocks, to half of the time that it
took, and between the two offsets time is taken to run evenly. The file says how exact that is.
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

#: The file that programs record to which name none.
SWITCH = "UNISONO_TRACE"
#: Questions to each rank for its time.
_QUESTIONS = 32
_TAG = 2
#: Tracks of a rank: kernels, and from this one on exchanges, on as many as overlap.
_KERNELS, _EXCHANGES = 1, 2
_files: dict[str, "_File"] = {}

Event = dict[str, Any]


class Together(Protocol):
    """The ranks, as `Transport` has them."""

    mpi: Any
    comm: Any
    rank: int
    ranks: int
    #: The function that is called when the ranks have agreed on the end.
    at_end: list[Callable[[], None]]


@dataclass
class _Offset:
    """How far another clock is ahead of the first rank's, at a time of the latter."""

    at: int
    ahead: float
    error: float


@dataclass
class _File:
    path: str
    transport: Together | None
    events: list[Event] = field(default_factory=list)
    #: Messages so far, by the rank at the other end.
    sent: Counter[int] = field(default_factory=Counter)
    received: Counter[int] = field(default_factory=Counter)
    first: list[_Offset] = field(default_factory=list)

    def write(self) -> None:
        """All ranks together; rank 0 has the file then."""
        transport = self.transport
        if transport is None:
            write(self.path, trace_text([self.events], [], []))
            return
        last = _offsets(transport)
        everyone = transport.comm.gather(self.events)
        if transport.rank == 0:
            write(self.path, trace_text(everyone, self.first, last))


class Recorder:
    """Records for one program."""

    def __init__(
        self, path: str, transport: Together | None, task: Callable[[int], str], arrays: Sequence[Any]
    ) -> None:
        """All ranks together. ``task`` names the tasks, and arrays have names."""
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
        """Writes what was recorded so far; all ranks together."""
        self._file.write()

    def now(self) -> int:
        """The rank's own clock."""
        return time.perf_counter_ns()

    def kernel(self, start: int, number: int, low: Sequence[int], high: Sequence[int]) -> None:
        """A kernel ended."""
        self._add("kernel", self._task(number), start, {"min": list(low), "max": list(high)})

    def begin(self, command: tuple[Any, ...]) -> Event:
        """An exchange begins; messages between two ranks are numbered in the order of their beginnings."""
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
        """It is over; ``size`` in bytes, of a collective those that all ranks receive."""
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
    path: str | os.PathLike[str] | None, transport: Together | None, task: Callable[[int], str], arrays: Sequence[Any]
) -> Recorder | None:
    """For a program that names a file, or where the environment does."""
    path = os.fspath(path) if path is not None else os.environ.get(SWITCH, "")
    return Recorder(path, transport, task, arrays) if path else None


def _check(path: str, transport: Together | None) -> None:
    """All ranks fail where the first cannot write."""
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
    """All ranks' events as a file of trace events in JSON, one a line; times in microseconds of rank 0's clock."""
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
            # The first track that is free.
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
    """``0-3, 5``."""
    found: list[list[int]] = []
    for rank in ranks:
        if found and found[-1][1] == rank - 1:
            found[-1][1] = rank
        else:
            found.append([rank, rank])
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in found)


def _clock(first: _Offset, last: _Offset) -> Callable[[int], float]:
    """From a rank's time to rank 0's."""
    span = last.at - first.at
    drift = (last.ahead - first.ahead) / span if span > 0 else 0.0
    return lambda at: at - first.ahead - drift * (at - first.ahead - first.at)


def _offsets(transport: Together) -> list[_Offset]:
    """Each rank's clock beside rank 0's; rank 0 knows them then. All ranks together."""
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
