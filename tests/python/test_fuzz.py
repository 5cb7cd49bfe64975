"""Fuzzing: texts and arguments of all kinds give only the named exceptions and exit codes.

The readers themselves are fuzzed in Rust (``crates/fuzz``). These tests fuzz their use from Python: every command with
wild options, functions of the package with wild arguments, and the readers that are written in Python.
"""

import contextlib
import importlib
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import types
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
import unisono as un
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from unisono import _core
from unisono.base.inputs import parse_bytes
from unisono.cli import COMMANDS
from unisono.logs.benchmarks import read_log_text
from unisono.logs.findings import KINDS, findings
from unisono.logs.link_calibration import with_links
from unisono.logs.links import read_links
from unisono.logs.rows import StatedRanks
from unisono.planning import multiplying
from unisono.planning.decision_tables import read_table

from .conftest import ROOT, SOAK, Ran, call
from .posted_logs import POSTED
from .test_diagnose import REPRO
from .test_link_logs import SEEDS as LINK_LOGS


def fuzz(examples: int) -> settings:
    """Returns settings for ``examples`` draws, eight times as many in `make soak`."""
    return settings(
        max_examples=8 * examples if SOAK else examples,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )


NUMBERS = [
    "0",
    "1",
    "-1",
    "2147483648",
    "4294967295",
    "18446744073709551616",
    "1e308",
    "nan",
    "0.5",
    "",
    "é",
    "1" * 5000,
]


@st.composite
def damaged(draw: st.DrawFn, seeds: Callable[[], tuple[str, ...]]) -> str:
    """Draws a text with a few lines, words, numbers or characters changed."""
    text = draw(st.sampled_from(seeds()))
    for _ in range(draw(st.integers(1, 4))):
        parts = re.findall(r"[0-9.]+|\w+|\s+|.", text) if draw(st.booleans()) else text.splitlines(keepends=True)
        at = draw(st.integers(0, max(len(parts) - 1, 0)))
        match draw(st.sampled_from(["drop", "repeat", "swap", "replace", "number", "cut"])):
            case "drop":
                del parts[at : at + 1]
            case "repeat":
                parts[at:at] = parts[at : at + 1]
            case "swap" if parts:
                other = draw(st.integers(0, len(parts) - 1))
                parts[at], parts[other] = parts[other], parts[at]
            case "replace":
                parts[at : at + 1] = [draw(st.text(max_size=6))]
            case "number":
                found = [k for k, part in enumerate(parts) if part[:1].isdigit()] or [at]
                at = draw(st.sampled_from(found))
                parts[at : at + 1] = [draw(st.sampled_from(NUMBERS))]
            case _:
                parts = parts[:at]
        text = "".join(parts)
    return text


@cache
def schedules() -> tuple[un.Schedule, ...]:
    cases = [
        ("reduce", "5", "two-phase"),
        ("allreduce", "4", "ring"),
        ("broadcast", "3x2", "flood"),
        ("allreduce", "2x3", "chain"),
    ]
    return tuple(un.plan(c, "wse2", shape=shape, elements=6, algorithm=name).schedule for c, shape, name in cases)


@cache
def texts() -> tuple[str, ...]:
    return tuple(schedule.to_text() for schedule in schedules())


@cache
def documents() -> tuple[str, ...]:
    return tuple(schedule.to_json() for schedule in schedules())


TABLE = """{"unisono_table": 1, "rows": [
 {"collective": "allreduce", "ranks": 4, "per_node": null, "first_bytes": 0, "last_bytes": 1023, "algorithm": "ring",
  "params": {}, "class": "commutative"},
 {"collective": "allreduce", "ranks": 4, "first_bytes": 1024, "last_bytes": null, "algorithm": "recursive-doubling"},
 {"collective": "broadcast", "ranks": 8, "per_node": 2, "first_bytes": 0, "last_bytes": 9, "algorithm": "binomial",
  "params": {"segment": "1024"}}
]}"""
TASKS = """{"buffers": [{"name": "P", "shape": [64], "host_initialized": true}, {"name": "V", "shape": [64]}],
 "tasks": [{"name": "step", "range": [64], "granularity": [1], "split": "1d", "accesses": [
   {"buffer": "P", "mode": "read", "mapper": {"kind": "all"}},
   {"buffer": "V", "mode": "write", "mapper": {"kind": "one_to_one"}}]},
 {"name": "next", "range": [64], "accesses": [
   {"buffer": "V", "mode": "read", "mapper": {"kind": "neighborhood", "halo": [1]}}]}]}"""


