"""Computes claims of "Accelerating Allreduce with in-network reduction on Intel PIUMA" (2022) on other machines.

They differ from the preset by ports, by latency that grows with distance, or by grids of which a part takes part. The
operator NOR, which no machine has, is computed by AND.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import unisono as un
from unisono.reproduce import Finding
from unisono.reproduce.once import once
from unisono.reproduce.piuma_trees import machine

__all__ = ["CHECKS"]

Listed = dict[str, Any]
#: A node small enough that every one of its cores is tried as a root.
_SMALL = {
    "cores_per_socket": 4,
    "mesh": [2, 2],
    "sockets_per_node": 4,
    "socket_ports": [0, 1],
    "node_ports": [3, 2],
}


def _on(dims: list[int], **keys: Any) -> un.Machine:
    """PIUMA on a HyperX of these dimensions, with other values of some keys."""
    return un.machine(machine(1).describe() | {"node_dims": dims} | keys)


def _scans(listed: Listed) -> Finding:
    """The collectives that are right when simulated, one on each of some HyperXs with the ports of the row."""
    right = []
    for dims in listed["node_dims"]:
        on = _on(dims, socket_ports=listed["socket_ports"], node_ports=listed["node_ports"])
        made = un.plan("scan", on, elements=listed["elements"], algorithm="in-network")
        right.append(int(un.simulate(made.schedule).result_correct is True))
    return Finding(listed["reported"], right)


def _latency(collective: str, on: un.Machine, root: int = 0) -> float:
    """The simulated latency of the first element of a collective in the network, ns."""
    made = un.plan(collective, on, elements=1, root=root, algorithm="in-network")
    latency: float = un.simulate(made.schedule).metrics["latency"].value
    return latency


@once
def _eccentricities(dims: tuple[int, ...], step_ns: float) -> tuple[float, list[float]]:
    """The latency of an allreduce, and twice that of the fastest broadcast from each node, ns.

    A link between nodes takes ``step_ns`` for each coordinate between its ends.
    """
    on = _on(list(dims), **_SMALL, node_latency_ns=step_ns, node_step_ns=step_ns)
    per = on.describe()["cores_per_socket"] * on.describe()["sockets_per_node"]
    nodes = int(np.prod(dims))
    far = [min(_latency("broadcast", on, at * per + core) for core in range(per)) for at in range(nodes)]
    return _latency("allreduce", on), [2 * each for each in far]


def _midpoint(listed: Listed) -> Finding:
    """The latency of an allreduce over that with the root at the best core of the best node, for each HyperX."""
    ours, remarks = [], []
    for dims in listed["node_dims"]:
        taken, by_node = _eccentricities(tuple(dims), listed["step_ns"])
        ours.append(taken / min(by_node))
        remarks.append(f"{'x'.join(map(str, dims))}: {taken:.0f} ns, from a corner {by_node[0]:.0f} ns")
    return Finding(listed["reported"], ours, remark="; ".join(remarks) + ".")


def _corner(listed: Listed) -> Finding:
    """The latency with the root at the best core of the first node, a corner, over that of an allreduce."""
    found = [_eccentricities(tuple(dims), listed["step_ns"]) for dims in listed["node_dims"]]
    return Finding(listed["reported"], [by_node[0] / taken for taken, by_node in found])


def _part_of_grid(listed: Listed) -> Finding:
    """The simulated latency of the first nodes of a HyperX over Eq. 1 of that HyperX."""
    ours, remarks = [], []
    for dims, bound in zip(listed["node_dims"], listed["eq1_ns"], strict=True):
        latency = _latency("allreduce", un.machine(_on(dims), subset=range(listed["nodes"])))
        ours.append(latency / bound)
        remarks.append(f"{latency:.0f} ns on {'x'.join(map(str, dims))}")
    return Finding(listed["reported"], ours, remark="; ".join(remarks) + ".")


def _nor(listed: Listed) -> Finding:
    """The elements in which AND of inverted inputs, run by the switches' schedule, is not NOR of the inputs."""
    draws, wrong = np.random.default_rng(listed["seed"]), []
    for nodes in listed["nodes"]:
        elements = listed["elements"]
        made = un.plan("allreduce", machine(nodes), elements=elements, dtype="i32", op="and", algorithm="in-network")
        # Few bits are set, so that some are left when all inputs are joined.
        bits = draws.random((made.schedule.ranks, elements, 31)) < 1 / made.schedule.ranks
        inputs = (bits << np.arange(31)).sum(axis=2).astype(np.int32)
        expected = ~np.bitwise_or.reduce(inputs)
        # Switches, the nodes after the cores, have no output.
        outputs = np.stack(made.schedule.interpret(list(~inputs))[: len(inputs)])
        wrong.append(int((outputs != expected).sum()))
    return Finding(listed["reported"], wrong)


CHECKS: dict[str, Callable[[Listed], Finding]] = {
    "corner-root": _corner,
    "midpoint-root": _midpoint,
    "nor": _nor,
    "part-of-grid": _part_of_grid,
    "scans": _scans,
}
