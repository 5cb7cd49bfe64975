"""Predicted times of programs of tasks agree with plans, closed forms and simulators; wrong requests are refused."""

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
import unisono as un
from unisono.base.reports import PricedOperation
from unisono.discovery.prediction import Prediction, total_lines
from unisono.tasks import Explanation, Program, View, all_, fixed, neighborhood, one_to_one
from unisono.tasks.recording import record

from .conftest import ROOT, json_of, refusal, text_of, written

EXAMPLES = ["fft2d", "jacobi", "matmul", "nbody", "power", "wave"]
LOGGP = """
name = "linear"
kind = "endpoint"
model = "loggp"
L_ns = 900
o_ns = 120
g_ns = 300
G_ns_per_byte = 0.25
alpha_ns = 1000
beta_ns_per_byte = 0.5
"""


def nothing(*_: View) -> None:
    """A kernel that is never run."""


def n_body(bodies: int, steps: int) -> Program:
    program = Program()
    p, v = program.zeros((bodies, 3), name="P"), program.zeros((bodies, 3), name="V")
    for _ in range(steps):
        program.task(nothing, range=bodies, reads=[p[all_]], updates=[v[one_to_one]], name="step")
        program.task(nothing, range=bodies, reads=[v[one_to_one]], updates=[p[one_to_one]], name="move")
    return program


def wave(rows: int, columns: int, steps: int) -> Program:
    program = Program()
    now, before = program.zeros((rows, columns), name="now"), program.zeros((rows, columns), name="before")
    for _ in range(steps):
        program.task(nothing, range=rows, reads=[now[neighborhood(1)]], updates=[before[one_to_one]], name="step")
        now, before = before, now
    return program


def messages(explained: Explanation) -> list[PricedOperation]:
    assert explained.by_messages is not None
    return explained.by_messages.operations


@pytest.mark.parametrize("machine", ["archer", "paper-sim", "hx2mesh-small", "torus2d-small"])
@pytest.mark.parametrize("nodes", [2, 7, 64])
def test_n_body_is_so_many_planned_all_gathers(machine: str, nodes: int) -> None:
    steps, part = 6, 3 * 24
    explained = n_body(nodes * 24, steps).explain(nodes, machine=machine)
    plan = un.plan("allgather", machine, shape=nodes, elements=part, dtype="f64")
    assert explained.predicted == (steps - 1) * plan.predicted["seconds"]
    (row,) = explained.operations
    assert (row["pattern"], row["count"], row["ranks"]) == ("allgather", steps - 1, nodes)
    assert (row["algorithm"], row["params"], row["ratio"]) == (plan.algorithm, plan.params, plan.ratio)
    assert (row["lower_bound"], row["counts"], row["places"]) == (plan.bound, "exact", "own")
    assert (row["gives"], row["gets"]) == ([part * 8] * 2, [part * 8 * (nodes - 1)] * 2)


@pytest.mark.parametrize("machine", ["archer", "paper-sim", "hx2mesh-small", "torus2d-small", "fattree-small"])
@pytest.mark.parametrize("nodes", [2, 4, 16, 64])
def test_a_planned_all_gather_is_never_slower_than_its_messages(machine: str, nodes: int) -> None:
    for bodies in (nodes, 64 * nodes):
        explained = n_body(bodies, 2).explain(nodes, machine=machine)
        assert explained.by_messages is not None
        # Messages in another order load links slightly differently.
        assert (explained.predicted or 0) <= explained.by_messages.seconds * 1.02


def test_unlike_parts_are_as_large_as_the_largest_and_that_is_said() -> None:
    explained = n_body(10, 2).explain(4, machine="paper-sim")
    (row,) = explained.operations
    # 10 bodies on 4 ranks are 3, 3, 2 and 2 bodies, of 24 bytes each.
    assert (row["counts"], row["part_bytes"], row["gives"]) == ("largest", 72, [48, 72])
    assert row["seconds"] == un.plan("allgather", "paper-sim", shape=4, elements=9, dtype="f64").predicted["seconds"]
    assert "(equal parts of the largest)" in str(explained)
    # Messages between pairs have the lengths of their parts.
    (alone,) = messages(explained)
    assert (alone["counts"], alone["messages"], alone["bytes"]) == ("exact", 12, 30 * 24)


