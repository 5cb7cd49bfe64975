"""Runs of schedules, GOAL programs and traffic on simulated machines."""

from typing import TYPE_CHECKING

from unisono.base.lazy import lazy

if TYPE_CHECKING:
    from unisono.simulation.measurement import Measurement as Measurement
    from unisono.simulation.measurement import measure as measure
    from unisono.simulation.network_traffic import Traffic as Traffic
    from unisono.simulation.network_traffic import traffic as traffic
    from unisono.simulation.runs import Metric as Metric
    from unisono.simulation.runs import Run as Run
    from unisono.simulation.schedules import simulate as simulate
    from unisono.simulation.schedules import simulate_beside as simulate_beside
    from unisono.simulation.schedules import simulate_goal as simulate_goal

__all__, __getattr__ = lazy(__name__, globals())
