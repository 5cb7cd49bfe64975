"""`unisono.mpi`: worlds under mpiexec with a machine, with a plan file, and without either."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import unisono as un

from ..python.conftest import ROOT, SOAK, Shared
from ..python.test_mpi import MPICH, OPEN_MPI, PATIENCE, YIELD
from .launching import Case, Started, launch, started_once

SCRIPT = ROOT / "tests" / "mpi" / "world.py"


#: Arguments with which rank 0 cannot make a world.
UNUSABLE = ('machine="nowhere.toml"', 'plan="nowhere.plan"', 'machine="wse2"')
TOLD = """
from unisono import InputError, mpi
try:
    mpi.world({})
except InputError as error:
    print("told:", error, flush=True)
"""
NETWORK = """
import numpy as np
from unisono import mpi
world = mpi.world(machine="torus2d-small")
assert (world.allreduce(np.ones(1000, np.float32)) == 4).all()
print(world.last.algorithm, world.last.why, flush=True)
"""


SAYS = """
import numpy as np
from mpi4py import MPI
from unisono import mpi
world = mpi.world(plan="{plan}", safe_ops={safe})
x = np.ones(100)
def said(*arguments, **options):
    world.allreduce(*arguments, **options)
    if world.rank == 0:
        print(world.last)
said(x.astype("f4"))
said(x)
said(x[:1].copy())
said(np.ones(20000))
world.bcast(x)
if world.rank == 0:
    print(world.last, world.last.planned)
# Affine maps under composition: an operator that does not commute.
def compose(left, right, datatype):
    a, b = np.frombuffer(left, "i8").reshape(-1, 2), np.frombuffer(right, "i8").reshape(-1, 2)
    b[:] = np.stack([a[:, 0] * b[:, 0], a[:, 0] * b[:, 1] + a[:, 1]], axis=1)
largest = MPI.Op.Create(lambda a, b, t: np.copyto(np.frombuffer(b, "f4"), np.maximum(
    np.frombuffer(a, "f4"), np.frombuffer(b, "f4"))), commute=True)
y = np.full(100, world.rank, "f4")
said(y, op=largest)
assert (y == world.ranks - 1).all()
said(np.arange(100, dtype="f4"), op="max")
"""


REASONS = """
import numpy as np
from mpi4py import MPI
from unisono import mpi
world = mpi.world(plan="{plan}", safe_ops=True)
def said(call, *arguments, **options):
    call(*arguments, **options)
    if world.rank == 0:
        print(world.last.collective, world.last.bytes, world.last.why)
def compose(left, right, datatype):
    a, b = np.frombuffer(left, "i8").reshape(-1, 2), np.frombuffer(right, "i8").reshape(-1, 2)
    b[:] = np.stack([a[:, 0] * b[:, 0], a[:, 0] * b[:, 1] + a[:, 1]], axis=1)
said(world.allreduce, np.ones(100))
said(world.allreduce, np.ones(1000))
said(world.allreduce, np.ones(5000))
maps = np.ones((8, 2), "i8")
composed = MPI.Op.Create(compose, commute=False)
said(world.allreduce, maps, op=composed)
said(world.allgather, np.ones(7, "u1"))
said(world.allgather, np.ones(6, "u1"))
own = world.last
said(world.reduce, maps.copy(), op=composed, root=1)
said(world.bcast, np.ones(8))
if world.rank == 0:
    print(own.algorithm, own.planned)
