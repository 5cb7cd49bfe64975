"""A dragonfly: the groups on a circle, and beside it one group with its routers."""

from collections.abc import Mapping
from itertools import combinations
from math import cos, pi, sin
from typing import Any

from unisono._core import Machine
from unisono.pictures.networks._canvas import Canvas, Point, count

__all__ = ["draw"]

_ACCELERATORS = 4


def draw(canvas: Canvas, _machine: Machine, table: Mapping[str, Any]) -> str:
    """Draws the picture; all cables between two groups are one line."""
    p, a, h, g = (table[key] for key in ("p", "a", "h", "g"))
    pair = a * h // (g - 1) if g > 1 else 0
    radius = max(2.2, g * 0.2, a * 0.24)
    groups = [_around((0, 0), radius, k, g) for k in range(g)]
    for one, other in combinations(groups, 2):
        canvas.cable([one, other], "aoc", 1.2 if g <= 12 else 0.6)
    for k, group in enumerate(groups):
        canvas.switch(group, 0.62, 0.46, str(k))
    canvas.text(
        (0, -radius - 0.9), f"{g} groups; {count(pair, 'optical cable')} between each two" if g > 1 else "one group"
    )
    canvas.text((0, radius + 0.9), "the groups")

    center = (2 * radius + 3.6, 0.0)
    routers = [_around(center, radius, k, a) for k in range(a)]
    together = min(a, max(1, 64 // (p + a - 1 + h)))
    for (i, one), (j, other) in combinations(enumerate(routers), 2):
        same = i // together == j // together
        canvas.cable([one, other], "board" if same else "dac", 1.8 if same else 0.6)
    for k, router in enumerate(routers):
        shown = min(p, _ACCELERATORS)
        for t in range(shown):
            turn = 2 * pi * (k + (t - (shown - 1) / 2) * 0.7 / shown) / a
            at = (center[0] + (radius + 1.0) * sin(turn), center[1] + (radius + 1.0) * cos(turn))
            canvas.cable([router, at], "dac", 0.8)
            canvas.accelerator(at, half=min(0.15, 1.6 * radius / (a * shown)))
        canvas.switch(router, 0.5, 0.4)
    canvas.text(
        (center[0], radius + 1.7), f"one group: {count(a, 'router')} with {p} accelerators and {h} global ports each"
    )
    shares = f"{together} routers share a switch of 64 ports" if together > 1 else "a router is a switch"
    shares += f"; {_ACCELERATORS} of {p} accelerators drawn" if p > _ACCELERATORS else ""
    canvas.text((center[0], -radius - 1.7), shares)
    return f"p = {p}, a = {a}, h = {h}, g = {g}"


def _around(center: Point, radius: float, k: int, n: int) -> Point:
    return center[0] + radius * sin(2 * pi * k / n), center[1] + radius * cos(2 * pi * k / n)
