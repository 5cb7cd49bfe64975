"""Panels of plans: the candidates and the bound, at one size or at several sizes."""

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["of_reports", "of_sweep"]

Panel = dict[str, Any]


def of_reports(reports: Sequence[Mapping[str, Any]], chosen: int = 0) -> Panel:
    """Returns a panel of reports of `unisono plan --json`, one per size; the one at index ``chosen`` is shown first."""
    unit = "cycles" if reports[0]["predicted"].get("cycles") is not None else "seconds"
    points = [
        {
            "shape": _shape(report.get("shape")),
            "elements": report["elements"],
            "bytes": report["bytes"],
            "candidates": [
                {"name": _name(row), "value": row[unit], "source": row.get("source")} for row in report["candidates"]
            ],
            "bound": {"name": report["lower_bound"]["name"], "value": report["lower_bound"][unit]}
            if report.get("lower_bound")
            else None,
        }
        for report in reports
    ]
    return {"kind": "candidates", "title": "Candidates", "unit": unit, "points": points, "chosen": chosen}


def of_sweep(rows: Sequence[Mapping[str, str]]) -> Panel:
    """Returns a panel of the rows of a sweep's file."""
    unit = "cycles" if rows[0].get("cycles") else "seconds"
    prefix = f"{unit}_"
    points = [
        {
            "shape": row["shape"],
            "elements": int(row["elements"]),
            "bytes": None,
            "candidates": sorted(
                (
                    {"name": key.removeprefix(prefix), "value": float(value), "source": None}
                    for key, value in row.items()
                    if key.startswith(prefix) and value
                ),
                key=lambda candidate: float(str(candidate["value"])),
            ),
            "bound": None,
        }
        for row in rows
    ]
    return {"kind": "candidates", "title": "Candidates", "unit": unit, "points": points, "chosen": len(points) - 1}


def _name(row: Mapping[str, Any]) -> str:
    words = [f"{name}={value}" for name, value in row["params"].items()]
    return " ".join([row["algorithm"], *words])


def _shape(shape: Sequence[int] | None) -> str:
    return "x".join(map(str, shape or ()))