"""


def script(folder: Path, name: str, text: str) -> Path:
    path = folder / f"{name}.py"
    path.write_text(text)
    return path


def plan_that_says(plan: Path) -> Path:
    made = un.plan("allreduce", "archer", shape=2, elements=100, algorithm="recursive-doubling")
    rows: list[tuple[un.Plan | un.Schedule | tuple[str, int], int, int | None]] = [
        (made, 64, 1000),
        (("allreduce", 2), 1001, 100_000),
    ]
    un.save_plans(rows, plan)
    return plan


def plan_with_reasons(plan: Path) -> Path:
    # A schedule without a name for pieces of three elements, in two messages, serves pieces divisible by three.
    own = un.ScheduleBuilder(ranks=2, elements=3, collective="allgather")
    streams = [own.stream(rank, 1 - rank) for rank in range(2)]
    for first, last in ((0, 1), (1, 3)):
        for rank in range(2):
            given, got = own.input(rank)[first:last], own.output(rank)
            here, there = 3 * rank, 3 * (1 - rank)
            own.combine(rank, [given], [streams[rank], got[here + first : here + last]])
            own.combine(rank, [streams[1 - rank]], [got[there + first : there + last]])
    of = partial(un.plan, machine="archer", shape=2)
    un.save_plans(
        [
            (of("allreduce", elements=100), 64, 1000),
            (("allreduce", 2), 1001, 10_000),
            (own.build(), 0, None),
            (of("reduce", elements=8, op="ordered", dtype="i64"), 0, None),
            (of("broadcast", elements=8), 0, None, 1),
        ],
        plan,
    )
    return plan


def plan_of_three(plan: Path) -> Path:
    made = un.plan("allreduce", "archer", shape=3, elements=1024, algorithm="ring")
    gathered = un.plan("allgather", "archer", shape=3, elements=16)
    un.save_plans([(made, 64, 9000, 3), (made, 9001, None, 2), (gathered, 0, None)], plan)
    return plan


def cases(ranks: int, folder: Path) -> dict[str, Case]:
    """Returns the cases for a number of ranks, by name."""
    plan = folder / "t.plan"
    found = {"machine": Case([SCRIPT, "machine", "archer"])} if ranks < 4 or SOAK else {}
    match ranks:
        case 2:
            found["nothing"] = Case([SCRIPT, "nothing", "-"])
            for safe in (False, True):
                text = SAYS.format(plan=plan_that_says(plan), safe=safe)
                found[f"says {safe}"] = Case([script(folder, f"says{safe}", text)])
            (folder / "reasons").mkdir()
            text = REASONS.format(plan=plan_with_reasons(folder / "reasons" / "t.plan"))
            found["reasons"] = Case([script(folder, "reasons", text)])
        case 3:
            found["plan"] = Case([SCRIPT, "plan", plan_of_three(plan)])
            for number, arguments in enumerate(UNUSABLE):
                found[arguments] = Case([script(folder, f"told{number}", TOLD.format(arguments))])
        case 4:
            found["network"] = Case([script(folder, "network", NETWORK)])
    return found


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory, shared: Shared) -> Started:
    """Returns a function that runs all cases on a number of ranks."""
    return started_once("worlds", cases, shared, tmp_path_factory)


@pytest.mark.parametrize("ranks", [1, 2, 3, pytest.param(4, marks=pytest.mark.soak)])
def test_a_world_plans_by_a_machine(worlds: Started, ranks: int) -> None:
    _, size, planned, calls = worlds(ranks)["machine"][0].out.split()
    assert int(size) == ranks
    assert planned == calls


def test_a_world_goes_by_a_plan_file(worlds: Started) -> None:
    said, ranks, planned, calls = worlds(3)["plan"][0].out.split()
    assert (said, ranks) == ("ok", "3")
    assert 0 < int(planned) < int(calls)


def test_a_world_without_a_plan_is_the_librarys(worlds: Started) -> None:
    assert worlds(2)["nothing"][0].out.startswith("ok 2 0 ")


@pytest.mark.parametrize("safe", [False, True])
def test_what_ran_and_why(worlds: Started, safe: bool) -> None:
    assert worlds(2)[f"says {safe}"][0].out.splitlines() == [
        "allreduce of 400 bytes on 2 ranks: recursive-doubling, by t.plan, 64 to 1000 bytes",
        "allreduce of 800 bytes on 2 ranks: recursive-doubling, by t.plan, 64 to 1000 bytes",
        "allreduce of 8 bytes on 2 ranks: library, because t.plan has no row for these bytes",
        "allreduce of 160000 bytes on 2 ranks: library, because t.plan has no row for these bytes",
        "broadcast of 800 bytes on 2 ranks: library, because t.plan has no row for broadcast on 2 ranks False",
        "allreduce of 400 bytes on 2 ranks: recursive-doubling, by t.plan, 64 to 1000 bytes"
        if safe
        else "allreduce of 400 bytes on 2 ranks: library, "
        "because the operator is the program's own, and was not declared safe",
        "allreduce of 400 bytes on 2 ranks: recursive-doubling, by t.plan, 64 to 1000 bytes",
    ]


def test_a_world_states_why_no_row_serves(worlds: Started) -> None:
    """The library has its own sentence for each reason why no row serves a call."""
    assert worlds(2)["reasons"][0].out.splitlines() == [
        "allreduce 800 by t.plan, 64 to 1000 bytes",
        "allreduce 8000 because t.plan leaves these bytes to it",
        "allreduce 40000 because t.plan has no row for these bytes",
        "allreduce 128 because no row of t.plan for these bytes fits the operator",
        "allgather 7 because the schedule of t.plan does not divide this count",
        "allgather 6 by t.plan, 0 to any bytes",
        "reduce 128 because the row of t.plan serves another root",
        "broadcast 64 because t.plan has no row for broadcast on 2 ranks, 2 a node",
        "unnamed True",
    ]


def test_an_operator_that_does_not_commute_keeps_its_order(tmp_path: Path) -> None:
    program = """
