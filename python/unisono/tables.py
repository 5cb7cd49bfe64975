"""Results as CSV, with the unit of each column in its name."""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any


def sweep_csv(points: Sequence[dict[str, Any]]) -> str:
    """One row a point of a sweep, with a column of cycles for every algorithm that ran at any point."""
    algorithms = sorted({name for point in points for name in point["cycles_by_algorithm"]})
    head = ["shape", "elements", "best", "params", "cycles", "seconds", "baseline", "baseline_cycles", "baseline_ratio"]
    rows = (
        [
            "x".join(map(str, point["shape"])),
            point["elements"],
            point["best"],
            " ".join(f"{name}={value}" for name, value in point["params"].items()),
            point["cycles"],
            point["seconds"],
            point["baseline"],
            point["baseline_cycles"],
            point["baseline_ratio"],
            *(point["cycles_by_algorithm"].get(name) for name in algorithms),
        ]
        for point in points
    )
    return csv_text([*head, *(f"cycles_{name}" for name in algorithms)], rows)


def csv_text(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Rows as CSV text; absent values are empty cells."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return text.getvalue()
