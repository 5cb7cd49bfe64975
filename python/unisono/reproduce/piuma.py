"""Computes what "Accelerating Allreduce with in-network reduction on Intel PIUMA" (2022) claims."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import unisono as un
from unisono.planning.training import BYTES, Iteration, iteration, reduction, vgg16
from unisono.reproduce import (
    Finding,
    Listed,
    checks_of,
    each,
    multiplying_simulated,
    piuma_figures,
    piuma_messages,
    piuma_trees,
    piuma_variants,
)
from unisono.reproduce.once import once
from unisono.reproduce.piuma_trees import changed, machine, on_subset, run

__all__ = ["CHECKS", "LARGEST", "draw", "eq_1", "eq_2", "host", "machine", "run", "train"]

#: Elements (4 bytes) of 128 KiB and of 1 MiB, and nodes of the largest machine.
MEDIUM, LONG = 1 << 15, 1 << 18
LARGEST = 16_384
#: The numbers of nodes and of elements in Fig. 4.
FIG_4_NODES = [1, 2, 4, 8, 16, 64, 256, 1024, 4096, LARGEST]
FIG_4_ELEMENTS = [1 << k for k in range(0, 19, 2)]
FIG_5_MINIBATCHES = [32, 64, 128, 256, 512, 1024]
#: The length in elements of allreduces whose messages are counted.
_COUNTED = 1280
#: The paper's algorithms on the cores, for one element and for vectors.
SHORT, VECTORS = "recursive-doubling", "rabenseifner"


def draw(folder: Path, full: bool = False) -> list[str]:
    """Draws Figs. 4 and 5 as PNG and CSV; makes the folder if needed."""
    folder.mkdir(parents=True, exist_ok=True)
    # Vectors on more than 256 nodes take long, so without --full only the 16K nodes that claims need are run.
    vectors = [n for n in FIG_4_NODES if n <= 256 or n == LARGEST or full]
    latency = {
        "in-network (simulated)": [(n, run(n, 1).nanoseconds) for n in FIG_4_NODES],
        "recursive doubling on the cores": [(n, host(n, 1, SHORT)) for n in FIG_4_NODES],
    }
    size = MEDIUM * BYTES * 8
    bandwidth = {
        "in-network, 128 KiB (simulated)": [(n, size / run(n, MEDIUM).nanoseconds) for n in vectors],
        "Rabenseifner on the cores, 128 KiB": [(n, size / host(n, MEDIUM, VECTORS)) for n in vectors],
    }
    lengths = {
        "in-network, 16 nodes (simulated)": [
            (n * BYTES, n * BYTES * 8 / run(16, n).nanoseconds) for n in FIG_4_ELEMENTS
        ],
        "Rabenseifner on the cores": [(n * BYTES, n * BYTES * 8 / host(16, n, VECTORS)) for n in FIG_4_ELEMENTS],
    }
    shares, speedups = {}, {}
    for name in ("piuma", "piuma-a100"):
        for way in ("host", "in-network"):
            shares[f"{name}, {way}"] = [
                (float(b), 100 * train(name, b, way, overlap=False).share) for b in FIG_5_MINIBATCHES
            ]
        for overlap in (False, True):
            label = f"{name}, {'overlapped' if overlap else 'not overlapped'}"
            speedups[label] = [(float(b), _speedup_of(name, b, overlap=overlap)) for b in FIG_5_MINIBATCHES]
    return [
        *piuma_figures.latency(folder, latency),
        *piuma_figures.bandwidth(folder, bandwidth),
        *piuma_figures.lengths(folder, lengths),
        *piuma_figures.shares(folder, shares),
        *piuma_figures.speedups(folder, speedups),
    ]


@once
def host(nodes: int, elements: int, algorithm: str) -> float:
    """Returns the predicted ns of an allreduce on the cores."""
    plan = un.plan("allreduce", machine(nodes), elements=elements, algorithm=algorithm, params={})
    return float(plan.predicted["seconds"]) * 1e9


def eq_1(nodes: int) -> float:
    """Returns Eq. 1, the latency in ns, from the paper's parameters."""
    m = machine(nodes).describe()
    dims = len(m["node_dims"])
    mesh = m["core_latency_ns"] * (sum(m["mesh"]) - 2)
    return float(2 * (m["node_latency_ns"] * dims + m["socket_latency_ns"] * (dims + 1) + mesh * (2 * dims + 1)))


