"""Programs with further communicators, spawned processes, sessions, and profiling tools."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from unisono.mpi.launchers import LIBRARY

from ..python.test_mpi import COMPILERS, SOURCES, Compile, compiled, plan, report, run

__all__ = ["compiled", "plan"]

Plans = Callable[[int], Path]


@pytest.mark.parametrize(("abi", "ranks"), [("openmpi", 1), ("openmpi", 3), ("openmpi", 4), ("mpich", 3), ("abi", 2)])
def test_other_communicators_than_the_world(
    compiled: Compile, plan: Plans, tmp_path: Path, abi: str, ranks: int
) -> None:
    said = tmp_path / "report"
    done = run(ranks, compiled("worlds", abi), options=("--plan", str(plan(ranks)), "--report", str(said)))
    assert (done.code, done.out) == (0, f"ok {ranks}\n"), done.out + done.err
    assert report(said)["allreduce", "recursive-doubling"] > (20 if ranks > 1 else 0)


@pytest.mark.parametrize("abi", ["openmpi", "mpich", "abi"])
@pytest.mark.parametrize("case", ["spawn", "session", "both"])
def test_processes_that_come_later_and_sessions(
    compiled: Compile, plan: Plans, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, abi: str, case: str
) -> None:
    said = tmp_path / "report"
    # Open MPI reaches spawned processes only by TCP.
    monkeypatch.setenv("OMPI_MCA_btl", "self,sm,tcp")
    # Open MPI starts no more processes than there are cores, unless this option is given.
    launcher = f"{COMPILERS[abi].parent / 'mpiexec'}{' --oversubscribe' if abi == 'openmpi' else ''}"
    options = ("--launcher", launcher, "--plan", str(plan(2)), "--report", str(said))
    done = run(2, compiled("dynamic", abi), case, options=options)
    assert (done.code, done.out) == (0, f"ok {4 if case == 'spawn' else 2}\n"), done.out + done.err
    assert done.err.count("sessions and no MPI_COMM_WORLD; it runs unplanned") == (case == "session")
    if case == "session":
        assert not said.exists()
    else:
        rows = [line.split() for line in said.read_text().splitlines()[2:]]
        served = {row[2]: row[5] for row in rows if row[0] == "allreduce"}
        assert served["2"] == "recursive-doubling"
        assert served.get("4", "library") == "library"


# (MPICH 5.0.2 finds no port, with and without the preload library.)
@pytest.mark.parametrize("abi", ["openmpi", "abi"])
def test_halves_that_connect(compiled: Compile, plan: Plans, abi: str) -> None:
    done = run(3, compiled("dynamic", abi), "port", options=("--plan", str(plan(3))))
    assert (done.code, done.out) == (0, "ok 3\n"), done.out + done.err


def counts(text: str) -> list[int]:
    """Returns the numbers of initializations, sums and broadcasts that the tool counts."""
    found = re.search(r"tool: initialised (\d+), (\d+) sums, (\d+) broadcasts", text)
    assert found is not None, text
    return [int(number) for number in found.groups()]


@pytest.mark.parametrize("abi", ["openmpi", "mpich", "abi"])
def test_a_tool_behind_sees_the_calls_that_no_plan_serves(
    compiled: Compile, plan: Plans, tmp_path: Path, abi: str
) -> None:
    tool, said = tmp_path / "tool.so", tmp_path / "report"
    command = [str(COMPILERS[abi]), "-O1", "-shared", "-fPIC", str(SOURCES / "tool.c"), "-o", str(tool)]
    subprocess.run(command, check=True)
    program, env = compiled("collectives", abi), {"LD_PRELOAD": str(tool)}
    bare = run(3, program, "100", options=("--off",), env=env)
    served = run(3, program, "100", options=("--plan", str(plan(3)), "--report", str(said)), env=env)
    assert (bare.code, bare.out) == (served.code, served.out) == (0, "ok 3\n"), bare.err + served.err
    # The tool counts six sums of all ranks, which the plan serves, one sum between two groups, and three on halves.
    assert counts(bare.err) == [1, 10, 3]
    assert counts(served.err) == [1, 4, 0]
    assert report(said)["allreduce", "recursive-doubling"] == 6


@pytest.mark.parametrize("abi", ["openmpi", "mpich"])
def test_a_tool_in_front_sees_every_call_and_no_plan_serves_them(
    compiled: Compile, plan: Plans, tmp_path: Path, abi: str
) -> None:
    tool, said, start = tmp_path / "tool.so", tmp_path / "report", tmp_path / "start"
    command = [str(COMPILERS[abi]), "-O1", "-shared", "-fPIC", str(SOURCES / "tool.c"), "-o", str(tool)]
    subprocess.run(command, check=True)
    start.write_text(f'#!/bin/sh\nexport LD_PRELOAD="{tool}:{LIBRARY}"\nexec "$@"\n')
    start.chmod(0o755)
    options = ("--plan", str(plan(3)), "--report", str(said), "--launcher", str(COMPILERS[abi].parent / "mpiexec"))
    done = run(3, start, compiled("collectives", abi), "100", options=options)
    assert (done.code, done.out) == (0, "ok 3\n"), done.err
    assert counts(done.err) == [1, 10, 3]
    # The tool replaces MPI_Finalize too, so there is no report.
    assert not said.exists()
