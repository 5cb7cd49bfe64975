"""Runs among ranks: schedules at a machine's prices, and GOAL programs of other tools."""

import json
import os
from collections.abc import Sequence, Sized
from pathlib import Path
from typing import Any, SupportsIndex

from unisono import _core
from unisono._core import EndpointSimulation, InputError, Machine, NetworkSimulation, Schedule
from unisono._files import check_regular, check_writable, file_name, title, write
from unisono._inputs import checked_seed, finite, items, named, whole
from unisono._machines import with_shape
from unisono._messages import shown
from unisono._simulation import TimedRun, checked_pes, listed_pes, metadata, sample

#: Ranks of a trace where nobody says which.
SAMPLED = 256
#: The most ranks of a collective.
_MOST_RANKS = 2**22

#: ``("uniform", most)``, ``("normal", mean, deviation)`` or ``("exponential", mean)``, nanoseconds.
Noise = tuple[str, float] | tuple[str, float, float]


class EndpointRun(TimedRun):
    """One run among ranks that reach each other by messages."""

    _result: EndpointSimulation | NetworkSimulation

    def __init__(
        self, title: str, simulation: EndpointSimulation | NetworkSimulation, run: Any, traced: list[int]
    ) -> None:
        self._title = title
        self._result = simulation
        self._again = run
        self._traced_ranks = traced

    @property
    def hops(self) -> int:
        """Messages: each is one hop here."""
        return self._result.sends

    @property
    def messages(self) -> int:
        """Messages that were sent."""
        return self._result.sends

    @property
    def stalls(self) -> int:
        """Messages that nobody received."""
        return self._result.left_over

    @property
    def result_correct(self) -> bool:
        """True: only proved schedules run, and here no data moves that could show more."""
        return True

    @property
    def mismatch(self) -> str | None:
        """None: see :attr:`result_correct`."""
        return None

    def trace(self, path: str | os.PathLike[str], pes: Sequence[int] | None = None) -> None:
        """Writes the run as trace events for Perfetto or ``chrome://tracing``.

        There is a track for each rank, and an arrow for each message. ``pes`` chooses other ranks than the run was
        asked to record, which repeats the run; without any, an even sample of at most 256 is taken.

        Raises:
            InputError: a rank does not exist, they are too many, or the path cannot be a file.
            OSError: it cannot be written; no half-written file is left.

        """
        check_writable(path)
        self._record(pes)
        write(path, _trace_text(self._title, self))

    def timeline(self, path: str | os.PathLike[str]) -> None:
        """Draws the run as PNG or SVG, by the ending of the path: a row a rank, a bar for what holds its CPU.

        Raises:
            InputError: there are more ranks than a picture has room for, or the path has another ending.
            OSError: it cannot be written.

        """
        from unisono import timeline

        kind = Path(file_name(path)).suffix.removeprefix(".").lower()
        if kind not in ("png", "svg"):
            raise InputError(f"'{title(path)}' ends in neither .png nor .svg, and a timeline is one of these")
        check_writable(path)
        ranks = len(self.finish_ns)
        if ranks > timeline.MOST_RANKS:
            raise InputError(
                f"a timeline of {ranks} ranks was asked for, and a picture has room for {timeline.MOST_RANKS}: "
                "write a trace instead, which Perfetto opens"
            )
        self._record(range(ranks))
        write(path, timeline.draw(*self.operations(), list(self.finish_ns), self._title, kind))

    def operations(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """What held the CPUs of the recorded ranks, and the messages between them, in nanoseconds.

        An operation has ``rank``, ``kind`` (send, receive, calc, reduce), ``bytes``, ``start_ns`` and ``end_ns``; a
        message ``source``, ``target``, ``bytes``, ``issued_ns`` and ``sent_ns`` (when its issue began and ended),
        and ``arrived_ns``.
        """
        per_ns = self._result.ticks_per_ns
        operations = []
        leaving: dict[tuple[int, int, int], list[tuple[float, float]]] = {}
        messages = []
        for event in self._result.trace_events:
            kind = {"recv": "receive"}.get(event["kind"], event["kind"])
            start, end = event["start"] / per_ns, event["end"] / per_ns
            operations.append(
                {"rank": event["rank"], "kind": kind, "bytes": event["bytes"], "start_ns": start, "end_ns": end}
            )
            if kind == "send":
                leaving.setdefault((event["rank"], event["peer"], event["bytes"]), []).append((start, end))
        # Of one pair and one length messages arrive in the order in which they left.
        arrived: dict[tuple[int, int, int], int] = {}
        for event in self._result.trace_events:
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

    def _record(self, ranks: Sequence[int] | None) -> None:
        count = len(self.finish_ns)
        chosen = list(ranks) if ranks is not None else self._traced_ranks or sample(count, SAMPLED)
        if chosen != self._traced_ranks:
            self._result = self._again(checked_pes(chosen, count))
            self._traced_ranks = chosen

    def __repr__(self) -> str:
        return f"<unisono.EndpointRun {self.seconds * 1e6:.3f} us>"


def simulate_ranks(
    schedule: Schedule,
    model: str | None,
    late: Sequence[float] | None,
    noise: Noise | None,
    seed: SupportsIndex,
    traced: list[int],
) -> EndpointRun:
    """Runs a schedule among the ranks of its machine; see :func:`unisono.simulate`."""
    checked = checked_seed(seed)
    starts = as_starts(late)

    def run(ranks: list[int]) -> EndpointSimulation:
        return _core.simulate_endpoint(schedule, model, starts, as_noise(noise), checked, ranks)

    title = (
        f"{schedule.collective} of {schedule.elements} {schedule.dtype} on {schedule.ranks} ranks: {schedule.origin}"
    )
    return EndpointRun(title, run(traced), run, traced)


def simulate_goal(
    path: str | os.PathLike[str],
    *,
    machine: Machine | str | os.PathLike[str] | None = None,
    L: int | None = None,  # noqa: N803 - the field's own names
    o: int | None = None,
    g: int | None = None,
    G: int | None = None,  # noqa: N803
    O: int | None = None,  # noqa: E741, N803
    S: int | None = None,  # noqa: N803
    zero_byte: str = "wrapped",
    late: Sequence[float] | None = None,
    noise: Noise | None = None,
    seed: SupportsIndex = 0,
    trace_ranks: Sequence[int] | None = None,
) -> EndpointRun:
    """Runs the program of a GOAL file under LogGOPS, or on ``machine``, a network, packet by packet.

    On a network rank k is on accelerator k, and calcs are nanoseconds; it takes no parameters of LogGOPS. Of
    those, ``L``, ``o``, ``g``, ``G`` and ``O`` are whole nanoseconds, ``S`` bytes; what is left out is LogGOPSim's
    default.
    ``zero_byte`` says what a message without bytes costs: ``wrapped`` as in LogGOPSim, where the bytes after its first
    are 2^64 - 1, or ``sane``, as much as one byte.

    Raises:
        InputError: the file is not there or is no GOAL, with the line; a parameter that is negative or too large.
        SimulationError: the program cannot finish; ``.stuck`` lists tasks that are never done.

    """
    given = []
    for name, value in (("L", L), ("o", o), ("g", g), ("G", G), ("O", O), ("S", S)):
        if value is not None and not 0 <= whole(name, value) < 2**63:
            raise InputError(f"{name} is {value}; accepted are whole numbers from 0 to 2^63 - 1")
        given.append(value)
    if machine is not None:
        # Imported here, for that module is built on this one.
        from unisono._network import simulate_goal_on_network

        if zero_byte != "wrapped" or any(value is not None for value in given):
            raise InputError("a machine has its own prices; L, o, g, G, O, S and zero_byte are for a run without one")
        return simulate_goal_on_network(path, with_shape(machine, None), late, noise, seed, trace_ranks)
    if zero_byte not in ("wrapped", "sane"):
        raise InputError(f"zero_byte is {shown(zero_byte)}; accepted are wrapped and sane")
    checked = checked_seed(seed)
    starts = as_starts(late)
    check_regular(path)

    def run(ranks: list[int]) -> EndpointSimulation:
        return _core.simulate_goal(
            file_name(path), tuple(given), zero_byte == "sane", starts, as_noise(noise), checked, ranks
        )

    traced = [] if trace_ranks is None else listed_pes(trace_ranks)
    return EndpointRun(Path(title(path)).name, run(traced), run, traced)


def as_starts(late: Sequence[float] | None) -> list[float] | None:
    """When ranks begin, as the extension module takes it.

    Raises:
        InputError: it is not a list of at most 2^22 times.

    """
    if late is None:
        return None
    message = f"late is {shown(late)}, and must be a list of nanoseconds, one of each rank"
    if isinstance(late, Sized) and len(late) > _MOST_RANKS:
        raise InputError(message)
    return [finite("the time when a rank begins", time) for time in items(late, message)]


def as_noise(noise: Noise | None) -> tuple[str, float, float] | None:
    """Noise as the extension module takes it.

    Raises:
        InputError: a parameter is missing, or is not a number.

    """
    if noise is None:
        return None
    message = f"noise is {shown(noise)}; accepted is a name and its numbers, as in ('normal', 100, 20)"
    kind, *numbers = items(noise, message) or [None]
    if not isinstance(kind, str) or len(numbers) not in (1, 2):
        raise InputError(message)
    first, *second = (finite("a parameter of the noise", value) for value in numbers)
    if kind == "normal" and not second:
        raise InputError("normal noise has a mean and a deviation, as in ('normal', 100, 20)")
    return named("the kind of noise", kind), first, second[0] if second else 0.0


def _trace_text(title: str, run: EndpointRun) -> str:
    """The recorded operations as trace events; a microsecond of the file is a microsecond."""
    operations, messages = run.operations()
    events: list[dict[str, Any]] = [metadata("process_name", 0, {"name": title})]
    for rank in sorted({operation["rank"] for operation in operations}):
        events.append(metadata("thread_name", rank + 1, {"name": f"rank {rank}"}))
        events.append(metadata("thread_sort_index", rank + 1, {"sort_index": rank + 1}))
    for operation in operations:
        events.append(
            {
                "name": operation["kind"],
                "cat": operation["kind"],
                "ph": "X",
                "pid": 1,
                "tid": operation["rank"] + 1,
                "ts": operation["start_ns"] / 1e3,
                # What costs less than nothing, as messages without bytes may in LogGOPSim's arithmetic, has no length.
                "dur": max(0.0, operation["end_ns"] - operation["start_ns"]) / 1e3,
                "args": {"bytes": operation["bytes"], "rank": operation["rank"]},
            }
        )
    for at, message in enumerate(messages):
        # A flow arrow from the issue of a message to its arrival.
        common = {"name": "message", "cat": "message", "id": at, "pid": 1}
        events.append({**common, "ph": "s", "tid": message["source"] + 1, "ts": message["issued_ns"] / 1e3})
        events.append({**common, "ph": "f", "bp": "e", "tid": message["target"] + 1, "ts": message["arrived_ns"] / 1e3})
    about = {"seconds": run.seconds, "events": run.events}
    lines = ",\n".join(json.dumps(event, ensure_ascii=False) for event in events)
    head = f'{{"displayTimeUnit":"ns","otherData":{json.dumps(about, ensure_ascii=False)},"traceEvents":[\n'
    return f"{head}{lines}\n]}}\n"
