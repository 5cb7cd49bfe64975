"""The common parts of commands that measure, and `unisono tune --from`, which judges published measurements."""

from math import exp, nan
from typing import Any

import click

from unisono.base import interrupts
from unisono.cli._output import counted, print_json, print_lines, print_table, progress
from unisono.mpi.groups import shared_cores

__all__ = ["judge", "note_shared_cores"]


def note_shared_cores(mpi: Any, world: Any) -> None:
    """Prints a note if ranks share cores, since times then depend on how ranks wait; all ranks call it."""
    crowded = shared_cores(mpi, world)
    if world.rank == 0 and crowded is not None:
        ranks, cores = crowded
        click.echo(
            f"note: {ranks} ranks share {counted(cores, 'core')}: a rank that waits takes time from "
            "others, and these times do not hold for ranks with a core each",
            err=True,
        )


def judge(folder: str, share: float, as_json: bool) -> int:
    """Prints, for each system, the regret of choosing from a share of the measurements."""
    with interrupts.importing():
        from unisono.choosing import cross_validate
        from unisono.measurements import read_pico

    points, passed = read_pico(folder)
    with progress("choosing") as on_points:
        found = cross_validate(points, share, on_points)
    rows = [_row(regret.system, [regret]) for regret in found] + ([_row("all", found)] if len(found) > 1 else [])
    if as_json:
        print_json({"share": share, "passed_over": passed, "systems": rows})
        return 0
    columns = ["system", "points", "measured", "cells", "chosen / best", "unmeasured cells", "95 %", "all measured"]
    texts = [
        [
            row["system"],
            *(f"{row[name]:,}" for name in ("points", "measured", "cells")),
            *(_ratio(row[name]) for name in ("regret", "regret_unmeasured", "regret_95", "regret_all_measured")),
        ]
        for row in rows
    ]
    print_table(columns, texts, columns[1:])
    print_lines("", "chosen / best: geometric mean over cells, judged by iterations that the choice has not seen")
    if passed:
        print_lines(f"{passed} files of another form are passed over")
    return 0


def _ratio(value: float) -> str:
    return "-" if value != value else f"{value:.4f}"


def _row(system: str, regrets: list[Any]) -> dict[str, Any]:
    cells = [cell for regret in regrets for cell in regret.cells]
    values = sorted(value for value, _ in cells)
    return {
        "system": system,
        "points": sum(regret.points for regret in regrets),
        "measured": sum(regret.measured for regret in regrets),
        "cells": len(cells),
        "regret": _mean(values),
        "regret_unmeasured": _mean([value for value, measured in cells if not measured]),
        "regret_95": exp(values[(95 * len(values) - 1) // 100]),
        "regret_all_measured": _mean([value for regret in regrets for value in regret.noise]),
    }


def _mean(values: list[float]) -> float:
    """Returns the geometric mean of ratios, from their logarithms."""
    return exp(sum(values) / len(values)) if values else nan
