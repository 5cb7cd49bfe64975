"""The program `unisono`, also as `python -m unisono`; it handles Ctrl-C before it imports its commands."""

import gc
import os
import sys

from unisono.base import interrupts

#: The number of new objects after which Python searches for garbage.
_OBJECTS = 50_000


def main() -> int:
    """Runs the program on the arguments of the process and returns its exit code."""
    interrupts.handle()
    # Imports create many objects and no garbage. With Python's default threshold, garbage collection takes 5 % of the
    # time of a short command.
    gc.set_threshold(_OBJECTS)
    _open_streams()
    from unisono import cli

    try:
        return cli.main()
    finally:
        # Interrupts during shutdown end the process immediately.
        interrupts.end_at_once(True)
        # This skips Python's last garbage collection, because the end of the process frees all memory.
        gc.freeze()


def _open_streams() -> None:
    """Opens closed standard streams on the null device, so that no written file gets their descriptor numbers."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nothing = os.open(os.devnull, os.O_RDWR)
            if nothing != number:
                os.dup2(nothing, number)
                os.close(nothing)
            # The stream stays open until the process ends.
            setattr(sys, name, open(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False))  # noqa: SIM115


if __name__ == "__main__":
    sys.exit(main())
