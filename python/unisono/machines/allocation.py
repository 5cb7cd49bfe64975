"""The placement of jobs on the boards of a network of which some boards failed."""

import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex

from unisono import _core
from unisono._core import InputError
from unisono.base.files import read_text, title
from unisono.base.inputs import MachineLike, checked_seed, items, whole
from unisono.base.messages import shown
from unisono.base.names import named
from unisono.base.reports import AllocationCounts, AllocationReport
from unisono.base.studies import KeptPoints, results
from unisono.machines.descriptions import with_shape

if TYPE_CHECKING:
    from concurrent.futures import Executor

__all__ = ["TRACE", "allocate", "submesh"]

#: The value of ``jobs`` for the job sizes of Alibaba's trace.
TRACE = "alibaba"
#: The number of samples in one point of a study.
_BLOCK = 256


def allocate(
    machine: MachineLike,
    jobs: str | os.PathLike[str] | Iterable[SupportsIndex | str] = TRACE,
    *,
    fail: SupportsIndex = 0,
    failed: Iterable[Sequence[SupportsIndex] | str] = (),
    heuristic: str = "sort",
    samples: SupportsIndex = 1000,
    seed: SupportsIndex = 0,
    board: SupportsIndex | None = None,
    aligned: bool = False,
    executor: "Executor | None" = None,
    kept: KeptPoints | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> AllocationReport:
    """Computes the share of a machine's boards that jobs use, over many samples of failures.

    ``jobs`` is ``"alibaba"``, jobs of the sizes of that trace until they request all healthy boards; the path of a file
    with one job a line, a number of boards or rows x columns, or with a distribution of sizes, ``SHARE% BOARDS`` a
    line; or a list of such jobs. A job takes the boards at the crossings of rows and columns of a HammingMesh, a box of
    adjacent boards of a torus or mesh, and any boards of a fat tree, a dragonfly or boxes. Fat trees, dragonflies and
    boxes have no boards of their own: ``board`` is the number of adjacent accelerators that are allocated together (1),
    and ``aligned`` keeps jobs that fit into a leaf, router, group or box inside one. The boards of ``failed``, each a
    position from 0 on such as ``(row, column)`` or the name of a part such as ``"group 2"``, failed in every sample, as
    did those of failed accelerators of the machine, and ``fail`` others fail, drawn anew for each sample. The result
    holds ``utilization_mean`` and ``utilization_p1`` (the 1st percentile) of the healthy boards, the jobs ``placed``
    and ``refused`` in a sample on average, the share of traffic over the ``upper_level`` of the switches, and the
    ``first`` sample: its ``failed`` boards and the ``positions`` of each of its ``jobs`` along each dimension.

    A point of ``executor`` and ``kept``, which mean the same as in :func:`sweep`, is a block of 256 samples.
    ``progress`` is called with the number of samples done and of all samples.

    Raises:
        InputError: a machine whose family has no rule for jobs, a failed board that it does not have or that is named
            twice, a job larger than the machine, all boards failed, no such heuristic, boards that do not divide the
            machine.

    """
    listed: tuple[str, str] | None = None
    if isinstance(jobs, str | os.PathLike):
        if os.fspath(jobs) != TRACE:
            listed = (read_text(jobs, kind="a list of jobs, one size a line"), title(jobs))
    else:
        message = f"jobs is {shown(jobs)}, and must be '{TRACE}', a file or a list of jobs"
        listed = ("\n".join(str(job) for job in items(jobs, message)), "jobs")
    sizes = {"fail": whole("fail", fail), "samples": whole("samples", samples)}
    for name, count in sizes.items():
        if not 0 <= count < 2**32:
            raise InputError(f"{name} is {count}, and must be a whole number from 0 to {2**32 - 1}")
    on, total = with_shape(machine, None), sizes["samples"]
    asked = {
        "jobs": listed,
        "heuristic": named("heuristic", heuristic),
        "fail": sizes["fail"],
        "seed": checked_seed(seed),
        "failed": [_board(one) for one in items(failed, f"failed is {shown(failed)}, and must be a list of boards")],
        "board": None if board is None else _accelerators(board),
        "aligned": bool(aligned),
    }
    _core.admit_allocations(on, asked, total)
    blocks = ((on, asked, first, min(first + _BLOCK, total)) for first in range(0, total, _BLOCK))
    counts: list[AllocationCounts] = []
    for of_block in results(_counts, blocks, executor, kept):
        # A point read from a file has lists instead of tuples.
        counts += map(tuple, of_block)
        if progress is not None:
            progress(len(counts), total)
    return _core.allocation_report(on, asked, counts)


def _counts(call: tuple[Any, ...]) -> list[AllocationCounts]:
    """Returns the sums of each sample of a block. Executors call this, also in other processes."""
    return _core.count_allocations(*call)


def _accelerators(board: SupportsIndex) -> int:
    count = whole("board", board)
    if not 1 <= count < 2**32:
        raise InputError(f"board is {count}, and must be a number of accelerators from 1 to {2**32 - 1}")
    return count


def _board(one: object) -> list[int] | str:
    if isinstance(one, str):
        return one
    if not isinstance(one, tuple | list) or not one:
        raise InputError(f"{shown(one)} is not a board; accepted are (row, column) and the name of a part")
    position = [whole("a failed board", at) for at in one]
    if any(not 0 <= at < 2**32 for at in position):
        raise InputError(f"there is no board {','.join(map(str, position))}; rows and columns count from 0")
    return position


def submesh(
    machine: MachineLike, rows: Iterable[SupportsIndex], columns: Iterable[SupportsIndex]
) -> tuple[list[int], tuple[int, int]]:
    """Returns the accelerators of a virtual sub-mesh, which has the boards at those rows and columns, and its extents.

    Rank k of a collective on the sub-mesh runs on accelerator k of the list. The second result has the numbers of rows
    and columns of the ranks, which algorithms take as ``dims``.

    Raises:
        InputError: the machine has no boards, or not these rows and columns.

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
