"""The commands' JSON: stable keys, and numbers that follow from the paper's formulas."""

from pathlib import Path

import pytest
import unisono
from unisono.reproduce.wafer import FIXED_1D, FIXED_2D

from .conftest import Spawn, call, json_of, written

ROW = ["--machine", "wse2", "--shape", "512"]


def test_best_reduce_of_256_elements_on_512_pes() -> None:
    report = json_of("plan", "reduce", *ROW, "--elements", "256")
    assert report["algorithm"] == "auto-gen"
    assert report["predicted"]["cycles"] == pytest.approx(1162.47, abs=0.01)
    assert report["model_optimum"]["name"] == "tight-1d"
    assert report["model_optimum"]["cycles"] == pytest.approx(1162.47, abs=0.01)
    assert (report["lower_bound"]["name"], report["lower_bound"]["cycles"]) == ("physical-1d", 772)
    assert report["ratio"] == pytest.approx(1162.47 / 772, abs=5e-4)
    assert report["model"] == "paper"
    assert set(report["predicted"]["terms"]) >= {"energy", "distance", "depth", "contention", "links"}
    cycles = [candidate["cycles"] for candidate in report["candidates"]]
    assert cycles == sorted(cycles)
    assert cycles[0] == report["predicted"]["cycles"]
    assert report["predicted"]["seconds"] == pytest.approx(1162.47 / 850e6, rel=1e-5)


@pytest.mark.parametrize(
    ("algorithm", "elements", "cycles"),
    [
        ("two-phase", 256, 1220.96),
        ("tree", 256, 2349),
        ("chain", 256, 3322),
        ("star", 1, 516),
        ("chain", 1, 3067),
        ("tree", 1, 560.51),
        ("two-phase", 1, 732.91),
        ("chain", 4096, 7162),
        ("two-phase", 4096, 8570.31),
        ("auto-gen", 1, 535.46),
        ("auto-gen", 1024, 2651.88),
    ],
)
def test_reduce_on_512_pes(algorithm: str, elements: int, cycles: float) -> None:
    report = json_of("plan", "reduce", *ROW, "--elements", str(elements), "--algorithm", algorithm)
    assert report["algorithm"] == algorithm
    assert report["predicted"]["cycles"] == pytest.approx(cycles, abs=0.01)


def test_star_under_the_bound_has_a_note() -> None:
    report = json_of("plan", "reduce", *ROW, "--elements", "1", "--algorithm", "star")
    assert report["ratio"] < 1
    assert report["notes"]
    assert "note" not in report


def test_bytes_and_elements_agree() -> None:
    by_bytes = json_of("plan", "reduce", *ROW, "--bytes", "1KiB")
    assert by_bytes == json_of("plan", "reduce", *ROW, "--elements", "256")


@pytest.mark.parametrize("collective", ["broadcast", "reduce", "allreduce"])
@pytest.mark.parametrize(("shape", "elements"), [("1", "5"), ("4", "0"), ("1", "0"), ("1x1", "3"), ("3x2", "0")])
def test_nothing_to_do_is_valid(collective: str, shape: str, elements: str) -> None:
    options = [collective, "--machine", "wse2", "--shape", shape, "--elements", elements]
    assert json_of("plan", *options)["predicted"]["cycles"] >= 0
    assert json_of("verify", *options)["complete"]


def test_ranks_are_a_row() -> None:
    for command in ("plan", "bound", "verify"):
        options = [command, "reduce", "--machine", "wse2", "--elements", "8"]
        assert json_of(*options, "--ranks", "9") == json_of(*options, "--shape", "9")


def test_a_parameter_alone_restricts_the_candidates() -> None:
    row = ["plan", "reduce", "--machine", "wse2", "--shape", "16", "--elements", "8"]
    assert [c["params"] for c in json_of(*row, "--param", "group=4")["candidates"]] == [{"group": "4"}]
    grid = ["plan", "reduce", "--machine", "wse2", "--shape", "4x8", "--elements", "8"]
    for candidate in json_of(*grid, "--param", "group=4")["candidates"]:
        named = {candidate["algorithm"].removeprefix("quad-"), *candidate["params"].values()}
        assert "two-phase" in named, candidate


def test_notes_of_phases_are_shown() -> None:
    options = ["plan", "reduce", *ROW, "--elements", "256", "--algorithm", "two-phase-searched"]
    note = json_of(*options)["predicted"]["phases"][0]["note"]
    assert note.startswith("groups of ")
    assert f"reduce: {note}\n" in call(*options).out


