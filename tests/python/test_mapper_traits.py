"""Mappers of users: registration derives their traits from one call with symbols."""

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from unisono._core import Discovery, InputError, Mapper
from unisono.tasks import mapper

from .conftest import SOAK

Point = Sequence[Any]
Boxes = list[tuple[Point, Point]]
Function = Callable[[Point, Point, Point], Boxes]
SIZE = 24

#: Pairs of a built-in mapper of two dimensions and an equal function of a user.
SAME: list[tuple[Mapper, Function]] = [
    (Mapper("one_to_one"), lambda low, high, _: [(low, high)]),
    (Mapper("all"), lambda _low, _high, shape: [((0, 0), shape)]),
    (Mapper("slice", dim=0), lambda low, high, shape: [((0, low[1]), (shape[0], high[1]))]),
    (Mapper("slice", dim=1), lambda low, high, shape: [((low[0], 0), (high[0], shape[1]))]),
    (Mapper("transposed", perm=(1, 0)), lambda low, high, _: [(low[::-1], high[::-1])]),
    (Mapper("neighborhood", halo=(1, 0)), lambda low, high, _: [((low[0] - 1, low[1]), (high[0] + 1, high[1]))]),
    (Mapper("shift", offset=(2, 0)), lambda low, high, _: [((2 + low[0], low[1]), (2 + high[0], high[1]))]),
    (Mapper("fixed", offset=(1, 1), extent=(3, 3)), lambda *_: [((1, 1), (4, 4))]),
    (Mapper("row", index=3), lambda _low, _high, shape: [((3, 0), (4, shape[1]))]),
]


def forwards(discovery: Discovery) -> list[tuple[Any, ...]]:
    """Returns the forwards of a program by the rules of the paper, with the collectives that they become."""
    discovery.flush()
    return [(f["after_index"], f["before_index"], f["region"], f["collective"]) for f in discovery.report()["forwards"]]


@pytest.mark.parametrize("seed", range(200 if SOAK else 40))
def test_functions_are_found_like_the_mappers_that_they_equal(seed: int) -> None:
    draw = random.Random(seed)
    theirs = [mapper(function) for _, function in SAME]
    tasks = []
    for _ in range(6):
        write = draw.choice([0, 4])
        size = draw.choice([(SIZE, SIZE), (SIZE, SIZE), (1, 1)])
        tasks.append((size, draw.randrange(2), write if size != (1, 1) else 1, draw.randrange(len(SAME))))
    nodes = draw.choice([2, 3, 4])

    def found(mappers: list[Mapper]) -> list[tuple[Any, ...]]:
        discovery = Discovery(nodes, rules="paper")
        buffers = [discovery.buffer(name, (SIZE, SIZE), 8, True) for name in "AB"]
        for size, target, write, read in tasks:
            accesses = [(buffers[target], "write", mappers[write]), (buffers[1 - target], "read", mappers[read])]
            discovery.task("t", size, accesses)
        return forwards(discovery)

    assert found(theirs) == found([built_in for built_in, _ in SAME])


def pattern(function: Function, *, from_all: bool, readers: int = SIZE) -> str | None:
    """Returns the collective before a task that reads, by `function`, data written by all nodes or by one node."""
    discovery = Discovery(4, rules="paper")
    a = discovery.buffer("A", SIZE, 8, True)
    writer = Mapper("one_to_one") if from_all else Mapper("all")
    discovery.task("write", SIZE if from_all else 1, [(a, "write", writer)])
    discovery.task("read", readers, [(a, "read", mapper(function))])
    found = forwards(discovery)
    return found[-1][3] if found else None


@pytest.mark.parametrize("seed", range(300 if SOAK else 60))
def test_traits_of_linear_functions_are_true(seed: int) -> None:
    draw = random.Random(seed)
    factors, offsets = [0] * 4, [0] * 2

    def ends(low: Any, high: Any) -> tuple[Any, Any]:
        return factors[0] * low + factors[1] * high + offsets[0], factors[2] * low + factors[3] * high + offsets[1]

    even = [[(start, start + size) for start in range(0, SIZE - size, size)] for size in range(1, 9)]
    while any(start >= end for cut in even for start, end in (ends(*part) for part in [*cut, (0, SIZE)])):
        factors[:] = (draw.choice([-1, 0, 0, 1, 2]) for _ in range(4))
        offsets[:] = (draw.choice([0, 0, 1, 3, SIZE]) for _ in range(2))

    def of_user(low: Point, high: Point, _shape: Point) -> Boxes:
        start, end = ends(low[0], high[0])
        return [((start,), (end,))]

    # The images of even parts of all sizes show if the function is constant or has no overlap.
    images = [[ends(*part) for part in cut] for cut in even]
    constant = len({ends(0, SIZE), *(image for cut in images for image in cut)}) == 1
    apart = all(
        min(end, other_end) <= max(start, other)
        for cut in images
        for n, (start, end) in enumerate(cut)
        for other, other_end in cut[:n]
    )
    try:
        all_read, one_wrote = pattern(of_user, from_all=True), pattern(of_user, from_all=False)
    except InputError:
        pytest.skip("the drawn function is not monotone, or maps beyond the array")
    assert all_read == ("allgather" if constant else None) or factors == [1, 0, 0, 1]
    if one_wrote == "broadcast":
        assert constant
    elif one_wrote == "scatter":
        assert apart


def test_functions_beyond_linear_forms() -> None:
    reflected: Function = lambda low, high, shape: [((shape[0] - high[0],), (shape[0] - low[0],))]  # noqa: E731
    assert pattern(reflected, from_all=False) == "scatter"
    doubled: Function = lambda low, high, _: [((low[0] * 2,), (2 * high[0],))]  # noqa: E731
    assert pattern(doubled, from_all=False, readers=SIZE // 2) == "scatter"
    ends: Function = lambda _low, _high, shape: [((0,), (1,)), ((shape[0] - 1,), (shape[0],))]  # noqa: E731
    assert (pattern(ends, from_all=True), pattern(ends, from_all=False)) == ("allgather", "broadcast")
    beyond: tuple[Function, ...] = (
        lambda low, high, _: [((max(low[0], 0),), (high[0],))],
        lambda low, high, _: [((low[0] // 1,), (high[0],))],
        lambda low, high, _: [((0 if low[0] == 0 else low[0],), (high[0],))],
        lambda low, high, _: [((range(SIZE + 1)[low[0]],), (high[0],))],
        lambda low, high, _: [(({0: 0}.get(low[0], low[0]),), (high[0],))],
    )
    for unknown in beyond:
        assert pattern(unknown, from_all=False) is None
    with pytest.raises(KeyboardInterrupt):
        mapper(lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
