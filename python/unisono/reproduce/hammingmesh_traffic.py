"""Computes what "HammingMesh" and its artifact state about bandwidth."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import unisono as un
from unisono._core import Machine
from unisono.machines.descriptions import machine
from unisono.reproduce import Finding, Listed, checks_of, each
from unisono.reproduce.hammingmesh_training import CLUSTERS, facts_of
from unisono.simulation.network_traffic import traffic

__all__ = ["CHECKS", "network"]


def _alltoall_share(listed: Listed) -> Finding:
    shares = []
    for preset in listed["presets"]:
        done = traffic("alltoall", _buffered(preset, listed), bytes=listed["bytes"], level=listed["level"])
        shares.append(100 * done.share_of_injection)
    return Finding(listed["reported"], shares)


def _buffered(preset: str, listed: Listed) -> Machine:
    """Returns the preset, with the size of buffers that a row states."""
    made = machine(preset)
    buffers = listed.get("buffer_bytes")
    return made if buffers is None else made.changed("buffer_bytes", str(buffers))


def _allreduce_share(listed: Listed) -> Finding:
    shares = []
    for preset in listed["presets"]:
        done = traffic("allreduce", preset, bytes=listed["bytes"], algorithm=listed["algorithm"], level="flow")
        shares.append(100 * done.share_of_peak)
    return Finding(listed["reported"], shares)


def _alltoall_limit(listed: Listed) -> Finding:
    """Computes the percentage of the injection rate that the strictest bound permits to an alltoall, by cluster."""
    named = listed.get("only") or [name for name in CLUSTERS if name not in listed["without"]]
    presets = [f"{name}-{listed['size']}" for name in named]
    limits = [_limit(preset, listed["bytes"]) for preset in presets]
    shown = ", ".join(f"{preset} {name}" for preset, (name, _) in zip(presets, limits, strict=True))
    return Finding(listed["reported"], [100 * share for _, share in limits], remark=f"The bound of each: {shown}.")


@cache
def _limit(preset: str, bytes: int) -> tuple[str, float]:
    """Returns the strictest bound of an alltoall, and the fraction of the injection rate that the bound permits.

    Bounds of contained collectives are left out, because they add the latency of a path to the time on the links.
    """
    found = {name: seconds for name, seconds in _bounds("alltoall", preset, bytes).items() if " of " not in name}
    name = max(found, key=lambda name: found[name])
    return name, found["injection"] / found[name]


def _over_cut(listed: Listed) -> Finding:
    """Divides the permitted fraction by the relative bisection: for large clusters, and small relative to large."""
    ours = []
    for mesh in listed["meshes"]:
        small, large = (
            _limit(preset, listed["bytes"])[1] / facts_of(preset)["bisection_share"]
            for preset in (f"{mesh}-small", f"{mesh}-large")
        )
        ours += [large, small / large]
    return Finding(listed["reported"], ours)


def _bounds(collective: str, preset: str, bytes: int) -> dict[str, float]:
    return {bound["name"]: bound["seconds"] for bound in un.bounds(collective, preset, bytes=bytes)}


def _allreduce_best(listed: Listed) -> Finding:
    """Computes the percentage of half the injection rate that the best of some algorithms reaches by its model."""
    found = {preset: _best(preset, listed["bytes"], tuple(listed["algorithms"])) for preset in listed["presets"]}
    shown = ", ".join(f"{preset} {name}" for preset, (name, _) in found.items())
    return Finding(listed["reported"], [100 * share for _, share in found.values()], remark=f"Best: {shown}.")


@cache
def _best(preset: str, bytes: int, algorithms: tuple[str, ...]) -> tuple[str, float]:
    """Returns the best allreduce algorithm by its model, and its fraction of half the injection rate."""
    least = _bounds("allreduce", preset, bytes)["injection"]
    times = {
        name: un.plan("allreduce", preset, bytes=bytes, algorithm=name, params={}).predicted["seconds"]
        for name in algorithms
    }
    best = min(times, key=lambda name: times[name])
    return best, least / times[best]


def _permutation_share(listed: Listed) -> Finding:
    """Computes the mean bandwidth of accelerators, in percent of the injection rate."""
    shares = []
    for preset in listed["presets"]:
        done = traffic("permutation", preset, bytes=listed["bytes"], level=listed["level"])
        shares.append(100 * float(done.rates.mean()) / done.injection)
    return Finding(listed["reported"], shares)


#: The template of a machine with the paper's links; planes and topology are filled in.
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
    """Returns a network of the paper's links with a topology that no preset has."""
    return Machine.from_toml(_NETWORK.format(name=name, summary=summary, planes=planes, topology=topology), name)