def test_sweep_by_operator() -> None:
    options = ["sweep", "allreduce", "--machine", "wse2", "--shapes", "8", "--elements", "4096", "--dtype", "i64"]
    assert "ring" in json_of(*options)["points"][0]["cycles_by_algorithm"]
    assert "ring" not in json_of(*options, "--op", "ordered")["points"][0]["cycles_by_algorithm"]


def test_large_grid_defaults_to_links_and_the_physical_bound() -> None:
    report = json_of("plan", "allreduce", "--machine", "wse2", "--shape", "16x16", "--elements", "64")
    assert report["model"] == "links"
    assert report["lower_bound"]["name"] == "physical-2d"
    assert report["ratio"] >= 1


def test_a_schedule_that_does_not_fit_is_planned_all_the_same() -> None:
    report = json_of("plan", "reduce", "--machine", "wse2", "--shape", "4", "--elements", "1000000")
    assert report["fits_sram"] is False


def test_schedule_then_verify(within: Spawn, tmp_path: Path) -> None:
    options = ["reduce", "--machine", "wse2", "--shape", "4x5", "--elements", "12"]
    written = within("schedule", *options, "-o", "a.sched", "--json").json
    assert written["file"] == "a.sched"
    assert written["nodes"] == 20
    assert written["instructions"] > 0
    assert within("schedule", *options, "-o", "a.json").code == 0
    for file in ("a.sched", "a.json"):
        proof = within("verify", file, "--json").json
        assert proof["complete"]
        assert proof["deadlock_free"]
        assert proof["repeatable"]
        assert proof["method"] == "exact"
        assert proof["diagnostics"] == []
        assert proof["scratch_bytes_max"] >= 0
    assert {path.name for path in tmp_path.iterdir()} == {"a.sched", "a.json"}


def test_verify_with_the_options_of_plan() -> None:
    options = ["allreduce", "--machine", "wse2", "--shape", "9", "--elements", "7", "--algorithm", "ring"]
    assert json_of("verify", *options)["complete"]
    assert json_of("verify", *options, "--method", "fingerprint")["method"] == "fingerprint"


def test_a_refused_schedule_is_the_answer_no(within: Spawn, tmp_path: Path) -> None:
    assert within("schedule", "reduce", *ROW[:2], "--shape", "3", "--elements", "4", "-o", "a.sched").code == 0
    text = (tmp_path / "a.sched").read_text()
    # A schedule whose head names another collective is refused by the proof.
    (tmp_path / "b.sched").write_text(text.replace("reduce", "allreduce", 1))
    ran = within("verify", "b.sched", "--json")
    assert ran.code == 1, ran
    assert ran.json["complete"] is False
    assert {"code", "rank", "instruction", "message"} <= set(ran.json["diagnostics"][0])


def test_bounds_are_listed_with_their_sources() -> None:
    bounds = json_of("bound", "reduce", *ROW, "--elements", "256")["bounds"]
    by_name = {bound["name"]: bound for bound in bounds}
    assert {"paper-1d", "tight-1d", "physical-1d"} <= set(by_name)
    assert by_name["tight-1d"]["cycles"] == pytest.approx(1162.47, abs=0.01)
    assert by_name["paper-1d"]["cycles"] <= by_name["tight-1d"]["cycles"]
    assert by_name["physical-1d"]["cycles"] == 256 + 512 + 4
    assert all(bound["reference"] and bound["assumes"] for bound in bounds)
    grid = json_of("bound", "reduce", "--machine", "wse2", "--shape", "512x512", "--elements", "2048")["bounds"]
    assert {bound["name"]: bound["cycles"] for bound in grid}["physical-2d"] == 3075


def test_sweep_points() -> None:
    arguments = ["sweep", "allreduce", "--machine", "wse2", "--elements", "1,256"]
    # By Lemma 6.1 of the paper the ring wins, but on one datapath it takes twice that time.
    for model, winners in ((["--model", "paper"], ["star", "ring"]), ([], ["star", "chain"])):
        row = json_of(*arguments, "--shapes", "4,8", "--algorithms", ",".join(FIXED_1D), *model)["points"]
        assert [point["shape"] for point in row] == [[4], [4], [8], [8]]
        assert [point["best"] for point in row] == winners * 2
        assert all(point["baseline_ratio"] >= 1 for point in row)
    options = [option for name in FIXED_2D for option in ("--algorithm", name)]
    grid = json_of(*arguments, "--shapes", "4x4..8x8", *options)["points"]
    assert [point["shape"] for point in grid] == [[4, 4], [4, 4], [8, 8], [8, 8]]


