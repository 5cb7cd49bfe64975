"""The common parts of commands that measure, and `unisono tune --from`, which judges published measurements."""

from math import exp, nan
from typing import Any
from zlib import crc32

import click

from unisono.base import interrupts
from unisono.cli._output import counted, print_json, print_lines, print_table, progress
from unisono.mpi.groups import shared_cores
from unisono.mpi.library import check_alike, import_mpi

#: The end of an error message about ranks that differ.
ALIKE = "start all ranks with the same options and files"


def import_alike() -> Any:
    """Returns the module ``mpi4py.MPI``; refuses ranks that were started with different command lines."""
    mpi = import_mpi(measures=True)
    context = click.get_current_context()
    said: dict[str, object] = {"the command": context.info_name}
    for param in context.command.params:
        if param.name is not None and param.name in context.params:
            is_option = isinstance(param, click.Option)
            said[max(param.opts, key=len) if is_option else param.human_readable_name] = context.params[param.name]
    check_alike(mpi.COMM_WORLD, said, ALIKE)
    return mpi


def fingerprint(content: bytes) -> str:
    """Returns the length and CRC-32 of a file as text."""
    return f"{len(content)} bytes with CRC-32 {crc32(content):08x}"


def note_shared_cores(mpi: Any, world: Any) -> None:
    """Prints a note if ranks share cores, where times depend on how ranks wait. All ranks call this."""
    crowded = shared_cores(mpi, world)
    if world.rank == 0 and crowded is not None:
        ranks, cores = crowded
        click.echo(
            f"note: {ranks} ranks share {counted(cores, 'core')}: a rank that waits takes time from "
            "others, and these times do not hold for ranks with a core each",
            err=True,
        )


def judge(folder: str, share: float, as_json: bool) -> int:
    """Prints, for each system, the regret of choices from the fraction ``share`` of its measurements.

    The regret of a choice is the time of the chosen algorithm, divided by the time of the best algorithm.
    """
    with interrupts.importing():
        from unisono.tuning.choosing import cross_validate
        from unisono.tuning.measurements import read_pico

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
    """Returns the geometric mean of ratios, whose logarithms are ``values``."""
    return exp(sum(values) / len(values)) if values else nan
