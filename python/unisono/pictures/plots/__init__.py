"""Pictures of sweeps, runs, traffic, allocations and workloads."""

from unisono.pictures.plots.maps import Panel, curves, model_and_runs, optimality_maps, speedup_map

__all__ = ["Panel", "curves", "model_and_runs", "optimality_maps", "speedup_map"]
