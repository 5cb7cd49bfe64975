"""Finds hangs of collectives: the call in which each rank waits, and the ranks for which it waits.

A finding also names the ranks whose order of calls differs.

The input consists of dumps of PyTorch's flight recorder, one for each rank, as pickles or as JSON
(FlightRecorderDetail.hpp of pytorch/pytorch, 1189309e). A call of a process group is identified by
``collective_seq_id``, which is equal on all ranks.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from unisono._core import InputError
from unisono.base.files import parse_json
from unisono.base.messages import cut, shown
from unisono.logs import pickles as plain_pickles

__all__ = ["Dump", "Hang", "hangs", "is_dump", "ranks_text", "read_dump"]

_RANK = re.compile(r"(\d{1,7})(?:\.[A-Za-z]\w*)?$")
_MOST_NUMBER = 1 << 53
_MOST_TEXT = 120
#: The maximum number of sizes of all tensors of a call: a few sizes for each of some ten thousand ranks.
_MOST_SIZES = 1 << 17
#: Calls whose ranks may pass blocks of different sizes.
_UNEVEN = re.compile(r"(?:gather|scatter|all_?to_?all\w*)$")
#: A send or a receive between two members of a group, given by their positions in the group.
_MESSAGE = re.compile(r"\w+:(send|recv) (\d{1,7})(?:->|<-)(\d{1,7})$")
_STATES = ("scheduled", "started", "completed")


@dataclass
class Call:
    """One call of a process group on one rank; a coalesced call has several operations."""

    operations: list[tuple[str, str]] = field(default_factory=list)
    is_completed: bool = True
    is_started: bool = True

    @property
    def words(self) -> str:
        """Returns the operations with their sizes."""
        return cut(", ".join(f"{name} of {sizes}" for name, sizes in self.operations), _MOST_TEXT)

    @property
    def compared(self) -> tuple[tuple[str, str], ...]:
        """Returns the operations on which ranks must agree. Sizes are included if all ranks pass equal sizes."""
        return tuple((name, "" if _UNEVEN.match(name) else sizes) for name, sizes in self.operations)


@dataclass(frozen=True)
class Message:
    """A send or a receive that is not completed."""

    kind: str
    peer: int
    group: str
    number: int


@dataclass
class Dump:
    """The recorded calls of one rank by group and number."""

    rank: int
    #: The description and the members of each group.
    groups: dict[str, tuple[str, tuple[int, ...]]]
    calls: dict[str, dict[int, Call]]
    #: The first message that is not completed, by kind (send or recv) and peer.
    messages: dict[tuple[str, int], Message] = field(default_factory=dict)

    def unfinished(self) -> list[tuple[str, int]]:
        """Returns the group and number of each group's first call that is not completed."""
        firsts = []
        for group, calls in self.calls.items():
            numbers = [number for number, call in calls.items() if not call.is_completed]
            if numbers:
                firsts.append((group, min(numbers)))
        return firsts


@dataclass(frozen=True)
class Hang:
    """A call that cannot complete, and the reason."""

    kind: str
    group: str
    call: int
    #: The ranks that wait in the call or, if the calls of ranks differ, all ranks that made a call. ``waits_for`` are
    #: the ranks for which they wait; it is empty if they are not known.
    ranks: tuple[int, ...]
    waits_for: tuple[int, ...]
    words: str
    #: The noun for the number in ``call``. Messages are counted separately from calls.
    noun: str = "call"


def is_dump(data: bytes) -> bool:
    """Returns whether a file begins like a pickle, or is JSON of a flight recorder."""
    return data[:1] == b"\x80" or (data.lstrip()[:1] == b"{" and b'"pg_config"' in data)


