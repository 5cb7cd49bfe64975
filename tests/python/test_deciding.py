"""What `unisono tune` chooses, from made-up times: no cliffs along ranks, one boundary between two sizes."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unisono.planning.decisions import CLEARLY, LIBRARY, Times, between, boundary, choose, deciding

SIZES = 5
NAMES = ("a", "b", "c")
seconds = st.floats(1e-7, 1e-1)
column = st.lists(st.none() | seconds, min_size=SIZES, max_size=SIZES)
sure = st.lists(seconds, min_size=SIZES, max_size=SIZES)


@st.composite
def tables(draw: st.DrawFn) -> tuple[int, int, Times, Times, dict[int, Times]]:
    """Deciding times on two numbers of ranks, and a model's on all from one to the other."""
    first = draw(st.integers(2, 40))
    last = first + draw(st.integers(1, 30))
    ends: list[Times] = [{LIBRARY: draw(sure)} | {name: draw(column) for name in NAMES} for _ in range(2)]
    # A model with steps, as powers of two have them.
    steps = {name: draw(st.lists(seconds, min_size=4, max_size=4)) for name in NAMES}
    models: dict[int, Times] = {
        n: {name: [steps[name][n % 4] * (size + 1) * math.log2(n) for size in range(SIZES)] for name in NAMES}
        for n in range(first, last + 1)
    }
    return first, last, ends[0], ends[1], models


@settings(max_examples=300, deadline=None)
@given(tables())
def test_no_cliff_between_neighbouring_numbers_of_ranks(table: tuple[int, int, Times, Times, dict[int, Times]]) -> None:
    """What is chosen at n + 1 takes at most `CLEARLY` times what the choice at n takes there, wherever that serves."""
    first, last, low, high, models = table
    times = {n: between(n, (first, low), (last, high), models) for n in range(first + 1, last)}
    times |= {first: low, last: high}
    chosen = {n: choose(times[n]) for n in times}
    for n in range(first, last):
        for here, there in ((n, n + 1), (n + 1, n)):
            for size in range(SIZES):
                mine = times[there][chosen[there][size]][size]
                theirs = times[there].get(chosen[here][size], [None] * SIZES)[size]
                assert mine is not None
                assert theirs is None or mine <= CLEARLY * theirs * (1 + 1e-12)
                # So never worse than the library by more than that, either.
                library = times[there][LIBRARY][size]
                assert library is not None
                assert mine <= CLEARLY * library * (1 + 1e-12)


@settings(max_examples=100, deadline=None)
@given(tables())
def test_interpolated_times_meet_the_measured_ones(table: tuple[int, int, Times, Times, dict[int, Times]]) -> None:
    first, last, low, high, models = table
    for n in range(first + 1, last):
        library = between(n, (first, low), (last, high), models)[LIBRARY]
        for size, time in enumerate(library):
            ends = low[LIBRARY][size], high[LIBRARY][size]
            assert time is not None
            assert ends[0] is not None
            assert ends[1] is not None
            assert min(ends[0], ends[1]) * (1 - 1e-9) <= time <= max(ends[0], ends[1]) * (1 + 1e-9)


def test_a_model_without_steps_bends_the_interpolation() -> None:
    # Measured twice what the model says at 4, and the same as it at 16; 8 lies in the middle of the logarithms.
    models: dict[int, Times] = {4: {"a": [1.0]}, 8: {"a": [5.0]}, 16: {"a": [2.0]}}
    found = between(8, (4, {LIBRARY: [9.0], "a": [2.0]}), (16, {LIBRARY: [9.0], "a": [2.0]}), models)
    assert list(found["a"]) == [pytest.approx(5 * math.sqrt(2))]


def test_what_wins_nowhere_wins_nowhere_between() -> None:
    models: dict[int, Times] = {4: {"a": [1.0]}, 5: {"a": [0.1]}, 6: {"a": [1.0]}}
    found = between(5, (4, {LIBRARY: [1.0], "a": [1.0]}), (6, {LIBRARY: [1.0], "a": [1.0]}), models)
    assert choose(found) == [LIBRARY]


@given(st.lists(st.tuples(seconds, seconds), min_size=1, max_size=12))
def test_ties_and_noise_do_not_make_islands(pairs: list[tuple[float, float]]) -> None:
    library, schedule = [a for a, _ in pairs], [b for _, b in pairs]
    chosen = choose({LIBRARY: library, "a": schedule})
    for size, name in enumerate(chosen):
        time = {LIBRARY: library, "a": schedule}[name][size]
        assert time <= CLEARLY * min(pairs[size])
    # An island of one size gains more than the two changes cost.
    for size in range(1, len(chosen) - 1):
        if chosen[size - 1] == chosen[size + 1] != chosen[size]:
            other = {LIBRARY: library, "a": schedule}[chosen[size - 1]][size]
            mine = {LIBRARY: library, "a": schedule}[chosen[size]][size]
            assert other >= mine * CLEARLY * (1 - 1e-12)


def test_the_library_stays_where_nothing_is_clearly_faster() -> None:
    assert deciding(0.90, won=6, rounds=6, library=1.0) == 0.90
    assert deciding(0.90, won=4, rounds=6, library=1.0) == 1.0
    assert deciding(0.96, won=6, rounds=6, library=1.0) == 1.0
    assert choose({LIBRARY: [1.0, 1.0], "a": [1.0, 1.0]}) == [LIBRARY, LIBRARY]
    assert choose({LIBRARY: [1.0, 1.0, 1.0], "a": [0.5, 1.0, 0.5]}) == ["a", "a", "a"]


@given(st.integers(1, 10**6), st.integers(1, 10**6), *[seconds] * 4)
def test_a_boundary_lies_between_its_sizes(first: int, more: int, a: float, b: float, c: float, d: float) -> None:
    at = boundary((first, first + more), (a, b), (c, d))
    assert first <= at < first + more


def test_regions_meet_where_both_take_equally_long() -> None:
    # In logarithms one takes 1 and 4, the other 2 and 2: they cross after a third of the way from 4 to 256 bytes.
    assert boundary((4, 256), (10.0, 10_000.0), (100.0, 100.0)) == 16
