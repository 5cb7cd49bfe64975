"""Runs of schedules of Table 2 on a Dragonfly, packet by packet, for section 6.1 of the recursive multiplying paper.

Costs follow from the minima of Table 1: a message occupies the processors of sender and receiver for half of alpha_r
each, and a route of five links takes the rest of alpha_p + alpha_r. Processes are on random nodes, and have the network
for themselves.
"""

import random
from statistics import median
from typing import Any

from unisono import Machine, Schedule, machine, plan, simulate
from unisono.reproduce import Finding
from unisono.reproduce.once import once

__all__ = ["congestion", "gain", "orders"]

#: alpha_p and alpha_r of the preset archer, ns.
_ALPHAS_NS = (1340.0, 340.0)
#: The links of a route between two groups, and the cable's fraction of a hop's latency.
_LINKS, _CABLE = 5, 0.6
#: Nodes per router (p), routers per group (a), global ports per router (h), groups (g).
_DRAGONFLY = {"name": "dragonfly", "p": 4, "a": 32, "h": 8, "g": 8}
_NODES = 1024
_LINK_GBPS = 42.0
#: Allocations of nodes whose median is taken.
_ALLOCATIONS = 9


@once
def _dragonfly() -> Machine:
    alpha_p, alpha_r = _ALPHAS_NS
    hop = (alpha_p + alpha_r - 2 * alpha_r / 2) / _LINKS
    return machine(
        {
            "name": "aries",
            "kind": "network",
            "planes": 1,
            "link_gbps": _LINK_GBPS,
            "link_latency_ns": _CABLE * hop,
            "input_latency_ns": (1 - _CABLE) * hop / 2,
            "output_latency_ns": (1 - _CABLE) * hop / 2,
            "packet_bytes": 64,
            "buffer_bytes": 65536,
            "send_machines": 1,
            "host_overhead_ns": alpha_r / 2,
            "topology": _DRAGONFLY,
        }
    )


def _schedule(on: Machine, ranks: int, text: str) -> Schedule:
    """Returns an allreduce of one double by recursive multiplying in the stages of a text."""
    params = {"schedule": text}
    return plan("allreduce", on, shape=ranks, bytes=8, algorithm="recursive-multiplying", params=params).schedule


def orders(listed: dict[str, Any]) -> Finding:
    """Divides the time of the slowest order of the same stages by that of the fastest, for each process count.

    ``places`` of the row chooses random nodes or the first ones.
    """
    on, ours = _dragonfly(), []
    for ranks, texts in listed["orders"]:
        places = random.Random(0).sample(range(_NODES), ranks) if listed["places"] == "random" else list(range(ranks))
        times = [simulate(_schedule(on, ranks, text), on, places=places).nanoseconds for text in texts]
        ours.append(max(times) / min(times))
    return Finding(listed["reported"], ours)


def congestion(listed: dict[str, Any]) -> Finding:
    """Divides the time of each schedule on the Dragonfly by that with links a thousand times as fast."""
    ranks, ours = listed["ranks"], []
    places = random.Random(0).sample(range(_NODES), ranks)
    fast = _dragonfly().changed("link_gbps", str(1000 * _LINK_GBPS))
    for text in listed["schedules"]:
        both = (_dragonfly(), fast)
        times = [simulate(_schedule(on, ranks, text), on, places=places).nanoseconds for on in both]
        ours.append(times[0] / times[1])
    return Finding(listed["reported"], ours)


def gain(ranks: int, over: str, schedule: str) -> float:
    """Returns the percent by which ``schedule`` takes less simulated time than ``over``: a median of allocations."""
    on = _dragonfly()
    both = [_schedule(on, ranks, text) for text in (over, schedule)]
    gains = []
    for seed in range(_ALLOCATIONS):
        places = random.Random(seed).sample(range(_NODES), ranks)
        before, after = (simulate(one, on, places=places).nanoseconds for one in both)
        gains.append(100 * (1 - after / before))
    return median(gains)