def read_dump(data: bytes, label: str) -> Dump:
    """Returns the calls of a dump; the rank is the number at the end of its name ``label``, before an extension.

    Raises:
        InputError: the dump is damaged or has another format, or its name has no rank.

    """
    number = _RANK.search(label)
    if number is None:
        raise InputError(f"{label}: a name of a dump ends with its rank, as nccl_trace_rank_0; rename it")
    if data[:1] == b"\x80":
        value = plain_pickles.loads(data, label)
    else:
        try:
            value = parse_json(data)
        except (ValueError, RecursionError) as damage:
            raise InputError(f"{label} is damaged JSON: {damage}") from None
    if not isinstance(value, dict) or not isinstance(value.get("entries", []), list) or "version" not in value:
        raise InputError(f"{label} is no dump of a flight recorder, which has a version and entries")
    dump = Dump(int(number[1]), _groups(value.get("pg_config"), label), {})
    for place, entry in enumerate(value.get("entries", [])):
        _add(dump, entry, f"{label}, entry {place}")
    return dump


def _groups(config: object, label: str) -> dict[str, tuple[str, tuple[int, ...]]]:
    groups = {}
    for name, of in config.items() if isinstance(config, dict) else ():
        members = of.get("ranks") if isinstance(of, dict) else None
        try:
            ranks = parse_json(members) if isinstance(members, str) else None
        except (ValueError, RecursionError):
            ranks = None
        if not isinstance(ranks, list) or not all(isinstance(rank, int) and 0 <= rank < 1 << 24 for rank in ranks):
            raise InputError(
                f"{label}: the ranks of group {shown(name)} are {shown(members)}; accepted are [0, 1, ...]"
            )
        groups[_text(name)] = (_text(of.get("desc", "")), tuple(ranks))
    return groups


def _add(dump: Dump, entry: object, where: str) -> None:
    if not isinstance(entry, dict):
        raise InputError(f"{where} is {shown(entry)}; accepted is a dictionary")
    group, number, state = entry.get("process_group"), entry.get("collective_seq_id"), entry.get("state")
    if not isinstance(group, (list, tuple)) or not group:
        raise InputError(f"{where}: process_group is {shown(group)}; accepted are a name and a description")
    if not isinstance(number, int) or not 0 <= number < _MOST_NUMBER:
        raise InputError(f"{where}: collective_seq_id is {shown(number)}; accepted is a whole number")
    if state not in _STATES:
        raise InputError(f"{where}: state is {shown(state)}; accepted are {', '.join(_STATES)}")
    if entry.get("is_p2p"):
        if state != "completed":
            _add_message(dump, _text(group[0]), entry, where)
        return
    call = dump.calls.setdefault(_text(group[0]), {}).setdefault(number, Call())
    name = _text(entry.get("profiling_name", "")).partition(":")[2] or _text(entry.get("profiling_name", ""))
    sizes = " -> ".join(_sizes(entry.get(key, []), f"{where}: {key}") for key in ("input_sizes", "output_sizes"))
    types = entry.get("input_dtypes")
    kind = _text(types[0]) if isinstance(types, (list, tuple)) and types else ""
    call.operations.append((name, f"{sizes} {kind}".rstrip()))
    call.is_completed &= state == "completed"
    call.is_started &= state != "scheduled"


def _add_message(dump: Dump, group: str, entry: dict[Any, Any], where: str) -> None:
    named, number = entry.get("profiling_name"), entry.get("p2p_seq_id", 0)
    match = _MESSAGE.match(named) if isinstance(named, str) else None
    if match is None or not isinstance(number, int) or not 0 <= number < _MOST_NUMBER:
        raise InputError(
            f"{where}: {shown(named)}, {shown(number)} is no message; accepted is a name as nccl:send 0->1"
        )
    peer = int(match[3])
    if group in dump.groups:
        members = sorted(dump.groups[group][1])
        if peer >= len(members):
            raise InputError(f"{where}: {shown(named)} is beyond the {len(members)} members of group {group}")
        peer = members[peer]
    dump.messages.setdefault((match[1], peer), Message(match[1], peer, group, number))


def _sizes(value: object, where: str) -> str:
    """Formats the shapes of tensors."""
    shapes = (
        [shape for shape in value if isinstance(shape, (list, tuple))] if isinstance(value, (list, tuple)) else None
    )
    if (
        shapes is None
        or len(shapes) != len(value)  # type: ignore[arg-type]
        or sum(map(len, shapes)) > _MOST_SIZES
        or not all(isinstance(size, int) and abs(size) < _MOST_NUMBER for shape in shapes for size in shape)
    ):
        raise InputError(f"{where} is no list of at most {_MOST_SIZES} sizes of tensors; the dump is damaged")
    return f"[{', '.join(str(list(shape)) for shape in shapes)}]"


