"""Each option and key has an effect, or a sentence reports that it has none."""

import itertools
import json
import os
import random
import re
import sys
from pathlib import Path

import click
import pytest
import unisono as un
from unisono import _core
from unisono.base import switches
from unisono.base.facts import has_root, reduces
from unisono.cli import NAMES, OUTPUTS, command
from unisono.mpi import launchers

from .conftest import ROOT, Ran, Spawn, call, json_of, refusal

#: Unknown names that tests use.
MISSPELLED = {"UNISONO_PALN", "UNISONO_A", "UNISONO_B"}
UNKNOWN = "nothing reads UNISONO_PALN (the nearest name is UNISONO_PLAN)"

ON_4 = ("--machine", "archer", "--ranks", "4")


def test_options_that_a_collective_has_no_use_for_are_noted() -> None:
    for kind, (name, has) in itertools.product(un.collectives(), (("--root", has_root), ("--op", reduces))):
        size = () if kind == "barrier" else ("--elements", "16")
        for value, said in (
            ({"--root": "1", "--op": "max"}[name], kind == "barrier" or not has(kind)),
            ({"--root": "0", "--op": "sum"}[name], False),
        ):
            ran = call("bound", kind, *ON_4, *size, name, value)
            assert ran.code == 0
            assert (f"{name} is not used" in ran.err) is said, (kind, name, value, ran.err)
    for command_line in (["plan"], ["bound"], ["simulate"], ["verify"], ["sweep"]):
        length = ["--elements", "1000"] if command_line != ["simulate"] else ["--bytes", "4KiB"]
        ran = call(*command_line, "barrier", *ON_4, *length, "--dtype", "f64")
        assert ran.err.splitlines() == [
            f"note: a collective of kind barrier has no data; {name} is not used" for name in (length[0], "--dtype")
        ]


def test_an_option_with_one_value_that_is_given_twice_is_noted() -> None:
    ran = call("plan", "allreduce", *ON_4, "--elements", "4", "--ranks", "8")
    assert ran.err == "note: --ranks is given 2 times; the last one counts\n"
    assert "on 8 ranks" in ran.out
    for flags in (("--json", "--json"), ("--param", "ways=1", "--param", "ways=1")):
        assert call("plan", "allreduce", *ON_4, "--elements", "4", *flags).err == ""
    for words in (("plan", "allreduce"), ("sweep", "allreduce"), ("traffic", "allreduce", "--bytes", "4")):
        ran = call(*words, *ON_4[:2], "--elements", "4", "--param", "ways=1", "--param", "ways=2")
        assert ran.code == 2
    assert "--param ways is given as 1 and as 2; give one value" in call(
        "plan", "allreduce", *ON_4, "--elements", "4", "--param", "ways=1", "--param", "ways=2"
    ).err  # fmt: skip
    assert all(command(name).params for name in NAMES)


def test_two_options_do_not_write_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    small = ("plan", "allreduce", "--machine", "dgx-a100", "--elements", "16")
    for words in (
        (*small, "--certificate", "a.png", "--plot", "./a.png"),
        (*small, "--for", "nccl", "-o", "a.png", "--plot", "a.png"),
        ("simulate", "allreduce", *ON_4, "--elements", "4", "--trace", "a.png", "--timeline", "a.png"),
        ("sweep", "allreduce", *ON_4, "--elements", "4", "-o", "a.png", "--plot", "a.png"),
    ):
        assert "both write" in refusal(*words)
    sweep = ("sweep", "allreduce", "--machine", "archer", "--ranks", "2,4", "--elements", "4")
    assert [call(*sweep, "--shard", f"{part}/2", "-o", f"{part}.part").code for part in (1, 2)] == [0, 0]
    Path("m.toml").write_text(un.preset_toml("archer"))
    un.save(un.plan("allreduce", "archer", shape=4, elements=4).schedule, "a.json")
    un.save_plans([(un.plan("allreduce", "archer", shape=4, elements=4), 0, None)], "a.plan")
    Path("link.png").symlink_to("m.toml")
    replacing_each = [
        (name, of.opts[0], "link.png", *([other.opts[0]] if isinstance(other, click.Option) else []), "m.toml")
        for name in NAMES
        for of in command(name).params
        for other in command(name).params
        if of.name in OUTPUTS and other.name not in OUTPUTS and not getattr(other, "is_flag", False)
    ]
    assert len(replacing_each) > 200
    for replacing in (
        ("merge", "1.part", "2.part", "-o", "2.part"),
        ("compare", "gpt-3", "--machines", "archer,m.toml", "--plot", "m.toml"),
        ("sweep", "allreduce", "--machine", "m.toml", "--ranks", "4", "--elements", "4", "-o", "m.toml"),
        ("emit", "a.json", "--format", "mscclpp", "-o", "a.json"),
        ("export", "a.plan", "--format", "openmpi", "-o", "a.plan"),
        *replacing_each,
    ):
        before = {path: path.read_bytes() for path in Path().iterdir()}
        assert "would replace the file that is read" in refusal(*replacing)
        assert {path: path.read_bytes() for path in Path().iterdir()} == before


