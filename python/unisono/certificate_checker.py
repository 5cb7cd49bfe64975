"""Checks the certificate of a schedule's proof, independently of the program that wrote it.

``python certificate_checker.py FILE.sched CERTIFICATE`` runs with any Python >= 3.11 and its standard library alone.
Its exit code is 0 if the certificate is accepted, 1 if it is refused, and 2 if a file is unreadable or not a schedule.
It assumes nothing about the certificate: it follows the order, derives each fact and computes all contents exactly.
``docs/certificates.md`` states every rule. The sections ``machine`` and ``placement`` of a file are not certified.
"""

import hashlib
import re
import stat
import sys
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MOST, MOST_RANKS, MOST_PHASES, MOST_OPERANDS = 2**32 - 1, 2**22, 2**16, 2**16 - 1
INPUT, OUTPUT, _, STREAM = range(4)
WRONG = -1  # The expression of an element that combines one rank twice, or different elements of the inputs.
MOVING_ONE, MOVING_ALL = {"broadcast", "message", "scatter"}, {"allgather", "alltoall", "gather"}
REDUCING, ROOTED = {"allreduce", "reduce", "reduce-scatter", "scan"}, MOVING_ONE | {"gather", "reduce"}
ALIKE = {"allgather", "allreduce", "broadcast"}  # All ranks end with one result.
_N = r"(\d{1,10})"
_OPERATOR, _DTYPE = "operator=(sum|prod|min|max|and|or|xor|ordered)", "dtype=(f32|f64|f16|bf16|i16|i32|i64)"
_COLLECTIVE = re.compile(rf"collective (\S+) ranks={_N} elements={_N} root={_N} {_OPERATOR} {_DTYPE}", re.A)
_STREAM = re.compile(rf"stream s{_N}: {_N} ->((?: \d{{1,10}})*)(?: capacity={_N})?", re.A)
_NODE = re.compile(rf"node {_N}:(?: tmp={_N})?", re.A)
_AFTER = r"(?: after=((?:i\d{1,10},)*i\d{1,10}))?"
_INSTRUCTION = re.compile(rf"i{_N}(?: p{_N})?: ([^>]+) -> ([^=]+?)(?: len={_N})?{_AFTER}", re.A)
_SLICE = re.compile(rf"(in|out|tmp)\[{_N}\.\.{_N}\]", re.A)
_STEP = re.compile(r"(\d{1,10})(?:-(\d{1,10}))?((?:<=?\d{1,10}(?:@\d{1,10})?)*)", re.A)
_FACT = re.compile(r"<(=?)(\d+)(?:@(\d+))?", re.A)
#: An operand: (buffer, start, end) or (STREAM, stream, first element).
Operand = tuple[int, int, int]
#: Ranks of an expression: first, last + 1, bits of all ranks (None without gaps), whether they ascend left to right.
Ranks = tuple[int, int, int | None, bool]
#: Contents as segments (start, end, expression, shift): place p holds the expression over input element p + shift.
Segments = list[tuple[int, int, Any, int]]
#: The result of an accepting check: instructions, facts, expressions, and the claimed properties of the bits.
Verdict = tuple[int, int, int, list[str]]


class Refused(Exception):  # noqa: N818
    """The certificate does not prove that the schedule is correct."""


class WrongInput(Refused):
    """A file cannot be read, or is not a schedule."""


def require(holds: bool, message: str) -> None:
    """Raises WrongInput unless a condition on the text of the schedule holds."""
    if not holds:
        raise WrongInput(message)


def number(text: str | None, most: int = MOST) -> int:
    """Returns the value of up to ten digits, or 0 without digits."""
    require((value := int(text or 0)) <= most, f"found {value} where a number from 0 to {most} is expected")
    return value