def eq_2(name: str = "piuma") -> float:
    """Returns Eq. 2, the ns for each further element of 4 bytes."""
    m = machine(16, name).describe()
    bits = 2 * 8 * BYTES
    return float(max(bits / (2 * m["core_gbps"]), bits / m["memory_gbps"]))


@once
def train(name: str, minibatch: int, way: str, *, overlap: bool) -> Iteration:
    """Returns an iteration of VGG-16 on 16 nodes, reduced in the network, or on the cores if ``way`` is ``host``."""
    on = machine(16, name)
    return iteration(on, minibatch, reduction(on, VECTORS if way == "host" else "in-network"), overlap=overlap)


def _speedup_of(name: str, minibatch: int, *, overlap: bool) -> float:
    base = train(name, minibatch, "host", overlap=False)
    return base.seconds / train(name, minibatch, "in-network", overlap=overlap).seconds


def _less_data(listed: Listed) -> Finding:
    """Divides the elements that a core sends and receives with Rabenseifner's algorithm by those in-network."""
    moved = [_elements_of_core(listed["nodes"], name) for name in (VECTORS, "in-network")]
    return Finding(listed["reported"], moved[0] / moved[1])


def _elements_of_core(nodes: int, algorithm: str) -> int:
    """Counts the elements that the first core sends and receives in an allreduce."""
    # The ring has no model on the cores of PIUMA, but its messages are the same on any machine of ranks.
    on = multiplying_simulated.machine() if algorithm == "ring" else machine(nodes)
    cores = machine(nodes).describe()["cores_per_socket"] * machine(nodes).describe()["sockets_per_node"] * nodes
    plan = un.plan("allreduce", on, shape=cores, elements=_COUNTED, algorithm=algorithm, params={})
    lanes = json.loads(plan.schedule.to_json())["programs"][0]["lanes"]
    return sum(
        step["length"] * sum("stream" in end for end in (*step["sources"], *step["sinks"]))
        for lane in lanes
        for step in lane
    )


def _host_rounds(listed: Listed) -> Finding:
    """Computes the rounds of messages of allreduces on the cores of a node."""
    ours = [multiplying_simulated.rounds(listed["cores"], name, {}) for name in listed["algorithms"]]
    return Finding(listed["reported"], ours)


def _host_volume(listed: Listed) -> Finding:
    """Divides the elements that a node's first core sends and receives by the length of the vector."""
    ours = [_elements_of_core(1, name) / _COUNTED for name in listed["algorithms"]]
    return Finding(listed["reported"], ours)


@each("machines")
def _memory_limit(keys: Any, _: Listed) -> Any:
    """Divides the simulated time with other rates of links or memories by that with the paper's rates."""
    plan = un.plan("allreduce", changed(16, **keys), elements=LONG, algorithm="in-network", params={})
    return un.simulate(plan.schedule).nanoseconds / run(16, LONG).nanoseconds


def _facts(listed: Listed) -> Finding:
    described = machine(1).describe()
    return Finding(listed["reported"], [float(described[key]) for key in listed["keys"]])


def _dense_layers(listed: Listed) -> Finding:
    """Divides the dense layers' fraction of VGG-16's gradients by their fraction of its operations."""
    layers = vgg16()
    dense = [layer for layer in layers if layer.name.startswith("fc")]
    weights = sum(layer.weights for layer in dense) / sum(layer.weights for layer in layers)
    flops = sum(layer.flops for layer in dense) / sum(layer.flops for layer in layers)
    remark = f"They have {weights:.1%} of the gradients and {flops:.1%} of the operations."
    return Finding(listed["reported"], weights / flops, remark=remark)


def _hockney(listed: Listed) -> Finding:
    """Divides simulated times by alpha + beta m, with the simulated latency as alpha and Eq. 2 as beta."""
    nodes = listed["nodes"]
    alpha = run(nodes, 1).metrics["latency"].value
    ours = [run(nodes, m).nanoseconds / (alpha + eq_2() * m) for m in listed["elements"]]
    return Finding(listed["reported"], ours)


