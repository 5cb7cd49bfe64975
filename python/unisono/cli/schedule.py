"""`unisono schedule`: writes the best schedule for a collective."""

from typing import Any

import click

from unisono import InputError, emit
from unisono.base.files import check_writable, save
from unisono.cli._endings import SCHEDULE_FILES, check_ending
from unisono.cli._options import Request, limit_options, plan_options
from unisono.cli._output import print_json, print_lines, warn_of_memory
from unisono.cli._types import COLLECTIVE

__all__ = ["schedule"]


@click.command()
@click.argument("collective", type=COLLECTIVE)
@plan_options
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    required=True,
    help="The file to write: text (.sched), JSON (.json), or the registers of switches (.registers).",
)
@limit_options
def schedule(as_json: bool, output: str, **options: Any) -> None:
    """Writes the best schedule for COLLECTIVE, with its machine and placement."""
    if output.endswith(".plan"):
        raise InputError(f"'{output}' would be a plan for MPI, which 'unisono plan -o' writes; a schedule is a .sched")
    check_ending(output, {**SCHEDULE_FILES, ".registers": "registers of switches"})
    check_writable(output)
    made = Request(**options).plan()
    warn_of_memory(made.report()["memory"])
    built = made.schedule
    if output.endswith(".registers"):
        emit(built, "registers", output)
    else:
        save(built, output)
    if as_json:
        print_json(
            {
                "file": output,
                "instructions": built.instructions,
                "nodes": built.nodes,
                "streams": built.streams,
                "algorithm": made.algorithm,
                "params": made.params,
            }
        )
        return
    print_lines(f"wrote {output}: {made.algorithm}, {built.instructions} instructions on {built.nodes} nodes")
