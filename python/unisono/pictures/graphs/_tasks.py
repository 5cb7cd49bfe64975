"""Graphs of tasks and of the data that tasks read, as Graphviz text and as lists for a picture."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from unisono._core import Discovery
from unisono.pictures.graphs._rounds import rounds

#: The value of `Edge.by` for data that moves by messages without a collective.
P2P = "point-to-point"


@dataclass(frozen=True)
class SubmittedTask:
    """A task's name, and its accesses: the index of a buffer, and a mode."""

    name: str
    accesses: list[tuple[int, str]]


@dataclass(frozen=True)
class SubmissionRecorder:
    """Records what a program submits; has the methods of a `Discovery` that programs call."""

    buffers: list[str] = field(default_factory=list)
    tasks: list[SubmittedTask] = field(default_factory=list)

    def buffer(self, name: str, *_: Any, **__: Any) -> int:
        """Records a buffer, and returns its index."""
        self.buffers.append(name)
        return len(self.buffers) - 1

    def task(self, name: str, _sizes: Any, accesses: Sequence[tuple[int, str, Any]], *_: Any, **__: Any) -> int:
        """Records a task, and returns its index."""
        self.tasks.append(SubmittedTask(name, [(buffer, mode) for buffer, mode, _ in accesses]))
        return len(self.tasks) - 1

    def fence(self, name: str, buffer: int, *_: Any) -> int:
        """Records a fence as a task that reads the buffer, and returns its index."""
        self.tasks.append(SubmittedTask(name, [(buffer, "read")]))
        return len(self.tasks) - 1


@dataclass(frozen=True)
class Source:
    """A program that ``build`` submits, for a number of nodes."""

    build: Callable[[Any], None]
    nodes: int
    rules: str
    #: True if arrays may have more dimensions than ranges. A point of a range then covers whole rows of an array.
    rows: bool = False

    def submitted(self) -> SubmissionRecorder:
        """Returns the names of the program's buffers and tasks."""
        made = SubmissionRecorder()
        self.build(made)
        return made

    def settled(self, rank: int | None = None) -> Discovery:
        """Returns the finished discovery of the program for one rank, or for all ranks."""
        discovery = Discovery(self.nodes, rank, self.rules, rows=self.rows, report=rank is None)
        self.build(discovery)
        discovery.flush()
        return discovery


@dataclass(frozen=True)
class Edge:
    """A read of data that another task wrote: task ``before`` reads data that task ``after`` wrote."""

    after: int
    before: int
    buffer: str
    #: The collective, ``point-to-point``, or empty if every rank already has the data that it reads.
    by: str
    #: Edges of one operation have the same group.
    group: int | None = None

    @property
    def leads_back(self) -> bool:
        """Returns whether the edge leads from a round of a folded loop to a later round."""
        return self.after >= self.before


@dataclass(frozen=True)
class TaskGraph:
    """The tasks of a program on a number of nodes, and the edges between them.

    The edges of the discovery's forwards are first, in the order of issue, then those of reads without a forward.
    """

    nodes: int
    #: The names of the tasks; edges refer to their positions.
    tasks: list[str]
    edges: list[Edge]

    def folded(self) -> "FoldedGraph":
        """Returns the graph with one round of each loop, if all rounds of the loop have equal tasks and reads."""
        reads: list[list[tuple[int, str, str]]] = [[] for _ in self.tasks]
        for edge in self.edges:
            reads[edge.before].append((edge.before - edge.after, edge.buffer, edge.by))
        loops = rounds([(name, *sorted(read)) for name, read in zip(self.tasks, reads, strict=True)])
        shown = [task for task in range(len(self.tasks)) if all(loop.kept(task) for loop in loops)]
        at = {task: place for place, task in enumerate(shown)}
        edges = []
        for edge in self.edges:
            after, before = edge.after, edge.before
            for loop in loops:
                after, before = loop.place(after), loop.place(before)
            # In the folded graph, an edge from a round of a loop to a later round leads back.
            edges.append(replace(edge, after=at[after], before=at[before], group=None))
        times = {task: loop.count for loop in loops for task in range(loop.first, loop.end)}
        rows = [FoldedTask(self.tasks[task], task, times.get(task, 1)) for task in shown]
        return FoldedGraph(rows, list(dict.fromkeys(edges)), len(self.tasks))


@dataclass(frozen=True)
class FoldedTask:
    """A task with its name and number, and the number of rounds for which it stands."""

    name: str
    number: int
    rounds: int

    def text(self, name: str) -> str:
        """Returns ``step (3)``, or ``step (3), 8 rounds``, with a name that may be shortened."""
        return f"{name} ({self.number})" + (f", {self.rounds} rounds" if self.rounds > 1 else "")


@dataclass(frozen=True)
class FoldedGraph:
    """Tasks in their order, and edges between their positions."""

    tasks: list[FoldedTask]
    edges: list[Edge]
    #: The number of tasks in all rounds.
    count: int


def task_graph(source: Source) -> TaskGraph:
    """Returns the tasks of a program, and the data that they read from each other.

    Forwards of the discovery's report are edges. A read of data that is not forwarded has an edge from the last task
    that wrote to the buffer.
    """
    submitted = source.submitted()
    forwards = source.settled().report()["forwards"]
    pushed = {
        (command[2], submitted.buffers[command[4]])
        for rank in range(source.nodes)
        for command in source.settled(rank).commands()
        if command[0] == "push"
    }

    def by(before: int, buffer: str) -> str:
        return P2P if (before, buffer) in pushed else ""

    edges = []
    for f in forwards:
        before, name = f["before_index"], f["buffer"]
        edges.append(Edge(f["after_index"], before, name, f["collective"] or by(before, name), f["group"]))
    known = {(edge.before, edge.buffer) for edge in edges}
    writers: dict[int, int] = {}
    for number, task in enumerate(submitted.tasks):
        for buffer, mode in task.accesses:
            name = submitted.buffers[buffer]
            if mode in ("read", "read_write") and buffer in writers and (number, name) not in known:
                edges.append(Edge(writers[buffer], number, name, by(number, name)))
                known.add((number, name))
        writers.update({buffer: number for buffer, mode in task.accesses if mode != "read"})
    return TaskGraph(source.nodes, [task.name for task in submitted.tasks], edges)


def dot(source: Source, title: str) -> str:
    """Returns the tasks as Graphviz text, one round of each loop; edges without messages are grey."""
    graph = task_graph(source).folded()
    if any(edge.leads_back for edge in graph.edges):
        title += "\ndashed: to a later round"
    lines = [
        "digraph tasks {",
        f"  label={quoted(title)}; labelloc=t; rankdir=TB;",
        '  node [shape=box, fontname="sans-serif"]; edge [fontname="sans-serif"];',
    ]
    lines += [f"  t{task.number} [label={quoted(task.text(task.name))}];" for task in graph.tasks]
    for edge in graph.edges:
        style = "penwidth=2" if edge.by else "color=gray60, fontcolor=gray60"
        if edge.leads_back:
            style += ", style=dashed, constraint=false"
        after, before = graph.tasks[edge.after].number, graph.tasks[edge.before].number
        lines.append(f"  t{after} -> t{before} [label={quoted(f'{edge.buffer} {edge.by}'.strip())}, {style}];")
    return "\n".join([*lines, "}", ""])


def quoted(text: str) -> str:
    """Returns a text as a quoted string of Graphviz."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
