"""The search for collectives in programs of tasks, and the predicted time of their communication."""

from unisono.discovery.prediction import Prediction
from unisono.discovery.programs import discover

__all__ = ["Prediction", "discover"]
