"""Kernels compiled by Numba, on devices, and on the host of one rank."""

import itertools
import math
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numba
import numpy as np
import pytest
import unisono as un
from unisono.tasks import Program, View, all_, halo, mapper, one_to_one, row, slice_
from unisono.tasks._regions import common, without

from ..mpi.standin import DeviceArray, StandIn, install

Offsets = tuple[tuple[int, ...], ...]


def compiled(**options: Any) -> Callable[[Callable[..., None]], Any]:
    """Returns `numba.njit` with a type, which Numba lacks."""
    return numba.njit(**options)  # type: ignore[no-any-return]


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    yield install()
    del sys.modules["cupy"]


@compiled()
def nbody_step(p: Any, v: Any, offsets: Any) -> None:
    for i in range(len(v)):
        for j in range(len(p)):
            r = 1e-9
            for k in range(3):
                r += (p[j, k] - p[i + offsets[1][0], k]) ** 2
            for k in range(3):
                v[i, k] += 1e-3 * (p[j, k] - p[i + offsets[1][0], k]) / r**1.5


@compiled()
def nbody_move(v: Any, p: Any) -> None:
    p += 1e-3 * v


def nbody(step: Any, move: Any, steps: int = 5, **options: Any) -> Any:
    program = Program()
    p = program.array((24, 3), init=np.random.default_rng(1).normal(size=(24, 3)), name="P")
    v = program.zeros((24, 3), name="V")
    for _ in range(steps):
        program.task(step, range=24, reads=[p[all_]], updates=[v[one_to_one]], offsets=True, name="step", **options)
        program.task(move, range=24, reads=[v[one_to_one]], updates=[p[one_to_one]], name="move", **options)
    return program, p


def test_numba_kernels_compile_once() -> None:
    program, p = nbody(nbody_step, nbody_move)
    python, q = nbody(nbody_step.py_func, nbody_move.py_func)
    # The compiler may use fused multiply-adds, which round differently.
    assert np.allclose(program.fetch(p), python.fetch(q), rtol=1e-13, atol=1e-13)
    assert (len(nbody_step.signatures), len(nbody_move.signatures)) == (1, 1)
    nbody(nbody_step, nbody_move)[0].run()
    assert (len(nbody_step.signatures), len(nbody_move.signatures)) == (1, 1)


def test_numba_kernels_see_rows_and_strided_tiles() -> None:
    """One kernel runs on whole rows and on strided tiles, for which Numba compiles two versions."""

    @compiled()
    def add(a: Any, b: Any, total: Any) -> None:
        for i in range(len(a)):
            for j in range(a.shape[1]):
                b[i, j] = a[i, j] + 1
                total[0] += a[i, j]

    program = Program()
    a, b = program.array((6, 8), init=np.arange(48).reshape(6, 8)), program.zeros((6, 8), dtype=int)
    total = program.zeros(1, dtype=int)
    for _ in range(10):
        for box, offset in (((6, 8), (0, 0)), ((4, 3), (1, 2))):
            reads, writes = [a[one_to_one]], [b[one_to_one]]
            program.task(add, range=box, reads=reads, updates=writes, reduces=[total[all_]], offset=offset)
    assert program.fetch(b).tolist() == (np.arange(48).reshape(6, 8) + 1).tolist()
    assert program.fetch(total).tolist() == [np.arange(48).reshape(6, 8)[1:5, 2:5].sum()]
    assert len(add.signatures) == 2


def test_numba_kernels_that_write_what_they_read() -> None:
    program = Program()
    names = ("first", "second", "third")
    first, second, third = (program.zeros(4, name=name) for name in names)

    @compiled()
    def wrong(a: Any, b: Any, c: Any) -> None:
        c[0] = a[0]
        b[0] = 1

    program.task(wrong, 4, reads=[first[one_to_one], second[one_to_one]], updates=[third[one_to_one]])
    with pytest.raises(un.InputError, match=r"task 'wrong': its kernel writes to 'second', .* modify readonly array"):
        program.run()

    @compiled()
    def offset(a: Any) -> None:
        a[0] = a.offset[0]

    program = Program()
    program.task(offset, 4, updates=[program.zeros(4)[one_to_one]], name="told")
    with pytest.raises(
        un.InputError, match=r"task 'told': Numba cannot compile its kernel; offsets come .* offsets=True"
    ):
        program.run()


