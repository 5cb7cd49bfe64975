"""The search for slow cables, by timed messages whose loads on links are known.

`networks` lists links and routes, `design` chooses sets of messages, `measuring` times messages, `inference` finds
cables that explain slow messages, `probes` combines these, and `asking` is the interface for users. `emitted` writes
messages for a program in C.
"""

from unisono.probing.asking import emit_probe, probe
from unisono.probing.measuring import Simulated
from unisono.probing.probes import MessageSets, Probe, SlowCable, probe_sets

__all__ = ["MessageSets", "Probe", "Simulated", "SlowCable", "emit_probe", "probe", "probe_sets"]
