"""The library against independent computations: naive recursions and closed forms in plain Python."""

import math
from functools import cache

import numpy as np
import pytest
import unisono as un
from unisono import _core
from unisono.base.reports import in_cycles
from unisono.reproduce import wafer_formulas as formulas

INFINITE = math.inf


@cache
def naive_energy(pes: int, depth: int, contention: int) -> float:
    """Returns e(P, D, C) by the recursion of section 5.5, as printed."""
    if pes == 1:
        return 0
    if depth == 0 or contention == 0:
        return INFINITE
    return min(
        naive_energy(i, depth, contention - 1) + naive_energy(pes - i, depth - 1, contention) + i for i in range(1, pes)
    )


@cache
def paper_bound_energy(pes: int, depth: int) -> float:
    """Returns the least energy for one wavelet by the paper's Lemma 5.5."""
    if pes == 1:
        return 0
    if depth == 0:
        return INFINITE
    return min(naive_min(i, pes, depth) for i in range(1, pes))


def naive_min(i: int, pes: int, depth: int) -> float:
    return paper_bound_energy(i, depth) + paper_bound_energy(pes - i, depth - 1) + min(i, pes - i + 1)


def bound_of(pes: int, length: int, name: str) -> float:
    bounds = un.bounds("reduce", "wse2", shape=pes, elements=length)
    return in_cycles({bound["name"]: bound for bound in bounds}[name])


@pytest.mark.parametrize("pes", range(2, 15))
def test_energy_has_a_closed_form(pes: int) -> None:
    for depth in range(1, pes):
        for contention in range(1, pes):
            assert formulas.auto_gen_energy(pes, depth, contention) == naive_energy(pes, depth, contention)


@pytest.mark.parametrize("length", [1, 3, 8, 64, 1000])
@pytest.mark.parametrize("pes", range(2, 21))
def test_auto_gen_is_the_optimum_of_the_recursion(pes: int, length: int) -> None:
    best = min(
        max(length * contention, length * naive_energy(pes, depth, contention) / (pes - 1) + pes - 1) + 5 * depth
        for depth in range(1, pes)
        for contention in range(1, pes)
    )
    found = _core.auto_gen(pes, length)
    assert found["cycles"] == pytest.approx(best, rel=1e-12)
    assert found["energy"] == naive_energy(pes, found["depth"], found["contention"])


@pytest.mark.parametrize(("pes", "length"), [(512, 1), (512, 256), (512, 1024), (300, 77), (1000, 10)])
def test_auto_gen_at_size(pes: int, length: int) -> None:
    assert _core.auto_gen(pes, length)["cycles"] == pytest.approx(formulas.auto_gen(pes, length), rel=1e-12)


def test_auto_gen_of_512_pes() -> None:
    assert _core.auto_gen(512, 1) == pytest.approx(
        {"depth": 3, "contention": 13, "energy": 4836, "cycles": 535.46}, abs=0.01
    )
    assert _core.auto_gen(512, 256) == pytest.approx(
        {"depth": 31, "contention": 2, "energy": 991, "cycles": 1162.47}, abs=0.01
    )


@pytest.mark.parametrize("length", [1, 5, 64, 1000])
@pytest.mark.parametrize("pes", [2, 3, 4, 7, 12, 16, 23])
def test_lower_bounds_are_those_of_the_recursions(pes: int, length: int) -> None:
    paper = min(length * paper_bound_energy(pes, d) / (pes - 1) + pes - 1 + 5 * d for d in range(1, pes))
    # A contention of `pes` messages is no limit.
    tight = min(length * naive_energy(pes, d, pes) / (pes - 1) + pes - 1 + 5 * d for d in range(1, pes))
    assert bound_of(pes, length, "paper-1d") == pytest.approx(paper, rel=1e-12)
    assert bound_of(pes, length, "tight-1d") == pytest.approx(tight, rel=1e-12)
    assert paper <= tight * (1 + 1e-12)


