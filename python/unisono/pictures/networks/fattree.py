"""A fat tree: a few switches of every level, and beside each level the number of its switches."""

from collections.abc import Mapping
from math import ceil
from typing import Any

from unisono._core import Machine
from unisono.pictures.networks._canvas import Canvas, Point, count

__all__ = ["draw"]

_MIDDLE = 32
#: The largest numbers of drawn switches of a level, pods, and accelerators of a leaf.
_SWITCHES, _PODS, _ACCELERATORS = 6, 3, 5
_LEVEL = 3.2


def draw(canvas: Canvas, _machine: Machine, table: Mapping[str, Any]) -> str:
    """Draws the picture; all cables between two switches are one line."""
    n, down, up, levels = table["accelerators"], table["down"], table["up"], table["levels"]
    leaves, top_ports = ceil(n / down), table.get("top", 64)
    pods = 1 if levels == 2 else ceil(leaves / _MIDDLE)
    a_pod = leaves if levels == 2 else min(leaves, _MIDDLE)
    middle = ceil(a_pod * up / (top_ports if levels == 2 else _MIDDLE))
    shown_pods = min(pods, _PODS)
    each = _SWITCHES if shown_pods == 1 else 3
    pod_width = min(a_pod, each) * 2.6 + 0.8
    middles: list[Point] = []
    for pod in range(shown_pods):
        leaf_row = [(pod * pod_width + i * 2.6, 0.0) for i in range(min(a_pod, each))]
        center = sum(x for x, _ in leaf_row) / len(leaf_row)
        above = min(middle, each)
        row = [(center + (i - (above - 1) / 2) * 2.2, _LEVEL) for i in range(above)]
        middles += row
        for leaf in leaf_row:
            for switch in row:
                canvas.cable([leaf, switch], "aoc", 0.9)
            _leaf(canvas, leaf, min(down, n))
        for switch in row:
            canvas.switch(switch, 1.4, 0.5)
        _more(canvas, leaf_row[-1], a_pod - len(leaf_row))
        _more(canvas, row[-1], middle - len(row))
    right = max(x for x, _ in [*middles, (shown_pods * pod_width - 2.6, 0.0)]) + 2.6
    _label(canvas, right, 0.0, f"{leaves:,} {'leaf' if leaves == 1 else 'leaves, each'}", f"{down} down, {up} up")
    names = count(middle, "switch"), f"of {top_ports} ports"
    if levels == 3:
        total = (pods - 1) * middle + ceil((leaves - (pods - 1) * _MIDDLE) * up / _MIDDLE)
        tops = ceil(total * _MIDDLE / top_ports)
        _top(canvas, middles, tops)
        _label(canvas, right, 2 * _LEVEL, f"{count(tops, 'switch')} on top,", f"{top_ports} ports down")
        names = (f"{count(total, 'switch')}, each", f"{_MIDDLE} down, {_MIDDLE} up")
    _label(canvas, right, _LEVEL, *names)
    return f"{levels} levels, some switches of each; {count(leaves * up, 'cable')} lead up from the leaves"


def _top(canvas: Canvas, middles: list[Point], tops: int) -> None:
    center = (middles[0][0] + middles[-1][0]) / 2
    shown = min(tops, _SWITCHES)
    row = [(center + (i - (shown - 1) / 2) * 3.0, 2 * _LEVEL) for i in range(shown)]
    for switch in row:
        for below in middles:
            canvas.cable([below, switch], "aoc", 0.5)
        canvas.switch(switch, 1.8, 0.5)
    _more(canvas, row[-1], tops - shown)


def _leaf(canvas: Canvas, at: Point, down: int) -> None:
    shown = min(down, _ACCELERATORS)
    for i in range(shown):
        end = (at[0] + (i - (shown - 1) / 2) * 0.42, at[1] - 1.3)
        canvas.cable([at, end], "dac")
        canvas.accelerator(end, half=0.16)
    if down > shown:
        canvas.text((at[0], at[1] - 1.75), f"... {down}", size=7)
    canvas.switch(at, 1.6, 0.5)


def _more(canvas: Canvas, last: Point, left: int) -> None:
    if left > 0:
        canvas.text((last[0] + 1.35, last[1]), "...", size=9)


def _label(canvas: Canvas, x: float, y: float, *lines: str) -> None:
    canvas.text((x - 0.6, y), "\n".join(lines), "left")
    canvas.text((x + 3.6, y), "")
