"""Switches of the environment, such as ``UNISONO_POINT_TO_POINT=1``, with the values of the preload library."""

import sys

from unisono import _core

__all__ = ["complain", "is_on"]

_complained: set[str] = set()


def is_on(name: str) -> bool:
    """Return whether a switch is on; a value that is neither on nor off counts as on, and is reported."""
    on, complaint = _core.is_switched_on(name)
    if complaint:
        complain(complaint)
    return on


def complain(complaint: str) -> None:
    """Prints a sentence about a value of the environment on standard error, once a process."""
    if complaint not in _complained:
        _complained.add(complaint)
        sys.stderr.write(f"unisono: {complaint}\n")
