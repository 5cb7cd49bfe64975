"""A lab: hosts in namespaces of this computer, with MPI over TCP between them; its end leaves no process or file."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import unisono as un
from unisono.lab import ranks, scaling, session
from unisono.lab.session import Lab
from unisono.mpi import installations

from ..python.conftest import PROGRAM, Ran, call, json_of
from ..python.test_mpi import MPICH, OPEN_MPI, PATIENCE

#: Two leaf switches with two hosts each, so there is one path between two hosts.
TREE = "0 4\n1 4\n2 5\n3 5\n4 6\n5 6\n"
HOSTS = 4
#: A program that prints each rank's line in one write, because the ranks of a host share the output.
WHERE = """
import os, socket
from mpi4py import MPI
world = MPI.COMM_WORLD
os.write(1, f"{socket.gethostname()} {world.allreduce(world.rank)}\\n".encode())
"""
#: A program whose rank 1 waits a second for rank 0 in an allreduce, and prints how often it slept. With an argument,
#: MPI is initialised for calls of one thread.
WAITS = """
import resource, sys, time
import mpi4py
mpi4py.rc.thread_level, mpi4py.rc.threads = "funneled", len(sys.argv) > 1
from mpi4py import MPI
import numpy as np
world, x, y = MPI.COMM_WORLD, np.ones(2), np.empty(2)
world.Allreduce(x, y)
if world.rank == 0:
    time.sleep(1)
before = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
world.Allreduce(x, y)
if world.rank == 1:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - before)
"""
RECEIVE = """
import socket, sys
s = socket.socket(type=socket.SOCK_DGRAM)
s.bind(("", 9000))
s.settimeout(float(sys.argv[2]))
print("ready", flush=True)
try:
    print(sum(len(s.recv(9000)) for _ in range(int(sys.argv[1]))))
except TimeoutError:
    print("lost")
"""
SEND = """
import socket, sys
s = socket.socket(type=socket.SOCK_DGRAM)
for _ in range(int(sys.argv[2])):
    s.sendto(bytes(int(sys.argv[3])), (sys.argv[1], 9000))