class Collective:
    """A collective on given ranks: the sizes of its buffers, and the required contents of each output."""

    def __init__(self, text: str) -> None:
        found = _COLLECTIVE.fullmatch(text)
        kind, ranks, elements, root, operator, dtype = found.groups() if found else ("",) * 6
        self.kind, self.ranks, source = kind, number(ranks, MOST_RANKS), number(root)
        integer = dtype in ("i16", "i32", "i64")
        lacks = (operator in ("and", "or", "xor") and not integer) or (operator == "ordered" and dtype != "i64")
        known = kind in MOVING_ONE | MOVING_ALL | {"barrier"} or (kind in REDUCING and not lacks)
        require(known and source < self.ranks, f"'{text[:80]}' is no collective of ranks with that root and datatype")
        self.elements = 1 if kind == "barrier" else number(elements)
        self.whole = self.elements * (self.ranks if kind in MOVING_ALL | {"scatter", "reduce-scatter"} else 1)
        require(self.whole <= MOST, f"a buffer has {self.whole} elements, more than {MOST}")
        self.root = source if kind in ROOTED else 0
        # A message comes from the last rank, or from the first if the root is the last.
        self.sender = self.root if kind != "message" else 0 if source + 1 == self.ranks else self.ranks - 1
        self.any_order = operator != "ordered" or kind == "barrier"
        # The minimum of +0 and -0 depends on the order of the operands, so swapping them can change bits.
        self.swaps = operator != "ordered" and (integer or operator not in ("min", "max"))

    def sizes(self, node: int) -> tuple[int, int]:
        """Returns the elements of a node's input and output; switches have none, a broadcast's root has no output."""
        given = self.whole if self.kind in ("scatter", "reduce-scatter", "alltoall") else self.elements
        made = self.whole if self.kind in MOVING_ALL else self.elements
        gives = self.kind not in MOVING_ONE or node == self.sender
        at_root = self.kind in ("gather", "message", "reduce")
        makes = node == self.root if at_root else self.kind != "broadcast" or node != self.root
        return (given * gives, made * makes) if node < self.ranks else (0, 0)

    def required(self, rank: int) -> Iterator[tuple[int, int, int, int, int]]:
        """Yields (start, end, input element, first rank, last rank + 1): a span must hold these ranks reduced."""
        n, length = self.elements, self.sizes(rank)[1]
        element = rank * n if self.kind in ("alltoall", "reduce-scatter", "scatter") else 0
        if length and self.kind in MOVING_ALL:
            yield from ((peer * n, peer * n + n, element, peer, peer + 1) for peer in range(self.ranks))
        elif length and self.kind in MOVING_ONE:
            yield 0, length, element, self.sender, self.sender + 1
        elif length:
            yield 0, length, element, 0, rank + 1 if self.kind == "scan" else self.ranks


