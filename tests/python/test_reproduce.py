"""Papers reproduced: every claim is listed, judged and holds; the judge itself is strict."""

import csv
import math
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from unisono.reproduce import (
    PAPERS,
    Finding,
    discovery,
    hammingmesh,
    judge,
    listed_claims,
    multiplying,
    multiplying_measured,
    piuma,
    wafer,
    wafer_formulas,
    wafer_simulated,
)

from .conftest import ROOT, Spawn, call

KEYS = {"paper", "id", "text", "reported", "ours", "unit", "tolerance", "holds", "note"}


#: A bound of this project's own that the simulated fabric does not keep; docs/wafer-model.md says why.
MISSED = {"simulated-eq1-tree"}


def test_claims_of_the_wafer(spawn: Spawn, tmp_path: Path) -> None:
    ran = spawn("reproduce", "wafer", "--json")
    claims = ran.json["claims"]
    missed = {claim["id"]: claim["note"] for claim in claims if not claim["holds"]}
    assert set(missed) == MISSED
    assert all("beyond it" in note for note in missed.values())
    assert ran.code == 1
    assert len(claims) == sum(not claim.get("full", False) for claim in listed_claims("wafer"))
    assert all(set(claim) >= KEYS for claim in claims)
    figures = {
        f"out/wafer/{name}.{kind}"
        for name in ("fig1", "fig8", "fig10", "fig11", "fig12", "fig13")
        for kind in ("png", "csv")
    }
    assert set(ran.json["files"]) == figures
    assert all((tmp_path / file).stat().st_size > 1000 for file in figures)
    rows = list(csv.DictReader((tmp_path / "out/wafer/fig11.csv").read_text().splitlines()))
    chains = [row for row in rows if (row["panel"], row["algorithm"]) == ("b", "chain")]
    assert [float(row["predicted_cycles"]) for row in chains] == [float(row["simulated_cycles"]) for row in chains]
    assert [int(row["elements"]) for row in chains] == [2**k for k in range(13)]


#: What the paper says of its own numbers that they do not bear out; the notes say why.
MISSED_MULTIPLYING = {"eq5-printed", "fig20-skew", "model-chooses-measured"}


def test_claims_of_recursive_multiplying(spawn: Spawn, tmp_path: Path) -> None:
    ran = spawn("reproduce", "multiplying", "--json")
    assert {claim["id"] for claim in ran.json["claims"] if not claim["holds"]} == MISSED_MULTIPLYING
    assert ran.code == 1
    figures = {f"out/multiplying/{name}.{kind}" for name in ("fig3", "fig4", "fig12") for kind in ("png", "csv")}
    figures |= {f"out/multiplying/fig{number}.png" for number in range(18, 24)}
    assert set(ran.json["files"]) == figures
    assert all((tmp_path / file).stat().st_size > 500 for file in figures)
    measured = ran.json["measured"]
    assert [row["ranks"] for row in measured["rows"]] == [2, 3, 4]
    for row in measured["rows"]:
        before, after = row["doubling_seconds"], row["multiplying_seconds"]
        for which in ("minimum", "median"):
            assert row["decrease_percent"][which] == pytest.approx(100 * (1 - after[which] / before[which]))
        assert before["median"] >= before["minimum"] > 0
        assert 0 <= row["rounds_won"] <= row["rounds"]
    assert "one rank a node" in measured["note"]


def test_schedules_that_are_measured_are_those_of_the_paper() -> None:
    for ranks, (doubling, once) in multiplying_measured.SCHEDULES.items():
        assert doubling == multiplying.doubling(ranks)
        assert once == f"a{ranks}"


def test_without_mpi_nothing_is_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    rows, note = multiplying_measured.measure()
    assert rows == []
    assert "no MPI is installed" in note
    monkeypatch.setenv("PMI_RANK", "0")
    assert "under mpiexec itself" in multiplying_measured.measure()[1]


#: How the paper counts the first is not known. The others do not hold of GPT-3, on which a tree tapered by 50 % is as
#: fast as a nonblocking one; the notes say why.
MISSED_HAMMINGMESH = {"diameter-dragonfly-small", "fig16-hx2", "fig16-hx4"}


