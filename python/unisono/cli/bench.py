"""`unisono bench`: the library's collectives, alone or beside planned schedules, under mpiexec."""

from pathlib import Path
from typing import Any

import click

import unisono
from unisono import Error, InputError, load_plans
from unisono.base.facts import reduces
from unisono.base.inputs import parse_bytes
from unisono.base.reports import PlanRow
from unisono.cli._measurements import ALIKE, fingerprint, import_alike, note_shared_cores
from unisono.cli._options import json_option
from unisono.cli._output import params_text, print_json, print_lines, print_notes, print_table, progress
from unisono.cli._types import COLLECTIVE, INT
from unisono.mpi.collectives import MEASURED, Collectives, buffers
from unisono.mpi.groups import nodes
from unisono.mpi.library import check_alike, check_several, together
from unisono.tuning.measuring import Timing, checksum, contest

__all__ = ["bench", "sizes_of"]

_SIZES = "8,64,512,4KiB,32KiB,256KiB,1MiB"
#: The largest number of elements for which a schedule is interpreted to compare bits.
_MOST_ELEMENTS = 1 << 17
#: The largest count of a call of MPI.
_MOST_COUNT = 2**31 - 1


@click.command()
@click.argument("collective", type=COLLECTIVE)
@click.option("--plan", "plan_file", metavar="FILE.plan", help="The plan to time beside the library [no plan].")
@click.option(
    "--vs",
    type=click.Choice(["default"]),
    default="default",
    help="The library's algorithms to compare with: its default ones (the only value).",
)
@click.option(
    "--sizes",
    default=_SIZES,
    show_default=True,
    metavar="LIST",
    help="Sizes in bytes, multiples of 4, counted as --bytes of 'unisono plan'.",
)
@click.option("--rounds", type=INT, default=6, show_default=True, metavar="N", help="Number of interleaved rounds.")
@json_option
def bench(collective: str, plan_file: str | None, vs: str, sizes: str, rounds: int, as_json: bool) -> int:  # noqa: ARG001
    """Times COLLECTIVE by the MPI library, in alternation with a plan if one is given, under mpiexec."""
    mpi = import_alike()
    world = mpi.COMM_WORLD

    per_node = max(map(len, nodes(mpi, world)))

    def checked() -> tuple[list[int], list[PlanRow]]:
        if collective not in MEASURED:
            raise InputError(f"'{collective}' cannot be timed; accepted are {', '.join(MEASURED)}")
        if rounds < 1:
            raise InputError(f"--rounds is {rounds}, and must be at least 1")
        check_several(world, "a comparison", "bench allreduce --plan T.plan")
        counts = [size // 4 for size in sizes_of(sizes)]
        if plan_file is None:
            return counts, []
        rows = [row for row in load_plans(plan_file) if row["collective"] == collective]
        if not rows:
            raise InputError(f"'{plan_file}' has no rows for {collective}; 'unisono show {plan_file}' lists its rows")
        if not any(row["ranks"] == world.size for row in rows):
            known = ", ".join(map(str, sorted({row["ranks"] for row in rows})))
            message = f"'{plan_file}' has no rows for {collective} on {world.size} ranks; it has them for {known}"
            raise InputError(message)
        rows = [row for row in rows if row["ranks"] == world.size]
        if not any(row["per_node"] in (None, per_node) for row in rows):
            known = ", ".join(map(str, sorted({row["per_node"] or 0 for row in rows})))
            message = f"'{plan_file}' has no rows for {collective} on {world.size} ranks with {per_node} a node"
            raise InputError(f"{message}; it has them for {known} a node")
        return counts, rows

    counts, table = together(world, checked)
    note_shared_cores(mpi, world)
    contestants, notes = [Collectives(mpi, world)], list[str]()
    if plan_file is not None:
        check_alike(world, {f"the content of '{plan_file}'": fingerprint(Path(plan_file).read_bytes())}, ALIKE)
        contestants.append(Collectives(mpi, world, plan_file))
        notes = _notes(table, contestants[0].conditions(), plan_file)
    rows: list[dict[str, Any]] = []
    with progress("timing") as on_size:
        for at, count in enumerate(counts, start=1):
            result = contest(mpi, world, contestants, collective, count, rounds)
            if world.rank == 0:
                default, planned = result.timings[0], result.timings[-1]
                both = plan_file is not None and planned.seconds > 0
                row = _row(table, per_node, 4 * count)
                rows.append(
                    {
                        "bytes": 4 * count,
                        "algorithm": "library" if row is None else row["algorithm"] or "library",
                        "params": {} if row is None else row["params"],
                        "seconds": planned.seconds,
                        "default_seconds": default.seconds,
                        "ratio": default.seconds / planned.seconds if both else None,
                        "rounds_won": None if plan_file is None else result.won(1),
                        "rounds": rounds,
                        "ran": _ran(collective, row, world.size, count, planned, default),
                    }
                )
            on_size(at, len(counts))
    if world.rank != 0:
        return 0
    if as_json:
        heads = {"collective": collective, "ranks": world.size, "per_node": per_node, "plan": plan_file}
        print_json({**heads, "rows": rows, "notes": notes})
        return 0
    _print(collective, world.size, plan_file, rows)
    print_notes(notes)
    return 0


def _notes(table: list[PlanRow], here: str, plan_file: str) -> list[str]:
    """Returns a sentence for each set of conditions, other than ``here``, under which rows were tuned.

    Programs leave the calls of these rows to MPI.
    """

    def judged(conditions: str) -> list[str]:
        # Conditions that differ only in the version of the library count as equal.
        library, _, *waits = conditions.split(" ")
        return [library, *waits]

    there = {row["tuned"] for row in table if row["tuned"] is not None}
    return [
        f"rows of '{plan_file}' were tuned under '{conditions}', and this is '{here}': 'unisono run' leaves their "
        "calls to MPI unless --anywhere permits them"
        for conditions in sorted(there)
        if judged(conditions) != judged(here)
    ]


def _ran(
    collective: str, row: PlanRow | None, ranks: int, count: int, planned: Timing, default: Timing
) -> dict[str, Any]:
    """Returns the evidence of the algorithm that ran: the calls that the plan served, and the bits of the result."""
    ours = None if row is None or row["algorithm"] is None else _bits(collective, row, ranks, count)
    served, calls = planned.served, planned.calls
    if planned is default:
        shown, warning = "no plan", False
    elif row is None or row["algorithm"] is None:
        unserved = "the library, as no row of the plan is for it" if row is None else "the library, as the plan has it"
        shown = unserved if served == 0 else "the plan served calls that it leaves to the library"
        warning = served != 0
    elif served != calls:
        shown, warning = f"no effect: {served} of {calls} calls ran as planned", True
    elif ours is not None and ours != planned.bits:
        shown, warning = "the bits are not those of the schedule", True
    elif ours is not None and planned.bits != default.bits:
        shown, warning = "the bits of the schedule, and not the library's", False
    elif ours is not None:
        shown, warning = "the bits of the schedule, which the library's order has too", False
    else:
        shown, warning = f"all {calls} calls ran as planned", False
    return {
        "calls": calls,
        "planned_calls": served,
        "bits": planned.bits,
        "default_bits": default.bits,
        "schedule_bits": ours,
        "shown": shown,
        "warning": warning,
    }


def _bits(collective: str, row: PlanRow, ranks: int, count: int) -> str | None:
    """Returns the bits of rank 0's result by the row's schedule, run by the interpreter.

    Returns None in four cases: the collective does not add; the vector exceeds `_MOST_ELEMENTS`; the plan cannot be
    made again; or the blocks of the row do not divide the count, because a schedule of the same algorithm may then
    divide the vector differently.
    """
    if not reduces(collective) or row["blocks"] is None or count % row["blocks"] or count > _MOST_ELEMENTS:
        return None
    try:
        params = row["params"] or None
        made = unisono.plan(
            collective, "archer", shape=ranks, elements=count, algorithm=row["algorithm"], params=params
        )
        outputs = made.schedule.interpret([buffers(collective, count, ranks, rank)[0] for rank in range(ranks)])
    except Error:
        return None
    return checksum(outputs[0])


def _print(collective: str, ranks: int, plan_file: str | None, rows: list[dict[str, Any]]) -> None:
    if plan_file is None:
        print_lines(f"{collective} of float32 on {ranks} ranks, by the library")
        times = [[str(row["bytes"]), f"{row['default_seconds'] * 1e6:.2f}"] for row in rows]
        print_table(["bytes", "library µs"], times, ["bytes", "library µs"])
        return
    cells = [
        [
            str(row["bytes"]),
            f"{row['algorithm']} {params_text(row['params'])}".strip(),
            f"{row['seconds'] * 1e6:.2f}",
            f"{row['default_seconds'] * 1e6:.2f}",
            f"{row['ratio']:.2f}" if row["ratio"] is not None else "-",
            f"{row['rounds_won']}/{row['rounds']}",
            row["ran"]["shown"],
        ]
        for row in rows
    ]
    right = ["bytes", "planned µs", "library µs", "speed-up", "rounds won"]
    print_lines(f"{collective} of float32 on {ranks} ranks, {Path(plan_file).name} beside the library")
    print_table(["bytes", "algorithm", "planned µs", "library µs", "speed-up", "rounds won", "shown by"], cells, right)
    for row in rows:
        if row["ran"]["warning"]:
            print_lines(f"warning: {row['algorithm']} at {row['bytes']} bytes: {row['ran']['shown']}")


def sizes_of(text: str) -> list[int]:
    """Returns sizes in bytes, each a whole number of float32 elements.

    Raises:
        InputError: a size is invalid, or not a multiple of 4.

    """
    sizes = [parse_bytes(part) for part in text.split(",")]
    wrong = next((size for size in sizes if size % 4 or size == 0), None)
    if wrong is not None:
        raise InputError(f"{wrong} bytes are no vector of float32; sizes are multiples of 4 from 4 on")
    if max(sizes) // 4 > _MOST_COUNT:
        raise InputError(f"{max(sizes)} bytes are more than a call of MPI has: {_MOST_COUNT} elements of float32")
    return sizes


def _row(table: list[PlanRow], per_node: int, size: int) -> PlanRow | None:
    """Returns the row that serves a sum of floats of ``size`` bytes by the preload library's rules, else None."""
    serves = [
        row
        for row in table
        if row["per_node"] in (None, per_node)
        and row["first_bytes"] <= size
        and (row["last_bytes"] is None or size <= row["last_bytes"])
    ]
    return min(serves, key=lambda row: (row["per_node"] is None, row["operators"] == "ordered"), default=None)
