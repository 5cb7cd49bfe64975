"""Computes what "HammingMesh" and its artifact say of bandwidth."""

import math
from collections.abc import Callable
from typing import Any

import unisono as un
from unisono._core import Machine
from unisono.machines.descriptions import machine
from unisono.reproduce import Finding
from unisono.reproduce.hammingmesh_training import CLUSTERS
from unisono.simulation.network_traffic import traffic

__all__ = ["CHECKS", "network"]

Listed = dict[str, Any]


def _alltoall(listed: Listed) -> Finding:
    shares = []
    for preset in listed["presets"]:
        done = traffic("alltoall", _buffered(preset, listed), bytes=listed["bytes"], level=listed["level"])
        shares.append(100 * done.share_of_injection)
    return Finding(listed["reported"], shares)


def _buffered(preset: str, listed: Listed) -> Machine:
    """The preset, with buffers of the size that a row states."""
    made = machine(preset)
    buffers = listed.get("buffer_bytes")
    return made if buffers is None else made.changed("buffer_bytes", str(buffers))


def _allreduce(listed: Listed) -> Finding:
    shares = []
    for preset in listed["presets"]:
        done = traffic("allreduce", preset, bytes=listed["bytes"], algorithm=listed["algorithm"], level="flow")
        shares.append(100 * done.share_of_peak)
    return Finding(listed["reported"], shares)


def _alltoall_limit(listed: Listed) -> Finding:
    """The share of the injection that the least bound leaves to an alltoall, on the clusters of one size."""
    shares, shown = [], []
    for cluster in CLUSTERS:
        if cluster not in listed["without"]:
            found = _bounds("alltoall", f"{cluster}-{listed['size']}", listed["bytes"])
            limit = max(found, key=lambda name: found[name])
            shares.append(100 * found["injection"] / found[limit])
            shown.append(f"{cluster} {limit}")
    return Finding(listed["reported"], shares, remark=f"The bound of each: {', '.join(shown)}.")


def _bounds(collective: str, preset: str, bytes: int) -> dict[str, float]:
    return {bound["name"]: bound["seconds"] for bound in un.bounds(collective, preset, bytes=bytes)}


def _allreduce_best(listed: Listed) -> Finding:
    """The share of half the injection that the best of some algorithms has by its model."""
    shares, shown = [], []
    for preset in listed["presets"]:
        least = _bounds("allreduce", preset, listed["bytes"])["injection"]
        times = {
            name: un.plan("allreduce", preset, bytes=listed["bytes"], algorithm=name).predicted["seconds"]
            for name in listed["algorithms"]
        }
        best = min(times, key=lambda name: times[name])
        shares.append(100 * least / times[best])
        shown.append(f"{preset} {best}")
    return Finding(listed["reported"], shares, remark=f"Best: {', '.join(shown)}.")


def _permutation(listed: Listed) -> Finding:
    """Returns the bandwidth of the mean accelerator, in percent of the rate at which it can send."""
    shares = []
    for preset in listed["presets"]:
        done = traffic("permutation", preset, bytes=listed["bytes"], level=listed["level"])
        shares.append(100 * float(done.rates.mean()) / done.injection)
    return Finding(listed["reported"], shares)


#: A network of the paper's links: its facts except the planes and the topology.
_NETWORK = """
name = "{name}"
kind = "network"
summary = "{summary}"
planes = {planes}
link_gbps = 400
link_latency_ns = 40
input_latency_ns = 20
output_latency_ns = 20
packet_bytes = 8192
buffer_bytes = 33554432

[topology]
{topology}
"""


def network(name: str, summary: str, planes: int, topology: str) -> Machine:
    """A network of the paper's links with a topology that no preset has."""
    return Machine.from_toml(_NETWORK.format(name=name, summary=summary, planes=planes, topology=topology), name)


def _on_torus(algorithm: str, bytes: int) -> float:
    on = network("torus", "one plane", 1, 'name = "torus"\ndims = [8, 8]')
    return float(un.plan("allreduce", on, bytes=bytes, algorithm=algorithm).predicted["seconds"])


def _volumes(listed: Listed) -> Finding:
    """Predicted times of allreduces on a torus of 8 x 8, over the time in which a link carries the vector."""
    carried = listed["bytes"] * 8 / 400e9
    return Finding(listed["reported"], [_on_torus(name, listed["bytes"]) / carried for name in listed["algorithms"]])


def _latencies(listed: Listed) -> Finding:
    """The predicted time of one algorithm over that of another, of a few bytes."""
    first, second = (_on_torus(name, listed["bytes"]) for name in listed["algorithms"])
    return Finding(listed["reported"], first / second)


def _tree(listed: Listed) -> Finding:
    """A simulated reduction in a binomial tree over log2 p (alpha + S beta), where a message takes alpha + S beta."""
    on = {"name": "line", "kind": "endpoint", "model": "hockney", "alpha_ns": 1000, "beta_ns_per_byte": 0.5}
    ours = []
    for bytes in listed["bytes"]:
        plan = un.plan("reduce", on, shape=listed["ranks"], bytes=bytes, algorithm="binomial")
        formula = math.log2(listed["ranks"]) * (1000 + 0.5 * bytes)
        ours.append(un.simulate(plan.schedule, on).nanoseconds / formula)
    return Finding(listed["reported"], ours)


def _faster(listed: Listed) -> Finding:
    """The predicted time of one allreduce over that of another on parts of a machine."""
    ours = []
    for shape, bytes in listed["cases"]:
        first, second = (
            un.plan("allreduce", listed["machine"], shape=shape, bytes=bytes, algorithm=name).predicted["seconds"]
            for name in listed["algorithms"]
        )
        ours.append(first / second)
    return Finding(listed["reported"], ours)


def _spread(listed: Listed) -> Finding:
    """The largest rate of a permutation over the smallest."""
    done = traffic("permutation", listed["machine"], bytes=listed["bytes"], level="packet")
    return Finding(listed["reported"], float(done.rates.max() / done.rates.min()))


def _global_cost(listed: Listed) -> Finding:
    """Returns the cost of the nonblocking tree for its share of an alltoall, over the same of each network."""

    def price(preset: str) -> float:
        made = machine(preset)
        facts = made.topology
        assert facts is not None  # the presets of Table 2 are networks
        done = traffic("alltoall", made, bytes=listed["bytes"], level="flow")
        return float(facts["cost_usd"] / done.share_of_injection)

    tree = price(listed["tree"])
    return Finding(listed["reported"], [tree / price(preset) for preset in listed["presets"]])


CHECKS: dict[str, Callable[[Listed], Finding]] = {
    "allreduce-best": _allreduce_best,
    "allreduce-share": _allreduce,
    "allreduce-faster": _faster,
    "allreduce-latencies": _latencies,
    "allreduce-volumes": _volumes,
    "alltoall-limit": _alltoall_limit,
    "alltoall-share": _alltoall,
    "global-cost": _global_cost,
    "permutation-share": _permutation,
    "permutation-spread": _spread,
    "tree-formula": _tree,
}
