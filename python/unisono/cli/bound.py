"""`unisono bound`: every lower bound that applies."""

from typing import Any

import click

import unisono
from unisono import Plan
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
    target_option,
)
from unisono.cli._output import (
    assumed,
    cycles_and_time,
    microseconds,
    number,
    params_text,
    print_json,
    print_lines,
    print_notes,
    print_table,
)
from unisono.cli._sources import note_unused
from unisono.cli._types import COLLECTIVE

__all__ = ["bound"]

#: The schedules for which a bound holds, by the bound's value of ``standing``.
_HOLDS = {"bound": "any schedule", "of-model": "a model"}


@click.command()
@click.argument("collective", type=COLLECTIVE)
@machine_option
@shape_options
@size_options
@data_options
@root_option
@bound_model_option
@target_option
@json_option
@limit_options
def bound(as_json: bool, **options: Any) -> None:
    """Lists every lower bound on the time of COLLECTIVE, with its assumptions."""
    request = Request(**options)
    machine, count = request.sized_machine(), request.count()
    if request.model is not None and "grid" in machine.offers:
        raise click.UsageError(
            "--model chooses a model for machines of ranks; on a wafer the bounds of all models are listed"
        )
    note_unused(request.collective)
    bounds = unisono.bounds(
        request.collective,
        machine,
        elements=count,
        dtype=request.dtype,
        op=request.op,
        root=request.root,
        model=request.model,
    )
    notes = machine.notes(count * unisono.dtypes()[request.dtype], request.model)
    # Bounds hold for every schedule. The best schedule that a format can express is printed beside them, to show the
    # cost of the format.
    planned = None if request.target is None else request.plan()
    if as_json:
        print_json(
            {
                "collective": request.collective,
                "machine": machine.name,
                "shape": machine.extents,
                "elements": count,
                "dtype": request.dtype,
                # Bounds use the data sheet, also on measured machines.
                "rates": machine.rates("data-sheet"),
                "bounds": bounds,
                "notes": notes,
                **({} if planned is None else {"planned": _chosen(planned)}),
            }
        )
        return
    cycles = ["cycles"] if any(b["cycles"] is not None for b in bounds) else []
    rows = [
        [
            b["name"],
            *(number(b["cycles"]) for _ in cycles),
            microseconds(b["seconds"]),
            _HOLDS[b["standing"]],
            b["reference"],
            assumed(b, notes),
        ]
        for b in bounds
    ]
    right = [*cycles, "µs"]
    print_table(["bound", *right, "holds for", "reference", "assumes"], rows, right=right)
    print_notes(notes)
    if planned is not None:
        chosen = f"{planned.algorithm} {params_text(planned.params)}".rstrip()
        ratio = "" if planned.ratio is None else f", {planned.ratio:.3f} times the bound that plans are compared with"
        print_lines("", f"planned for {request.target}: {chosen}, {cycles_and_time(planned.predicted)}{ratio}")


def _chosen(plan: Plan) -> dict[str, Any]:
    target = plan.report()["target"]
    return {
        "target": target,
        "algorithm": plan.algorithm,
        "params": plan.params,
        "predicted": plan.predicted,
        "ratio": plan.ratio,
    }
