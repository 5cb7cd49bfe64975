"""`unisono verify`: proves a schedule, from a file or as planned."""

from pathlib import Path
from typing import Any

import click

import unisono
from unisono import InputError, Proof, Schedule, parse_shape
from unisono.cli._failures import NO
from unisono.cli._options import (
    Request,
    algorithm_options,
    data_options,
    json_option,
    root_option,
    shape_option,
    size_options,
)
from unisono.cli._output import print_fields, print_json, print_lines, working

_SHOWN = 20


@click.command()
@click.argument("file_or_collective", metavar="FILE|COLLECTIVE")
@click.option("--machine", metavar="NAME|FILE", help="The machine; of a file, the one to place its schedule on.")
@shape_option
@size_options
@data_options
@root_option
@algorithm_options
@click.option(
    "--method",
    type=click.Choice(["auto", "exact", "fingerprint"]),
    default="auto",
    show_default=True,
    help="Exact by intervals, or by fingerprint; auto is exact while that is affordable.",
)
@json_option
def verify(file_or_collective: str, machine: str | None, method: str, as_json: bool, **options: Any) -> int:
    """Proves the schedule in FILE, or the one planned for COLLECTIVE: complete, free of deadlock and races."""
    schedule = _schedule(file_or_collective, machine, options)
    with working("verifying"):
        proof = schedule.verify(method)
    if as_json:
        print_json(proof.report())
    else:
        _print(proof, schedule)
    return 0 if proof.holds else NO


def _schedule(what: str, machine: str | None, options: dict[str, Any]) -> Schedule:
    sized = options["elements"] is not None or options["bytes"] is not None
    if sized and not Path(what).is_file():
        if machine is None:
            raise InputError(f"to verify a {what} as planned, --machine must say where")
        return Request(collective=what, machine=machine, **options).plan().schedule
    if sized:
        raise InputError(f"'{what}' is a file, and a file has its size; drop --elements or --bytes")
    if not Path(what).exists():
        raise InputError(
            f"there is no file '{what}'; for a collective as planned, give --machine and --elements or --bytes too"
        )
    schedule = unisono.load(what)
    if machine is None:
        return schedule
    shape = options["shape"]
    known = schedule.machine.shape if schedule.machine is not None else None
    return schedule.on(unisono.machine(machine, known if shape is None else parse_shape(shape)))


def _print(proof: Proof, schedule: Schedule) -> None:
    said = {True: "yes", False: "no"}
    print_lines(
        f"{'proved' if proof.holds else 'refused'}: {schedule.collective} of {schedule.elements} {schedule.dtype} on "
        f"{schedule.ranks} ranks, {schedule.instructions} instructions"
    )
    print_fields(
        [
            ("complete", said[proof.complete]),
            ("deadlock-free", said[proof.deadlock_free]),
            ("race-free", said[proof.race_free]),
            ("repeatable", said[proof.repeatable]),
            ("method", proof.method),
            ("scratch", f"{proof.scratch_bytes_max} bytes at most on a node"),
        ]
    )
    for found in proof.diagnostics[:_SHOWN]:
        place = [f"{what} {found[what]}" for what in ("rank", "instruction") if found.get(what) is not None]
        print_lines(": ".join(filter(None, [found["code"], ", ".join(place), found["message"]])))
    if len(proof.diagnostics) > _SHOWN:
        print_lines(f"and {len(proof.diagnostics) - _SHOWN} more: --json lists all")
