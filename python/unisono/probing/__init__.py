"""Slow cables, found by messages whose loads on links are known.

`networks` lists links and routes, `design` chooses sets of messages, `measuring` times them, `inference` accuses
cables, `probes` does all of it, and `asking` is its interface. `emitted` lets a program in C send the messages.
"""

from unisono.probing.asking import emit_probe, probe
from unisono.probing.measuring import Simulated
from unisono.probing.probes import MessageSets, Probe, SlowCable, probe_sets

__all__ = ["MessageSets", "Probe", "Simulated", "SlowCable", "emit_probe", "probe", "probe_sets"]
