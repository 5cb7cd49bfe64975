"""Rows of a paper that hold must be able to fail: each is computed again with another reported value."""

from typing import Any

import pytest
from unisono.reproduce import check, judge, listed_claims
from unisono.reproduce.wafer_formulas import FORMULAS

from .conftest import Shared

#: Rows that take at most seconds and agree with their statement.
ROWS = [
    row
    for row in listed_claims("wafer")
    if row.get("quick", True) and not row.get("full") and not {"refuted", "differs"} & row.keys()
]
#: Rows that simulate for a second each time.
DEAR = {
    "allreduce-adds-broadcast", "colors", "fig13c-winners-simulated", "lemma-7.1", "simulated-mean-error-12b",
    "start-spread",
}  # fmt: skip


def _other(reported: Any, compare: str, tolerance: float, ours: Any) -> Any:
    """Returns a reported value with which `ours` must disagree."""
    if isinstance(reported, list):
        return [_other(one, compare, tolerance, mine) for one, mine in zip(reported, ours, strict=True)]
    if isinstance(reported, str):
        # The new letter is one of the same alphabet, so that every row can still be computed.
        return {"S": "C", "C": "S"}.get(reported[-1], "S").join([reported[:-1], ""])
    step = 2 * tolerance + 0.01 * abs(ours) + 0.01
    return ours + (step if compare == "at-least" else -step)


@pytest.mark.parametrize(
    "row", [pytest.param(row, id=row["id"], marks=[pytest.mark.soak] * (row["id"] in DEAR)) for row in ROWS]
)
def test_a_row_fails_with_another_value(row: dict[str, Any], monkeypatch: pytest.MonkeyPatch, shared: Shared) -> None:
    found = shared(f"wafer-{row['id']}", lambda: check("wafer", row))
    assert judge("wafer", row, found).verdict == ("consistent" if "apart" in row else "holds")
    if "reported" in row:
        changed = row | {"reported": _other(found.reported, row["compare"], row["tolerance"], found.ours)}
        if not isinstance(row["reported"], list) and isinstance(changed["reported"], list):
            # One number is reported for several points.
            changed["reported"] = changed["reported"][0]
    else:
        changed = row
        for name in {row.get("formula"), row.get("form")} & FORMULAS.keys():
            formula = FORMULAS[str(name)]
            monkeypatch.setitem(FORMULAS, str(name), lambda *point, of=formula: 0.5 * of(*point) - 30)
    assert judge("wafer", row, check("wafer", changed)).verdict == "missed"
