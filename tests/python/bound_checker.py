"""A second checker of certificates of bounds, which shares no code with the one in the package.

It tries every arborescence of a small network; for an all-to-all it adds up the distances between all ranks.
"""

import json
from collections import defaultdict
from collections.abc import Mapping
from fractions import Fraction
from itertools import product


def ways(
    links: Mapping[tuple[int, int], int], prices: Mapping[tuple[int, int], int], ranks: list[int], *, over_ranks: bool
) -> list[list[float]]:
    """The price of the cheapest way between every two ranks, also over other ranks if `over_ranks` (Bellman-Ford)."""
    nodes = {node for link in links for node in link}
    table = []
    for start in ranks:
        price: dict[int, float] = {node: float("inf") for node in nodes}
        price[start] = 0
        for _ in nodes:
            for (a, b), _rate in links.items():
                if over_ranks or a == start or a not in ranks:
                    price[b] = min(price[b], price[a] + prices.get((a, b), 0))
        table.append([price[end] for end in ranks])
    return table


def cheapest(table: list[list[float]], root: int) -> float:
    """The cheapest arborescence, by trying every choice of parents."""
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


def bound_seconds(text: str, cables: list[tuple[int, int, int]], planes: int) -> Fraction:
    """The bound that a certificate proves; a cable has two ends and its bits in a second."""
    certificate = json.loads(text)
    links: dict[tuple[int, int], int] = defaultdict(int)
    for a, b, rate in cables:
        links[a, b] += rate * planes
        links[b, a] += rate * planes
    prices = {(a, b): price for a, b, price in certificate["prices"]}
    assert set(prices) <= set(links)
    ranks = certificate["places"]
    alltoall = certificate["collective"] == "alltoall"
    table = ways(links, prices, ranks, over_ranks=alltoall)
    one = certificate["collective"] in ("broadcast", "reduce", "allreduce")
    roots = [certificate["root"]] if one else range(len(ranks))
    paid = sum(map(sum, table)) if alltoall else sum(cheapest(table, root) for root in roots)
    capacity = sum(price * links[link] for link, price in prices.items())
    return Fraction(int(paid) * certificate["bytes"] * 8, capacity)