class Schedule:
    """The text form of a schedule; text that is not well-formed is refused."""

    def __init__(self, text: str) -> None:
        #: Lane, length, sources, sinks and dependencies of each instruction.
        self.rows: list[tuple[int, int, tuple[Operand, ...], tuple[Operand, ...], tuple[int, ...]]] = []
        #: Node and first instruction of each lane, and the number of lanes of each node.
        self.lanes, self.lane_count = list[tuple[int, int]](), defaultdict[int, int](int)
        #: Source, sinks and capacity of each stream. Of each node and stream: the lane, the elements, the last use.
        self.streams: list[tuple[int, tuple[int, ...], int | None]] = []
        self._ends: dict[int, dict[int, tuple[int, int, int]]] = {}
        self._operands, self._known_phases, self._stated = dict[str, Operand](), set[str](), set[str]()
        self._phases, self._node, self._in_lane, self._sizes, lines = 0, -1, False, (0, 0, 0), self._lines(text)
        require(not re.search(r"(?!\r\n)[\0-\x08\x0b-\x1f\x7f-\x9f]", text), "the text has a control character")
        try:
            require(next(lines, "") == "unisono-schedule 1", "the file does not begin with 'unisono-schedule 1'")
            self.collective = Collective(next(lines, ""))
            self.nodes = self.collective.ranks
            for code in lines:
                self._line(code)
        except Refused as refused:
            raise type(refused)(f"line {self._at}: {refused}") from None
        passed = {(stream, node): count for node, used in self._ends.items() for stream, (_, count, _) in used.items()}
        for stream, (source, sinks, _) in enumerate(self.streams):
            pushed = passed.get((stream, source), 0)
            if any(passed.pop((stream, node), 0) != pushed for node in (source, *sinks)) or pushed > MOST:
                raise Refused(f"a node does not pass the {pushed} elements of s{stream}, or there are more than {MOST}")
        if passed:
            raise Refused("a node pops a stream that does not lead to it")

    def _lines(self, text: str) -> Iterator[str]:
        for self._at, line in enumerate(text.split("\n"), 1):
            head, _, operands = line.partition(": ")
            name, mark, phase = head.partition(" p")
            left, _, right = operands.partition(" -> ")
            # Most lines have the printed form, with a phase and operands that earlier lines have too.
            printed = name == f"  i{len(self.rows)}" and phase in self._known_phases and (phase or not mark)
            if printed and self._instruction(left, right):
                continue
            if line.startswith(("machine", "placement")):
                return
            code = line.partition(";")[0] if ";" in line else line
            require(code.isascii() or code.startswith(("origin ", "phases ")), "no instruction has such characters")
            if code := " ".join(code.split()):
                yield code

    def _line(self, code: str) -> None:
        require((what := code.partition(" ")[0]) not in self._stated, f"a second '{what}'")
        self._stated |= {what} & {"nodes", "origin", "phases"}
        if found := _INSTRUCTION.fullmatch(code):
            name, phase, *operands = found.groups()
            if int(name) != len(self.rows) or number(phase) >= self._phases or self._node < 0 or int(name) == MOST:
                raise WrongInput(f"i{name} is not i{len(self.rows)}, comes before any node, or is of an unknown phase")
            for word in (*operands[0].split(" + "), *operands[1].split(", ")):
                if word not in self._operands:
                    span = _SLICE.fullmatch(word)
                    if not span or int(span[2]) >= int(span[3]):
                        raise WrongInput(f"'{word[:40]}' is no span in[..], out[..] or tmp[..] and no declared stream")
                    self._operands[word] = ("in", "out", "tmp").index(span[1]), int(span[2]), int(span[3])
            self._known_phases.add(phase or "")
            self._instruction(*operands)
        elif found := _STREAM.fullmatch(code):
            stream, source, sinks = len(self.streams), number(found[2]), tuple(map(int, found[3].split()))
            named = max(source, *sinks, 0) < self.nodes and len({source, *sinks}) == len(sinks) + 1
            require(named and int(found[1]) == stream, f"s{found[1]} is not s{stream} between known nodes")
            self._operands[f"s{stream}"] = STREAM, stream, stream + 1
            self.streams.append((source, sinks, number(found[4]) if found[4] else None))
        elif found := _NODE.fullmatch(code):
            last, self._node = self._node, number(found[1], self.nodes - 1)
            require(last < self._node, f"node {self._node} comes after node {last}")
            self._ends[self._node] = {}
            self._in_lane, self._sizes = False, (*self.collective.sizes(self._node), number(found[2]))
        elif code == "lane" and self._node >= 0:
            self._in_lane = False
        elif found := re.fullmatch(rf"nodes {_N}", code, re.A):
            self.nodes = number(found[1], MOST_RANKS)
            require(self.nodes >= self.collective.ranks, f"{self.nodes} nodes are fewer than the ranks")
        elif code.startswith("phases "):
            self._phases = len(code.split()) - 1
            require(self._phases <= MOST_PHASES and not set(code) & set(":,="), "too many phases, or ':,=' in a name")
        else:
            require(code == "origin" or code.startswith("origin "), f"'{code[:40]}' cannot be read here")

    def _instruction(self, left: str, right: str, said: str | None = None, after: str | None = None) -> bool:
        """Adds an instruction and returns True, unless an operand is unknown."""
        this, lane, length = len(self.rows), len(self.lanes) - 1, number(said) if said else 0
        known = self._operands
        try:
            sources, sinks = [known[word] for word in left.split(" + ")], [known[word] for word in right.split(", ")]
        except KeyError:
            return False
        if not self._in_lane:
            self._in_lane, lane, self._used = True, lane + 1, self._ends[self._node]
            self.lanes.append((self._node, this))
            self.lane_count[self._node] += 1
        for buffer, start, end in sources + sinks:
            if buffer != STREAM:
                if (length != end - start and (said or length)) or end > self._sizes[buffer]:
                    raise Refused(f"i{this} has operands of unlike lengths, or outside of a buffer of {self._sizes}")
                length = end - start
        if length == 0 or len(sources) > MOST_OPERANDS or len(sinks) > MOST_OPERANDS:
            raise WrongInput(f"i{this} has no length, or more than {MOST_OPERANDS} operands")
        for n, (buffer, start, end) in enumerate(sinks):
            # An element may be read and written at one place, but not at two places of one buffer.
            if buffer != STREAM:
                met = [a for b, a, z in sources if b == buffer and a != start and a < end and start < z]
                met += [a for b, a, z in sinks[:n] if b == buffer and a < end and start < z] if n else ()
                if met or buffer == INPUT:
                    raise Refused(f"i{this} writes to in, to one place twice, or where it reads other elements")
        for operands in (sources, sinks):
            for n, (buffer, stream, _) in enumerate(operands):
                if buffer == STREAM:
                    # One lane of a node uses a stream, once in an instruction and in the order of the lane.
                    user, at, last = self._used.get(stream) or (lane, 0, -1)
                    if user != lane or last == this or (operands is sinks) != (self.streams[stream][0] == self._node):
                        raise Refused(f"i{this} uses s{stream} twice, at the wrong end, or in a second lane")
                    self._used[stream] = lane, at + length, this
                    operands[n] = STREAM, stream, at
        earlier = tuple([number(e[1:]) for e in after.split(",")]) if after else ()
        self.rows.append((lane, length, tuple(sources), tuple(sinks), earlier))
        return True