def halo_ns(model: str, n: int) -> float:
    """Returns the nanoseconds of a message of n bytes from each rank to each of two neighbors, by docs/endpoints.md."""
    if model == "postal":
        return 2 * (1000 + 0.5 * n)
    latency, o, g, rest = 900, 120, 300, 0.25 * (n - 1)
    # The second message leaves when the interface is free; if a message from a neighbor has arrived by then, the CPU
    # receives that message first.
    second = g + rest
    if second > o + latency:
        second = max(second, o + latency + o + rest)
    return second + o + latency + o + rest


@pytest.mark.parametrize("model", ["postal", "loggp"])
@pytest.mark.parametrize("columns", [16, 4096])
def test_halo_is_the_closed_form(tmp_path: Path, model: str, columns: int) -> None:
    file = written(tmp_path / "linear.toml", LOGGP)
    steps = 5
    explained = wave(64, columns, steps).explain(8, machine=file, model=model, simulate=True)
    expected = (steps - 1) * halo_ns(model, 8 * columns) / 1e9
    assert explained.predicted == pytest.approx(expected, rel=1e-9)
    assert explained.prediction is not None
    assert explained.prediction.simulated_seconds == pytest.approx(expected, rel=1e-9)
    assert explained.prediction.model == model
    assert {(row["pattern"], row["algorithm"], row["messages"]) for row in explained.operations} == {
        ("halo", "messages", 14)
    }


def test_messages_of_a_network_take_their_busiest_link_and_longest_way() -> None:
    description = un.machine("torus2d-small").describe()
    hop = sum(description[key] for key in ("output_latency_ns", "link_latency_ns", "input_latency_ns"))
    # 3.2 MB to each neighbor in a row of a torus: no link carries two messages.
    bytes_ = 8 * 400_000
    explained = wave(32, 400_000, 3).explain(32, machine="torus2d-small", simulate=True)
    transfer = bytes_ / description["planes"] / description["link_gbps"] * 8
    for row in explained.operations:
        # A rank sends two messages, one after the other, and receives, with an overhead each.
        host = 3 * description["host_overhead_ns"]
        assert row["seconds"] * 1e9 == pytest.approx(hop + host + transfer, rel=1e-9)
        assert row["simulated_seconds"] == pytest.approx(row["seconds"], rel=0.01)


def test_messages_are_one_proved_schedule() -> None:
    discovery = n_body(10, 2)._discovered(4, "off")
    (moved,) = discovery.moved()
    schedule = moved.schedule()
    assert schedule.ranks == 4
    assert schedule.verify()
    assert moved.message_list()[:3] == [(0, 1, 9), (0, 2, 9), (0, 3, 9)]
    # As an alltoall the schedule would be incomplete.
    assert not un.Schedule.parse(schedule.to_text()).verify()


@pytest.mark.parametrize("machine", ["archer", "hx2mesh-small"])
@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_on_machines(example: str, machine: str) -> None:
    file = str(ROOT / "examples" / "tasks" / f"{example}.py")
    found = json_of("discover", file, "--nodes", "16", "--machine", machine, "--simulate")
    plain = json_of("discover", file, "--nodes", "16")
    assert {key: found[key] for key in plain} == plain
    assert set(found) - set(plain) == {"machine", "predicted", "point_to_point"}
    predicted, alone = found["predicted"], found["point_to_point"]
    assert found["machine"] == machine
    assert predicted["operations"]
    for part in (predicted, alone):
        rows = part["operations"]
        assert part["seconds"] == sum(row["seconds"] * row["count"] for row in rows)
        assert part["seconds"] == pytest.approx(sum(task["seconds"] for task in part["tasks"]), rel=1e-12)
        for row in rows:
            # Among ranks the model equals the simulator; on a network they differ slightly (docs/networks.md).
            near = 1e-12 if machine == "archer" else 0.25
            assert row["simulated_seconds"] == pytest.approx(row["seconds"], rel=near)
            assert row["ratio"] is None or row["ratio"] >= 1 - 1e-9
    assert alone["ratio"] == alone["seconds"] / predicted["seconds"]
    collectives = sum(row["count"] for row in predicted["operations"] if row["messages"] is None)
    assert collectives == found["messages"]["collective"]
    listed = sum(row["count"] * (row["messages"] or 0) for row in predicted["operations"])
    assert listed == found["messages"]["p2p"]
    for kind, messages_ in (("collective_bytes", False), ("p2p_bytes", True)):
        moved = [row for row in predicted["operations"] if (row["messages"] is not None) == messages_]
        assert sum(row["bytes"] * row["count"] for row in moved) == found["messages"][kind]


