"""Simulates messages among the cores of PIUMA that share links, packet by packet.

The machine is of kind ``network``: every core is an accelerator, joined to its own switch by a cable with the rate of
its memory; switches have the links of `piuma_links`. Software takes no time, so that links alone decide.
"""

from typing import Any

import unisono as un
from unisono.reproduce import Listed, checks_of, each
from unisono.reproduce.piuma_links import links
from unisono.reproduce.piuma_trees import machine

__all__ = ["CHECKS", "network"]

#: A rate of links so far above the rate of memories that no two messages wait for each other on a link.
_UNLIMITED_GBPS = 64_000.0
_PACKET_BYTES = 1024


def network(nodes: int, link_gbps: float) -> un.Machine:
    """Returns a network with the cores of PIUMA as accelerators, whose switches have links of that rate."""
    of_switch, described = links(machine(nodes)), machine(nodes).describe()
    cores = len(of_switch)
    cables = [f"{core} {cores + core} gbps={described['memory_gbps']} ns=0" for core in range(cores)]
    cables += [
        f"{cores + a} {cores + b} gbps={link_gbps} ns={latency}"
        for a, peers in enumerate(of_switch)
        for b, latency in peers
        if a < b
    ]
    return un.machine(
        {
            "name": "piuma-messages",
            "kind": "network",
            "planes": 1,
            "link_gbps": described["core_gbps"],
            "link_latency_ns": 0.0,
            "input_latency_ns": 0.0,
            "output_latency_ns": 0.0,
            "packet_bytes": _PACKET_BYTES,
            "buffer_bytes": 64 * _PACKET_BYTES,
            "send_machines": 1,
            "topology": {
                "name": "graph",
                "accelerators": cores,
                "edges": "\n".join(cables),
                "routing": "fastest",
            },
        }
    )


@each("nodes")
def _message_congestion(nodes: Any, listed: Listed) -> Any:
    """Divides the throughput of an allreduce by that without waiting for links, for each number of nodes."""
    times = []
    for rate in (machine(nodes).describe()["core_gbps"], _UNLIMITED_GBPS):
        on = network(nodes, rate)
        made = un.plan("allreduce", on, elements=listed["elements"], algorithm=listed["algorithm"], params={})
        times.append(un.simulate(made.schedule).nanoseconds)
    return times[1] / times[0]


CHECKS = checks_of(globals())