class Expressions:
    """Distinct expressions over ranks: a rank, or a row that combines two expressions."""

    def __init__(self, collective: Collective) -> None:
        self._ranks, self._swaps, self._twice = collective.ranks, collective.swaps, collective.kind == "barrier"
        self.rows: dict[tuple[int, int], int] = {}
        self._held: list[Ranks] = []

    def held(self, value: int) -> Ranks:
        """Returns the ranks of an expression."""
        return (value, value + 1, None, True) if value < self._ranks else self._held[value - self._ranks]

    def combine(self, a: int, b: int) -> int:
        """Returns the expression that combines two, or WRONG if a rank is in both."""
        key = (b, a) if self._swaps and a > b else (a, b)
        if key not in self.rows:
            self.rows[key] = self._new(*key)
        return self.rows[key]

    def _new(self, left: int, right: int) -> int:
        if left == WRONG or right == WRONG:
            return WRONG
        a, b, both = self.held(left), self.held(right), None
        low, high = a[0] if a[0] < b[0] else b[0], a[1] if a[1] > b[1] else b[1]
        if a[2] is not None or b[2] is not None or (a[1] != b[0] and b[1] != a[0]):
            x = (a[2] or (1 << a[1] - a[0]) - 1) << a[0] - low
            y = (b[2] or (1 << b[1] - b[0]) - 1) << b[0] - low
            if x & y and not self._twice:
                return WRONG
            both = None if (x | y).bit_count() == high - low else x | y
        self._held.append((low, high, both, a[3] and b[3] and a[1] <= b[0]))
        return self._ranks + len(self._held) - 1

    def combined(self, left: Segments, right: Segments) -> Segments:
        """Combines two operands place by place."""
        if len(left) == 1 and len(right) == 1:
            (_, end, x, shift), (_, _, y, other) = left[0], right[0]
            return [(0, end, self.combine(x, y) if shift == other else WRONG, shift)]
        parts, n, m, place = Segments(), 0, 0, 0
        while n < len(left) and m < len(right):
            (_, a, x, shift), (_, b, y, other) = left[n], right[m]
            end = min(a, b)
            join(parts, place, end, self.combine(x, y) if shift == other else WRONG, shift)
            place, n, m = end, n + (a == end), m + (b == end)
        return parts


