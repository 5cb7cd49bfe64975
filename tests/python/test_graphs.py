"""Graphs of programs of tasks: Graphviz text, and pictures whose positions show the order."""

import json
import re
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import unisono as un
from unisono.pictures.graphs import Source, _command_picture, _task_picture, of_json, write_graph
from unisono.pictures.graphs._command_picture import _first_tasks, _rows
from unisono.pictures.graphs._commands import CommandGraph, command_graph
from unisono.pictures.graphs._rounds import Rounds, rounds
from unisono.pictures.graphs._tasks import Edge, dot, task_graph
from unisono.reproduce.discovery import EXAMPLES, loop, n_body
from unisono.tasks import Program, all_, one_to_one

from .conftest import call, json_of, refusal, written
from .test_discover import n_body as n_body_json
from .test_tasks import N_BODY


def example(name: str, nodes: int, rules: str) -> Source:
    return Source(lambda to: loop(to, name), nodes, rules)


@pytest.mark.parametrize("rules", ["full", "paper", "off"])
@pytest.mark.parametrize("name", EXAMPLES)
def test_commands_stand_below_what_they_wait_for(name: str, rules: str) -> None:
    for nodes in (1, 2, 3, 7):
        graph = command_graph(example(name, nodes, rules))
        rows = _rows(graph)
        assert set(rows) == set(graph.commands)
        for place, earlier in graph.before().items():
            assert all(rows[other] < rows[place] for other in earlier)
        # A row has at most one command in each lane; the bar of a collective covers all lanes between its ends.
        used: Counter[tuple[int, int]] = Counter()
        for place, command in graph.commands.items():
            if command.kind != "collective":
                used[place[0], rows[place]] += 1
        for members in graph.operations().values():
            (row,) = {rows[command.place] for command in members}
            assert [command.rank for command in members] == list(members[0].participants)
            used.update((rank, row) for rank in range(members[0].rank, members[-1].rank + 1))
        assert set(used.values()) <= {1}
        # Each push sends one message between two ranks.
        pushes = [command for command in graph.commands.values() if command.kind == "push"]
        assert len(graph.messages) == len(pushes)
        assert all(b.rank in a.peers and a.rank in b.peers for a, b in graph.messages)


def test_graphviz_text_of_n_body(tmp_path: Path) -> None:
    file = tmp_path / "g.dot"
    write_graph(Source(n_body, 2, "off"), file, "commands", "N-body")
    text = file.read_text()
    assert 'label="N-body: commands, 2 nodes, rules off"' in text
    assert text.count('label="push P to 1\\n[0, 64)"') == 1
    assert text.count('label="await P\\n[64, 128) from 1"') == 1
    assert len(re.findall(r"r\dc\d -> r\dc\d \[style=dashed\];", text)) == 2
    write_graph(Source(n_body, 2, "full"), file, "commands", "N-body")
    assert file.read_text().count('label="allgather P\\n') == 2
    assert "dashed" not in file.read_text()
    write_graph(Source(n_body, 2, "full"), file, "tasks", "N-body")
    assert 't1 -> t2 [label="P allgather", penwidth=2];' in file.read_text()
    assert 't0 -> t1 [label="V", color=gray60' in file.read_text()


def test_tasks_and_what_moves() -> None:
    def edges(rules: str, nodes: int) -> list[Edge]:
        return task_graph(Source(n_body, nodes, rules)).edges

    stays = [Edge(0, 1, "V", ""), Edge(0, 2, "V", ""), Edge(2, 3, "V", ""), Edge(1, 3, "P", "")]
    assert edges("full", 4) == [Edge(1, 2, "P", "allgather", 0), *stays]
    assert Edge(1, 2, "P", "point-to-point") in edges("off", 4)
    assert {edge.by for edge in edges("off", 1)} == {""}


#: The edges of an n-body program from earlier rounds: each step reads its velocities, and all positions.
BACK = {(3, 2, "P"), (2, 2, "V"), (3, 3, "P")}


