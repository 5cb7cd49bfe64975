"""Collectives found in programs of tasks, and the time of what such a program communicates."""

from unisono.discovery.prediction import Prediction
from unisono.discovery.programs import discover

__all__ = ["Prediction", "discover"]
