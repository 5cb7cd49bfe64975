"""Measurements of collectives under MPI, the machine that fits them, and decision tables.

`calibration` measures the prices of messages, by `levels` of a cluster. `measuring` times plans beside the library's
own calls; `tables` makes a decision table of these times, `sampled` one from few of them, and `confirming` times its
rows again. `measurements` and `choosing` do the same from times that somebody else measured.
"""

__all__: list[str] = []
