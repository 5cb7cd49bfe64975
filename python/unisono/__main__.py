"""The program `unisono`, also as `python -m unisono`: answers Ctrl-C from here on, before it imports its commands."""

import sys

from unisono.base import interrupts


def main() -> int:
    """Runs the program on the arguments of the process and returns its exit code."""
    interrupts.handle()
    from unisono import cli

    try:
        return cli.main()
    finally:
        # The interpreter is still to end.
        interrupts.end_at_once(True)


if __name__ == "__main__":
    sys.exit(main())
