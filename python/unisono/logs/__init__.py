"""Logs of benchmarks and of programs that hang: readers, the fit of machines to them, expectations and findings.

`rows` holds what all readers of rows check. `collectives` reads nccl-tests and rccl-tests, `links` bandwidth and
latency of single links, `benchmarks` OSU, IMB and others. `library_calibration` and `link_calibration` fit the measured
side of a machine. `expectations`, `guidelines` and `remarks` state what is wrong in rows, and `findings` lists it.
`hangs` reads flight recorders, by `pickles`, which builds plain data only.
"""

__all__: list[str] = []
