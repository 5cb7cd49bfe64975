"""Finds the best algorithm at every point of a grid of shapes and lengths."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex

from unisono import _core
from unisono._core import InputError, Machine
from unisono.base import names
from unisono.base.html import TableOfRows, time_text
from unisono.base.inputs import MachineLike, Root, checked_count, checked_root, is_whole, items
from unisono.base.messages import shown
from unisono.base.reports import SweepPoint
from unisono.base.studies import KeptPoints, results
from unisono.machines.descriptions import Shape, with_shape

if TYPE_CHECKING:
    from concurrent.futures import Executor

__all__ = ["merge_shards", "sweep"]


def sweep(
    collective: str,
    machine: MachineLike,
    *,
    elements: Iterable[SupportsIndex],
    shapes: Iterable[Shape] | None = None,
    algorithms: Sequence[str] | None = None,
    baseline: str | None = None,
    dtype: str = "f32",
    op: str = "sum",
    root: Root = 0,
    params: Mapping[str, str | int] | None = None,
    model: str | None = None,
    shard: tuple[int, int] | None = None,
    executor: "Executor | None" = None,
    kept: KeptPoints | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[SweepPoint]:
    """Returns one point for each shape and length; the length changes fastest.

    Without ``shapes``, the sweep is on the part that ``machine`` names, such as a subset of its nodes. A point holds
    ``shape``, ``elements``, ``model``, ``best``, ``params``, ``seconds``, ``baseline``, ``baseline_seconds``,
    ``baseline_ratio`` (the baseline's time divided by the best) and ``seconds_by_algorithm``; also ``cycles``,
    ``baseline_cycles`` and ``cycles_by_algorithm``, which are None on a machine without cycles; and ``source``,
    ``baseline_source`` and ``source_by_algorithm``, ``"simulated"`` or the part of the model that gave a time. Without
    ``algorithms`` the candidates are those of a plan, and each algorithm counts with the best of its parameters. A
    named one is timed as in a plan of it, with those of ``params`` that it has (on a wafer, with its defaults for the
    others); it is left out of points that it does not support. The baseline has its time as a candidate or, if it is
    none, that of a named one; on one rank the best algorithm replaces such a baseline. The default ``baseline``
    depends on the machine; the best algorithm replaces it where it does not support the point. ``progress`` is called
    with the number of points done and of all points.

    With ``shard=(i, n)`` only every nth point is computed, from the ith on (1 to n), so that n jobs share a sweep;
    :func:`merge_shards` joins their points. An ``executor`` computes points at the same time: threads of
    ``concurrent.futures``, processes, MPI ranks of mpi4py, or workers of Dask. With ``kept`` each point is written to a
    file when it ends, and points that are there are not computed. The points are the same.

    Raises:
        InputError: a name, size, shape or root that does not exist, or nothing to sweep over.
        UnsupportedError: no algorithm supports a point.

    """
    what = f"shapes is {shown(shapes)}, and must be a list of shapes"
    listed: list[Shape | None] = [None] if shapes is None else [*items(shapes, what)]
    lengths = items(elements, f"elements is {shown(elements)}, and must be a list of numbers of elements")
    if not listed or not lengths:
        raise InputError("a sweep needs at least one shape and one number of elements")
    kind, of, how = names.collective(collective), names.datatype(dtype), names.operator(op)
    if progress is not None and not callable(progress):
        raise InputError(f"progress is {shown(progress)}; accepted are a function and None")
    asked = None if algorithms is None else items(algorithms, f"algorithms is {shown(algorithms)}, and must be a list")
    chosen = None if asked is None else [names.algorithm(name) for name in asked]
    against = None if baseline is None else names.algorithm(baseline)
    counts = [checked_count(count) for count in lengths]
    first, step = _checked_shard(shard)
    total = len(range(first, len(listed) * len(counts), step))
    # The number of points is checked before the list is made, which may be large.
    _core.admit_sweep(total, 0)
    sized = [with_shape(machine, shape) for shape in listed]
    asked_points = [(one, count) for one in sized for count in counts][first::step]
    calls = [
        (kind, one, count, chosen, against, of, how, checked_root(root), params, model) for one, count in asked_points
    ]
    points: list[SweepPoint] = []
    spent = expected = 0
    before: Machine | None = None
    made = results(_point, calls, executor, kept)
    for (one, _), (point, steps) in zip(asked_points, made, strict=True):
        points.append(point)
        spent += steps
        # The steps of the first point of a shape are the estimate for its other points. The estimate is made again if a
        # longer vector needs more steps.
        if one is not before or spent > expected:
            expected = spent + steps * sum(other is one for other, _ in asked_points[len(points) :])
            _core.admit_sweep(total, expected)
        before = one
        if progress is not None:
            progress(len(points), total)
    return _shown(points)


def _shown(points: list[SweepPoint]) -> list[SweepPoint]:
    """Returns the points as a list that notebooks show as a table."""
    return TableOfRows(points, ("shape", "elements", "best", "time", "baseline", "gain"), _cells)


def _cells(point: SweepPoint) -> tuple[object, ...]:
    words = [point["best"], *(f"{key}={value}" for key, value in point["params"].items())]
    gain = point["baseline_ratio"]
    return (
        "x".join(map(str, point["shape"])),
        f"{point['elements']:,}",
        " ".join(words),
        time_text(point["seconds"]) if point["cycles"] is None else f"{point['cycles']:,.10g} cycles",
        point["baseline"],
        "" if gain is None else f"{gain:.2f}",
    )


def _point(call: tuple[Any, ...]) -> tuple[SweepPoint, int]:
    """Returns a point, and the number of steps of its computation. Executors call this, also in other processes."""
    return _core.sweep_point(*call), _core.steps_counted()


def _checked_shard(shard: tuple[int, int] | None) -> tuple[int, int]:
    """Returns the index of the first point of a shard, and the distance to its next point.

    Raises:
        InputError: the value is not a shard.

    """
    if shard is None:
        return 0, 1
    message = f"the shard is {shown(shard)}; accepted is (i, n) with 1 <= i <= n, the ith of n"
    parts = items(shard, message)
    if len(parts) != 2 or not all(map(is_whole, parts)) or not 1 <= parts[0] <= parts[1]:
        raise InputError(message)
    return int(parts[0]) - 1, int(parts[1])


def merge_shards(shards: Sequence[Sequence[SweepPoint]]) -> list[SweepPoint]:
    """Joins the points of all shards of a sweep, given in the order of the shards.

    Raises:
        InputError: the numbers of points do not fit the shards of one sweep.

    """
    total = sum(map(len, shards))
    for at, points in enumerate(shards):
        expected = len(range(at, total, len(shards)))
        if len(points) != expected:
            raise InputError(
                f"shard {at + 1} of {len(shards)} has {len(points)} points, and {expected} of {total} are its own"
            )
    return _shown([shards[at % len(shards)][at // len(shards)] for at in range(total)])
