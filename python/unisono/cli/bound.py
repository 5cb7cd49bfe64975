"""`unisono bound`: every lower bound that applies."""

from typing import Any

import click

import unisono
from unisono.cli._options import (
    Request,
    bound_model_option,
    data_options,
    json_option,
    limit_options,
    machine_option,
    root_option,
    shape_options,
    size_options,
)
from unisono.cli._output import microseconds, number, print_json, print_table
from unisono.cli._types import COLLECTIVE

__all__ = ["bound"]


@click.command()
@click.argument("collective", type=COLLECTIVE)
@machine_option
@shape_options
@size_options
@data_options
@root_option
@bound_model_option
@json_option
@limit_options
def bound(as_json: bool, **options: Any) -> None:
    """Lists every lower bound on the time of COLLECTIVE, and what each assumes."""
    request = Request(**options)
    machine, count = request.sized_machine(), request.count()
    if request.model is not None and "grid" in machine.offers:
        raise click.UsageError(
            "--model chooses a model for machines of ranks; on a wafer the bounds of all models are listed"
        )
    bounds = unisono.bounds(
        request.collective, machine, elements=count, dtype=request.dtype, root=request.root, model=request.model
    )
    if as_json:
        print_json(
            {
                "collective": request.collective,
                "machine": machine.name,
                "shape": machine.shape,
                "elements": count,
                "dtype": request.dtype,
                "bounds": bounds,
            }
        )
        return
    cycles = ["cycles"] if any(b["cycles"] is not None for b in bounds) else []
    rows = [
        [
            b["name"],
            *(number(b["cycles"]) for _ in cycles),
            microseconds(b["seconds"]),
            b["reference"],
            b.get("assumes") or "",
        ]
        for b in bounds
    ]
    right = [*cycles, "µs"]
    print_table(["bound", *right, "reference", "assumes"], rows, right=right)