def test_a_program_in_json_is_predicted_as_one_in_python(tmp_path: Path) -> None:
    access = {"buffer": "P", "mode": "read", "mapper": {"kind": "all"}}
    own = {"buffer": "P", "mode": "write", "mapper": {"kind": "one_to_one"}}
    buffers = [{"name": "P", "shape": [64], "host_initialized": True, "element_bytes": 24}]
    tasks = [{"name": "step", "range": [64], "accesses": [own]}, {"name": "look", "range": [64], "accesses": [access]}]
    file = written(tmp_path / "program.json", json.dumps({"buffers": buffers, "tasks": tasks * 3}))
    found = json_of("discover", str(file), "--nodes", "8", "--machine", "archer")
    assert (
        found["predicted"]["seconds"] == 3 * un.plan("allgather", "archer", shape=8, elements=24).predicted["seconds"]
    )
    assert un.discover(file, 8, machine="archer")["predicted"] == found["predicted"]
    text = text_of("discover", str(file), "--nodes", "8", "--machine", "archer", "--model", "pipelining-postal")
    assert "allgather" in text
    assert "by messages between pairs alone" in text


@pytest.mark.parametrize("machine", ["archer", "hx2mesh-small"])
def test_off_has_no_collectives_and_equals_the_comparison(machine: str) -> None:
    program = record(str(ROOT / "examples" / "tasks" / "jacobi.py")).program
    full, off = program.explain(9, machine=machine), program.explain(9, rules="off", machine=machine)
    assert full.by_messages is not None
    assert off.predicted == full.by_messages.seconds
    assert {row["algorithm"] for row in off.operations} == {"messages"}
    assert {row["algorithm"] for row in full.operations} > {"messages"}


def test_some_of_the_ranks_are_priced_where_they_are() -> None:
    """A collective of some ranks is priced on their own accelerators, which may be near or far apart."""
    program = Program()
    a, b = program.array(64, name="a", dtype=float), program.zeros(64, name="b")
    program.task(nothing, range=64, writes=[a[one_to_one]], name="write")
    program.task(nothing, range=1, reads=[a[fixed(60, 4)]], writes=[b[all_]], name="read")
    near, far = (program.explain(nodes, machine="torus2d-small") for nodes in (2, 64))
    (row,) = far.operations
    assert row["participants"] in ([[0, 0], [60, 63]], [[0, 0], [60, 60]], [[0, 0], [63, 63]])
    assert row["places"] == "own"
    assert near.operations[0]["seconds"] < row["seconds"]


def test_levels_without_a_place_are_said(tmp_path: Path) -> None:
    file = tmp_path / "two.toml"
    file.write_text(
        "name='two'\nkind='endpoint'\nmodel='postal'\nalpha_ns=1000\nbeta_ns_per_byte=1\n"
        "[[levels]]\nname='node'\nsize=4\nalpha_ns=100\n"
    )
    among_all = n_body(64, 3).explain(8, machine=file)
    assert "first ranks of the machine" not in str(among_all)
    assert among_all.operations[0]["places"] == "own"
    program = Program()
    a, b = program.array(64, name="a", dtype=float), program.zeros(64, name="b")
    program.task(nothing, range=64, writes=[a[one_to_one]], name="write")
    program.task(nothing, range=1, reads=[a[fixed(32, 32)]], writes=[b[all_]], name="read")
    among_some = program.explain(8, machine=file)
    (row,) = among_some.operations
    assert (row["pattern"], row["participants"], row["places"]) == ("gather", [[0, 0], [4, 7]], "first")
    assert "first ranks of the machine" in str(among_some)


def test_a_shape_of_a_network_says_where_ranks_lie() -> None:
    mesh = un.machine("hx2mesh-small", shape=(8, 8))
    explained = n_body(6400, 3).explain(64, machine=mesh, simulate=True)
    plan = un.plan("allgather", mesh, elements=300, dtype="f64")
    assert explained.predicted == 2 * plan.predicted["seconds"]
    assert explained.prediction is not None
    assert explained.prediction.simulated_seconds == 2 * un.simulate(plan.schedule, mesh).seconds


