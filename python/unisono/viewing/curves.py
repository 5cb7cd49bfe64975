"""The panel of measured and expected times and their lower bound by size, with a picture for each collective."""

from collections.abc import Mapping
from typing import Any

__all__ = ["of_diagnosis", "of_expectation"]

Panel = dict[str, Any]


def of_diagnosis(report: Mapping[str, Any]) -> Panel:
    """Returns the panel of a report of `unisono diagnose --json`: measured times of logs, and expected times."""
    pictures: dict[str, dict[str, dict[int, float]]] = {}
    for row in report["times"]:
        where = f"{row['ranks']} ranks" + (f" on {row['nodes']} nodes" if row["nodes"] > 1 else "")
        lines = pictures.setdefault(f"{row['collective']}, {where}", {})
        for name, key in ((row["log"], "measured"), ("expected", "expected"), ("ceiling", "ceiling")):
            if row[key] is not None:
                lines.setdefault(name, {})[int(row["bytes"])] = float(row[key])
    return _panel("Measured beside expected", pictures)


def of_expectation(report: Mapping[str, Any]) -> Panel:
    """Returns the panel of a report of `unisono expect -o FILE.json`."""
    names = {"library": report["library"] or "library", "plan": "plan", "ceiling": "ceiling"}
    lines = {
        label: {int(row["bytes"]): float(row[key]) for row in report["rows"] if row[key] is not None}
        for key, label in names.items()
    }
    picture = f"{report['collective']}, {report['ranks']} ranks"
    return _panel("Expected times", {picture: {name: of for name, of in lines.items() if of}})


def _panel(title: str, pictures: Mapping[str, Mapping[str, Mapping[int, float]]]) -> Panel:
    made = []
    for name, lines in pictures.items():
        # Expected times and the ceiling are drawn first, below measured times.
        order = sorted(lines, key=lambda line: line not in ("ceiling", "expected", "plan"))
        sorted_lines = [{"name": line, "points": sorted(lines[line].items())} for line in order]
        made.append({"name": name, "lines": sorted_lines})
    return {"kind": "curves", "title": title, "pictures": made}
