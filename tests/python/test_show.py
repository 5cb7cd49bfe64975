"""`unisono show` prints every file that the product writes, and refuses all others in one sentence."""

import json
from pathlib import Path

import pytest
import unisono as un
from hypothesis import given
from hypothesis import strategies as st
from unisono.base.file_types import FORMS, REPORTED
from unisono.base.json_streams import members
from unisono.planning.contents import contents

from .conftest import ROOT, call, json_of, refusal, text_of, written


def test_headings_break_between_words_only(tmp_path: Path) -> None:
    path = tmp_path / "t.plan"
    chain = un.plan("broadcast", "archer", shape=4, elements=16, algorithm="pipelined-chain", params={"segment": "512"})
    long = un.plan("allreduce", "archer", shape=4, elements=16, algorithm="recursive-multiplying")
    un.save_plans([(chain, 0, None), (long, 0, 2**40)], path)
    heading = call("show", str(path)).out.split("───")[0]
    assert {"collective", "operators", "repeatable", "algorithm", "expression"} <= set(heading.split())


def test_a_plan_file_is_proved(tmp_path: Path) -> None:
    path = tmp_path / "t.plan"
    four = un.plan("allreduce", "archer", shape=4, elements=16)
    un.save_plans([(four, 0, 4095), (("allreduce", 4), 4096, None)], path)
    ran = text_of("verify", str(path))
    assert ran.startswith(f"proved: 1 schedule in 2 rows of {path}: complete, deadlock-free, race-free\n")
    found = json_of("verify", str(path))
    assert (found["holds"], found["reason"]) == (True, None)
    assert [row["repeatable"] for row in found["rows"]] == [four.schedule.verify().repeatable, None]
    assert "a .plan is proved as it is stored" in call("verify", str(path), "--method", "exact").err
    raw = path.read_bytes()
    path.write_bytes(raw[:-3])
    assert str(path) in refusal("verify", str(path))


#: Formats of rules that can express a plan of recursive doubling.
LIBRARIES = ("openmpi-rules", "openmpi-han", "openmpi-json", "mpich-json", "ucc")