def test_errors_of_kernels_name_the_task() -> None:
    program = Program()
    a, b = program.zeros(4, name="a"), program.zeros(4, name="b")

    def wrong(a: View, b: View) -> None:
        a += 1

    program.task(wrong, 4, reads=[a[one_to_one]], updates=[b[one_to_one]])
    with pytest.raises(ValueError, match=r"(?s)read-only.*kernel of task 'wrong'; arrays that .* read-only: a$"):
        program.run()


def test_offsets_reach_every_kernel(device: StandIn) -> None:
    program = Program()
    a = program.array((6, 4), init=np.zeros((6, 4)))
    seen: list[Offsets] = []

    def look(rows: Any, tile: Any, whole: Any, offsets: Offsets) -> None:
        seen.append(offsets)

    for on in ("numpy", "cupy"):
        reads = [a[row(2)], a[one_to_one], a[slice_(1)]]
        program.task(look, range=(2, 2), reads=reads, offset=(2, 1), offsets=True, on=on)
    program.run()
    assert seen == [((2, 0), (2, 1), (2, 0))] * 2


def test_nothing_is_copied_between_steps_on_a_device(device: StandIn) -> None:
    def step(p: Any, v: Any, offsets: Offsets) -> None:
        away = p[None] - p[offsets[1][0] : offsets[1][0] + len(v), None]
        v += 1e-3 * (away / ((away**2).sum(axis=2, keepdims=True) + 1e-9) ** 1.5).sum(axis=1)

    def move(v: Any, p: Any) -> None:
        p += 1e-3 * v

    program, p = nbody(step, move, on="cupy")
    program.run()
    assert (device.up, device.down) == (2 * 24 * 3, 0)
    host, q = nbody(step, move)
    assert (device.up, device.down) == (2 * 24 * 3, 0)
    assert np.array_equal(program.fetch(p), host.fetch(q))
    assert device.down == 24 * 3
    program.fetch(p)
    assert device.down == 24 * 3


def test_a_host_kernel_costs_what_it_touches(device: StandIn) -> None:
    program = Program()
    a, b = program.array(100, init=np.arange(100)), program.array(100, init=np.zeros(100, int))

    def smooth(a: Any, b: Any) -> None:
        b[...] = a[: len(b)] + 1

    def touch(b: Any) -> None:
        b += 1

    program.task(smooth, range=90, reads=[a[halo(1)]], writes=[b[one_to_one]], on="cupy")
    program.task(touch, range=5, updates=[b[one_to_one]], offset=10)
    program.task(smooth, range=90, reads=[b[halo(1)]], writes=[a[one_to_one]], on="cupy")
    program.run()
    # Copied to the device: 91 elements of a, five that the host changed, and the last one, which no kernel wrote.
    assert (device.up, device.down) == (91 + 5 + 1, 5)
    expected = np.arange(100)
    expected_b = np.concatenate([expected[:90] + 1, np.zeros(10, int)])
    expected_b[10:15] += 1
    expected[:90] = expected_b[:90] + 1
    assert program.fetch(b).tolist() == expected_b.tolist()
    assert program.fetch(a).tolist() == expected.tolist()


def test_what_lies_between_boxes_stays(device: StandIn) -> None:
    """If a mapper returns two boxes, the view spans both, and elements between them keep their values."""
    ends = mapper(lambda low, high, shape: [((0,), (1,)), ((shape[0] - 1,), (shape[0],))])

    def write(a: Any) -> None:
        a[0], a[-1] = 7, 8

    def add(a: Any) -> None:
        a += 1

    for first, second, third in itertools.product(("numpy", "cupy"), repeat=3):
        program = Program()
        a = program.array(6, init=np.arange(6))
        program.task(add, 6, updates=[a[one_to_one]], on=first)
        program.task(write, 1, writes=[a[ends]], on=second)
        program.task(add, 6, updates=[a[one_to_one]], on=third)
        assert program.fetch(a).tolist() == [8, 3, 4, 5, 6, 9]


def test_reductions_on_a_device(device: StandIn) -> None:
    program = Program()
    a, top = program.array(9, init=-np.arange(1.0, 10.0)), program.zeros(1)

    def largest(a: Any, top: Any) -> None:
        assert top[0] == -np.inf
        top[...] = a.max()

    program.task(largest, range=9, reads=[a[one_to_one]], reduces=[top[all_]], op="max", on="cupy")
    assert program.fetch(top).tolist() == [-1]