def _torus() -> Machine:
    return network("torus", "one plane", 1, 'name = "torus"\ndims = [8, 8]')


def _allreduce_volumes(listed: Listed) -> Finding:
    """Divides predicted allreduce times on an 8 x 8 torus by the time in which a link carries the vector."""
    carried = listed["bytes"] * 8 / 400e9
    plans = [
        un.plan("allreduce", _torus(), bytes=listed["bytes"], algorithm=name, params={})
        for name in listed["algorithms"]
    ]
    return Finding(listed["reported"], [plan.predicted["seconds"] / carried for plan in plans])


def _allreduce_latencies(listed: Listed) -> Finding:
    """Divides the simulated times of two algorithms for a few bytes, packet by packet."""
    on = _torus()
    first, second = (
        traffic("allreduce", on, bytes=listed["bytes"], algorithm=name, level="packet").seconds
        for name in listed["algorithms"]
    )
    return Finding(listed["reported"], first / second)


@each("bytes")
def _tree_formula(bytes: Any, listed: Listed) -> Any:
    """Divides the simulated time of a reduction in a binomial tree by log2 p (alpha + S beta).

    A message of S bytes takes alpha + S beta.
    """
    on = {"name": "line", "kind": "endpoint", "model": "hockney", "alpha_ns": 1000, "beta_ns_per_byte": 0.5}
    plan = un.plan("reduce", on, shape=listed["ranks"], bytes=bytes, algorithm="binomial", params={})
    formula = math.log2(listed["ranks"]) * (1000 + 0.5 * bytes)
    return un.simulate(plan.schedule, on).nanoseconds / formula


@each("cases")
def _allreduce_faster(case: Any, listed: Listed) -> Any:
    """Divides the predicted times of two allreduce algorithms on parts of a machine."""
    shape, bytes = case
    first, second = (
        un.plan("allreduce", listed["machine"], shape=shape, bytes=bytes, algorithm=name, params={}).predicted[
            "seconds"
        ]
        for name in listed["algorithms"]
    )
    return first / second


def _permutation_spread(listed: Listed) -> Finding:
    """Divides the largest rate of an accelerator in a permutation by the smallest, on each small cluster of the row."""
    found = [traffic("permutation", f"{one}-small", bytes=listed["bytes"], level="flow") for one in listed["clusters"]]
    return Finding(listed["reported"], [float(done.rates.max() / done.rates.min()) for done in found])


def _permutation_rank(listed: Listed) -> Finding:
    """Ranks small clusters, from 1 on, by the mean rate of a permutation divided by the cost, best first."""
    values = {}
    for name in CLUSTERS:
        done = traffic("permutation", f"{name}-small", bytes=listed["bytes"], level="flow")
        values[name] = float(done.rates.mean()) / done.injection / facts_of(f"{name}-small")["cost_usd"]
    order = sorted(values, key=lambda name: -values[name])
    return Finding(listed["reported"], [1 + order.index(name) for name in listed["clusters"]], f"{', '.join(order)}.")


def _bandwidth_cost(listed: Listed) -> Finding:
    """Divides the cost per bandwidth of the nonblocking tree by that of each other network.

    With ``largest``, only the largest quotient is returned.
    """
    shares: dict[str, Callable[[str], float]] = {
        "flows": lambda on: traffic("alltoall", on, bytes=listed["bytes"], level="flow").share_of_injection,
        "bounds": lambda on: _limit(on, listed["bytes"])[1],
        "rings": lambda on: _best(on, listed["bytes"], tuple(listed["algorithms"]))[1],
    }
    share, size = shares[listed["by"]], listed["size"]
    tree, *others = (
        float(facts_of(preset)["cost_usd"] / share(preset))
        for preset in (f"{name}-{size}" for name in ("fattree", *listed["clusters"]))
    )
    ratios = [tree / other for other in others]
    return Finding(listed["reported"], max(ratios) if listed.get("largest") else ratios)


@each("bytes")
def _allreduce_curve(size: Any, listed: Listed) -> Any:
    """Computes the predicted Gb/s of an allreduce on one of four planes, at each length of the whole vector."""
    plan = un.plan("allreduce", listed["machine"], bytes=size, algorithm=listed["algorithm"], params={})
    return 8 * size / 4 / plan.predicted["seconds"] / 1e9


CHECKS = checks_of(globals())
