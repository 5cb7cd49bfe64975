"""Integers of 16 bits on wafers, two in a wavelet: plans, proofs and runs."""

from pathlib import Path

import numpy as np
import pytest
import unisono as un


@pytest.mark.parametrize("collective", ["reduce", "allreduce", "broadcast", "reduce-scatter", "alltoall", "scan"])
def test_plans_are_those_of_half_as_many_wavelets(collective: str) -> None:
    draws = np.random.default_rng(47)
    for _ in range(3):
        shape = tuple(int(side) for side in draws.integers(2, 6, 2))
        count = int(draws.integers(1, 40))
        short = un.plan(collective, "wse2", shape=shape, elements=2 * count, dtype="int16")
        long = un.plan(collective, "wse2", shape=shape, elements=count, dtype="i32")
        assert short.predicted["seconds"] == long.predicted["seconds"]
        assert short.bound["seconds"] == long.bound["seconds"]
        assert short.schedule.verify()
        ran, beside = un.simulate(short.schedule), un.simulate(long.schedule)
        assert ran.result_correct
        assert ran.cycles == beside.cycles


def test_sums_wrap_in_each_element() -> None:
    made = un.plan("allreduce", "wse2", shape=(3, 4), elements=10, dtype="i16")
    inputs = np.random.default_rng(1).integers(-(2**15), 2**15, (12, 10), dtype=np.int16)
    expected = inputs.sum(axis=0, dtype=np.int16)
    assert all((found == expected).all() for found in made.schedule.interpret(list(inputs)))


def test_elements_fill_their_wavelets(tmp_path: Path) -> None:
    with pytest.raises(un.UnsupportedError, match="a wavelet carries 2 elements of i16"):
        un.plan("reduce", "wse2", shape=(4, 4), elements=7, dtype="i16")
    with pytest.raises(un.UnsupportedError, match="no wavelet carries elements of f16"):
        un.plan("reduce", "wse2", shape=(4, 4), elements=8, dtype="f16")
    with pytest.raises(un.NotExpressibleError, match="one f32 or i32"):
        un.emit(un.plan("reduce", "wse2", shape=(4, 4), elements=8, dtype="i16").schedule, "csl", tmp_path)
