"""Pictures of sweeps, runs, traffic, allocations and workloads, as PNG or SVG."""

from unisono.plots.maps import Panel, curves, model_and_runs, optimality_maps, png, speedup_map

__all__ = ["Panel", "curves", "model_and_runs", "optimality_maps", "png", "speedup_map"]
