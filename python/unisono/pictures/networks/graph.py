"""A graph from a list: accelerators on a circle, switches on inner circles by their distance to accelerators.

A straight cable that would pass behind a node is bent around it.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import atan2, cos, pi, sin
from typing import Any

import numpy as np

from unisono._core import Machine, plane
from unisono.pictures.networks._canvas import HALF, KINDS, Canvas, Point, arc, count

__all__ = ["draw", "layout", "route"]

#: The largest number of nodes with printed numbers.
_NUMBERED = 64
#: The largest product of cables and nodes for which cables are bent; in larger pictures bends are not visible.
BENT = 40_000
#: The distance between circles, and between the centers of neighbors on a circle.
_APART, _BESIDE = 2.0, 1.0
#: The margin around a node that cables of other nodes avoid.
_MARGIN = 0.08
#: The bends that are tried, as fractions of a cable's length.
_BENDS = tuple(sign * part / 100 for part in (4, 8, 12, 20, 30, 45, 70, 100) for sign in (1, -1))
#: Points per unit of a cable's length at which its distance from nodes is checked.
_POINTS = 8


def draw(canvas: Canvas, machine: Machine, _table: Mapping[str, Any]) -> str:
    """Draws the network, with numbers if it is small; of parallel cables only the first is visible."""
    found = plane(machine)
    n, nodes = found["accelerators"], found["nodes"]
    ends = list(zip(found["a"].tolist(), found["b"].tolist(), strict=True))
    places = layout(n, nodes, ends)
    half = min(HALF, 2.2 * float(np.hypot(*places[0])) / n) if n > 1 else HALF
    width = 1.1 if len(ends) <= 200 else 0.4
    bends = len(ends) * nodes <= BENT
    for (a, b), kind in zip(ends, found["kind"].tolist(), strict=True):
        canvas.cable(route(places, a, b) if bends else [places[a], places[b]], KINDS[kind], width)
    for node, at in enumerate(places):
        name = str(node) if nodes <= _NUMBERED else ""
        if node < n:
            canvas.accelerator(at, name, half)
        else:
            canvas.switch(at, name=name)
    return f"{count(n, 'accelerator')}, {count(nodes - n, 'switch')} and {count(len(ends), 'cable')}"


def layout(accelerators: int, nodes: int, cables: Sequence[tuple[int, int]]) -> list[Point]:
    """Returns positions of the nodes that do not overlap.

    Accelerators are on the outermost circle. Switches are on inner circles by their distance to the nearest
    accelerator, ordered by the mean direction of their outer neighbors.
    """
    beside: list[set[int]] = [set() for _ in range(nodes)]
    for a, b in cables:
        beside[a].add(b)
        beside[b].add(a)
    circles = [list(range(accelerators))]
    left = set(range(accelerators, nodes))
    while left:
        # Switches without a path to an accelerator are on the innermost circle.
        outer = set(circles[-1])
        circles.append(sorted(node for node in left if beside[node] & outer) or sorted(left))
        left -= set(circles[-1])
    angles = {node: 2 * pi * node / max(accelerators, 1) for node in range(accelerators)}
    for outer_circle, circle in pairwise(circles):
        angles |= _ordered(circle, set(outer_circle), beside, angles)
    radius = 0.0
    places: dict[int, Point] = {}
    for at, circle in enumerate(reversed(circles)):
        least = max(len(circle) * _BESIDE / (2 * pi), _APART) if len(circle) > 1 else 0.0
        radius = least if at == 0 else max(radius + _APART, least)
        places |= {node: (radius * sin(angles[node]), radius * cos(angles[node])) for node in circle}
    return [places[node] for node in range(nodes)]


def _ordered(
    circle: Sequence[int], outer: set[int], beside: Sequence[set[int]], angles: Mapping[int, float]
) -> dict[int, float]:
    """Returns angles of a circle's nodes: equally spaced, and near the mean angles of their outer neighbors."""
    wished = {}
    for node in circle:
        seen = [angles[other] for other in beside[node] & outer]
        x, y = sum(map(sin, seen)), sum(map(cos, seen))
        # Opposite directions have no mean, so the smallest angle is used.
        wished[node] = atan2(x, y) % (2 * pi) if x * x + y * y > 1e-9 else (min(seen) if seen else 0.0)
    ordered = sorted(circle, key=lambda node: (wished[node], node))
    step = 2 * pi / len(ordered)
    turns = [wished[node] - k * step for k, node in enumerate(ordered)]
    turn = atan2(sum(map(sin, turns)), sum(map(cos, turns)))
    return {node: turn + k * step for k, node in enumerate(ordered)}


def route(places: Sequence[Point], a: int, b: int) -> list[Point]:
    """Returns a cable's points: straight, or with the smallest bend that hits the fewest other nodes."""
    others = np.array([at for node, at in enumerate(places) if node not in (a, b)]).reshape(-1, 2)
    start, end = places[a], places[b]
    length = float(np.hypot(end[0] - start[0], end[1] - start[1]))

    def covered(points: list[Point]) -> int:
        fine = _fine(np.array(points))
        near = np.abs(fine[:, None, :] - others[None, :, :]).max(axis=2) < HALF + _MARGIN
        return int(near.any(axis=0).sum())

    best = [start, end]
    least = covered(best) if len(others) else 0
    for bend in _BENDS:
        if least == 0:
            break
        tried = arc(start, end, bend * length)
        found = covered(tried)
        if found < least:
            best, least = tried, found
    return best


def _fine(points: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """Returns points along a line, less than half an accelerator apart."""
    parts = []
    for start, end in pairwise(points):
        steps = int(np.hypot(*(end - start)) * _POINTS) + 2
        parts.append(start + (end - start) * np.linspace(0, 1, steps)[:, None])
    return np.concatenate(parts)
