"""Computes the choices of libraries by their own rules, and rows of decision tables for them."""

from collections.abc import Sequence
from typing import Any

from unisono import _core
from unisono._core import Machine
from unisono.base import names
from unisono.base.reports import LibraryReport, PlanReport

__all__ = ["OF_NCCL", "library_choice", "library_rows", "library_sizes"]

#: The formats of tuning files that name NCCL's own algorithms.
OF_NCCL = frozenset(("nccl-tuner-csv", "ncclx-csv"))


def library_choice(
    collective: str,
    machine: Machine,
    elements: int,
    dtype: str = "f32",
    op: str = "sum",
    *,
    places: Sequence[int] | None = None,
    library: str = "nccl",
) -> LibraryReport:
    """Returns a library's own choice, like ``Plan.library``; ``places`` are the accelerators of the ranks.

    Raises:
        InputError: the library is not known, or the machine lacks values that its model reads.
        UnsupportedError: the library has no algorithms for the collective.

    """
    given = None if places is None else list(places)
    return _core.library_choice_of(names.library(library), collective, machine, elements, dtype, op, given)


def library_sizes(
    collective: str, machine: Machine, dtype: str = "f32", op: str = "sum", *, library: str = "nccl"
) -> list[dict[str, Any]]:
    """Returns the best of a library's own algorithms by size: ``[{first_bytes, last_bytes, algorithm, protocol}]``.

    Raises:
        InputError, UnsupportedError: as :func:`library_choice`.

    """
    return _core.library_sizes(library, collective, machine, dtype, op)


def library_rows(row: dict[str, Any], machine: Machine, report: PlanReport) -> list[dict[str, Any]]:
    """Returns rows of a tuning file of NCCL for the sizes of ``row``.

    Raises:
        InputError, UnsupportedError: NCCL's own choice is not known; the message gives the reason.

    """
    regions = library_sizes(report["collective"], machine, report["dtype"], report["operator"])
    last = row["last_bytes"]
    topology = machine.describe()["topology"]
    boxes = topology.get("boxes", 1)
    # Rows are for equal boxes, but in a part of a machine boxes may have different numbers of ranks.
    is_whole = boxes == 1 or report["ranks"] == boxes * topology["accelerators"]
    rows = []
    for region in regions:
        ends = [end for end in (region["last_bytes"], last) if end is not None]
        first, end = max(region["first_bytes"], row["first_bytes"]), min(ends, default=None)
        if end is None or first <= end:
            own = {
                "algorithm": f"nccl-{region['algorithm'].replace('_', '-')}",
                "params": {"protocol": region["protocol"]},
                "per_node": report["ranks"] // boxes if is_whole else None,
            }
            rows.append({**row, **own, "first_bytes": first, "last_bytes": end})
    return rows
