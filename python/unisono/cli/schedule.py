"""`unisono schedule`: writes the schedule of a plan."""

from typing import Any

import click

from unisono import InputError, Plan
from unisono.base.files import check_writable, save, write
from unisono.cli._options import Request, limit_options, plan_options
from unisono.cli._output import print_json, print_lines

__all__ = ["schedule"]


@click.command()
@click.argument("collective")
@plan_options
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    required=True,
    help="Where to: text (.sched), JSON where FILE ends in .json, or the registers of switches (.registers).",
)
@limit_options
def schedule(as_json: bool, output: str, **options: Any) -> None:
    """Writes the best schedule for COLLECTIVE, with its machine and placement."""
    check_writable(output)
    made = Request(**options).plan()
    if output.endswith(".registers"):
        _write_registers(made, output, as_json)
        return
    built = made.schedule
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


def _write_registers(made: Plan, output: str, as_json: bool) -> None:
    registers = made.registers
    if registers is None:
        raise InputError(f"{made.algorithm} does not run in switches that reduce, so it has no registers")
    write(output, registers.text())
    if as_json:
        print_json(
            {
                "file": output,
                "switches": registers.switches,
                "embeddings": registers.embeddings,
                "algorithm": made.algorithm,
                "params": made.params,
            }
        )
        return
    print_lines(f"wrote {output}: {registers.embeddings} embeddings over {max(registers.switches)} switches")
