"""A second checker of certificates of bounds, which shares no code with the one in the package.

Nodes that reach each other by links of price 0 are merged. The checker then tries every arborescence, so few nodes may
remain; for an all-to-all it sums the distances between all ranks, for a gather or scatter those from the root.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import product


def ways(
    links: Mapping[tuple[int, int], int], prices: Mapping[tuple[int, int], int], ranks: list[int], *, over_ranks: bool
) -> list[list[float]]:
    """Returns the prices of the cheapest paths between ranks, through other ranks if `over_ranks` (Bellman-Ford)."""
    nodes = {node for link in links for node in link}
    table = []
    for start in ranks:
        price: dict[int, float] = {node: float("inf") for node in nodes}
        price[start] = 0
        changed = True
        while changed:
            changed = False
            for a, b in links:
                there = price[a] + prices.get((a, b), 0)
                if there < price[b] and (over_ranks or a == start or a not in ranks):
                    price[b], changed = there, True
        table.append([price[end] for end in ranks])
    return table


def cheapest(table: list[list[float]], root: int) -> float:
    """Returns the cheapest price of an arborescence, by trying all parents."""
    count = len(table)
    best: float | None = None
    for parents in product(range(count), repeat=count - 1):
        of = dict(zip([k for k in range(count) if k != root], parents, strict=True))
        if all(child != parent for child, parent in of.items()) and _reaches(of, root):
            price = sum(table[parent][child] for child, parent in of.items())
            best = price if best is None else min(best, price)
    assert best is not None
    return best


def _reaches(of: dict[int, int], root: int) -> bool:
    for start in of:
        at, steps = start, 0
        while at != root:
            at, steps = of[at], steps + 1
            if steps > len(of):
                return False
    return True


def merged(links: Iterable[tuple[int, int]], prices: Mapping[tuple[int, int], int]) -> dict[int, int]:
    """Returns for each node the representative of the nodes with free paths to it and from it (Kosaraju)."""
    after: dict[int, list[int]] = defaultdict(list)
    before: dict[int, list[int]] = defaultdict(list)
    nodes = set()
    for a, b in links:
        nodes |= {a, b}
        if not prices.get((a, b)):
            after[a].append(b)
            before[b].append(a)
    ended: list[int] = []
    seen: set[int] = set()
    for start in nodes:
        stack = [(start, False)]
        while stack:
            at, is_left = stack.pop()
            if is_left:
                ended.append(at)
            elif at not in seen:
                seen.add(at)
                stack.append((at, True))
                stack.extend((b, False) for b in after[at])
    of: dict[int, int] = {}
    for start in reversed(ended):
        open_nodes = [start]
        while open_nodes:
            at = open_nodes.pop()
            if at not in of:
                of[at] = start
                open_nodes.extend(before[at])
    return of


def bound_seconds(text: str, cables: Iterable[tuple[int, int, int]], planes: int) -> Fraction:
    """Returns the seconds that a certificate proves for cables, each two nodes and bits a second, in all planes."""
    certificate = json.loads(text)
    links: dict[tuple[int, int], int] = defaultdict(int)
    for a, b, rate in cables:
        links[a, b] += rate * planes
        links[b, a] += rate * planes
    prices = {(a, b): price for a, b, price in certificate["prices"]}
    assert set(prices) <= set(links)
    of = merged(links, prices)
    between: dict[tuple[int, int], int] = {}
    for a, b in links:
        if of[a] != of[b]:
            pair, price = (of[a], of[b]), prices.get((a, b), 0)
            between[pair] = min(price, between.get(pair, price))
    counts = Counter(of[place] for place in certificate["places"])
    ranks = list(counts)
    collective = certificate["collective"]
    table = ways(between, between, ranks, over_ranks=collective in ("alltoall", "gather", "scatter"))
    root_at = ranks.index(of[certificate["places"][certificate["root"]]])
    if collective == "alltoall":
        pairs = ((a, b, row[k]) for a, row in zip(ranks, table, strict=True) for k, b in enumerate(ranks))
        paid = sum(counts[a] * counts[b] * price for a, b, price in pairs)
    elif collective in ("gather", "scatter"):
        paid = sum(counts[b] * table[root_at][k] for k, b in enumerate(ranks))
    elif collective in ("broadcast", "reduce", "allreduce", "barrier", "scan"):
        paid = cheapest(table, root_at)
    else:
        paid = sum(counts[root] * cheapest(table, at) for at, root in enumerate(ranks))
    capacity = sum(price * links[link] for link, price in prices.items())
    return Fraction(int(paid) * certificate["bytes"] * 8, capacity)