def test_ratios_of_figure_1_are_plans_over_bounds() -> None:
    lengths = [1, 16, 512]
    ratios = _core.reduce_optimality(12, lengths)
    assert set(ratios) == {"star", "chain", "tree", "two-phase", "auto-gen"}
    for name, table in ratios.items():
        assert table.shape == (11, 3)
        for pes in (2, 3, 8, 12):
            for column, length in enumerate(lengths):
                plan = un.plan("reduce", "wse2", shape=pes, elements=length, algorithm=name, params={}, model="paper")
                expected = in_cycles(plan.predicted) / bound_of(pes, length, "paper-1d")
                assert table[pes - 2, column] == pytest.approx(expected, rel=1e-12), (name, pes, length)


@pytest.mark.parametrize("length", [1, 2, 7, 64, 1000])
@pytest.mark.parametrize("pes", [2, 3, 5, 8, 16, 17, 64])
def test_closed_forms_are_what_the_schedules_cost(pes: int, length: int) -> None:
    def cycles(collective: str, algorithm: str) -> float:
        plan = un.plan(collective, "wse2", shape=pes, elements=length, algorithm=algorithm, params={}, model="paper")
        return in_cycles(plan.schedule.predict("paper"))

    assert cycles("broadcast", "flood") == formulas.message(pes, length)
    assert cycles("reduce", "chain") == formulas.chain(pes, length)
    assert cycles("reduce", "star") <= formulas.star(pes, length)
    assert cycles("allreduce", "chain") == formulas.chain(pes, length) + formulas.message(pes, length)
    if pes & (pes - 1) == 0:
        assert cycles("reduce", "tree") == pytest.approx(formulas.tree(pes, length))
    if length % pes == 0:
        assert cycles("allreduce", "ring") == pytest.approx(formulas.ring(pes, length))


def two_phase_exact(pes: int, length: int, group: int) -> float:
    """Returns the cycles by Eq. 1 with the exact terms of Two-Phase, with groups formed from the far end."""
    groups = math.ceil(pes / group)
    contention = length if group == 1 or groups == 1 or group == pes - 1 else 2 * length
    energy = length * (2 * pes - groups - group if groups > 1 else pes - 1)
    return max(contention, energy / (pes - 1) + pes - 1) + 5 * (group + groups - 2)


@pytest.mark.parametrize("length", [1, 7, 300])
@pytest.mark.parametrize("pes", [4, 9, 10, 16, 31, 64])
def test_two_phase_of_any_group(pes: int, length: int) -> None:
    for group in {2, 3, math.isqrt(pes), pes - 1}:
        params = {"group": str(group)}
        plan = un.plan(
            "reduce", "wse2", shape=pes, elements=length, algorithm="two-phase", params=params, model="paper"
        )
        assert plan.predicted["cycles"] == pytest.approx(two_phase_exact(pes, length, group)), group
        assert plan.schedule.predict("paper")["cycles"] == pytest.approx(plan.predicted["cycles"])


@pytest.mark.parametrize(("rows", "columns"), [(2, 2), (3, 5), (8, 8), (1, 7), (7, 1)])
@pytest.mark.parametrize("length", [1, 33, 1000])
def test_grid_forms(rows: int, columns: int, length: int) -> None:
    def cycles(collective: str, algorithm: str) -> float:
        plan = un.plan(
            collective, "wse2", shape=(rows, columns), elements=length, algorithm=algorithm, params={}, model="paper"
        )
        return in_cycles(plan.predicted)

    lines = sum(formulas.chain(side, length) for side in (rows, columns) if side > 1)
    assert cycles("broadcast", "flood") == formulas.broadcast_2d(rows, columns, length)
    assert cycles("reduce", "chain") == lines
    assert cycles("reduce", "snake") == formulas.chain(rows * columns, length)
    assert cycles("allreduce", "chain") == lines + formulas.broadcast_2d(rows, columns, length)


@pytest.mark.parametrize("shape", [(5,), (16,), (4, 4), (3, 7)])
@pytest.mark.parametrize("length", [1, 17, 256])
def test_no_plan_is_below_its_bound(shape: tuple[int, ...], length: int) -> None:
    for collective in ("reduce", "allreduce", "broadcast"):
        plan = un.plan(collective, "wse2", shape=shape, elements=length, model="links")
        ratios = [c["ratio"] or 0 for c in plan.candidates if c["algorithm"] != "star"]
        assert min(ratios) >= 1 - 1e-12, (collective, plan.candidates)
        assert np.all(np.diff([c["cycles"] for c in plan.candidates]) >= 0)
