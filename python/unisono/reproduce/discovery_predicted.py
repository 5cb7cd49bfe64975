"""Predicted communication times of programs in "Automatic Discovery of Collective Communication Patterns" (2024).

The paper measured times on Marconi-100. Here times of the same programs are predicted for machines of ranks.
"""

from collections.abc import Callable, Mapping
from typing import Any

from unisono._core import Discovery, Machine
from unisono.discovery.prediction import predictions
from unisono.reproduce import Finding, multiplying_simulated
from unisono.reproduce.discovery_statements import settled
from unisono.reproduce.once import once

__all__ = ["communication", "gain", "speedups"]

Listed = Mapping[str, Any]
Build = Callable[[Discovery], None]
#: The preset with latency, overheads and bandwidth of messages.
MACHINE = "paper-sim"


def communication(build: Build, nodes: int, on: Machine | str) -> tuple[float, float]:
    """Returns the seconds of a program's communication by the paper's rules, and by messages alone."""

    def found(rules: str) -> Any:
        discovery = settled(build, nodes, rules=rules)
        return discovery.report(), discovery.moved()

    _, predicted, alone = predictions(found, on, nodes, "paper", None, simulate=False)
    return predicted.seconds, alone.seconds


def gain(listed: Listed, build: Build) -> Finding:
    """Divides the time by messages alone by the time with discovery, for each number of nodes."""
    ours = []
    for nodes in listed["nodes"]:
        predicted, alone = communication(build, nodes, MACHINE)
        ours.append(alone / predicted)
    reported = listed["reported"]
    return Finding(reported if isinstance(reported, list) else [reported] * len(ours), ours)


def speedups(listed: Listed, build: Build) -> Finding:
    """Computes the speed-up between two numbers of nodes; kernels take ``kernel_us`` on a single node."""
    ours = []
    for less, more in listed["nodes"]:
        first, second = (_seconds(listed, build, nodes) for nodes in (less, more))
        ours.append(first / second)
    return Finding(listed["reported"], ours)


def _seconds(listed: Listed, build: Build, nodes: int) -> float:
    predicted, alone = _latencies(build, nodes)
    kernel_us: float = listed["kernel_us"]
    return kernel_us * 1e-6 / nodes + {"messages": alone, "collectives": predicted}[listed["by"]]


@once
def _latencies(build: Build, nodes: int) -> tuple[float, float]:
    return communication(build, nodes, multiplying_simulated.machine())
