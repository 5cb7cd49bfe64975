"""Logs of benchmarks and of programs that hang: readers, the fit of machines to them, expectations and findings.

`rows` has the checks that all readers share. `collectives` reads nccl-tests and rccl-tests, `links` the bandwidth and
latency of single links, `benchmarks` OSU, IMB and others. `library_calibration` fits the cost parameters of a library
on a machine, `link_calibration` the rates of its links, and `message_calibration`, by `message_prices`, the prices of
messages of MPI programs. `expectations`, `guidelines` and `remarks` detect anomalies in rows, and `findings` lists
them. `hangs` reads flight recorders, with `pickles`, which builds plain data only.
"""

__all__: list[str] = []
