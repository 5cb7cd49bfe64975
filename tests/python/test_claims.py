"""The rows of the papers: complete, judged strictly, and able to fail."""

import functools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from unisono.reproduce import (
    PAPERS,
    Finding,
    discovery,
    hammingmesh,
    judge,
    listed_claims,
    listed_undecidable,
    multiplying,
    piuma,
    wafer,
    wafer_formulas,
)
from unisono.reproduce.statements import inventory

from .conftest import ROOT, Shared, call

MODULES = {
    "discovery": discovery,
    "hammingmesh": hammingmesh,
    "multiplying": multiplying,
    "piuma": piuma,
    "wafer": wafer,
}
Check = Callable[[str, dict[str, Any]], Finding]


@pytest.fixture
def found_once(shared: Shared, monkeypatch: pytest.MonkeyPatch) -> Check:
    """Computes a row once a run; the command computes none anew, and draws nothing."""
    checks = {paper: module.check for paper, module in MODULES.items()}

    def of(paper: str, listed: dict[str, Any]) -> Finding:
        result: Finding = shared(f"{paper}-{listed['id']}", lambda: checks[paper](listed))
        return result

    for paper, module in MODULES.items():
        monkeypatch.setattr(module, "check", functools.partial(of, paper))
        monkeypatch.setattr(module, "draw", lambda folder, full: [])
    return of


#: By which a value is moved that a row must not accept.
FACTOR = 30


@pytest.mark.parametrize("paper", PAPERS)
def test_claims_are_complete(paper: str) -> None:
    claims = listed_claims(paper)
    known: dict[str, tuple[Mapping[str, object], Mapping[str, object]]] = {
        "discovery": ({}, discovery._CHECKS),
        "hammingmesh": ({}, hammingmesh._CHECKS),
        "multiplying": (multiplying.FORMULAS, multiplying._CHECKS),
        "piuma": ({}, piuma._CHECKS),
        "wafer": (wafer_formulas.FORMULAS, wafer._CHECKS),
    }
    formulas, checks = known[paper]
    ids = [claim["id"] for claim in claims]
    assert len(ids) == len(set(ids))
    for claim in claims:
        assert {"id", "section", "text", "check", "compare", "unit", "tolerance"} <= set(claim), claim["id"]
        assert ("reported" in claim) != ("formula" in claim), claim["id"]
        assert claim.get("formula") in {None, *formulas}
        assert claim["check"] in checks
        # The value that the derivation gives, which ours has to be: a row that is refuted can still be missed.
        assert ("refuted" in claim) == ("derived" in claim), claim["id"]
    assert set(checks) <= {claim["check"] for claim in claims}
    assert (ROOT / "papers" / paper / "claims.toml").exists()


@pytest.mark.parametrize("paper", PAPERS)
def test_statements_are_counted_once(paper: str) -> None:
    found = inventory(paper)
    first = {row["id"] for row in found.rows if not {"of", "own"} & set(row)}
    assert {row["of"] for row in found.rows if "of" in row} <= first, "'of' names the first row of a statement"
    assert set(found.decided) == first
    for statement in listed_undecidable(paper):
        assert set(statement) == {"id", "section", "text", "reason"}
        assert statement["id"] not in {row["id"] for row in found.rows}
    counts = found.report()
    assert counts["found"] == counts["held"] + counts["refuted"] + counts["needs_hardware"]
    assert counts["rows"] == counts["own_rows"] + sum(map(len, found.decided.values()))


@pytest.mark.parametrize(
    ("compare", "reported", "ours", "tolerance", "holds"),
    [
        ("equal", 1.4, 1.365, 0.05, True),
        ("equal", 1.4, 1.34, 0.05, False),
        ("at-most", 2.4, 2.3, 0.05, True),
        ("at-most", 2.4, 2.46, 0.05, False),
        ("at-least", 1.4, 3.8, 0, True),
        ("at-least", 1.4, 1.39, 0, False),
        ("equal", [1.0, 2.0], [1.0, 2.1], 0.05, False),
        ("equal", [1.0, 2.0], [1.0, 2.0], 0, True),
        ("equal", 1.0, math.nan, 9, False),
        ("equal", "gather", "gather", 0, True),
        ("winner", "SSC", "STC", 1e-9, False),
    ],
)
def test_the_judge(compare: str, reported: object, ours: object, tolerance: float, holds: bool) -> None:
    claim = judge("wafer", row(compare, tolerance), Finding(reported, ours))
    assert claim.holds is holds
    assert claim.verdict == ("holds" if holds else "missed")


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [(53.9, "refuted"), (53.4, "missed"), (54.999, "missed"), (55.0, "contradicted"), (math.nan, "missed")],
)
def test_a_refuted_row_misses_by_the_value_of_its_derivation(ours: float, verdict: str) -> None:
    listed = row("at-least", 0) | {"refuted": "3.5 of 6.5 parts", "derived": 53.85, "derived_tolerance": 0.1}
    claim = judge("piuma", listed, Finding(55, ours))
    assert claim.verdict == verdict
    assert ("The derivation gives 53.85." in claim.note) == (verdict == "missed")


