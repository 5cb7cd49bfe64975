"""An emulated cluster on this computer: namespaces as hosts, joined by a network machine, for real MPI over TCP.

`scaling` makes a network of which this computer can carry the packets, `scripts` the programs that set up and enter
hosts, `session` starts, asks and ends a lab, `ranks` starts MPI programs on it.
"""

__all__ = ["ranks", "scaling", "scripts", "session"]
