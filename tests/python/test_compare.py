"""Comparisons of workloads on machines repeat the reports of one workload on one machine."""

import json
from pathlib import Path

import pytest
import unisono as un
from unisono.base.pictures import FORMS, Form
from unisono.pictures.plots import comparisons

from .conftest import ROOT, call, json_of, refusal

MACHINES = ["hx2mesh-small", "torus2d-small", "dgx-a100"]


@pytest.fixture(scope="module")
def rows() -> list[dict[str, object]]:
    ran = call("compare", "gpt-3,dlrm", "--machines", ",".join(MACHINES), "--json")
    assert ran.code == 1
    found: list[dict[str, object]] = json.loads(ran.out)["rows"]
    return found


def test_rows_are_all_pairs_in_order(rows: list[dict[str, object]]) -> None:
    pairs = [(row["workload"], row["machine"]) for row in rows]
    assert pairs == [(workload, machine) for workload in ("gpt-3", "dlrm") for machine in MACHINES]


def test_rows_are_the_reports_of_single_workloads(rows: list[dict[str, object]]) -> None:
    for row in rows:
        if row["machine"] == "dgx-a100":
            assert row["seconds"] is row["time_x_cost"] is row["cost_usd"] is None
            assert "needs" in str(row["reason"])
            continue
        alone = un.workload(str(row["workload"]), str(row["machine"]))
        cost = json_of("topology", str(row["machine"]))["cost_usd"]
        assert row["seconds"] == alone["seconds"]
        assert row["exposed_seconds"] == alone["exposed_seconds"]
        assert row["cost_usd"] == cost
        assert row["time_x_cost"] == pytest.approx(alone["seconds"] * cost)


def test_programs_of_other_tools_are_compared(tmp_path: Path) -> None:
    program = ROOT / "examples" / "programs" / "transformer.hlo"
    picture = tmp_path / "c.svg"
    rates = ["--tflops", "300", "--memory-gb-per-second", "2000"]
    machines = ["--machines", "fattree-tapered75-small,fattree-small"]
    done = json_of("compare", str(program), *machines, *rates, "--plot", str(picture))
    for row in done["rows"]:
        alone = un.step(program, row["machine"], tflops=300, memory_gb_per_second=2000)
        assert (row["seconds"], row["time_x_cost"]) == (alone["seconds"], alone["time_x_cost"])
    assert done["files"] == [str(picture)]
    assert picture.read_bytes().startswith(b"<?xml")


@pytest.mark.parametrize("form", FORMS)
def test_pictures_have_their_form(form: Form) -> None:
    begins = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    rows = un.compare(["dlrm"], ["torus2d-small", "dgx-a100"])
    assert comparisons.draw(rows, form).startswith(begins[form])


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (["gtp-3", "--machines", "torus2d-small"], "did you mean gpt-3?"),
        (["gpt-3", "--machines", "dgx-a100"], "needs 384 accelerators"),
        (["gpt-3", "--machines", "torus2d"], "did you mean torus2d-"),
        (["gpt-3,", "--machines", "torus2d-small"], "not a list of names"),
        (["gpt-3", "--machines", "torus2d-small", "--plot", "c.jpg"], "no name of a picture"),
    ],
)
def test_wrong_input_is_refused_in_one_sentence(given: list[str], reason: str) -> None:
    ran = call("compare", *given)
    assert (ran.code, ran.err.count("\n")) == (2, 1), ran.err
    assert reason in ran.err


def test_nodes_are_of_the_machines_that_are_made_of_them() -> None:
    rows = call("compare", "dlrm", "--machines", "dgx-h100,hx2mesh-small", "--nodes", "16", "--json").json["rows"]
    assert [row["machine_accelerators"] for row in rows] == [128, 1024]
    assert "is one box" in refusal("compare", "dlrm", "--machines", "hx2mesh-small", "--nodes", "16")


def test_machines_of_one_name_are_named_by_their_files(tmp_path: Path) -> None:
    text = un.preset_toml("torus2d-small")
    files = [str(tmp_path / name) for name in ("a.toml", "b.toml")]
    for file in files:
        Path(file).write_text(text)
    rows = json_of("compare", "dlrm", "--machines", ",".join([*files, "hx2mesh-small"]))["rows"]
    assert [row["machine"] for row in rows] == [*files, "hx2mesh-small"]


def test_the_best_machine_of_each_workload_is_marked() -> None:
    machines = ["fattree-tapered75-small", "torus2d-small", "fattree-small", "dgx-a100"]
    rows = un.compare(["gpt-3", "dlrm"], machines)
    for name in ("gpt-3", "dlrm"):
        own = [row for row in rows if row["workload"] == name and row["seconds"] is not None]
        assert all(row["best"] == [] for row in rows if row["seconds"] is None)
        times = [row["seconds"] or 0.0 for row in own]
        products = [(row["seconds"] or 0.0) * (row["used_cost_usd"] or 0.0) for row in own]
        for quantity, values in (("seconds", times), ("time_x_used_cost", products)):
            assert [quantity in row["best"] for row in own] == [value == min(values) for value in values]
    # Ties are all marked as best. A workload that only one machine can run is not compared.
    twice = un.compare(["dlrm"], ["torus2d-small", "torus2d-small", "dgx-a100"])
    assert [row["best"] for row in twice] == [["seconds", "time_x_used_cost"]] * 2 + [[]]
    assert [row["best"] for row in un.compare(["dlrm"], ["torus2d-small", "dgx-a100"])] == [[], []]


def test_the_table_marks_the_best_machines() -> None:
    out = call("compare", "dlrm", "--machines", "torus2d-small,fattree-tapered75-small").out
    marked = [line for line in out.splitlines() if line.startswith("dlrm") and "*" in line]
    assert len(marked) in (1, 2)
    assert sum(line.count("*") for line in marked) == 2
    assert "* the least of the machines for the workload" in out
    assert "*" not in call("compare", "dlrm", "--machines", "torus2d-small").out


def test_with_copies_the_least_time_is_of_one_copy() -> None:
    rows = un.compare(["gpt-3"], ["hx2mesh-small", "fattree-small"], fill=True)
    by_copy = [row["seconds"] / (row["copies"] or 1) for row in rows if row["seconds"] is not None]
    assert ["seconds" in row["best"] for row in rows] == [time == min(by_copy) for time in by_copy]
