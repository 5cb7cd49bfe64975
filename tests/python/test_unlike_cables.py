"""Parallel cables of unlike latency and rate: a shorter cable slows nothing down, and plans agree with simulations."""

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
    """Returns two accelerators, or two or three at a switch, with one to three parallel cables at each place."""
    accelerators = draw.choice([2, 2, 3])
    pairs = [(0, 1)] if draw.random() < 0.5 else [(rank, accelerators) for rank in range(accelerators)]
    accelerators = 2 if pairs == [(0, 1)] else accelerators
    rates = draw.choice([[200], [100, 200, 400]])
    cables = [
        (a, b, draw.choice(rates), draw.choice([100, 700, 2000])) for a, b in pairs for _ in range(draw.randint(1, 3))
    ]
    return accelerators, cables


@pytest.mark.parametrize("seed", range(4))
def test_plans_on_unlike_cables_agree_with_simulations(seed: int) -> None:
    draw = random.Random(seed)
    for collective in ("allgather", "alltoall", "broadcast", "scatter"):
        accelerators, cables = drawn(draw)
        on, size = machine(accelerators, cables), draw.choice([1 << 20, 1 << 22])
        plan = un.plan(collective, on, bytes=size)
        ran = un.simulate(plan.schedule, on).seconds
        case = (cables, collective, size, plan.report()["notes"])
        assert plan.predicted["seconds"] == pytest.approx(ran, rel=0.03), case
        assert ran >= plan.bound["seconds"] * (1 - 1e-9), case
        longest = max(ns for *_, ns in cables)
        alike = machine(accelerators, [(a, b, gbps, longest) for a, b, gbps, _ in cables])
        assert ran <= un.simulate(plan.schedule, alike).seconds * 1.02, case
