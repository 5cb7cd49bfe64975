"""Computes claims of "Accelerating Allreduce with in-network reduction on Intel PIUMA" (2022) on trees of switches."""

import heapq
import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import unisono as un
from unisono.reproduce import Finding
from unisono.reproduce.once import once

__all__ = ["CHECKS", "machine", "on_subset", "run"]

Listed = dict[str, Any]


@once
def machine(nodes: int, name: str = "piuma") -> un.Machine:
    """A preset with that number of nodes."""
    return un.machine(name, nodes=nodes)


@once
def run(nodes: int, elements: int, name: str = "piuma", embeddings: int = 1) -> un.Run:
    """An allreduce of ``elements`` f32 in the network, simulated."""
    plan = un.plan(
        "allreduce",
        machine(nodes, name),
        elements=elements,
        algorithm="in-network",
        params={"embeddings": str(embeddings)},
    )
    ran = un.simulate(plan.schedule)
    if not ran.result_correct:
        raise un.Error(f"the result on {nodes} nodes is wrong: {ran.mismatch}")
    return ran


def on_subset(subset: list[int], elements: int) -> un.Schedule:
    """An allreduce on some of four nodes."""
    on = un.machine("piuma", nodes=4, subset=subset)
    return un.plan("allreduce", on, elements=elements, algorithm="in-network").schedule


@dataclass(frozen=True)
class _Tree:
    """The reduction tree of an allreduce in the network, from the streams of its schedule."""

    #: The switch to which each switch forwards; the root has none.
    parents: dict[int, int]
    #: The parents again, by the streams of responses.
    response_parents: dict[int, int]
    switches_per_node: int

    def node(self, switch: int) -> int:
        return switch // self.switches_per_node

    def way(self, switch: int) -> list[int]:
        """The switches from one to the root, both included."""
        way = [switch]
        while way[-1] in self.parents:
            way.append(self.parents[way[-1]])
        return way


@once
def _tree(nodes: int) -> _Tree:
    made = un.plan("allreduce", machine(nodes), elements=1, algorithm="in-network")
    schedule = json.loads(made.schedule.to_json())
    cores = schedule["collective"]["ranks"]
    parents: dict[int, int] = {}
    response_parents: dict[int, int] = {}
    for stream in schedule["streams"]:
        source, sinks = stream["source"] - cores, [sink - cores for sink in stream["sinks"]]
        # Streams among switches: requests have one receiver each and come first.
        among = [sink for sink in sinks if source >= 0 and sink >= 0]
        if among and len(parents) < cores - 1:
            parents[source] = among[0]
        else:
            response_parents.update(dict.fromkeys(among, source))
    return _Tree(parents, response_parents, cores // nodes)


def _intersections(listed: Listed) -> Finding:
    """Links that the inputs would cross each on its own way to the root, over those of the tree."""
    ours = []
    for nodes in listed["nodes"]:
        tree = _tree(nodes)
        alone = sum(len(tree.way(core)) - 1 for core in range(nodes * tree.switches_per_node))
        ours.append(alone / len(tree.parents))
    return Finding(listed["reported"], ours)


def _node_hops(listed: Listed) -> Finding:
    """The most hops between nodes from a core to the root, for each number of nodes."""
    ours = []
    for nodes in listed["nodes"]:
        tree = _tree(nodes)
        ways = (tree.way(core) for core in range(nodes * tree.switches_per_node))
        ours.append(max(sum(tree.node(a) != tree.node(b) for a, b in pairwise(way)) for way in ways))
    return Finding(listed["reported"], ours)


def _root_radix(listed: Listed) -> Finding:
    """The nodes that send their contribution to the root node directly, for each number of nodes."""
    ours = []
    for nodes in listed["nodes"]:
        tree = _tree(nodes)
        root = tree.node(tree.way(0)[-1])
        ours.append(sum(tree.node(to) == root != tree.node(switch) for switch, to in tree.parents.items()))
    return Finding(listed["reported"], ours)


def _inverse(listed: Listed) -> Finding:
    """The switches whose responses come from another switch than their requests go to."""
    trees = [_tree(nodes) for nodes in listed["nodes"]]
    return Finding(
        listed["reported"],
        [sum(tree.response_parents.get(switch) != to for switch, to in tree.parents.items()) for tree in trees],
    )


def _eccentricity(dims: list[int], at: tuple[int, ...]) -> int:
    """The largest distance from a node of a HyperX whose links are as long as their ends are apart."""
    far = dict.fromkeys(product(*map(range, dims)), -1)
    queue = [(0, at)]
    while queue:
        length, node = heapq.heappop(queue)
        if far[node] >= 0:
            continue
        far[node] = length
        for dim, size in enumerate(dims):
            for to in range(size):
                other = (*node[:dim], to, *node[dim + 1 :])
                if far[other] < 0:
                    heapq.heappush(queue, (length + abs(to - node[dim]), other))
    return max(far.values())


def _root_eccentricity(listed: Listed) -> Finding:
    """The eccentricity of the root's node over the least of all nodes, where latency is proportional to distance."""
    ours, remarks = [], []
    for nodes in listed["nodes"]:
        dims = list(machine(nodes).describe()["node_dims"])
        tree = _tree(nodes)
        places = list(product(*map(range, dims)))
        found = {at: _eccentricity(dims, at) for at in places}
        root = places[tree.node(tree.way(0)[-1])]
        ours.append(found[root] / min(found.values()))
        remarks.append(f"{root} of {'x'.join(map(str, dims))} has {found[root]}, a corner {found[places[0]]}")
    return Finding(listed["reported"], ours, remark="; ".join(remarks) + ".")


def _local_completion(listed: Listed) -> Finding:
    """The cores that are not done when their last element, on its way from the root, is in their memory."""
    ours = []
    for nodes, elements in listed["points"]:
        tree, ran = _tree(nodes), run(nodes, elements)
        done = ran.finish_ns
        assert done is not None, "switches count nanoseconds"
        latency = _latencies(nodes)
        at_root = done[tree.way(0)[-1]]
        ways = (sum(latency(a, b) for a, b in pairwise(tree.way(core))) for core in range(len(done)))
        ours.append(sum(abs(end - at_root - way) > 1e-6 for end, way in zip(done, ways, strict=True)))
    return Finding(listed["reported"], ours)


def _latencies(nodes: int) -> Callable[[int, int], float]:
    """The latency of the link between two switches, in ns."""
    described, node = machine(nodes).describe(), _tree(nodes).node

    def latency(a: int, b: int) -> float:
        if node(a) != node(b):
            level = "node"
        else:
            cores = described["cores_per_socket"]
            level = "socket" if a // cores != b // cores else "core"
        return float(described[f"{level}_latency_ns"])

    return latency


def _together(listed: Listed) -> Finding:
    """The time of allreduces that start at the same time, over the sum of their times alone."""
    schedules = [on_subset(subset, listed["elements"]) for subset in listed["subsets"]]
    ran = un.simulate_beside(schedules)
    alone = sum(un.simulate(schedule).nanoseconds for schedule in schedules)
    return Finding(listed["reported"], max(each.nanoseconds for each in ran) / alone)


CHECKS: dict[str, Callable[[Listed], Finding]] = {
    "intersections": _intersections,
    "inverse": _inverse,
    "local-completion": _local_completion,
    "node-hops": _node_hops,
    "root-eccentricity": _root_eccentricity,
    "root-radix": _root_radix,
    "together-over-sum": _together,
}
