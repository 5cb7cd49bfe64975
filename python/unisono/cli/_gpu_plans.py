"""The check of a plan for GPUs, for `unisono verify`."""

from typing import Any

import click

from unisono import Schedule
from unisono.base.facts import has_root, reduces
from unisono.base.inputs import element_count
from unisono.base.reports import GpuPlanFinding, GpuPlanProof, MscclFinding, MscclProof
from unisono.cli._bits import bits_text, print_verdict, verdict
from unisono.cli._failures import NO
from unisono.cli._output import print_fields, print_json, print_lines, working
from unisono.cli._sources import given_values
from unisono.planning.emission import import_schedule
from unisono.planning.gpu_plans import check_gpu_plan, check_msccl

_SHOWN = 8
_SAID = {True: "yes", False: "no", None: "not proved"}
_INPUT = {True: "yes", False: "no: a second launch starts with another input", None: "in place"}
_SIZES = {
    "all": "all up to 4 GiB a buffer",
    "tried": "many tried, not proved for all",
    "one": "the one asked for",
    None: "not proved",
}


def verify_plan(
    path: str,
    method: str,
    require: str | None,
    as_json: bool,
    *,
    trust_relaxed: bool,
    processors: int | None,
) -> int:
    """Checks the plan and prints the proved properties, and each fault with the shortest run that shows it."""
    stated = stated_values(path, "mscclpp", "verify")
    with working("checking"):
        found = check_gpu_plan(
            path, stated["elements"], stated["dtype"], trust_relaxed=trust_relaxed, method=method, processors=processors
        )
    required = verdict(require, found["bits"], found["unlike_elements"])
    if as_json:
        print_json(found if required is None else {**found, "required": required})
    else:
        _print(path, found)
        if not found["diagnostics"]:
            print_verdict(required)
    return NO if found["diagnostics"] or not (required is None or required["holds"]) else 0


def _print(path: str, found: GpuPlanProof) -> None:
    faults = found["diagnostics"]
    unproved = bool(faults) and not found["bits"] and found["unlike_elements"] is None
    print_lines(f"{'refused' if faults else 'proved'}: the plan of {path}")
    print_fields(
        [
            ("complete", _SAID[found["complete"]]),
            ("deadlock-free", _SAID[found["deadlock_free"]]),
            ("race-free", _SAID[found["race_free"]]),
            ("repeatable", _SAID[found["repeatable"]]),
            ("same bits", _SAID[None] if unproved else bits_text(found["bits"], found["unlike_elements"])),
            ("safe to launch again", _SAID[found["relaunch"]]),
            ("keeps its input", _INPUT[found["keeps_input"]]),
            ("sizes", _SIZES[found["sizes"]]),
            ("method", found["method"]),
        ]
    )
    for fault in faults[:_SHOWN]:
        print_lines(": ".join(filter(None, [fault["code"], _place(fault), fault["message"]])))
        print_lines(*(f"  {n}. {line}" for n, line in enumerate(fault["trace"], 1)))
    if len(faults) > _SHOWN:
        print_lines(f"and {len(faults) - _SHOWN} more: --json lists all")


def _place(fault: GpuPlanFinding) -> str:
    """Formats the GPU, thread block and operation of a finding, as far as known."""
    parts = [("gpu", fault["rank"]), ("thread block", fault["threadblock"]), ("operation", fault["instruction"])]
    return ", ".join(f"{name} {at}" for name, at in parts if at is not None)


def stated_values(path: str, source: str, verb: str) -> dict[str, Any]:
    """Returns the number of elements, the type, the operator and the root that the command line states for a file.

    A value that is not stated is None, so that the value in the file is used. A size in bytes is converted by the
    stated type, or else by the file's type. Prints a note for each stated value that differs from the file's.

    Raises:
        InputError: the size is not valid, or the file is not of the format ``source``.
        OSError: the file cannot be read.

    """
    stated = given_values("elements", "bytes", "dtype", "op", "root")
    in_bytes = stated.pop("bytes")
    # A plan of MSCCL++ states no type and no operator.
    if source != "msccl-xml" or (in_bytes is None and all(stated[name] is None for name in ("dtype", "op", "root"))):
        dtype = stated["dtype"] or "f32"
    else:
        own = import_schedule(path, source)
        dtype = stated["dtype"] or own.dtype
        values: dict[str, str | int] = {"dtype": own.dtype}
        values |= {"op": own.operator} if reduces(own.collective) else {}
        values |= {"root": own.root} if has_root(own.collective) else {}
        for name, value in values.items():
            if stated[name] not in (None, value):
                click.echo(f"note: the file is read with --{name} {stated[name]} in place of {value}", err=True)
    if stated["elements"] is not None or in_bytes is not None:
        stated["elements"] = element_count(stated["elements"], in_bytes, dtype, verb)
    return stated


def check_file(path: str, method: str, processors: int | None) -> tuple[Schedule, MscclProof]:
    """Returns the schedule of a file of MSCCL, and the result of the file's check for all its buffers and sizes.

    If the command line states a size, the schedule and the result are for this size only.
    """
    stated = stated_values(path, "msccl-xml", "verify")
    found = check_msccl(path, **stated, method=method, processors=processors)
    return import_schedule(path, "msccl-xml", **stated), found


def place_of_step(found: MscclFinding) -> str:
    """Formats the GPU, thread block and step of a finding about a file of MSCCL, as far as known."""
    parts = [("gpu", found["rank"]), ("thread block", found["threadblock"]), ("step", found["step"])]
    return ", ".join(f"{name} {at}" for name, at in parts if at is not None)