def test_writes_to_reads_on_a_device_are_found(device: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNISONO_CHECK_READS", "1")
    program = Program()
    a, b = program.zeros(6, name="a"), program.zeros(6, name="b")

    def in_place(wide: Any, own: Any) -> None:
        own += wide[1 : 1 + len(own)]

    program.task(in_place, range=3, reads=[a[halo(1)]], updates=[a[one_to_one]], offset=2, on="cupy")
    program.run()

    def wrong(a: Any, b: Any) -> None:
        a[...] = 1

    program.task(wrong, range=6, reads=[a[one_to_one]], updates=[b[one_to_one]], on="cupy")
    with pytest.raises(un.InputError, match="task 'wrong': its kernel writes to 'a', which the task only reads"):
        program.run()


def test_what_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def program_on(on: str) -> Program:
        program = Program()
        program.task(lambda a: None, range=4, updates=[program.zeros(4)[one_to_one]], on=on, name="t")
        return program

    with pytest.raises(un.InputError, match="task 't': on is 'tpu'; accepted are numpy, cupy"):
        program_on("tpu")
    monkeypatch.setitem(sys.modules, "cupy", None)
    program = program_on("cupy")
    # Without a device the program can be explained, but not run.
    assert program.explain(4).forwards == []
    with pytest.raises(un.InputError, match="need CuPy, which is not there"):
        program.run()
    monkeypatch.setitem(sys.modules, "cupy", StandIn(devices=0))
    with pytest.raises(un.InputError, match="CuPy finds none"):
        program_on("cupy").run()


@pytest.mark.parametrize("devices", [None, 1, 3])
def test_devices_read_old_contents_of_what_a_task_changes(monkeypatch: pytest.MonkeyPatch, devices: int | None) -> None:
    monkeypatch.setitem(sys.modules, "cupy", StandIn(devices=3))

    def smooth(old: Any, new: Any, offsets: Any) -> None:
        first = offsets[1][0] - offsets[0][0]
        for k in range(len(new)):
            new[k : k + 1] = old[max(first + k - 1, 0) : first + k + 2].mean()

    found = []
    for on, count in (("numpy", None), ("cupy", devices)):
        program = Program(devices=count)
        a = program.array(20, init=np.arange(20.0) ** 2, name="a")
        for _ in range(3):
            reads, updates = [a[halo(1)]], [a[one_to_one]]
            program.task(smooth, range=20, reads=reads, updates=updates, on=on, offsets=True)
        found.append(program.fetch(a))
    assert np.array_equal(found[0], found[1])
    expected = np.arange(20.0) ** 2
    for _ in range(3):
        expected = np.array([expected[max(k - 1, 0) : k + 2].mean() for k in range(20)])
    assert np.allclose(found[0], expected, rtol=1e-14)


def test_host_tasks_run_in_their_turn(device: StandIn) -> None:
    program = Program()
    a, said = program.array((4, 2), init=np.zeros((4, 2))), []

    def add(a: Any) -> None:
        a += 1

    def say(whole: View, first: View) -> None:
        assert not isinstance(whole, DeviceArray)
        said.append((whole.sum(), first.shape, whole.flags.writeable))

    for on in ("cupy", "numpy"):
        program.task(add, range=4, updates=[a[one_to_one]], on=on)
        program.host_task(say, reads=[a, a[row(0)]])
    program.host_task(lambda a: np.copyto(a, 7), writes=[a], name="set")
    assert program.fetch(a).tolist() == [[7, 7]] * 4
    assert said == [(8, (1, 2), False), (16, (1, 2), False)]
    found = program.explain(4)
    assert [f["collective"] for f in found.forwards if f["before_task"] == "say"] == ["gather"] * 2


def test_regions_subtract() -> None:
    draw = np.random.default_rng(0)
    for dims in (1, 2, 3):
        for _ in range(200):
            lows = draw.integers(0, 5, (2, 3, dims))
            boxes = [tuple((tuple(low), tuple(low + draw.integers(1, 4, dims))) for low in part) for part in lows]
            a, b = without(boxes[0][:1], ()), boxes[1]
            left = without(a, b)
            marks = np.zeros((9,) * dims, int)
            for box in left:
                marks[tuple(slice(*ends) for ends in zip(*box, strict=True))] += 1
            expected = np.zeros((9,) * dims, int)
            for region, value in ((a, 1), (b, 0)):
                for box in region:
                    expected[tuple(slice(*ends) for ends in zip(*box, strict=True))] = value
            assert (marks == expected).all()
            volume = sum(math.prod(np.subtract(high, low)) for low, high in left)
            assert volume + np.count_nonzero(expected == 0) == math.prod((9,) * dims)
            assert common(left, b) == ()
