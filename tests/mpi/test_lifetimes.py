"""Calls that a program drops, interrupts or leaves behind, and threads that share a world."""

import subprocess
from pathlib import Path

import pytest
import unisono as un

from ..python.conftest import ROOT
from ..python.test_mpi import MPICH, OPEN_MPI
from .launching import launch

SCRIPT = ROOT / "tests" / "mpi" / "lifetimes.py"
ENVIRONMENTS = pytest.mark.parametrize("environment", [OPEN_MPI, MPICH], ids=["openmpi", "mpich"])


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plans") / "two.plan"
    made = [un.plan(collective, "archer", shape=2, elements=8) for collective in ("allreduce", "broadcast")]
    un.save_plans([(one, 0, None) for one in made], path)
    return path


def both_are_well(done: subprocess.CompletedProcess[str]) -> None:
    """A launcher may put the text of one rank into the middle of another's line."""
    said = "".join(done.stdout.split())
    assert (done.returncode, said) == (0, "okok"), done.stdout + done.stderr


def run(environment: Path, case: str, plan: Path | str, folder: Path, **variables: str) -> str:
    done = launch(environment, 2, SCRIPT, case, plan, folder, **variables)
    both_are_well(done)
    return done.stderr


@ENVIRONMENTS
@pytest.mark.parametrize("case", ["dropped", "left-behind", "finalized", "interrupted", "used-by-two-threads"])
def test_calls_outlive_their_owners(environment: Path, case: str, plan: Path, tmp_path: Path) -> None:
    said = run(environment, case, plan, tmp_path)
    assert "unisono:" not in said


@pytest.mark.parametrize(
    "case",
    ["dropped-in-a-thread", "dropped-in-a-cycle", "dropped-by-an-error", "left-and-dropped", "wrong-arguments"],
)
def test_however_they_are_dropped(case: str, plan: Path, tmp_path: Path) -> None:
    assert "unisono:" not in run(OPEN_MPI, case, plan, tmp_path)


@pytest.mark.parametrize("case", ["never-met", "a-daemon-waits"])
def test_the_end_of_a_program_waits_for_nobody_for_good(case: str, plan: Path, tmp_path: Path) -> None:
    said = run(OPEN_MPI, case, plan, tmp_path, UNISONO_PATIENCE="1")
    assert said.count("1 collective calls had not ended") == 1


@pytest.mark.parametrize("case", ["dropped", "left-behind"])
def test_calls_of_the_library_are_kept_too(case: str, plan: Path, tmp_path: Path) -> None:
    script = SCRIPT.read_text().replace("other = mpi.world(plan=plan)", "other = mpi.world()")
    copy = tmp_path / "library.py"
    copy.write_text(script)
    done = launch(OPEN_MPI, 2, copy, case, "-", tmp_path)
    both_are_well(done)


@ENVIRONMENTS
@pytest.mark.parametrize("level", ["serialized", "funneled"])
def test_threads_that_mpi_does_not_serve_are_refused(environment: Path, level: str, plan: Path, tmp_path: Path) -> None:
    run(environment, f"level-{level}", plan, tmp_path)
