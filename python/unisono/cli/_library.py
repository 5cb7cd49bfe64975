"""Prints the own choice of a library, and makes rows of a tuning file of its own algorithms."""

from typing import Any

from unisono import InputError, Machine, UnsupportedError, _core
from unisono.base.reports import LibraryReport, PlanReport
from unisono.cli._output import microseconds, number, print_fields, print_lines, print_table

__all__ = ["OWN_ROWS", "own_rows", "print_library"]

OWN_ROWS = (
    "lines are the best of NCCL's own algorithms by the times of --as nccl, which are NCCL's own estimates until "
    "'unisono calibrate --from' fits them to logs"
)


def print_library(library: LibraryReport) -> None:
    """Prints the choice with its time, and a table of all that the library enables."""
    busbw = "" if library["busbw"] is None else f", busbw {number(library['busbw'], 1)} GB/s"
    chosen = (
        f"{library['algorithm']} {library['protocol']}, {library['channels']} channels of "
        f"{library['channel_gb_per_second']:.4g} GB/s: {microseconds(library['seconds'])} µs{busbw}"
    )
    print_lines("")
    print_fields([(f"as {library['name']}", chosen), ("note", library["note"])])
    print_lines("")
    rows = [
        [
            f"{one['algorithm']} {one['protocol']}",
            str(one["channels"]),
            f"{one['channel_gb_per_second']:.4g}",
            f"{one['latency_us']:.1f}",
            f"{one['gb_per_second']:.1f}",
            microseconds(one["cost_seconds"]),
            microseconds(one["seconds"]),
        ]
        for one in library["choices"]
    ]
    right = ["channels", "GB/s each", "latency µs", "GB/s", "own estimate µs", "predicted µs"]
    print_table([f"{library['name']} enables", *right], rows, right=right)


def own_rows(row: dict[str, Any], machine: Machine, report: PlanReport) -> list[dict[str, Any]]:
    """Rows of a tuning file for the sizes of ``row``; none where NCCL's own choice is not known."""
    try:
        regions = _core.library_sizes("nccl", report["collective"], machine, report["dtype"], report["operator"])
    except (InputError, UnsupportedError):
        return []
    last = row["last_bytes"]
    facts = machine.describe()["topology"]
    boxes = facts.get("boxes", 1)
    per_node = report["ranks"] // boxes if boxes == 1 or report["ranks"] == boxes * facts["accelerators"] else None
    rows = []
    for region in regions:
        ends = [end for end in (region["last_bytes"], last) if end is not None]
        first, end = max(region["first_bytes"], row["first_bytes"]), min(ends, default=None)
        if end is None or first <= end:
            own = {"algorithm": f"nccl-{region['algorithm'].replace('_', '-')}", "per_node": per_node}
            sizes = {"first_bytes": first, "last_bytes": end}
            rows.append({**row, **own, **sizes, "params": {"protocol": region["protocol"]}})
    return rows