def test_sweep_writes_table_and_plot(within: Spawn, tmp_path: Path) -> None:
    arguments = ["sweep", "reduce", "--machine", "wse2", "--shapes", "4,8", "--elements", "1..16"]
    ran = within(*arguments, "-o", "s.csv", "--plot", "s.png", "--json")
    assert ran.code == 0, ran.err
    assert ran.err == ""
    lines = (tmp_path / "s.csv").read_text().splitlines()
    assert lines[0].startswith("shape,elements,best,params,cycles,seconds,baseline,")
    assert len(lines) == 1 + 2 * 5
    assert (tmp_path / "s.png").read_bytes().startswith(b"\x89PNG")


def test_machines_and_algorithms() -> None:
    presets = json_of("machines")["machines"]
    assert {"name", "kind", "summary"} <= set(presets[0])
    assert "wse2" in [preset["name"] for preset in presets]
    assert json_of("machines", "wse2")["name"] == "wse2"
    listed = json_of("algorithms")["algorithms"]
    assert {"name", "collectives", "params", "reference", "summary"} <= set(listed[0])
    names = [algorithm["name"] for algorithm in listed]
    assert names == sorted(names)
    assert {"auto-gen", "chain", "ring", "snake", "star", "tree", "two-phase", "x-y"} <= set(names)
    for algorithm in json_of("algorithms", "--collective", "reduce")["algorithms"]:
        assert "reduce" in algorithm["collectives"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["plan", "reduce", *ROW, "--elements", "256"],
        ["plan", "allreduce", "--machine", "wse2", "--shape", "8x8", "--elements", "64", "--all"],
        ["bound", "reduce", *ROW, "--elements", "256"],
        ["verify", "reduce", *ROW, "--elements", "256"],
        ["sweep", "reduce", "--machine", "wse2", "--shapes", "4,8", "--elements", "1..64"],
        [
            "sweep",
            "reduce",
            "--machine",
            "wse2",
            "--shapes",
            "4",
            "--elements",
            "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17",
        ],
        ["machines"],
        ["machines", "wse2"],
        ["algorithms"],
        ["--help"],
        ["plan", "--help"],
        [],
    ],
)
def test_text_for_people(arguments: list[str]) -> None:
    ran = call(*arguments)
    assert ran.code == 0, ran.err
    assert ran.out
    assert ran.err == ""


def test_plan_writes_report_or_schedule(within: Spawn, tmp_path: Path) -> None:
    options = ["reduce", "--machine", "wse2", "--shape", "5", "--elements", "3"]
    assert within("plan", *options, "-o", "p.json").code == 0
    assert within("plan", *options, "-o", "p.sched").code == 0
    assert within("verify", "p.sched").code == 0
    assert within("plan", *options, "--json").out == (tmp_path / "p.json").read_text()


def test_same_input_same_output(spawn: Spawn) -> None:
    arguments = ["plan", "allreduce", "--machine", "wse2", "--shape", "6x7", "--elements", "33", "--json"]
    assert spawn(*arguments).out == spawn(*arguments).out


@pytest.mark.parametrize("command", [("simulate", "--machine", "archer"), ("emit", "--format", "msccl-xml", "-o", "F")])
def test_a_refused_schedule_is_an_object(command: tuple[str, ...], tmp_path: Path) -> None:
    """With --json a negative answer has its sentence, and the faults of the schedule, on standard output too."""
    made = unisono.plan("allreduce", "archer", shape=4, elements=8, algorithm="ring").schedule.to_text()
    head, _, rest = made.rpartition("  i27 ")
    file = written(tmp_path / "lost.sched", head + rest.partition("\n")[2])
    name, *options = (str(tmp_path / "F") if word == "F" else word for word in command)
    ran = call(name, str(file), *options, "--json")
    assert ran.code == 1
    assert ran.err == f"error: {ran.json['error']}\n"
    assert ran.json["diagnostics"][0]["message"] in ran.json["error"]
    assert call(name, str(file), *options).out == ""