"""
#: Bytes that IP and UDP add to a datagram.
HEADERS = 28


def network(folder: Path, cables: str, speed: str = "gbps=0.02 ns=100000") -> str:
    """Writes a machine file, by default of 20 Mbit/s, which a lab does not scale."""
    edges, machine = folder / "edges.txt", folder / "small.toml"
    edges.write_text("".join(f"{line} {speed}\n" for line in cables.splitlines()))
    words = ("machines", "import", edges, "--from", "edges", "--accelerators", HOSTS, "-o", machine)
    assert call(*map(str, words)).code == 0
    return str(machine)


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yields a folder with a short path, as the paths of sockets must be short."""
    path = Path(tempfile.mkdtemp(prefix="lab", dir="/tmp"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(path))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def lab(folder: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    """Starts a lab of the tree, without root if the parameter is "user"; skips if namespaces are not permitted."""
    if getattr(request, "param", "") == "user":
        # In a user namespace, root has the same rights as any other user.
        monkeypatch.setattr(session, "_is_root", lambda: False)
    ran = call("lab", "up", network(folder, TREE), "--per-host", "2", "--json")
    if ran.code == 2 and "a lab needs" in ran.err:
        pytest.skip(ran.err.strip())
    assert ran.code == 0, ran.err
    assert (ran.json["hosts"], ran.json["scale"], len(ran.json["ports"])) == (HOSTS, 1, 12)
    yield session.current()
    call("lab", "down")


def run(*words: str, **changed: str) -> Ran:
    done = subprocess.run(
        [str(PROGRAM), "lab", "run", *words],
        env={**os.environ, **changed},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    # Open MPI's launcher may print null characters between the lines of its ranks.
    return Ran(done.returncode, done.stdout.replace("\0", ""), done.stderr.replace("\0", ""))


def carried(lab: Lab) -> dict[tuple[str, str], int]:
    return {(port["from"], port["to"]): port["bytes"] for port in lab.report()["ports"]}


def exchanged(lab: Lab, a: str, b: str, count: int, size: int, seconds: int = PATIENCE) -> str:
    """Sends datagrams from host `a` to host `b`, and returns the output of the receiver."""
    python = [sys.executable, "-S", "-c"]
    receiver = subprocess.Popen(
        [*lab.enter(b), *python, RECEIVE, str(count), str(seconds)], stdout=subprocess.PIPE, text=True
    )
    with receiver:
        assert receiver.stdout is not None
        assert receiver.stdout.readline() == "ready\n"
        subprocess.run([*lab.enter(a), *python, SEND, b, str(count), str(size)], check=True)
        return receiver.stdout.read().strip()


@pytest.mark.soak  # other work on the cores delays messages, which the simulator's tests do not have
def test_probe_names_the_slow_cable_of_a_lab(folder: Path) -> None:
    machine = network(folder, TREE)
    wrong = call("lab", "up", machine, "--slow", "0-9=0.2")
    assert (wrong.code, "'0-9' is no cable of" in wrong.err) == (2, True)
    ran = call("lab", "up", machine, "--slow", "2-5=0.2")
    if ran.code == 2 and "a lab needs" in ran.err:
        pytest.skip(ran.err.strip())
    assert ran.code == 0, ran.err
    try:
        slow = {(port["from"], port["to"]) for port in session.current().report()["ports"] if port["mbit"] < 5}
        assert slow == {("c2", "s5"), ("s5", "c2")}
        python = str(OPEN_MPI / "bin" / "python")
        probe = ("probe", "--machine", machine, "--bytes", "64KiB", "--rounds", "2", "--json")
        ran = run("-n", "4", "--", python, "-m", "unisono", *probe)
    finally:
        call("lab", "down")
    assert ran.code == 1, ran.err
    report = json.loads(ran.out)
    assert [(of["link"], of["or"]) for of in report["links"]] == [("2-5", [])]
    # The host limits itself to 99 % of its cable's rate, and TCP has headers.
    assert report["links"][0]["rate"] == pytest.approx(0.004, rel=0.3)


def test_programs_run_on_all_hosts_and_cables_fail(lab: Lab) -> None:
    # Datagrams use only the path between their hosts; they are not TCP, which may send after its programs have ended.
    count, size = 20, 1000
    assert exchanged(lab, "c0", "c3", count, size) == str(count * size)
    way = {("c0", "s4"), ("s4", "s6"), ("s6", "s5"), ("s5", "c3")}
    before = carried(lab)
    assert before == {port: count * (size + HEADERS) if port in way else 0 for port in before}
    ran = run("-n", "4", "--", str(OPEN_MPI / "bin" / "python"), "-c", WHERE)
    # Each host takes two ranks, so the first two hosts have all four.
    assert (ran.code, sorted(ran.out.split("\n"))) == (0, ["", "c0 6", "c0 6", "c1 6", "c1 6"]), ran.err
    ports = json_of("lab", "stats")["ports"]
    ways = ((port["from"], port["to"]) for port in ports)
    used = {ends for ends, port in zip(ways, ports, strict=True) if port["bytes"] > before[ends]}
    assert used == {("c0", "s4"), ("s4", "c0"), ("c1", "s4"), ("s4", "c1")}
    assert not any(port["drops"] for port in ports)
    assert json_of("lab", "fail", "6-5")["cable"] == "s5-s6"
    assert [port["up"] for port in lab.report()["ports"]].count(False) == 2
    assert exchanged(lab, "c0", "c3", 1, 10, seconds=1) == "lost"
    assert exchanged(lab, "c0", "c1", 1, 10) == "10"
    assert call("lab", "restore", "s5-s6").out == "cable s5-s6 is up\n"
    assert exchanged(lab, "c0", "c3", 1, 10) == "10"


@pytest.mark.parametrize("lab", ["user"], indirect=True)
def test_mpich_runs_on_hosts_and_plans_serve(lab: Lab, folder: Path) -> None:
    environment = {"PYTHONPATH": str(Path(un.__file__).parents[1])}
    ran = run("-n", "4", "--", str(MPICH / "bin" / "python"), "-c", WHERE, **environment)
    assert (ran.code, sorted(ran.out.split("\n"))) == (0, ["", "c0 6", "c0 6", "c1 6", "c1 6"]), ran.err
    plan, report = folder / "t.plan", folder / "report"
    un.save_plans(
        [(un.plan("allreduce", "archer", shape=2, elements=2, algorithm="recursive-doubling"), 0, None)], plan
    )
    program = "import numpy as np; from mpi4py import MPI; x = np.ones(2); y = x.copy(); "
    program += "MPI.COMM_WORLD.Allreduce(x, y); print(y[0])"
    words = ("-n", "2", "--plan", str(plan), "--report", str(report), "--both", "--", sys.executable, "-c", program)
    ran = run(*words)
    assert ran.code == 0, ran.err
    *printed, before, after, start = ran.out.strip().split("\n")
    assert printed == ["2.0"] * 4
    assert before.startswith("without the plan")
    assert before.endswith("from MPI_Init to MPI_Finalize")
    assert after.startswith("with the plan")
    assert start.startswith("start and end")
    assert "recursive-doubling" in report.read_text()


@pytest.mark.parametrize("python", [sys.executable, str(MPICH / "bin" / "python")], ids=["openmpi", "mpich"])
def test_ranks_sleep_while_they_wait(lab: Lab, folder: Path, python: str) -> None:
    plan = folder / "t.plan"
    un.save_plans(
        [(un.plan("allreduce", "archer", shape=2, elements=2, algorithm="recursive-doubling"), 0, None)], plan
    )
    words = ("-n", "2", "--plan", str(plan), "--report", "stderr")
    for both, level, lines in (("--both",), (), 2), ((), ("funneled",), 1):
        ran = run(*words, *both, "--", python, "-c", WAITS, *level)
        assert (ran.code, "recursive-doubling" in ran.err) == (0, True), ran.err
        # A rank that does not sleep stops for other processes only, which is not counted.
        slept = [int(line) for line in ran.out.split("\n")[:lines]]
        assert min(slept) > 100, slept


@pytest.mark.parametrize(("lab", "kills"), [("user", "first"), ("root", "starter")], indirect=["lab"])
def test_a_killed_lab_leaves_nothing(lab: Lab, folder: Path, kills: str) -> None:
    first = lab._first_process()
    starter = int(Path(f"/proc/{first}/stat").read_text().rsplit(")", 1)[1].split()[1])
    # A process on a host, as ranks are.
    waits = subprocess.Popen(
        [*lab.enter("c1"), "sh", "-c", "echo ready; sleep 1000"], stdout=subprocess.PIPE, text=True
    )
    assert waits.stdout is not None
    assert waits.stdout.readline() == "ready\n"
    of_lab = {pid for pid in processes() if spaces(pid, "pid") & spaces(first, "pid")}
    # The fabric, the process that keeps each host's namespaces, and the process started above.
    assert len(of_lab) >= 1 + HOSTS + 1
    kept = {found for pid in of_lab for found in spaces(pid, *KINDS)} - spaces(os.getpid(), *KINDS)
    os.kill(first if kills == "first" else starter, signal.SIGKILL)
    assert waits.wait(PATIENCE) != 0
    waits.stdout.close()
    end = time.monotonic() + PATIENCE
    while (lock := session._lock(lab.folder)) is None and time.monotonic() < end:
        time.sleep(0.01)
    assert lock is not None
    os.close(lock)
    while left := [pid for pid in processes() if spaces(pid, *KINDS) & kept]:
        assert time.monotonic() < end, left
        time.sleep(0.02)
    assert str(folder) not in Path("/proc/self/mountinfo").read_text()
    assert "no lab is up" in call("lab", "stats").err
    assert not lab.folder.exists()


@pytest.mark.parametrize("lab", ["user"], indirect=True)
def test_a_killed_run_leaves_no_rank(lab: Lab) -> None:
    kept = spaces(lab._first_process(), "pid")
    before = {pid for pid in processes() if spaces(pid, "pid") & kept}

    def of_run() -> set[int]:
        return {pid for pid in processes() if spaces(pid, "pid") & kept} - before

    command = [str(PROGRAM), "lab", "run", "-n", "1", "--", "sh", "-c", "echo ready; sleep 1000"]
    ran = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    with ran:
        assert ran.stdout is not None
        assert ran.stdout.readline() == "ready\n"
        ran.kill()
    end = time.monotonic() + PATIENCE
    while left := of_run():
        assert time.monotonic() < end, left
        time.sleep(0.02)


def test_a_lab_whose_start_was_killed_can_be_ended(folder: Path) -> None:
    up = subprocess.Popen(
        [str(PROGRAM), "lab", "up", network(folder, TREE)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    own = folder / f"unisono-lab-{os.geteuid()}"
    with up:
        # The loop ends once the first host has its namespaces.
        while up.poll() is None and not any(own.glob("pids/*")):
            time.sleep(0.001)
        up.kill()
        assert up.stderr is not None
        if "a lab needs" in (said := up.stderr.read()):
            pytest.skip(said.strip())
    end = time.monotonic() + PATIENCE
    while "is starting" in (ran := call("lab", "down")).err:
        assert time.monotonic() < end
        time.sleep(0.02)
    assert (ran.code, ran.out) == (0, "the lab has ended\n"), ran.err
    assert not own.exists()


def test_hosts_of_a_lab_alone_have_its_factor(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call("lab", "down")
    assert call("lab", "up", str(lab.folder.parent / "small.toml"), "--scale", "3").code == 0
    own = session.current()
    asks = "from unisono.lab.session import time_scale; print(time_scale())"
    on_host = [*own.enter("c1"), sys.executable, "-c", asks]
    done = subprocess.run(on_host, env=os.environ | {"TMPDIR": "/tmp"}, capture_output=True, text=True, check=True)
    assert done.stdout == "3.0\n"
    # The hosts' folder for temporary files, seen outside of all hosts.
    monkeypatch.setenv("TMPDIR", str(own.folder / "tmp"))
    assert session.time_scale() == 1
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"36 35 0:24 / {own.folder}/tmp rw - tmpfs tmpfs rw\n")
    assert session.time_scale(mounts) == 3
    monkeypatch.setattr(os, "geteuid", lambda: own.folder.stat().st_uid + 1)
    with pytest.raises(un.InputError, match=r"is another user's; start one of your own"):
        session.time_scale(mounts)


KINDS = ("pid", "net", "mnt", "uts", "ipc")


def processes() -> list[int]:
    return [int(path.name) for path in Path("/proc").glob("[0-9]*")]


def spaces(pid: int, *kinds: str) -> set[str]:
    """Returns the namespaces of a process; none if it has ended."""
    try:
        return {str(Path(f"/proc/{pid}/ns/{kind}").readlink()) for kind in kinds}
    except OSError:
        return set()


def test_a_second_lab_and_wrong_requests_are_refused(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    for words, said in [
        (("up", "dgx-h100"), "a lab is up already; 'unisono lab down' ends it"),
        (("fail", "c0-s5"), "'c0-s5' is no cable of edges (did you mean c3-s5?); 'unisono lab stats' lists all"),
        (("run", "-n", "9", "--", "true"), "-n is 9, and the lab has places for 1 to 8 ranks (4 hosts, 2 a host)"),
        (("run", "-n", "2", "--", "no-such-program"), "there is no program 'no-such-program'"),
        (("run", "-n", "2", "--", "mpiexec", "true"), "'mpiexec' starts ranks itself; name the program after --"),
    ]:
        ran = call("lab", *words)
        assert (ran.code, ran.out) == (2, "")
        assert said in ran.err
    monkeypatch.setattr(installations, "find", lambda name: None)
    with pytest.raises(un.InputError, match=r"no mpiexec of MPICH is installed; 'unisono doctor' lists what is"):
        ranks.launcher(replace(lab, mpi="mpich"), 2, "true")
    assert call("lab", "down").out == "the lab has ended\n"
    assert not lab.folder.exists()


def test_requests_without_a_lab_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    none = "error: no lab is up; 'unisono lab up MACHINE.toml' starts one\n"
    for request in ("stats", "down", "fail c0-s4", "run -n 2 -- true"):
        assert call("lab", *request.split()) == Ran(2, "", none)
    for words, said in [
        (("up", "archer"), "archer is of kind endpoint, and a lab needs a network"),
        (("up", "wse2"), "wse2 is of kind wafer, and a lab needs a network"),
        (("up", "hx2mesh-small"), "hx2mesh-small has 1024 accelerators, and a lab has 2 to 64 hosts"),
        (("up", "dgx-h100", "--per-host", "0"), "--per-host is 0; accepted is a whole number from 1 to 64"),
        (("up",), "write 'unisono lab up MACHINE'"),
        (("stat",), "'stat' is not an action of a lab (did you mean stats?)"),
        (("stats", "--mpi", "mpich"), "--mpi is for 'unisono lab up'; drop it"),
        (("up", "dgx-h100", "--plan", "x.plan"), "--plan is for 'unisono lab run'; drop it"),
        (("run", "-n", "2", "--both", "--", "true"), "--both goes with a plan"),
    ]:
        ran = call("lab", *words)
        assert (ran.code, ran.out) == (2, "")
        assert said in ran.err
    # A kernel that permits this user no namespaces.
    own = folder / "unshare"
    own.write_text("#!/bin/sh\necho unshare: unshare failed: Operation not permitted >&2\nexit 1\n")
    own.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    said = "a lab needs root, or a kernel that permits user namespaces"
    assert said in (err := call("lab", "up", "dgx-h100").err)
    assert err.endswith("and this one answers: unshare: unshare failed: Operation not permitted\n")
    own.unlink()
    monkeypatch.setenv("PATH", "/nowhere")
    assert "a lab needs unshare, nsenter, setpriv, flock, ip, tc, which" in call("lab", "up", "dgx-h100").err
    assert not list(folder.iterdir())


def test_one_factor_scales_rates_and_latencies() -> None:
    draw = random.Random(7)
    for _ in range(20):
        hosts, switches = draw.randint(2, 12), draw.randint(1, 4)
        nodes = hosts + switches
        ends = {(draw.randrange(node), node) for node in range(1, nodes)}
        ends |= {(min(pair), max(pair)) for pair in (draw.sample(range(nodes), 2) for _ in range(4))}
        cables = {pair: (draw.choice([0.01, 1, 25, 400]), draw.choice([40, 700, 20_000])) for pair in sorted(ends)}
        text = "".join(f"{a} {b} gbps={gbps} ns={ns}\n" for (a, b), (gbps, ns) in cables.items())
        found = scaling.scaled(imported(text, hosts))
        own = [found.mbit_of(host) for host in found.hosts]
        assert max(own) <= 100 * (1 + 1e-9)
        assert sum(own) <= 800 * (1 + 1e-9)
        # The factor is the least possible one, rounded up to two digits.
        assert found.scale == 1 or max(max(own) / 100, sum(own) / 800) > 0.9
        for cable in found.cables:
            gbps, ns = cables[int(cable.a[1:]), int(cable.b[1:])]
            assert cable.mbit * found.scale == pytest.approx(gbps * 1000)
            assert cable.latency_us == pytest.approx(ns / 1000 * found.scale)
        assert found.nap_ns == 50_000 or found.nap_ns <= 200 * min(cable.latency_us for cable in found.cables) + 1
        assert scaling.Network.of_report(found.report()) == found
        # A user may choose a greater factor, but not a smaller one.
        machine = imported(text, hosts)
        slower = scaling.scaled(machine, 3 * found.scale)
        assert slower.scale == 3 * found.scale
        assert [cable.mbit for cable in slower.cables] == pytest.approx([cable.mbit / 3 for cable in found.cables])
        with pytest.raises(un.InputError, match=f"a number from {found.scale:g}, "):
            scaling.scaled(machine, 0.9 * found.scale)


def imported(text: str, accelerators: int) -> un.Machine:
    return un._core.import_network(text, "edges", "edges", "drawn", 1, accelerators)
