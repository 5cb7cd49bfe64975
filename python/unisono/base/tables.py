"""Results as CSV, with the unit of each column in its name."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

__all__ = ["csv_text", "sweep_csv"]


def sweep_csv(points: Sequence[Mapping[str, Any]]) -> str:
    """Returns one row for each point of a sweep, with a column of times for every algorithm that ran at any point.

    Times are cycles on a wafer, seconds elsewhere.
    """
    unit = "cycles" if any(point["cycles"] is not None for point in points) else "seconds"
    algorithms = sorted({name for point in points for name in point[f"{unit}_by_algorithm"]})
    times = ["cycles", "seconds"] if unit == "cycles" else ["seconds"]
    head = ["shape", "elements", "best", "params", *times, "baseline", f"baseline_{unit}", "baseline_ratio"]
    rows = (
        [
            "x".join(map(str, point["shape"])),
            point["elements"],
            point["best"],
            " ".join(f"{name}={value}" for name, value in point["params"].items()),
            *(point[time] for time in times),
            point["baseline"],
            point[f"baseline_{unit}"],
            point["baseline_ratio"],
            *(point[f"{unit}_by_algorithm"].get(name) for name in algorithms),
        ]
        for point in points
    )
    return csv_text([*head, *(f"{unit}_{name}" for name in algorithms)], rows)


def csv_text(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Returns rows as CSV text; absent values are empty cells."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return text.getvalue()
