"""The program `unisono`, also as `python -m unisono`: answers Ctrl-C from here on, before it imports its commands."""

import os
import sys

from unisono.base import interrupts


def main() -> int:
    """Runs the program on the arguments of the process and returns its exit code."""
    interrupts.handle()
    _open_streams()
    from unisono import cli

    try:
        return cli.main()
    finally:
        # The interpreter is still to end.
        interrupts.end_at_once(True)


def _open_streams() -> None:
    """Opens standard streams that are closed, whose number a file that is written would get, on what keeps nothing."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nothing = os.open(os.devnull, os.O_RDWR)
            if nothing != number:
                os.dup2(nothing, number)
                os.close(nothing)
            # It is the stream of the process until it ends.
            setattr(sys, name, open(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False))  # noqa: SIM115


if __name__ == "__main__":
    sys.exit(main())
