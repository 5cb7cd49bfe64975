"""Wrong input: exit 2, one sentence with the value, empty standard output, no file written."""

import math
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import unisono as un

from .conftest import PROGRAM, Ran, Spawn, call, refusal, written

WSE = ["--machine", "wse2"]
SIZE = ["--elements", "4"]
PIUMA = ["--machine", "piuma", "--nodes", "1", *SIZE]
ON_4 = [*WSE, "--shape", "4", *SIZE]


def assert_one_sentence(ran: Ran, *words: str) -> None:
    assert ran.code == 2, ran
    assert ran.out == ""
    assert ran.err.startswith("error: ")
    assert ran.err.count("\n") == 1
    assert "Traceback" not in ran.err
    for word in words:
        assert word in ran.err, ran.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["plan", "reduce", *WSE, "--shape", "0", *SIZE], ["0"]),
        (["plan", "reduce", *WSE, "--shape", "0x4", *SIZE], ["0x4"]),
        (["plan", "reduce", *WSE, "--shape", "-3", *SIZE], ["-3"]),
        (["plan", "reduce", *WSE, "--shape", "4x4x4", *SIZE], ["4x4x4"]),
        (["plan", "reduce", *WSE, "--shape", "99999999999999999999", *SIZE], ["99999999999999999999"]),
        (["plan", "reduce", *WSE, "--shape", "two", *SIZE], ["two"]),
        (["plan", "reduce", *WSE, "--shape", "997x997", *SIZE], ["997x997", "996"]),
        (["plan", "reduce", *WSE, "--shape", "1000", *SIZE], ["1000", "996"]),
        (["plan", "reduce", *WSE, *SIZE], ["shape"]),
        (["plan", "reduce", *WSE, "--shape", "4", "--elements", "-1"], ["-1"]),
        (["plan", "reduce", *WSE, "--shape", "4", "--elements", "1.5"], ["1.5"]),
        (["plan", "reduce", *WSE, "--shape", "4", "--elements", "9" * 30], ["9" * 30]),
        (["plan", "reduce", *WSE, "--shape", "4"], ["elements", "bytes"]),
        (["plan", "reduce", *ON_4, "--bytes", "16"], ["elements", "bytes"]),
        (["plan", "reduce", *WSE, "--shape", "4", "--bytes", "-16"], ["-16"]),
        (["plan", "reduce", *WSE, "--shape", "4", "--bytes", "10"], ["10", "f32"]),
        (["plan", "reduce", *WSE, "--shape", "4", "--bytes", "4 parsecs"], ["4 parsecs", "KiB"]),
        (["plan", "reduce", *ON_4, "--dtype", "f8"], ["f8", "bf16"]),
        (["plan", "reduce", *ON_4, "--op", "mean"], ["mean", "xor"]),
        (["plan", "reduce", *ON_4, "--op", "xor"], ["xor", "f32"]),
        (["plan", "reduce", *ON_4, "--root", "4"], ["4"]),
        (["plan", "reduce", *WSE, "--shape", "4x4", *SIZE, "--root", "4,0"], ["4,0"]),
        (["plan", "reduce", *ON_4, "--root", "-1"], ["-1"]),
        (["plan", "reduce", *ON_4, "--root", "1,2,3"], ["1,2,3"]),
        (["plan", "reduce", *ON_4, "--root", "9" * 25], ["9" * 25]),
        (["plan", "frobnicate", *ON_4], ["frobnicate", "allreduce"]),
        (["plan", "reduce", *ON_4, "--algorithm", "magic"], ["magic", "'unisono algorithms' lists"]),
        (["plan", "reduce", *ON_4, "--algorithm", "ring"], ["ring"]),
        (["plan", "reduce", *ON_4, "--algorithm", "two-phase", "--param", "group=0"], ["group", "0"]),
        (["plan", "reduce", *ON_4, "--algorithm", "two-phase", "--param", "group=many"], ["group", "many"]),
        (["plan", "reduce", *ON_4, "--algorithm", "chain", "--param", "speed=9"], ["speed"]),
        (["plan", "reduce", *ON_4, "--algorithm", "chain", "--param", "speed"], ["speed", "NAME=VALUE"]),
        (["plan", "reduce", *ON_4, "--param", "speed=9"], ["speed=9"]),
        (
            ["plan", "reduce", *WSE, "--shape", "4x8", *SIZE, "--algorithm", "chain", "--param", "x=tree"],
            ["tree", "x-y"],
        ),
        (["plan", "reduce", *ON_4, "--ranks", "4"], ["--shape 4", "--ranks 4"]),
        (["plan", "reduce", *WSE, "--ranks", "0", *SIZE], ["--ranks", "0"]),
        (["plan", "reduce", *WSE, "--ranks", "-4", *SIZE], ["--ranks", "-4"]),
        (["plan", "reduce", *WSE, "--ranks", "4x4", *SIZE], ["4x4"]),
        (["verify", "reduce", *ON_4, "--ranks", "4"], ["--shape 4", "--ranks 4"]),
        (["plan", "reduce", *ON_4, "--model", "wishful"], ["wishful", "links"]),
        (["plan", "reduce", "--machine", "wse9", "--shape", "4", *SIZE], ["wse9", "did you mean wse"]),
        (["plan", "reduce", "--machine", "no/such.toml", "--shape", "4", *SIZE], ["no/such.toml"]),
        (["plan", "reduce", *ON_4, "--frob"], ["--frob"]),
        (["plan", *ON_4], ["COLLECTIVE"]),
        (["plan", "reduce", *SIZE], ["--machine"]),
        (["plan", "reduce", *ON_4, "-o", "plan.txt"], ["plan.txt", ".json"]),
        (["schedule", "reduce", *ON_4], ["--output"]),
        (["schedule", "reduce", *ON_4, "-o", "no/such/folder.sched"], ["no/such/folder.sched"]),
        (["verify", "no-such.sched"], ["no-such.sched"]),
        (["verify", "reduce", *SIZE], ["--machine"]),
        (["verify", "reduce", *ON_4, "--method", "prayer"], ["prayer", "exact"]),
        (["bound", "reduce", *WSE, "--shape", "4", "--elements", "-1"], ["-1"]),
        (["sweep", "reduce", *WSE, "--shapes", "0,4", "--elements", "1"], ["0"]),
        (["sweep", "reduce", *WSE, "--shapes", "8..4", "--elements", "1"], ["8..4"]),
        (["sweep", "reduce", *WSE, "--shapes", "4", "--elements", "1,,2"], ["''"]),
        (["sweep", "reduce", *WSE, "--shapes", "4", "--elements", "0..8"], ["0..8"]),
        (["sweep", "reduce", *WSE, "--shapes", "4", "--elements", "1", "--algorithms", "star,magic"], ["magic"]),
        (["sweep", "reduce", *WSE, "--shapes", "4", "--elements", "1", "--baseline", "magic"], ["magic"]),
        (["sweep", "reduce", *WSE, "--shapes", "4", "--elements", "1", "-o", "no/such/folder.csv"], ["no/such"]),
        (["sweep", "reduce", *WSE, "--shapes", "4", "--elements", "1", "--op", "xor"], ["xor", "f32"]),
        (["verify", "/dev/zero"], ["/dev/zero", "regular file"]),
        (["machines", "/dev/zero"], ["/dev/zero", "regular file"]),
        (["machines", "wse9"], ["wse9", "did you mean wse"]),
        (["plan", "reduce", *ON_4, "--op", "mean"], ["'mean' is not an operator"]),
        (
            ["simulate", "reduce", *WSE, "--shape", "3x3", *SIZE, "--subset", "0"],
            ["nodes and subsets are for machines"],
        ),
        (["plan", "reduce", "--machine", "dgx-h100", "--bytes", "8", "--subset", "0"], ["--ranks", "--fail N"]),
        (
            ["simulate", "reduce", *ON_4, "--queue-depth", "0"],
            ["queue depth is 0; the simulator takes a depth of 1 or more"],
        ),
        (["simulate", "reduce", *ON_4, "--late", "1,2"], ["--late is for ranks that exchange messages"]),
        (["simulate", "reduce", *PIUMA, "--calibrated"], ["--calibrated is for the PEs of a wafer"]),
        (["simulate", "reduce", "--machine", "archer", "--ranks", "1", *SIZE, "--late", "9e13"], ["0 to 8.64e13"]),
        (["simulate", "reduce", "--machine", "archer", *SIZE, "--noise", "uniform:9e13"], ["0 to below 1e13"]),
        (["sweep", "reduce", *WSE, "--shapes", "4..1000000000000", "--elements", "1"], ["each 1 to 4294967295"]),
        (["workload", "vgg16", *WSE], ["wse2 is of kind wafer; vgg16 runs on switches that reduce"]),
        (["schedule", "reduce", *ON_4, "-o", "a.plan"], ["unisono plan -o"]),
        (["bound", "reduce", *ON_4, "--model", "paper"], ["--model chooses a model for machines of ranks"]),
        (["algorithms", "--collective", "frobnicate"], ["frobnicate"]),
        (["reproduce", "newspaper"], ["newspaper", "wafer"]),
        (["conquer"], ["conquer"]),
        (["emit", "reduce", *ON_4, "--format", "csl", "-o", ""], ["-o is empty"]),
        (["machines", "."], ["'.' is a folder"]),
        (["plan", "reduce", "--machine", ".", *SIZE], ["'.' is a folder"]),
        (["expect", "reduce", *WSE, "--sizes", ""], ["'' is not a list of sizes; accepted is 8,64KiB"]),
        (["verify", "--certificate", "b.cert"], ["--machine is missing"]),
        (["workload", "dlrm", "--machine", "hx2mesh-small", "--algorithm", "ring"], ["--algorithm allreduce=ring"]),
        (["plan", "reduce", *ON_4, "--limit-memory", "0"], ["--no-limit"]),
    ],
)
def test_wrong_input(arguments: list[str], words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert_one_sentence(call(*arguments), *words)
    assert_one_sentence(call(*arguments, "--json"), *words)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "content",
    [b"", b"garbage\n", b"\xff\xfe\x00", b"{}", b"sched 999\n", b"\x00" * 100, "\u202eunisono".encode()],
)
@pytest.mark.parametrize("name", ["damaged.sched", "damaged.json"])
def test_damaged_schedule(content: bytes, name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    assert_one_sentence(call("verify", str(file)), name)
    with pytest.raises(un.InputError):
        un.load(file)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not toml at all",
        b'kind = "wafer"\n',
        b'name = "x"\nkind = "submarine"\n',
        b"\xff",
        b"[[[",
        b'name = 4\nkind = "wafer"',
    ],
)
def test_damaged_machine(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "damaged.toml"
    file.write_bytes(content)
    arguments = ["--shape", "4", "--elements", "1"]
    assert_one_sentence(call("plan", "reduce", "--machine", str(file), *arguments), "damaged.toml")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    assert_one_sentence(call("verify", str(tmp_path)), tmp_path.name)
    assert_one_sentence(call("schedule", "reduce", *ON_4, "-o", str(tmp_path)), tmp_path.name)


@pytest.mark.parametrize(
    ("words", "accepted"),
    [
        (("merge", "missing.json"), "a part of a sweep, as `unisono sweep --shard` writes it"),
        (("discover", "missing.json", "--nodes", "4"), "a program of tasks, in Python (.py) or JSON"),
        (("import", "missing.xml", "--format", "msccl-xml", "-o", "a.sched"), "a file of the format msccl-xml"),
        (("allocate", "--machine", "hx2mesh-small", "--jobs", "missing.txt"), "a list of jobs, one size a line"),
    ],
)
def test_a_missing_file_is_refused_with_its_kind(words: tuple[str, ...], accepted: str) -> None:
    ran = call(*words)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert (
        f"there is no file '{words[words.index('--jobs') + 1 if '--jobs' in words else 1]}'; accepted is {accepted}"
        in ran.err
    )


@pytest.mark.parametrize("words", [("show", "a.json"), ("verify", "a.sched"), ("simulate", "--goal", "a.goal")])
def test_a_missing_file_has_one_sentence(words: tuple[str, ...]) -> None:
    assert_one_sentence(call(*words), f"there is no file '{words[-1]}'")


@pytest.mark.parametrize("command", ["show", "view"])
@pytest.mark.parametrize("ending", ["sched", "json", "plan", "toml", "csv"])
def test_an_empty_file_is_said_to_be_empty(command: str, ending: str, tmp_path: Path) -> None:
    file = str(written(tmp_path / f"a.{ending}", ""))
    assert_one_sentence(call(command, file), f"'{file}' is empty")


@pytest.mark.parametrize("option", ["--elements", "--bytes", "--ranks", "--root"])
@pytest.mark.parametrize("number", ["\u0664", "1_0", "\uff11"])
def test_numbers_have_ascii_digits(option: str, number: str) -> None:
    given = {"--ranks": "4", "--elements": "4", option: number}
    if option == "--bytes":
        del given["--elements"]
    words = [word for pair in given.items() for word in pair]
    assert_one_sentence(call("plan", "reduce", "--machine", "archer", *words), number)


def test_noise_is_refused_in_its_own_unit() -> None:
    schedule = un.plan("reduce", "archer", shape=4, elements=4).schedule
    for noise in (("exponential", -1), ("uniform", -2), ("normal", 1, -1), ("normal", 1e14, 1)):
        with pytest.raises(un.InputError, match="accepted are nanoseconds from 0 to a day"):
            un.simulate(schedule, "archer", noise=noise)


def test_python_raises_the_named_exceptions() -> None:
    for wrong in (
        lambda: un.machine("wse9"),
        lambda: un.machine("wse2", shape=0),
        lambda: un.machine("wse2", shape=(-1, 4)),
        lambda: un.machine("wse2", shape=(2000, 2000)),
        lambda: un.plan("reduce", "wse2", shape=4, elements=-1),
        lambda: un.plan("reduce", "wse2", shape=4, elements=2**70),
        lambda: un.plan("reduce", "wse2", shape=4, elements=1, root=4),
        lambda: un.plan("reduce", "wse2", shape=4, elements=1, root=-1),
        lambda: un.plan("reduce", "wse2", shape=4, elements=1, root=2**70),
        lambda: un.plan("reduce", "wse2", shape=4),
        lambda: un.plan("reduce", "wse2", shape=4, elements=1, bytes=4),
        lambda: un.plan("frobnicate", "wse2", shape=4, elements=1),
        lambda: un.sweep("reduce", "wse2", shapes=[], elements=[1]),
        lambda: un.parse_shape(""),
    ):
        with pytest.raises(un.InputError):
            wrong()
    with pytest.raises(un.UnsupportedError):
        un.plan("reduce", "wse2", shape=4, elements=4, algorithm="ring")
    assert issubclass(un.InputError, un.Error)


@pytest.mark.parametrize(
    "wrong", [None, 4.0, 4.5, "4", b"4", True, np.float64(4), np.bool_(True), [4], (1, 2, 3), 2**70, -1]
)
def test_python_numbers_are_whole(wrong: Any) -> None:
    calls: list[Callable[[], object]] = [
        lambda: un.plan("reduce", "wse2", shape=4, elements=wrong),
        lambda: un.bounds("reduce", "wse2", shape=4, elements=wrong),
        lambda: un.plan("reduce", "wse2", shape=4, elements=1, root=wrong),
        lambda: un.sweep("reduce", "wse2", shapes=[4], elements=[wrong]),
        lambda: un.sweep("reduce", "wse2", shapes=[(4, wrong)], elements=[1]),
        lambda: un.machine("wse2", shape=(wrong, 3)),
        lambda: un.ScheduleBuilder(ranks=2, elements=wrong),
        lambda: un.ScheduleBuilder(ranks=2, elements=1).input(wrong),
    ]
    if wrong != "4":
        calls.append(lambda: un.plan("reduce", "wse2", shape=4, bytes=wrong))
    if wrong is not None and not isinstance(wrong, str | list):
        calls.append(lambda: un.machine("wse2", shape=wrong))
    for attempt in calls:
        with pytest.raises(un.InputError):
            attempt()


def test_python_lists_of_a_sweep_are_lists() -> None:
    for wrong in (4, "44", None):
        with pytest.raises(un.InputError):
            un.sweep("reduce", "wse2", shapes=wrong, elements=[1])  # type: ignore[arg-type]
        with pytest.raises(un.InputError):
            un.sweep("reduce", "wse2", shapes=[4], elements=wrong)  # type: ignore[arg-type]


def test_a_file_is_read_up_to_a_limit(tmp_path: Path) -> None:
    file = tmp_path / "huge.sched"
    with file.open("wb") as sparse:
        sparse.truncate(2**32 + 1)
    assert_one_sentence(call("verify", str(file)), "huge.sched", str(2**32))
    with pytest.raises(un.InputError):
        un.load(file)


@pytest.mark.parametrize(
    "span",
    [
        slice(0, 9),
        slice(9, 9),
        slice(10, None),
        slice(-9, 4),
        slice(4, -9),
        slice(3, 1),
        slice(0, 2**100),
        slice(-(2**200), None),
        slice(0.0, 1.0),
        slice(True, 4),
        slice("0", None),
        slice(0, 8, 2),
        slice(None, None, -1),
        3,
        None,
    ],
)
def test_a_span_stays_in_its_buffer(span: Any) -> None:
    buffer = un.ScheduleBuilder(2, 8).input(0)
    with pytest.raises(un.InputError):
        buffer[span]


def test_a_builder_refuses_what_would_not_be_built() -> None:
    b, other = un.ScheduleBuilder(3, 8), un.ScheduleBuilder(3, 8)
    stream, foreign = b.stream(0, 1), other.stream(0, 1)
    calls: list[Callable[[], object]] = [
        lambda: b.combine(0, [b.input(0)], [foreign]),
        lambda: b.combine(0, [other.input(0)], [stream]),
        lambda: b.combine(0, [other.input(0)[0:4]], [stream]),
        lambda: b.combine(0, [b.input(0)], [stream], length=0),
        lambda: b.combine(0, [b.input(0)], [stream], lane=-1),
        lambda: b.combine(0, [b.input(0)], [stream], after=[-1]),
        lambda: b.stream(0, [1, 1]),
        lambda: b.stream(0, [1, 2, 1]),
        lambda: b.stream(0, []),
        lambda: b.stream(0, True),
        lambda: b.stream(0, "1"),  # type: ignore[arg-type]
    ]
    for attempt in calls:
        with pytest.raises(un.InputError):
            attempt()


def test_a_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = written(tmp_path / "a.sched", "before")

    def full(descriptor: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    ran = call("schedule", "reduce", *ON_4, "-o", str(target))
    assert ran.code == 1
    assert ran.err == f"error: '{target}': No space left on device\n"
    assert target.read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["a.sched"]


def test_interrupted_while_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(source: str, target: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    ran = call("schedule", "reduce", *ON_4, "-o", str(tmp_path / "a.sched"))
    assert ran.code == 130
    assert ran.err == "error: interrupted\n"
    assert list(tmp_path.iterdir()) == []


def test_a_closed_pipe_is_quiet() -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([PROGRAM, "algorithms"], stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert done.stderr == b""
    # The exit code that shells give to a program killed by SIGPIPE.
    assert done.returncode == 128 + signal.SIGPIPE


@pytest.mark.parametrize(
    ("redirected", "code", "printed"),
    [
        (f"{PROGRAM} plan allreduce --machine archer 2>/dev/full", 2, ""),
        (f"{PROGRAM} plan allreduce --machine archer 2>&-", 2, ""),
        (f"{PROGRAM} --version >&-", 0, ""),
        (f"{PROGRAM} --version >/dev/full", 1, "error: No space left on device\n"),
        (f"{PROGRAM} schedule reduce --machine archer --ranks 2 --elements 4 -o a.sched >&- 2>&-", 0, ""),
    ],
)
def test_streams_that_take_nothing(redirected: str, code: int, printed: str, tmp_path: Path) -> None:
    done = subprocess.run(["bash", "-c", redirected], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (code, printed)
    # A written file must not get the descriptor of a closed standard stream.
    assert [un.load(path).ranks for path in tmp_path.iterdir()] == [2] * ("a.sched" in redirected)


def test_output_can_be_a_pipe_or_device(spawn: Spawn) -> None:
    ran = spawn("schedule", "reduce", *ON_4, "-o", "/dev/stdout")
    assert ran.code == 0
    assert "wrote /dev/stdout" in ran.out
    assert Path("/dev/stdout").exists()


def test_no_progress_bar_in_a_pipe(spawn: Spawn) -> None:
    ran = spawn("sweep", "reduce", *WSE, "--shapes", "4", "--elements", "1", "--json")
    assert ran.err == ""


#: The module without types, for wrong arguments.
ANY: Any = un


@pytest.mark.parametrize(
    ("attempt", "words"),
    [
        (lambda: ANY.plan("reduce", "wse2", shape=4, elements=4, params=5), ("params is 5", "a dictionary")),
        (lambda: ANY.plan("reduce", "wse2", shape=4, elements=4, algorithm=5), ("algorithm is 5", "text")),
        (lambda: ANY.plan("reduce", "wse2", shape=4, elements=4, op="\ud800"), ("operator is '\\ud800'", "text")),
        (lambda: ANY.plan("reduce", "wse2", shape=4, elements=4, model=math.nan), ("model is nan", "text")),
        (lambda: ANY.algorithms(5), ("collective is 5", "text")),
        (lambda: ANY.ScheduleBuilder(2, 4, name="\ud800"), ("'\\ud800' is not text",)),
        (lambda: ANY.ScheduleBuilder(2, 4).phase(5), ("name is 5", "text")),
        (lambda: ANY.Schedule.parse(5, "x"), ("text is 5", "text")),
        (lambda: ANY.save_plans([(5, 0, 8)], "/dev/null"), ("served by 5", "a schedule")),
        (lambda: ANY.save_plans([(("allreduce", 4), -1, 8)], "/dev/null"), ("the first size of a row is -1", "0 to")),
        (lambda: ANY.save_plans([(("allreduce", 4), 0, 2**70)], "/dev/null"), (str(2**70), "0 to")),
        (lambda: ANY.save_plans([(("allreduce", math.nan), 0, 8)], "/dev/null"), ("ranks of a row is nan", "whole")),
        (lambda: ANY.save_plans([((5, 4), 0, 8)], "/dev/null"), ("the collective of a row is 5", "text")),
    ],
)
def test_values_of_a_wrong_type_are_named(attempt: Callable[[], object], words: tuple[str, ...]) -> None:
    with pytest.raises(un.InputError) as raised:
        attempt()
    message = str(raised.value)
    assert all(word in message for word in words), message
    assert "\n" not in message
    assert len(message) < 300
    message.encode()


def test_wrong_keywords_are_as_everywhere_in_python() -> None:
    with pytest.raises(TypeError, match="frobnicate"):
        ANY.algorithms(frobnicate=1)
    with pytest.raises(TypeError, match="positional"):
        ANY.algorithms("reduce", "allreduce")


def test_a_folder_in_place_of_a_file_is_refused_with_a_file_in_it(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    assert refusal("verify", str(tmp_path)).endswith("name a file in it\n")
    un.save(un.plan("reduce", "wse2", shape=4, elements=4).schedule, tmp_path / "b.sched")
    assert str(tmp_path / "b.sched") in refusal("verify", str(tmp_path))
