"""Under mpiexec: compares the messages of ranks with the schedules that `explain` prices. Rank 0 prints counts.

Fixed and random programs run with collectives, and then with messages between pairs alone; each of these four cases
prints a line.
Usage: sent.py TRACE FIRST LAST
"""

import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from mpi4py import MPI
from unisono.tasks import Program, View, all_, halo, neighborhood, one_to_one
from unisono.tasks._local_arrays import Command

from tests.mpi.random_tasks import RandomProgram

COMM = MPI.COMM_WORLD
BYTES = {"f64": 8, "f32": 4, "f16": 2}

#: The messages of one operation, by direction ("to", "from"): other rank and bytes, in the order in which they begin.
Ends = dict[str, list[tuple[int, int]]]
#: An operation: indices of the task, of the array, and of the group (-1 without one), and the executed schedule's name.
Key = tuple[int, int, int, str | None]


class Log:
    """Records the messages that each exchange begins, in place of a trace or with one."""

    def __init__(self, program: "Once") -> None:
        assert program._exchanges
        self._memory, self._trace = program._exchanges.memory, program._trace
        self._commands: list[tuple[Command, dict[str, Any]]] = []
        self._memory.begun()

    def begin(self, command: Command) -> dict[str, Any]:
        """Assigns the messages so far to the previous exchange, and begins to record the next."""
        self._take()
        event = self._trace.begin(command) if self._trace else {}
        own = {"event": event, "to": [], "from": []}
        self._commands.append((command, own))
        return own

    def end(self, own: dict[str, Any], command: Command, served: str, size: int, schedule: str | None) -> None:
        """Stores the name of the executed schedule."""
        own["name"] = schedule
        if self._trace:
            self._trace.end(own["event"], command, served, size, schedule)

    def now(self) -> int:
        return self._trace.now() if self._trace else 0

    def kernel(self, *given: Any) -> None:
        if self._trace:
            self._trace.kernel(*given)

    def done(self) -> dict[Key, Ends]:
        """Returns the messages of each operation."""
        self._take()
        done: dict[Key, Ends] = {}
        for command, own in self._commands:
            group = command[5] if command[0] == "collective" else -1
            ends = done.setdefault((command[2], command[4], group, own["name"]), {"to": [], "from": []})
            for end in ("to", "from"):
                ends[end] += own[end]
        return done

    def _take(self) -> None:
        for sent, rank, size in self._memory.begun():
            self._commands[-1][1]["to" if sent else "from"].append((rank, size))


class Once(Program):
    """A program whose tasks run only in `go`, all at once, as `explain` sees them."""

    def run(self) -> None:
        """Does nothing; `go` runs the program."""

    def go(self) -> dict[Key, Ends]:
        """Runs the program, and returns the messages of each operation of this rank."""
        log = Log(self)
        trace, self._trace = self._trace, log  # type: ignore[assignment]
        super().run()
        self._trace = trace
        return log.done()


def priced(schedule: dict[str, Any]) -> list[Ends]:
    """Returns the messages of each rank in a schedule, in the order of its lanes."""
    size, streams = BYTES[schedule["collective"]["dtype"]], schedule["streams"]
    ranks: list[Ends] = [{"to": [], "from": []} for _ in range(schedule["nodes"])]
    for program in schedule["programs"]:
        rank, received = program["node"], Counter[int]()
        for step in (step for lane in program["lanes"] for step in lane):
            for sink in step["sinks"]:
                if "stream" in sink:
                    (to,) = streams[sink["stream"]]["sinks"]
                    ranks[rank]["to"].append((to, step["length"] * size))
            for source in step["sources"]:
                if "stream" in source:
                    received[streams[source["stream"]]["source"]] += step["length"] * size
        ranks[rank]["from"] = list(received.items())
    return ranks


