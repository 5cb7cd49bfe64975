"""Requests of much work are refused in one sentence or served within bounds; Ctrl-C ends long work soon.

Each input runs in a separate process with 1.5 GB of memory more than at its start, and with a bound on its CPU time: a
missing estimate ends the process.
"""

import ast
import contextlib
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import unisono as un
from unisono import _core

from .conftest import SOAK, call, network_text, written
from .test_bad_input import assert_one_sentence

#: A program that runs its arguments and prints their peak memory in kilobytes. Linux counts the memory of the process
#: that starts a program as the program's own, so a test process, which may be large, cannot start it.
PEAK = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdout=sys.stderr).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)
"""
#: Bytes that a process may allocate in addition to those at its start, and seconds of its CPU time.
MEMORY, SECONDS = 1_500_000_000, 40


def network(topology: str) -> un.Machine:
    text = network_text(topology, "n", gbps=100, ns=(1, 1, 1), packet_bytes=64, buffer_bytes=1024)
    return _core.Machine.from_toml(text, "n")


def halo(reach: int) -> dict[str, Any]:
    """Returns two tasks: one writes a row of 2^31 elements, the other reads it with a halo."""
    write = {"buffer": "V", "mode": "write", "mapper": {"kind": "one_to_one"}}
    read = {"buffer": "V", "mode": "read", "mapper": {"kind": "neighborhood", "halo": [reach]}}
    tasks = [{"name": name, "range": [2**31], "accesses": [access]} for name, access in [("a", write), ("b", read)]]
    return {"buffers": [{"name": "V", "shape": [2**31]}], "tasks": tasks}


def goal(folder: Path, size: int) -> str:
    """Writes a program in which rank 0 sends one message to rank 1."""
    path = folder / "p.goal"
    path.write_text(
        f"num_ranks 2\nrank 0 {{\nl1: send {size}b to 1 tag 1\n}}\nrank 1 {{\nl1: recv {size}b from 0 tag 1\n}}\n"
    )
    return str(path)


#: A reduce whose root has scratch memory of 16 GiB.
SCRATCH = """unisono-schedule 1
collective reduce ranks=2 elements=1 root=0 operator=sum dtype=f32
phases p
nodes 2
stream s0: 1 -> 0
node 0: tmp=4294967295
  i0: in[0..1] + s0 -> out[0..1]
node 1:
  i1: in[0..1] -> s0
