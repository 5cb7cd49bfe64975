"""`unisono check-guidelines`: finds collectives that a library could make faster by other collectives."""

from collections import Counter

import click

from unisono import InputError
from unisono.cli._options import json_option, log_ranks_option, tolerance_option
from unisono.cli._output import counted, microseconds, print_json, print_lines, print_notes, print_table
from unisono.logs.benchmarks import read_logs
from unisono.logs.guidelines import TOLERANCE, Violation, violations

__all__ = ["check_guidelines"]

_SHOWN = 40


@click.command(name="check-guidelines")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@log_ranks_option(2)
@tolerance_option(TOLERANCE)
@json_option
def check_guidelines(files: tuple[str, ...], ranks: int | None, tolerance: float, as_json: bool) -> int:
    """Lists the measured collectives that take longer than other collectives that could replace them.

    An allreduce could replace a broadcast of the same vector, so a broadcast should not take longer. A FILE is a log of
    times that `unisono diagnose` reads. The times of all FILEs belong to one system. Exit code 1: a guideline is
    broken.
    """
    logs = read_logs(files, ranks)
    points = [point for log in logs for point in log.points]
    notes = [one for log in logs for one in log.left_out]
    found, count = violations(points, tolerance)
    if not count:
        have = ", ".join(sorted({f"{point.collective} on {point.ranks}" for point in points}))
        raise InputError(
            f"no two of the times can be compared: there are {have}; add logs of other collectives or sizes"
        )
    if as_json:
        print_json(
            {"violations": [_row(of) for of in found], "times": len(points), "comparisons": count, "notes": notes}
        )
        return 1 if found else 0
    head = f"{counted(len(points), 'time')}, {counted(count, 'comparison')}, {counted(len(found), 'guideline')} broken"
    print_lines(head)
    print_notes(notes)
    if found:
        _print(found)
    return 1 if found else 0


def _row(of: Violation) -> dict[str, str | int | float]:
    return {
        "collective": of.collective,
        "bytes": of.bytes,
        "ranks": of.ranks,
        "seconds": of.seconds,
        "guideline": of.guideline,
        "other_seconds": of.other_seconds,
        "ratio": of.ratio,
    }


def _print(found: list[Violation]) -> None:
    print_lines("")
    columns = ["guideline", "ranks", "bytes", "µs", "others, µs", "ratio"]
    rows = [
        [
            of.guideline,
            str(of.ranks),
            str(of.bytes),
            microseconds(of.seconds),
            microseconds(of.other_seconds),
            f"{of.ratio:.2f}",
        ]
        for of in found[:_SHOWN]
    ]
    print_table(columns, rows, right=columns[1:])
    if len(found) > _SHOWN:
        print_lines(f"and {len(found) - _SHOWN} more: --json")
    worst = Counter(of.guideline for of in found).most_common(1)[0]
    print_lines("", f"most often: {worst[0]} ({worst[1]} times)")
