"""Random small schedules in the text form: lanes, streams with and without capacities, scratch memory, dependencies.

Each schedule is drawn in an order in which its instructions can run. A few necessary dependencies are left out, and
capacities of streams are random, so some of the schedules have races or deadlocks.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from unisono import certificate_checker

#: The collectives, repeated by how often they are drawn; `BLOCKS` are those whose buffers hold a block of each rank.
KINDS = (
    *["allreduce"] * 5,
    *["reduce"] * 4,
    *["broadcast"] * 3,
    *["reduce-scatter", "allgather", "alltoall"] * 2,
    *["message", "barrier", "scan", "gather", "scatter"],
)
BLOCKS = {"reduce-scatter", "allgather", "alltoall", "gather", "scatter"}


@dataclass
class Row:
    """An instruction on `length` elements; an operand is (buffer, first element) or ("s", stream)."""

    node: int
    lane: int
    length: int
    sources: list[tuple[str, int]]
    sinks: list[tuple[str, int]]
    after: list[int] = field(default_factory=list)
    #: The instructions known to precede this one in every execution, by lanes, streams and `after`.
    before: set[int] = field(default_factory=set)


@dataclass
class Stream:
    """A stream with the lanes that write and read it; `pushed` is the last instruction that pushed so far."""

    source: int
    sinks: list[int]
    writer: int
    readers: list[int]
    pushed: int | None = None


class Draft:
    """A schedule whose instructions are appended in an order in which they can run."""

    def __init__(self, r: random.Random) -> None:
        self.r = r
        kind = r.choice(KINDS)
        ranks = r.choice([2, 2, 2, 3] if kind in BLOCKS else [1, 2, 2, 2, 3, 3, 4])
        elements = r.choice([1, 1, 2]) if kind in BLOCKS else r.choice([1, 2, 2, 3])
        operator, dtype = r.choice([("sum", "f32"), ("sum", "i64"), ("ordered", "i64")])
        self.head = f"collective {kind} ranks={ranks} elements={elements} root={r.randrange(ranks)}"
        self.head += f" operator={operator} dtype={dtype}"
        self.collective = certificate_checker.Collective(self.head)
        self.nodes = ranks + (ranks < 2 or (ranks < 4 and r.random() < 0.2))
        self.lanes, self.careful = r.choice([1, 2, 2, 3]), r.choice([1, 1, 0.8])
        self.rows, self.streams = list[Row](), list[Stream]()
        self.scratch, self.free = [0] * self.nodes, [list[tuple[int, int]]() for _ in range(self.nodes)]
        goals = [(rank, *goal) for rank in range(ranks) for goal in self.collective.required(rank)]
        r.shuffle(goals)
        for rank, start, end, element, first, stop in goals:
            self._produce(rank, element, end - start, list(range(first, stop)), [("out", start)], None)

    def _produce(
        self, node: int, at: int, length: int, ranks: list[int], sinks: list[tuple[str, int]], lane: int | None
    ) -> None:
        """Emits instructions that write the combined inputs of `ranks`, from element `at` on, to sinks."""
        operands, kept = [], []
        for part in self._parts(ranks):
            operand = self._obtain(node, at, length, part)
            if operand[0] == "s":
                reader = self._reader(operand[1], node)
                if lane is not None and lane != reader:
                    place = self._scratch(node, length)
                    self._emit(node, reader, length, [operand], [place])
                    operand = place
                else:
                    lane = reader
            if operand[0] == "tmp":
                kept.append((operand[1], length))
            operands.append(operand)
        self._emit(node, self.r.randrange(self.lanes) if lane is None else lane, length, operands, sinks)
        self.free[node] += kept

    def _parts(self, ranks: list[int]) -> list[list[int]]:
        if len(ranks) == 1:
            return [ranks]
        if "ordered" not in self.head:
            self.r.shuffle(ranks)
        cut = self.r.randrange(1, len(ranks))
        return [ranks[:cut], ranks[cut:]]

    def _obtain(self, node: int, at: int, length: int, ranks: list[int]) -> tuple[str, int]:
        """Returns an operand of `node` that holds the combined inputs of `ranks`, and emits what makes it."""
        if ranks == [node] and self.r.random() < 0.95:
            return "in", at
        away = ranks[0] if len(ranks) == 1 or self.r.random() < 0.8 else self.r.randrange(self.nodes)
        if away == node or (len(ranks) > 1 and self.r.random() < 0.3):
            place = self._scratch(node, length)
            self._produce(node, at, length, [*ranks], [place], None)
            return place
        stream = self._stream(away, node)
        self._produce(away, at, length, [*ranks], [("s", stream)], self.streams[stream].writer)
        for other in self.streams[stream].sinks:
            if other != node:
                place = self._scratch(other, length)
                self._emit(other, self._reader(stream, other), length, [("s", stream)], [place])
                self.free[other].append((place[1], length))
        return "s", stream

    def _stream(self, source: int, sink: int) -> int:
        ready = [n for n, s in enumerate(self.streams) if s.pushed is not None]
        known = [n for n in ready if self.streams[n].source == source and sink in self.streams[n].sinks]
        if known and self.r.random() < 0.4:
            return self.r.choice(known)
        more = [n for n in range(self.nodes) if n not in (source, sink) and self.r.random() < 0.15]
        lanes = [self.r.randrange(self.lanes) for _ in range(len(more) + 2)]
        self.streams.append(Stream(source, sorted([sink, *more]), lanes[0], lanes[1:]))
        return len(self.streams) - 1

    def _reader(self, stream: int, node: int) -> int:
        return self.streams[stream].readers[self.streams[stream].sinks.index(node)]

    def _scratch(self, node: int, length: int) -> tuple[str, int]:
        fits = [n for n, (_, size) in enumerate(self.free[node]) if size >= length]
        if fits and self.r.random() < 0.6:
            return "tmp", self.free[node].pop(self.r.choice(fits))[0]
        self.scratch[node] += length
        return "tmp", self.scratch[node] - length

    def _emit(
        self, node: int, lane: int, length: int, sources: list[tuple[str, int]], sinks: list[tuple[str, int]]
    ) -> None:
        this, row = len(self.rows), Row(node, lane, length, sources, sinks)
        for j, old in enumerate(self.rows):
            if (old.node, old.lane) == (node, lane):
                row.before |= old.before | {j}
        for name, stream in sources:
            if name == "s" and (pusher := self.streams[stream].pushed) is not None:
                row.before |= self.rows[pusher].before | {pusher}
        for j in reversed(range(this)):
            old = self.rows[j]
            if old.node == node and old.lane != lane and meet(row, old):
                known = j in row.before and self.r.random() < 0.9
                if not known and self.r.random() < self.careful:
                    row.after.append(j)
                    row.before |= old.before | {j}
        for name, stream in sinks:
            if name == "s":
                self.streams[stream].pushed = this
        self.rows.append(row)

    def text(self) -> str:
        """Returns the text form of the schedule."""
        shown = sorted(range(len(self.rows)), key=lambda n: (self.rows[n].node, self.rows[n].lane, n))
        number = {old: new for new, old in enumerate(shown)}
        lines = ["unisono-schedule 1", self.head, "phases all"]
        if self.nodes > self.collective.ranks:
            lines.append(f"nodes {self.nodes}")
        for n, s in enumerate(self.streams):
            total = sum(row.length for row in self.rows if ("s", n) in row.sinks)
            room = f" capacity={self.r.randrange(1, total + 2)}" if self.r.random() < 0.25 else ""
            lines.append(f"stream s{n}: {s.source} -> {' '.join(map(str, s.sinks))}{room}")
        last = (-1, -1)
        for n in shown:
            row = self.rows[n]
            if row.node != last[0]:
                size = f" tmp={self.scratch[row.node]}" if self.scratch[row.node] else ""
                lines.append(f"node {row.node}:{size}")
            elif row.lane != last[1]:
                lines.append("  lane")
            last = row.node, row.lane
            operands = [[shown_operand(o, row.length) for o in side] for side in (row.sources, row.sinks)]
            memory = any(name != "s" for name, _ in row.sources + row.sinks)
            options = "" if memory else f" len={row.length}"
            if row.after:
                options += " after=" + ",".join(f"i{number[j]}" for j in sorted(row.after))
            lines.append(f"  i{number[n]}: {' + '.join(operands[0])} -> {', '.join(operands[1])}{options}")
        return "\n".join([*lines, ""])


def shown_operand(operand: tuple[str, int], length: int) -> str:
    """Returns the text of an operand."""
    name, at = operand
    return f"s{at}" if name == "s" else f"{name}[{at}..{at + length}]"


def meet(a: Row, b: Row) -> bool:
    """Returns whether two instructions access overlapping memory and at least one of them writes it."""

    def touches(x: list[tuple[str, int]], y: list[tuple[str, int]]) -> bool:
        return any(m == n != "s" and s < t + b.length and t < s + a.length for m, s in x for n, t in y)

    return touches(a.sinks, b.sinks) or touches(a.sinks, b.sources) or touches(a.sources, b.sinks)


def schedules(r: random.Random) -> Iterator[str]:
    """Yields random schedules of at most 40 instructions, endlessly."""
    while True:
        draft = Draft(r)
        if len(draft.rows) <= 40:
            yield draft.text()
