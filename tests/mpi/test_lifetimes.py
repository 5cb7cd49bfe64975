"""Calls that a program drops, interrupts or leaves unfinished, and threads that share a world."""

from pathlib import Path

import pytest
import unisono as un

from ..python.conftest import ROOT
from ..python.test_mpi import MPICH, OPEN_MPI
from .launching import Case, launch, together

SCRIPT = ROOT / "tests" / "mpi" / "lifetimes.py"
ENVIRONMENTS = pytest.mark.parametrize("environment", [OPEN_MPI, MPICH], ids=["openmpi", "mpich"])


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plans") / "two.plan"
    made = [un.plan(collective, "archer", shape=2, elements=8) for collective in ("allreduce", "broadcast")]
    un.save_plans([(one, 0, None) for one in made], path)
    return path


#: Cases by environment that do not end the program, so that one start of the ranks runs all.
GO_ON = {
    OPEN_MPI: (
        "dropped",
        "dropped-in-a-thread",
        "dropped-in-a-cycle",
        "dropped-by-an-error",
        "interrupted",
        "used-by-two-threads",
        "wrong-arguments",
    ),
    MPICH: ("dropped", "interrupted", "used-by-two-threads"),
}


def run(environment: Path, case: str, plan: Path | str, folder: Path, **variables: str) -> str:
    """Runs a case that ends the program, and returns its standard error."""
    done = launch(environment, 2, SCRIPT, case, plan, folder, **variables)
    # A launcher may print the text of one rank within the line of another rank.
    said = "".join(done.stdout.split())
    assert (done.returncode, said) == (0, "okok"), done.stdout + done.stderr
    return done.stderr


@ENVIRONMENTS
def test_calls_outlive_their_owners(environment: Path, plan: Path, tmp_path: Path) -> None:
    """Every case of `GO_ON` passes; a dropped call passes in a world without a plan too."""
    cases = [Case([SCRIPT, case, plan, tmp_path]) for case in GO_ON[environment]]
    cases += [Case([SCRIPT, "dropped", "-", tmp_path])]
    for case, runs in zip(cases, together(environment, 2, cases, tmp_path), strict=True):
        for ran in runs:
            assert (ran.out, ran.err) == ("ok\n", ""), case


@ENVIRONMENTS
@pytest.mark.parametrize("case", ["left-behind", "finalized"])
def test_calls_outlive_the_program(environment: Path, case: str, plan: Path, tmp_path: Path) -> None:
    assert "unisono:" not in run(environment, case, plan, tmp_path)


@pytest.mark.parametrize(("case", "planned"), [("left-and-dropped", True), ("left-behind", False)])
def test_calls_of_one_rank_outlive_the_program(case: str, planned: bool, plan: Path, tmp_path: Path) -> None:
    assert "unisono:" not in run(OPEN_MPI, case, plan if planned else "-", tmp_path)


@pytest.mark.parametrize("case", ["never-met", "a-daemon-waits"])
def test_the_end_of_a_program_waits_for_nobody_for_good(case: str, plan: Path, tmp_path: Path) -> None:
    said = run(OPEN_MPI, case, plan, tmp_path, UNISONO_PATIENCE="1")
    assert said.count("1 collective calls had not ended") == 1


@pytest.mark.parametrize(
    ("environment", "level"),
    [
        pytest.param(OPEN_MPI, "serialized", id="openmpi-serialized"),
        pytest.param(MPICH, "funneled", id="mpich-funneled"),
        pytest.param(OPEN_MPI, "funneled", id="openmpi-funneled", marks=pytest.mark.soak),
        pytest.param(MPICH, "serialized", id="mpich-serialized", marks=pytest.mark.soak),
    ],
)
def test_threads_that_mpi_does_not_serve_are_refused(environment: Path, level: str, plan: Path, tmp_path: Path) -> None:
    run(environment, f"level-{level}", plan, tmp_path)