"""


def scratch(folder: Path) -> un.Schedule:
    """Returns the schedule `SCRATCH`, placed on a wafer."""
    path = written(folder / "tmp.sched", SCRATCH)
    return un.load(path).on(un.machine("wse2", shape=2))


#: Work on inputs below a megabyte, with words of its refusal, or None if the work is done.
CASES: dict[str, tuple[Callable[[Path], Any], str | None]] = {
    "a line of 100,000 switches": (
        lambda _: un.plan("allreduce", network('name = "hyperx"\ndims = [100000]'), elements=100),
        "5000050000",
    ),
    "the routing of such a line": (
        lambda _: _core.check_routing(network('name = "hyperx"\ndims = [100000]')),
        "5000050000",
    ),
    "a fat tree with 4096 cables a leaf": (
        lambda _: un.plan(
            "allreduce",
            network('name = "fattree"\naccelerators = 131072\nlevels = 3\ndown = 1\nup = 4096\ntop = 4096'),
            elements=100,
        ),
        "cables",
    ),
    "groups of 65,535 routers": (
        lambda _: network('name = "dragonfly"\np = 1\na = 65535\nh = 1\ng = 256').topology,
        None,
    ),
    "groups of 4096 routers": (
        lambda _: network('name = "dragonfly"\np = 1\na = 4096\nh = 15\ng = 4096').topology,
        None,
    ),
    "a mesh of 100,000 dimensions": (
        lambda _: network(f'name = "mesh"\ndims = [{",".join("1" * 100_000)}]').topology,
        "a list of 100000 numbers",
    ),
    "a permutation by flows on 4096 x 4096": (
        lambda _: un.traffic("permutation", network('name = "torus"\ndims = [4096, 4096]'), bytes=64, level="flow"),
        "GB of memory",
    ),
    "an alltoall by flows on 512 x 512": (
        lambda _: un.traffic("alltoall", network('name = "torus"\ndims = [512, 512]'), bytes=64, level="flow"),
        "steps",
    ),
    "an alltoall by packets among 16,384": (
        lambda _: un.traffic("alltoall", "hx2mesh-large", bytes="1MiB", level="packet"),
        "GB of memory",
    ),
    "blocks of 2^40 bytes by packets": (
        lambda _: un.traffic("alltoall", network('name = "torus"\ndims = [64, 64]'), bytes=1 << 40, level="packet"),
        "memory",
    ),
    "2^32 packets of a message": (
        lambda _: un.traffic("permutation", "hx2mesh-small", bytes=281_474_976_776_192, level="packet"),
        "packets of a message",
    ),
    "2^32 - 1 samples": (lambda _: un.allocate("hx2mesh-large", fail=10, samples=2**32 - 1), "allocation"),
    "a million samples of a large machine": (
        lambda _: un.allocate("hx2mesh-large", fail=10, samples=2**20),
        "steps",
    ),
    "a message of 10^12 bytes": (
        lambda folder: un.simulate_goal(goal(folder, 10**12), machine=network('name = "torus"\ndims = [4, 4]')),
        "packets",
    ),
    "a message of 2^63 - 1 bytes": (
        lambda folder: un.simulate_goal(goal(folder, 2**63 - 1), machine=network('name = "torus"\ndims = [4, 4]')),
        "packets of a message",
    ),
    "scratch memory of 16 GiB": (lambda folder: un.simulate(scratch(folder)), "GB of memory"),
    "a halo that reaches half of all nodes": (lambda _: un.discover(halo(2**30), 2**20), "steps"),
    "a sweep of 5000 lengths on a large wafer": (
        lambda _: un.sweep("allreduce", "wse2", shapes=["512x512"], elements=range(1, 5000)),
        "the sweep needs",
    ),
    "a sweep of 10^10 points": (
        lambda _: un.sweep("reduce", "wse2", shapes=[4] * 10**5, elements=[1] * 10**5),
        "the sweep needs",
    ),
    "slack trees on the largest wafer": (
        lambda _: un.plan("reduce", "wse2", shape="757x996", elements=64, algorithm="slack-tree", params={}),
        "the timing of candidates needs",
    ),
    "an allocation of 10^7 samples": (
        lambda _: un.allocate("hx2mesh-large", [4096], samples=10**7),
        "the study of the allocation needs",
    ),
    "the schedule of an alltoall among 4096": (
        lambda _: un.simulate(un.plan("alltoall", "archer", shape=4096, elements=1).schedule),
        "GB of memory",
    ),
}


def alone(work: Callable[[], Any]) -> str:
    """Runs ``work`` in a process with bounds; returns ``ok``, the exception, or the end of the process."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        text = "ok"
        try:
            used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
            resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            work()
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        os.write(write, text.encode()[:4000])
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        text = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    return text or f"the process died of status {status}"


#: A case whose refusal takes seconds, and is similar to the refusals of other cases.
SLOW = "a sweep of 5000 lengths on a large wafer"


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.soak] * (n == SLOW)) for n in CASES])
def test_large_work_is_refused_or_served(name: str, tmp_path: Path) -> None:
    work, words = CASES[name]
    outcome = alone(lambda: work(tmp_path))
    if words is None:
        assert outcome == "ok"
        return
    assert outcome.startswith(("InputError: ", "UnsupportedError: ")), outcome
    assert words in outcome, outcome
    assert "\n" not in outcome
    assert len(outcome) < 400


def doubling(times: int) -> str:
    """Returns a schedule of a kilobyte in which each copy has twice the segments of the previous one."""
    lines = ["unisono-schedule 1", "collective allreduce ranks=1 elements=2 root=0 operator=sum dtype=f32"]
    lines += ["phases p", "nodes 1", f"node 0: tmp={2 << times}", "  i0: in[1..2] -> tmp[0..1]"]
    lines += ["  i1: in[0..1] -> tmp[1..2]"]
    for k in range(times):
        lines.append(f"  i{k + 2}: tmp[0..{2 << k}] -> tmp[{2 << k}..{4 << k}]")
    return "\n".join([*lines, f"  i{times + 2}: in[0..2] -> out[0..2]"]) + "\n"


