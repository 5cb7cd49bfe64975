"""Handles Ctrl-C in the program `unisono`.

An interrupt raises ``KeyboardInterrupt``, as in any Python program. During imports, and after the command has ended, an
interrupt ends the process instead, because nothing has to be cleaned up then. An exception during an import might be
lost in a callback of the import system, or be reported as the failure of another module.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["INTERRUPTED", "UNREAD", "end_at_once", "handle", "importing"]

#: The exit code of an interrupted program, as shells count it: 128 + SIGINT.
INTERRUPTED = 130
#: The exit code of a program whose output pipe was closed: 128 + SIGPIPE.
UNREAD = 141

_at_once = False


def handle() -> None:
    """Installs the handler of the program. An interrupt ends the process until :func:`end_at_once` changes this.

    A signal that the parent process has set to be ignored stays ignored.
    """
    end_at_once(True)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupted)


def end_at_once(state: bool) -> bool:
    """Sets whether an interrupt ends the process instead of raising an exception; returns the previous state."""
    global _at_once
    before, _at_once = _at_once, state
    return before


@contextmanager
def importing() -> Iterator[None]:
    """Encloses imports, during which an interrupt ends the process. Has no effect without :func:`handle`."""
    before = end_at_once(True)
    try:
        yield
    finally:
        end_at_once(before)


def _interrupted(number: int, frame: FrameType | None) -> None:
    if _at_once:
        os.write(2, b"error: interrupted\n")
        os._exit(INTERRUPTED)
    signal.default_int_handler(number, frame)
