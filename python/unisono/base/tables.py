"""Formats results as CSV or LaTeX, with the unit of each column in its name."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

__all__ = ["SWEEP_FILES", "csv_text", "latex_text", "source_word", "sweep_csv", "sweep_latex", "sweep_text"]

#: The characters with a meaning in LaTeX, and the commands that print them.
_LATEX = {
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
}


#: The forms of sweeps by the endings of their files.
SWEEP_FILES = {".csv": "CSV", ".tex": "LaTeX"}
#: The words for sources of times that are not models.
_SOURCES = {"simulated": "simulated", "estimated": "estimate"}


def source_word(source: str, model: str = "model") -> str:
    """Returns the word for the source of a time in a report: ``simulated``, ``estimate``, or else ``model``."""
    return _SOURCES.get(source, model)


def sweep_text(points: Sequence[Mapping[str, Any]], name: str) -> str:
    """Returns the points of a sweep in the format of the file ``name``: LaTeX if the name ends in .tex, else CSV."""
    return sweep_latex(points) if name.lower().endswith(".tex") else sweep_csv(points)


def sweep_latex(points: Sequence[Mapping[str, Any]]) -> str:
    """Returns a table with one row for each point of a sweep: the best algorithm, its time and its speed-up.

    Times are in cycles if any point has cycles, else in µs. The speed-up is the baseline's time divided by the best
    algorithm's; empty without a baseline. If only some times
    are simulated, a column has the source of each.
    """
    in_cycles = any(point["cycles"] is not None for point in points)
    sources = [source_word(point["source"]) for point in points]
    is_mixed = len(set(sources)) > 1
    rows = (
        [
            "x".join(map(str, point["shape"])),
            str(point["elements"]),
            " ".join([point["best"], *(f"{name}={value}" for name, value in point["params"].items())]),
            f"{point['cycles']:g}" if in_cycles else f"{1e6 * point['seconds']:.4g}",
            *([source] if is_mixed else []),
            "" if point["baseline_ratio"] is None else f"{point['baseline_ratio']:.2f}",
        ]
        for point, source in zip(points, sources, strict=True)
    )
    baseline = points[0]["baseline"] if points else None
    unit = "cycles" if in_cycles else "µs"
    head = ["shape", "elements", "best", unit, *(["time by"] if is_mixed else []), f"over {baseline or 'none'}"]
    return latex_text(head, rows, "rrlrlr" if is_mixed else "rrlrr")


def latex_text(head: Sequence[str], rows: Iterable[Sequence[str]], columns: str) -> str:
    """Returns rows as a LaTeX ``tabular`` that needs no package; ``columns`` has ``l`` or ``r`` for each column."""

    def line(cells: Sequence[str]) -> str:
        return " & ".join("".join(_LATEX.get(mark, mark) for mark in cell) for cell in cells) + r" \\"

    body = [line(head), r"\hline", *(line(row) for row in rows)]
    begin, end = f"\\begin{{tabular}}{{{columns}}}", r"\end{tabular}"
    return "\n".join([begin, r"\hline", *body, r"\hline", end, ""])


def sweep_csv(points: Sequence[Mapping[str, Any]]) -> str:
    """Returns one row for each point of a sweep, with a column of times for every algorithm that ran at any point.

    Times are in seconds. If any point has cycles, the best algorithm has an additional column of cycles, and all other
    times are in cycles. ``source`` and ``baseline_source`` state whether a time was computed by the model or simulated,
    and ``simulated`` lists the algorithms with simulated times.
    """
    unit = "cycles" if any(point["cycles"] is not None for point in points) else "seconds"
    algorithms = sorted({name for point in points for name in point[f"{unit}_by_algorithm"]})
    times = ["cycles", "seconds"] if unit == "cycles" else ["seconds"]
    of_baseline, sources = (
        ["baseline", f"baseline_{unit}", "baseline_ratio"],
        ["source", "baseline_source", "simulated"],
    )
    head = ["shape", "elements", "best", "params", *times, *of_baseline, *sources]
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
            source_word(point["source"]),
            source_word(point["baseline_source"]),
            " ".join(name for name in algorithms if point["source_by_algorithm"].get(name) == "simulated"),
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