def test_options_beside_a_mode_that_has_no_use_for_them_are_refused() -> None:
    for name in ("--ranks", "--per-node", "--sizes", "--candidates", "--rounds", "--for", "--library"):
        assert f"{name} is for ranks that are measured" in call("tune", "--from", "no/folder", name, "2").err
    assert "-o is where figures go" in call("reproduce", "wafer", "--quick", "-o", "figures").err.replace(
        "--output", "-o"
    )
    for flag in (
        ["--report", "stderr"],
        ["--check"],
        ["--safe-ops"],
        ["--nonblocking"],
        ["--unlike-bits"],
        ["--anywhere"],
    ):
        # `--report` alone is accepted without a plan: the report then has the library's calls.
        for before in (["--off"], []) if len(flag) == 1 else (["--off"],):
            ran = call("run", "-n", "2", *before, *flag, "--dry-run", "--", "true")
            assert (ran.code, f"{flag[0]} is for calls that a plan serves" in ran.err) == (2, True)
    for flag in (["--rounds", "20"], ["--levels"]):
        ran = call("calibrate", "--from", "no.log", "-o", "m.toml", *flag)
        assert (ran.code, f"{flag[0]} is for ranks that are measured" in ran.err) == (2, True)


def test_a_plan_that_serves_no_call_of_all_ranks_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "t.plan")
    un.save_plans([(un.plan("allreduce", "archer", shape=3, elements=8), 0, None)], path)
    words = ("--plan", path, "--dry-run", "--", "true")
    for ranks, noted in (("3", False), ("2", True), ("4", True)):
        ran = call("run", "-n", ranks, *words)
        assert (ran.code, f"has no rows for {ranks} ranks" in ran.err, "note" in ran.err) == (0, noted, noted)
    assert "serves nothing: --off leaves" in call("run", "-n", "3", "--off", *words).err
    monkeypatch.setenv("UNISONO_OFF", "1")
    assert "serves nothing: UNISONO_OFF leaves" in call("run", "-n", "3", *words).err


def test_all_variables_of_the_sources_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    found = set()
    for path in (path for top in ("crates", "python", "tests", "tools") for path in (ROOT / top).rglob("*")):
        if path.suffix in (".rs", ".py", ".c"):
            found |= set(re.findall(r"\bUNISONO_[A-Z_]*[A-Z]\b", path.read_text(errors="replace")))
    names = found - MISSPELLED
    assert names > set(launchers.SETTINGS)
    for name in names:
        monkeypatch.setenv(name, os.environ.get(name, ""))
    assert _core.unknown_variables() is None
    monkeypatch.setenv("UNISONO_PALN", "t.plan")
    assert _core.unknown_variables() == (UNKNOWN, "_UNISONO_REPORTED")


