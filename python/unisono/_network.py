"""Runs on networks: schedules and programs of GOAL, packet by packet."""

import os
from collections.abc import Sequence
from typing import SupportsIndex, final

import numpy as np
import numpy.typing as npt

from unisono import _core
from unisono._core import Machine, NetworkSimulation, Schedule
from unisono._endpoint import EndpointRun, Noise, as_noise, as_starts
from unisono._files import check_regular, file_name, title
from unisono._inputs import checked_seed
from unisono._simulation import listed_pes


@final
class NetworkRun(EndpointRun):
    """One run among ranks on a network, whose messages travel as packets."""

    _result: NetworkSimulation

    @property
    def events(self) -> int:
        """Those of the ranks, and of the packets of one plane."""
        return self._result.events

    @property
    def hops(self) -> int:
        """Packets over links; planes are alike, and one is simulated."""
        return self._result.hops

    @property
    def packets(self) -> int:
        """Packets of one plane."""
        return self._result.packets

    @property
    def planes(self) -> int:
        """Planes, each of which carries as much."""
        return self._result.planes

    @property
    def link_packets(self) -> npt.NDArray[np.uint64]:
        """Packets over each link of one plane."""
        return self._result.link_packets

    def __repr__(self) -> str:
        packets = f"{self.packets} packets on each of {self.planes} planes"
        return f"<unisono.NetworkRun {self.seconds * 1e6:.3f} us, {packets}>"


def simulate_on_network(
    schedule: Schedule,
    late: Sequence[float] | None,
    noise: Noise | None,
    seed: SupportsIndex,
    traced: list[int],
) -> NetworkRun:
    """Runs a schedule on its network; see :func:`unisono.simulate`."""
    checked = checked_seed(seed)
    starts = as_starts(late)

    def run(ranks: list[int]) -> NetworkSimulation:
        return _core.simulate_network(schedule, starts, as_noise(noise), checked, ranks)

    title = (
        f"{schedule.collective} of {schedule.elements} {schedule.dtype} on {schedule.ranks} ranks: {schedule.origin}"
    )
    return NetworkRun(title, run(traced), run, traced)


def simulate_goal_on_network(
    path: str | os.PathLike[str],
    machine: Machine,
    late: Sequence[float] | None = None,
    noise: Noise | None = None,
    seed: SupportsIndex = 0,
    trace_ranks: Sequence[int] | None = None,
) -> NetworkRun:
    """Runs the program of a GOAL file on a network, rank k on accelerator k; its calcs are nanoseconds."""
    check_regular(path)
    checked = checked_seed(seed)
    starts = as_starts(late)

    def run(ranks: list[int]) -> NetworkSimulation:
        return _core.simulate_network_goal(machine, file_name(path), starts, as_noise(noise), checked, ranks)

    traced = [] if trace_ranks is None else listed_pes(trace_ranks)
    return NetworkRun(title(path), run(traced), run, traced)
