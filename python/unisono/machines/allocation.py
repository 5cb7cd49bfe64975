"""Jobs on the boards of a network, around boards that failed."""

import os
from collections.abc import Iterable
from typing import SupportsIndex

from unisono import _core
from unisono._core import InputError
from unisono.base.files import read_text, title
from unisono.base.inputs import MachineLike, checked_seed, items, whole
from unisono.base.messages import shown
from unisono.base.names import named
from unisono.base.reports import AllocationReport
from unisono.machines.descriptions import with_shape

__all__ = ["TRACE", "allocate", "submesh"]

#: The argument for the job sizes of that trace.
TRACE = "alibaba"


def allocate(
    machine: MachineLike,
    jobs: str | os.PathLike[str] | Iterable[SupportsIndex | str] = TRACE,
    *,
    fail: SupportsIndex = 0,
    failed: Iterable[tuple[SupportsIndex, SupportsIndex]] = (),
    heuristic: str = "sort",
    samples: SupportsIndex = 1000,
    seed: SupportsIndex = 0,
) -> AllocationReport:
    """Computes the share of a machine's boards that jobs use, over many samples of failures.

    ``jobs`` is ``"alibaba"``, jobs of the sizes of that trace until they request all healthy boards; the path of a file
    with one job a line, a number of boards or rows x columns, or with a distribution of sizes, ``SHARE% BOARDS`` a
    line; or a list of such jobs. On a torus jobs take adjacent boards. The boards of ``failed``, each ``(row, column)``
    from 0 on, failed in every sample, and ``fail`` others fail, drawn anew for each sample. The result holds
    ``utilization_mean`` and ``utilization_p1`` (the 1st percentile) of the healthy boards, the jobs ``placed`` and
    ``refused`` in a sample on average, the share of traffic over the ``upper_level`` of the trees, and the ``first``
    sample: its ``failed`` boards and the ``rows`` and ``columns`` of each of its ``jobs``.

    Raises:
        InputError: a machine without boards, a failed board that it does not have or that is named twice, a job larger
            than the machine, all boards failed, no such heuristic.

    """
    listed: tuple[str, str] | None = None
    if isinstance(jobs, str | os.PathLike):
        if os.fspath(jobs) != TRACE:
            listed = (read_text(jobs, kind="a list of jobs, one size a line"), title(jobs))
    else:
        message = f"jobs is {shown(jobs)}, and must be '{TRACE}', a file or a list of jobs"
        listed = ("\n".join(str(job) for job in items(jobs, message)), "jobs")
    counts = {"fail": whole("fail", fail), "samples": whole("samples", samples)}
    for name, count in counts.items():
        if not 0 <= count < 2**32:
            raise InputError(f"{name} is {count}, and must be a whole number from 0 on")
    return _core.allocate(
        with_shape(machine, None),
        listed,
        named("heuristic", heuristic),
        seed=checked_seed(seed),
        failed=[_board(one) for one in items(failed, f"failed is {shown(failed)}, and must be a list of boards")],
        **counts,
    )


def _board(one: object) -> tuple[int, int]:
    if not isinstance(one, tuple | list) or len(one) != 2:
        raise InputError(f"{shown(one)} is not a board; accepted is (row, column)")
    row, column = (whole("a failed board", at) for at in one)
    if not (0 <= row < 2**32 and 0 <= column < 2**32):
        raise InputError(f"there is no board {row},{column}; rows and columns count from 0")
    return row, column


def submesh(
    machine: MachineLike, rows: Iterable[SupportsIndex], columns: Iterable[SupportsIndex]
) -> tuple[list[int], tuple[int, int]]:
    """Returns the accelerators of a virtual sub-mesh, the boards at those rows and columns, and its extents.

    Rank k of a collective on the sub-mesh runs on accelerator k of the list. The second result has the numbers of rows
    and columns of the ranks, which algorithms take as ``dims``.

    Raises:
        InputError: a machine without boards, or rows and columns that it does not have.

    """
    sides = {}
    for name, side in (("rows", rows), ("columns", columns)):
        sides[name] = [
            whole(f"one of the {name}", at) for at in items(side, f"{name} is {shown(side)}, and must be a list")
        ]
        if any(not 0 <= at < 2**32 for at in sides[name]):
            raise InputError(f"{name} of a sub-mesh are {sides[name]}; accepted are boards from 0 on in rising order")
    places, extents = _core.submesh(with_shape(machine, None), sides["rows"], sides["columns"])
    return places, (extents[0], extents[1])
