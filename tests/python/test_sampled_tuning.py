"""Tables from a quarter of the measurements, with recorded times in place of measured ones."""

from collections.abc import Mapping
from math import exp, log, log2
from typing import Any

import numpy as np
import pytest
import unisono as un
from unisono.cli import main
from unisono.tuning.choosing import Posterior, explore
from unisono.tuning.measuring import Timing
from unisono.tuning.sampled import TuningPoint, cells_of, expected_of, points_of
from unisono.tuning.tables import LIBRARY, Cell, families_of, rows_of

#: Seconds of a call and of a byte by algorithm; the best algorithm depends on the size.
TIMES = {LIBRARY: (9e-6, 1.2e-9), "recursive-doubling": (3e-6, 1.5e-9), "ring": (2e-5, 4e-10), "bucket": (9e-5, 3e-9)}
ROUNDS = 6
COUNTS = [16, 256, 1024, 8192, 65536, 1 << 20]
GROUPS = [(2, 2), (4, 4), (6, 6), (8, 8)]
MACHINE = {"name": "m", "kind": "endpoint", "model": "hockney", "alpha_ns": 1000, "beta_ns_per_byte": 1}
#: Machines whose predictions are the first expectations; none is close to TIMES.
MACHINES = [
    MACHINE,
    MACHINE | {"alpha_ns": 2000, "beta_ns_per_byte": 0.5},
    MACHINE | {"model": "pipelining-postal", "alpha_p_ns": 700, "alpha_r_ns": 300},
]


def recorded(name: str, ranks: int, elements: int) -> float:
    alpha, beta = TIMES[name]
    return alpha * log2(ranks) + beta * 4 * elements


def timing(seconds: float) -> Timing:
    return Timing([seconds] * ROUNDS, "", 10, 10)


def all_tries(machine: Mapping[str, Any] = MACHINE) -> list[TuningPoint]:
    return [
        TuningPoint(group, count, lane, plan)
        for group in GROUPS
        for count in COUNTS
        for lane, plan in enumerate(
            [None]
            + [
                un.plan("allreduce", un.machine(machine, group[0]), elements=count, algorithm=name)
                for name in TIMES
                if name != LIBRARY
            ]
        )
    ]


def tuned(share: float, idle: bool = True, machine: Mapping[str, Any] = MACHINE) -> tuple[list[Cell], int]:
    tries = all_tries(machine)
    belief, timings = Posterior(points_of("allreduce", tries), expected_of(tries)), {}
    for at in explore(belief, int(share * len(tries))):
        seconds = recorded(tries[at].name, tries[at].group[0], tries[at].elements)
        timings[at] = timing(seconds)
        belief.observe(at, log(seconds))
    cells = cells_of("allreduce", tries, belief, timings, ROUNDS, idle)
    groups = {("allreduce", *group): [cell for cell in cells if cell.ranks == group[0]] for group in GROUPS}
    (family,) = families_of(["allreduce"], [8], COUNTS, groups)
    rows = rows_of(family, un.machine(machine, 8))
    # Rows cover each number of ranks from the first to the last, from 0 bytes on.
    assert {row.ranks for row in rows if row.first_bytes == 0} == {2, 3, 4, 5, 6, 7, 8}
    return cells, len(timings)


def regret(cells: list[Cell]) -> float:
    """Returns the geometric mean of (chosen time / best time) of the cells from 2048 bytes on."""
    long = [cell for cell in cells if cell.bytes >= 2048]
    best = [min(recorded(name, cell.ranks, cell.elements) for name in TIMES) for cell in long]
    chosen = [recorded(cell.chosen, cell.ranks, cell.elements) for cell in long]
    return exp(float(np.mean(np.log(np.array(chosen) / best))))


def test_a_quarter_of_the_points_chooses_nearly_as_well_as_all() -> None:
    cells, measured = tuned(0.25)
    points = sum(len(cell.contenders) for cell in cells)
    assert (points, measured) == (96, 24)
    assert sum(contender.measured for cell in cells for contender in cell.contenders) == 24
    always = [
        recorded(LIBRARY, c.ranks, c.elements) / min(recorded(n, c.ranks, c.elements) for n in TIMES) for c in cells
    ]
    assert regret(tuned(1)[0]) < 1.05
    assert regret(cells) < 1.1 < exp(float(np.mean(np.log(always))))


@pytest.mark.parametrize("machine", MACHINES)
def test_times_are_expected_to_grow_with_the_bytes(machine: Mapping[str, Any]) -> None:
    """Cells without measurements have times between those of neighboring sizes, as in the model."""
    cells, _ = tuned(0.25, machine=machine)
    unseen = [cell for cell in cells if not any(contender.measured for contender in cell.contenders)]
    assert unseen
    errors = [
        abs(log(contender.seconds / recorded(contender.name, cell.ranks, cell.elements)))
        for cell in unseen
        for contender in cell.contenders
    ]
    assert max(errors) < log(3)
    assert np.quantile(errors, 0.75) < log(2)
    # Before any measurement, expected times grow with the size, as in the model.
    tries = all_tries(machine)
    expected = dict(zip(((t.group, t.elements) for t in tries), expected_of(tries), strict=True))
    assert all(expected[group, COUNTS[at]] < expected[group, COUNTS[at + 1]] for group in GROUPS for at in range(5))


def test_short_messages_are_served_only_by_what_was_measured_on_idle_ranks() -> None:
    short = [cell for cell in tuned(0.25)[0] if cell.bytes < 2048]
    for cell in short:
        library, *others = cell.contenders
        assert all(other.left for other in others if not (other.measured and library.measured))
    assert {cell.chosen for cell in tuned(1, idle=False)[0] if cell.bytes < 2048} == {LIBRARY}
    assert {cell.chosen for cell in tuned(1)[0] if cell.bytes < 2048} == {"recursive-doubling"}


@pytest.mark.parametrize("share", ["0", "-1", "1.5", "nan"])
def test_a_share_is_a_part(share: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", "--from", ".", "--share", share]) == 2
    assert f"--share is {float(share):g}; accepted are numbers above 0, at most 1" in capsys.readouterr().err