def _text(value: Any) -> str:
    return cut(value, _MOST_TEXT) if isinstance(value, str) else shown(value)


def hangs(dumps: Sequence[Dump]) -> list[Hang]:
    """Returns the calls that cannot complete: a cycle of waiting ranks, a call of each group, and messages.

    Raises:
        InputError: two dumps are of the same rank.

    """
    by_rank = {dump.rank: dump for dump in dumps}
    if len(by_rank) < len(dumps):
        twice = next(dump.rank for dump in dumps if by_rank[dump.rank] is not dump)
        raise InputError(f"two dumps are of rank {twice}; give one a rank")
    groups = dict.fromkeys(group for dump in dumps for group in (*dump.groups, *dump.calls))
    found = [hang for group in groups if (hang := _of_group(group, by_rank)) is not None]
    found += [hang for dump in dumps for hang in _of_messages(dump, by_rank)]
    return [*_circles(found), *found]


def _of_messages(dump: Dump, by_rank: dict[int, Dump]) -> Iterator[Hang]:
    """Yields the messages of a rank that are not completed and whose peer has no matching operation."""
    for (kind, peer), message in dump.messages.items():
        other = "recv" if kind == "send" else "send"
        if peer not in by_rank or (other, dump.rank) not in by_rank[peer].messages:
            way = "to" if kind == "send" else "from"
            words = (
                f"group {message.group}, message {message.number}: rank {dump.rank} waits in a {kind} {way} rank {peer}"
                f", which is in no {other}: {_reason(message.group, peer, by_rank)}"
            )
            yield Hang("missing", message.group, message.number, (dump.rank,), (peer,), words, "message")


def _of_group(group: str, by_rank: dict[int, Dump]) -> Hang | None:
    """Returns the first call of a group that differs between ranks or that a rank has not completed, if any."""
    recorded = {rank: dump.calls[group] for rank, dump in by_rank.items() if dump.calls.get(group)}
    stated = [dump.groups[group] for dump in by_rank.values() if group in dump.groups]
    members = sorted({rank for _, ranks in stated for rank in ranks} | set(recorded))
    # The comparison begins at the latest first entry of all ranks, because earlier calls were overwritten in some
    # rank's ring buffer.
    begin = max((min(calls) for calls in recorded.values()), default=0)
    title = f"group {group}" + (f" ({stated[0][0]})" if stated and stated[0][0] else "")
    for number in sorted({number for calls in recorded.values() for number in calls if number >= begin}):
        calls = {rank: of[number] for rank, of in recorded.items() if number in of}
        head = f"{title}, call {number}"
        if len({call.compared for call in calls.values()}) > 1:
            return Hang("order", group, number, tuple(sorted(calls)), (), f"{head}: {_differing(calls)}")
        waiting = sorted(rank for rank, call in calls.items() if not call.is_completed)
        if not waiting:
            continue
        missing = tuple(rank for rank in members if rank not in calls)
        words = f"{head}: {ranks_text(waiting)} wait{'s' if len(waiting) == 1 else ''} in {calls[waiting[0]].words}"
        if missing:
            reasons = "; ".join(_reason(group, rank, by_rank) for rank in missing[:4])
            more = f"; and {len(missing) - 4} more" if len(missing) > 4 else ""
            return Hang(
                "missing", group, number, tuple(waiting), missing, f"{words} for {ranks_text(missing)}: {reasons}{more}"
            )
        late = [rank for rank in waiting if not calls[rank].is_started]
        if late and len(late) < len(calls):
            words += f"; it has not started on {ranks_text(late)}, whose earlier work on the GPU has not ended"
            return Hang("stuck", group, number, tuple(waiting), tuple(late), words)
        return Hang(
            "stuck",
            group,
            number,
            tuple(waiting),
            (),
            f"{words}, which all ranks have called alike; look at the network and GPUs",
        )
    return None


