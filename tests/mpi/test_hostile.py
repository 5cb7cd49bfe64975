"""Wrong arguments, wrong files, and meaningless values, given to the library for MPI programs."""

import os
import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ..python.conftest import SOAK
from ..python.test_mpi import MPICH, OPEN_MPI, PATIENCE, SOURCES, Compile, compiled, plan, report, run

__all__ = ["compiled", "plan"]


@pytest.mark.parametrize(
    ("abi", "ranks"), [pytest.param("openmpi", 2, marks=pytest.mark.soak), ("openmpi", 3), ("mpich", 2), ("abi", 2)]
)
def test_wrong_calls_end_as_the_librarys(
    compiled: Compile, plan: Callable[[int], Path], tmp_path: Path, abi: str, ranks: int
) -> None:
    said = tmp_path / "report"
    done = run(ranks, compiled("hostile", abi), options=("--plan", str(plan(ranks)), "--report", str(said)))
    assert (done.code, done.out) == (0, f"ok {ranks}\n"), done.out + done.err
    # The plan served the correct calls.
    assert report(said)["allreduce", "recursive-doubling"] > 40


def bare(program: Path, ranks: int, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs a program directly under Open MPI's launcher, with the preload library and the given variables."""
    from unisono.mpi.launchers import LIBRARY

    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    names = [word for name in variables for word in ("-x", name)]
    command = [OPEN_MPI / "bin" / "mpiexec", "--oversubscribe", "-n", str(ranks), "-x", f"LD_PRELOAD={LIBRARY}", *names]
    return subprocess.run(
        [*map(str, command), str(program), "10"],
        env={**os.environ, **root, **variables},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (os.mkfifo, "is not a regular file"),
        (Path.mkdir, "is not a regular file"),
        (lambda path: path.symlink_to("/dev/zero"), "is not a regular file"),
        (lambda path: path.touch(), "this is no plan"),
        (lambda path: path.write_bytes(b"UNISPLAN" + bytes(range(256))), "version"),
        # The file is sparse, so it uses no disk space.
        (lambda path: os.truncate(os.open(path, os.O_CREAT | os.O_RDWR), 1 << 40), "read up to 1073741824 bytes"),
    ],
    ids=["fifo", "folder", "device", "empty", "garbage", "huge"],
)
def test_a_plan_that_is_no_plan_keeps_nobody_waiting(
    compiled: Compile, tmp_path: Path, make: Callable[[Path], object], why: str
) -> None:
    path = tmp_path / "no.plan"
    make(path)
    done = bare(compiled("collectives", "openmpi"), 2, UNISONO_PLAN=str(path))
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.replace("\0", "").splitlines() if line.startswith("unisono:")]
    assert len(lines) == 1, done.stderr
    assert why in lines[0]
    assert "the program runs unplanned" in lines[0]


def test_a_report_that_nobody_reads_keeps_nobody_waiting(
    compiled: Compile, plan: Callable[[int], Path], tmp_path: Path
) -> None:
    path = tmp_path / "report"
    os.mkfifo(path)
    program = compiled("collectives", "openmpi")
    done = bare(program, 2, UNISONO_PLAN=str(plan(2)), UNISONO_REPORT=str(path))
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(f"the report '{path}' cannot be written") == 1


@pytest.mark.parametrize(
    ("value", "off"),
    [("1", True), ("on", True), ("TRUE", True), ("0", False), ("off", False), ("False", False), ("", False)],
)
def test_switches_have_known_values(
    compiled: Compile, plan: Callable[[int], Path], tmp_path: Path, value: str, off: bool
) -> None:
    path = tmp_path / "report"
    done = bare(
        compiled("collectives", "openmpi"), 1, UNISONO_PLAN=str(plan(1)), UNISONO_REPORT=str(path), UNISONO_OFF=value
    )
    assert done.returncode == 0, done.stderr
    assert "unisono:" not in done.stderr
    assert path.exists() != off


def test_another_value_of_a_switch_is_on_and_named_once(
    compiled: Compile, plan: Callable[[int], Path], tmp_path: Path
) -> None:
    path = tmp_path / "report"
    done = bare(
        compiled("collectives", "openmpi"), 2, UNISONO_PLAN=str(plan(2)), UNISONO_REPORT=str(path), UNISONO_OFF="maybe"
    )
    assert done.returncode == 0, done.stderr
    line = 'UNISONO_OFF is "maybe", which counts as 1; accepted are 0, 1, false, true, off and on'
    assert done.stderr.count(line) == 1
    assert not path.exists()


#: A command that sets the variables of its first argument if its own rank is among those of its second argument.
_ON_SOME = 'case " $2 " in *" ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} "*) export $1;; esac; shift 2; exec "$@"'


@pytest.mark.parametrize("abi", ["openmpi", "mpich"])
@pytest.mark.parametrize("seed", range(12 if SOAK else 3))
def test_the_environment_of_some_ranks_keeps_no_rank_waiting(
    compiled: Compile, plan: Callable[[int], Path], tmp_path: Path, abi: str, seed: int
) -> None:
    """Switches that some ranks set, other than on those that report, leave all calls to the MPI library."""
    draw = random.Random(seed)
    names = ["OFF", *draw.sample(["CHECK", "SAFE_OPS", "NONBLOCKING", "ANYWHERE", "UNLIKE_BITS"], draw.randrange(3))]
    ranks = draw.sample(range(3), draw.randint(1, 2))
    words = ("sh", "-c", _ON_SOME, "sh", " ".join(f"UNISONO_{name}=1" for name in names), " ".join(map(str, ranks)))
    said = tmp_path / "report"
    options = (
        "--plan",
        str(plan(3)),
        "--report",
        str(said),
        "--launcher",
        str((MPICH if abi == "mpich" else OPEN_MPI) / "bin" / "mpiexec"),
    )
    done = run(3, *words, compiled("collectives", abi), "10", options=options)
    assert done.code == 0, done.err
    # The first rank writes the report, in which no call has another algorithm than the library's.
    assert said.exists() == (0 not in ranks)
    assert 0 in ranks or {algorithm for _, algorithm in report(said)} == {"library"}


def test_every_c_program_is_used() -> None:
    text = "".join(path.read_text() for folder in (SOURCES, SOURCES.parent / "python") for path in folder.glob("*.py"))
    assert all(f'"{path.stem}"' in text or path.name in text for path in SOURCES.glob("*.c"))
