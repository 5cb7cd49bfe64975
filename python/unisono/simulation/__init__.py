"""Runs of schedules, GOAL programs and traffic on simulated machines."""

from unisono.simulation.measurement import Measurement, measure
from unisono.simulation.network_traffic import Traffic, traffic
from unisono.simulation.runs import Metric, Run
from unisono.simulation.schedules import simulate, simulate_beside, simulate_goal

__all__ = [
    "Measurement",
    "Metric",
    "Run",
    "Traffic",
    "measure",
    "simulate",
    "simulate_beside",
    "simulate_goal",
    "traffic",
]
