"""Computes claims of "Accelerating Allreduce with in-network reduction on Intel PIUMA" (2022) on trees of switches."""

import heapq
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import unisono as un
from unisono.reproduce import Finding, Listed, checks_of, each
from unisono.reproduce.once import once
from unisono.reproduce.piuma_links import distances

__all__ = ["CHECKS", "changed", "levels", "machine", "on_subset", "run"]


@once
def machine(nodes: int, name: str = "piuma") -> un.Machine:
    """Returns a preset with that number of nodes."""
    return un.machine(name, nodes=nodes)


@once
def run(nodes: int, elements: int, name: str = "piuma", embeddings: int = 1) -> un.Run:
    """Simulates an allreduce of ``elements`` f32 in the network."""
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


def changed(nodes: int, **keys: Any) -> un.Machine:
    """Returns PIUMA with that number of nodes and other values of some keys."""
    return un.machine(un.machine("piuma").describe() | keys, nodes=nodes)


def on_subset(subset: list[int], elements: int, **keys: Any) -> un.Schedule:
    """Returns an allreduce on some of four nodes."""
    on = un.machine(changed(4, **keys), subset=subset)
    return un.plan("allreduce", on, elements=elements, algorithm="in-network", params={}).schedule


@dataclass(frozen=True)
class _Tree:
    """The reduction tree of an allreduce in the network, from the streams of its schedule."""

    #: The switch to which each switch forwards; the root has none.
    parents: dict[int, int]
    #: The switch from which each switch gets its response, by the streams of responses.
    response_parents: dict[int, int]
    switches_per_node: int

    def node(self, switch: int) -> int:
        return switch // self.switches_per_node

    def way(self, switch: int) -> list[int]:
        """Returns the switches from ``switch`` to the root, both included."""
        way = [switch]
        while way[-1] in self.parents:
            way.append(self.parents[way[-1]])
        return way


