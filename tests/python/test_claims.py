"""The rows of the papers: complete, judged strictly, and able to fail."""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from unisono import reproduce
from unisono.reproduce import (
    APART,
    PAPERS,
    Finding,
    discovery,
    hammingmesh,
    judge,
    listed_claims,
    multiplying,
    piuma,
    wafer,
    wafer_formulas,
)
from unisono.reproduce.statements import inventory, section_of

from .conftest import ROOT, Shared, call, json_of

MODULES = (discovery, hammingmesh, multiplying, piuma, wafer)
Check = Callable[[str, dict[str, Any]], Finding]


@pytest.fixture
def found_once(shared: Shared, monkeypatch: pytest.MonkeyPatch) -> Check:
    """Computes each row once a run, also for the command, and replaces drawing by nothing."""
    check = reproduce.check

    def of(paper: str, listed: dict[str, Any]) -> Finding:
        result: Finding = shared(f"{paper}-{listed['id']}", lambda: check(paper, listed))
        return result

    monkeypatch.setattr(reproduce, "check", of)
    for module in MODULES:
        monkeypatch.setattr(module, "draw", lambda folder, full: [])
    return of


#: The largest permitted ratio of a tolerance to its number.
WIDEST = 0.1


@pytest.mark.parametrize("paper", PAPERS)
def test_claims_are_complete(paper: str) -> None:
    claims = listed_claims(paper)
    known: dict[str, tuple[Mapping[str, object], Mapping[str, object]]] = {
        "discovery": ({}, discovery.CHECKS),
        "hammingmesh": ({}, hammingmesh.CHECKS),
        "multiplying": (multiplying.FORMULAS, multiplying.CHECKS),
        "piuma": ({}, piuma.CHECKS),
        "wafer": (wafer_formulas.FORMULAS, wafer.CHECKS),
    }
    formulas, checks = known[paper]
    ids = [claim["id"] for claim in claims]
    assert len(ids) == len(set(ids))
    for claim in claims:
        assert {"id", "section", "text", "check", "compare", "unit", "tolerance"} <= set(claim), claim["id"]
        assert ("reported" in claim) != ("formula" in claim), claim["id"]
        assert claim.get("formula") in {None, *formulas}
        assert claim["check"] in checks
        # The derivation's value, which ours has to be: also a refuted row can be missed.
        assert ("refuted" in claim or "differs" in claim) == ("derived" in claim), claim["id"]
        assert "differs" not in claim or claim["apart"] != "own", claim["id"]
        assert claim.get("apart") in {None, *APART}
        assert not {"apart", "refuted"} <= set(claim), "a row that decides nothing refutes nothing"
        assert claim.get("provenance") != "calibrated" or "refuted" in claim or claim["apart"] == "calibrated"
        assert (claim.get("provenance") == "recalled") == (claim.get("apart") == "recalled"), claim["id"]
        for number, tolerance in _numbers(claim):
            assert tolerance <= WIDEST * abs(number) or number == 0, f"the tolerance of {claim['id']} hides {number}"
    assert set(checks) <= {claim["check"] for claim in claims}
    assert (ROOT / "papers" / paper / "claims.toml").exists()


@pytest.mark.parametrize("paper", PAPERS)
def test_thresholds_that_count_are_of_the_paper(paper: str) -> None:
    for claim in listed_claims(paper):
        if "apart" not in claim and "reported" in claim:
            assert ("words" in claim) == (claim["compare"] != "equal"), f"the threshold of {claim['id']} has no words"
            assert "is this project's" not in claim.get("note", ""), f"{claim['id']} has a number of this project"


@pytest.mark.parametrize("paper", PAPERS)
def test_statements_are_counted_once(paper: str) -> None:
    found = inventory(paper)
    first = {row["id"] for row in found.rows if "of" not in row and row.get("apart") != "own"}
    assert {row["of"] for row in found.rows if "of" in row and row.get("apart") != "own"} <= first
    compared = {**found.consistent, **found.differing}
    assert {*found.decided, *compared} == first, "'of' names the first row of a statement"
    assert not set(found.decided) & set(compared), "rows of one statement decide it, or none does"
    ids = [*(row["id"] for row in found.rows), *(s["id"] for s in (*found.tested, *found.undecidable, *found.open))]
    assert len(ids) == len(set(ids))
    texts = [statement["text"] for statement, _ in found.statements]
    assert len(texts) == len(set(texts)), "a statement is listed once"
    counts = found.report()
    kinds = ("held", "refuted", "tested", "consistent", "differing", "undecidable", "open")
    assert counts["found"] == sum(counts[key] for key in kinds) == len(texts)
    assert counts["decided"] == counts["held"] + counts["refuted"] + counts["tested"]
    assert counts["rows"] == counts["apart_rows"] + sum(map(len, found.decided.values()))
    assert counts["calibrated"] <= counts["consistent"]


@pytest.mark.parametrize("paper", PAPERS)
def test_statements_without_rows_have_a_test_or_a_reason(paper: str) -> None:
    found = inventory(paper)
    for statement in (*found.undecidable, *found.open):
        assert set(statement) == {"id", "section", "text", "reason"}
        assert statement["reason"].endswith("."), statement["id"]
    for statement in found.tested:
        assert set(statement) == {"id", "section", "text", "tests"}
        assert statement["tests"]
        for test in statement["tests"]:
            file, name = test.split("::")
            defined = rf"^ *(async )?(def|fn) {name}\("
            assert re.search(defined, (ROOT / file).read_text(), re.MULTILINE), f"{statement['id']}: no test {test}"


@pytest.mark.parametrize("paper", PAPERS)
def test_every_section_of_a_paper_has_a_statement(paper: str) -> None:
    found = inventory(paper)
    assert {section_of(statement) for statement, _ in found.statements} == set(found.sections)
    order = [found.sections.index(section_of(statement)) for statement, _ in found.statements]
    assert order == sorted(order)


