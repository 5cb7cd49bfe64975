"""Faults in a lab: an outage of the network, a cable that stays cut, a killed rank."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import unisono as un
from unisono.lab import ranks
from unisono.lab.session import Lab

from ..python.conftest import PROGRAM, call
from ..python.test_mpi import MPICH, OPEN_MPI, PATIENCE
from .test_lab import folder, lab, processes, spaces

__all__ = ["folder", "lab"]

#: The number of ranks, two on each of the first two hosts.
RANKS = 4
#: A program that computes allreduces until the file of its argument exists.
SUMS = """
import os, pathlib, sys
import numpy as np
from mpi4py import MPI
world = MPI.COMM_WORLD
x, total = np.ones(2), np.empty(2)
begun = False
while True:
    x[1] = pathlib.Path(sys.argv[1]).exists()
    world.Allreduce(x, total)
    if world.rank == 3 and not begun:
        os.write(1, b"began\\n")
        begun = True
    if total[1]:
        break
if world.rank == 0:
    print(f"sum {total[0]:g}", flush=True)
"""
#: A line of the program that kills the rank between two calls.
KILL = "    os.kill(os.getpid(), 9)"
#: A whole line about a wait: a launcher may mix the lines of its ranks.
WAITS = re.compile(
    r"unisono: rank (\d) on (c\d) has waited [\d.]+ s in a planned allreduce of 16 bytes"
    r"((?:(?: and)? (?:for a message of|until a message is taken by) rank \d(?:, \d)*)+)\n"
)


class Job:
    """A program on a lab, with the lines of its standard error so far."""

    def __init__(self, folder: Path, python: Path, program: str, plan: Path) -> None:
        self.stop = folder / "stop"
        words = ("-n", str(RANKS), "--plan", str(plan), "--", str(python), "-c", program, str(self.stop))
        self.process = subprocess.Popen(
            [str(PROGRAM), "lab", "run", *words],
            env={**os.environ, "UNISONO_PATIENCE": "0.5", "PYTHONPATH": str(Path(un.__file__).parents[1])},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.errors: list[str] = []
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        # Open MPI's launcher may print null characters between the lines of its ranks.
        self.errors.extend(line.replace("\0", "") for line in iter(self.process.stderr.readline, ""))

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().replace("\0", "").strip()

    def waits(self) -> dict[int, set[int]]:
        """Returns by rank the ranks that it waits for, from the last line that it printed."""
        found = filter(None, map(WAITS.fullmatch, list(self.errors)))
        return {int(one[1]): {int(rank) for rank in re.findall(r"\d", one[3])} for one in found}

    def until(self, what: str) -> None:
        end = time.monotonic() + PATIENCE
        while not any(what in line for line in list(self.errors)):
            assert time.monotonic() < end, self.errors
            time.sleep(0.02)

    def end(self) -> int:
        """Waits for the end of the job, and of all processes that hold its output."""
        code = self.process.wait(PATIENCE)
        self.reader.join(PATIENCE)
        assert not self.reader.is_alive()
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
        return code


@contextmanager
def job(folder: Path, python: Path, program: str = SUMS) -> Iterator[Job]:
    plan = folder / "t.plan"
    un.save_plans([(un.plan("allreduce", "archer", shape=4, elements=4, algorithm="ring"), 0, None)], plan)
    found = Job(folder, python, program, plan)
    try:
        yield found
    finally:
        found.process.kill()
        found.end()


@pytest.mark.parametrize("environment", [OPEN_MPI, MPICH], ids=["openmpi", "mpich"])
def test_an_outage_is_told_and_survived(lab: Lab, folder: Path, environment: Path) -> None:
    with job(folder, environment / "bin" / "python") as under:
        assert under.line() == "began"
        failed = call("lab", "fail", "c1-s4")
        assert failed.code == 0
        assert failed.err.startswith("warning: no way leads from c0 to c1, since c1-s4 is down")
        under.until("has waited")
        restored = call("lab", "restore", "c1-s4")
        assert (restored.code, restored.err) == (0, "")
        under.until("continues after")
        under.stop.touch()
        assert under.line() == f"sum {RANKS}"
        assert under.end() == 0
        # In a ring each rank waits for its two neighbors only.
        assert all(waits <= {(rank - 1) % RANKS, (rank + 1) % RANKS} for rank, waits in under.waits().items())


@pytest.mark.parametrize("lab", ["user"], indirect=True)
def test_a_job_across_a_cut_cable_ends_when_it_is_killed(lab: Lab, folder: Path) -> None:
    first = lab._first_process()
    of_lab = {pid for pid in processes() if spaces(pid, "pid") & spaces(first, "pid")}
    hosts = {found for pid in of_lab for found in spaces(pid, "net")}

    def of_jobs() -> set[int]:
        return {pid for pid in processes() if spaces(pid, "net") & hosts} - of_lab

    assert not of_jobs()
    with job(folder, OPEN_MPI / "bin" / "python") as under:
        assert under.line() == "began"
        assert call("lab", "fail", "c1-s4").code == 0
        under.until("has waited")
        assert len(of_jobs()) >= RANKS
        under.process.kill()
        # The output of the job ends only if no process of the job has it open.
        assert under.end() == -signal.SIGKILL
    end = time.monotonic() + PATIENCE
    while left := of_jobs():
        assert time.monotonic() < end, left
        time.sleep(0.02)


def test_a_job_starts_only_while_its_command_runs(lab: Lab, folder: Path) -> None:
    """The chain of commands ends without the program if the process that began it has ended."""
    made = folder / "made"
    starter = ranks.launcher(lab, 1, "touch")

    def run(begun: Path) -> None:
        command = ranks.command(lab, starter, 1, ["touch", str(made)], None, None, begun)
        subprocess.run(command, env=ranks.variables(lab, starter), timeout=PATIENCE, check=False)

    with ranks.beginning(lab) as begun:
        pass
    run(begun)
    assert not made.exists()
    with ranks.beginning(lab) as begun:
        run(begun)
    assert made.exists()


@pytest.mark.parametrize("lab", ["root", "user"], indirect=True)
def test_a_command_that_is_killed_in_its_first_moments_leaves_no_job(lab: Lab, folder: Path) -> None:
    """The command is killed when the chain of processes that it starts has each length."""
    first = lab._first_process()
    space = spaces(first, "pid")
    of_lab = {pid for pid in processes() if spaces(pid, "pid") & space}
    hosts = {found for pid in of_lab for found in spaces(pid, "net")}

    def children(pid: int) -> list[int]:
        try:
            return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        except OSError:
            return []

    for length in range(1, 4):
        process = subprocess.Popen([str(PROGRAM), "lab", "run", "-n", "2", "--", "sleep", "1000"])
        end = time.monotonic() + PATIENCE
        chain = [process.pid]
        while len(chain) <= length:
            assert process.poll() is None
            assert time.monotonic() < end
            chain = [process.pid]
            while below := children(chain[-1]):
                chain.append(below[0])
        process.kill()
        process.wait()

        def left(begun: frozenset[int] = frozenset(chain)) -> set[int]:
            inside = hosts | space
            return {pid for pid in processes() if pid in begun or spaces(pid, "net", "pid") & inside} - of_lab

        while found := left():
            assert time.monotonic() < end, found
            time.sleep(0.01)


@pytest.mark.parametrize("environment", [OPEN_MPI, MPICH], ids=["openmpi", "mpich"])
def test_a_killed_rank_ends_the_job(lab: Lab, folder: Path, environment: Path) -> None:
    with job(folder, environment / "bin" / "python", program=SUMS.replace("    begun = True", KILL)) as under:
        assert under.line() == "began"
        assert under.line() == ""
        assert under.end() != 0


@pytest.mark.parametrize("name", ["OMPI_COMM_WORLD_RANK", "PMI_RANK"])
@pytest.mark.parametrize(("waits", "code"), [("exec sleep 600", -signal.SIGKILL), ("sleep 2; exit 3", 3)])
def test_a_launcher_that_outlives_its_ranks_is_killed(name: str, waits: str, code: int) -> None:
    """The launcher is a shell, which starts two ranks, one of which waits for its own child."""
    launched = f"{name}=0 sleep 0.1 & {name}=1 sh -c 'sleep 2; true' & wait; {waits}"
    script = (
        "from unisono.cli.run import passing_signals\nfrom unisono.lab.ranks import StuckLauncher\nimport os, sys\n"
        "stuck = StuckLauncher(lambda command: command, 4)\n"
        "code = passing_signals(['sh', '-c', sys.argv[1]], dict(os.environ), None, stuck)\nprint(code, stuck.is_found)"
    )
    ran = subprocess.run([sys.executable, "-c", script, launched], capture_output=True, text=True, timeout=PATIENCE)
    assert ran.stdout.split() == [str(int(code)), str(code < 0)], ran.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_the_command_reaches_the_ranks(lab: Lab, folder: Path, number: signal.Signals) -> None:
    """The launcher passes the signal to the ranks, which handle it before they are killed."""
    handles = "import pathlib, signal, sys\nsignal.signal(15, lambda *_: pathlib.Path(sys.argv[1]).touch())\n"
    with job(folder, OPEN_MPI / "bin" / "python", program=handles + SUMS) as under:
        assert under.line() == "began"
        under.process.send_signal(number)
        assert under.end() != 0
        assert under.stop.exists()
