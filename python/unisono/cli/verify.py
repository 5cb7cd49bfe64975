"""`unisono verify`: proves a schedule, from a file or as planned."""

from typing import Any

import click

from unisono import Proof, Schedule
from unisono._files import load_registers
from unisono.cli._failures import NO
from unisono.cli._options import file_or_plan_options, json_option, schedule_of
from unisono.cli._output import print_fields, print_json, print_lines, working

_SHOWN = 20


@click.command()
@file_or_plan_options
@click.option(
    "--method",
    type=click.Choice(["auto", "exact", "fingerprint"]),
    default="auto",
    show_default=True,
    help="Exact by intervals, or by fingerprint; auto is exact while that is affordable.",
)
@click.option(
    "--seed",
    metavar="HEX",
    help="Repeats a proof with the seed that it printed (default: drawn from the operating system).",
)
@json_option
def verify(
    file_or_collective: str, machine: str | None, method: str, seed: str | None, as_json: bool, **options: Any
) -> int:
    """Proves the schedule in FILE, or the one planned for COLLECTIVE: complete, free of deadlock and races."""
    if file_or_collective.endswith(".registers"):
        return _registers(file_or_collective, as_json)
    schedule = schedule_of(file_or_collective, machine, options, "verify")
    with working("verifying"):
        proof = schedule.verify(method, seed)
    if as_json:
        print_json(proof.report())
    else:
        _print(proof, schedule)
    return 0 if proof.holds else NO


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
            *_chance(proof),
            ("scratch", f"{proof.scratch_bytes_max} bytes at most on a node"),
        ]
    )
    for found in proof.diagnostics[:_SHOWN]:
        place = [f"{what} {found[what]}" for what in ("rank", "instruction") if found.get(what) is not None]
        print_lines(": ".join(filter(None, [found["code"], ", ".join(place), found["message"]])))
    if len(proof.diagnostics) > _SHOWN:
        print_lines(f"and {len(proof.diagnostics) - _SHOWN} more: --json lists all")


def _chance(proof: Proof) -> list[tuple[str, str]]:
    """The error probability and the seed of a proof that has them."""
    if proof.error_probability is None or proof.seed is None:
        return []
    return [("error probability", f"{proof.error_probability:.1e}"), ("seed", proof.seed)]


def _registers(path: str, as_json: bool) -> int:
    """Checks the registers of switches, then proves the schedule that they are."""
    registers = load_registers(path)
    with working("checking"):
        found = registers.check()
        proof = None if found else registers.schedule().verify()
    if as_json:
        wrong = {"complete": False, "deadlock_free": False, "repeatable": False, "method": "registers"}
        report = {**wrong, "scratch_bytes_max": 0, "diagnostics": found} if proof is None else proof.report()
        print_json(report)
    elif proof is None:
        print_lines(f"refused: the registers of {path}")
        print_lines(*(f"{one['code']}: {one['message']}" for one in found[:_SHOWN]))
    else:
        print_lines(f"the registers of {max(registers.switches, default=0)} switches fit each other and the machine")
        _print(proof, registers.schedule())
    return NO if proof is None or not proof.holds else 0