def _numbers(claim: dict[str, Any]) -> Iterator[tuple[float, float]]:
    """Yields the reported numbers of a row that compares for equality, each with its tolerance."""
    reported = claim.get("reported", []) if claim["compare"] == "equal" else []
    numbers = reported if isinstance(reported, list) else [reported]
    tolerances = claim["tolerance"] if isinstance(claim["tolerance"], list) else [claim["tolerance"]] * len(numbers)
    yield from ((n, t) for n, t in zip(numbers, tolerances, strict=True) if not isinstance(n, str))


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
    return judge(paper, listed, found).verdict in {"holds", "refuted", "consistent", "differs"}


def moved(compare: str, value: Any, other: Any, tolerance: Any) -> Iterator[Any]:
    """Yields values that disagree with ``other`` by slightly more than the tolerance, at each place of a list."""
    if isinstance(value, list):
        each = tolerance if isinstance(tolerance, list) else [tolerance] * len(value)
        for at, of_one in enumerate(zip(value, other, each, strict=True)):
            for one in moved(compare, *of_one):
                yield [*value[:at], one, *value[at + 1 :]]
    elif isinstance(value, str):
        yield value + "?"
        yield from ([value[1:]] if value else [])
    else:
        past = 1.001 * tolerance + 1e-9 * (1 + abs(other))
        if compare != "at-least":
            yield other + past
        if compare != "at-most":
            yield other - past


def fails_when_moved(paper: str, listed: dict[str, Any], found: Finding) -> None:
    """Checks that a row accepts a result, and refuses it if result or constant move past the tolerance."""
    assert accepted(paper, listed, found)
    compare, reported, tolerance = listed["compare"], found.reported, listed["tolerance"]
    if "derived" in listed:
        # A row with a derived value accepts only this value.
        compare, reported, tolerance = "equal", listed["derived"], listed.get("derived_tolerance", 0)
    others = list(moved(compare, found.ours, reported, tolerance))
    assert others
    for other in others:
        assert not accepted(paper, listed, Finding(found.reported, other)), other
    if "derived" in listed:
        return
    # Now the constant of the row moves beyond our value.
    opposite = {"at-most": "at-least", "at-least": "at-most"}.get(compare, compare)
    for other in moved(opposite, found.reported, found.ours, tolerance):
        assert not accepted(paper, listed, Finding(other, found.ours)), other


@pytest.mark.parametrize("paper", PAPERS)
def test_every_row_that_has_a_constant_can_fail(paper: str) -> None:
    for listed in listed_claims(paper):
        if "reported" in listed and listed["compare"] != "winner":
            fails_when_moved(paper, listed, Finding(listed["reported"], listed.get("derived", listed["reported"])))


@pytest.mark.parametrize(
    ("paper", "listed"),
    [
        pytest.param(
            paper, listed, id=f"{paper}-{listed['id']}", marks=[pytest.mark.soak] * (not listed.get("quick", True))
        )
        for paper in PAPERS
        for listed in listed_claims(paper)
        if not listed.get("full", False)
    ],
)
def test_every_row_can_fail(paper: str, listed: dict[str, Any], found_once: Check) -> None:
    found = found_once(paper, listed)
    fails_when_moved(paper, listed, found)
    if "derived" in listed:
        return
    # The reported value must be the row's own constant: a row must not compare a computed value with itself.
    constant = listed.get("reported", found.reported)
    assert found.reported in (constant, [constant] * (len(found.reported) if isinstance(found.reported, list) else 0))


def test_a_missed_claim_is_the_answer_no(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reproduce, "check", lambda paper, listed: Finding(1, math.nan))
    ran = call("reproduce", "wafer", "--quick")
    assert ran.code == 1
    assert "MISSED" in ran.out


@pytest.mark.usefixtures("found_once")
def test_a_refuted_claim_that_holds_is_the_answer_no(monkeypatch: pytest.MonkeyPatch) -> None:
    check = reproduce.check

    def wrong(paper: str, row: dict[str, Any]) -> Finding:
        return Finding(55, 56) if row["id"] == "vgg-host" else check(paper, row)

    monkeypatch.setattr(reproduce, "check", wrong)
    ran = call("reproduce", "piuma", "--quick")
    assert ran.code == 1
    assert "CONTRADICTED" in ran.out
    assert "1 contradicted" in ran.out


@pytest.mark.usefixtures("found_once")
@pytest.mark.parametrize("paper", PAPERS)
def test_refuted_rows_are_counted(paper: str) -> None:
    found = json_of("reproduce", paper, "--quick")
    claims = found["claims"]
    refuted = {claim["id"]: claim for claim in claims if claim["verdict"] == "refuted"}
    quick = [row for row in listed_claims(paper) if row.get("quick", True) and not row.get("full", False)]
    assert set(refuted) == {row["id"] for row in quick if "refuted" in row}
    assert all(not claim["holds"] and claim["refuted"] for claim in refuted.values())
    differing = [claim for claim in claims if claim["verdict"] == "differs"]
    assert {claim["id"] for claim in differing} == {row["id"] for row in quick if "differs" in row}
    apart = [claim for claim in claims if claim["apart"]]
    assert found["verdicts"] == {
        "holds": len(claims) - len(refuted) - len(apart),
        "refuted": len(refuted),
        "consistent": len(apart) - len(differing),
        "differs": len(differing),
        "missed": 0,
        "contradicted": 0,
    }
    assert found["statements"] == [inventory(paper).report()]
    text = call("reproduce", paper, "--quick").out
    assert (f" hold, {len(refuted)} refuted" in text) == bool(refuted)
    assert str(inventory(paper)) in text
