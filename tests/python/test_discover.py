"""Programs of tasks: the command, its JSON, and the commands of one rank."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import unisono as un
from unisono import tasks
from unisono._core import Discovery, Mapper

from .conftest import call, json_of, refusal, text_of, written

NODES = (1, 2, 3, 4, 7, 8, 64)
Task = dict[str, Any]


def task(name: str, sizes: Sequence[int], *accesses: tuple[str, str, Any]) -> Task:
    def mapper(given: Any) -> Any:
        return {"kind": given} if isinstance(given, str) else given

    listed = [{"buffer": buffer, "mode": mode, "mapper": mapper(how)} for buffer, mode, how in accesses]
    return {"name": name, "range": list(sizes), "accesses": listed}


def program(tasks: Sequence[Task], **shapes: Sequence[int]) -> dict[str, Any]:
    buffers = [{"name": name, "shape": list(shape), "host_initialized": True} for name, shape in shapes.items()]
    return {"buffers": buffers, "tasks": list(tasks)}


def n_body(steps: int) -> dict[str, Any]:
    step = task("time_step", [64], ("P", "read", "all"), ("V", "read_write", "one_to_one"))
    move = task("update_p", [64], ("V", "read", "one_to_one"), ("P", "read_write", "one_to_one"))
    return program([step, move] * steps, P=[64], V=[64])


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = written(tmp_path / "n-body.json", json.dumps(n_body(3)))
    return str(path)


@pytest.mark.parametrize("nodes", NODES)
@pytest.mark.parametrize("rules", ["paper", "full"])
def test_n_body(file: str, nodes: int, rules: str) -> None:
    found = json_of("discover", file, "--nodes", str(nodes), "--rules", rules)
    kind = "allgather" if nodes > 1 else None
    assert [f["collective"] for f in found["forwards"]] == [kind, kind]
    assert {(f["after_task"], f["before_task"], f["buffer"]) for f in found["forwards"]} == {
        ("update_p", "time_step", "P")
    }
    assert all(f["region"] == [[[0], [64]]] for f in found["forwards"])
    messages = found["messages"]
    assert (messages["p2p"], messages["collective"]) == (0, 2 if nodes > 1 else 0)
    assert messages["collective_bytes"] == 2 * (nodes - 1) * 64 * 8


def test_rules_and_defaults(file: str) -> None:
    assert json_of("discover", file, "--nodes", "4") == json_of("discover", file, "--nodes", "4", "--rules", "full")
    off = json_of("discover", file, "--nodes", "4", "--rules", "off")
    assert (off["messages"]["p2p"], off["messages"]["collective"], off["forwards"]) == (2 * 4 * 3, 0, [])
    text = text_of("discover", file, "--nodes", "4")
    assert "allgather" in text
    assert "4 nodes: 2 collectives" in text


def test_the_table_has_one_row_for_the_rounds_of_a_loop(tmp_path: Path) -> None:
    """A loop of 40 rounds prints as many rows as one of three; the numbers of a table add up to all exchanges."""
    rows = []
    for rounds in (3, 40):
        path = written(tmp_path / f"{rounds}.json", json.dumps(n_body(rounds)))
        table = call("discover", str(path), "--nodes", "4").out.partition("\n\n")[0].split("\n")
        assert table[0].split()[:3] == ["times", "after", "task"]
        assert sum(int(row.split()[0]) for row in table[2:]) == len(un.discover(n_body(rounds), 4)["forwards"])
        rows.append(len(table))
    assert rows[0] == rows[1]


def test_python_takes_dictionaries_and_files(file: str) -> None:
    assert un.discover(n_body(3), 4) == un.discover(file, 4) == un.discover(Path(file), nodes=4)
    with pytest.raises(un.InputError, match="JSON's types"):
        un.discover({"buffers": [], "tasks": {1, 2}}, 4)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"tasks": [task("t", [64], ("C", "read", "all"))]}, "task 't' accesses buffer 'C'; declared are: P, V"),
        ({"tasks": [task("t", [64], ("P", "write", "all"))]}, "task 't', buffer 'P', rank 1: overlapping writes"),
        ({"tasks": [task("t", [8, 8], ("P", "read", "one_to_one"))]}, "a range of 2 dimensions to a buffer of 1"),
        ({"tasks": [task("t", [64], ("P", "read", {"kind": "spiral"}))]}, "spiral"),
        ({"tasks": [task("t", [64], ("P", "look", "all"))]}, "look"),
        ({"tasks": [{"name": "t", "range": [0]}]}, "range has 0"),
        ({"buffers": [{"name": "P", "shape": [8]}] * 2}, "two buffers are named 'P'"),
        ({"buffers": [{"name": "P", "shape": [1 << 40, 1 << 40]}]}, "bytes; accepted are"),
        ({"loops": 3}, "unknown field `loops`"),
    ],
)
def test_wrong_programs(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    path = written(tmp_path / "wrong.json", json.dumps(n_body(1) | change))
    refused = refusal("discover", str(path), "--nodes", "4")
    assert said in refused
    assert refused.count("\n") == 1


def test_unwritten_data_is_named(tmp_path: Path) -> None:
    wrong = {"buffers": [{"name": "A", "shape": [8]}], "tasks": [task("t", [8], ("A", "read", "one_to_one"))]}
    path = written(tmp_path / "wrong.json", json.dumps(wrong))
    refused = refusal("discover", str(path), "--nodes", "4")
    assert "task 't', buffer 'A', rank 0: it reads [0, 2), which nothing has written" in refused


@pytest.mark.parametrize("arguments", [["--nodes", "0"], ["--nodes", "-1"], ["--nodes", "4", "--rules", "some"], []])
def test_wrong_options(file: str, arguments: list[str]) -> None:
    assert refusal("discover", file, *arguments).startswith("error: ")


def test_commands_of_a_rank() -> None:
    discovery = Discovery(4, 1, rows=True)
    a = discovery.buffer("A", (8, 3), 8, initialized=True)
    one, halo = Mapper("one_to_one"), Mapper("neighborhood", halo=(1, 0))
    for _ in range(2):
        discovery.task("relax", 8, [(a, "read_write", one)])
        discovery.task("look", 8, [(a, "read", halo)])
    discovery.flush()
    commands = discovery.commands()
    kinds = [command[0] for command in commands]
    assert kinds == ["execute", "push", "push", "await", "execute"] * 2
    assert commands[0][4:] == ((2,), (4,))
    # Equal regions are the same object, so that results can be cached by region.
    assert commands[1][6] == (((2, 0), (3, 3)),)
    assert commands[1][6] is commands[6][6]
    assert commands[3][5] == ((0, (((1, 0), (2, 3)),)), (2, (((4, 0), (5, 3)),)))
    # Kernel 4 waits for received data; kernel 5 reads the results of kernel 4, and overwrites sent and read data.
    assert commands[4][3] == ([0, 3], None)
    assert commands[5][3] == ([0, 1, 2, 4], None)


def test_operations_have_a_pattern_and_a_root() -> None:
    discovery = Discovery(3, 0)
    a = discovery.buffer("A", 9)
    discovery.task("write", 9, [(a, "write", Mapper("one_to_one"))])
    discovery.task("sum", 1, [(a, "read", Mapper("all"))])
    discovery.flush()
    (found,) = [command for command in discovery.commands() if command[0] == "collective"]
    operation = found[6]
    assert (operation.pattern, operation.participants, operation.root) == ("gather", [0, 1, 2], 0)
    assert found[7:] == ((((0,), (3,)),), (((3,), (9,)),))


def test_a_function_as_mapper() -> None:
    def mirrored(low: Sequence[int], high: Sequence[int], shape: Sequence[int]) -> list[tuple[list[int], list[int]]]:
        return [([shape[0] - high[0]], [shape[0] - low[0]])]

    discovery = Discovery(4)
    a = discovery.buffer("A", 8)
    discovery.task("write", 8, [(a, "write", Mapper("one_to_one"))])
    discovery.task("turn", 8, [(a, "read", Mapper.of("mirrored", mirrored))])
    discovery.flush()
    assert discovery.report()["messages"]["p2p"] == 4
    with pytest.raises(un.InputError, match=r"task 'bad', buffer 'A'.*ZeroDivisionError"):
        discovery.task("bad", 8, [(a, "read", Mapper.of("broken", lambda *_: 1 // 0))])
    assert Mapper("slice", dim=1) == Mapper("slice", dim=1) != Mapper("slice", dim=0)
    with pytest.raises(un.InputError, match="mapper slice takes dim; given is nothing"):
        Mapper("slice")


def test_ranks_that_differ_are_seen() -> None:
    ranks = [Discovery(2, rank) for rank in range(2)]
    for rank, discovery in enumerate(ranks):
        a = discovery.buffer("A", 8, initialized=True)
        discovery.task("same", 8, [(a, "read", Mapper("all"))])
        discovery.task("other" if rank else "one", 8, [(a, "read", Mapper("all"))])
    (first, zero), (_, one) = (discovery.chain_links() for discovery in ranks)
    assert ranks[0].chain[0] == ranks[1].chain[0] == 3
    differing = [first + k for k, (a, b) in enumerate(zip(zero, one, strict=True)) if a != b]
    assert differing == [2]
    assert ranks[1].submission(2) == "task 'other'"


@pytest.mark.parametrize("whole", [False, True])
def test_rows_that_are_written_by_columns_are_gathered(tmp_path: Path, whole: bool) -> None:
    """Step t reads row t - 1, or all rows before t like RSim, and writes columns of row t: one collective a row."""
    steps, columns = 5, 12
    made = [
        task(
            f"step {t}",
            [columns],
            (
                "R",
                "read",
                {"kind": "fixed", "offset": [0, 0], "extent": [t, columns]}
                if whole
                else {"kind": "row", "index": t - 1},
            ),
            ("R", "write", {"kind": "row_chunk", "index": t}),
        )
        for t in range(1, steps)
    ]
    path = written(tmp_path / "rsim.json", json.dumps(program(made, R=[steps, columns])))
    for nodes in (2, 3, 4, 12):
        found = json_of("discover", str(path), "--nodes", str(nodes))
        # Every rank gets the elements of rows 1 to 3 that other ranks wrote, and no row twice.
        assert found["messages"]["collective"] == steps - 2
        assert found["messages"]["collective_bytes"] == (steps - 2) * columns * 8 * (nodes - 1)
        assert found["messages"]["p2p"] == 0
        assert [forward["collective"] for forward in found["forwards"]] == ["allgather"] * (steps - 2)
        if not whole:
            regions = [forward["region"] for forward in found["forwards"]]
            assert regions == [[[[t, 0], [t + 1, columns]]] for t in range(1, steps - 1)]
    discovery = Discovery(2)
    table, line = discovery.buffer("R", (5, columns)), discovery.buffer("L", 8)
    with pytest.raises(un.InputError, match="row_chunk names row 5; the buffer has 0 to 4"):
        discovery.task("t", columns, [(table, "write", Mapper("row_chunk", index=5))])
    with pytest.raises(un.InputError, match="row_chunk maps to columns; the buffer has 1 dimension"):
        discovery.task("t", 8, [(line, "write", Mapper("row_chunk", index=1))])


@pytest.mark.parametrize("more", [{"granularity": 2}, {"op": "max"}, {"op": "sum", "granularity": [2, 1]}])
def test_granularity_is_one_number_and_operators_are_accepted(tmp_path: Path, more: dict[str, Any]) -> None:
    path = tmp_path / "program.json"

    def parts(granularity: object) -> Any:
        step = task("step", [6, 4], ("A", "read_write", "one_to_one"))
        gather = task("all", [6, 4], ("A", "read", "all"))
        first = {**step, **more} if granularity is None else {**step, "granularity": granularity}
        path.write_text(json.dumps(program([first, gather], A=[6, 4])))
        return json_of("discover", str(path), "--nodes", "4")

    assert parts(None)["forwards"] == parts(more.get("granularity", 1))["forwards"] == parts([2, 1])["forwards"]
    path.write_text(json.dumps(program([{**task("t", [4]), "op": "xor"}])))
    assert "expected one of `sum`, `prod`, `min`, `max`" in refusal("discover", str(path), "--nodes", "2")


def test_programs_of_row_chunks_run() -> None:
    def step(before: Any, row: Any) -> None:
        row[0] = before[0] + 1

    code = tasks.Program()
    rows = code.zeros((4, 6), name="R")
    for t in range(1, 4):
        code.task(step, range=6, reads=[rows[tasks.row_chunk(t - 1)]], writes=[rows[tasks.row_chunk(t)]])
    assert "0 collectives" in str(code.explain(nodes=3))
    code.run()
    assert code.fetch(rows).tolist() == [[t] * 6 for t in range(4)]


def test_a_file_that_is_no_program_is_refused(tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    for text in ("#!/bin/sh\necho\n", ""):
        script.write_text(text)
        ran = call("discover", str(script), "--nodes", "2")
        assert (ran.code, ran.err.count("\n")) == (2, 1)
        assert "job.sh' is no program; accepted are a .py file and a program in JSON" in ran.err
