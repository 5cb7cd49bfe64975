"""The best algorithm at every point of a grid of shapes and lengths."""

import os
from collections.abc import Callable, Iterable, Sequence
from typing import SupportsIndex

from unisono import _core
from unisono._core import InputError, Machine
from unisono.base import names
from unisono.base.inputs import Root, checked_count, checked_root, items
from unisono.base.messages import shown
from unisono.base.reports import SweepPoint
from unisono.machines.descriptions import Shape, with_shape

__all__ = ["sweep"]


def sweep(
    collective: str,
    machine: Machine | str | os.PathLike[str],
    *,
    elements: Iterable[SupportsIndex],
    shapes: Iterable[Shape] | None = None,
    algorithms: Sequence[str] | None = None,
    baseline: str | None = None,
    dtype: str = "f32",
    op: str = "sum",
    root: Root = 0,
    params: dict[str, str] | None = None,
    model: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[SweepPoint]:
    """One point for each shape and length, lengths running fastest.

    Without ``shapes`` the part of the machine is swept that ``machine`` names, such as a subset of its nodes.
    A point holds ``shape``, ``elements``, ``best``, ``params``, ``seconds``, ``baseline``, ``baseline_seconds``,
    ``baseline_ratio`` (how many times faster the best is than the baseline) and ``seconds_by_algorithm``; also
    ``cycles``, ``baseline_cycles`` and ``cycles_by_algorithm``, which are None on a machine without cycles. Among ranks
    each algorithm counts at the best of its candidate parameters.
    ``progress`` is called with the number of points done and of all points.

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
    points: list[SweepPoint] = []
    total = len(listed) * len(counts)
    _core.admit_sweep(total, 0)
    done = expected = 0
    for shape in listed:
        sized = with_shape(machine, shape)
        for index, count in enumerate(counts):
            point = _core.sweep_point(kind, sized, count, chosen, against, of, how, checked_root(root), params, model)
            points.append(point)
            steps = _core.steps_counted()
            done += steps
            # The first point of a shape gives the estimate for the others; longer vectors may need more.
            if index == 0 or done > expected:
                expected = done + steps * (len(counts) - index - 1)
                _core.admit_sweep(total, expected)
            if progress is not None:
                progress(len(points), total)
    return points