def join(parts: Segments, start: int, end: int, value: Any, shift: int) -> None:
    """Appends a segment, merged with the last one if both hold the same."""
    if parts and parts[-1][1] == start and parts[-1][2] == value and parts[-1][3] == shift:
        start = parts.pop()[0]
    parts.append((start, end, value, shift))


def read(segments: Segments, start: int, end: int, reader: str | int, gap: Any = None) -> Segments:
    """Returns the contents of a span, with places counted from its start; gaps hold ``gap`` or are refused."""
    at = bisect_left(segments, (start + 1,)) - 1
    if at >= 0 and segments[at][1] >= end:
        return [(0, end - start, segments[at][2], segments[at][3] + start)]
    parts, at, place = Segments(), at + (at < 0 or segments[at][1] <= start), start
    while place < end:
        if at < len(segments) and segments[at][0] <= place:
            _, stop, value, shift = segments[at]
            at += 1
        elif gap is None:
            raise Refused(f"{'i' * isinstance(reader, int)}{reader} reads element {place}, which nothing has written")
        else:
            stop, value, shift = segments[at][0] if at < len(segments) else end, gap, 0
        join(parts, place - start, min(stop, end) - start, value, shift + start)
        place = stop
    return parts


def write(segments: Segments, start: int, end: int, parts: Segments) -> None:
    """Replaces the contents of a span by those of ``parts``, whose places count from its start."""
    low = bisect_left(segments, (start,))
    if low < len(segments) and segments[low][:2] == (start, end) and len(parts) == 1:
        segments[low] = start, end, parts[0][2], parts[0][3] - start
        return
    low -= low > 0 and segments[low - 1][1] >= start
    high = bisect_left(segments, (end,), low)
    new = [(segments[low][0], start, *segments[low][2:])] if low < high and segments[low][0] < start else []
    for a, b, value, shift in parts:
        join(new, a + start, b + start, value, shift - start)
    if low < high and segments[high - 1][1] > end:
        join(new, end, *segments[high - 1][1:])
    segments[low:high] = new


def touch(segments: Segments, lane: int, this: int, start: int, end: int, writes: bool) -> dict[int, int]:
    """Adds an access to the latest accesses of all lanes; returns each other lane's latest conflicting instruction."""
    latest, parts = dict[int, int](), Segments()
    for a, b, lanes, shift in read(segments, start, end, this, gap={}):
        for other, (last_read, last_write) in lanes.items():
            if other != lane:
                latest[other] = max(latest.get(other, -1), last_write, last_read if writes else -1)
        last_read, last_write = lanes.get(lane, (-1, -1))
        parts.append((a, b, {**lanes, lane: (last_read, this) if writes else (this, last_write)}, shift))
    write(segments, start, end, parts)
    return latest


