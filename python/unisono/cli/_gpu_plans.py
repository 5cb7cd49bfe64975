"""The check of a plan for GPUs, for `unisono verify`."""

from typing import Any

from unisono import Schedule
from unisono.base.inputs import element_count
from unisono.base.reports import GpuPlanFinding, GpuPlanProof, MscclFinding, MscclProof
from unisono.cli._bits import bits_text, print_verdict, verdict
from unisono.cli._failures import NO
from unisono.cli._output import print_fields, print_json, print_lines, working
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
    size: tuple[int | None, str | None],
    dtype: str | None,
    method: str,
    require: str | None,
    as_json: bool,
    *,
    trust_relaxed: bool,
    processors: int | None,
) -> int:
    """Checks the plan and prints the proved properties, and each fault with the shortest run that shows it."""
    elements, in_bytes = size
    if elements is not None or in_bytes is not None:
        elements = element_count(elements, in_bytes, dtype or "f32", "verify")
    with working("checking"):
        found = check_gpu_plan(path, elements, dtype, trust_relaxed=trust_relaxed, method=method, processors=processors)
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


def check_file(path: str, options: dict[str, Any], method: str, processors: int | None) -> tuple[Schedule, MscclProof]:
    """Returns the schedule of a file of MSCCL, and the result of the file's check for all its buffers and sizes.

    If ``options`` state a size, the schedule and the result are for this size only.
    """
    elements, in_bytes, dtype = options["elements"], options["bytes"], options["dtype"]
    if elements is not None or in_bytes is not None:
        elements = element_count(elements, in_bytes, dtype or "f32", "verify")
    asked = elements, dtype, options["op"], options["root"]
    return import_schedule(path, "msccl-xml", *asked), check_msccl(path, *asked, method=method, processors=processors)


def place_of_step(found: MscclFinding) -> str:
    """Formats the GPU, thread block and step of a finding about a file of MSCCL, as far as known."""
    parts = [("gpu", found["rank"]), ("thread block", found["threadblock"]), ("step", found["step"])]
    return ", ".join(f"{name} {at}" for name, at in parts if at is not None)
