"""Emission: the command, the function, and refusals."""

import json
from pathlib import Path

import pytest
import unisono as un

from .conftest import SOAK, call, json_of, refusal, text_of, written

REDUCE = ["--machine", "wse2", "--shape", "8x6", "--elements", "16"]


@pytest.mark.parametrize("collective", ["reduce", "allreduce"])
def test_csl_of_a_plan(tmp_path: Path, collective: str) -> None:
    out = tmp_path / "csl"
    report = json_of("emit", collective, *REDUCE, "--algorithm", "auto-gen", "--format", "csl", "-o", str(out))
    assert report["target"] == "csl"
    assert report["refused"] is None
    assert {Path(f).name for f in report["files"]} >= {"layout.csl", "pe_0.csl", "run.py", "commands.sh", "README.md"}
    for file in report["files"]:
        assert "not compiled with the vendor's SDK" in Path(file).read_text()


def test_csl_of_a_file(tmp_path: Path) -> None:
    plan = un.plan("reduce", "wse2", shape=16, elements=8)
    un.save(plan.schedule, tmp_path / "a.sched")
    assert "layout.csl" in text_of("emit", str(tmp_path / "a.sched"), "--format", "csl", "-o", str(tmp_path / "out"))
    assert set(un.emit(plan.schedule, "csl", tmp_path / "again")) == set(un.emit_files(plan.schedule, "csl"))


def test_what_csl_cannot_say_is_refused_with_the_reason(tmp_path: Path) -> None:
    out = tmp_path / "csl"
    ran = call("emit", "reduce", *REDUCE, "--dtype", "f64", "--format", "csl", "-o", str(out), "--json")
    assert ran.code == 1
    assert "csl cannot express this schedule" in ran.json["refused"]
    assert "no wavelet carries elements of f64" in ran.json["refused"]
    assert ran.json["files"] == []
    assert not out.exists()
    for command in ("plan", "simulate", "verify", "bound"):
        ran = call(command, "reduce", *REDUCE, "--dtype", "f64", "--for", "csl")
        assert ran.code == 1, command
        assert "no wavelet carries elements of f64" in ran.err
    with pytest.raises(un.NotExpressibleError, match="elements of f64"):
        un.plan("reduce", "wse2", shape=16, elements=8, dtype="f64", target="csl")


@pytest.mark.parametrize(("target", "longer"), [(None, True), ("csl", False)])
def test_code_with_longer_chunks_than_the_schedule_is_noted(tmp_path: Path, target: str | None, longer: bool) -> None:
    plan = un.plan("reduce", "wse2", shape=(8, 6), elements=64, algorithm="kd-tree", params={}, target=target)
    un.save(plan.schedule, tmp_path / "a.sched")
    ran = json_of("emit", str(tmp_path / "a.sched"), "--format", "csl", "-o", str(tmp_path / "out"))
    assert any("in chunks of 8 elements" in note and "'--for csl'" in note for note in ran["notes"]) == longer


@pytest.mark.parametrize("collective", ["reduce", "allreduce"])
@pytest.mark.parametrize("elements", [1, 16, 256, 4096])
def test_the_planners_choice_for_csl_is_simulated_and_emitted(tmp_path: Path, collective: str, elements: int) -> None:
    where = ["--machine", "wse2", "--shape", "16x16", "--elements", str(elements)]
    file = str(tmp_path / "p.sched")
    report = json_of("plan", collective, *where, "--for", "csl", "-o", file)
    assert report["target"] == "csl"
    first, *others = report["candidates"]
    assert first["expressible"] is True
    assert report["predicted"]["cycles"] == first["cycles"]
    assert all(c["refused"] is None for c in [first, *others] if c["expressible"] is not False)
    # The written file has the plan's time, a right result, and a project without control wavelets.
    again = un.load(file)
    run = un.simulate(again)
    assert report["predicted"]["source"] == first["source"] == "simulated"
    assert run.cycles == report["predicted"]["cycles"]
    assert all(c["cycles"] >= run.cycles for c in others if c["expressible"] is not False)
    assert run.result_correct
    for name, text in un.emit_files(again, "csl").items():
        assert isinstance(text, str)
        assert ".control" not in text, name


def test_a_plan_for_csl_has_chunks_and_marks_candidates() -> None:
    plan = un.plan("reduce", "wse2", shape=(16, 16), elements=256, algorithm="kd-tree", target="csl")
    assert plan.params["chunk"] == "8"
    assert {c["expressible"] for c in plan.candidates} == {True}
    asked = un.plan("reduce", "wse2", shape=(16, 16), elements=256, params={"chunk": "4"}, target="csl")
    assert asked.params["chunk"] == "4"
    plain = un.plan("reduce", "wse2", shape=(16, 16), elements=256)
    assert {c["expressible"] for c in plain.candidates} == {None}
    ran = text_of("plan", "reduce", "--machine", "wse2", "--shape", "16x16", "--elements", "256", "--for", "csl")
    assert "for csl" in ran
    refused = refusal("plan", "reduce", "--machine", "wse2", "--shape", "16x16", "--elements", "256", "--for", "cls")
    assert "'cls' is not a format; accepted are astra-sim, chakra, csl" in refused


