"""Finds the sockets and nodes of the ranks of a run, and the ranks that measure each level of the machine.

A rank's node is named by its host and by the lowest rank that shares memory with it. Its socket is that of the cores on
which the rank may run (``/sys/devices/system/cpu/cpuN/topology/physical_package_id``), if these belong to one socket.
"""

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unisono._core import InputError

__all__ = ["Level", "Place", "here", "levels", "places", "ranks_in_order"]

_CPUS = Path("/sys/devices/system/cpu")


@dataclass(frozen=True)
class Place:
    """The node and the socket of a rank."""

    node: str
    #: The index of the socket; None if the rank may run on several sockets, or the system does not name sockets.
    socket: int | None = None


@dataclass(frozen=True)
class Level:
    """A level of the machine, and ranks of which every pair communicates across this level and no outer level."""

    #: ``socket``, ``node`` or ``network``.
    name: str
    #: The number of members of one group of the level: ranks, or groups of the next inner level.
    size: int
    members: tuple[int, ...]


def here(cpus: Path = _CPUS, allowed: Sequence[int] | None = None) -> int | None:
    """Returns the socket of this process; None if it may run on several or the socket is unknown."""
    sockets = set()
    for cpu in sorted(os.sched_getaffinity(0)) if allowed is None else allowed:
        try:
            sockets.add(int((cpus / f"cpu{cpu}" / "topology" / "physical_package_id").read_text()))
        except (OSError, ValueError):
            return None
    return sockets.pop() if len(sockets) == 1 else None


def places(mpi: Any, world: Any) -> list[Place]:
    """Returns the node and socket of every rank. All ranks call this."""
    from unisono.mpi.groups import nodes

    first = {rank: members[0] for members in nodes(mpi, world) for rank in members}
    own = Place(f"{socket.gethostname()}/{first[world.rank]}", here())
    return list(world.allgather(own))


def levels(found: Sequence[Place]) -> list[Level]:
    """Returns the levels with at least two members, innermost first.

    Sockets are a level only if each rank's socket is known, and all nodes have the same number of sockets, above one,
    with equally many ranks each.

    Raises:
        InputError: nodes have different numbers of ranks.

    """
    nodes = _groups(found, lambda place: place.node)
    _same([len(ranks) for ranks in nodes], "ranks", "node")
    sockets = [_groups_of(ranks, found) for ranks in nodes]
    known = all(place.socket is not None for place in found)
    even = known and len({len(ranks) for of_node in sockets for ranks in of_node}) == 1
    even = even and len({len(of_node) for of_node in sockets}) == 1
    made = []
    if even and len(sockets[0]) > 1:
        made.append(Level("socket", len(sockets[0][0]), tuple(sockets[0][0])))
        made.append(Level("node", len(sockets[0]), tuple(ranks[0] for ranks in sockets[0])))
    else:
        made.append(Level("node", len(nodes[0]), tuple(nodes[0])))
    made.append(Level("network", len(nodes), tuple(ranks[0] for ranks in nodes)))
    return [level for level in made if level.size > 1]


def ranks_in_order(found: Sequence[Place]) -> str:
    """Returns the order of consecutive ranks on nodes: ``block`` or ``cyclic``, as in machine files.

    Raises:
        InputError: the order is neither.

    """
    nodes = _groups(found, lambda place: place.node)
    count, size = len(nodes), len(nodes[0])
    if all(ranks == list(range(size * k, size * k + size)) for k, ranks in enumerate(nodes)):
        return "block"
    if all(ranks == list(range(k, len(found), count)) for k, ranks in enumerate(nodes)):
        return "cyclic"
    raise InputError(
        "the ranks lie on the nodes in no regular order; a machine file takes nodes that are filled one after the "
        "other, or consecutive ranks on consecutive nodes"
    )


def _groups(found: Sequence[Place], key: Any) -> list[list[int]]:
    made: dict[Any, list[int]] = {}
    for rank, place in enumerate(found):
        made.setdefault(key(place), []).append(rank)
    return list(made.values())


def _groups_of(ranks: Sequence[int], found: Sequence[Place]) -> list[list[int]]:
    made: dict[int | None, list[int]] = {}
    for rank in ranks:
        made.setdefault(found[rank].socket, []).append(rank)
    return list(made.values())


def _same(sizes: Sequence[int], what: str, group: str) -> None:
    if len(set(sizes)) > 1:
        raise InputError(
            f"the {group}s have {min(sizes)} to {max(sizes)} {what}; --levels takes equal numbers on all {group}s"
        )
