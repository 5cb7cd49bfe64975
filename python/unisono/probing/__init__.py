"""Slow cables, found by messages whose loads on links are known.

`networks` lists links and routes, `design` chooses sets of messages, `measuring` times them, `inference` accuses
cables, and `probe` does all of it.
"""

from unisono.probing.measuring import Simulated
from unisono.probing.probe import Accused, Probe, Sets, probe

__all__ = ["Accused", "Probe", "Sets", "Simulated", "probe"]