@pytest.mark.parametrize(
    "form", ["openmpi-rules", "openmpi-han", "openmpi-json", "ucc", "nccl-tuner-csv", "ncclx-csv", "mpich-json"]
)
def test_a_plan_for_a_tuning_file_takes_what_the_library_names(form: str, tmp_path: Path) -> None:
    machine = "dgx-h100" if form.startswith("nccl") else "archer"
    ranks = 8 if machine == "dgx-h100" else 4
    where = ["allreduce", "--machine", machine, "--ranks", str(ranks), "--bytes", "1MiB"]
    report = json_of("plan", *where, "--for", form)
    assert report["target"] == form
    marks = [candidate["expressible"] for candidate in report["candidates"]]
    assert marks == sorted(marks, reverse=True)
    assert marks[0] is True
    for candidate in report["candidates"][:: 1 if SOAK else 3]:
        row = {"collective": "allreduce", "ranks": ranks, "first_bytes": 0, "last_bytes": None}
        row |= {"algorithm": candidate["algorithm"], "params": candidate["params"]}
        table = written(tmp_path / "table.json", json.dumps({"unisono_table": 1, "rows": [row]}))
        exported = call("export", str(table), "--format", form, "-o", str(tmp_path / "out"), "--no-check")
        # A table names equal schedules by one algorithm, but `expressible` depends on a candidate's own name.
        assert candidate["expressible"] is False or exported.code == 0
    ran = call("plan", "reduce", *REDUCE, "--for", form)
    assert ran.code == 1
    assert "is for processes that exchange messages" in ran.err


def test_emit_takes_what_the_format_can_express(tmp_path: Path) -> None:
    where = ["allgather", "--machine", "dgx-h100-x8", "--nodes", "2", "--bytes", "64KiB"]
    for form, name in (("mscclpp", "a.json"), ("msccl-xml", "a.xml")):
        assert call("emit", *where, "--format", form, "-o", str(tmp_path / name)).code == 0
        assert (tmp_path / name).is_file()


def test_scratch_memory_is_counted_for_each_gpu(tmp_path: Path) -> None:
    where = ["allgather", "--machine", "dgx-h100-x8", "--nodes", "2", "--algorithm", "ring"]
    ran = call("emit", *where, "--bytes", "64MiB", "--format", "mscclpp", "-o", str(tmp_path / "a.json"))
    assert (ran.code, ran.err) == (0, "")
    ran = call("emit", *where, "--bytes", "512MiB", "--format", "mscclpp", "-o", str(tmp_path / "b.json"))
    assert ran.code == 1
    assert "bytes of scratch memory for what arrives" in ran.err


def test_a_plan_for_csl_says_which_times_are_simulated() -> None:
    where = ("reduce", "--machine", "wse2", "--shape", "16x16", "--elements", "256")
    ran = call("plan", *where, "--for", "csl")
    assert " (simulated)" in ran.out
    assert "(model links)" not in ran.out
    rows = [line.split() for line in ran.out.splitlines() if line.endswith(" yes")]
    sources = [row[-2] for row in rows]
    assert set(sources) == {"simulated", "model"}
    assert sources == sorted(sources, reverse=True)
    # Candidates are simulated only if a format is given and there are several candidates.
    assert "(model links)" in call("plan", *where).out
    alone = un.plan("reduce", "wse2", shape=(16, 16), elements=256, algorithm="quad-chain", target="csl")
    assert alone.predicted["source"] == "terms"


@pytest.mark.parametrize(("op", "dtype"), [("sum", "i32"), ("min", "f32"), ("xor", "i32")])
def test_operators_without_a_vector_operation_are_emitted(op: str, dtype: str) -> None:
    plan = un.plan("allreduce", "wse2", shape=(8, 6), elements=20, op=op, dtype=dtype, target="csl")
    files = un.emit_files(plan.schedule, "csl")
    assert f"fn combine(a: {dtype}, b: {dtype}) {dtype}" in str(files["operator.csl"])
    assert any("@map(operator.combine, " in str(text) for name, text in files.items() if name.startswith("pe_"))
    assert f"np.{ {'sum': 'add', 'min': 'minimum', 'xor': 'bitwise_xor'}[op] }" in str(files["run.py"])


def test_every_command_that_plans_takes_the_form_of_a_format() -> None:
    where = ("reduce", "--machine", "wse2", "--shape", "16x16", "--elements", "256", "--algorithm", "kd-tree")
    plain, run = json_of("simulate", *where), json_of("simulate", *where, "--for", "csl")
    made = un.plan("reduce", "wse2", shape=(16, 16), elements=256, algorithm="kd-tree", target="csl")
    assert plain["cycles"] < run["cycles"] == un.simulate(made.schedule).cycles
    assert json_of("verify", *where, "--for", "csl")["complete"] is True
    bounds = json_of("bound", *where[:7], "--for", "csl")
    best = un.plan("reduce", "wse2", shape=(16, 16), elements=256, target="csl")
    assert bounds["planned"]["algorithm"] == best.algorithm
    assert bounds["planned"]["predicted"]["cycles"] == best.predicted["cycles"]
    assert "planned for csl: " in call("bound", *where[:7], "--for", "csl").out
    assert "planned" not in json_of("bound", *where[:7])


def test_wrong_input(tmp_path: Path) -> None:
    out = tmp_path / "out"
    refused = refusal("emit", "reduce", *REDUCE, "--format", "cls", "-o", str(out))
    assert "'cls' is not a format; accepted are astra-sim, chakra, csl, " in refused
    file = written(tmp_path / "file", "")
    assert "is a file" in refusal("emit", "reduce", *REDUCE, "--format", "csl", "-o", str(file))
    assert not out.exists()
