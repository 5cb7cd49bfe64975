"""The number of calls that a contest makes, and the contenders of a tuned cell."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import unisono as un
from unisono.tuning.measuring import Contest, contest
from unisono.tuning.pieces import in_other_pieces
from unisono.tuning.tables import LIBRARY, Cell, Contender


class Timed:
    """A contestant whose calls take a known time; the first call takes longer because it connects."""

    def __init__(self, clock: list[float], seconds: float, first: float) -> None:
        self.clock, self.seconds, self.first = clock, seconds, first
        self.made = self.served = 0

    def caller(self, *_: Any, **__: Any) -> Callable[[int], None]:
        def call(times: int) -> None:
            for _ in range(times):
                self.clock[0] += self.first if self.made == 0 else self.seconds
                self.made += 1

        return call


def ran(rounds: int, *contestants: Timed) -> Contest:
    clock = contestants[0].clock
    mpi = SimpleNamespace(Wtime=lambda: clock[0], MAX=None, IN_PLACE=None)
    comm = SimpleNamespace(
        size=2, rank=0, allreduce=lambda value, op: value, Barrier=lambda: None, Allreduce=lambda *_, op: None
    )
    return contest(mpi, comm, contestants, "allreduce", 16, rounds)  # type: ignore[arg-type]


def test_a_long_call_is_made_once_a_round_and_a_short_one_often() -> None:
    clock = [0.0]
    long, short = Timed(clock, 2.0, 2.0), Timed(clock, 1e-3, 5.0)
    found = ran(9, long, short)
    assert long.made == 2 + 9
    # The time to connect does not matter.
    assert short.made == 4 + 9 * 20
    assert [timing.calls for timing in found.timings] == [long.made, short.made]
    assert [timing.seconds for timing in found.timings] == pytest.approx([2.0, 1e-3])


def test_each_algorithm_is_chosen_at_its_fastest_number_of_pieces() -> None:
    tree = un._core.import_network("0 4\n1 4\n2 5\n3 5\n4 6\n5 6\n", "edges", "edges", "tree", 1, 4)
    first = un.plan("reduce", tree, bytes=1 << 20, algorithm="forest")
    number = int(first.params["chunks"])
    others = in_other_pieces([first], tree, 4, 1 << 18)
    assert [int(plan.params["chunks"]) for plan in others] == [number // 4, number * 4]
    assert {plan.algorithm for plan in others} == {"forest"}
    # A plan that divides the vector is proposed with other pieces too. If no plan divides the vector, one is added.
    star = un._core.import_network("0 4\n1 4\n2 4\n3 4\n", "edges", "edges", "star", 1, 4)
    whole, cut = (un.plan("allgather", star, elements=1 << 16, algorithm=name) for name in ("ring", "forest"))
    params = [plan.params for plan in in_other_pieces([whole, cut], star, 4, 1 << 16)]
    assert {int(one["chunks"]) for one in params} <= {int(cut.params["chunks"]) * 4, int(cut.params["chunks"]) // 4}
    added = in_other_pieces([whole], star, 4, 1 << 16)
    assert [plan.params for plan in added] == [cut.params, *params]
    assert in_other_pieces([], tree, 4, 1) == []
    short = un.plan("reduce", tree, elements=1, algorithm="forest")
    assert in_other_pieces([short], tree, 4, 1) == []
    times = {None: 3.0, first: 2.5, others[0]: 1.0, others[1]: 2.0}
    contenders = [Contender(plan, seconds, 6) for plan, seconds in times.items()]
    cell = Cell("reduce", 4, 1, 1 << 18, 6, contenders)
    assert [(one.plan, one.seconds) for one in cell.fastest] == [(None, 3.0), (others[0], 1.0)]
    (cell.chosen,) = un._core.chosen([cell.fastest], 6)
    assert [cell.is_chosen(contender) for contender in contenders] == [False, False, True, False]
    cell.chosen = LIBRARY
    assert [cell.is_chosen(contender) for contender in contenders] == [True, False, False, False]