def _falls(listed: Listed) -> Finding:
    """Computes, for each way, the largest quotient of a value and that at the next smaller minibatch.

    The value is Allreduce's share, or the time of an image.
    """
    ours = []
    for way in ("host", "in-network"):
        found = [(b, train(listed["machine"], b, way, overlap=False)) for b in listed["minibatches"]]
        values = [one.share if listed["measure"] == "share" else one.seconds / b for b, one in found]
        ours.append(max(later / before for before, later in pairwise(values)))
    return Finding(listed["reported"], ours)


def _digests(listed: Listed) -> Finding:
    """Counts distinct results, bit by bit: of one embedding on several machines, and of these and two embeddings."""
    found = set()
    plans = [
        un.plan("allreduce", machine(4), elements=64, algorithm="in-network", params={"embeddings": count})
        for count in ("1", "2")
    ]
    for keys in listed["machines"]:
        found.add(un.simulate(plans[0].schedule, changed(4, **keys)).metrics["digest"].value)
    two = found | {un.simulate(plans[1].schedule).metrics["digest"].value}
    return Finding(listed["reported"], [len(found), len(two)])


def _repeatable(listed: Listed) -> Finding:
    """Checks for each number of nodes whether all cores are proved to get the same bits."""
    plans = (un.plan("allreduce", machine(n), elements=16, algorithm="in-network", params={}) for n in listed["nodes"])
    return Finding(listed["reported"], [int(plan.schedule.verify().repeatable) for plan in plans])


def _latency_spread(listed: Listed) -> Finding:
    """Divides one element's largest latency by its smallest, among node counts with equally many dimensions."""
    found = [[run(nodes, 1).metrics["latency"].value for nodes in same] for same in listed["nodes"]]
    remark = "; ".join(" ".join(f"{latency:.0f}" for latency in same) for same in found)
    return Finding(listed["reported"], [max(same) / min(same) for same in found], remark=f"Latencies: {remark} ns.")


def _host_growth(listed: Listed) -> Finding:
    """Divides the latency that each doubling of the nodes adds on the cores by that of the first doubling."""
    times = [host(nodes, 1, SHORT) for nodes in listed["nodes"]]
    added = [later - before for before, later in pairwise(times)]
    return Finding(listed["reported"], [each / added[0] for each in added[1:]])


def _exposed(listed: Listed) -> Finding:
    found = {}
    for minibatch in FIG_5_MINIBATCHES:
        one = train(listed["machine"], minibatch, "in-network", overlap=True)
        found[minibatch] = 100 * one.exposed / one.allreduce
    remark = "By minibatch: " + ", ".join(f"{size}: {share:.3g} %" for size, share in found.items()) + "."
    return Finding(listed["reported"], found[listed["minibatch"]], remark=remark)


def _congestion(listed: Listed) -> Finding:
    """Computes the largest number of logical edges on a link, for each number of nodes."""
    return Finding(listed["reported"], [len(run(nodes, 1).metrics["link_loads"].value) for nodes in listed["nodes"]])


def _curve(listed: Listed) -> Finding:
    """Computes the least quotient of the times on the cores and in the network, along a curve of Fig. 4."""
    points = [(nodes, elements) for nodes in listed["nodes"] for elements in listed["elements"]]
    ours = [host(nodes, elements, listed["baseline"]) / run(nodes, elements).nanoseconds for nodes, elements in points]
    return Finding(listed["reported"], min(ours), remark=f"From {min(ours):.2f} to {max(ours):.2f} times.")


def _beside(listed: Listed) -> Finding:
    """Returns the identifiers of allreduces on subsets of four nodes that start simultaneously."""
    schedules = [on_subset(subset, listed["elements"]) for subset in listed["subsets"]]
    ran = un.simulate_beside(schedules)
    if not all(run.result_correct for run in ran):
        raise un.Error("a result of collectives at the same time is wrong")
    return Finding(listed["reported"], [int(run.metrics["identifiers"].value[0]) for run in ran])


def _beside_over_alone(listed: Listed) -> Finding:
    """Divides the times of simultaneous allreduces by those of each alone."""
    schedules = [on_subset(subset, listed["elements"]) for subset in listed["subsets"]]
    ran = un.simulate_beside(schedules)
    pairs = zip(ran, schedules, strict=True)
    return Finding(listed["reported"], [run.nanoseconds / un.simulate(alone).nanoseconds for run, alone in pairs])