OF_GPUS = ("nccl-tuner-csv", "ncclx-csv")
#: The names of the tasks of a program, and the mode of each one's access.
TASKS = (("add", "reduce"), ("look", "read"))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Writes a file of every form, and returns the paths by name."""
    folder = tmp_path_factory.mktemp("files")
    among = ["allreduce", "--machine", "archer", "--ranks", "4", "--bytes", "64"]
    boxes = ["allgather", "--machine", "dgx-a100", "--bytes", "1KiB"]
    for command in (
        ["plan", *among, "-o", "a.plan"],
        ["schedule", *among, "-o", "a.sched"],
        ["schedule", *among, "-o", "schedule.json"],
        ["plan", *boxes, "-o", "report.json", "--certificate", "bound.cert"],
        ["plan", "allgather", "--machine", "fattree-small", "--bytes", "64", "--certificate", "large-bound.cert"],
        ["verify", "a.sched", "--certificate", "schedule.cert"],
        ["simulate", "a.sched", "--trace", "trace.json"],
        ["sweep", "allreduce", "--machine", "archer", "--shapes", "4,8", "--elements", "1,2", "-o", "sweep.csv"],
        [
            "sweep",
            "allreduce",
            "--machine",
            "archer",
            "--shapes",
            "4",
            "--elements",
            "1",
            "--shard",
            "1/1",
            "-o",
            "part.json",
        ],
        ["expect", *among[:-2], "--sizes", "8,64", "-o", "expectation.json"],
        ["emit", *boxes, "--algorithm", "ring", "--format", "mscclpp", "-o", "gpus.json"],
        ["emit", *boxes, "--algorithm", "ring", "--format", "msccl-xml", "-o", "gpus.xml"],
        ["emit", "a.sched", "--format", "goal", "-o", "a.goal"],
        ["emit", "a.sched", "--format", "chakra", "-o", "traces"],
        ["schedule", "allreduce", "--machine", "piuma", "--nodes", "2", "--bytes", "64", "-o", "switches.sched"],
        ["emit", "switches.sched", "--format", "registers", "-o", "switches.registers"],
        ["plan", *among, "--algorithm", "recursive-doubling", "-o", "b.plan"],
        *(["export", "b.plan", "--format", name, "--no-check", "-o", f"rules.{name}"] for name in LIBRARIES),
    ):
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            ran = call(*command)
            assert ran.code == 0, ran.err
    row = {"collective": "allreduce", "ranks": 8, "first_bytes": 0, "last_bytes": None, "algorithm": "ring"}
    (folder / "table.json").write_text(json.dumps({"unisono_table": 1, "rows": [row]}))
    for name in OF_GPUS:
        ran = call(
            "export", str(folder / "table.json"), "--format", name, "--no-check", "-o", str(folder / f"rules.{name}")
        )
        assert ran.code == 0, ran.err
    slow = ["--simulate", "--slow", "0-8=0.2"]
    log = folder / "log.csv"
    log.write_text("op,gpus,bytes,time_us\nallreduce,4,64,20\nallreduce,4,1024,500\nallreduce,4,65536,40\n")
    access = {"buffer": "P", "mode": "read_write", "mapper": {"kind": "all"}}
    buffers: list[dict[str, object]] = [{"name": "P", "shape": 8, "host_initialized": True}]
    # The tasks begin after the bytes by which forms are recognised.
    buffers += [{"name": f"unused {number}", "shape": 8} for number in range(200)]
    tasks = [{"name": name, "range": [8], "accesses": [{**access, "mode": mode}]} for name, mode in TASKS]
    (folder / "tasks.json").write_text(json.dumps({"buffers": buffers, "tasks": tasks}))
    for name, command in (
        ("discovered.json", ["discover", str(folder / "tasks.json"), "--nodes", "2", "--machine", "archer", "--json"]),
        ("probe.json", ["probe", "--machine", "dgx-h100", *slow, "--json"]),
        ("diagnosis.json", ["diagnose", str(log), "--json"]),
    ):
        (folder / name).write_text(call(*command).out)
    log.unlink()
    (folder / "machine.toml").write_text((ROOT / "machines" / "dgx-a100.toml").read_text())
    (folder / "workload.toml").write_text((ROOT / "workloads" / "gpt-3.toml").read_text())
    return {path.name: path for path in folder.iterdir()}


FORM_OF = {
    "a.plan": "plan for MPI programs", "a.sched": "schedule", "schedule.json": "schedule", "report.json": "report",
    "bound.cert": "certificate of a bound", "large-bound.cert": "certificate of a bound",
    "schedule.cert": "certificate of a schedule", "trace.json": "trace", "sweep.csv": "sweep",
    "gpus.json": "plan for GPUs", "gpus.xml": "schedule", "a.goal": "program", "traces": "program",
    "switches.sched": "schedule", "switches.registers": "schedule", "machine.toml": "machine",
    "tasks.json": "program", "discovered.json": "report", "table.json": "decision table",
    "workload.toml": "program", "part.json": "part of a sweep", "probe.json": "probe",
    "diagnosis.json": "diagnosis", "expectation.json": "expectation", "b.plan": "plan for MPI programs",
    **{f"rules.{name}": "rules for a library" for name in (*LIBRARIES, *OF_GPUS)},
}  # fmt: skip


def test_every_form_has_a_file(files: dict[str, Path]) -> None:
    assert set(FORM_OF) == set(files)
    assert set(FORM_OF.values()) == {name for name, _ in FORMS}


#: Commands that read files, with the forms that they accept.
READERS: list[tuple[list[str], set[str]]] = [
    (["simulate", "FILE"], {"schedule", "plan for GPUs"}),
    (["verify", "FILE", "--method", "exact"], {"schedule", "plan for GPUs"}),
    (["plan", "barrier", "--machine", "FILE"], {"machine"}),
    (["verify", "--certificate", "FILE", "--machine", "dgx-a100"], {"certificate of a bound"}),
    (["import", "FILE", "--format", "mscclpp", "-o", "read.sched"], {"plan for GPUs"}),
    (["import", "FILE", "--format", "msccl-xml", "-o", "read.sched"], {"schedule"}),
    (["workload", "FILE", "--machine", "dgx-a100"], set()),
]


@pytest.mark.parametrize(("words", "wanted"), READERS)
def test_a_reader_names_the_form_of_another_file(words: list[str], wanted: set[str], files: dict[str, Path]) -> None:
    for name, form in FORM_OF.items():
        if form not in {*wanted, "program", "plan for MPI programs"}:
            refused = refusal(*(str(files[name]) if word == "FILE" else word for word in words))
            assert f"'{files[name]}' is" in refused
            assert f"{form}, and no " in refused, refused
            assert "'unisono show' prints this file" in refused


@pytest.mark.parametrize("name", FORM_OF)
def test_every_file_is_shown(name: str, files: dict[str, Path]) -> None:
    found = json_of("show", str(files[name]))
    assert found["form"] == FORM_OF[name]
    assert found["file"] == str(files[name])
    text = text_of("show", str(files[name]))
    assert text.startswith(f"{files[name]}: {FORM_OF[name]}\n")
    assert len(text.splitlines()) > 3
    assert call("show", str(files[name]), "--all").code == 0


def test_facts_are_those_of_the_file(files: dict[str, Path]) -> None:
    schedule = un.load(files["a.sched"])
    shown = json_of("show", str(files["a.sched"]))
    assert (shown["instructions"], shown["ranks"], shown["machine"]) == (schedule.instructions, 4, "archer")
    assert contents(files["a.sched"], lines=None).text == schedule.to_text()
    (row,) = json_of("show", str(files["a.plan"]))["rows"]
    assert row["collective"] == "allreduce"
    assert row["first_bytes"] == row["last_bytes"] == 64
    gpus = json_of("show", str(files["gpus.json"]))
    assert gpus["proved"]
    assert [gpu["gpu"] for gpu in gpus["rows"]] == list(range(8))
    assert json_of("show", str(files["sweep.csv"]))["points"] == 4
    program = json_of("show", str(files["tasks.json"]))
    assert [(row["task"], row["accesses"]) for row in program["rows"]] == [(n, f"{mode} P all") for n, mode in TASKS]
    (row,) = json_of("show", str(files["discovered.json"]))["rows"]
    assert (row["after_task"], row["before_task"], row["collective"]) == ("add", "look", "allreduce")
    trace = json_of("show", str(files["trace.json"]))
    assert trace["seconds"] == pytest.approx(trace["microseconds"] * 1e-6)


@pytest.mark.parametrize("name", [*LIBRARIES, *OF_GPUS])
def test_rules_name_their_format(name: str, files: dict[str, Path]) -> None:
    assert json_of("show", str(files[f"rules.{name}"]))["format"] == name


#: A command for each report in JSON; `bench`, which needs MPI, is in `tests/mpi/test_flow.py`.
REPORTS = (
    "bound allreduce --machine archer --ranks 4 --bytes 64",
    "compare cosmoflow --machines hx2mesh-small",
    "plan allreduce --machine archer --ranks 4 --bytes 64",
    "simulate SCHED",
    "sweep allreduce --machine archer --shapes 3,4 --elements 1,2",
    "traffic permutation --machine dgx-h100 --bytes 1KiB",
    "traffic permutation --machine dgx-h100 --bytes 1KiB,4KiB",
    "verify PLAN",
    "verify SCHED",
    "workload cosmoflow --machine hx2mesh-small",
)
#: Commands whose JSON has a file in :data:`FORM_OF`.
OTHERS = ("diagnose", "discover", "expect", "probe")


@pytest.mark.parametrize("command", REPORTS)
def test_reports_in_json_are_shown(command: str, tmp_path: Path, files: dict[str, Path]) -> None:
    ran = call(*command.replace("SCHED", str(files["a.sched"])).replace("PLAN", str(files["a.plan"])).split(), "--json")
    found = json_of("show", str(written(tmp_path / "report.json", ran.out)))
    assert found["form"] == "report"
    rows = found.pop("rows")
    kept = {key: value for key, value in ran.json.items() if not isinstance(value, list)}
    assert found.items() <= {**kept, "file": found["file"], "form": "report"}.items()
    points = ran.json.get("points", [])
    assert len(rows) == len(points or rows)
    # Each value of a report is a fact, or a column if the points differ in it.
    assert {key for key in kept if key not in found} <= {key for point in points for key in point}
    assert all(point[key] == found[key] for point in points for key in point if key in found)


def test_every_reported_command_is_tested_and_named() -> None:
    assert {command.split()[0] for command in REPORTS} | {"bench", *OTHERS} == set(REPORTED)
    section = (ROOT / "docs" / "commands.md").read_text().split("## `unisono show`")[1].split("\n## ")[0]
    assert all(f"`{command}`" in section for command in REPORTED)


def test_other_objects_are_described(tmp_path: Path) -> None:
    refused = refusal("show", str(written(tmp_path / "x.json", '{"a": 1, "b": [2], "c": 3, "d": 4, "e": 5}')))
    assert "x.json' is an object of JSON with 5 keys ('a', 'b', 'c', 'd', ...); accepted are" in refused
    assert refused.strip().endswith(f"{', '.join(REPORTED)} with --json")
    assert "begins with '[1, 2]'" in refusal("show", str(written(tmp_path / "x.json", "[1, 2]")))


def test_other_files_are_refused(tmp_path: Path, files: dict[str, Path]) -> None:
    other = written(tmp_path / "notes.md", "# Notes\n")
    for name, reason in (("/dev/null", "not a regular file"), (str(other), "of no form"), ("nope", "there is no file")):
        ran = call("show", name)
        assert (ran.code, ran.err.count("\n")) == (2, 1)
        assert reason in ran.err
    other = tmp_path / "other.json"
    for text in ('{"traceEvents": 3}', '{"traceEvents": [1]}',
                 '{"collective": 1, "machine": 2, "algorithm": 3, "candidates": [4]}',
                 '{"format": 1, "prices": 2, "places": 3}', '{"version": 1, "phases": 2, "nodes": 3}'):  # fmt: skip
        other.write_text(text)
        ran = call("show", str(other))
        assert (ran.code, ran.err.count("\n")) == (2, 1), text
    # Rows of a table may have different columns.
    other.write_text('{"collective": 1, "machine": 2, "algorithm": 3, "candidates": [{"a": 1}, {"b": 2}]}')
    assert json_of("show", str(other))["rows"] == [{"a": 1, "b": None}, {"a": None, "b": 2}]
    assert call("show", str(other)).code == 0
    cut = tmp_path / "cut.plan"
    cut.write_bytes(files["a.plan"].read_bytes()[:-3])
    assert call("show", str(cut)).code == 2


def test_rows_of_a_plan_name_the_library_and_whole_algorithms(tmp_path: Path) -> None:
    ring = un.plan("allreduce", "archer", shape=4, elements=8, algorithm="recursive-doubling")
    table = tmp_path / "t.plan"
    un.save_plans([(("allreduce", 4), 0, 64, 4), (ring, 65, None, 4)], table)
    text = call("show", str(table)).out
    library, planned = (line for line in text.splitlines() if line.startswith("allreduce"))
    assert "the library" in library
    assert "recursive-doubling" in planned
    refused = refusal("simulate", str(table))
    assert "is a plan for MPI programs" in refused
    assert "'unisono show' prints it" in refused


def test_a_plan_serves_all_sizes_from_one_on(tmp_path: Path) -> None:
    table = str(tmp_path / "t.plan")
    for serve in ("1GiB-", "1GiB-any"):
        sized = ["--machine", "archer", "--ranks", "4", "--bytes", "1GiB", "-o", table, "--serve", serve]
        assert call("plan", "allreduce", *sized).code == 0
        (row,) = un.load_plans(table)
        assert (row["first_bytes"], row["last_bytes"]) == (2**30, None)


@given(at=st.integers(0, 10**6), byte=st.integers(0, 255), name=st.sampled_from(sorted(set(FORM_OF) - {"traces"})))
def test_damaged_files_are_shown_or_refused_in_one_sentence(
    files: dict[str, Path], tmp_path_factory: pytest.TempPathFactory, at: int, byte: int, name: str
) -> None:
    raw = bytearray(files[name].read_bytes())
    raw[at % len(raw)] = byte
    damaged = tmp_path_factory.mktemp("damaged") / name
    damaged.write_bytes(raw)
    ran = call("show", str(damaged))
    assert ran.code in (0, 2), ran.err
    assert ran.code == 0 or ran.err.count("\n") == 1
    assert "unexpected failure" not in ran.err


def test_cells_break_between_words_only(tmp_path: Path) -> None:
    path = tmp_path / "t.plan"
    params = {"broadcast": "pipelined-chain", "reduce": "binomial", "segment": "65536"}
    long = un.plan("allreduce", "archer", shape=16, bytes="1MiB", algorithm="reduce-broadcast", params=params)
    un.save_plans([(long, 0, 2**50, 16)], path)
    shown = set(call("show", str(path)).out.split())
    assert {"commutative", "allreduce", "reduce-broadcast", "broadcast=pipelined-chain", "segment=65536"} <= shown


def test_a_trace_is_read_an_event_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    event = {"name": "send", "ph": "X", "pid": 1, "tid": 2, "ts": 3.5, "dur": 1.25, "args": {"text": '}],"\\ü'}}
    head = '{"displayTimeUnit": "ns", "otherData": {"machine": "m", "seconds": 12}, "traceEvents": ['
    path = tmp_path / "long.json"
    path.write_text(head + ",\n".join([json.dumps({**event, "ts": at}) for at in range(7, 1007)]) + "]}\n")
    whole = json_of("show", str(path))
    assert (whole["events"], whole["begins_microseconds"], whole["microseconds"]) == (1000, 7, 1007.25)
    assert (whole["machine"], whole["seconds"]) == ("m", 12)
    assert whole["rows"] == [{"event": "send", "count": 1000}]
    # Files are read in pieces, which may end within a number or an escape sequence.
    for piece in (1, 2, 3, 7, 64):
        monkeypatch.setattr("unisono.base.json_streams._PIECE", piece)
        assert json_of("show", str(path)) == whole
    monkeypatch.setattr("unisono.base.files.MOST_DESCRIPTION_BYTES", 1000)
    assert json_of("show", str(path)) == whole


@pytest.mark.parametrize(
    "text",
    [
        '{"traceEvents": [{}',
        '{"traceEvents": [{}]',
        '{"traceEvents": [{} {}]}',
        '{"traceEvents": []} 3',
        '{"traceEvents": [1,]}',
    ],
)
def test_a_cut_trace_is_refused(tmp_path: Path, text: str) -> None:
    path = written(tmp_path / "cut.json", text)
    refused = refusal("show", str(path))
    assert "cut.json' is not JSON: " in refused or "damaged" in refused


def test_damage_is_named_by_its_place_in_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unisono.base.json_streams._PIECE", 64)
    file = tmp_path / "trace.json"
    events = [json.dumps({"ph": "X", "name": "a", "ts": at, "dur": 1}) for at in range(100)]
    events[90] = '{"ph" "X"}'
    file.write_text('{"traceEvents": [\n' + ",\n".join(events) + "\n]}\n")
    with pytest.raises(un.InputError, match=r"line 92 column 7: Expecting ':' delimiter"):
        list(members(file, "traceEvents"))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1" + 400 * "0"])
def test_times_that_are_no_numbers_are_refused(tmp_path: Path, number: str) -> None:
    file = tmp_path / "trace.json"
    file.write_text('{"traceEvents": [{"ph": "X", "name": "a", "ts": ' + number + ', "dur": 1}]}')
    assert "trace.json" in refusal("show", str(file))


def test_long_names_do_not_widen_all_rows(tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    names = ["n" * 50_000, *map(str, range(200))]
    file.write_text(json.dumps({"traceEvents": [{"ph": "X", "name": n, "ts": 0, "dur": 1} for n in names]}))
    assert len(text_of("show", str(file), "--all")) < 1 << 19


def test_a_damaged_certificate_is_refused(tmp_path: Path) -> None:
    plan = un.plan("allgather", "torus2d-small", shape=(2, 2), bytes=64)
    path = tmp_path / "a"
    text = plan.schedule.certificate(plan.schedule.verify())
    lines = text.split("\n")
    damaged = [text[:cut] for cut in range(len("unisono-certificate"), len(text) - 1, 7)]
    damaged += ["\n".join([*lines[:at], *lines[at + 1 :]]) for at in (0, 1, 2, 3, 4, 5, len(lines) - 2)]
    damaged += ["unisono-certificate 9" + text[len(lines[0]) :]]
    stated = json.loads(plan.certificate())
    for key, value in stated.items():
        others = [-1, "x", None, [], {}, [-1], ["x"]] + [5] * (key != "seconds")
        damaged += [json.dumps(stated | {key: other}) for other in others if type(other) is not type(value)]
        if key != "format":
            damaged.append(json.dumps({name: of for name, of in stated.items() if name != key}))
    assert call("show", str(written(path, text))).code == call("show", str(written(path, json.dumps(stated)))).code == 0
    for one in damaged:
        assert str(path) in refusal("show", str(written(path, one))), one
