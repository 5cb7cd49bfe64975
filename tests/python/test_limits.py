"""Inputs that ask for much are refused in one sentence or served within bounds; Ctrl-C ends long work soon.

Each input runs in a process of its own with 1.5 GB of memory more than it begins with, and with a bound on its CPU
time, so that an estimate that is missing shows as a process that dies.
"""

import os
import resource
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import unisono as un
from unisono import _core

from .conftest import PROGRAM, call
from .test_bad_input import assert_one_sentence

NETWORK = """
name = "n"
kind = "network"
planes = 1
link_gbps = 100
link_latency_ns = 1
input_latency_ns = 1
output_latency_ns = 1
packet_bytes = 64
buffer_bytes = 1024
[topology]
"""
#: Bytes that a process may allocate beyond what it has, and seconds of its CPU time.
MEMORY, SECONDS = 1_500_000_000, 40


def network(topology: str) -> un.Machine:
    return _core.Machine.from_toml(NETWORK + topology, "n")


def halo(reach: int) -> dict[str, Any]:
    """Two tasks: one writes a row of 2^31 elements, the other reads it with a halo."""
    write = {"buffer": "V", "mode": "write", "mapper": {"kind": "one_to_one"}}
    read = {"buffer": "V", "mode": "read", "mapper": {"kind": "neighborhood", "halo": [reach]}}
    tasks = [{"name": name, "range": [2**31], "accesses": [access]} for name, access in [("a", write), ("b", read)]]
    return {"buffers": [{"name": "V", "shape": [2**31]}], "tasks": tasks}


def goal(folder: Path, size: int) -> str:
    """A program in which rank 0 sends one message to rank 1."""
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
    """That schedule on a wafer."""
    path = folder / "tmp.sched"
    path.write_text(SCRATCH)
    return un.load(path).on(un.machine("wse2", shape=2))


#: Inputs below a megabyte, each with words of its refusal; None: it is served.
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
    "the schedule of an alltoall among 4096": (
        lambda _: un.simulate(un.plan("alltoall", "archer", shape=4096, elements=1).schedule),
        "GB of memory",
    ),
}


def alone(work: Callable[[], Any]) -> str:
    """What happens to ``work`` in a process that has bounds: ``ok``, the failure, or how the process ended."""
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


@pytest.mark.parametrize("name", CASES)
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


def test_the_diameter_of_large_groups() -> None:
    """Local, global and local cables, and one at both ends."""
    topology = network('name = "dragonfly"\np = 1\na = 65535\nh = 1\ng = 256').topology
    assert topology is not None
    assert topology["diameter"] == 5


def test_packets_are_counted_in_full() -> None:
    """2^30 + 1 packets a message are over the limit, and the sentence has their number and not its low bits."""
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
    for wrong in ({"memory": -1}, {"memory": "much"}, {"steps": -1}):
        with pytest.raises(un.InputError):
            un.limits(**wrong)


@pytest.mark.usefixtures("default_limits")
def test_options_of_commands() -> None:
    command = ["topology", "hx2mesh-small", "--check"]
    assert_one_sentence(call(*command, "--limit-memory", "1kB"), "memory", "--no-limit")
    assert_one_sentence(call(*command, "--limit-memory", "1kB", "--no-limit"), "give one")
    assert_one_sentence(call(*command, "--limit-memory", "some"), "some")
    assert call(*command, "--no-limit").code == 0
    # The limits of one command are not those of the next.
    assert call(*command).code == 0


#: Commands that would go on for long.
LONG = {
    "routing": ["topology", "torus2d-large", "--check"],
    "packets": ["traffic", "alltoall", "--machine", "hx2mesh-small", "--bytes", "1MiB", "--level", "packet"],
    "flows": ["traffic", "alltoall", "--machine", "torus2d-large", "--bytes", "1MiB", "--level", "flow"],
    "allocation": ["allocate", "--machine", "hx2mesh-large", "--samples", "400000"],
    "wafer": ["simulate", "allreduce", "--machine", "wse2", "--shape", "256x256", "--elements", "4096"]
    + ["--noop-probability", "0.1"],
    "ranks": ["simulate", "alltoall", "--machine", "archer", "--ranks", "1024", "--elements", "64"],
    "sweep": ["sweep", "allreduce", "--machine", "wse2", "--shapes", "512x512", "--elements", "1..4000"],
    "plan": ["plan", "reduce", "--machine", "wse2", "--shape", "757x996", "--elements", "64"],
}


def cpu_seconds(pid: int) -> float:
    """CPU time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("name", LONG)
def test_an_interrupt_ends_long_work(name: str, tmp_path: Path) -> None:
    command = [str(PROGRAM), *LONG[name], "--no-limit"]
    # A shell in the background may have it ignored.
    heed = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL) and None  # noqa: E731
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heed
    )
    try:
        # Past the start of the interpreter, in the midst of the work.
        while process.poll() is None and cpu_seconds(process.pid) < 1.5:
            time.sleep(0.02)
        assert process.poll() is None, process.communicate()
        before = cpu_seconds(process.pid)
        process.send_signal(signal.SIGINT)
        while process.poll() is None and cpu_seconds(process.pid) < before + 5:
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
