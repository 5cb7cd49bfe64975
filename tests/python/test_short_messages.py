"""Short messages of a tuned plan stay the library's unless a schedule clearly wins them."""

import unisono as un
from unisono.tuning.measuring import Contest, Timing
from unisono.tuning.tables import Cell, Contender, Family, rows_of


def timing(*rounds: float) -> Timing:
    return Timing(list(rounds), "", 1, 1)


def test_a_round_of_a_short_message_is_won_against_the_librarys_fastest() -> None:
    contest = Contest(2, [timing(1.0, 0.4, 1.1), timing(0.6, 0.3, 0.5)])
    assert contest.won(1) == 3
    assert contest.won_all(1) == 1


def rows(left: bool) -> list[tuple[int, int | None, bool]]:
    """Returns the rows of two sizes that a schedule wins: first byte, last byte, True if the schedule serves it."""
    machine = un.machine("archer", 2)
    family = Family("allreduce", 2, [2, 4096])
    plan = [un.plan("allreduce", machine, elements=n, algorithm="recursive-doubling") for n in (2, 4096)]
    cells = [
        Cell("allreduce", 2, 2, count, 6, [Contender(None, 1e-5, 0), Contender(made, 5e-6, 6, True, left and short)])
        for count, made, short in zip((2, 4096), plan, (True, False), strict=True)
    ]
    family.cells[2] = cells
    return [(row.first_bytes, row.last_bytes, row.plan is not None) for row in rows_of(family, machine)]


def test_a_row_for_long_messages_does_not_reach_down_to_short_ones() -> None:
    assert rows(left=False) == [(0, None, True)]
    (first, last, serves), (_, end, serves_long) = rows(left=True)
    assert (first, serves, end, serves_long) == (0, False, None, True)
    assert last is not None
    assert 8 < last < 4 * 4096
