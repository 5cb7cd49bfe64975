"""`unisono reproduce`: output, figures, and refuted claims."""

import csv
import sys
from pathlib import Path

import pytest
from unisono.reproduce import discovery, listed_claims, multiplying_measured, multiplying_simulated, wafer_simulated

from .conftest import SOAK, Ran, Spawn, refusal

KEYS = {"paper", "id", "text", "reported", "ours", "unit", "tolerance", "holds", "note", "verdict", "refuted", "apart"}


def decides_every_row(ran: Ran, paper: str) -> bool:
    """Returns whether a run without --full has all rows with the verdicts that they state."""
    verdicts = {claim["id"]: claim["verdict"] for claim in ran.json["claims"]}
    listed = [claim for claim in listed_claims(paper) if not claim.get("full", False)]
    kept = {row["id"]: "consistent" if "apart" in row else "holds" for row in listed}
    stated = {row["id"]: verdict for verdict in ("refuted", "differs") for row in listed if verdict in row}
    return ran.code == 0 and verdicts == kept | stated


@pytest.mark.soak
def test_claims_of_the_wafer(within: Spawn, tmp_path: Path) -> None:
    ran = within("reproduce", "wafer", "--json")
    claims = ran.json["claims"]
    assert decides_every_row(ran, "wafer")
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


@pytest.mark.soak
def test_claims_of_recursive_multiplying(within: Spawn, tmp_path: Path) -> None:
    ran = within("reproduce", "multiplying", "--json")
    assert decides_every_row(ran, "multiplying")
    figures = {f"out/multiplying/{name}.{kind}" for name in ("fig3", "fig4", "fig12") for kind in ("png", "csv")}
    figures |= {f"out/multiplying/fig{number}.png" for number in range(18, 24)}
    figures |= {"out/multiplying/fig17.goal", "out/multiplying/fig23.goal"}
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
        assert doubling == multiplying_simulated.doubling(ranks)
        assert once == f"a{ranks}"


def test_without_mpi_nothing_is_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    rows, note = multiplying_measured.measure()
    assert rows == []
    assert "no MPI is installed" in note
    monkeypatch.setenv("PMI_RANK", "0")
    assert "under mpiexec itself" in multiplying_measured.measure()[1]


@pytest.mark.soak
def test_claims_of_hammingmesh(within: Spawn, tmp_path: Path) -> None:
    ran = within("reproduce", "hammingmesh", "--json")
    assert decides_every_row(ran, "hammingmesh")
    assert all(claim["provenance"] in {"found", "re-derived", "derived", "recalled"} for claim in ran.json["claims"])
    names = ("table2.csv", "structure.png", "allocation.csv", "allocation.png", "fig16.csv", "fig16.png")
    assert set(ran.json["files"]) == {f"out/hammingmesh/{name}" for name in names}
    rows = list(csv.DictReader((tmp_path / "out/hammingmesh/table2.csv").read_text().splitlines()))
    assert len(rows) == 16
    assert {row["topology"]: row["cost_usd"] for row in rows}["hx2mesh-small"] == "5411840.0"


def test_claims_of_discovery(within: Spawn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not SOAK:
        # Measuring the rates of discovery takes most of the time.
        monkeypatch.setattr(discovery, "_FIG_3_NODES", (1, 2, 4))
        monkeypatch.setattr(discovery, "_FIG_3_TASKS", 2_000)
    ran = within("reproduce", "discovery", "--json")
    assert decides_every_row(ran, "discovery")
    figures = {
        f"out/discovery/{name}" for name in ("fig1.dot", "fig1.png", "fig2.dot", "fig2.png", "fig3.png", "fig3.csv")
    }
    assert set(ran.json["files"]) == figures
    point_to_point, collective = ((tmp_path / f"out/discovery/fig{n}.dot").read_text() for n in (1, 2))
    assert (point_to_point.count("push P to"), collective.count("push P to")) == (2, 0)
    assert (point_to_point.count("allgather P"), collective.count("allgather P")) == (0, 2)


@pytest.mark.soak
def test_claims_of_piuma(within: Spawn, tmp_path: Path) -> None:
    ran = within("reproduce", "piuma", "--json")
    assert decides_every_row(ran, "piuma")
    assert all(claim["provenance"] in {"derived", "proven", "simulated", "calibrated"} for claim in ran.json["claims"])
    names = ("fig4-latency", "fig4-lengths", "fig4-nodes", "fig5a", "fig5b")
    assert set(ran.json["files"]) == {f"out/piuma/{name}.{kind}" for name in names for kind in ("png", "csv")}
    assert all((tmp_path / file).stat().st_size > 300 for file in ran.json["files"])


@pytest.mark.soak
def test_quick_checks_fewer_and_draws_nothing(within: Spawn, tmp_path: Path) -> None:
    ran = within("reproduce", "--quick")
    assert ran.code == 0, ran.err
    assert "rows that decide claims hold" in ran.out
    assert list(tmp_path.iterdir()) == []


def test_quick_and_full_exclude_each_other() -> None:
    assert "--quick" in refusal("reproduce", "--quick", "--full")


def test_a_simulated_point_may_be_predicted_only() -> None:
    ran = wafer_simulated.point("reduce", (8,), 16, "chain")
    assert (ran.predicted, ran.simulated, ran.error) == (58, 58, 0)
    only = wafer_simulated.predicted_only("reduce", (8,), 16, "chain")
    assert (only.predicted, only.simulated, only.error) == (58, None, None)