def use(schedule: un.Schedule) -> None:
    """Proves a schedule, prints it and reads it again."""
    with contextlib.suppress(un.Error):
        schedule.verify()
    assert un.Schedule.parse(schedule.to_text()) == schedule
    assert un.Schedule.parse_json(schedule.to_json()) == schedule


@fuzz(60)
@given(damaged(texts))
def test_damaged_text(text: str) -> None:
    with contextlib.suppress(un.InputError):
        use(un.Schedule.parse(text, "fuzz.sched"))


@fuzz(60)
@given(damaged(documents))
def test_damaged_json(text: str) -> None:
    with contextlib.suppress(un.InputError):
        use(un.Schedule.parse_json(text, "fuzz.json"))


@fuzz(100)
@given(damaged(lambda: (TABLE,)))
def test_damaged_tables(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(un.Error):
        path = Path(folder) / "table.json"
        path.write_text(text, encoding="utf-8")
        rows = read_table(path)
        for target in ("openmpi-rules", "openmpi-han", "openmpi-json", "ucc", "nccl-tuner-csv", "ncclx-csv"):
            with contextlib.suppress(un.UnsupportedError):
                _core.export_table(rows, target, None)


LINKED = cache(un.machine)


@fuzz(60)
@given(damaged(lambda: LINK_LOGS))
def test_damaged_logs_of_links(text: str) -> None:
    with contextlib.suppress(un.InputError):
        log = read_links(text, "fuzz.log")
        if log is None:
            return
        for name in ("a100x4", "dgx-h100-x8", "ndv2"):
            with contextlib.suppress(un.InputError):
                made = with_links(LINKED(name), [log])[0]
                assert un.machine(made.describe()).describe() == made.describe()


@fuzz(150)
@given(damaged(lambda: (*(text for posted in POSTED for text in posted.logs.values()), REPRO)))
def test_damaged_logs_of_collectives(text: str) -> None:
    with contextlib.suppress(un.InputError):
        log = read_log_text(text, "fuzz.log", StatedRanks(4))
        for finding in findings([log, log]):
            assert finding.kind in KINDS
            assert math.isfinite(finding.lost)


@fuzz(60)
@given(damaged(lambda: (TASKS,)))
def test_damaged_programs(text: str) -> None:
    with contextlib.suppress(un.InputError):
        _core.discover(text, 4, "full")


@fuzz(80)
@given(
    st.one_of(
        st.text(max_size=60),
        st.tuples(st.sampled_from(NUMBERS), st.sampled_from(["", "kB", "x4", " GiB"])).map("".join),
    )
)
def test_any_text(text: str) -> None:
    for parse in (un.Schedule.parse, un.Schedule.parse_json):
        with contextlib.suppress(un.InputError):
            use(parse(text))
    with contextlib.suppress(un.InputError):
        un.Machine.from_toml(text, "fuzz.toml")
    for parse_size in (un.parse_shape, parse_bytes):
        with contextlib.suppress(un.InputError):
            parse_size(text)
    for ranks in (1, 24):
        with contextlib.suppress(un.InputError):
            multiplying.cost(text, ranks, 1.0, 1.0)


#: Commands that measure under MPI run as separate processes, since a process can initialize MPI only once.
MEASURES = {"bench", "calibrate", "tune"}
PROGRAM = {command.name or "": command for command in COMMANDS}
#: Valid values of the options that most commands need.
SOUND = {
    "--machine": ["archer", "wse2", "small.toml", "piuma"],
    "--elements": ["8", "100"],
    "--bytes": ["64", "1KiB"],
    "--shape": ["4", "3x2"],
    "--ranks": ["4", "7"],
    "--nodes": ["1", "4"],
    "--samples": ["3"],
    "--sizes": ["8", "0,1KiB"],
    "--format": ["chakra", "csl", "goal", "msccl-xml", "ucc", "openmpi-rules"],
    "--goal": ["g.goal"],
    "--output": ["out.x", "out.json", "out.sched", "out.plan"],
    "--plan": ["p.plan"],
}
ARGUMENTS = {
    "plan": ["allreduce", "reduce", "broadcast"],
    "schedule": ["allreduce"],
    "verify": ["a.sched", "allreduce", "r.registers"],
    "simulate": ["a.sched", "reduce"],
    "emit": ["a.sched", "allreduce"],
    "expect": ["allreduce", "scan"],
    "export": ["p.plan", "j.json"],
    "import": ["x.xml"],
    "discover": ["d.json"],
    "topology": ["small.toml", "torus2d-small"],
    "traffic": ["alltoall", "permutation", "allreduce"],
    "workload": ["w.toml"],
    "machines": ["archer", "small.toml"],
    "bound": ["reduce"],
    "sweep": ["reduce"],
    "bench": ["allreduce"],
    "tune": ["allreduce"],
    "run": ["true"],
}
WORDS = [
    *NUMBERS, "3x2", "0x0", "4,5", "1..8", "5..1", "64", "1KiB", "group=2", "=", "x", "-", "a2,a2", "all", "row",
    "allreduce", "reduce", "scan", "message", "wse2", "archer", "piuma", "small.toml", "chain", "ring", "x-y",
    "in-network",
    "f32", "i64", "sum", "xor", "ordered", "paper", "links", "exact", "packet", "flow", "endpoint", "0,0", "uniform:5",
    "/", "/dev/null", "no/such/file", "a.sched", "p.plan", "d.json", "out.png", "é\u2028", "\udc80",
]  # fmt: skip


@cache
def files() -> dict[str, str | bytes]:
    """Returns the contents of valid input files, by name."""
    schedule = un.plan("allreduce", "archer", shape=4, elements=8)
    switches = un.plan("allreduce", un.machine("piuma", nodes=1), elements=8, algorithm="in-network").schedule
    small = (ROOT / "machines" / "hx2mesh-small.toml").read_text().replace("[16, 16]", "[2, 2]")
    return {
        "a.sched": schedule.schedule.to_text(),
        "p.plan": _core.encode_plan([(schedule, 0, None, None, None)]),
        "r.registers": next(iter(un.emit_files(switches, "registers").values())),
        "x.xml": next(iter(un.emit_files(schedule.schedule, "msccl-xml").values())),
        "g.goal": (ROOT / "tests" / "goal" / "recdoub_P4_d1048576.goal").read_text(),
        "small.toml": small,
        "w.toml": (ROOT / "workloads" / "dlrm.toml").read_text(),
        "j.json": TABLE,
        "d.json": TASKS,
    }


@contextlib.contextmanager
def folder_of_inputs() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name, content in files().items():
            Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
        yield Path(folder)


@st.composite
def arguments(draw: st.DrawFn, name: str) -> list[str]:
    """Draws a command with its argument, the options that it needs, and some others, with valid and wild values."""
    command, words = PROGRAM[name], [name]
    known = ARGUMENTS.get(name, [])
    if draw(st.integers(0, 9)) < (9 if known else 1):
        fitting = draw(st.integers(0, 9)) > 0
        source = known if known and fitting else WORDS
        words.append(draw(st.sampled_from(source)))
    if name == "reproduce" and len(words) == 1:
        words.append(draw(st.sampled_from(WORDS)))  # Without a paper, the command reproduces all papers.
    options = [p for p in command.params if isinstance(p, click.Option) and "--help" not in p.opts]
    needed = [p for p in options if p.required or {"--machine", "--elements", "--sizes"} & set(p.opts)]
    chosen = [p for p in needed if draw(st.integers(0, 4))]
    chosen += draw(st.lists(st.sampled_from(options), max_size=3)) if options else []
    for option in chosen:
        spelled = max(option.opts, key=len)
        words.append(spelled)
        if not option.is_flag:
            sound = SOUND.get(spelled)
            words.append(draw(st.sampled_from(sound if sound and draw(st.integers(0, 4)) else WORDS)))
    if name == "run":
        words.insert(1, "--dry-run")
    return words


def check(given: list[str], ran: Ran) -> None:
    assert ran.code in (0, 1, 2), (given, ran)
    for word in ("Traceback", "unexpected failure", "internal fault"):
        assert word not in ran.err, (given, ran)
    if ran.code == 2:
        assert ran.out == "", (given, ran)
        errors = [line for line in ran.err.splitlines() if line.startswith("error: ")]
        assert len(errors) == 1, (given, ran)
    elif "--json" in given and ran.code == 0:
        assert isinstance(ran.json, dict), (given, ran)


#: Fewer draws for commands that take long: `doctor` starts programs.
DRAWS = {"doctor": 2}


@pytest.fixture
def small_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the command ``demo`` plan small problems, since its own take seconds and no option changes them."""
    plan, sweep = un.plan, un.sweep

    def planned(collective: str, machine: str, *, shape: int | tuple[int, int], elements: int) -> un.Plan:
        return plan(collective, machine, shape=8 if isinstance(shape, int) else (8, 8), elements=elements)

    def swept(*words: str, shapes: list[int], elements: list[int], **options: Any) -> Any:
        return sweep(*words, shapes=shapes[:2], elements=elements[:2], **options)

    demo = importlib.import_module("unisono.cli.demo")
    monkeypatch.setattr(demo, "un", types.SimpleNamespace(plan=planned, sweep=swept, save=un.save))


@pytest.mark.usefixtures("small_demo")
@pytest.mark.parametrize("name", sorted(set(PROGRAM) - MEASURES))
def test_any_arguments(name: str) -> None:
    @fuzz(DRAWS.get(name, 10))
    @given(arguments(name))
    def run(given: list[str]) -> None:
        with folder_of_inputs() as folder:
            before = {path.name for path in folder.iterdir()}
            ran = call(*given)
            check(given, ran)
            if ran.code == 2:
                assert {path.name for path in folder.iterdir()} == before, given

    run()


_IN_A_PROCESS = """
import contextlib, io, json, sys
from unisono.cli import main
for given in json.loads(sys.stdin.read()):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(given)
    print(json.dumps([given, code, out.getvalue(), err.getvalue()]), flush=True)
"""


def test_any_arguments_of_measurements() -> None:
    """With one rank nothing can be measured: each command reports this, or a wrong option."""
    drawn: list[list[str]] = []

    @fuzz(40)
    @given(st.sampled_from(sorted(MEASURES)).flatmap(arguments))
    def draw(words: list[str]) -> None:
        drawn.append([word for word in words if "\udc80" not in word])

    draw()
    with folder_of_inputs() as folder:
        command = [sys.executable, "-c", _IN_A_PROCESS]
        done = subprocess.run(
            command,
            cwd=folder,
            input=json.dumps(drawn),
            env={**os.environ},
            capture_output=True,
            text=True,
            check=False,
        )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert len(lines) == len(drawn), done.stderr[-2000:]
    for words, code, out, err in lines:
        check(words, Ran(code, out, err))


class Index:
    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value


class Fails:
    def __index__(self) -> int:
        raise RuntimeError("as asked")


@cache
def functions() -> dict[str, tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]]:
    """Returns functions by name, with valid positional and keyword arguments."""
    wafer, ranks = un.machine("wse2", shape=(3, 2)), un.machine("archer", shape=4)
    placed = un.plan("reduce", wafer, elements=4).schedule
    schedule = un.plan("allreduce", ranks, elements=4).schedule
    network = _core.Machine.from_toml(str(files()["small.toml"]), "small")
    options: dict[str, Any] = {"elements": 8, "dtype": "f32", "op": "sum", "root": 0, "algorithm": "ring", "params": {}}

    def builder(method: str) -> Callable[..., Any]:
        return lambda *a, **k: getattr(un.ScheduleBuilder(ranks=2, elements=4), method)(*a, **k)

    return {
        "machine": (un.machine, ("archer", 4), {}),
        "machine of nodes": (un.machine, ("piuma",), {"nodes": 2, "subset": [0]}),
        "plan": (un.plan, ("allreduce", ranks), options),
        "plan on a wafer": (un.plan, ("reduce", wafer), {"bytes": "1KiB", "root": (0, 0)}),
        "plan on a network": (un.plan, ("allreduce", network), {"elements": 8}),
        "expect": (un.expect, ("allreduce", ranks), {"sizes": [8, "1KiB"]}),
        "bounds": (un.bounds, ("reduce", "wse2"), {"shape": 5, "elements": 8, "root": 0}),
        "sweep": (un.sweep, ("allreduce", "wse2"), {"shapes": [4], "elements": [1, 2], "algorithms": ["chain"]}),
        "algorithms": (un.algorithms, ("reduce",), {}),
        "parse_shape": (un.parse_shape, ("4x4",), {}),
        "interpret": (schedule.interpret, ([np.zeros(4, np.float32)] * 4,), {"chunk": 1, "seed": 0}),
        "verify": (schedule.verify, ("auto",), {}),
        "predict": (placed.predict, ("paper",), {}),
        "parse": (un.Schedule.parse, ("x", "o"), {}),
        "simulate": (un.simulate, (placed,), {"queue_depth": 2, "noop_probability": 0.1, "seed": 1}),
        "simulate ranks": (un.simulate, (schedule, ranks), {"late": [0, 0, 0, 0], "noise": ("uniform", 3), "seed": 1}),
        "traffic": (un.traffic, ("alltoall", network), {"bytes": 64, "level": "flow", "seed": 1}),
        "allocate": (un.allocate, (network, [1, "2x2"]), {"fail": 1, "heuristic": "sort", "samples": 2, "seed": 1}),
        "emit_files": (un.emit_files, (schedule, "goal"), {}),
        "builder": (un.ScheduleBuilder, (2, 4, "allreduce", 0, "sum", "f32", "n"), {}),
        "input": (builder("input"), (0,), {}),
        "scratch": (builder("scratch"), (0, 3), {}),
        "stream": (builder("stream"), (0, 1, 4), {}),
        "multiplying.best": (multiplying.best, (7, 1.0, 1.0), {"kind": "any"}),
        "multiplying.cost": (multiplying.cost, ("a2", 2, 1.0, 1.0), {}),
    }


def wild() -> list[Any]:
    cycle: list[Any] = []
    cycle.append(cycle)
    return [
        None, True, False, 0, 1, -1, 2, 7, 2**31, 2**32, 2**63, 2**64, -(2**63), 10**400, -0.0, 0.5, 1e308, math.nan,
        math.inf, 1j, "", "\0", "é\ud800", "4", "0x0", "99999999999x99999999999", "archer", "reduce", "chain",
        "1" * 5000,
        b"", b"a", [], [1], [[1]], cycle, (), (1,), (0, 0), (-1,), {}, {"a": 1}, {"group": "2"}, {1: 2},
        {"x": "x" * 5000},
        set(), range(5),
        np.int64(3), np.float64("nan"), np.array([1, 2]), np.zeros((2, 2)), np.array([], dtype=object),
        np.zeros(8, np.float32)[::2], Index(3), Index(10**30), Fails(), object(), int, iter([1, 2]), "{}", "[" * 50,
    ]  # fmt: skip


@fuzz(160)
@given(st.data())
def test_any_calls(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(functions())))
    function, places, words = functions()[name]
    arguments, keywords, values = list(places), dict(words), wild()
    slots: list[int | str] = [*range(len(arguments)), *keywords]
    for slot in data.draw(st.lists(st.sampled_from(slots), min_size=1, max_size=2)):
        value = values[data.draw(st.integers(0, len(values) - 1))]
        if isinstance(slot, int):
            arguments[slot] = value
        else:
            keywords[slot] = value
    try:
        function(*arguments, **keywords)
    except un.Error as error:
        assert "internal fault" not in str(error)  # noqa: PT017
    except OSError:
        pass
    except RuntimeError as error:
        assert str(error) == "as asked"  # noqa: PT017


@pytest.mark.parametrize("size", [10**5])
def test_deep_json_is_refused(size: int) -> None:
    with pytest.raises(un.InputError):
        un.Schedule.parse_json("[" * size)