def _extends(listed: Listed) -> Finding:
    """Lists the collectives of a row that the switches compute with the right result."""
    done = []
    for collective in listed["collectives"]:
        made = un.plan(
            collective, machine(listed["nodes"]), elements=listed["elements"], algorithm="in-network", params={}
        )
        if un.simulate(made.schedule).result_correct:
            done.append(collective)
    return Finding(listed["reported"], " ".join(done))


@each("nodes")
def _latency_share(nodes: Any, listed: Listed) -> Any:
    """Divides the simulated latency of one element by Eq. 1, with the ports that the row states."""
    if "socket_ports" in listed:
        on = changed(nodes, socket_ports=listed["socket_ports"])
        ran = un.simulate(un.plan("allreduce", on, elements=1, algorithm="in-network", params={}).schedule)
    else:
        ran = run(nodes, 1)
    return ran.metrics["latency"].value / eq_1(nodes)


def _single_element(listed: Listed) -> Finding:
    return Finding(listed["reported"], run(listed["nodes"], 1).nanoseconds / 1e3)


def _latency_ratio(listed: Listed) -> Finding:
    nodes = listed["nodes"]
    return Finding(listed["reported"], host(nodes, 1, SHORT) / run(nodes, 1).nanoseconds)


@each("machines")
def _eq2(keys: Any, listed: Listed) -> Any:
    """Computes the simulated ns of each further element of a long vector, on machines with other rates."""
    on = changed(listed["nodes"], **keys)
    plans = [un.plan("allreduce", on, elements=n, algorithm="in-network", params={}) for n in listed["elements"]]
    short, long = (un.simulate(plan.schedule).nanoseconds for plan in plans)
    return (long - short) / (listed["elements"][1] - listed["elements"][0])


def _bandwidth_share(listed: Listed) -> Finding:
    nodes, elements = listed["nodes"], listed["elements"]
    return Finding(listed["reported"], elements * eq_2() / run(nodes, elements).nanoseconds)


def _throughput_ratio(listed: Listed) -> Finding:
    nodes, elements = listed["nodes"], listed["elements"]
    # For long vectors prediction and simulation agree to 0.1 %, so the prediction replaces a long simulation.
    ours = (
        un.plan("allreduce", machine(nodes), elements=elements, algorithm="in-network", params={}).predicted["seconds"]
        * 1e9
    )
    return Finding(listed["reported"], host(nodes, elements, VECTORS) / ours)


def _loss(listed: Listed) -> Finding:
    return Finding(listed["reported"], 100 * (1 - run(1, MEDIUM).nanoseconds / run(LARGEST, MEDIUM).nanoseconds))


def _host_loss(listed: Listed) -> Finding:
    return Finding(listed["reported"], 100 * (1 - host(1, MEDIUM, VECTORS) / host(LARGEST, MEDIUM, VECTORS)))


def _gradients(listed: Listed) -> Finding:
    return Finding(listed["reported"], sum(layer.weights for layer in vgg16()) * BYTES / 1e6)


def _share(listed: Listed) -> Finding:
    return Finding(
        listed["reported"], 100 * train(listed["machine"], listed["minibatch"], listed["way"], overlap=False).share
    )


def _speedup(listed: Listed) -> Finding:
    """Computes the largest speed-up of training, in-network with overlap relative to the host without overlap.

    Minibatches have at least ``listed["from"]`` images.
    """
    found = {size: _speedup_of(listed["machine"], size, overlap=True) for size in FIG_5_MINIBATCHES}
    remark = "By minibatch: " + ", ".join(f"{size}: {times:.2f}" for size, times in found.items()) + "."
    return Finding(
        listed["reported"], max(times for size, times in found.items() if size >= listed["from"]), remark=remark
    )


def _several(listed: Listed) -> Finding:
    name = listed["machine"]
    one, two = run(16, LONG, name), run(16, LONG, name, 2)
    loads = ", ".join(f"{count} links with {load + 1}" for load, count in enumerate(two.metrics["link_loads"].value))
    return Finding(listed["reported"], one.nanoseconds / two.nanoseconds, remark=f"Two embeddings: {loads}.")


CHECKS = {
    **checks_of(globals()),
    **piuma_messages.CHECKS,
    **piuma_trees.CHECKS,
    **piuma_variants.CHECKS,
}