def test_rounds_of_loops_are_stored_once() -> None:
    """A loop of any length has one graph, except for the number of rounds; later tasks depend on its last round."""

    def end(to: Any, steps: int) -> None:
        n_body(to, steps)
        to.task("look", [4096], [(0, "read", all_), (1, "read", one_to_one)])

    for steps in (4, 30, 200):
        found = task_graph(Source(partial(end, steps=steps), 4, "full"))
        folded = found.folded()
        assert (len(found.tasks), folded.count) == (2 * steps + 1, 2 * steps + 1)
        # The first step reads the initial contents.
        assert [(task.number, task.rounds) for task in folded.tasks] == [
            (0, 1),
            (1, 1),
            (2, steps - 1),
            (3, steps - 1),
            (2 * steps, 1),
        ]
        edges = {(edge.after, edge.before, edge.buffer, edge.by) for edge in folded.edges}
        assert {(0, 1, "V", ""), (1, 2, "P", "allgather"), (2, 3, "V", ""), (3, 4, "P", "allgather")} <= edges
        assert {(2, 4, "V")} == {edge[:3] for edge in edges if edge[1:3] == (4, "V")}
        # Only reads from an earlier round are backward edges.
        assert {edge[:3] for edge in edges if edge[0] >= edge[1]} == BACK
        text = dot(Source(partial(end, steps=steps), 4, "full"), "loop")
        assert text.count("style=dashed, constraint=false") == len(BACK)
        assert "dashed: to a later round" in text
    # Too few rounds are not folded.
    short = task_graph(Source(partial(end, steps=3), 4, "full")).folded()
    assert [task.rounds for task in short.tasks] == [1] * 7


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ("", []),
        ("abcabc", []),
        ("abcabcabc", [(0, 3, 3)]),
        ("xababababy", [(1, 2, 4)]),
        ("aaaaab", [(0, 1, 5)]),
        # The folding that leaves the fewest tasks wins; among equal foldings, the folding with the shortest round.
        ("aabaabaabaab", [(0, 3, 4)]),
        ("abababcdcdcd", [(0, 2, 3), (6, 2, 3)]),
        # An incomplete round is not folded.
        ("abcabcabcab", [(0, 3, 3)]),
    ],
)
def test_rounds(rows: str, expected: list[tuple[int, int, int]]) -> None:
    found = rounds(rows)
    assert [(rest.first, rest.period, rest.count) for rest in found] == expected
    for rest in found:
        assert all(rows[rest.place(row)] == rows[row] for row in range(len(rows)))
        assert sum(rest.kept(row) for row in range(len(rows))) == len(rows) - rest.period * (rest.count - 1)


