"""Answers to requests that are easily misread: ranges, endings, sources of times, machines that do not fit."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
import unisono as un
from unisono.cli._types import Lengths, Nodes, Shapes, TracePes
from unisono.planning.workloads import workload

from .conftest import call, json_of, refusal

SWEEP = ("sweep", "reduce", "--machine", "wse2", "--shapes", "20x48,48x20", "--elements", "800")
SMALL = ("sweep", "allreduce", "--machine", "paper-sim", "--ranks", "4", "--elements", "64")


def test_ranges_include_both_ends() -> None:
    """A list of sizes doubles from its first number, a list of nodes counts; both hold the last number."""
    assert Lengths().convert("3..13", None, None) == [3, 6, 12, 13]
    assert Lengths().convert("4..64,5..5,7", None, None) == [4, 8, 16, 32, 64, 5, 7]
    assert Shapes().convert("3x2..13x5", None, None) == [(3, 2), (6, 4), (13, 5)]
    assert Shapes().convert("4x4..16x16", None, None) == [(4, 4), (8, 8), (16, 16)]
    assert Shapes().convert("4x8..4x32", None, None) == [(4, 8), (4, 32)]
    assert Nodes().convert("0,2,5..7", None, None) == [0, 2, 5, 6, 7]
    assert TracePes().convert("5..7", None, None).listed == (range(5, 8),)
    points = json_of("sweep", "broadcast", "--machine", "paper-sim", "--ranks", "3..5", "--elements", "8")["points"]
    assert [point["shape"] for point in points] == [[3], [5]]


def test_a_sweep_states_which_times_are_simulated(tmp_path: Path) -> None:
    """The sources are those of plans of the same points."""
    file = tmp_path / "sweep.csv"
    report = json_of(*SWEEP, "-o", str(file))
    words = {"simulated": "simulated"}
    with file.open() as lines:
        rows = list(csv.DictReader(lines))
    for point, row in zip(report["points"], rows, strict=True):
        candidates = un.plan("reduce", "wse2", shape=tuple(point["shape"]), elements=800).report()["candidates"]
        assert point["source"] == candidates[0]["source"]
        assert row["source"] == words.get(point["source"], "model")
        assert row["baseline_source"] == words.get(point["baseline_source"], "model")
        found = {name for name, source in point["source_by_algorithm"].items() if source == "simulated"}
        assert set(row["simulated"].split()) == found
    sources = [row["source"] for row in rows]
    printed = call(*SWEEP).out
    # One row of the map for each shape.
    marked = [line.rstrip().endswith("*") for line in printed.splitlines() if line.startswith(("20x48", "48x20"))]
    assert marked == [len(set(sources)) > 1 and source == "simulated" for source in sources]
    assert ("simulated" in printed.splitlines()[-1]) or set(sources) == {"model"}


@pytest.mark.parametrize(
    ("command", "wrong", "right"),
    [
        (SMALL, "a.xlsx", "a.CSV"),
        (("schedule", "allreduce", "--machine", "paper-sim", "--ranks", "4", "--elements", "8"), "a.txt", "a.sched"),
        (("import", "s.xml", "--format", "msccl-xml"), "a.yaml", None),
        (("merge", "1.json", "2.json"), "a.parquet", None),
        (("plan", "allreduce", "--machine", "paper-sim", "--ranks", "4", "--elements", "8"), "a.xlsx", "a.json"),
        (("expect", "allreduce", "--machine", "paper-sim", "--ranks", "4", "--sizes", "8"), "a.xlsx", "a.json"),
        (("machines", "import", "cables.txt", "--from", "edges"), "a.yaml", None),
        (("view", "dgx-h100"), "a.pdf", "a.html"),
        (("emit", "allreduce", "--machine", "dgx-a100", "--elements", "64", "--format", "goal"), "a.xlsx", "a.goal"),
        (("emit", "allreduce", "--machine", "dgx-a100", "--elements", "64", "--format", "goal"), "a.sched", "a"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else None,
)
def test_an_unknown_ending_is_refused(
    command: tuple[str, ...], wrong: str, right: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for shard in (1, 2):
        call(*SMALL, "--elements", "64,65", "--shard", f"{shard}/2", "-o", f"{shard}.json")
    (tmp_path / "s.xml").write_text("<algo/>")
    (tmp_path / "cables.txt").write_text("0 1\n")
    assert wrong in refusal(*command, "-o", wrong)
    assert not (tmp_path / wrong).exists()
    if right is not None:
        assert call(*command, "-o", right).code == 0
        assert (tmp_path / right).exists()


def test_a_plan_beyond_the_memory_warns_first(tmp_path: Path) -> None:
    for command in (["plan"], ["schedule", "-o", str(tmp_path / "s.sched")]):
        ran = call(*command, "reduce", "--machine", "wse2", "--shape", "4x4", "--elements", "20000")
        assert ran.err.startswith("warning: a PE needs 160000 bytes")
        assert "cannot run this" in ran.err.splitlines()[0]
    assert "warning" not in call("plan", "reduce", "--machine", "wse2", "--shape", "4x4", "--elements", "200").err


def test_a_machine_that_is_too_small_is_no_success() -> None:
    """Both rows name the workload alike, also if its file has another name."""
    path = "workloads/gpt-3.toml"
    assert json_of("compare", "gpt-3", "--machines", "fattree-small")["rows"][0]["reason"] is None
    ran = call("compare", path, "--machines", "fattree-small,dgx-h100", "--json")
    rows = json.loads(ran.out)["rows"]
    assert [row["reason"] is None for row in rows] == [True, False]
    assert ran.code == 1
    assert {row["workload"] for row in rows} == {workload(path, "fattree-small")["workload"]}


def test_ranks_are_a_shape() -> None:
    asked, sized = ("allreduce", "paper-sim"), ("allreduce", "archer")
    assert un.plan(*asked, shape=4, elements=10).report() == un.plan(*asked, ranks=4, elements=10).report()
    assert un.bounds(*asked, shape=4, elements=10) == un.bounds(*asked, ranks=4, elements=10)
    assert un.expect(*asked, shape=4, sizes=[64])["rows"] == un.expect(*asked, ranks=4, sizes=[64])["rows"]
    tables = un.plan_table(*sized, shape=4, last_bytes=64), un.plan_table(*sized, ranks=4, last_bytes=64)
    assert tables[0].report() == tables[1].report()
    with pytest.raises(un.InputError, match="shape=4 and ranks=5 both choose"):
        un.plan(*asked, shape=4, ranks=5, elements=10)
    wrong: Any = "four"
    with pytest.raises(un.InputError, match="ranks is 'four'"):
        un.plan(*asked, ranks=wrong, elements=10)


def test_shown_numbers_have_six_digits(tmp_path: Path) -> None:
    file = tmp_path / "compare.json"
    report = json_of("compare", "gpt-3", "--machines", "fattree-small,hx2mesh-small")
    file.write_text(json.dumps(report))
    printed = call("show", str(file)).out
    assert str(report["rows"][0]["seconds"]) not in printed
    assert f"{report['rows'][0]['seconds']:.6g}"[:6] in printed
    assert json_of("show", str(file))["rows"][0]["seconds"] == report["rows"][0]["seconds"]


def test_a_workload_has_no_page() -> None:
    refused = refusal("view", "gpt-3")
    assert "'gpt-3' is a workload" in refused
    assert "unisono workload gpt-3" in refused


@pytest.mark.parametrize(
    ("default", "edges", "is_accepted"),
    [
        ("undirected", ["", 'directed="false"'], True),
        ("undirected", ["", 'directed="true"'], False),
        ("directed", ['directed="false"', 'directed="false"'], True),
        ("directed", ['directed="false"', ""], False),
        ("undirected", ["", 'directed="yes"'], False),
    ],
)
def test_edges_state_their_direction(default: str, edges: list[str], is_accepted: bool, tmp_path: Path) -> None:
    file = tmp_path / "net.graphml"
    lines = [f'<edge source="{at}" target="{at + 1}" {words}/>' for at, words in enumerate(edges)]
    nodes = '<node id="0"/><node id="1"/><node id="2"/>'
    file.write_text(f'<graphml><graph edgedefault="{default}">{nodes}{"".join(lines)}</graph></graphml>')
    ran = call("machines", "import", str(file), "-o", str(tmp_path / "net.toml"))
    assert (ran.code == 0) is is_accepted
    assert is_accepted or "direct" in ran.err


def test_the_largest_number_is_no_instruction(tmp_path: Path) -> None:
    """A number without an instruction is an error, also 2^32 - 1, which means "no instruction" inside the library."""
    made = un.plan("allreduce", "paper-sim", shape=4, elements=8, algorithm="ring").schedule
    text, form = tmp_path / "s.sched", tmp_path / "s.json"
    un.save(made, text)
    un.save(made, form)
    whole, stated = text.read_text(), json.loads(form.read_text())
    for number in (99, 2**32 - 1):
        text.write_text(whole.replace("\n  i2:", f" after=i{number}\n  i2:", 1))
        stated["programs"][0]["lanes"][0][1]["after"] = [number]
        form.write_text(json.dumps(stated))
        for file in (text, form):
            with pytest.raises(un.InputError, match=f"instruction {number} does not exist"):
                un.load(file)
    text.write_text(whole.replace("\n  i2:", " after=i4294967296\n  i2:", 1))
    with pytest.raises(un.InputError):
        un.load(text)
