"""CPU seconds of commands beside their budgets, `budget.toml`, with a warning of those that need more than the slack.

A budget is scaled by the time of a yardstick, a loop of Python that is timed before each command, so that it holds on
other and on busy machines too. The least of some rounds counts.
"""

import argparse
import sys
import time
import tomllib
from pathlib import Path

import tomli_w
from common.commands import timed
from common.figures import Figures, Of, parsed

FILE = Path(__file__).with_name("budget.toml")


def yardstick() -> float:
    """Returns the CPU seconds of a fixed loop of Python."""
    begin = time.process_time()
    sum(number * number % 7 for number in range(2_000_000))
    return time.process_time() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--set", action="store_true", help="write the measured seconds as the budgets")
    given = parsed(parser)
    budget = tomllib.loads(FILE.read_text())
    found: dict[str, tuple[float, float]] = {}
    late = []
    with Figures("program", "Budgets of commands", given, note="one core; peer: scaled by the yardstick") as figures:
        for command, seconds in budget["cpu_seconds"].items():
            runs = [(yardstick(), timed(command, 1)[1]) for _ in range(given.rounds)]
            yard, cpu = (min(column) for column in zip(*runs, strict=True))
            found[command] = (cpu, yard)
            allowed = seconds * yard / budget["yardstick"]
            figures.add(command, Of("CPU", cpu, "s", "budget", allowed, gain=True))
            if cpu > allowed * budget["slack"]:
                late.append(f"warning: {command}: {cpu:.2f} CPU s, {cpu / allowed:.2f} times its budget\n")
    sys.stdout.write("".join(late))
    if given.set:
        least = min(yard for _, yard in found.values())
        seconds = {command: round(cpu * least / yard, 2) for command, (cpu, yard) in found.items()}
        FILE.write_text(tomli_w.dumps({**budget, "yardstick": round(least, 4), "cpu_seconds": seconds}))


if __name__ == "__main__":
    main()
