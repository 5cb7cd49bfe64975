"""A graph from a list: accelerators on a circle, switches on one inside it."""

from collections.abc import Mapping
from math import cos, pi, sin
from typing import Any

from unisono._core import Machine, plane
from unisono.networks._canvas import HALF, KINDS, Canvas, Point, count

__all__ = ["draw"]

#: The most nodes that are numbered.
_NUMBERED = 64


def draw(canvas: Canvas, machine: Machine, _table: Mapping[str, Any]) -> str:
    """Cables are straight."""
    found = plane(machine)
    n, nodes = found["accelerators"], found["nodes"]
    outer = max(2.0, n * 0.16)
    places = [_around(outer, k, n) for k in range(n)]
    places += [_around(outer * 0.55 if nodes - n > 1 else 0.0, k, nodes - n) for k in range(nodes - n)]
    width = 1.1 if len(found["a"]) <= 200 else 0.4
    for a, b, kind in zip(found["a"].tolist(), found["b"].tolist(), found["kind"].tolist(), strict=True):
        canvas.cable([places[a], places[b]], KINDS[kind], width)
    for node, at in enumerate(places):
        name = str(node) if nodes <= _NUMBERED else ""
        if node < n:
            canvas.accelerator(at, name, min(HALF, 2.2 * outer / n))
        else:
            canvas.switch(at, name=name)
    return f"{count(n, 'accelerator')}, {count(nodes - n, 'switch')} and {count(len(found['a']), 'cable')}"


def _around(radius: float, k: int, n: int) -> Point:
    return radius * sin(2 * pi * k / n), radius * cos(2 * pi * k / n)
