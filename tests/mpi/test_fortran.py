"""Programs in Fortran: `mpif.h`, `use mpi` and `use mpi_f08` of Open MPI and MPICH, as Debian packages them."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from unisono.mpi.launchers import LIBRARY

from ..python.conftest import Shared
from ..python.test_mpi import SOURCES, Compile, compiled, plan, report, run

__all__ = ["compiled", "plan"]

Plans = Callable[[int], Path]
BINDINGS = {"mpif.h": 1, "mpi": 2, "mpi_f08": 3}
#: The program's number of calls of each collective that a plan serves; non-blocking names start with an i.
CALLS = {
    "allgather": 6,
    "allreduce": 15,
    "alltoall": 3,
    "barrier": 3,
    "broadcast": 3,
    "reduce": 3,
    "reduce-scatter": 6,
}
BEGUN = {"iallgather", "iallreduce", "ialltoall", "ibarrier", "ibroadcast", "ireduce", "ireduce-scatter"}


#: A function that compiles the program with the bindings of a library, or skips the test if they are missing.
Built = Callable[[str, str], Path]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, shared: Shared) -> Built:
    """Returns a function that compiles each program once a run."""

    def of(library: str, binding: str) -> Path:
        compiler = shutil.which(f"mpif90.{library}")
        if compiler is None:
            pytest.skip(f"no mpif90.{library}: a Fortran compiler with the bindings (Debian: lib{library}-dev)")

        def build() -> Path:
            folder = tmp_path_factory.mktemp("fortran")
            target, source = folder / "program", SOURCES / "fortran" / "collectives.F90"
            # mpif.h declares no interfaces, so compilers object to calls of one subroutine with several types.
            words = ["-w", "-O1", "-fallow-argument-mismatch", f"-DBINDING={BINDINGS[binding]}"]
            subprocess.run([compiler, *words, str(source), "-o", str(target)], check=True, cwd=folder)
            return target

        path: Path = shared(f"fortran-{library}-{BINDINGS[binding]}", build)
        return path

    return of


def under(library: str, ranks: int, program: Path, *options: str, **env: str) -> str:
    """Runs the program, and returns its output, without the notes of a launcher."""
    # Debian's builds of the libraries otherwise report missing hardware.
    quiet = {"OMPI_MCA_mca_base_component_show_load_errors": "0", "OMPI_MCA_btl": "self,vader", "OMPI_MCA_pml": "ob1"}
    done = run(ranks, program, options=("--launcher", f"mpiexec.{library}", *options), env=quiet | env)
    assert done.code == 0, done.out + done.err
    return done.out


@pytest.mark.parametrize("binding", BINDINGS)
@pytest.mark.parametrize(
    ("library", "ranks"), [pytest.param("openmpi", 2, marks=pytest.mark.soak), ("openmpi", 3), ("mpich", 2)]
)
def test_fortran_programs_are_served(
    built: Built, plan: Plans, tmp_path: Path, library: str, ranks: int, binding: str
) -> None:
    said, program = tmp_path / "report", built(library, binding)
    assert under(library, ranks, program, "--plan", str(plan(ranks)), "--report", str(said)) == f"ok {ranks}\n"
    rows = report(said)
    served = {name: sum(n for (k, a), n in rows.items() if k == name and a != "library") for name in CALLS}
    assert served == CALLS
    passed = [line.split()[:2] for line in said.read_text().splitlines() if "passed through" in line]
    assert {"MPI_Exscan", "MPI_Iallreduce", "MPI_Ibarrier"} <= {name for name, _ in passed}


@pytest.mark.parametrize("binding", BINDINGS)
@pytest.mark.parametrize("library", ["openmpi", "mpich"])
def test_fortran_programs_begin_calls(built: Built, plan: Plans, tmp_path: Path, library: str, binding: str) -> None:
    """MPICH before 4.3 cannot advance begun calls of a plan, so the library makes them."""
    said, program = tmp_path / "report", built(library, binding)
    options = ("--plan", str(plan(2)), "--report", str(said))
    assert under(library, 2, program, *options, "--nonblocking") == "ok 2\n"
    begun = {name for name, algorithm in report(said) if name in BEGUN and algorithm != "library"}
    assert begun == BEGUN or (library == "mpich" and not begun)
    assert under(library, 2, program, *options, "--check") == "ok 2\n"
    assert " 0 differences" in said.read_text()


@pytest.mark.parametrize("library", ["openmpi", "mpich"])
def test_fortran_programs_run_without_a_plan(built: Built, tmp_path: Path, library: str) -> None:
    said, program = tmp_path / "report", built(library, "mpi_f08")
    assert under(library, 2, program) == "ok 2\n"
    assert under(library, 2, program, UNISONO_OFF="1") == "ok 2\n"
    assert under(library, 2, program, "--report", str(said)) == "ok 2\n"
    assert report(said)["allreduce", "library"] == CALLS["allreduce"]


def test_every_name_has_the_one_that_open_mpis_module_calls() -> None:
    names = subprocess.run(["nm", "-D", "--defined-only", str(LIBRARY)], capture_output=True, text=True, check=True)
    defined = {line.split()[-1] for line in names.stdout.splitlines()}
    fortran = {name for name in defined if name.startswith("mpi_") and not name.endswith("_f08_")}
    assert {"mpi_allreduce_", "mpi_init_", "mpi_finalize_", "mpi_gather_"} <= fortran
    assert {f"ompi_{name.removeprefix('mpi_')}f" for name in fortran} <= defined


@pytest.mark.parametrize("options", [(), ("--nonblocking",)])
@pytest.mark.parametrize("ranks", [2, 3])
def test_names_are_called_as_compilers_do(
    compiled: Compile, plan: Plans, tmp_path: Path, ranks: int, options: tuple[str, ...]
) -> None:
    """A C program calls the symbols that Fortran compilers use, with an Open MPI that has no Fortran bindings."""
    said = tmp_path / "report"
    options = ("--plan", str(plan(ranks)), "--report", str(said), *options)
    done = run(ranks, compiled("names", "openmpi"), options=options)
    assert (done.code, done.out) == (0, f"ok {ranks}\n"), done.out + done.err
    rows = report(said)
    assert rows["allreduce", "recursive-doubling"] == 2
    assert rows.get(("iallreduce", "recursive-doubling"), 0) == (5 if "--nonblocking" in options else 0)
