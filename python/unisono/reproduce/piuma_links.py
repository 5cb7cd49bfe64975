"""The links of a machine of kind ``in-network`` as a graph, built without the library, and shortest paths.

Ports follow `docs/in-network.md`. Latencies are in ns.
"""

import heapq
import math
from functools import cache
from itertools import combinations, product

import unisono as un

__all__ = ["distances", "links"]


@cache
def links(on: un.Machine) -> list[list[tuple[int, float]]]:
    """Returns the neighbors of each switch, with the latencies of the links."""
    m = on.describe()
    (rows, columns), sockets, dims = m["mesh"], m["sockets_per_node"], list(m["node_dims"])
    cores, per = rows * columns, rows * columns * sockets
    places = list(product(*map(range, dims)))
    of_switch: list[list[tuple[int, float]]] = [[] for _ in range(per * len(places))]

    def join(a: int, b: int, level: str, more_ns: float = 0.0) -> None:
        latency = m[f"{level}_latency_ns"] + more_ns
        of_switch[a].append((b, latency))
        of_switch[b].append((a, latency))

    def port(socket: int, to: int, ports: str) -> int:
        return int(socket * cores + m[ports][to % len(m[ports])])

    for first in range(0, len(of_switch), per):
        for socket, row, column in product(range(sockets), range(rows), range(columns)):
            at = first + socket * cores + row * columns + column
            if column + 1 < columns:
                join(at, at + 1, "core")
            if row + 1 < rows:
                join(at, at + columns, "core")
        for a, b in combinations(range(sockets), 2):
            join(first + port(a, b, "socket_ports"), first + port(b, a, "socket_ports"), "socket")
    home = [port(k % sockets, k // sockets, "node_ports") for k in range(sum(dims))]
    number = {place: at for at, place in enumerate(places)}
    for place, at in number.items():
        for dim, size in enumerate(dims):
            for to in range(place[dim] + 1, size):
                other = number[(*place[:dim], to, *place[dim + 1 :])]
                ends = (at * per + home[sum(dims[:dim]) + to], other * per + home[sum(dims[:dim]) + place[dim]])
                join(*ends, "node", m.get("node_step_ns", 0.0) * (to - place[dim] - 1))
    return of_switch


def distances(on: un.Machine, source: int) -> tuple[list[float], list[int]]:
    """Returns for each switch the latency of the shortest path from ``source`` to it, and the switch before it."""
    of_switch = links(on)
    far, before = [math.inf] * len(of_switch), [source] * len(of_switch)
    far[source] = 0.0
    queue = [(0.0, source)]
    while queue:
        length, at = heapq.heappop(queue)
        if length > far[at]:
            continue
        for to, latency in of_switch[at]:
            if length + latency < far[to]:
                far[to], before[to] = length + latency, at
                heapq.heappush(queue, (length + latency, to))
    return far, before
