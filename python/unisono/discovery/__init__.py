"""Collectives in programs of tasks, and the time of their communication."""

from unisono.discovery.prediction import Prediction
from unisono.discovery.programs import discover

__all__ = ["Prediction", "discover"]
