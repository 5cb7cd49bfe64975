"""Fixtures and helpers of the tests: runs of the program, in this process or as a separate one."""

import contextlib
import fcntl
import io
import json
import os
import pickle
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import unisono
from playwright.sync_api import Browser, sync_playwright
from unisono.cli import main

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(sys.executable).with_name("unisono")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
#: Options that keep the browser from contacting hosts by itself.
QUIET = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip

# At every start of a program, Open MPI's transports over libfabric and UCX search for network adapters, which takes
# longer than the rest of the start. The ranks of the tests are on one machine and send through shared memory without
# them.
os.environ.setdefault("OMPI_MCA_pml", "ob1")
os.environ.setdefault("OMPI_MCA_btl", "self,sm")
# Waiting ranks of MPICH would poll at full speed on cores that working ranks need: with three ranks on two cores, waits
# take most of a test's processor time. With this variable, ranks sleep after some thousand unsuccessful polls.
os.environ.setdefault("MPIR_CVAR_CH4_PROGRESS_THROTTLE", "1")
# By default NumPy starts a thread for each core, in every rank, which takes a third of its import.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


@dataclass(frozen=True)
class Ran:
    """The exit code and output of a run of the program."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Returns standard output, which must be one JSON object."""
        return json.loads(self.out, parse_constant=_no_constant)


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")


def call(*arguments: str) -> Ran:
    """Runs the program in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(arguments)
    return Ran(code, out.getvalue(), err.getvalue())


def printed(line: str, folder: Path) -> str:
    """Returns the output of a command line of a page; a shell runs commands that are not simple calls of `unisono`."""
    command, _, first = line.partition(" | head -n ")
    program, *words = shlex.split(command)
    if program != "unisono" or {"|", "run", "--load"} & set(words):
        env = {**os.environ, "PATH": f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}"}
        done = subprocess.run(["bash", "-c", line], cwd=folder, env=env, capture_output=True, text=True, check=False)
        # Open MPI's launcher may print null characters between the lines of its ranks.
        ran = Ran(done.returncode, done.stdout.replace("\0", ""), done.stderr)
    else:
        with contextlib.chdir(folder):
            ran = call(*words)
        ran = Ran(ran.code, "".join(ran.out.splitlines(keepends=True)[: int(first) if first else None]), ran.err)
    assert ran.code == 0, f"{line}: {ran.err}"
    return ran.out


def other_kinds(*machines: str) -> dict[str, str]:
    """Returns a preset of each kind of machine, except the kinds of the given machines."""
    kinds = {preset["name"]: preset["kind"] for preset in unisono.machine_presets()}
    known = {kinds[machine] for machine in machines}
    return {kind: name for name, kind in reversed(kinds.items()) if kind not in known}


def network_text(
    topology: str,
    name: str = "mine",
    *,
    planes: int = 1,
    gbps: int = 400,
    ns: tuple[int, int, int] = (40, 20, 20),
    packet_bytes: int = 8192,
    buffer_bytes: int = 65536,
    more: str = "",
) -> str:
    """Returns the file of a network. ``ns`` are the latencies of a link, an input and an output."""
    link, enter, leave = ns
    return (
        f'name = "{name}"\nkind = "network"\nplanes = {planes}\nlink_gbps = {gbps}\nlink_latency_ns = {link}\n'
        f"input_latency_ns = {enter}\noutput_latency_ns = {leave}\npacket_bytes = {packet_bytes}\n"
        f"buffer_bytes = {buffer_bytes}\n{more}[topology]\n{topology}"
    )


def four_accelerators(file: Path, cables: Iterable[tuple[int, int, int]], planes: int = 1) -> Path:
    """Writes a network, named after its file, of four accelerators and cables (two nodes and Gbit/s each)."""
    edges = "\n".join(f"{a} {b} gbps={rate}" for a, b, rate in cables)
    topology = f"name = \"graph\"\naccelerators = 4\nedges = '''\n{edges}\n'''\n"
    return written(file, network_text(topology, file.stem, planes=planes, gbps=100, ns=(100, 0, 0), packet_bytes=4096))


def written(file: Path, text: str) -> Path:
    """Writes a file, and returns its path."""
    file.write_text(text)
    return file


def json_of(*arguments: str) -> Any:
    """Returns the JSON object that a command prints; the command must end with 0."""
    ran = call(*arguments, "--json")
    assert ran.code == 0, ran.err
    return ran.json


def text_of(*arguments: str) -> str:
    """Returns what a command prints on standard output; the command must end with 0."""
    ran = call(*arguments)
    assert ran.code == 0, ran.err
    return ran.out


def refusal(*arguments: str) -> str:
    """Returns the error of a command, which must end with 2 and print nothing on standard output."""
    ran = call(*arguments)
    assert (ran.code, ran.out) == (2, ""), ran
    return ran.err


#: True under `make soak`, where random tests have more cases.
SOAK = os.environ.get("UNISONO_SOAK", "0") == "1"
Spawn = Callable[..., Ran]
Shared = Callable[[str, Callable[[], Any]], Any]


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Shared:
    """Returns a function that computes each named value once a run, in the first worker that requests it."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    folder = folder / "shared"
    folder.mkdir(exist_ok=True)
    known: dict[str, Any] = {}

    def of(name: str, compute: Callable[[], Any]) -> Any:
        if name in known:
            return known[name]
        file = folder / name
        with (folder / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not file.exists():
                file.write_bytes(pickle.dumps(compute()))
        known[name] = pickle.loads(file.read_bytes())
        return known[name]

    return of


@pytest.fixture
def spawn(tmp_path: Path) -> Spawn:
    """Returns a function that runs the program as a process, in an empty folder."""

    def run(*arguments: str) -> Ran:
        done = subprocess.run(
            [str(PROGRAM), *arguments],
            cwd=tmp_path,
            env={**os.environ, "COLUMNS": "80"},
            capture_output=True,
            text=True,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def within(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Spawn:
    """Returns a faster `spawn`, which runs the program in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return call


@pytest.fixture(autouse=True)
def _registry() -> Iterator[None]:
    """Removes algorithms that a test adds, since other tests loop through all algorithms."""
    before = {about["name"] for about in unisono.algorithms()}
    yield
    for about in unisono.algorithms():
        if about["name"] not in before:
            unisono.remove_algorithm(about["name"])


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no Chromium is installed here (on Debian and Ubuntu the package chromium)")
    with sync_playwright() as play:
        made = play.chromium.launch(executable_path=found, args=QUIET, timeout=0)
        yield made
        made.close()
