"""Allgather, reduce-scatter, alltoall and scan on a wafer: planned, proved, simulated, and compared with bounds."""

import pytest
import unisono as un

from .conftest import call, json_of

KINDS = ("allgather", "reduce-scatter", "alltoall", "scan")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(1, 2), (1, 12), (9, 1), (4, 4), (5, 7)])
def test_they_are_proved_and_run_in_no_less_than_their_bound(kind: str, shape: tuple[int, int]) -> None:
    for elements in (1, 24):
        plan = un.plan(kind, "wse2", shape=shape, elements=elements)
        assert plan.schedule.verify().holds
        run = un.simulate(plan.schedule)
        assert run.result_correct
        assert plan.bound is not None
        assert plan.bound["name"] == "blocks"
        assert run.cycles is not None
        assert run.cycles >= (plan.bound["cycles"] or 0)


@pytest.mark.parametrize(("pes", "elements"), [(8, 64), (16, 256)])
def test_long_blocks_on_a_line(pes: int, elements: int) -> None:
    # Long sums use one direction at a time: P + 2 blocks at one element a cycle, and two latencies of a chain.
    scattered = un.simulate(un.plan("reduce-scatter", "wse2", shape=pes, elements=elements).schedule)
    assert scattered.cycles is not None
    assert scattered.cycles <= (pes + 2) * elements + 15 * (pes - 1)
    # PEs in the middle wait for half of the time, which is the factor 1.5.
    gathered = un.simulate(un.plan("allgather", "wse2", shape=pes, elements=elements).schedule)
    assert gathered.cycles is not None
    assert gathered.cycles <= 1.5 * (pes + 1) * elements + 6 * (pes - 1)


@pytest.mark.parametrize("shape", [2, 3, 4, 5, 16, 33, 64, (4, 6), (5, 7)])
def test_predictions_are_near_the_simulated_time(shape: int | tuple[int, int]) -> None:
    for elements in (1, 8, 16, 64, 256) if isinstance(shape, int) else (1, 8, 40):
        for kind, share in (("allgather", 0.03), ("reduce-scatter", 0.07)):
            plan = un.plan(kind, "wse2", shape=shape, elements=elements, algorithm="two-way")
            cycles = un.simulate(plan.schedule).cycles
            assert cycles is not None
            predicted = plan.predicted["cycles"]
            assert predicted == pytest.approx(cycles, rel=share, abs=8), (kind, elements)


@pytest.mark.parametrize("shape", [2, 3, 4, 8, 9, 16, 33, (4, 6), (5, 7), (8, 8)])
def test_the_prediction_of_an_alltoall_is_near_the_simulated_time(shape: int | tuple[int, int]) -> None:
    # In an odd line the turns of the middle PE decide which lane waits.
    share = 0.09 if isinstance(shape, int) and shape % 2 else 0.045
    for elements in (1, 4, 16, 64) if isinstance(shape, int) else (1, 8):
        plan = un.plan("alltoall", "wse2", shape=shape, elements=elements, algorithm="two-way")
        cycles = un.simulate(plan.schedule).cycles
        assert cycles is not None
        assert plan.predicted["cycles"] == pytest.approx(cycles, rel=share, abs=6), elements


@pytest.mark.parametrize("columns", [2, 3, 8, 17, 64])
def test_the_prediction_of_an_allgather_on_two_rows_is_that_of_its_rows_and_an_exchange(columns: int) -> None:
    for elements in (1, 3, 7, 64):
        row, grid = (
            un.simulate(un.plan("allgather", "wse2", shape=shape, elements=elements, algorithm="two-way").schedule)
            for shape in ((1, columns), (2, columns))
        )
        assert row.cycles is not None
        block = columns * elements
        assert grid.cycles == row.cycles + max(2 * block, block + 6)


@pytest.mark.parametrize(("shape", "elements"), [((2, 64), 16), ((12, 12), 16), (49, 48)])
def test_a_plan_of_an_alltoall_takes_its_simulated_time(shape: int | tuple[int, int], elements: int) -> None:
    plan = un.plan("alltoall", "wse2", shape=shape, elements=elements)
    assert plan.predicted["cycles"] == pytest.approx(un.simulate(plan.schedule).cycles, rel=0.02)


def test_the_shorter_order_of_a_reduce_scatter_is_taken() -> None:
    # The other order, with the sums of the farthest PE first, would take 3295 cycles.
    run = un.simulate(un.plan("reduce-scatter", "wse2", shape=64, elements=31).schedule)
    assert run.cycles is not None
    assert run.cycles <= 65 * 31 + 12 * 62 + 6


def test_a_scan_on_a_line_takes_the_time_of_a_chain() -> None:
    for pes, elements in ((8, 64), (64, 256)):
        run = un.simulate(un.plan("scan", "wse2", shape=pes, elements=elements).schedule)
        assert run.cycles == elements + 6 * (pes - 1)


def test_an_operator_that_does_not_commute_keeps_its_order() -> None:
    scan = un.plan("scan", "wse2", shape=(3, 4), elements=5, op="ordered", dtype="i64")
    assert scan.schedule.verify().holds
    line = un.plan("reduce-scatter", "wse2", shape=6, elements=5, op="ordered", dtype="i64")
    assert line.schedule.verify().holds
    where = ("--machine", "wse2", "--shape", "3x4", "--elements", "5", "--dtype", "i64", "--op", "ordered")
    ran = call("plan", "reduce-scatter", *where)
    assert ran.code == 2
    named = call("plan", "reduce-scatter", *where, "--algorithm", "two-way")
    assert "on a grid it adds columns before rows, and operator ordered does not commute" in named.err


def test_the_bound_of_an_alltoall_is_its_cut() -> None:
    bounds = json_of("bound", "alltoall", "--machine", "wse2", "--shape", "1x16", "--elements", "10")["bounds"]
    # 8 x 8 blocks of 10 elements cross the middle link, with the latency of a ramp, a hop and a ramp.
    assert [(b["name"], b["cycles"]) for b in bounds] == [("blocks", 64 * 10 + 6)]
