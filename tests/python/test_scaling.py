"""Strong scaling by prediction: parts of kernels, communication as in `explain`, pictures."""

import math
from pathlib import Path

import numpy as np
import pytest
import unisono as un
from unisono.tasks import Program, View, all_, one_to_one
from unisono.tasks._scaling import measured, shares


def busy(p: View, v: View) -> None:
    v += np.sin(p).sum() * 1e-3


def idle(*_: View) -> None:
    """A kernel that takes no time."""


def program(size: int, steps: int = 3) -> Program:
    made = Program()
    p, v = made.array((size,), init=np.arange(size, dtype=float), name="P"), made.zeros((size,), name="V")
    for _ in range(steps):
        made.task(busy, range=size, reads=[p[all_]], updates=[v[one_to_one]])
        made.task(idle, range=size, reads=[v[one_to_one]], updates=[p[one_to_one]])
    return made


def test_rows_are_computation_and_explained_communication() -> None:
    made = program(1024)
    scaling = made.scaling("paper-sim", [1, 8, 64], kernels={"busy": 3e-3, "idle": 0.0}, simulate=True)
    for row, nodes in zip(scaling.rows, (1, 8, 64), strict=True):
        explained = made.explain(nodes, machine="paper-sim")
        assert explained.by_messages is not None
        assert row["nodes"] == nodes
        assert row["compute_seconds"] == pytest.approx(3e-3 / nodes)
        assert row["communication_seconds"] == explained.predicted == pytest.approx(row["simulated_seconds"])
        assert row["by_messages_seconds"] == explained.by_messages.seconds
        assert row["seconds"] == row["compute_seconds"] + row["communication_seconds"]
        assert row["speedup"] == pytest.approx(3e-3 / row["seconds"])
        assert row["efficiency"] == pytest.approx(row["speedup"] / nodes)
    assert str(scaling).splitlines()[0].split()[:3] == ["nodes", "compute", "communication"]
    assert len(str(scaling).splitlines()) == 4
    assert "simulated" not in str(made.scaling("archer", [2], kernels={"busy": 1, "idle": 1}))


@pytest.mark.parametrize(("nodes", "largest"), [(1, 10), (2, 5), (3, 4), (4, 3), (10, 1), (64, 1)])
def test_the_largest_part_decides(nodes: int, largest: int) -> None:
    ((seconds, share), _) = shares(program(10), nodes, {"busy": 2.0, "idle": 1.0})
    assert (seconds, share) == (2.0, largest / 10)


def test_parts_of_tiles_and_granules() -> None:
    made = Program()
    a = made.array((12, 12), dtype=float, name="A")
    made.task(idle, range=(12, 12), writes=[a[one_to_one]], split="2d", name="tiles")
    made.task(idle, range=(10, 12), offset=(1, 0), updates=[a[one_to_one]], granularity=(4, 1), name="granules")
    found = dict(zip(("tiles", "granules"), shares(made, 4, {"tiles": 1.0, "granules": 1.0}), strict=True))
    assert found["tiles"] == (1.0, 36 / 144)
    # 10 rows in granules of 4 are at most 3 parts, of which the largest has 4 to 6 rows.
    assert 4 / 10 <= found["granules"][1] <= 6 / 10


def test_kernels_are_measured_on_copies() -> None:
    made = program(200_000)
    seconds = measured(made)
    assert list(seconds) == ["busy", "idle"]
    assert seconds["busy"] > seconds["idle"] >= 0
    before = made.fetch(made.arrays[1])
    assert np.any(before)
    measured(made)
    assert np.array_equal(made.fetch(made.arrays[1]), before)
    (row,) = made.scaling("archer", [1]).rows
    assert (row["communication_seconds"], row["speedup"]) == (0, pytest.approx(1))


def test_the_picture_is_the_same_each_time(tmp_path: Path) -> None:
    scaling = program(256).scaling("paper-sim", [1, 2, 4], kernels={"busy": 1e-3, "idle": 0})
    scaling.plot(tmp_path / "a.png")
    scaling.plot(tmp_path / "b.png", "")
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    assert (tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"
    with pytest.raises(un.InputError, match=r"does not end in \.png"):
        scaling.plot(tmp_path / "a.jpg")


@pytest.mark.parametrize(
    ("kernels", "said"),
    [
        ({"busy": 1.0}, "the tasks are busy, idle"),
        ({"busy": 1.0, "idle": 1.0, "other": 1.0}, "other"),
        ({"busy": -1.0, "idle": 1.0}, "'busy' take -1.0 seconds"),
        ({"busy": math.nan, "idle": 1.0}, "'busy' take nan seconds"),
    ],
)
def test_wrong_kernels_are_named(kernels: dict[str, float], said: str) -> None:
    with pytest.raises(un.InputError, match=said):
        program(16).scaling("archer", [1, 2], kernels=kernels)
    with pytest.raises(un.InputError, match="do not fit on hx4mesh-small"):
        program(16).scaling("hx4mesh-small", [5000], kernels={"busy": 1.0, "idle": 1.0})


@pytest.mark.parametrize("rounds", [1, 2, 3, 10])
@pytest.mark.parametrize("fetches", [False, True])
def test_one_node_is_no_faster_where_a_loop_fetches(rounds: int, fetches: bool) -> None:
    """Fetches share the numbering of tasks, but parts of one task are never counted for another."""
    made = Program()
    a, total = made.zeros(64, name="a"), made.zeros(1, name="total")
    for _ in range(rounds):
        made.task(busy, range=64, reads=[a[all_]], updates=[a[one_to_one]])
        made.task(add, range=64, reads=[a[one_to_one]], reduces=[total[all_]])
        if fetches:
            made.fetch(total)
    rows = made.scaling("paper-sim", [1, 4], kernels={"busy": 3e-3, "add": 1e-3}).rows
    assert [row["compute_seconds"] for row in rows] == [pytest.approx(4e-3), pytest.approx(1e-3)]
    assert (rows[0]["communication_seconds"], rows[0]["speedup"]) == (0, pytest.approx(1))
    assert made.scaling("paper-sim", [1]).rows[0]["speedup"] == pytest.approx(1)


def add(a: View, total: View) -> None:
    total += a.sum()


def test_host_tasks_are_not_executed() -> None:
    made = program(16)
    said: list[View] = []
    made.host_task(said.append, reads=[made.arrays[0]], name="say")
    assert list(measured(made)) == ["busy", "idle"]
    made.scaling("paper-sim", [1, 2])
    given = made.scaling("paper-sim", [1, 2], kernels={"busy": 2e-3, "idle": 0})
    assert [row["compute_seconds"] for row in given.rows] == [pytest.approx(2e-3), pytest.approx(1e-3)]
    # The task `say` runs on one node while the others wait.
    given = made.scaling("paper-sim", [1, 2], kernels={"busy": 2e-3, "idle": 0, "say": 1e-3})
    assert [row["compute_seconds"] for row in given.rows] == [pytest.approx(3e-3), pytest.approx(2e-3)]
    assert said == []
    made.run()
    assert len(said) == 1
