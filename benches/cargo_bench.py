"""The printed lines of `cargo bench` as figures: `cargo bench | python benches/cargo_bench.py --record`.

A line is `NAME: ...` with numbers before units. The first number of each unit counts, and those in brackets are of the
peer, LogGOPSim. Other lines are passed on.
"""

import argparse
import re
import sys
from collections.abc import Iterator

from common.figures import Figures, Of, parsed

#: The measure and the unit in the table, by the unit that a bench prints; `s` may be wall or processor seconds.
UNITS = {
    "s": ("time", "s"),
    "s wall": ("wall", "s"),
    "MB": ("memory", "MB"),
    "M/s": ("events a second", "M"),
    "M hops/s": ("hops a second", "M"),
    "M events/s": ("events a second", "M"),
}
_NUMBER = re.compile(rf"([\d.]+(?:e[-+]?\d+)?) ({'|'.join(sorted(UNITS, key=len, reverse=True))})(?![\w/])")


def figures_of(line: str) -> tuple[str, list[Of]]:
    """Returns the case and the figures of a printed line; the list is empty if the line has another form."""
    case, _, rest = line.rstrip("\n").partition(": ")
    own, _, peer = rest.partition(" [")
    theirs = dict(_numbers(peer))
    found: dict[str, Of] = {}
    for unit, number in _numbers(own):
        beside = theirs.get(unit, "")
        found.setdefault(
            unit, Of(*UNITS[unit][:1], number, UNITS[unit][1], "LogGOPSim" if beside else "", beside, True)
        )
    return case, list(found.values())


def _numbers(text: str) -> Iterator[tuple[str, float]]:
    return ((match[2], float(match[1])) for match in _NUMBER.finditer(text))


def main() -> None:
    given = parsed(argparse.ArgumentParser(description=__doc__))
    with Figures("program", "Benches of crates", given, note="cargo bench") as figures:
        for line in sys.stdin:
            case, found = figures_of(line)
            if found:
                figures.add(case, *found)
            else:
                sys.stdout.write(line)


if __name__ == "__main__":
    main()