import numpy as np
from mpi4py import MPI
from unisono import mpi
world = mpi.world(machine="archer", safe_ops=True)
def compose(left, right, datatype):
    a, b = np.frombuffer(left, "i8").reshape(-1, 2), np.frombuffer(right, "i8").reshape(-1, 2)
    b[:] = np.stack([a[:, 0] * b[:, 0], a[:, 0] * b[:, 1] + a[:, 1]], axis=1)
op = MPI.Op.Create(compose, commute=False)
for count in (2, 14, 4000):
    def given(rank):
        return (np.arange(count) * 3 + rank + 2) % 5
    # Elements go in pairs, so whole vectors only.
    pair = MPI.INT64_T.Create_contiguous(2).Commit()
    x = given(world.rank)
    expected = given(0).reshape(-1, 2)
    for rank in range(1, world.ranks):
        b = given(rank).reshape(-1, 2)
        expected = np.stack([expected[:, 0] * b[:, 0], expected[:, 0] * b[:, 1] + expected[:, 1]], axis=1)
    MPI.COMM_WORLD.Allreduce(MPI.IN_PLACE, [x, count // 2, pair], op)
    assert (x.reshape(-1, 2) == expected).all(), (count, x, expected)
if world.rank == 0:
    print("ok")
"""
    made = un.plan("allreduce", "archer", shape=4, elements=64, op="ordered", dtype="i64")
    plan = tmp_path / "ordered.plan"
    un.save_plans([(made, 0, None)], plan)
    script = tmp_path / "compose.py"
    script.write_text(program)
    report = tmp_path / "report"
    options = ["-n", "4", "--plan", str(plan), "--report", str(report), "--safe-ops"]
    command = [sys.executable, "-m", "unisono", "run", *options, "--", str(OPEN_MPI / "bin" / "python"), str(script)]
    done = subprocess.run(
        command, env={**os.environ, **YIELD}, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.replace("\0", "") == "ok\n"
    assert f"  {made.algorithm}" in report.read_text()


@pytest.mark.parametrize("arguments", UNUSABLE)
def test_what_rank_0_cannot_use_all_ranks_are_told(worlds: Started, arguments: str) -> None:
    told = [ran.out for ran in worlds(3)[arguments]]
    assert told[0].startswith("told: ")
    assert told == [told[0]] * 3


def test_without_mpi_there_is_one_sentence() -> None:
    program = """
import sys
sys.modules["mpi4py"] = None
import unisono
from unisono import mpi
try:
    mpi.world(machine="archer")
except unisono.Error as error:
    print(error)
from unisono.cli import main
sys.argv = ["unisono", "tune", "allreduce", "--machine", "archer", "-o", "/tmp/x.plan"]
sys.exit(main())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout.startswith("no MPI for Python here")
    assert done.stdout.count("\n") == 1
    assert done.stderr.startswith("error: no MPI for Python here")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("cliques", "expected"),
    [pytest.param(1, "4 ring", marks=pytest.mark.soak), (2, "2 rabenseifner"), (4, "1 recursive-doubling")],
)
def test_ranks_per_node_choose_the_row(tmp_path: Path, cliques: int, expected: str) -> None:
    """MPICH can emulate several nodes, for whose numbers of ranks the plan has its own rows."""
    by_nodes = {
        n: un.plan("allreduce", "archer", shape=4, elements=64, algorithm=name)
        for n, name in ((4, "ring"), (2, "rabenseifner"), (1, "recursive-doubling"))
    }
    plan = tmp_path / "nodes.plan"
    un.save_plans([(made, 0, None, n) for n, made in by_nodes.items()], plan)
    program = f"""
import numpy as np
from unisono import mpi
world = mpi.world(plan="{plan}")
x = np.arange(50.0)
world.allreduce(x)
assert (x == 4 * np.arange(50)).all()
if world.rank == 0:
    print(world.per_node, world.last.algorithm)
"""
    done = launch(MPICH, 4, "-c", program, MPIR_CVAR_NUM_CLIQUES=str(cliques))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == f"{expected}\n"


def test_a_world_plans_on_a_network(worlds: Started) -> None:
    for ran in worlds(4)["network"]:
        assert "first by the model links of torus2d-small" in ran.out
