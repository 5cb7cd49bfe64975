"""`unisono simulate --beside`: simulates several schedules that start at the same time."""

from collections.abc import Sequence
from typing import Any

import unisono
from unisono import Run, Schedule
from unisono.cli._output import number, print_lines, print_table


def run_beside(schedule: Schedule, files: Sequence[str]) -> tuple[list[Run], list[Run]]:
    """Returns the runs of the schedules with a common start, and the run of each schedule alone."""
    schedules = [schedule, *map(unisono.load, files)]
    together = unisono.simulate_beside(schedules)
    return together, [unisono.simulate(each) for each in schedules]


def reports(names: Sequence[str], together: Sequence[Run], alone: Sequence[Run]) -> list[dict[str, Any]]:
    """Returns the report of each schedule as a dictionary, for JSON."""
    return [
        {
            "schedule": name,
            "nanoseconds": run.nanoseconds,
            "alone_nanoseconds": one.nanoseconds,
            "identifiers": run.metrics["identifiers"].value,
            "result_correct": run.result_correct,
        }
        for name, run, one in zip(names, together, alone, strict=True)
    ]


def print_beside(rows: Sequence[dict[str, Any]]) -> None:
    """Prints a table of each schedule's times together and alone."""
    print_lines("")
    print_table(
        ["at the same time", "identifiers", "ns", "alone, ns", "ratio"],
        [
            [
                row["schedule"],
                " ".join(map(str, row["identifiers"])),
                number(row["nanoseconds"], 3),
                number(row["alone_nanoseconds"], 3),
                number(row["nanoseconds"] / row["alone_nanoseconds"], 3) if row["alone_nanoseconds"] else "-",
            ]
            for row in rows
        ],
        right=["ns", "alone, ns", "ratio"],
    )