def test_an_unknown_variable_is_reported_once(spawn: Spawn, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = spawn("machines", "--json")
    assert expected.err == ""
    monkeypatch.setenv("UNISONO_PALN", "t.plan")
    assert spawn("machines", "--json") == Ran(0, expected.out, f"unisono: {UNKNOWN}\n")
    # Started programs and further ranks do not repeat the warning.
    again = spawn(
        "run",
        "-n",
        "1",
        "--launcher",
        str(ROOT / ".venv" / "bin" / "mpiexec"),
        "--",
        sys.executable,
        "-m",
        "unisono",
        "--version",
    )
    # Open MPI's launcher may print null characters between the lines of its ranks.
    assert (again.code, again.err.replace("\0", "")) == (0, f"unisono: {UNKNOWN}\n")
    monkeypatch.setenv("PMI_RANK", "1")
    assert spawn("machines", "--json") == expected


def test_a_spelling_of_a_format_changes_nothing(tmp_path: Path) -> None:
    for name in ("mscclpp", "MSCCLPP"):
        words = ("emit", "allreduce", "--machine", "dgx-a100", "--bytes", "1KiB", "--algorithm", "ring", "--in-place")
        assert call(*words, "--format", name, "-o", str(tmp_path / f"{name}.json")).code == 0


def test_switches_of_the_environment_mean_the_same(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("UNISONO_POINT_TO_POINT", "UNISONO_CHECK_READS", "UNISONO_ANYWHERE", "UNISONO_PROGRESS"):
        for value, on in (("1", True), ("on", True), ("True", True), ("0", False), ("off", False), ("", False)):
            monkeypatch.setenv(name, value)
            assert switches.is_on(name) is on
        assert capsys.readouterr().err == ""
        monkeypatch.setenv(name, "maybe")
        assert switches.is_on(name)
        assert switches.is_on(name)
        assert capsys.readouterr().err.count(f"{name} is") == 1


def test_lists_of_a_fixed_length_are_not_cut() -> None:
    wafer, switched = un.machine("wse2").describe(), un.machine("piuma").describe()
    mesh = un.machine("hx2mesh-small").describe()
    draw = random.Random(5)
    for machine, path in (
        (wafer, ("shape",)),
        (wafer, ("max_shape",)),
        (switched, ("mesh",)),
        (mesh, ("topology", "board")),
    ):
        for length in (0, 1, 3, draw.randint(4, 9)):
            values = [draw.choice((2, 4)) for _ in range(length)]
            changed = json.loads(json.dumps(machine))
            (changed["topology"] if path[0] == "topology" else changed)[path[-1]] = values
            with pytest.raises(un.InputError, match=f"{length}|{path[-1]}"):
                un.machine(changed)


def test_a_part_of_a_machine_is_described() -> None:
    for name, shape in (("wse2", "4x5"), ("archer", "6"), ("dgx-a100", "4"), ("piuma", "16")):
        assert json_of("machines", name, "--shape", shape)["shape"] == list(un.parse_shape(shape))


#: Files of rules by format, without the comments that `unisono export` writes.
RULES = {
    "nccl-tuner-csv": "# site rules\nallreduce,0,65536,tree,ll,2,1,8\nallreduce,65537,4294967295,ring,simple,8,1,8\n",
    "ncclx-csv": "allreduce,[0,4096),tree,ll,4,*,8\n",
    "openmpi-rules": "# by hand\n1 # collectives\n2 # allreduce\n1\n64\n2\n0 3 0 0\n4096 4 0 65536\n",
    "openmpi-han": "# by hand\n1\n2\n1\n2\n1\n1 2\n0 han\n65536 tuned\n",
    "openmpi-json": '{"module": "tuned", "rule_file_version": 3, "collectives": {}}',
    "ucc": "UCC_TL_UCP_TUNE=allreduce:0-4096:host:[4]:@knomial\n",
}


def test_rules_are_known_by_their_contents(tmp_path: Path) -> None:
    for form, text in RULES.items():
        (tmp_path / "site.conf").write_text(text)
        found = json_of("show", str(tmp_path / "site.conf"))
        assert (found["form"], found["format"]) == ("rules for a library", form)
    long = "1\n2\n1\n64\n9999\n" + "".join(f"{size} 3 0 0\n" for size in range(9999))
    (tmp_path / "site.conf").write_text(long)
    assert json_of("show", str(tmp_path / "site.conf"))["format"] == "openmpi-rules"
    # Lists of cables also consist of numbers, but are no rules.
    for text in ("0 1\n1 2\n2 0\n", "1 2 3\n", "", "0\n", RULES["openmpi-rules"] + "7\n"):
        (tmp_path / "site.conf").write_text(text)
        assert call("show", str(tmp_path / "site.conf")).code == 2


def test_groups_beside_traces_have_any_name(tmp_path: Path) -> None:
    trace = {"Id": 0, "Name": "c", "NodeType": 7, "comm_type": 0, "comm_size": 1048576, "pg_name": "A"}
    seconds = []
    for name in ("groups", "zz", "mid"):
        folder = tmp_path / name
        folder.mkdir()
        for rank in range(4):
            (folder / f"mix.{rank}.json").write_text(json.dumps({"workload_graph": [trace]}))
        (folder / f"{name}.json").write_text('{"A": [0, 1, 2, 3]}')
        seconds.append(json_of("workload", "--from", str(folder), "--machine", "dgx-a100")["seconds"])
    assert len(set(seconds)) == 1


def test_a_plan_for_gpus_with_sums_in_switches_runs_on_a_network(tmp_path: Path) -> None:
    plan = un.plan("allreduce", "dgx-h100", bytes="64KiB", algorithm="in-network", target="mscclpp")
    un.emit(plan.schedule, "mscclpp", tmp_path / "a.json")
    file = un.load(tmp_path / "a.json")
    assert file.nodes == 9
    assert un.simulate(file, "dgx-h100").seconds == pytest.approx(un.simulate(plan.schedule).seconds, rel=0.2)
    words = ("simulate", str(tmp_path / "a.json"), "--machine")
    assert json_of(*words, "dgx-h100")["seconds"] == un.simulate(file, "dgx-h100").seconds
    ran = call(*words, "dgx-a100")
    assert (ran.code, "the others being switches that reduce; dgx-a100, of kind network, has none" in ran.err) == (
        2,
        True,
    )
    ran = call(*words, "dgx-h100-x8", "--nodes", "2", "--shape", "16")
    assert ran.code == 2


def test_changes_of_the_machine_keep_what_was_asked(tmp_path: Path) -> None:
    group = (
        "HloModule m, num_partitions=16\n\nENTRY %e (x: f32[65536]) -> f32[65536] {\n  %x = f32[65536] parameter(0)\n"
    )
    group += "  ROOT %r = f32[65536] all-reduce(%x), replica_groups={}, to_apply=%s\n}\n"
    (tmp_path / "m.hlo").write_text(
        "HloModule m, num_partitions=16\n\n%s (a: f32[], b: f32[]) -> f32[] {\n  %a = f32[] parameter(0)\n"
        "  %b = f32[] parameter(1)\n  ROOT %c = f32[] add(%a, %b)\n}\n\n" + group.split("\n\n", 1)[1]
    )
    words = ("workload", "--from", str(tmp_path / "m.hlo"), "--nodes", "2")
    changed = json_of(*words, "--machine", "dgx-h100", "--what-if", "machine=dgx-a100")["what_if"][0]
    assert changed["seconds"] == json_of(*words, "--machine", "dgx-a100")["seconds"]


def test_rates_that_change_nothing_are_refused() -> None:
    rates = ("--tflops", "5", "--memory-gb-per-second", "5")
    for words in (
        ("workload", "--from", "gpt-3", "--machine", "hx2mesh-small"),
        ("compare", "gpt-3", "--machines", "hx2mesh-small"),
    ):
        assert "tflops changes nothing" in refusal(*words, *rates)


def test_arguments_of_python_without_effect_are_refused() -> None:
    graph = un.read_workload("gpt-3")
    switched = un.plan("allreduce", "piuma", shape=8, elements=16).schedule
    for fails, what in (
        (lambda: un.step(graph, "hx2mesh-small", ranks=4), "ranks"),
        (lambda: un.step(graph, "hx2mesh-small", strict=True), "strict"),
        (lambda: un.plan("allreduce", "archer", shape=4, elements=4, library="libmpi.so"), "library"),
        (lambda: un.plan("allreduce", "archer", shape=4, elements=4, target="mpich"), "library="),
        (lambda: un.simulate(switched, trace_pes=[0]), "trace_pes"),
    ):
        with pytest.raises(un.InputError, match=what):
            fails()


def test_failures_are_noted_with_every_time() -> None:
    where = ("--machine", "dgx-a100", "--fail", "3")
    notes = [
        json_of("plan", "allreduce", *where, "--elements", "16")["notes"],
        json_of("bound", "allreduce", *where, "--elements", "16")["notes"],
        json_of("sweep", "allreduce", *where, "--ranks", "4", "--elements", "16")["notes"],
        json_of("simulate", "allreduce", *where, "--elements", "16")["notes"],
        json_of("traffic", "alltoall", *where, "--bytes", "64")["notes"],
    ]
    assert all(any(note.startswith("failed in every plane: 3;") for note in some) for some in notes)
