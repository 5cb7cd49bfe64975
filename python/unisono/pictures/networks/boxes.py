"""Equal boxes side by side: accelerators in a row, the switches of their box above, then the switches that they share.

Rows follow the distance of switches to accelerators. Many boxes, or a single one, are drawn as a graph.
"""

import re
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from unisono._core import Machine, part_names, plane
from unisono.pictures.networks import graph
from unisono.pictures.networks._canvas import KINDS, Canvas, Point, count

__all__ = ["draw", "layout"]

#: The maximum number of boxes that are drawn side by side.
_MOST = 16
#: The distance of rows in a box and of its nodes, the margin of a box, and the space between boxes.
_ROW, _BESIDE, _MARGIN, _SPACE = 3.0, 1.0, 0.6, 0.6
#: The distance of rows of shared switches from each other and from the boxes, as a fraction of the width of all boxes;
#: and the minimum of this distance.
_RISE, _LEAST_RISE = 0.14, 3.0


def draw(canvas: Canvas, machine: Machine, table: Mapping[str, Any]) -> str:
    """Draws the boxes as light frames with their nodes, and the shared switches above them."""
    boxes = int(table["boxes"])
    if not 1 < boxes <= _MOST:
        return graph.draw(canvas, machine, table)
    found = plane(machine)
    n, nodes = found["accelerators"], found["nodes"]
    ends = list(zip(found["a"].tolist(), found["b"].tolist(), strict=True))
    of_box = boxes_of(part_names(machine))
    places = layout(n, ends, of_box)
    bends = len(ends) * nodes <= graph.BENT
    for (a, b), kind in zip(ends, found["kind"].tolist(), strict=True):
        canvas.cable(graph.route(places, a, b) if bends else [places[a], places[b]], KINDS[kind], 0.6)
    for node, at in enumerate(places):
        if node < n:
            canvas.accelerator(at)
        else:
            canvas.switch(at)
    for box in range(boxes):
        inside = [places[node] for node in range(nodes) if of_box[node] == box]
        left, right = min(x for x, _ in inside) - _MARGIN, max(x for x, _ in inside) + _MARGIN
        top = max(y for _, y in inside) + _MARGIN
        canvas.board((left, -_MARGIN), right - left, top + _MARGIN)
        canvas.text(((left + right) / 2, -_MARGIN - 0.6), f"box {box}")
    parts = count(boxes, "box"), count(n, "accelerator"), count(nodes - n, "switch"), count(len(ends), "cable")
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def boxes_of(names: Sequence[str]) -> list[int | None]:
    """Returns the box of each node by its name, such as ``rail 1 of box 2``; None for shared switches."""
    found = (re.search(r"box (\d+)$", name) for name in names)
    return [None if match is None else int(match[1]) for match in found]


def layout(accelerators: int, cables: Sequence[tuple[int, int]], of_box: Sequence[int | None]) -> list[Point]:
    """Returns positions of the nodes that do not overlap; ``of_box`` has the box of each node, None for a shared one.

    The nodes of a row are ordered by the mean position of their neighbors in rows below.
    """
    beside: list[set[int]] = [set() for _ in of_box]
    for a, b in cables:
        beside[a].add(b)
        beside[b].add(a)
    rows = _rows(accelerators, beside, of_box)
    boxes = sorted({box for box in of_box if box is not None})
    widest = max(len([node for node in row if of_box[node] == box]) for row in rows[0] for box in boxes)
    step = widest * _BESIDE + 2 * _MARGIN + _SPACE
    places: dict[int, Point] = {}
    for at, row in enumerate(rows[0]):
        for box in boxes:
            inside = [node for node in row if of_box[node] == box]
            places |= _spaced(inside, box * step, (widest - 1) * _BESIDE, at * _ROW, beside, places)
    width = (len(boxes) - 1) * step + (widest - 1) * _BESIDE
    height = (len(rows[0]) - 1) * _ROW
    for row in rows[1]:
        height += max(_LEAST_RISE, _RISE * width)
        # A row that is wider than all boxes together is centered above them.
        own = max(width * 0.8, (len(row) - 1) * _BESIDE)
        places |= _spaced(row, (width - own) / 2, own, height, beside, places)
    return [places[node] for node in range(len(of_box))]


def _rows(
    accelerators: int, beside: Sequence[set[int]], of_box: Sequence[int | None]
) -> tuple[list[list[int]], list[list[int]]]:
    """Returns rows of nodes in boxes, and rows of shared switches, each by the distance to the row before."""
    inside, shared = [list(range(accelerators))], list[list[int]]()
    for rows, is_shared in ((inside, False), (shared, True)):
        left = {node for node in range(accelerators, len(of_box)) if (of_box[node] is None) is is_shared}
        before = set(inside[-1]) if not is_shared else {node for row in inside for node in row}
        while left:
            # The last row contains the switches without a path to earlier rows.
            row = sorted(node for node in left if beside[node] & before) or sorted(left)
            rows.append(row)
            left -= set(row)
            before = set(row)
    return inside, shared


def _spaced(
    row: Sequence[int], left: float, width: float, y: float, beside: Sequence[set[int]], places: Mapping[int, Point]
) -> dict[int, Point]:
    """Returns places of a row's nodes, equally spaced over ``width``, a single one in the middle."""

    def wished(node: int) -> float:
        below = [places[other][0] for other in beside[node] if other in places]
        return fmean(below) if below else 0.0

    ordered = sorted(row, key=lambda node: (wished(node), node))
    if len(ordered) == 1:
        return {ordered[0]: (left + width / 2, y)}
    return {node: (left + width * at / (len(ordered) - 1), y) for at, node in enumerate(ordered)}
