"""Runs the AllReduce of section 9.1 of "Near-Optimal Wafer-Scale Reduce" in which two PEs of a line accumulate.

In each row, then in each column, the two middle PEs each add the vectors of their half, exchange their sums, and send
the total to their half.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from unisono import Buffer, Error, Schedule, ScheduleBuilder, machine, simulate
from unisono.reproduce import Listed, checks_of, each
from unisono.reproduce import wafer_simulated as runs
from unisono.reproduce.wafer_formulas import star_of_two

__all__ = ["CHECKS", "cycles"]

_MACHINE = "wse2"


def _line(
    made: ScheduleBuilder, line: Sequence[int], length: int, values: Mapping[int, Buffer], into: Mapping[int, Buffer]
) -> None:
    """Adds to a schedule an AllReduce of the PEs of a line by its two middle PEs."""
    middle = len(line) // 2
    halves = (list(reversed(line[:middle])), list(line[middle:]))
    two = [half[0] for half in halves]
    exchanged = [made.stream(two[0], two[1]), made.stream(two[1], two[0])]
    for side, (pe, half) in enumerate(zip(two, halves, strict=True)):
        arriving = []
        for other in half[1:]:
            sent = made.stream(other, pe)
            made.combine(other, [values[other]], [sent])
            arriving.append(sent)
        own, others = made.scratch(pe, length), made.scratch(pe, length)
        made.combine(pe, [values[pe], *arriving], [exchanged[side], own])
        # Both middle PEs send simultaneously, so each receives in a second lane.
        received = made.combine(pe, [exchanged[1 - side]], [others], lane=1)
        # Both middle PEs add in the same order, and so get the same bits.
        ordered = [own, others] if side == 0 else [others, own]
        down = made.stream(pe, half[1:]) if half[1:] else None
        made.combine(pe, [*ordered], [into[pe], *([down] if down else [])], after=[received])
        for other in half[1:]:
            assert down is not None, "a half of several PEs has a stream"
            made.combine(other, [down], [into[other]])


def _built(rows: int, columns: int, length: int) -> Schedule:
    pes = rows * columns
    made = ScheduleBuilder(pes, length, "allreduce")
    values, outputs = ({pe: of(pe) for pe in range(pes)} for of in (made.input, made.output))
    between = {pe: made.scratch(pe, length) for pe in range(pes)}
    for row in range(rows):
        _line(made, range(row * columns, (row + 1) * columns), length, values, between)
    for column in range(columns):
        _line(made, range(column, pes, columns), length, between, outputs)
    return made.build()


def cycles(rows: int, columns: int, length: int) -> int:
    """Returns the simulated cycles on a grid of at most 8 x 8 PEs; a wrong result raises an error."""
    ran = simulate(_built(rows, columns, length), machine(_MACHINE, shape=(rows, columns)))
    if not ran.result_correct or ran.cycles is None:
        raise Error(f"the star of two on {rows}x{columns} PEs is wrong: {ran.mismatch}")
    return ran.cycles


@each("wavelets")
def _star_of_two_over_formula(length: Any, listed: Listed) -> Any:
    """Divides the simulated cycles by those of Eq. 1, at every length."""
    rows, columns = listed["shape"]
    by_formula = star_of_two(columns, length) + star_of_two(rows, length)
    return cycles(rows, columns, length) / by_formula


@each("wavelets", "Cycles: {}.")
def _star_of_two_over_patterns(length: Any, listed: Listed) -> tuple[Any, str]:
    """Divides the simulated cycles by those of the fastest of some patterns, at every length."""
    rows, columns = listed["shape"]
    others = {
        name: runs.point("allreduce", (rows, columns), length, name).simulated or math.inf
        for name in listed["algorithms"]
    }
    best = min(others, key=lambda name: others[name])
    own = cycles(rows, columns, length)
    return own / others[best], f"{own} and {others[best]:.0f} of the {best}"


CHECKS = checks_of(globals())
