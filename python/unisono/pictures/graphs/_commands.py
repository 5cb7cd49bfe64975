"""Graphs of the commands of ranks and their dependencies, as Graphviz text and as levels for a picture."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from unisono.pictures.graphs._tasks import Source, SubmissionRecorder, quoted

#: The unique key of a command: its rank, and its number on that rank.
Place = tuple[int, int]


@dataclass(frozen=True)
class Command:
    """A command of a rank. A collective has a command on each member rank, all with the same ``group``."""

    rank: int
    number: int
    kind: str
    task: int
    #: The label of the action.
    what: str
    #: The label of the part of the array or range that the command uses.
    part: str
    waits: tuple[int, ...]
    #: The rank to which a push sends, or the ranks from which an await receives.
    peers: tuple[int, ...] = ()
    group: int = -1
    participants: tuple[int, ...] = ()

    @property
    def place(self) -> Place:
        """Returns the command's unique key."""
        return self.rank, self.number


@dataclass(frozen=True)
class CommandGraph:
    """The commands of some ranks, and messages as pairs of a push and the await that receives the push."""

    nodes: int
    ranks: Sequence[int]
    commands: Mapping[Place, Command]
    messages: list[tuple[Command, Command]] = field(default_factory=list)

    def before(self) -> dict[Place, list[Place]]:
        """Returns the commands for which each command waits, including pushes of other ranks."""
        found = {
            place: [(command.rank, number) for number in command.waits] for place, command in self.commands.items()
        }
        for push, await_ in self.messages:
            found[await_.place].append(push.place)
        return found

    def operations(self) -> dict[int, list[Command]]:
        """Returns the commands of each collective by ``group``, in the order of ranks."""
        found: dict[int, list[Command]] = {}
        for command in self.commands.values():
            if command.kind == "collective":
                found.setdefault(command.group, []).append(command)
        return found

    def levels(self) -> dict[Place, int]:
        """Returns for each command the length of the longest chain of predecessors, across ranks."""
        before, operations = self.before(), self.operations()
        levels, changed = dict.fromkeys(self.commands, 0), True
        # Each iteration extends chains across at least one more rank; the loop ends, because there are no cycles.
        while changed:
            found = dict(levels)
            for place in sorted(found):
                found[place] = max([found[place], *(found[p] + 1 for p in before[place])])
            for members in operations.values():
                last = max(found[command.place] for command in members)
                found.update({command.place: last for command in members})
            changed, levels = found != levels, found
        return levels


def command_graph(source: Source, ranks: Iterable[int] | None = None) -> CommandGraph:
    """Returns the command graph of all ranks, or of some."""
    submitted = source.submitted()
    shown = tuple(range(source.nodes) if ranks is None else ranks)
    commands: dict[Place, Command] = {}
    ends: dict[tuple[int, int], tuple[list[Command], list[Command]]] = {}
    for rank in shown:
        for given in source.settled(rank).commands():
            command = _command(rank, given, submitted)
            commands[command.place] = command
            # Messages between two ranks are received in the order in which they are sent.
            for peer in command.peers:
                pair = (rank, peer) if command.kind == "push" else (peer, rank)
                ends.setdefault(pair, ([], []))[command.kind == "await"].append(command)
    both = [ends[pair] for pair in sorted(ends) if set(pair) <= set(shown)]
    messages = [message for pushes, awaits in both for message in zip(pushes, awaits, strict=True)]
    return CommandGraph(source.nodes, shown, commands, messages)


def dot(source: Source, title: str) -> str:
    """Returns the command graphs of all ranks side by side as Graphviz text; messages are dashed."""
    graph = command_graph(source)
    lines = [
        "digraph commands {",
        f"  label={quoted(title)}; labelloc=t; rankdir=TB;",
        '  node [shape=box, fontname="sans-serif"];',
    ]
    for rank in graph.ranks:
        lines += [f"  subgraph cluster_{rank} {{", f"    label={quoted(f'rank {rank}')};"]
        for command in (command for command in graph.commands.values() if command.rank == rank):
            name, label = _name(command), quoted(f"{command.what}\n{command.part}")
            lines.append(f"    {name} [label={label}{_STYLE.get(command.kind, '')}];")
            lines += [f"    r{rank}c{before} -> {name};" for before in command.waits]
        lines.append("  }")
    lines += [f"  {_name(a)} -> {_name(b)} [style=dashed];" for a, b in graph.messages]
    return "\n".join([*lines, "}", ""])


_STYLE = {"push": ", color=gray40", "await": ", color=gray40", "collective": ", penwidth=2"}


def _name(command: Command) -> str:
    return f"r{command.rank}c{command.number}"


def _command(rank: int, given: tuple[Any, ...], submitted: SubmissionRecorder) -> Command:
    kind, number, task, (waits, until), *rest = given
    earlier = tuple(waits if until is None else sorted({*waits, *range(until + 1)}))
    made = {"rank": rank, "number": number, "kind": kind, "task": task, "waits": earlier}
    if kind == "execute":
        return Command(**made, what=submitted.tasks[task].name, part=_region([rest]))
    buffer = submitted.buffers[rest[0]]
    match kind:
        case "push":
            return Command(**made, what=f"push {buffer} to {rest[1]}", part=_region(rest[2]), peers=(rest[1],))
        case "await":
            parts = "\n".join(f"{_region(region)} from {source}" for source, region in rest[1])
            return Command(**made, what=f"await {buffer}", part=parts, peers=tuple(source for source, _ in rest[1]))
        case _:
            group, operation, region = rest[1:4]
            root = "" if operation.root is None else f" (root {operation.root})"
            took = tuple(operation.participants)
            what, part = f"{operation.pattern} {buffer}{root}", _region(region)
            return Command(**made, what=what, part=part, group=group, participants=took)


def _region(boxes: Sequence[Any]) -> str:
    texts = [" x ".join(f"[{a}, {b})" for a, b in zip(low, high, strict=True)) for low, high in boxes]
    return ", ".join(texts) or "nothing"