def test_claims_of_hammingmesh(spawn: Spawn, tmp_path: Path) -> None:
    ran = spawn("reproduce", "hammingmesh", "--json")
    assert {claim["id"] for claim in ran.json["claims"] if not claim["holds"]} == MISSED_HAMMINGMESH
    assert ran.code == 1
    assert all(claim["provenance"] in {"found", "re-derived", "derived", "recalled"} for claim in ran.json["claims"])
    names = ("table2.csv", "structure.png", "allocation.csv", "allocation.png", "fig16.csv", "fig16.png")
    assert set(ran.json["files"]) == {f"out/hammingmesh/{name}" for name in names}
    rows = list(csv.DictReader((tmp_path / "out/hammingmesh/table2.csv").read_text().splitlines()))
    assert len(rows) == 16
    assert {row["topology"]: row["cost_usd"] for row in rows}["hx2mesh-small"] == "5411840.0"


def test_claims_of_discovery(spawn: Spawn, tmp_path: Path) -> None:
    ran = spawn("reproduce", "discovery", "--json")
    assert [claim["id"] for claim in ran.json["claims"] if not claim["holds"]] == []
    assert ran.code == 0
    figures = {
        f"out/discovery/{name}" for name in ("fig1.dot", "fig1.png", "fig2.dot", "fig2.png", "fig3.png", "fig3.csv")
    }
    assert set(ran.json["files"]) == figures
    point_to_point, collective = ((tmp_path / f"out/discovery/fig{n}.dot").read_text() for n in (1, 2))
    assert (point_to_point.count("push P to"), collective.count("push P to")) == (2, 0)
    assert (point_to_point.count("allgather P"), collective.count("allgather P")) == (0, 2)


#: Its two shares of time ask for a ratio of 3.67, and memory traffic gives 3.50; the claim's note says so.
MISSED_PIUMA = {"vgg-host"}


def test_claims_of_piuma(spawn: Spawn, tmp_path: Path) -> None:
    ran = spawn("reproduce", "piuma", "--json")
    assert {claim["id"] for claim in ran.json["claims"] if not claim["holds"]} == MISSED_PIUMA
    assert ran.code == 1
    assert all(claim["provenance"] in {"derived", "simulated", "calibrated"} for claim in ran.json["claims"])
    names = ("fig4-latency", "fig4-lengths", "fig4-nodes", "fig5a", "fig5b")
    assert set(ran.json["files"]) == {f"out/piuma/{name}.{kind}" for name in names for kind in ("png", "csv")}
    assert all((tmp_path / file).stat().st_size > 300 for file in ran.json["files"])


def test_quick_checks_fewer_and_draws_nothing(spawn: Spawn, tmp_path: Path) -> None:
    ran = spawn("reproduce", "--quick")
    assert ran.code == 0, ran.err
    assert "claims hold" in ran.out
    assert list(tmp_path.iterdir()) == []


def test_quick_and_full_exclude_each_other() -> None:
    ran = call("reproduce", "--quick", "--full")
    assert ran.code == 2
    assert "--quick" in ran.err


def test_a_simulated_point_may_be_predicted_only() -> None:
    ran = wafer_simulated.point("reduce", (8,), 16, "chain")
    assert (ran.predicted, ran.simulated, ran.error) == (58, 58, 0)
    only = wafer_simulated.predicted_only("reduce", (8,), 16, "chain")
    assert (only.predicted, only.simulated, only.error) == (58, None, None)


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
    assert (ROOT / "papers" / paper / "claims.toml").exists()


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
    ],
)
def test_the_judge(compare: str, reported: object, ours: object, tolerance: float, holds: bool) -> None:
    listed = {"id": "x", "section": "1", "text": "", "unit": "", "compare": compare, "tolerance": tolerance}
    assert judge("wafer", listed, Finding(reported, ours)).holds is holds


def test_a_missed_claim_is_the_answer_no(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wafer, "check", lambda listed: Finding(1, 2, agrees=False))
    ran = call("reproduce", "wafer", "--quick")
    assert ran.code == 1
    assert "MISSED" in ran.out
