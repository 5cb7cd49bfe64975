"""`unisono bench`: planned schedules beside the library's own, under mpiexec."""

from pathlib import Path
from typing import Any

import click

from unisono import InputError, load_plans
from unisono._collectives import MEASURED, Collectives
from unisono._inputs import parse_bytes
from unisono._mpi import import_mpi
from unisono.cli._options import json_option
from unisono.cli._output import params_text, print_json, print_lines, print_table
from unisono.measuring import contest

_SIZES = "8,64,512,4KiB,32KiB,256KiB,1MiB"


@click.command()
@click.argument("collective", type=click.Choice(MEASURED))
@click.option("--plan", "plan_file", metavar="FILE.plan", required=True, help="The table whose schedules are timed.")
@click.option("--vs", type=click.Choice(["default"]), default="default", help="Against the library as it is.")
@click.option("--sizes", default=_SIZES, show_default=True, metavar="LIST", help="Sizes in bytes, as MPI counts them.")
@click.option("--rounds", type=int, default=6, show_default=True, metavar="N", help="Interleaved rounds.")
@json_option
def bench(collective: str, plan_file: str, vs: str, sizes: str, rounds: int, as_json: bool) -> int:  # noqa: ARG001
    """Times COLLECTIVE by the plan and by the library, turn by turn, under mpiexec."""
    if rounds < 1:
        raise InputError(f"--rounds is {rounds}, and must be at least 1")
    counts = [size // 4 for size in sizes_of(sizes)]
    mpi = import_mpi()
    world = mpi.COMM_WORLD
    if world.size < 2:
        raise InputError("a comparison needs at least two ranks: mpiexec -n 4 unisono bench allreduce --plan T.plan")
    table = [row for row in load_plans(plan_file) if row["collective"] == collective and row["ranks"] == world.size]
    if not table:
        raise InputError(f"'{plan_file}' has no rows for {collective} on {world.size} ranks")
    collectives = Collectives(mpi, world, plan_file)
    rows: list[dict[str, Any]] = []
    for count in counts:
        row = _row(table, 4 * count)
        if row is None or row["algorithm"] is None:
            continue
        result = contest(mpi, world, collectives, collective, count, [(False, 0), (True, 0)], rounds)
        default, planned = result.timings
        rows.append(
            {
                "bytes": 4 * count,
                "algorithm": row["algorithm"],
                "params": row["params"],
                "seconds": planned.seconds,
                "default_seconds": default.seconds,
                "ratio": default.seconds / planned.seconds if planned.seconds > 0 else None,
                "rounds_won": result.won(1),
                "rounds": rounds,
                "ran": {"bits": planned.bits, "default_bits": default.bits},
            }
        )
    if world.rank != 0:
        return 0
    if as_json:
        print_json({"collective": collective, "ranks": world.size, "plan": plan_file, "rows": rows})
        return 0
    cells = [
        [
            str(row["bytes"]),
            f"{row['algorithm']} {params_text(row['params'])}".strip(),
            f"{row['seconds'] * 1e6:.2f}",
            f"{row['default_seconds'] * 1e6:.2f}",
            f"{row['ratio']:.2f}" if row["ratio"] is not None else "-",
            f"{row['rounds_won']}/{row['rounds']}",
            row["ran"]["bits"] + (" =" if row["ran"]["bits"] == row["ran"]["default_bits"] else ""),
        ]
        for row in rows
    ]
    right = ["bytes", "planned µs", "library µs", "faster by", "rounds won"]
    print_lines(f"{collective} of float32 on {world.size} ranks, {Path(plan_file).name} beside the library")
    print_table(
        ["bytes", "algorithm", "planned µs", "library µs", "faster by", "rounds won", "result bits"], cells, right
    )
    print_lines("= : the same bits as the library's, so the same order of additions")
    return 0


def sizes_of(text: str) -> list[int]:
    """Sizes in bytes, whole numbers of float32.

    Raises:
        InputError: one is no size, or no multiple of 4.

    """
    sizes = [parse_bytes(part) for part in text.split(",")]
    wrong = next((size for size in sizes if size % 4 or size == 0), None)
    if wrong is not None:
        raise InputError(f"{wrong} bytes are no vector of float32; sizes are multiples of 4 from 4 on")
    return sizes


def _row(table: list[dict[str, Any]], size: int) -> dict[str, Any] | None:
    for row in table:
        if row["first_bytes"] <= size and (row["last_bytes"] is None or size <= row["last_bytes"]):
            return row
    return None
