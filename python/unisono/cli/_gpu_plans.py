"""The check of a plan for GPUs, for `unisono verify`."""

from typing import Any

from unisono.base.inputs import element_count
from unisono.base.reports import Diagnostic, GpuPlanFinding, GpuPlanProof
from unisono.cli._failures import NO
from unisono.cli._output import print_fields, print_json, print_lines, working
from unisono.planning.gpu_plans import check_gpu_plan

__all__ = ["Steps", "place_of_step", "verify_plan", "with_steps"]

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
    as_json: bool,
    *,
    trust_relaxed: bool,
    processors: int | None,
) -> int:
    """Checks the plan and prints what was proved, and each fault with the shortest run that shows it."""
    elements, in_bytes = size
    if elements is not None or in_bytes is not None:
        elements = element_count(elements, in_bytes, dtype or "f32", "verify")
    with working("checking"):
        found = check_gpu_plan(path, elements, dtype, trust_relaxed=trust_relaxed, method=method, processors=processors)
    if as_json:
        print_json(found)
    else:
        _print(path, found)
    return NO if found["diagnostics"] else 0


def _print(path: str, found: GpuPlanProof) -> None:
    faults = found["diagnostics"]
    print_lines(f"{'refused' if faults else 'proved'}: the plan of {path}")
    print_fields(
        [
            ("complete", _SAID[found["complete"]]),
            ("deadlock-free", _SAID[found["deadlock_free"]]),
            ("race-free", _SAID[found["race_free"]]),
            ("repeatable", _SAID[found["repeatable"]]),
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
    """GPU, thread block and operation, as far as they are known."""
    parts = [("gpu", fault["rank"]), ("thread block", fault["threadblock"]), ("operation", fault["instruction"])]
    return ", ".join(f"{name} {at}" for name, at in parts if at is not None)


#: GPU, thread block and step of each instruction of a schedule, from a file of MSCCL.
Steps = list[tuple[int, int, int] | None]


def _step(found: Diagnostic, steps: Steps) -> tuple[int, int, int] | None:
    instruction = found["instruction"]
    return None if instruction is None else steps[instruction]


def place_of_step(found: Diagnostic, steps: Steps) -> str:
    """GPU, thread block and step of a finding about a file of MSCCL, as far as they are known."""
    place = _step(found, steps)
    if place is None:
        return "" if found["rank"] is None else f"gpu {found['rank']}"
    return f"gpu {place[0]}, thread block {place[1]}, step {place[2]}"


def with_steps(diagnostics: list[Diagnostic], steps: Steps) -> list[dict[str, Any]]:
    """The findings about a file of MSCCL with the keys ``threadblock`` and ``step``."""
    places = [_step(found, steps) for found in diagnostics]
    numbers = [(None, None) if place is None else place[1:] for place in places]
    return [
        {**found, "threadblock": block, "step": step} for found, (block, step) in zip(diagnostics, numbers, strict=True)
    ]