@pytest.mark.parametrize("kind", ["commands", "tasks"])
@pytest.mark.parametrize(("form", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml")])
def test_pictures_are_the_same_every_time(tmp_path: Path, kind: str, form: str, start: bytes) -> None:
    program = Program()
    a, total = program.zeros(8, name="a"), program.zeros(1, name="total")

    def add(a: Any, total: Any) -> None:
        total += a.sum()

    program.task(add, range=8, reads=[a[one_to_one]], reduces=[total[all_]])
    program.host_task(print, reads=[total])
    files = [tmp_path / f"{k}.{form}" for k in range(2)]
    for file in files:
        program.graph(3, file, kind)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert files[0].read_bytes().startswith(start)


def test_pictures_say_what_they_leave_out(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[list[str]] = []

    def keep(_figure: object, _title: str, parts: list[str], *_: object) -> bytes:
        said.append(parts)
        return b""

    for picture in (_command_picture, _task_picture):
        monkeypatch.setattr(picture, "file", keep)
    _command_picture.draw(Source(n_body, 64, "full"), "")
    _command_picture.draw(Source(lambda to: n_body(to, 30), 8, "full"), "")
    monkeypatch.setattr(Rounds, "kept", lambda *_: True)
    _task_picture.draw(Source(lambda to: n_body(to, 30), 2, "full"), "")
    monkeypatch.undo()
    for picture in (_command_picture, _task_picture):
        monkeypatch.setattr(picture, "file", keep)
    _command_picture.draw(Source(n_body, 8, "full"), "")
    # Rounds of a loop are drawn once.
    _task_picture.draw(Source(lambda to: n_body(to, 30), 2, "full"), "")
    # The first step has two commands, each other step three, so 20 commands are 7 steps, or 14 tasks.
    assert said == [["the first 8 of 64 ranks"], ["the first 14 of 60 tasks"], ["the first 24 of 60 tasks"], [], []]


@pytest.mark.parametrize("most", [1, 5, 6, 100])
def test_pictures_begin_with_whole_tasks(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(_command_picture, "MOST_COMMANDS", most)
    graph = command_graph(Source(n_body, 3, "off"))
    shown = _first_tasks(graph, 4)
    counts = Counter(command.rank for command in graph.commands.values() if command.task < shown)
    assert shown == 1 or max(counts.values()) <= most
    more = Counter(command.rank for command in graph.commands.values() if command.task <= shown)
    assert shown == 4 or max(more.values()) > most


def test_command_line_draws_both_forms_of_programs(tmp_path: Path) -> None:
    given, written = tmp_path / "n-body.py", tmp_path / "n-body.json"
    given.write_text(N_BODY)
    written.write_text(json.dumps(n_body_json(4)))
    texts = []
    for number, program in enumerate((given, written)):
        dot = tmp_path / f"{number}.dot"
        found = json_of("discover", str(program), "--nodes", "4", "--graph", str(dot))
        assert found["graph"] == str(dot)
        # The two graphs differ only in names of tasks and files, and in the columns of an array.
        text = re.sub("time_step", "step", re.sub("update_p", "move", dot.read_text()))
        texts.append(re.sub(r"n-body\.\w+", "n-body", text).replace(" x [0, 3)", ""))
    assert texts[0] == texts[1]
    png = tmp_path / "tasks.png"
    assert call("discover", str(written), "--nodes", "4", "--graph", str(png), "--graph-kind", "tasks").code == 0
    assert png.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("file", "kind", "said"),
    [
        ("g.gif", "commands", "accepted are names that end in .dot, .png, .svg, .pdf"),
        ("no/g.dot", "commands", "no folder"),
    ],
)
def test_wrong_files(tmp_path: Path, file: str, kind: str, said: str) -> None:
    program = written(tmp_path / "program.py", "raise SystemExit('executed')")
    refused = refusal("discover", str(program), "--nodes", "2", "--graph", str(tmp_path / file), "--graph-kind", kind)
    assert said in refused


def test_wrong_kinds(tmp_path: Path) -> None:
    with pytest.raises(un.InputError, match="kind of graph is 'all'; accepted are commands, tasks"):
        Program().graph(2, tmp_path / "g.dot", "all")


def test_json_programs_with_every_mapper() -> None:
    """Python submits a JSON program unchanged."""
    kinds: list[dict[str, Any]] = [
        {"kind": "one_to_one"},
        {"kind": "all"},
        {"kind": "fixed", "offset": [1, 0], "extent": [2, 3]},
        {"kind": "slice", "dim": 1},
        {"kind": "neighborhood", "halo": [1, 2]},
        {"kind": "transposed", "perm": [1, 0]},
        {"kind": "row", "index": 3},
        {"kind": "shift", "offset": [1, -1]},
    ]
    split = [
        {"buffer": "A", "mode": "read", "mapper": {"kind": "even_split"} | more} for more in ({}, {"granularity": 2})
    ]
    reads = [{"buffer": "A", "mode": "read", "mapper": kind} for kind in kinds]
    write = {"buffer": "A", "mode": "write", "mapper": {"kind": "one_to_one"}}
    flat = {"buffer": "v", "mode": "write", "mapper": {"kind": "project", "kernel_dim": 0}}
    tasks = [
        {"name": "write", "range": [8, 8], "accesses": [write, flat]},
        *({"range": [8, 8], "split": "2d", "granularity": [2, 1], "accesses": [read]} for read in reads),
        {"range": [4, 4], "offset": [2, 1], "accesses": reads[:1]},
        *({"range": 5, "accesses": [read]} for read in split),
    ]
    program = {
        "buffers": [{"name": "A", "shape": [8, 8], "element_bytes": 4}, {"name": "v", "shape": [8]}],
        "tasks": tasks,
    }
    for nodes in (1, 4, 6):
        found = Source(of_json(program), nodes, "full").settled().report()
        assert found == un.discover(program, nodes)


def test_levels_are_the_longest_chains() -> None:
    """Compares levels with their definition, by following every chain."""
    for build in (n_body, lambda to: loop(to, "gather-scatter"), lambda to: loop(to, "stencil", 2)):
        graph = command_graph(Source(build, 3, "full"))
        levels = graph.levels()
        chain = _longest(graph)
        assert levels == {place: chain(place) for place in graph.commands}


def _longest(graph: CommandGraph) -> Callable[[tuple[int, int]], int]:
    before, operations = graph.before(), graph.operations()
    known: dict[tuple[int, int], int] = {}

    def chain(place: tuple[int, int]) -> int:
        if place not in known:
            command = graph.commands[place]
            members = operations[command.group] if command.kind == "collective" else [command]
            earlier = [other for member in members for other in before[member.place]]
            known[place] = max((1 + chain(other) for other in earlier), default=0)
        return known[place]

    return chain