@once
def _tree(nodes: int) -> _Tree:
    made = un.plan("allreduce", machine(nodes), elements=1, algorithm="in-network", params={})
    schedule = json.loads(made.schedule.to_json())
    cores = schedule["collective"]["ranks"]
    parents: dict[int, int] = {}
    response_parents: dict[int, int] = {}
    for stream in schedule["streams"]:
        source, sinks = stream["source"] - cores, [sink - cores for sink in stream["sinks"]]
        # Streams among switches; requests have one receiver each and precede responses.
        among = [sink for sink in sinks if source >= 0 and sink >= 0]
        if among and len(parents) < cores - 1:
            parents[source] = among[0]
        else:
            response_parents.update(dict.fromkeys(among, source))
    return _Tree(parents, response_parents, cores // nodes)


@each("nodes")
def _level_hops(nodes: Any, listed: Listed) -> Any:
    """Computes the largest number of links of a level between a core and the root, for each number of nodes."""
    tree, level = _tree(nodes), levels(nodes)
    ways = (tree.way(core) for core in range(nodes * tree.switches_per_node))
    return max(sum(level(a, b) == listed["level"] for a, b in pairwise(way)) for way in ways)


def _longer_ways(listed: Listed) -> Finding:
    """Counts the cores whose path to the root takes longer than the shortest path, for each number of nodes."""
    ours, remarks = [], []
    for nodes in listed["nodes"]:
        tree, latency = _tree(nodes), _latencies(nodes)
        shortest = distances(machine(nodes), tree.way(0)[-1])[0]
        ways = (sum(latency(a, b) for a, b in pairwise(tree.way(core))) for core in range(len(shortest)))
        longer = [way - short for way, short in zip(ways, shortest, strict=True) if way > short]
        ours.append(len(longer))
        remarks += [f"By up to {max(longer):.0f} ns of {max(shortest):.0f} on {nodes} nodes."] if longer else []
    return Finding(listed["reported"], ours, remark=" ".join(remarks))


@each("nodes")
def _longer_inside(nodes: Any, _: Listed) -> Any:
    """Counts the cores whose path to the switch from which their vectors leave the node is not the shortest."""
    inside = machine(1)
    tree, latency = _tree(nodes), _latencies(nodes)
    shortest: dict[int, list[float]] = {}
    longer = 0
    for core in range(nodes * tree.switches_per_node):
        way = [switch for switch in tree.way(core) if tree.node(switch) == tree.node(core)]
        local, exit_at = core % tree.switches_per_node, way[-1] % tree.switches_per_node
        if exit_at not in shortest:
            shortest[exit_at] = distances(inside, exit_at)[0]
        longer += sum(latency(a, b) for a, b in pairwise(way)) > shortest[exit_at][local]
    return longer


@each("nodes")
def _leaving(nodes: Any, _: Listed) -> Any:
    """Counts the nodes, without the root's, of which not exactly one switch sends to another node."""
    tree = _tree(nodes)
    leaving = [tree.node(a) for a, b in tree.parents.items() if tree.node(a) != tree.node(b)]
    root = tree.node(tree.way(0)[-1])
    return sum(leaving.count(node) != 1 for node in range(nodes) if node != root)


def _fan_in(listed: Listed) -> Finding:
    """Computes the largest number of switches that send to one switch, for each number of nodes."""
    counts = [Counter(_tree(nodes).parents.values()) for nodes in listed["nodes"]]
    return Finding(listed["reported"], [max(inputs.values()) for inputs in counts])


def _point_to_point(listed: Listed) -> Finding:
    """Divides Eq. 1 by twice the largest latency between a core of the first node and any core."""
    ours, remarks = [], []
    for nodes, bound in zip(listed["nodes"], listed["bounds_ns"], strict=True):
        on = machine(nodes)
        farthest = max(max(distances(on, core)[0]) for core in range(_tree(nodes).switches_per_node))
        ours.append(bound / (2 * farthest))
        remarks.append(f"{farthest:.0f} ns on {nodes}")
    return Finding(listed["reported"], ours, remark=f"The largest latencies: {', '.join(remarks)} nodes.")


@each("nodes")
def _predefined(nodes: Any, listed: Listed) -> Any:
    """Compares a binomial tree of the cores, whose edges are shortest paths, to the tree of this paper.

    ``measure`` selects the largest number of paths over a directed link, or twice the latency of the deepest core
    divided by the simulated latency of the paper's tree.
    """
    tree, on = _tree(nodes), machine(nodes)
    cores = nodes * tree.switches_per_node
    loads: dict[tuple[int, int], int] = {}
    depth = [0.0] * cores
    for parent in range(cores):
        # The children of a rank of a binomial tree; the loop reaches a rank after its parent.
        children = [parent | bit for bit in _bits_below(parent, cores)]
        far, before = distances(on, parent) if children else ([], [])
        for child in children:
            depth[child] = depth[parent] + far[child]
            at = child
            while at != parent:
                loads[at, before[at]] = loads.get((at, before[at]), 0) + 1
                at = before[at]
    latency = run(nodes, 1).metrics["latency"].value
    measures = {"busiest": max(loads.values()), "latency": 2 * max(depth) / latency}
    return measures[listed["measure"]]


@each("nodes", "On average {}.", ", ")
def _unmerged(nodes: Any, _: Listed) -> tuple[Any, str]:
    """Divides the sum of the links of all cores' paths to the root by the links of the tree, where paths merge."""
    tree = _tree(nodes)
    ways = [tree.way(core) for core in range(nodes * tree.switches_per_node)]
    merging = {to for to, inputs in Counter(tree.parents.values()).items() if inputs > 1}
    first = [next((n for n, switch in enumerate(way) if n and switch in merging), 0) for way in ways]
    text = f"on {nodes} nodes a way meets another one after {sum(first) / len(first):.1f} links"
    return sum(len(way) - 1 for way in ways) / len(tree.parents), text


def _bits_below(rank: int, ranks: int) -> list[int]:
    lowest = rank & -rank if rank else ranks
    return [1 << k for k in range(ranks.bit_length()) if 1 << k < lowest and rank | 1 << k < ranks]


@each("nodes")
def _not_peers(nodes: Any, _: Listed) -> Any:
    """Counts the pairs of nodes joined in the tree that differ in several dimensions, by number of nodes."""
    tree = _tree(nodes)
    places = list(product(*map(range, machine(nodes).describe()["node_dims"])))
    pairs = {(tree.node(a), tree.node(b)) for a, b in tree.parents.items()}
    return sum(sum(x != y for x, y in zip(places[a], places[b], strict=True)) > 1 for a, b in pairs)


@each("nodes")
def _topologies(nodes: Any, _: Listed) -> Any:
    """Counts the different trees within nodes, for each number of nodes."""
    tree = _tree(nodes)
    inside: dict[int, list[tuple[int, int]]] = {}
    for a, b in tree.parents.items():
        if tree.node(a) == tree.node(b):
            per = tree.switches_per_node
            inside.setdefault(tree.node(a), []).append((a % per, b % per))
    return len({tuple(sorted(edges)) for edges in inside.values()})


@each("nodes")
def _root_radix(nodes: Any, _: Listed) -> Any:
    """Counts the nodes that send their contribution directly to the root's node, for each number of nodes."""
    tree = _tree(nodes)
    root = tree.node(tree.way(0)[-1])
    return sum(tree.node(to) == root != tree.node(switch) for switch, to in tree.parents.items())


def _inverse(listed: Listed) -> Finding:
    """Counts the switches whose responses come from another switch than that to which their requests go."""
    trees = [_tree(nodes) for nodes in listed["nodes"]]
    return Finding(
        listed["reported"],
        [sum(tree.response_parents.get(switch) != to for switch, to in tree.parents.items()) for tree in trees],
    )


def _eccentricity(dims: list[int], at: tuple[int, ...]) -> int:
    """Returns a node's largest distance in a HyperX whose links are as long as their ends' coordinates differ."""
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


@each("nodes", "{}.")
def _root_eccentricity(nodes: Any, _: Listed) -> tuple[Any, str]:
    """Divides the eccentricity of the root's node by the least of all nodes; latency grows with distance."""
    dims = list(machine(nodes).describe()["node_dims"])
    tree = _tree(nodes)
    places = list(product(*map(range, dims)))
    found = {at: _eccentricity(dims, at) for at in places}
    root = places[tree.node(tree.way(0)[-1])]
    text = f"{root} of {'x'.join(map(str, dims))} has {found[root]}, a corner {found[places[0]]}"
    return found[root] / min(found.values()), text


@each("points")
def _local_completion(point: Any, _: Listed) -> Any:
    """Counts cores that do not finish when the root's last element has reached them."""
    nodes, elements = point
    tree, ran = _tree(nodes), run(nodes, elements)
    done = ran.finish_ns
    assert done is not None, "switches count nanoseconds"
    latency = _latencies(nodes)
    at_root = done[tree.way(0)[-1]]
    ways = (sum(latency(a, b) for a, b in pairwise(tree.way(core))) for core in range(len(done)))
    return sum(abs(end - at_root - way) > 1e-6 for end, way in zip(done, ways, strict=True))


def levels(nodes: int) -> Callable[[int, int], str]:
    """Returns a function that returns the level of the link between two switches: node, socket or core."""
    cores, node = machine(nodes).describe()["cores_per_socket"], _tree(nodes).node
    return lambda a, b: "node" if node(a) != node(b) else "socket" if a // cores != b // cores else "core"


def _latencies(nodes: int) -> Callable[[int, int], float]:
    """Returns a function that returns the latency in ns of the link between two switches."""
    described, level = machine(nodes).describe(), levels(nodes)
    return lambda a, b: float(described[f"{level(a, b)}_latency_ns"])


def _together_over_sum(listed: Listed) -> Finding:
    """Divides the time until the last of simultaneous allreduces ends by the sum of their times alone."""
    ours: list[float] = []
    in_turns: list[float] = []
    for elements in listed["elements"]:
        for exclusive, shares in ((True, ours), (False, in_turns)):
            schedules = [on_subset(subset, elements, exclusive_switches=exclusive) for subset in listed["subsets"]]
            alone = sum(un.simulate(schedule).nanoseconds for schedule in schedules)
            shares.append(max(each.nanoseconds for each in un.simulate_beside(schedules)) / alone)
    remark = f"With packets in turns: {' '.join(f'{share:.3f}' for share in in_turns)}."
    return Finding(listed["reported"], ours, remark=remark)


@each("elements")
def _in_turn(elements: Any, _: Listed) -> Any:
    """Divides the time of two allreduces of half the vector, one after the other, by that of the whole vector."""
    whole = on_subset([0, 1], elements, exclusive_switches=True)
    halves = [on_subset([0, 1], elements // 2, exclusive_switches=True) for _ in range(2)]
    together = max(each.nanoseconds for each in un.simulate_beside(halves))
    return together / un.simulate(whole).nanoseconds


CHECKS = checks_of(globals())