def growing(ranks: int) -> str:
    """Returns a short schedule in which each of `ranks` other ranks doubles the number of expressions on rank 0."""
    lines = ["unisono-schedule 1", f"collective reduce ranks={ranks + 1} elements=1 root=0 operator=sum dtype=f32"]
    lines += ["phases p", f"nodes {ranks + 1}", *(f"stream s{j}: {j + 1} -> 0" for j in range(ranks))]
    programs = [[f"node 0: tmp={1 << ranks}", "in[0..1] -> tmp[0..1]"]]
    programs[0] += [f"tmp[0..{1 << j}] + s{j} -> tmp[{1 << j}..{2 << j}]" for j in range(ranks)]
    programs[0].append(f"tmp[{(1 << ranks) - 1}..{1 << ranks}] -> out[0..1]")
    for j in range(ranks):
        copies = [f"tmp[0..{1 << k}] -> tmp[{1 << k}..{2 << k}]" for k in range(j)]
        programs.append([f"node {j + 1}: tmp={1 << j}", "in[0..1] -> tmp[0..1]", *copies, f"tmp[0..{1 << j}] -> s{j}"])
    at = 0
    for head, *instructions in programs:
        lines.append(head)
        for instruction in instructions:
            lines.append(f"  i{at}: {instruction}")
            at += 1
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        pytest.param(doubling(26), None, id="copies-26"),
        pytest.param(doubling(30), None, id="copies-30", marks=pytest.mark.soak),
        pytest.param(growing(24), None, id="sums-24", marks=pytest.mark.soak),
        pytest.param(growing(23), None, id="sums-23", marks=pytest.mark.soak),
        # An eighth of the expressions is too much for this smaller limit.
        pytest.param(growing(20), "80MB", id="sums-20"),
    ],
)
def test_proofs_of_short_files_take_less_than_a_gigabyte(text: str, limit: str | None, tmp_path: Path) -> None:
    file = written(tmp_path / "bomb.sched", text)
    command = [sys.executable, "-m", "unisono", "verify", str(file), *(("--limit-memory", limit) if limit else ())]
    done = subprocess.run([sys.executable, "-c", PEAK, *command], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "needs more than" in done.stderr
    assert int(done.stdout) * 1024 < (1e9 if limit is None else 3e8)


def test_the_diameter_of_large_groups() -> None:
    """Local, global and local cables, and one at each end, are five."""
    topology = network('name = "dragonfly"\np = 1\na = 65535\nh = 1\ng = 256').topology
    assert topology is not None
    assert topology["diameter"] == 5


def test_packets_are_counted_in_full() -> None:
    """A message of 2^30 + 1 packets exceeds the limit: the count does not wrap around."""
    with pytest.raises(un.InputError, match="simulation of packets needs about"):
        un.traffic("permutation", "hx2mesh-small", bytes=(2**30 + 1) * 8192 * 8, level="packet")


@pytest.fixture
def default_limits() -> Iterator[None]:
    yield
    un.limits(memory="free", steps=_core.default_steps())


@pytest.mark.usefixtures("default_limits")
def test_limits_of_the_process() -> None:
    big = {"machine": "hx2mesh-small", "fail": 10, "samples": 1000}
    with un.limits(memory="1MB", steps=1000) as set_here:
        assert (set_here.memory, set_here.steps) == (1_000_000, 1000)
        with pytest.raises(un.InputError, match=r"1\.0e3 steps"):
            un.allocate(**big)  # type: ignore[arg-type]
    un.allocate(**big)  # type: ignore[arg-type]
    assert un.limits().steps == 2**36
    assert (un.limits(memory=None, steps=None).memory, un.limits().steps) == (None, None)
    free = un.limits(memory="free").memory
    assert free is not None
    assert free > 0
    for wrong in ({"memory": -1}, {"memory": 0}, {"memory": "0"}, {"memory": "much"}, {"steps": -1}, {"steps": 0}):
        with pytest.raises(un.InputError):
            un.limits(**wrong)


@pytest.mark.usefixtures("default_limits")
def test_options_of_commands() -> None:
    command = ["topology", "hx2mesh-small", "--check"]
    assert_one_sentence(call(*command, "--limit-memory", "1kB"), "memory", "--no-limit")
    assert_one_sentence(call(*command, "--limit-memory", "1kB", "--no-limit"), "give one")
    assert_one_sentence(call(*command, "--limit-memory", "some"), "some")
    assert_one_sentence(call(*command, "--limit-memory", "0"), "the limit on memory is 0", "None")
    assert call(*command, "--no-limit").code == 0
    # The limits of one command do not apply to the next.
    assert call(*command).code == 0


def test_a_limit_leaves_dear_candidates_out() -> None:
    """Candidates within the limit are ranked, and a note names the others."""
    notes: list[str] = []
    # With a named model nothing is simulated, for which the limit would not suffice.
    options: dict[str, Any] = {"shape": "64x64", "elements": 8, "model": "links"}
    every = un.plan("reduce", "wse2", **options).candidates
    _core.note_large_work(notes.append)
    try:
        with un.limits(steps=200_000_000):
            plan = un.plan("reduce", "wse2", **options)
            some = plan.candidates
            # After ranking, the rest of the limit suffices to build the best schedule.
            assert plan.schedule.instructions > 0
    finally:
        _core.note_large_work(None)
    dear = [c for c in every if c["algorithm"] == "slack-tree"]
    assert dear
    assert 0 < len(some) < len(every)
    assert [c for c in every if c in some] == some
    assert any("candidates left out: " in note and "slack-tree" in note for note in notes), notes


def test_a_note_announces_long_work() -> None:
    notes: list[str] = []
    machine = network('name = "hxmesh"\nboard = [1, 1]\nboards = [256, 256]')
    _core.note_large_work(notes.append)
    try:
        with un.limits(steps=None):
            un.allocate(machine, samples=1)
            assert notes == []
            with pytest.raises(KeyboardInterrupt), _interrupt_soon():
                un.allocate(machine, samples=2000)
    finally:
        _core.note_large_work(None)
    assert any("the study of the allocation needs" in note for note in notes), notes


@contextlib.contextmanager
def _interrupt_soon(seconds: float = 0.5) -> Iterator[None]:
    """Raises KeyboardInterrupt after a number of CPU seconds; on a busy computer, work may begin late."""
    before = signal.signal(signal.SIGPROF, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def test_an_interrupted_discovery_says_so_from_then_on() -> None:
    """An interrupted discovery refuses to go on, since a partly processed task would give wrong commands."""
    elements, halo = 1 << 22, _core.Mapper("neighborhood", halo=(1,))
    discovery = _core.Discovery(1 << 20)
    buffer = discovery.buffer("A", elements, initialized=True)
    discovery.task("fill", elements, [(buffer, "write", _core.Mapper("one_to_one"))])
    discovery.task("look", elements, [(buffer, "read", halo)])
    with pytest.raises(KeyboardInterrupt), _interrupt_soon(0.05):
        discovery.flush()
    with pytest.raises(un.Error, match="this discovery was interrupted within a task and cannot go on"):
        discovery.flush()


def test_an_interrupt_in_a_note_is_not_lost() -> None:
    def note(_: str) -> None:
        raise KeyboardInterrupt

    # Tests in the background of a shell inherit that the signal is ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    _core.note_large_work(note)
    try:
        with un.limits(steps=None), pytest.raises(KeyboardInterrupt):
            un.allocate("hx2mesh-large", samples=400_000)
    finally:
        _core.note_large_work(None)
        signal.signal(signal.SIGINT, before)


#: Commands that run long.
LONG = {
    "routing": ["topology", "torus2d-large", "--check"],
    "packets": ["traffic", "alltoall", "--machine", "hx2mesh-small", "--bytes", "1MiB", "--level", "packet"],
    "flows": ["traffic", "alltoall", "--machine", "torus2d-large", "--bytes", "1MiB", "--level", "flow"],
    "allocation": ["allocate", "--machine", "hx2mesh-large", "--samples", "400000"],
    "wafer": ["simulate", "allreduce", "--machine", "wse2", "--shape", "256x256", "--elements", "4096"]
    + ["--noop-probability", "0.1"],
    "ranks": ["simulate", "alltoall", "--machine", "archer", "--ranks", "4096", "--elements", "64"]
    + ["--algorithm", "linear"],
    "sweep": ["sweep", "allreduce", "--machine", "wse2", "--shapes", "512x512", "--elements", "1..4000"],
    "plan": ["plan", "reduce", "--machine", "wse2", "--shape", "757x996", "--elements", "64"],
    "k-d trees": ["plan", "reduce", "--machine", "wse2", "--shape", "757x996", "--elements", "9999"]
    + ["--algorithm", "kd-tree"],
}


def heed() -> None:
    """Restores the action of SIGINT, which background processes may ignore, and leaves the program two cores.

    The threads of a program look for interrupts after some time; on many cores they use the more CPU time until then.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, random.sample(cores, min(2, len(cores))))


def cpu_seconds(pid: int) -> float:
    """Returns the CPU time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def past_the_start(process: subprocess.Popen[Any]) -> None:
    """Waits until a program has started and is at work."""
    while process.poll() is None and cpu_seconds(process.pid) < 0.6:
        time.sleep(0.02)


@pytest.mark.parametrize("name", LONG)
def test_an_interrupt_ends_long_work(name: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "unisono", *LONG[name], "--no-limit"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heed
    )
    try:
        past_the_start(process)
        assert process.poll() is None, process.communicate()
        # An interrupted program may use one more CPU second.
        most = cpu_seconds(process.pid) + 1.0
        process.send_signal(signal.SIGINT)
        while process.poll() is None and cpu_seconds(process.pid) < most:
            time.sleep(0.02)
        assert process.poll() is not None, "it goes on"
        out, err = process.communicate()
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, out) == (130, "")
    assert err.splitlines()[-1] == "error: interrupted"
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


#: The program, which prints a line once it handles interrupts; before, the interpreter does.
HANDLES = """
import sys
from unisono.__main__ import main
from unisono.base import interrupts
handle = interrupts.handle
def handles():
    handle()
    print("handles", flush=True)
interrupts.handle = handles
sys.exit(main())
"""


def test_an_interrupt_while_modules_are_imported(tmp_path: Path) -> None:
    """The interrupt ends the program with one line at any time."""
    command = [sys.executable, "-c", HANDLES, *LONG["plan"], "--no-limit"]
    draws = random.Random(1)
    for _ in range(12 if SOAK else 4):
        process = subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heed
        )
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "handles\n"
            least = cpu_seconds(process.pid) + draws.random() * 0.4
            while process.poll() is None and cpu_seconds(process.pid) < least:
                time.sleep(0.005)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=600)
        finally:
            process.kill()
            process.wait()
        assert (process.returncode, out, err) == (130, "", "error: interrupted\n")


def test_public_names_are_those_that_types_see() -> None:
    """The lazy imports of the package and those that type checkers read are the same."""
    tree = ast.parse(Path(un.__file__).read_text())
    seen = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("unisono.")
        for alias in node.names
    }
    del seen["lazy"]
    assert sorted(seen) == un.__all__
    assert all(getattr(un, name) is not None for name in un.__all__)
    assert set(un.__all__) <= set(dir(un))
    with pytest.raises(AttributeError, match="no attribute 'frobnicate'"):
        un.frobnicate  # noqa: B018


def test_a_plan_on_a_network_of_long_paths_is_refused_before_messages_are_routed(tmp_path: Path) -> None:
    """The estimate follows the messages of some ranks, so the ring of neighbors is timed on the same network."""
    text = network_text('name = "torus"\ndims = [60000]\n', "long", gbps=100, ns=(10, 0, 0), packet_bytes=4096)
    machine = un.machine(written(tmp_path / "long.toml", text))
    with pytest.raises(un.InputError, match=r"timing of candidates needs about .* steps, and the limit is"):
        un.plan("alltoall", machine, bytes=60000 * 4, algorithm="pairwise")
    assert un.plan("allreduce", machine, bytes=60000 * 4, algorithm="ring").algorithm == "ring"
