"""Reading and writing of files: accepted kinds of files, and the properties of replaced files."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import unisono as un
from unisono.base import files, messages

from .conftest import PROGRAM, ROOT, Spawn, call, network_text, written
from .test_bad_input import ON_4, assert_one_sentence

GRAPH = network_text(
    'name = "graph"\naccelerators = 3\n', "ring", gbps=100, ns=(1, 1, 1), packet_bytes=64, buffer_bytes=1024
)
CABLES = "0 1\n1 2\n2 0\n"
SAVED = un.plan("reduce", "wse2", shape=4, elements=4).schedule


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_an_empty_name_is_refused() -> None:
    for words in (["simulate", "--goal", ""], ["verify", ""], ["show", ""]):
        ran = call(*words)
        assert ran.code == 2
        assert "''" in ran.err or "empty" in ran.err, words


@pytest.mark.parametrize("ending", [".sched", ".json", ".registers", ".toml", ".py", ".plan", ".goal", ".xml"])
def test_a_pipe_is_refused_and_not_waited_for(ending: str, tmp_path: Path) -> None:
    pipe = tmp_path / f"pipe{ending}"
    os.mkfifo(pipe)
    name = str(pipe)
    commands = {
        ".registers": [["verify", name], ["simulate", name]],
        ".toml": [
            ["machines", name],
            ["topology", name],
            ["workload", name, "--machine", "hx2mesh-small"],
            ["traffic", "alltoall", "--machine", name, "--bytes", "8"],
        ],
        ".json": [["verify", name], ["discover", name, "--nodes", "2"], ["export", name, "-o", "x", "--format", "ucc"]],
        ".py": [["discover", name, "--nodes", "2"]],
        ".plan": [["run", "-n", "2", "--plan", name, "--dry-run", "--", "true"]],
        ".goal": [["simulate", "--goal", name]],
        ".xml": [["import", name, "--format", "msccl-xml", "-o", str(tmp_path / "x.sched")]],
    }.get(ending, [["verify", name]])
    for command in commands:
        assert_one_sentence(call(*command), pipe.name)


def test_no_file_of_a_caller_is_a_device(tmp_path: Path) -> None:
    calls: list[Any] = [
        lambda path: un.load(path),
        lambda path: un.load_plans(path),
        lambda path: un.machine(path),
        lambda path: un.discover(str(path), 2),
        lambda path: un.import_schedule(path, "msccl-xml"),
        lambda path: un.allocate("hx2mesh-small", path),
    ]
    # Functions that also accept a folder.
    of_folders: list[Any] = [
        lambda path: un.simulate_goal(path),
        lambda path: un.simulate_goal(path, machine="hx2mesh-small"),
    ]
    for call_with in [*calls, *of_folders]:
        with pytest.raises(un.InputError, match="not a regular file"):
            call_with(Path("/dev/zero"))
    for call_with in calls:
        with pytest.raises(un.InputError, match="not a regular file"):
            call_with(tmp_path)
    for call_with in of_folders:
        with pytest.raises(un.InputError, match="has no files"):
            call_with(tmp_path)


def test_a_file_that_is_too_long_is_not_read(tmp_path: Path) -> None:
    machine = tmp_path / "huge.toml"
    with machine.open("wb") as sparse:
        sparse.truncate(files.MOST_DESCRIPTION_BYTES + 1)
    assert_one_sentence(call("machines", str(machine)), "huge.toml", str(files.MOST_DESCRIPTION_BYTES))


def test_cables_lie_beside_their_machine(tmp_path: Path) -> None:
    folder = tmp_path / "machines"
    (folder / "cables").mkdir(parents=True)
    (folder / "cables" / "ring.txt").write_text(CABLES)
    (folder / "a.toml").write_text(GRAPH + 'file = "cables/ring.txt"\n')
    assert un.machine(folder / "a.toml").shape == (3,)
    outside = written(tmp_path / "secret.txt", "the secret\n")
    (folder / "link.txt").symlink_to(outside)
    (folder / "here.txt").symlink_to(folder / "cables" / "ring.txt")
    os.mkfifo(folder / "pipe.txt")
    for named in ("../secret.txt", str(outside), "link.txt", "cables/../../secret.txt", "no.txt", "pipe.txt", "cables"):
        (folder / "a.toml").write_text(GRAPH + f'file = "{named}"\n')
        ran = call("topology", str(folder / "a.toml"))
        assert_one_sentence(ran, Path(named).name)
        assert "the secret" not in ran.err
    (folder / "a.toml").write_text(GRAPH + 'file = "here.txt"\n')
    assert un.machine(folder / "a.toml").shape == (3,)


def test_a_byte_order_mark_changes_nothing(tmp_path: Path) -> None:
    """Spreadsheets and editors begin a text with a byte order mark, which no reader takes for contents."""
    row = {"collective": "allreduce", "ranks": 4, "first_bytes": 0, "last_bytes": None, "algorithm": "ring"}
    made = {
        "a.toml": GRAPH + 'file = "ring.txt"\n',
        "ring.txt": CABLES,
        "table.json": json.dumps({"unisono_table": 1, "rows": [row]}),
        "times.csv": "op,gpus,bytes,time_us\nallreduce,4,8,8.0\nallreduce,4,1048576,80.0\n",
        "times.goal": "num_ranks 2\nrank 0 {\nl1: send 8b to 1\n}\nrank 1 {\nl1: recv 8b from 0\n}\n",
    }
    for source in ("programs/transformer.hlo", "programs/nbody.json", "programs/ddp/step.0.json", "logs/openmpi.csv"):
        made[Path(source).name] = (ROOT / "examples" / source).read_text()
    plan = un.plan("allgather", "torus2d-small", shape=(2, 2), bytes=64)
    made |= {"a.sched": plan.schedule.to_text(), "b.json": plan.schedule.to_json(), "bound.json": plan.certificate()}
    made |= {"a.cert": plan.schedule.certificate(plan.schedule.verify())}
    for name, text in made.items():
        (tmp_path / name).write_text(text)
    files_of = {name: str(tmp_path / name) for name in made}
    calls = [
        ("topology", files_of["a.toml"], "--json"),
        ("export", files_of["table.json"], "--format", "ucc", "-o", str(tmp_path / "ucc.conf")),
        ("show", files_of["table.json"], "--json"),
        ("show", files_of["transformer.hlo"], "--json"),
        ("show", files_of["nbody.json"], "--json"),
        ("show", files_of["step.0.json"], "--json"),
        ("show", files_of["times.goal"], "--json"),
        ("diagnose", files_of["times.csv"], "--json"),
        ("diagnose", files_of["openmpi.csv"], "--json"),
        *(("verify", files_of[name], "--method", "exact", "--json") for name in ("a.sched", "b.json")),
        ("verify", files_of["a.sched"], "--check", files_of["a.cert"]),
        ("verify", "--certificate", files_of["bound.json"], "--machine", "torus2d-small", "--json"),
        *(("show", files_of[name]) for name in ("a.sched", "b.json", "a.cert", "bound.json")),
    ]
    before = [call(*words) for words in calls]
    for words, ran in zip(calls, before, strict=True):
        assert (ran.code in (0, 1), ran.out != "", ran.err) == (True, True, ""), (words, ran)
    for name, text in made.items():
        (tmp_path / name).write_bytes(files.BYTE_ORDER_MARK + text.encode())
    for words, ran in zip(calls, before, strict=True):
        assert call(*words) == ran, words


def test_lines_of_a_cable_file_are_not_shown_whole(tmp_path: Path) -> None:
    (tmp_path / "cables.txt").write_text("root:x:0:0:" + "password" * 8 + "\n")
    (tmp_path / "a.toml").write_text(GRAPH + 'file = "cables.txt"\n')
    ran = call("topology", str(tmp_path / "a.toml"))
    assert_one_sentence(ran, "line 1")
    assert "password" * 5 not in ran.err


def test_a_replaced_file_keeps_its_permissions(tmp_path: Path) -> None:
    target = tmp_path / "a.sched"
    before = os.umask(0o022)
    try:
        un.save(SAVED, target)
        assert mode(target) == 0o644
        for kept in (0o600, 0o640, 0o755):
            target.chmod(kept)
            un.save(SAVED, target)
            assert mode(target) == kept
    finally:
        os.umask(before)
    assert [path.name for path in tmp_path.iterdir()] == ["a.sched"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only the administrator gives files away")
def test_a_replaced_file_keeps_its_owner(tmp_path: Path) -> None:
    target = tmp_path / "a.sched"
    target.touch(mode=0o600)
    os.chown(target, 4321, 4322)
    un.save(SAVED, target)
    found = target.stat()
    assert (found.st_uid, found.st_gid, mode(target)) == (4321, 4322, 0o600)


def test_a_file_of_another_owner_is_refused_where_that_cannot_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = written(tmp_path / "a.sched", "before")
    if os.geteuid() != 0:
        pytest.skip("only the administrator gives files away")
    os.chown(target, 4321, 4322)

    def refused(descriptor: int, owner: int, group: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "fchown", refused)
    with pytest.raises(un.InputError, match="another user"):
        un.save(SAVED, target)
    assert target.read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["a.sched"]


def test_a_link_stays_one(tmp_path: Path) -> None:
    real, link, dangling = tmp_path / "real.sched", tmp_path / "link.sched", tmp_path / "new.sched"
    un.save(SAVED, real)
    real.chmod(0o600)
    link.symlink_to(real.name)
    dangling.symlink_to("made.sched")
    un.save(SAVED, link)
    un.save(SAVED, dangling)
    assert link.is_symlink()
    assert dangling.is_symlink()
    assert mode(real) == 0o600
    assert un.load(tmp_path / "made.sched").to_text() == SAVED.to_text()
    (tmp_path / "loop.sched").symlink_to("loop.sched")
    with pytest.raises((OSError, un.InputError), match=r"loop\.sched"):
        un.load(tmp_path / "loop.sched")


def test_a_long_name_can_be_written(tmp_path: Path) -> None:
    target = tmp_path / ("n" * 249 + ".sched")
    un.save(SAVED, target)
    assert un.load(target).nodes == 4


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_an_error_of_the_system_names_the_file() -> None:
    ran = call("schedule", "reduce", *ON_4, "-o", "/dev/full")
    assert (ran.code, ran.err) == (1, "error: '/dev/full': No space left on device\n")


def test_standard_output_in_a_file_is_written_in_order(tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    with out.open("wb") as sink:
        sink.write(b"before\n")
        sink.flush()
        subprocess.run([PROGRAM, "schedule", "reduce", *ON_4, "-o", "/dev/stdout"], stdout=sink, check=True)
    text = out.read_text()
    assert text.startswith("before\nunisono-schedule ")
    assert "\nwrote /dev/stdout" in text
    assert not out.is_symlink()


def test_names_that_are_not_unicode_work(tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/\xffschedule\xe9.sched"
    un.save(SAVED, os.fsdecode(name))
    assert un.load(os.fsdecode(name)).nodes == 4
    done = subprocess.run([os.fsencode(PROGRAM), b"verify", name], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    un.save_plans([(un.plan("allreduce", "archer", shape=2, elements=2), 0, None)], os.fsdecode(name + b".plan"))
    assert len(un.load_plans(os.fsdecode(name + b".plan"))) == 1
    (Path(os.fsdecode(name + b".toml"))).write_text(un.machine("archer").to_toml())
    for arguments in ([b"machines", name + b".toml"], [b"plan", b"reduce", b"--machine", name + b".toml", b"--json"]):
        full = [*arguments, b"--ranks", b"2", b"--elements", b"4"] if arguments[0] == b"plan" else arguments
        done = subprocess.run([os.fsencode(PROGRAM), *full], capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
    (Path(os.fsdecode(name))).write_bytes(b"damaged")
    done = subprocess.run([os.fsencode(PROGRAM), b"verify", name], capture_output=True, check=False)
    assert done.returncode == 2
    assert rb"\xffschedule\xe9.sched" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        [b"workload", b"\xff", b"--machine", b"hx2mesh-small"],
        [b"machines", b"\xff\xfe"],
        [b"plan", b"\xff", b"--machine", b"wse2", b"--shape", b"4", b"--elements", b"1"],
        [b"plan", b"reduce", b"--machine", b"wse2", b"--shape", b"\xff", b"--elements", b"1"],
        [b"plan", b"reduce", b"--machine", b"wse2", b"--shape", b"4", b"--elements", b"1", b"--op", b"\xff"],
        [b"simulate", b"--goal", b"\xff"],
        [b"\xff"],
    ],
)
def test_arguments_that_are_not_unicode_are_refused(arguments: list[bytes]) -> None:
    ran = call(*map(os.fsdecode, arguments))
    assert_one_sentence(ran)
    assert "unexpected" not in ran.err
    ran.err.encode()


@pytest.mark.parametrize(
    "content", ["[" * 3000, "a=" + "[" * 3000, "[" + "a." * 3000 + "a]", '{"a":' * 5000], ids=range(4)
)
def test_deep_files_are_refused(content: str, tmp_path: Path) -> None:
    machine, data = tmp_path / "deep.toml", tmp_path / "deep.json"
    machine.write_text(f'name="x"\n{content}')
    data.write_text(content)
    for command in (
        ["machines", str(machine)],
        ["topology", str(machine)],
        ["workload", str(machine), "--machine", "hx2mesh-small"],
        ["verify", str(data)],
        ["discover", str(data), "--nodes", "2"],
        ["export", str(data), "--format", "ucc", "-o", str(tmp_path / "x")],
    ):
        ran = call(*command)
        assert_one_sentence(ran, *([] if command[0] == "discover" else ["deep"]))
        assert "unexpected" not in ran.err


def test_programs_with_a_cycle_are_refused() -> None:
    program: dict[str, Any] = {"buffers": [], "tasks": []}
    program["buffers"].append(program)
    with pytest.raises(un.InputError):
        un.discover(program, 2)
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    with pytest.raises(un.InputError):
        un.discover({"buffers": nested, "tasks": []}, 2)


def test_simulate_takes_the_name_of_a_machine() -> None:
    assert un.simulate(SAVED, "wse2").cycles == un.simulate(SAVED).cycles
    assert un.measure(SAVED, "wse2").result_correct
    for wrong in ("reduce", None, 7, un.machine("wse2")):
        with pytest.raises(un.InputError):
            un.simulate(wrong)  # type: ignore[arg-type]
        with pytest.raises(un.InputError):
            un.measure(wrong)  # type: ignore[arg-type]
        with pytest.raises(un.InputError):
            un.save(wrong, "/dev/null")  # type: ignore[arg-type]
    for machine in (7, 1.5, b"x\xff", ["wse2"]):
        with pytest.raises(un.InputError):
            un.simulate(SAVED, machine)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong",
    ["\ud800", "a\0b", "x" * 100_000, 10**5000, [[1]], b"\xff", object()],
    ids=lambda value: type(value).__name__,
)
def test_names_and_values_that_are_none(wrong: Any) -> None:
    planned = un.plan("allreduce", "archer", shape=2, elements=2)
    calls: list[Any] = [
        lambda: un.machine(wrong),
        lambda: un.machine(wrong, 4),
        lambda: un.plan(wrong, "wse2", shape=4, elements=1),
        lambda: un.plan("reduce", wrong, shape=4, elements=1),
        lambda: un.plan("reduce", "wse2", shape=4, elements=wrong),
        lambda: un.plan("reduce", "wse2", shape=4, bytes=wrong),
        lambda: un.plan("reduce", "wse2", shape=4, elements=1, dtype=wrong),
        lambda: un.bounds(wrong, "wse2", shape=4, elements=1),
        lambda: un.sweep(wrong, "wse2", shapes=[4], elements=[1]),
        lambda: un.sweep("reduce", "wse2", shapes=[4], elements=[1], algorithms=wrong),
        lambda: un.workload("resnet-152", "hx2mesh-small", level=wrong),
        lambda: un.traffic(wrong, "hx2mesh-small", bytes=8),
        lambda: un.traffic("alltoall", "hx2mesh-small", bytes=8, level=wrong),
        lambda: un.allocate("hx2mesh-small", [1], heuristic=wrong),
        lambda: un.simulate(planned.schedule, late=wrong),
        lambda: un.simulate(planned.schedule, noise=wrong),
        lambda: un.simulate(SAVED, noop_probability=wrong),
        lambda: un.simulate(SAVED, seed=wrong),
        lambda: un.save_plans(wrong, "/dev/null"),
        lambda: un.save_plans([wrong], "/dev/null"),
    ]
    for attempt in calls:
        with pytest.raises(un.InputError) as raised:
            attempt()
        if isinstance(wrong, str) and len(wrong) > 1000 and _short_in_python(str(raised.value)):
            continue
        str(raised.value).encode()


def _short_in_python(message: str) -> bool:
    """Returns whether a message is short. Messages in which Python shortens long values are short."""
    return len(message) < 2000


@pytest.mark.parametrize(
    "arguments",
    [
        ["plan", "x" * 9000, "--machine", "wse2", "--shape", "4", "--elements", "1"],
        ["plan", "reduce", "--machine", "y z" * 3000, "--shape", "4", "--elements", "1"],
        ["sweep", "reduce", "--machine", "wse2", "--shapes", "4", "--elements", "1" * 5000],
        ["plan", "reduce", "--machine", "wse2", "--shape", "4", "--elements", "1", "--op", "a b " * 2000],
        ["verify", "n" * 5000],
        ["plan", "reduce", "--machine", "\x1b[31mred\u202e\x9b", "--shape", "4", "--elements", "1"],
    ],
    ids=range(6),
)
def test_messages_are_short_and_printable(arguments: list[str]) -> None:
    ran = call(*arguments)
    assert_one_sentence(ran)
    assert len(ran.err) < messages.MOST_MESSAGE + 100
    assert ran.err[:-1].isprintable()


def test_values_in_messages_are_short() -> None:
    class Wrong:
        def __repr__(self) -> str:
            raise RuntimeError("boom")

    for value in ("x" * 10_000, list(range(10_000)), {"a": "b" * 10_000}, 10**10_000, Wrong(), "\x1b[0m\u202e\udcff"):
        text = messages.shown(value)
        assert len(text) < 200
        assert text.isprintable()


def test_output_survives_any_encoding(tmp_path: Path) -> None:
    name = written(tmp_path / "ü\u202e.toml", un.machine("archer").to_toml())
    for arguments in (["machines", str(name)], ["plan", "reduce", "--machine", "ü", "--ranks", "2", "--elements", "4"]):
        done = subprocess.run(
            [sys.executable, "-m", "unisono", *arguments],
            env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
            capture_output=True,
            check=False,
        )
        assert done.returncode in (0, 2)
        assert b"Traceback" not in done.stderr
        assert b"unexpected" not in done.stderr


def test_microseconds_without_their_letter() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "unisono", "plan", "reduce", "--machine", "archer", "--ranks", "2", "--elements", "4"],
        env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
        capture_output=True,
        check=True,
    )
    assert b" us " in done.stdout
    assert b"\\x" not in done.stdout


def test_output_to_a_pipe_is_refused_and_not_waited_for(spawn: Spawn, tmp_path: Path) -> None:
    """Opening a pipe would wait for its reader, after all work is done."""
    pipe = tmp_path / "pipe.sched"
    os.mkfifo(pipe)
    assert_one_sentence(spawn("schedule", "reduce", *ON_4, "-o", str(pipe)), "pipe.sched", "not a regular file")
    with pytest.raises(un.InputError, match="not a regular file"):
        un.save(SAVED, pipe)
    # A shell's own pipe is an open descriptor, which has a reader.
    script = f"{sys.executable} -m unisono schedule reduce {' '.join(ON_4)} -o >(cat) | cat"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert SAVED.to_text() in done.stdout
