"""An emulated cluster on this computer: namespaces are hosts, joined by a network machine, for real MPI over TCP.

`scaling` slows a network down until this computer can carry its packets, `scripts` has the shell programs that set up
and enter hosts, `session` starts, queries and ends a lab, `ranks` starts MPI programs on a lab.
"""

__all__ = ["ranks", "scaling", "scripts", "session"]