class Replay:
    """Executes the instructions of a schedule in the order of a certificate."""

    def __init__(self, schedule: Schedule) -> None:
        self._s, self._rows, self.expressions = schedule, schedule.rows, Expressions(schedule.collective)
        #: Node of each lane, and whether it has several; next instruction by lane; elements popped by (stream, node).
        self._lanes = [(node, schedule.lane_count[node] > 1) for node, _ in schedule.lanes]
        self._next, self._popped = [first for _, first in schedule.lanes], defaultdict[tuple[int, int], int](int)
        #: The contents that each instruction pushed on a stream, as segments whose places count from its start.
        self._passing: list[Segments] = [[] for _ in schedule.streams]
        #: Contents and the latest accesses, by (node, buffer).
        self._held, self._touched = (defaultdict[tuple[int, int], Segments](list) for _ in range(2))
        #: For two lanes, the latest instruction of the second that is over before the next one of the first starts.
        self._over: dict[tuple[int, int], int] = {}
        #: Facts (instruction, the one that is over, whether at the start of the first and not only at its end).
        self.facts: list[tuple[int, int, bool]] = []

    def step(self, this: int, facts: str) -> None:
        """Executes an instruction, with the facts that the certificate states about it."""
        lane, length, sources, sinks, after = self._rows[this]
        node, shared = self._lanes[lane]
        if self._next[lane] != this:
            raise Refused(f"i{this} comes twice in the order, or not in the order of its lane")
        for earlier in after:
            if earlier >= len(self._rows) or self._next[self._rows[earlier][0]] <= earlier:
                raise Refused(f"i{this} comes before i{earlier}, for which it waits, or i{earlier} does not exist")
            self._learn(lane, earlier)
        at_end = [self._fact(this, lane, *fact) for fact in _FACT.findall(facts)] if facts else ()
        for operands, writes in ((sources, False), (sinks, True)) if shared else ():
            for buffer, start, end in operands:
                clashes = touch(self._touched[node, buffer], lane, this, start, end, writes) if buffer != STREAM else {}
                for other, earlier in clashes.items():
                    if self._over.get((lane, other), -1) < earlier:
                        raise Refused(f"nothing orders i{earlier} before i{this}, and they meet on node {node}")
        parts: Segments = []
        for buffer, start, end in sources:
            if buffer == STREAM:
                contents = self._pop(this, node, start, end, end + length)
            elif buffer == INPUT:
                contents = [(0, length, node, start)]
            else:
                contents = read(self._held[node, buffer], start, end, this)
            parts = self.expressions.combined(parts, contents) if parts else contents
        for buffer, start, end in sinks:
            if buffer == STREAM:
                _, readers, room = self._s.streams[start]
                if room is not None and any(self._popped[start, n] + room < end + length for n in readers):
                    raise Refused(f"i{this} comes before s{start} has room for the elements that it pushes")
                self._passing[start].append((end, end + length, parts, 0))
            else:
                write(self._held[node, buffer], start, end, parts)
        for over in at_end:
            self._learn(lane, over)
        self._next[lane] = this + 1

    def _pop(self, this: int, node: int, stream: int, first: int, end: int) -> Segments:
        pushed, parts, place = self._passing[stream], Segments(), first
        if self._s.streams[stream][2] is not None:
            self._popped[stream, node] = end
        at = bisect_left(pushed, (first + 1,)) - 1
        if at >= 0 and pushed[at][0] == first and pushed[at][1] == end:
            return pushed[at][2]  # type: ignore[no-any-return]
        while place < end:
            if not 0 <= at < len(pushed) or pushed[at][1] <= place:
                raise Refused(f"i{this} comes before the elements that it pops from s{stream} are pushed")
            start, stop, contents, _ = pushed[at]
            for a, b, value, shift in read(contents, place - start, min(stop, end) - start, this):
                join(parts, place - first + a, place - first + b, value, shift - place + first)
            at, place = at + 1, stop
        return parts

    def _learn(self, lane: int, over: int) -> None:
        key = lane, self._rows[over][0]
        self._over[key] = max(over, self._over.get(key, -1))

    def _fact(self, this: int, lane: int, start: str, predecessor: str, earlier: str) -> int:
        """Derives a fact; returns the instruction that is over when this one ends."""
        via, of = int(predecessor), int(earlier or 0)
        if via >= len(self._rows) or of > len(self.facts) or (earlier and (start or of == 0)):
            raise Refused(f"a fact about i{this} names an instruction or a fact that does not exist before it")
        about, over, at_start = self.facts[of - 1] if earlier else (via, via - bool(start), bool(start))
        lanes = {self._rows[one][0] for one in (via, about, over if start else via)}
        found = self._carried(via, this, at_start or about < via)
        if len(lanes) > 1 or about > via or found is None:
            raise Refused(f"that i{over} is over does not pass from i{about} through i{via} to i{this}")
        self.facts.append((this, over, found))
        if found:
            self._learn(lane, over)
        return over

    def _carried(self, via: int, this: int, at_start: bool) -> bool | None:
        """Returns True if a fact at ``via`` holds when ``this`` starts, False if only when it ends, None if neither."""
        (_, pushed, _, sinks, _), (_, popped, sources, _, after), best = self._rows[via], self._rows[this], None
        if via in after:
            return True
        for first, start in ((a[2], b[2]) for a in sinks for b in sources if a[0] == b[0] == STREAM and a[1] == b[1]):
            if first < start + popped and start < first + pushed:
                if start + 1 == first + pushed or (at_start and start >= first):
                    return True
                best = False if at_start or start + popped >= first + pushed else best
        return best

    def outputs(self) -> list[str]:
        """Checks all outputs; returns ``repeatable`` if equal outputs have one expression, ``place`` if elements do."""
        c, classes, values = self._s.collective, set[tuple[tuple[int, int, int, int], ...]](), set[tuple[int, int]]()
        right = set[tuple[int, int, int, int, int]]()
        for rank in range(c.ranks):
            whole: Segments = []
            for start, end, element, source, stop in c.required(rank):
                parts = read(self._held[rank, OUTPUT], start, end, f"the output of rank {rank}")
                whole += parts
                values.update((rank * (c.kind == "scan"), value) for _, _, value, _ in parts)
                for a, _, value, shift in parts:
                    if (known := (value, shift, element, source, stop)) in right:
                        continue
                    *held, ascending = self.expressions.held(value) if value != WRONG else (0, 0, 0, False)
                    if shift != element or held != [source, stop, None] or not (ascending or c.any_order):
                        raise Refused(f"out[{start + a}] of rank {rank} combines a rank twice, or holds the wrong ones")
                    right.add(known)
            if whole and c.kind in ALIKE:
                classes.add(tuple(whole))
        place = c.kind not in REDUCING or len(values) == len(dict(values))
        return ["repeatable", "place"][: (len(classes) < 2) * (1 + place)]


