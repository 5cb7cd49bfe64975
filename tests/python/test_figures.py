"""The figures of benches are written into their tables with their origin."""

import argparse
import csv
import io
import sys
from pathlib import Path

import pytest

from .conftest import ROOT

sys.path.insert(0, str(ROOT / "benches"))
sys.path.insert(0, str(ROOT / "docs"))
import cargo_bench
import results_page
from common import figures
from common.figures import Figures, Of

HEAD = "topic,case,measure,figure,unit,peer,peer_figure,ratio,date,machine,commit,command,note\n"
BENCHES = sorted(path for path in (ROOT / "benches").glob("**/*.py") if path.parent.name in ("benches", "mpi"))


def recorded(folder: Path, monkeypatch: pytest.MonkeyPatch, table: str, *added: tuple[str, Of]) -> str:
    """Records figures into a table, and returns the text of the new table."""
    results = folder / "benches" / "results"
    results.mkdir(parents=True, exist_ok=True)
    (results / "some.csv").write_text(table)
    (results / "before.csv").write_text(HEAD)
    monkeypatch.setattr(figures, "ROOT", folder)
    monkeypatch.setattr(figures, "origin", lambda: {"date": "2026-01-02", "machine": "this", "commit": "0123abcd"})
    monkeypatch.setattr(sys, "argv", [str(folder / "benches" / "new.py"), "--record", "--all"])
    with Figures("some", "Speed", argparse.Namespace(record=True), note="idle") as made:
        for case, of in added:
            made.add(case, of)
    return (results / "some.csv").read_text()


def test_new_figures_replace_those_of_the_same_case_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = "2025-01-01,that,,benches/old.py,\n"
    table = f"{HEAD}Speed,a,time,5,ms,,,,{old}Speed,b,time,7,ms,,,,{old}Size,a,bytes,9,,,,,{old}"
    found = recorded(
        tmp_path, monkeypatch, table, ("b", Of("time", 3.0, "ms")), ("c", Of("time", 4.0, "ms", "old", 8.0))
    )
    rows = list(csv.DictReader(io.StringIO(found)))
    assert [(row["topic"], row["case"], row["figure"]) for row in rows] == [
        ("Speed", "a", "5"), ("Speed", "b", "3"), ("Speed", "c", "4"), ("Size", "a", "9"),
    ]  # fmt: skip
    assert rows[1] | rows[2] == rows[2]
    names = ("peer", "peer_figure", "ratio", "date", "machine", "commit", "command", "note")
    assert [rows[2][name] for name in names] == [
        "old", "8", "0.5", "2026-01-02", "this", "0123abcd", "benches/new.py --all", "idle",
    ]  # fmt: skip
    assert [rows[at]["commit"] for at in (0, 3)] == ["", ""]
    assert (tmp_path / "benches/results/before.csv").read_text() == f"{HEAD}Speed,b,time,7,ms,,,,{old}"


def test_a_measure_that_a_bench_no_longer_has_is_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = "".join(
        f"Speed,{case},{measure},5,,,,,2025-01-01,that,,benches/{bench}.py --some,\n"
        for case, measure, bench in (("a", "share", "new"), ("a", "memory", "other"), ("b", "share", "new"))
    )
    found = recorded(tmp_path, monkeypatch, HEAD + old, ("a", Of("time", 3.0)))
    rows = [(row["case"], row["measure"]) for row in csv.DictReader(io.StringIO(found))]
    assert rows == [("a", "memory"), ("b", "share"), ("a", "time")]
    assert (tmp_path / "benches/results/before.csv").read_text() == HEAD + old.splitlines(keepends=True)[0]


def test_rows_that_are_not_replaced_keep_their_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = (ROOT / "benches" / "results" / "forests.csv").read_text()
    assert set(recorded(tmp_path, monkeypatch, table, ("x", Of("y", 1))).splitlines()) > set(table.splitlines())


def test_figures_have_no_exponents_and_gains_count_how_many_times_better() -> None:
    assert [figures.text(n) for n in (1234567, 1234567.0, 0.000012345, 2.0, 0.12345, "1 to 2")] == [
        "1234567", "1235000", "0.00001234", "2", "0.1235", "1 to 2",
    ]  # fmt: skip
    assert Of("time", 2.0, "s", "theirs", 8.0, gain=True).ratio == "4"
    assert Of("time", 2.0, "s", "theirs", 8.0).ratio == "0.25"
    assert Of("time", "1 to 2", "s", "theirs", 8.0).ratio == ""


def test_an_origin_names_the_commit() -> None:
    found = figures.origin()
    assert found["commit"].removesuffix("-dirty").isalnum()
    assert found["machine"].endswith(" cores")


def test_lines_of_cargo_bench_are_figures() -> None:
    line = "ring, 1024, 8: 3145728 events, 0.12 + 0.25 s, 12.5 M/s, 118 MB, 22.1 B a task, 5 ns [1.83 s, 445 MB, 5 ns]"
    assert cargo_bench.figures_of(line) == (
        "ring, 1024, 8",
        [
            Of("time", 0.25, "s", "LogGOPSim", 1.83, gain=True),
            Of("events a second", 12.5, "M", gain=True),
            Of("memory", 118, "MB", "LogGOPSim", 445, gain=True),
        ],
    )
    line = "512x512 x-y: 1.250e-3 s, median of 10"
    assert cargo_bench.figures_of(line) == ("512x512 x-y", [Of("time", 0.00125, "s", gain=True)])
    assert cargo_bench.figures_of("workload, ranks, bytes: events, CPU s, M events per CPU s")[1] == []


def test_figures_that_got_slower_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [("time", "5.3", "ms"), ("hops a second", "90", "M"), ("throughput", "120", "GB/s"), ("memory", "9", "MB")]
    old = [("time", "5", "ms"), ("hops a second", "100", "M"), ("throughput", "100", "GB/s"), ("memory", "1", "MB")]
    tables = {
        name: [
            results_page.Figure("Speed", "a", *row, "", "", "", "2026-01-02", "this", "", "b.py", "") for row in rows
        ]
        for name, rows in (("mpi", now), ("before", old))
    }
    monkeypatch.setattr(results_page, "figures", lambda name: tables.get(name, []))
    page = results_page._changes()
    assert "Of 3 times and rates that replaced others, 1 are faster by 5 % or more, 0 are alike, and 2 are" in page
    assert [line.split("|")[3:7] for line in page.splitlines()[-2:]] == [
        ["hops a second, M", "100 (2026-01-02)", "90 (2026-01-02)", "1.11"],
        ["time, ms", "5 (2026-01-02)", "5.3 (2026-01-02)", "1.06"],
    ]


@pytest.mark.parametrize("bench", BENCHES, ids=lambda path: path.relative_to(ROOT / "benches").as_posix())
def test_benches_record_their_figures(bench: Path) -> None:
    source = bench.read_text()
    assert "Figures(" in source
    assert "parsed(" in source
    # Benches print no Markdown tables, which would have to be copied by hand.
    assert '"| "' not in source