def row(compare: str, tolerance: float) -> dict[str, Any]:
    return {"id": "x", "section": "1", "text": "", "unit": "", "compare": compare, "tolerance": tolerance}


def accepted(paper: str, listed: dict[str, Any], found: Finding) -> bool:
    return judge(paper, listed, found).verdict in {"holds", "refuted"}


def moved(compare: str, reported: Any, ours: Any, tolerance: float) -> Iterator[Any]:
    """What a row must not accept: FACTOR times its value or a share of it, in each place of a list, or another text."""
    if isinstance(ours, list):
        for at, (theirs, mine) in enumerate(zip(reported, ours, strict=True)):
            for other in moved(compare, theirs, mine, tolerance):
                yield [*ours[:at], other, *ours[at + 1 :]]
    elif isinstance(ours, str):
        yield ours + "?"
        yield from ([ours[1:]] if ours else [])
    else:
        # Zero has no factor, nor a value that the row cannot tell from zero; the scale is then the reported value's.
        near_zero = abs(ours) <= tolerance
        large = (abs(reported) or tolerance or 1) * FACTOR if near_zero else ours * FACTOR
        if compare != "at-least":
            yield large
        if compare != "at-most":
            yield -large if near_zero else ours / FACTOR


@pytest.mark.parametrize(
    ("paper", "listed"),
    [
        pytest.param(paper, listed, id=f"{paper}-{listed['id']}")
        for paper in PAPERS
        for listed in listed_claims(paper)
        if listed.get("quick", True) and not listed.get("full", False)
    ],
)
def test_every_row_can_fail(paper: str, listed: dict[str, Any], found_once: Check) -> None:
    found = found_once(paper, listed)
    assert accepted(paper, listed, found)
    # A refuted row accepts no other value than the one that its derivation gives.
    compare = "equal" if "refuted" in listed else listed["compare"]
    others = list(moved(compare, found.reported, found.ours, listed["tolerance"]))
    assert others
    for other in others:
        assert not accepted(paper, listed, Finding(found.reported, other)), other


def test_a_missed_claim_is_the_answer_no(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wafer, "check", lambda listed: Finding(1, math.nan))
    ran = call("reproduce", "wafer", "--quick")
    assert ran.code == 1
    assert "MISSED" in ran.out


@pytest.mark.usefixtures("found_once")
def test_a_refuted_claim_that_holds_is_the_answer_no(monkeypatch: pytest.MonkeyPatch) -> None:
    check = piuma.check
    monkeypatch.setattr(piuma, "check", lambda row: Finding(55, 56) if row["id"] == "vgg-host" else check(row))
    ran = call("reproduce", "piuma", "--quick")
    assert ran.code == 1
    assert "CONTRADICTED" in ran.out
    assert "1 contradicted" in ran.out


@pytest.mark.usefixtures("found_once")
@pytest.mark.parametrize("paper", PAPERS)
def test_refuted_rows_are_counted(paper: str) -> None:
    ran = call("reproduce", paper, "--quick", "--json")
    assert ran.code == 0
    claims = ran.json["claims"]
    refuted = {claim["id"]: claim for claim in claims if claim["verdict"] == "refuted"}
    quick = [row for row in listed_claims(paper) if row.get("quick", True) and not row.get("full", False)]
    assert set(refuted) == {row["id"] for row in quick if "refuted" in row}
    assert all(not claim["holds"] and claim["refuted"] for claim in refuted.values())
    assert ran.json["verdicts"] == {
        "holds": len(claims) - len(refuted),
        "refuted": len(refuted),
        "missed": 0,
        "contradicted": 0,
    }
    assert ran.json["statements"] == [inventory(paper).report()]
    text = call("reproduce", paper, "--quick").out
    assert (f", {len(refuted)} refuted\n" in text) == bool(refuted)
    assert str(inventory(paper)) in text
