"""Parallel cables of unlike latency: a shorter cable slows nothing down, and plans agree with simulations."""

import random

import pytest
import unisono as un

BASE = {
    "name": "drawn", "kind": "network", "planes": 1, "link_gbps": 100, "link_latency_ns": 0, "input_latency_ns": 20,
    "output_latency_ns": 20, "packet_bytes": 4096, "buffer_bytes": 1 << 22,
}  # fmt: skip
#: A cable: two nodes, its rate in Gbit/s and its latency in ns.
Cable = tuple[int, int, int, int]


def machine(accelerators: int, cables: list[Cable]) -> un.Machine:
    edges = "\n".join(f"{a} {b} gbps={gbps} ns={ns}" for a, b, gbps, ns in cables)
    return un.machine({**BASE, "topology": {"name": "graph", "accelerators": accelerators, "edges": edges}})


def drawn(draw: random.Random) -> tuple[int, list[Cable]]:
    """Returns two accelerators with two or three parallel cables, or three with up to two between each two."""
    accelerators = draw.choice([2, 2, 3])
    pairs = [(0, 1)] if accelerators == 2 else [(0, 1), (1, 2), (0, 2)]
    least, most = (2, 3) if accelerators == 2 else (1, 2)
    gbps = draw.choice([100, 200])
    cables = [(a, b, gbps, draw.choice([100, 700, 2000])) for a, b in pairs for _ in range(draw.randint(least, most))]
    return accelerators, cables


@pytest.mark.parametrize("seed", range(4))
def test_plans_on_unlike_cables_agree_with_simulations(seed: int) -> None:
    draw = random.Random(seed)
    for collective in ("allgather", "alltoall", "broadcast", "scatter"):
        accelerators, cables = drawn(draw)
        on, size = machine(accelerators, cables), draw.choice([1 << 22, 1 << 24])
        plan = un.plan(collective, on, bytes=size)
        ran = un.simulate(plan.schedule, on).seconds
        case = (cables, collective, size, plan.report()["notes"])
        assert plan.predicted["seconds"] == pytest.approx(ran, rel=0.03), case
        assert ran >= plan.bound["seconds"] * (1 - 1e-9), case
        longest = max(ns for *_, ns in cables)
        alike = machine(accelerators, [(a, b, gbps, longest) for a, b, gbps, _ in cables])
        # Packets agree within 2 %; a node learns of the other end of a cable a round trip later.
        assert ran <= un.simulate(plan.schedule, alike).seconds * 1.02 + 2e-9 * longest, case
