"""Computes claims of "Accelerating Allreduce with in-network reduction on Intel PIUMA" (2022) on other machines.

Machines differ from the preset by ports, by latency that grows with distance, or by grids with unused nodes. The
operator NOR, which no machine has, is computed with AND.
"""

from typing import Any

import numpy as np

import unisono as un
from unisono.reproduce import Finding, Listed, checks_of, each
from unisono.reproduce.once import once
from unisono.reproduce.piuma_trees import machine

__all__ = ["CHECKS"]

#: A node with so few cores that each can be tried as a root.
_SMALL = {
    "cores_per_socket": 4,
    "mesh": [2, 2],
    "sockets_per_node": 4,
    "socket_ports": [0, 1],
    "node_ports": [3, 2],
}


def _on(dims: list[int], **keys: Any) -> un.Machine:
    """Returns PIUMA on a HyperX of these dimensions, with other values of some keys."""
    return un.machine(machine(1).describe() | {"node_dims": dims} | keys)


def _scans(listed: Listed) -> Finding:
    """Checks a simulated scan on each of some HyperXs with the ports of the row: 1 for a right result."""
    right = []
    for dims in listed["node_dims"]:
        on = _on(dims, socket_ports=listed["socket_ports"], node_ports=listed["node_ports"])
        made = un.plan("scan", on, elements=listed["elements"], algorithm="in-network", params={})
        right.append(int(un.simulate(made.schedule).result_correct is True))
    return Finding(listed["reported"], right)


def _latency(collective: str, on: un.Machine, root: int = 0) -> float:
    """Returns the simulated latency in ns of the first element of a collective in the network."""
    made = un.plan(collective, on, elements=1, root=root, algorithm="in-network", params={})
    latency: float = un.simulate(made.schedule).metrics["latency"].value
    return latency


@once
def _eccentricities(dims: tuple[int, ...], step_ns: float) -> tuple[float, list[float]]:
    """Returns the ns of an allreduce, and twice the ns of the fastest broadcast from each node.

    A link between nodes takes ``step_ns`` for each unit by which the coordinates of its ends differ.
    """
    on = _on(list(dims), **_SMALL, node_latency_ns=step_ns, node_step_ns=step_ns)
    per = on.describe()["cores_per_socket"] * on.describe()["sockets_per_node"]
    nodes = int(np.prod(dims))
    far = [min(_latency("broadcast", on, at * per + core) for core in range(per)) for at in range(nodes)]
    return _latency("allreduce", on), [2 * each for each in far]


@each("node_dims", "{}.")
def _midpoint_root(dims: Any, listed: Listed) -> tuple[Any, str]:
    """Divides an allreduce's latency by that with the root at the best core of all, for each HyperX."""
    taken, by_node = _eccentricities(tuple(dims), listed["step_ns"])
    return taken / min(by_node), f"{'x'.join(map(str, dims))}: {taken:.0f} ns, from a corner {by_node[0]:.0f} ns"


def _corner_root(listed: Listed) -> Finding:
    """Divides the latency with the root at the best core of the first node, a corner, by an allreduce's."""
    found = [_eccentricities(tuple(dims), listed["step_ns"]) for dims in listed["node_dims"]]
    return Finding(listed["reported"], [by_node[0] / taken for taken, by_node in found])


def _part_of_grid(listed: Listed) -> Finding:
    """Divides the simulated latency on the first nodes of a HyperX by Eq. 1 for the whole HyperX."""
    ours, remarks = [], []
    for dims, bound in zip(listed["node_dims"], listed["eq1_ns"], strict=True):
        latency = _latency("allreduce", un.machine(_on(dims), subset=range(listed["nodes"])))
        ours.append(latency / bound)
        remarks.append(f"{latency:.0f} ns on {'x'.join(map(str, dims))}")
    return Finding(listed["reported"], ours, remark="; ".join(remarks) + ".")


def _nor(listed: Listed) -> Finding:
    """Counts the elements for which AND of inverted inputs differs from NOR of the inputs."""
    draws, wrong = np.random.default_rng(listed["seed"]), []
    for nodes in listed["nodes"]:
        elements = listed["elements"]
        made = un.plan(
            "allreduce", machine(nodes), elements=elements, dtype="i32", op="and", algorithm="in-network", params={}
        )
        # Few bits are set, so that some bits of the OR of all inputs stay 0.
        bits = draws.random((made.schedule.ranks, elements, 31)) < 1 / made.schedule.ranks
        inputs = (bits << np.arange(31)).sum(axis=2).astype(np.int32)
        expected = ~np.bitwise_or.reduce(inputs)
        # Only cores have an output; the schedule's ranks after them are switches.
        outputs = np.stack(made.schedule.interpret(list(~inputs))[: len(inputs)])
        wrong.append(int((outputs != expected).sum()))
    return Finding(listed["reported"], wrong)


CHECKS = checks_of(globals())