def _differing(calls: dict[int, Call]) -> str:
    """Formats at most four different calls with their ranks, the most frequent call first."""
    alike: dict[tuple[tuple[str, str], ...], list[int]] = {}
    for rank in sorted(calls):
        alike.setdefault(calls[rank].compared, []).append(rank)
    ordered = sorted(alike.values(), key=len, reverse=True)
    parts = [
        f"{ranks_text(ranks)} call{'s' if len(ranks) == 1 else ''} {calls[ranks[0]].words}" for ranks in ordered[:4]
    ]
    return f"{', and '.join(parts)}; calls of a group must have one order on all ranks"


def _reason(group: str, rank: int, by_rank: dict[int, Dump]) -> str:
    """Returns a clause on the action of a rank that does not make the expected call."""
    dump = by_rank.get(rank)
    if dump is None:
        return f"rank {rank} left no dump, so it may have ended or failed"
    for other, number in dump.unfinished():
        if other != group:
            return f"rank {rank} is in call {number} of group {other}, {dump.calls[other][number].words}"
    if (message := next(iter(dump.messages.values()), None)) is not None:
        way = "to" if message.kind == "send" else "from"
        return f"rank {rank} is in a {message.kind} {way} rank {message.peer}"
    calls = dump.calls.get(group)
    if not calls:
        return f"rank {rank} has made no call of the group"
    last = max(calls)
    done = "completed" if calls[last].is_completed else "not completed"
    return f"rank {rank} made its last call, {last}, {calls[last].words} ({done}), and no further one"


def _circles(found: Sequence[Hang]) -> list[Hang]:
    """Returns a cycle of ranks that wait for each other, in calls that a rank of the cycle has not made.

    The cycle is returned as one hang; the list is empty if there is no cycle.
    """
    waits: dict[int, dict[int, Hang]] = {}
    waiting = {rank for hang in found if hang.kind == "missing" for rank in hang.ranks}
    for hang in found:
        for other in waiting & set(hang.waits_for) if hang.kind == "missing" else ():
            for rank in hang.ranks:
                waits.setdefault(rank, {}).setdefault(other, hang)
    circle = _circle({rank: sorted(others) for rank, others in waits.items()})
    if not circle:
        return []
    pairs = list(zip(circle, [*circle[1:], circle[0]], strict=True))
    steps = [
        f"rank {a} waits in {waits[a][b].noun} {waits[a][b].call} of group {waits[a][b].group} for rank {b}"
        for a, b in pairs
    ]
    first = waits[circle[0]][pairs[0][1]]
    words = f"{', and '.join(steps[:6])}; they wait for each other and never go on"
    return [Hang("circle", first.group, first.call, tuple(circle), tuple(circle), words)]


def _circle(edges: Mapping[int, Sequence[int]]) -> list[int]:
    """Returns the nodes of a cycle of a graph in order; empty if there is no cycle."""
    done: set[int] = set()
    for start in sorted(edges):
        path, places, onward = [start], {start: 0}, [iter(edges[start])]
        while onward and start not in done:
            other = next(onward[-1], None)
            if other is None:
                onward.pop()
                last = path.pop()
                done.add(last)
                del places[last]
            elif other in places:
                return path[places[other] :]
            elif other in edges and other not in done:
                places[other] = len(path)
                path.append(other)
                onward.append(iter(edges[other]))
    return []


def ranks_text(ranks: Sequence[int]) -> str:
    """Formats ranks in ascending order, as at most 8 ranges."""
    parts: list[list[int]] = []
    for rank in sorted(ranks):
        if parts and rank == parts[-1][-1] + 1:
            parts[-1][1:] = [rank]
        else:
            parts.append([rank])
    texts = ["-".join(map(str, part)) for part in parts]
    shown_parts = ", ".join(texts[:8]) + (" and more" if len(texts) > 8 else "")
    return f"rank{'' if len(ranks) == 1 else 's'} {shown_parts}"
