"""The positions of a machine's nodes in a picture: points with one unit between neighbors."""

from collections.abc import Sequence
from itertools import pairwise
from math import ceil, cos, pi, sin, sqrt

from unisono._core import Machine

__all__ = ["Place", "circle_or_grid", "closed_up", "grid", "network"]

Place = tuple[float, float]

#: The largest number of ranks on a circle.
_MOST_ON_A_CIRCLE = 48
#: The widest gap between neighbors, in units, in a picture of a part of a machine.
_WIDEST_GAP = 2.0


def grid(rows: int, columns: int) -> list[Place]:
    """Returns positions of a grid in row-major order, the first at the upper left."""
    return [(float(column), float(row)) for row in range(rows) for column in range(columns)]


def circle_or_grid(count: int) -> list[Place]:
    """Returns positions of ranks without a machine: on a circle, or for many ranks on a grid."""
    if count <= _MOST_ON_A_CIRCLE:
        radius = max(1.0, count / (2 * pi))
        return [(radius * sin(2 * pi * k / count), -radius * cos(2 * pi * k / count)) for k in range(count)]
    columns = ceil(sqrt(count))
    return grid(ceil(count / columns), columns)[:count]


def network(machine: Machine, accelerators: int, nodes: int, cables: Sequence[tuple[int, int]]) -> list[Place]:
    """Returns positions of the accelerators and switches of a network's plane.

    Accelerators with two dimensions are on a grid, and a switch of a row or column is at the end of that line. Without
    switches, :func:`circle_or_grid` applies. Other accelerators are in rows below their switches, which are in layers
    by the number of cables to the nearest accelerator.
    """
    facts = machine.topology
    # If a part failed, boxes are described as a graph, and the extents are boxes and their accelerators: no switch
    # belongs to a row or column.
    extents = [] if facts is None or facts["family"] in ("boxes", "graph") else facts["extents"]
    near: list[list[int]] = [[] for _ in range(nodes)]
    for a, b in cables:
        near[a].append(b)
        near[b].append(a)
    if len(extents) == 2 and extents[0] * extents[1] == accelerators:
        return _around_a_grid(extents[0], extents[1], nodes, near)
    if nodes == accelerators:
        return circle_or_grid(accelerators)
    return _layers(accelerators, nodes, near)


def closed_up(found: Sequence[Place]) -> list[Place]:
    """Returns positions with narrowed gaps, for a picture from which most nodes of a machine are omitted."""
    axes = [_narrowed(axis) for axis in zip(*found, strict=True)]
    return list(zip(*axes, strict=True)) if found else []


def _narrowed(axis: Sequence[float]) -> list[float]:
    values = sorted(set(axis))
    new = {values[0]: 0.0}
    for before, value in pairwise(values):
        new[value] = new[before] + min(value - before, _WIDEST_GAP)
    return [new[value] for value in axis]


def _around_a_grid(rows: int, columns: int, nodes: int, near: Sequence[Sequence[int]]) -> list[Place]:
    places = grid(rows, columns)
    accelerators = rows * columns
    beside: dict[Place, int] = {}
    for switch in range(accelerators, nodes):
        own = [places[other] for other in near[switch] if other < accelerators] or [(columns / 2, rows / 2)]
        x, y = (sum(axis) / len(own) for axis in zip(*own, strict=True))
        if max(place[1] for place in own) - min(place[1] for place in own) < 2:
            at = (columns + 0.2, y)
        elif max(place[0] for place in own) - min(place[0] for place in own) < 2:
            at = (x, rows + 0.2)
        else:
            at = (columns + 0.2, rows + 0.2)
        # Switches with the same position are moved, each farther than the previous one.
        count = beside.get(at, 0)
        beside[at] = count + 1
        outward = (at[0] > columns, at[1] > rows)
        places.append((at[0] + 0.8 * count * outward[0], at[1] + 0.8 * count * outward[1]))
    return places


def _layers(accelerators: int, nodes: int, near: Sequence[Sequence[int]]) -> list[Place]:
    layer = [0] * accelerators + [-1] * (nodes - accelerators)
    reached = list(range(accelerators))
    for node in reached:
        for other in near[node]:
            if layer[other] < 0:
                layer[other] = layer[node] + 1
                reached.append(other)
    top = max(layer) + 1
    layer = [top if found < 0 else found for found in layer]
    # A long row of accelerators is folded into several rows.
    columns = accelerators if accelerators <= 2 * _MOST_ON_A_CIRCLE else ceil(sqrt(4 * accelerators))
    folded = ceil(accelerators / columns)
    places: list[Place] = [(float(k % columns), float(k // columns)) for k in range(accelerators)]
    places += [(0.0, 0.0)] * (nodes - accelerators)
    for level in range(1, max(layer) + 1):
        row = [node for node in range(accelerators, nodes) if layer[node] == level]
        wished = {node: _mean([places[other][0] for other in near[node] if layer[other] < level]) for node in row}
        row.sort(key=lambda node: (wished[node], node))
        spread = (columns - 1) / len(row) if row else 0.0
        even = {node: spread * (at + 0.5) for at, node in enumerate(row)}
        crowded = any(wished[b] - wished[a] < 1 for a, b in pairwise(row))
        for node in row:
            x = even[node] if crowded else wished[node]
            places[node] = (x, -level * max(2.0, columns / 12))
    return [(x, y if y < 0 else y * (1.0 if folded > 1 else 0.0)) for x, y in places]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