def check(schedule: str, certificate: str) -> Verdict:
    """Checks a certificate against the text of a schedule; raises Refused or WrongInput."""
    s, lines, steps = Schedule(schedule), certificate.split("\n"), 0
    digest, count = hashlib.sha256(schedule.encode()).hexdigest(), len(s.rows)
    claims = ["repeatable", "place"][: len(" ".join(lines[4:5]).split()[4:])]
    head = ["unisono-certificate 1", f"schedule sha256={digest}", f"instructions {count}", *lines[3:4]]
    head += [" ".join(["claims complete deadlock-free race-free", *claims]), "order", "end", ""]
    for at, (found, expected) in enumerate(zip([*lines[:6], *lines[-2:]], head, strict=False)):
        if found != expected or len(lines) < len(head):
            raise Refused(f"line {at + 1} of 6, or the end, of the certificate is '{found[:90]}', not '{expected}'")
    replay = Replay(s)
    for word in (word for line in lines[6:-2] for word in line.split(" ")):
        start, stop, facts = step.groups() if (step := _STEP.fullmatch(word)) else (count, None, "")
        first, last = int(start), int(stop or start)
        if not first <= last < count or (stop and facts):
            raise Refused(f"'{word[:40]}' is not a step of an order of {count} instructions")
        for this in range(first, last + 1):
            replay.step(this, facts)
        steps += last + 1 - first
    if steps != count or lines[3] != f"facts {len(replay.facts)}":
        raise Refused(f"the order has {steps} of {count} instructions, or not as many facts as are stated")
    if lacking := set(claims).difference(replay.outputs()):
        raise Refused(f"outputs that must be equal are different expressions: not {' and '.join(sorted(lacking))}")
    return steps, len(replay.facts), len(replay.expressions.rows), claims


def main(paths: list[str]) -> int:
    """Checks the files that the command line names, prints one line and returns the exit code."""
    try:
        require(len(paths) == 2, "two files are expected: python certificate_checker.py FILE.sched CERTIFICATE")
        for path in paths:
            require(stat.S_ISREG(Path(path).stat().st_mode), f"'{path}' is not a regular file")
        found = check(*(Path(path).read_bytes().decode("utf-8-sig") for path in paths))
    except (Refused, OSError, ValueError, MemoryError) as error:
        code = 1 if type(error) is Refused else 2
        print(f"{('refused', 'error')[code - 1]}: {error or 'the memory is not enough'}", file=sys.stderr)  # noqa: T201
        return code
    shown = f"{', '.join(['complete', 'deadlock-free', 'race-free', *found[3]])}; {found[0]} instructions"
    print(f"accepted: {shown}, {found[1]} facts, {found[2]} expressions")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
