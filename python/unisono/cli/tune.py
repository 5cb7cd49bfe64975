"""`unisono tune`: a plan file by measurement, under mpiexec."""

from typing import Any

import click

import unisono
from unisono import InputError
from unisono._collectives import MEASURED
from unisono._files import check_writable
from unisono._mpi import import_mpi
from unisono.cli._options import json_option
from unisono.cli._output import params_text, print_json, print_lines, print_table, progress
from unisono.cli.bench import sizes_of
from unisono.tuning import Cell, Row, rows_of, tune_collective

_SIZES = "8,64,512,4KiB,32KiB,256KiB,1MiB,4MiB"


@click.command()
@click.argument("collectives", metavar="COLLECTIVE[,COLLECTIVE...]")
@click.option("--machine", metavar="M.toml", required=True, help="Proposes candidates; unisono calibrate writes one.")
@click.option("--sizes", default=_SIZES, show_default=True, metavar="LIST", help="Sizes to measure at, in bytes.")
@click.option("--candidates", type=int, default=3, show_default=True, metavar="N", help="Proposals a size.")
@click.option("--rounds", type=int, default=6, show_default=True, metavar="N", help="Interleaved rounds a size.")
@click.option("-o", "--output", metavar="T.plan", required=True, help="The plan file to write.")
@json_option
def tune(collectives: str, machine: str, sizes: str, candidates: int, rounds: int, output: str, as_json: bool) -> int:
    """Measures what the machine's model proposes beside the library's own, and writes what is best as a plan file."""
    names = collectives.split(",")
    wrong = next((name for name in names if name not in MEASURED), None)
    if wrong is not None:
        raise InputError(f"'{wrong}' cannot be tuned; accepted are {', '.join(MEASURED)}")
    if candidates < 1 or rounds < 2:
        raise InputError("--candidates is at least 1, and --rounds at least 2")
    if not output.endswith(".plan"):
        raise InputError(f"'{output}' does not end in .plan, and a plan file does")
    check_writable(output)
    mpi = import_mpi()
    world = mpi.COMM_WORLD
    if world.size < 2:
        raise InputError(
            "tuning needs at least two ranks: mpiexec -n 4 unisono tune allreduce --machine M.toml -o T.plan"
        )
    where = unisono.machine(machine, world.size)
    counts = sorted({size // 4 for size in sizes_of(sizes)})
    cells: list[Cell] = []
    with progress("tuning") as on_cell:
        for name in names:
            for cell in tune_collective(mpi, name, where, counts, candidates, rounds):
                cells.append(cell)
                on_cell(len(cells), len(names) * len(counts))
    if world.rank != 0:
        return 0
    rows: list[Row] = [row for name in names for row in rows_of([cell for cell in cells if cell.collective == name])]
    unisono.save_plans([(row.serves, row.first_bytes, row.last_bytes) for row in rows], output)
    table = [row.report() for row in rows]
    if as_json:
        print_json({"table": table, "cells": [cell.report() for cell in cells], "file": output})
        return 0
    _print(cells)
    print_lines("", f"wrote {output}: {len(rows)} rows")
    return 0


def _print(cells: list[Cell]) -> None:
    rows: list[list[str]] = []
    for cell in cells:
        for at, contender in enumerate(cell.contenders):
            mark = "*" if at == cell.chosen else ""
            name = "the library" if contender.plan is None else contender.plan.algorithm
            params: dict[str, Any] = {} if contender.plan is None else contender.plan.params
            rows.append(
                [
                    cell.collective if at == 0 else "",
                    str(cell.bytes) if at == 0 else "",
                    f"{name} {params_text(params)} {mark}".strip(),
                    f"{contender.seconds * 1e6:.2f}",
                    "" if contender.plan is None else f"{contender.won}/{cell.rounds}",
                ]
            )
    right = ["bytes", "µs", "rounds won"]
    print_table(["collective", "bytes", "contender", "µs", "rounds won"], rows, right)
    print_lines("* : chosen; the library stays where nothing is clearly faster")