def test_long_loops_have_few_rows() -> None:
    short, long = (n_body(4096, steps).explain(64, machine="archer") for steps in (11, 1001))
    assert len(long.operations) == len(short.operations) == 1
    assert long.predicted == pytest.approx(100 * (short.predicted or math.nan))


def test_free_bytes_are_noted() -> None:
    """Long messages are too fast on ``archer``, which has no price of a byte, so a note says so."""
    note = "a byte costs nothing on this machine"
    for bodies, machine, noted in ((4096, "archer", True), (4096, "paper-sim", False), (8, "archer", False)):
        explained = n_body(bodies, 2).explain(8, machine=machine)
        assert (note in str(explained)) == noted
        assert explained.prediction is not None
        assert any(note in one for one in explained.prediction.notes) == noted
        assert explained.report()["predicted"]["notes"] == explained.prediction.notes
        scaling = n_body(bodies, 2).scaling(machine, [8], kernels={"step": 1, "move": 1})
        assert (note in str(scaling)) == noted


def test_faster_messages_are_noted() -> None:
    """A text notes if messages between pairs are predicted to be faster than collectives."""
    alone, found = (Prediction("m", "p", seconds, None, [], []) for seconds in (1.0, 2.0))
    assert "messages between pairs are faster here" in "".join(total_lines(found, alone))
    assert "faster" not in "".join(total_lines(alone, found))
    assert "faster" not in "".join(total_lines(alone, alone))


@pytest.mark.parametrize("bodies", [64, 65, 100])
def test_bytes_of_a_row_are_those_of_a_plan(bodies: int) -> None:
    """A plan of the printed number of bytes takes the printed time, also if parts differ by a row."""
    explained = n_body(bodies, 2).explain(4, machine="paper-sim")
    (row, *_) = explained.operations
    planned = un.plan(row["pattern"], "paper-sim", shape=4, bytes=row["part_bytes"], dtype="f64")
    assert row["seconds"] == pytest.approx(planned.predicted["seconds"], rel=1e-9)
    assert re.search(rf"\b{row['part_bytes']} +{row['algorithm']}\b", str(explained))
    assert "bytes: of a collective as --bytes of 'unisono plan'" in str(explained)


def test_counts_are_english() -> None:
    assert str(n_body(64, 2).explain(4)).endswith(
        "4 nodes: 1 collective (4608 bytes), 0 messages between pairs (0 bytes)"
    )


def test_one_node_communicates_nothing() -> None:
    explained = n_body(64, 3).explain(1, machine="archer")
    assert (explained.predicted, explained.operations) == (0, [])
    assert "0.000 µs" in str(explained)
    assert str(explained).endswith("1 node: no communication (0 collectives, 0 messages)")
    assert explained.report()["point_to_point"]["ratio"] is None
    assert n_body(64, 3).explain(4).predicted is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"machine": "nowhere"}, "nowhere"),
        ({"machine": "nowhere.toml"}, "does not exist"),
        ({"machine": "hx4mesh-small", "nodes": 2000}, "2000 ranks do not fit on hx4mesh-small"),
        ({"machine": "archer", "model": "links"}, "'links' is not a model"),
        ({"machine": "archer", "model": "loggp"}, "L_ns is missing"),
        ({"machine": "hx4mesh-small", "model": "loggp"}, "accepted are links, packets and data-sheet on a network"),
        ({"machine": "archer", "nodes": 0}, "accepted are 1"),
        ({"nodes": -1}, "nodes is -1; accepted are 1 to 1048576"),
        ({"machine": "archer", "nodes": -1}, "nodes is -1; accepted are 1 to 1048576"),
        ({"simulate": True}, "needs a machine"),
        ({"model": "loggp"}, "needs a machine"),
    ],
)
def test_wrong_input_is_named(options: dict[str, Any], said: str) -> None:
    with pytest.raises(un.InputError, match=said):
        n_body(64, 2).explain(**{"nodes": 8, **options})


@pytest.mark.parametrize("machine", ["wse2", "piuma"])
def test_machines_without_messages_are_refused(machine: str) -> None:
    with pytest.raises(un.UnsupportedError, match=f"{machine} is of kind .*; programs of tasks are predicted on"):
        n_body(64, 2).explain(8, machine=machine)
    refused = refusal("discover", str(ROOT / "examples" / "tasks" / "wave.py"), "--nodes", "4", "--machine", machine)
    assert machine in refused
