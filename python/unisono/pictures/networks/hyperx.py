"""A HyperX: switches on a grid, with a link between any two switches of a line."""

from collections.abc import Mapping
from itertools import product
from typing import Any

from unisono._core import Machine
from unisono.pictures.networks._canvas import Canvas, arc, count
from unisono.pictures.networks.lattice import part_of, place, steps

__all__ = ["draw"]

_MOST, _WIDE = 27, 3.0


def draw(canvas: Canvas, _machine: Machine, table: Mapping[str, Any]) -> str:
    """Draws the picture; links between neighbors are straight, all other links are arcs."""
    dims, terminals = table["dims"], table.get("terminals", 1)
    shown = part_of(dims, [1] * len(dims), _MOST)
    by = [(_WIDE * x, _WIDE * y) for x, y in steps(shown)]
    for coordinates in product(*map(range, shown)):
        x, y = place(coordinates, by)
        canvas.switch((x, y))
        drawn = min(terminals, 4)
        for t in range(drawn):
            at = (x + (t - (drawn - 1) / 2) * 0.4 + 0.55, y - 0.75)
            canvas.cable([(x, y), at], "dac")
            canvas.accelerator(at, half=0.15)
        if terminals > drawn:
            canvas.text((x + 0.75 + 0.2 * drawn, y - 0.75), f"... {terminals}", "left", 7)
        for dim, (dx, dy) in enumerate(by):
            for other in range(coordinates[dim] + 1, shown[dim]):
                far = other - coordinates[dim]
                to = (x + far * dx, y + far * dy)
                canvas.cable([(x, y), to] if far == 1 else arc((x, y), to, 0.3 * (far - 1) + 0.15), "aoc", 0.9)
    cables = table.get("cables") or [1] * len(dims)
    many = f", {' and '.join(map(str, cables))} cables side by side" if max(cables) > 1 else ""
    size = " x ".join(map(str, dims))
    part = f"{size} switches" if shown == list(dims) else f"{' x '.join(map(str, shown))} of {size} switches"
    return f"{part} of {count(terminals, 'accelerator')}, lines linked all with all{many}"
