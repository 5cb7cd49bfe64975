"""Rows of a tuned table after their second measurement."""

import random
from itertools import pairwise

import pytest
import unisono as un
from unisono.tuning.confirming import LEAST_FACTOR, Trial, joined, kept, refusal, trial_counts
from unisono.tuning.measuring import alone
from unisono.tuning.tables import Row

KIB = 1024
SHORT_RULE = "below 2 KiB it needs "


@pytest.fixture(scope="module")
def schedule() -> un.Plan:
    return un.plan("allreduce", "archer", shape=4, bytes="4KiB", algorithm="recursive-doubling")


def served(rows: list[Row]) -> list[tuple[int, int | None, str]]:
    return [(row.first_bytes, row.last_bytes, row.name) for row in rows]


def test_a_row_is_timed_at_the_sizes_that_it_serves_and_at_its_ends(schedule: un.Plan) -> None:
    row = Row("allreduce", 4, 4, 1001, 9000, schedule, True)
    assert trial_counts(row, [64, 512, 1024, 4096]) == [251, 512, 1024, 2250]
    # A schedule of 16 equal blocks serves only multiples of 16 elements.
    assert trial_counts(row, [64, 512, 1000, 1024, 4096], 16) == [256, 512, 1024, 2240]
    assert trial_counts(row, [64], 4096) == []
    without_ends = Row("allreduce", 4, 4, 0, None, schedule, True)
    assert trial_counts(without_ends, [2, 64]) == [2, 64]
    assert trial_counts(Row("allreduce", 4, 4, 5, 7, schedule, True), [1, 2]) == []


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([(4 * KIB, True)], [(100, None, "recursive-doubling")]),
        ([(4 * KIB, False)], [(100, None, "library")]),
        ([], [(100, None, "library")]),
        ([(4 * KIB, True), (8 * KIB, False)], [(100, 4096, "recursive-doubling"), (4097, None, "library")]),
        ([(4 * KIB, False), (8 * KIB, True)], [(100, 8191, "library"), (8192, None, "recursive-doubling")]),
        (
            [(KIB, True), (2 * KIB, True), (4 * KIB, False), (8 * KIB, True), (16 * KIB, False)],
            [
                (100, 2048, "recursive-doubling"),
                (2049, None, "library"),
            ],
        ),
    ],
)
def test_a_row_keeps_the_sizes_that_were_confirmed(
    schedule: un.Plan, verdicts: list[tuple[int, bool]], expected: list[tuple[int, int | None, str]]
) -> None:
    # A single confirmed size between refused sizes is left to the library.
    row = Row("allreduce", 4, 4, 100, None, schedule, True, "openmpi 5.0.11 spin own")
    assert served(kept(row, verdicts)) == expected
    assert all((part.tuned is None) == (part.plan is None) for part in kept(row, verdicts))
    bounded = kept(Row("allreduce", 4, 4, 100, 20 * KIB, schedule, True), verdicts)
    assert served(bounded) == [(first, 20 * KIB if last is None else last, name) for first, last, name in expected]


@pytest.mark.parametrize("seed", range(20))
def test_no_range_of_a_schedule_is_shorter_than_a_factor_of_two(seed: int, schedule: un.Plan) -> None:
    draw = random.Random(seed)
    first = draw.choice([0, 1, draw.randint(2, 10**6)])
    last = draw.choice([None, first + draw.randint(0, 10**6)])
    row = Row("allreduce", 4, 4, first, last, schedule, True)
    sizes = [4 * count for count in trial_counts(row, sorted(draw.sample(range(1, 10**6), 6)))]
    verdicts = [(size, draw.random() < 0.6) for size in sizes]
    rows = kept(row, verdicts)
    assert (rows[0].first_bytes, rows[-1].last_bytes) == (first, last)
    assert all(one.ends_before(other) for one, other in pairwise(rows))
    for part in rows:
        if part.plan is None:
            continue
        assert part.last_bytes is None or part.last_bytes + 1 >= LEAST_FACTOR * max(part.first_bytes, 1)
        inside = [good for size, good in verdicts if part.covers("allreduce", 4, 4, size)]
        assert inside
        assert all(inside)


def test_neighbours_that_the_library_serves_are_one_row(schedule: un.Plan) -> None:
    rows = [
        Row("allreduce", 4, 4, 0, 99, None, True),
        *kept(Row("allreduce", 4, 4, 100, None, schedule, True), [(4 * KIB, False)]),
        Row("allreduce", 5, 5, 0, None, None, True),
    ]
    assert [(row.ranks, *served([row])[0]) for row in joined(rows)] == [
        (4, 0, None, "library"),
        (5, 0, None, "library"),
    ]


@pytest.mark.parametrize(
    ("size", "won", "rounds", "idle", "why"),
    [
        (2 * KIB, 5, 6, False, ""),
        (2 * KIB, 4, 6, True, "it needs 5 of 6 rounds below the library's time, and won 4"),
        (2 * KIB - 4, 5, 6, True, ""),
        (2 * KIB - 4, 4, 6, True, SHORT_RULE + "5 of 6 rounds below all times of the library, and won 4"),
        (8, 6, 6, False, SHORT_RULE + "a core for each rank, and cores were shared or busy"),
        (8, 6, 7, True, ""),
        (8, 5, 7, True, SHORT_RULE + "6 of 7 rounds below all times of the library, and won 5"),
    ],
)
def test_what_the_library_serves_again_has_its_reason(size: int, won: int, rounds: int, idle: bool, why: str) -> None:
    """The reason states the rule that failed, which is stricter for short sizes."""
    assert refusal(size, won, rounds, idle=idle) == why


def test_the_report_of_a_trial_has_the_reason() -> None:
    trials = [
        Trial("allreduce", 2, 2, 8, "ring", 0.73, why)
        for why in ("", "it needs 5 of 6 rounds below the library's time, and won 4")
    ]
    assert [(trial.report()["kept"], trial.report()["why"]) for trial in trials] == [
        (True, None),
        (False, "it needs 5 of 6 rounds below the library's time, and won 4"),
    ]


def test_the_empty_message_between_calls_is_taken_off() -> None:
    draw = random.Random(11)
    for _ in range(50):
        # Calls are much shorter than a message, similar, or much longer.
        message = draw.uniform(1, 3)
        calls = [[draw.choice([0.01, 1, 50]) * draw.uniform(1, 2) for _ in range(5)] for _ in range(3)]
        timed = [[call + message for call in of] for of in calls]
        # Other work makes most messages longer, which must not make calls seem shorter.
        found = alone(timed, [2 * message, *(2 * message * draw.choice([1, 20]) for _ in range(4))])
        for of, before, true in zip(found, timed, calls, strict=True):
            assert of == pytest.approx([max(call, 0.1 * time) for call, time in zip(true, before, strict=True)])
            assert sorted(range(5), key=of.__getitem__) == sorted(range(5), key=before.__getitem__)
