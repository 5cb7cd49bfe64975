"""Reads switches in environment variables, by the same rules as the preload library."""

import os
import sys

from unisono import _core

__all__ = ["complain", "is_on", "report_unknown"]

_complained: set[str] = set()
#: True once this process has searched for unknown variables.
_looked = False


def report_unknown(*, of_program: bool = True) -> None:
    """Prints, once a process, a line that names unknown environment variables ``UNISONO_...``.

    With ``of_program``, nothing is printed if the preload library is loaded, because it prints the same line itself.
    """
    global _looked
    if _looked or (of_program and "libunisono_preload" in os.environ.get("LD_PRELOAD", "")):
        return
    _looked = True
    found = _core.unknown_variables()
    if found is not None:
        sentence, variable = found
        complain(sentence)
        # Child processes inherit the variables, and must not report them again.
        os.environ[variable] = sentence


def is_on(name: str) -> bool:
    """Returns whether a switch is on; a value that is neither on nor off counts as on, and is reported."""
    report_unknown()
    on, complaint = _core.is_switched_on(name)
    if complaint:
        complain(complaint)
    return on


def complain(complaint: str) -> None:
    """Prints a sentence about a value of the environment on standard error, once a process."""
    if complaint not in _complained:
        _complained.add(complaint)
        sys.stderr.write(f"unisono: {complaint}\n")
