"""Chooses ranks for smaller communicators, by the number of ranks that share a node."""

import os
import re
import time
from collections.abc import Sequence
from typing import Any

from unisono._core import InputError

__all__ = ["counts", "members", "nodes", "shared_cores", "wait_for"]


def nodes(mpi: Any, world: Any) -> list[list[int]]:
    """Returns the ranks of each node; nodes are in the order of their first ranks."""
    node = world.Split_type(mpi.COMM_TYPE_SHARED)
    first = node.bcast(world.rank)
    node.Free()
    found: dict[int, list[int]] = {}
    for rank, of in enumerate(world.allgather(first)):
        found.setdefault(of, []).append(rank)
    return list(found.values())


def shared_cores(mpi: Any, world: Any) -> tuple[int, int] | None:
    """Returns the numbers of ranks and cores of the fullest node with fewer cores than ranks; None if there is none.

    All ranks of ``world`` call this. Only cores on which the ranks may run are counted.
    """
    own = frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    allowed = world.allgather(frozenset(own))
    crowded = []
    for ranks in nodes(mpi, world):
        cores = len(frozenset().union(*(allowed[rank] for rank in ranks)))
        if len(ranks) > cores:
            crowded.append((len(ranks), cores))
    return max(crowded, key=lambda found: found[0] / found[1], default=None)


def members(nodes: Sequence[Sequence[int]], ranks: int, per_node: int) -> list[int] | None:
    """Returns ``ranks`` ranks, ``per_node`` from each of the first nodes; None if there are not enough.

    The last of these nodes may contribute fewer ranks, but must have at least ``per_node``.
    """
    chosen = [rank for node in nodes for rank in node[:per_node]][:ranks]
    full = all(len(node) >= per_node for node in nodes[: -(-ranks // per_node)])
    return chosen if len(chosen) == ranks and full else None


def counts(text: str, what: str, most: int) -> list[int]:
    """Converts a list of whole numbers and ranges to ascending numbers: ``2,4-6`` is 2, 4, 5 and 6.

    Raises:
        InputError: a part is not a whole number or a range, or exceeds ``most``.

    """
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        # At most nine digits are accepted, and no digits of other scripts.
        if any(not re.fullmatch("[0-9]{1,9}", end) for end in ([first, last] if dash else [first])):
            raise InputError(f"{what} is '{text}'; accepted are whole numbers and ranges, as in 2,4-8")
        found.update(range(int(first), int(last or first) + 1) if int(last or first) <= most else [int(last or first)])
    wrong = next((n for n in sorted(found) if not 1 <= n <= most), None)
    if wrong is not None or not found:
        raise InputError(f"{what} has {wrong}; accepted are 1 to {most}, the ranks of this run")
    return sorted(found)


def wait_for(world: Any) -> None:
    """Waits at a barrier.

    Ranks that arrive early sleep, so that they do not use the cores of ranks that still measure.
    """
    request = world.Ibarrier()
    while not request.Test():
        time.sleep(0.002)
