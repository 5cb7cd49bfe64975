"""Measures collectives under MPI, fits a machine to measurements, and makes decision tables.

`calibration` measures the costs of messages, for each of the `levels` of a cluster. `measuring` times plans and the
library's own calls; `tables` makes a decision table from these times, `sampled` from a part of them, and `confirming`
times the table's rows again. `measurements` and `choosing` do the same with published times.
"""

__all__: list[str] = []