def compare(program: Once, rules: str) -> tuple[int, int]:
    """Compares a program's messages with `explain`; returns the numbers of operations by messages and of others."""
    everyone = COMM.gather(program.go())
    if everyone is None:
        return 0, 0
    explained = program.explain(COMM.size, rules, machine="archer")
    names = {
        (k, a): (program._discovery.task_name(k), program.arrays[a].name) for done in everyone for k, a, *_ in done
    }
    found = Counter((*names[k, a], name) for k, a, _, name in {key for done in everyone for key in done})
    expected: Counter[tuple[str, str, str | None]] = Counter()
    for row in explained.operations:
        expected[row["task"], row["buffer"], row["schedule"]] += row["count"]
        if row["algorithm"] == "nothing":
            assert row["bytes"] == 0, row
        else:
            assert (row["schedule"] is None) == (row["algorithm"] != "messages"), row
    assert found == expected, (found - expected, expected - found)

    schedules: dict[str | None, tuple[list[Ends], bool]] = {}
    for moved in program._discovered(COMM.size, rules).moved(program._reduced_by_messages()):
        if moved.schedule_name:
            schedule = moved.schedule()
            assert schedule.verify()
            schedules[moved.schedule_name] = priced(json.loads(schedule.to_json())), moved.element_bytes % 2 == 0
    for rank, done in enumerate(everyone):
        for (*_, name), ends in done.items():
            if name is None:
                # A plan or the library runs this operation on other communicators, without recorded messages.
                assert ends == {"to": [], "from": []}
                continue
            ranks, whole = schedules[name]
            for end in ("to", "from"):
                if whole:
                    assert ends[end] == ranks[rank][end], (name, rank, end)
                    continue
                assert [k for k, _ in ends[end]] == [k for k, _ in ranks[rank][end]]
                for (_, sent), (_, cost) in zip(ends[end], ranks[rank][end], strict=True):
                    # Odd numbers of bytes are priced as pairs of bytes, in each cell of the exchange.
                    assert 0 <= cost - sent <= 8, (name, rank, end)
    by_messages = sum(count for (*_, name), count in found.items() if name)
    return by_messages, found.total() - by_messages


def nothing(*_: View) -> None:
    """A kernel without work."""


def reduced(dtype: str, ops: tuple[str, ...], mapper: Any, wide: int, trace: str | None = None) -> Once:
    """Returns a program of sums onto parts of an array, which some or all ranks read."""
    program = Once(trace=trace)
    source, sums = program.zeros(24, name="source"), program.zeros(24, dtype=dtype, name="sums")
    for op in ops:
        low = 12 * (op != ops[0])
        program.task(nothing, range=12, reduces=[sums[mapper]], op=op, offset=low, name=f"add {op}")
    for reads in (one_to_one, neighborhood(2), all_):
        program.task(nothing, range=wide, reads=[sums[reads]], updates=[source[one_to_one]], name=f"use {wide}")
    return program


def moved(trace: str | None = None) -> Once:
    """Returns a program of halos in one and two dimensions, whose last task reads all data on one rank."""
    program = Once(trace=trace)
    grid, other = program.zeros((9, 7), name="grid"), program.zeros((9, 7), name="other")
    octets = program.zeros(31, dtype=np.uint8, name="octets")
    for _ in range(3):
        program.task(
            nothing, range=(9, 7), reads=[grid[halo(1, 2)]], writes=[other[one_to_one]], split="2d", name="step"
        )
        program.task(nothing, range=(9, 7), reads=[other[halo(1, 1)]], writes=[grid[one_to_one]], name="back")
        program.task(nothing, range=31, updates=[octets[one_to_one]], name="fill")
        program.task(nothing, range=31, reads=[octets[neighborhood(3)]], updates=[octets[one_to_one]], name="near")
    program.task(nothing, range=1, reads=[grid[all_], octets[all_]], name="end")
    return program


def fixed() -> Iterator[Once]:
    """Yields programs of sums that are the same in every run."""
    for mapper in (all_, neighborhood(1), one_to_one):
        for wide in (24, 1):
            yield reduced("i8", ("sum",), mapper, wide)
            yield reduced("c16", ("sum",), mapper, wide)
            yield reduced("i4", ("sum", "max"), mapper, wide)


def traced(program: Once, trace: str) -> None:
    """Checks that the trace names the schedules that `explain` lists."""
    program.write_trace()
    if COMM.rank == 0:
        events = json.loads(Path(trace).read_text())["traceEvents"]
        named = {event["args"]["schedule"] for event in events if "schedule" in event.get("args", {})}
        rows = program.explain(COMM.size, program._rules, machine="archer").operations
        assert named == {row["schedule"] for row in rows} - {None}
        assert named


def compared(programs: Iterable[Once]) -> None:
    """Compares all programs, and prints the sums of both numbers."""
    total = Counter[str]()
    for program in programs:
        by_messages, others = compare(program, program._rules)
        total.update({"messages": by_messages, "others": others})
    if COMM.rank == 0:
        sys.stdout.write(f"{total['messages']} {total['others']}\n")


def random(first: int, last: int) -> Iterator[Once]:
    """Yields random programs."""
    for number in range(first, last):
        made = RandomProgram(number, make=Once).program
        assert isinstance(made, Once)
        yield made


def main(trace: str, first: str, last: str) -> None:
    """Compares fixed and random programs, with collectives and with messages alone."""
    for switch in "01":
        with patch.dict(os.environ, {"UNISONO_POINT_TO_POINT": switch}):
            large = moved(trace)
            compared([*fixed(), large])
            traced(large, trace)
            compared(random(int(first), int(last)))


main(*sys.argv[1:])
