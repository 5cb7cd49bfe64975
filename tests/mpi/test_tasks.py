"""Programs of tasks under mpiexec: the same data on any number of ranks, and errors instead of endless waits."""

import functools
import math
import os
import runpy
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from unisono.tasks import Program

from ..python.conftest import ROOT, Ran, Shared
from ..python.test_mpi import MPICH, OPEN_MPI
from .launching import Case, Started, launch, started_once
from .random_tasks import RandomProgram, digest

SCRIPT = ROOT / "tests" / "mpi" / "tasks.py"
SENT = ROOT / "tests" / "mpi" / "sent.py"
EXAMPLES = ROOT / "examples" / "tasks"
SOAK = os.environ.get("UNISONO_SOAK") == "1"
#: The collectives of each example on four ranks.
PATTERNS = {
    "nbody": {"allgather"},
    "nbody_numba": {"allgather"},
    "wave": {"halo"},
    "matmul": {"alltoall", "allgather", None},
    "power": {"allgather", "allreduce"},
    "jacobi": {"halo", "allreduce"},
    "fft2d": {"alltoall"},
}
#: The numbers of random programs that run in the common start: on hosts, on devices, and with compared messages.
RANDOM, MIXED, SEEN = 8, 4, 16
#: The range of random programs whose messages are sent in pieces.
PIECES = (40, 46)
#: Cases of programs that differ by rank, and the error that all ranks get.
DIFFERENT = {
    "task": "different programs: submission 5 is task 'step3' on rank 0, 2, task 'step3x' on rank 1",
    "fewer": "submission 7 is task 'fetch of a' on rank 0, 2, task 'more' on rank 1",
    "order": "submission 7 is task 'fetch of a' on rank 0, 2, task 'fetch of b' on rank 1",
    "contents": "the contents that array 'drawn' begins with differ between ranks 0 and 1",
}

IN_PLACE = """
import numpy as np
from unisono.tasks import Program, all_, neighborhood, one_to_one

program = Program()
a = program.array(30, init=np.linspace(0, 1, 30) ** 2, name="a")
total = program.array(1, init=[3.0], name="total")

def smooth(old, new):
    # One after the other: what is written must not be read.
    left = new.offset[0] - old.offset[0]
    wide = np.pad(old, (1 - left, 1 - (len(old) - left - len(new))), mode="edge")
    for k in range(len(new)):
        new[k] = wide[k : k + 3].mean()

def turn(old, new):
    first = new.offset[0]
    for k in range(len(new)):
        new[k] = old[len(old) - 1 - first - k]

def count(total, a, more):
    more += a.sum() + total[0] * len(a) / 30

for k in range(4):
    program.task(smooth, range=30, reads=[a[neighborhood(1)]], updates=[a[one_to_one]])
    program.task(turn, range=30, reads=[a[all_]], writes=[a[one_to_one]])
    program.task(count, range=30, reads=[total[all_], a[one_to_one]], reduces=[total[all_]])
result = np.append(program.fetch(a), np.round(program.fetch(total), 9))
"""


def examples(ranks: int) -> list[str]:
    """Returns the examples to run on ``ranks`` ranks, without Numba on most: its start takes longer than all others."""
    return [name for name in PATTERNS if (SOAK and ranks <= 2) or name != "nbody_numba"]


def cases(ranks: int, folder: Path) -> dict[str, Case]:
    """Returns the cases that end without an error, by name."""

    def case(*words: str | Path, **env: str) -> Case:
        return Case([SCRIPT, *words], env)

    (folder / "in_place.py").write_text(IN_PLACE)
    found = {"rounded": case("both", "rounded")} if ranks in (1, 3) or SOAK else {}
    if ranks < 4:
        found["mixed"] = case("mixed", "0", str(MIXED), UNISONO_CHECK_READS="1")
    if ranks < 4 or SOAK:
        found["in place"] = case("both", "example", folder / "in_place.py")
    if ranks == 1:
        return found
    if ranks == 2 or SOAK:
        found["examples"] = case("example", *(EXAMPLES / f"{name}.py" for name in examples(ranks)))
    if ranks < 4 or SOAK:
        found["random 0"] = case("random", "0", str(RANDOM), UNISONO_POINT_TO_POINT="0")
        found["random 1"] = case("random", "0", str(RANDOM), UNISONO_POINT_TO_POINT="1")
    found["floats"] = case("both", "floats")
    if ranks < 4 or SOAK:
        found["sent"] = Case([SENT, folder / "trace.json", "0", str(SEEN)])
    if ranks < 4:
        found["memory"] = case("memory")
    match ranks:
        case 2:
            found["dropped"] = case("dropped", UNISONO_POINT_TO_POINT="1")
        case 3:
            found["mixed by messages"] = case("mixed", "0", str(MIXED), UNISONO_POINT_TO_POINT="1")
            found["pieces"] = case("random", *map(str, PIECES), "16")
            found |= {how: Case([SCRIPT, "wrong", how], fails=True) for how in DIFFERENT}
        case 4:
            found["ways"] = case("ways")
    return found


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory, shared: Shared) -> Started:
    """Returns a function that runs all cases on a number of ranks."""
    return started_once("tasks", cases, shared, tmp_path_factory)


def said(runs: list[Ran]) -> list[str]:
    """Returns the lines of rank 0, which alone prints."""
    assert not any(ran.out for ran in runs[1:])
    return runs[0].out.splitlines()


def printed(ranks: int, *arguments: str | Path, environment: Path = OPEN_MPI, **variables: str) -> list[str]:
    """Returns the lines that one program prints in its own start."""
    done = launch(environment, ranks, *arguments, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def alone(first: int, last: int) -> list[str]:
    """Returns digests of random programs, run in this process."""
    found = [_one_alone(number) for number in range(first, last)]
    assert len(set(found)) == last - first
    return found


@functools.cache
def _one_alone(number: int) -> str:
    return f"{number} {digest(*RandomProgram(number).results())}"


@pytest.fixture(scope="module")
def results(shared: Shared) -> dict[str, dict[str, Any]]:
    """Returns the results of each example on one rank, and its collectives on four."""

    def of(name: str) -> dict[str, Any]:
        left = runpy.run_path(str(EXAMPLES / f"{name}.py"))
        program = left["program"]
        assert isinstance(program, Program)
        forwards = program.explain(nodes=4).forwards
        between = {f["collective"] for f in forwards if not f["before_task"].startswith("fetch of")}
        return {"between": between, "result": np.array(left["result"]), "signal": left.get("signal")}

    found: dict[str, dict[str, Any]] = shared("examples", lambda: {name: of(name) for name in PATTERNS})
    return found


@pytest.mark.parametrize("name", PATTERNS)
def test_examples_communicate_in_patterns(results: dict[str, dict[str, Any]], name: str) -> None:
    assert results[name]["between"] == PATTERNS[name]


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.soak), pytest.param(4, marks=pytest.mark.soak)])
def test_examples_equal_their_one_rank_result(results: dict[str, dict[str, Any]], started: Started, ranks: int) -> None:
    assert said(started(ranks)["examples"]) == [digest(results[name]["result"]) for name in examples(ranks)]


@pytest.mark.parametrize("ranks", [2, 3, pytest.param(4, marks=pytest.mark.soak)])
def test_reads_of_what_a_task_changes_are_old_on_all_ranks(started: Started, ranks: int) -> None:
    assert said(started(ranks)["in place"]) == said(started(1)["in place"])


def test_examples_are_right(results: dict[str, dict[str, Any]]) -> None:
    """Compares the examples with plain NumPy."""
    assert np.allclose(results["fft2d"]["result"].T, np.fft.fft2(results["fft2d"]["signal"]))
    i, j = np.ogrid[:40, :40]
    assert np.allclose(results["matmul"]["result"], np.cos(i * j) @ np.sin(i + 2 * j).T)
    places = np.arange(60)
    largest = np.linalg.eigvalsh(1 / (1 + np.abs(places[:, None] - places)))[-1]
    assert results["power"]["result"][0] == pytest.approx(largest, rel=0.02)
    # The solution of -u'' = 1 at the grid points bounds the error by the residual; the example computes half of this.
    x = np.arange(1, 33)
    assert np.allclose(results["jacobi"]["result"], x * (33 - x) / (2 * 32**2), rtol=2 * 1e-2, atol=0)
    assert np.allclose(results["nbody_numba"]["result"], results["nbody"]["result"], rtol=1e-12, atol=1e-12)
    assert len((EXAMPLES / "nbody.py").read_text().splitlines()) <= 25


@pytest.mark.parametrize("ranks", [2, 3, pytest.param(4, marks=pytest.mark.soak)])
@pytest.mark.parametrize("by_messages", ["0", "1"])
def test_random_programs_have_the_same_data_everywhere(started: Started, ranks: int, by_messages: str) -> None:
    assert said(started(ranks)[f"random {by_messages}"]) == alone(0, RANDOM)


@pytest.mark.soak
@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize("by_messages", ["0", "1"])
def test_many_random_programs_have_the_same_data_everywhere(ranks: int, by_messages: str) -> None:
    found = printed(ranks, SCRIPT, "random", "0", "1000", UNISONO_POINT_TO_POINT=by_messages)
    assert found == alone(0, 1000)


@pytest.mark.parametrize("count", [60, pytest.param(200, marks=pytest.mark.soak)])
def test_random_programs_communicate_in_every_way_and_move_no_more_than_messages(count: int) -> None:
    found: Counter[str | None] = Counter()
    for seed in range(count):
        program = RandomProgram(seed).program
        for nodes in (2, 3, 8):
            explained, messages = program.explain(nodes), program.explain(nodes, "off").messages
            found.update(forward["collective"] for forward in explained.forwards)
            moved = explained.messages["p2p_bytes"] + explained.messages["collective_bytes"]
            assert moved <= messages["p2p_bytes"] + messages["collective_bytes"], (seed, nodes)
    moves = {"gather", "allgather", "broadcast", "scatter", "alltoall", "halo"}
    assert set(found) == {*moves, "reduce", "allreduce", "reduce-scatter", None}
    assert min(found.values()) > count / 4, found


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_kernels_on_devices_change_nothing(started: Started, ranks: int) -> None:
    """Results are the same if each rank runs different kernels on (simulated) devices."""
    assert said(started(ranks)["mixed"]) == alone(0, MIXED)


def test_kernels_on_devices_change_nothing_where_all_goes_by_messages(started: Started) -> None:
    assert said(started(3)["mixed by messages"]) == alone(0, MIXED)


@pytest.mark.soak
@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("by_messages", ["0", "1"])
def test_many_kernels_on_devices_change_nothing(ranks: int, by_messages: str) -> None:
    variables = {"UNISONO_POINT_TO_POINT": by_messages, "UNISONO_CHECK_READS": "1"}
    assert printed(ranks, SCRIPT, "mixed", "0", "100", environment=OPEN_MPI, **variables) == alone(0, 100)


def test_messages_longer_than_mpi_counts_go_in_pieces(started: Started) -> None:
    """Programs send messages in pieces of at most 16 bytes instead of 2^30."""
    assert said(started(3)["pieces"]) == alone(*PIECES)


@pytest.mark.parametrize("how", DIFFERENT)
def test_ranks_that_differ_are_all_told(started: Started, how: str) -> None:
    for ran in started(3)[how]:
        assert ran.code != 0
        assert ran.err.count(DIFFERENT[how]) == 1, ran.err


@pytest.mark.parametrize(
    ("how", "why"),
    [
        # On three ranks `DIFFERENT` has the same case.
        pytest.param(
            "task",
            "different programs: submission 5 is task 'step3' on rank 0, task 'step3x' on rank 1",
            marks=pytest.mark.soak,
        ),
        ("end", "the end on rank 1"),
        ("kernel", "task 'step0' failed on rank 1"),
        pytest.param("exit", "task 'step0' failed on rank 1", marks=pytest.mark.soak),
        ("proof", "the proof of messages failed on rank 1; all ranks are ended"),
    ],
)
def test_nobody_waits_for_a_rank_that_ended(how: str, why: str) -> None:
    done = launch(OPEN_MPI, 2, SCRIPT, "wrong", how)
    assert done.returncode != 0
    assert why in done.stderr


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_sums_have_the_same_bits_on_all_ranks(started: Started, ranks: int) -> None:
    """The program `floats` compares the bits of ranks; plans and messages may round differently from the library."""
    assert len(said(started(ranks)["floats"])) == 8


def compared(lines: list[str]) -> None:
    counts = [tuple(map(int, line.split())) for line in lines]
    assert len(counts) == 4
    for (messages, others), by_messages in zip(counts, (False, False, True, True), strict=True):
        assert messages > 30
        assert (others > 10) == (not by_messages)


@pytest.mark.parametrize("ranks", [2, 3, pytest.param(4, marks=pytest.mark.soak)])
def test_what_ranks_send_is_what_is_priced(started: Started, ranks: int) -> None:
    """`sent.py` compares pairs, bytes, order and names with the schedules of `explain`, and names with the trace."""
    compared(said(started(ranks)["sent"]))


@pytest.mark.soak
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_what_ranks_send_is_what_is_priced_in_many_programs(tmp_path: Path, ranks: int) -> None:
    compared(printed(ranks, SENT, str(tmp_path / "trace.json"), "0", "100"))


@pytest.mark.parametrize(
    "ranks", [1, pytest.param(2, marks=pytest.mark.soak), 3, pytest.param(4, marks=pytest.mark.soak)]
)
def test_rounded_results_are_within_the_bound_of_any_order(started: Started, ranks: int) -> None:
    """The bound for n terms is (n - 1) u times the sum of magnitudes; for n factors, (n - 1) u times the product."""
    drawn = np.random.default_rng(0).normal(size=10_007)
    errors = (drawn.size - 1) * 2.0**-53
    # The exact product is a pair of integers: reducing a Fraction takes longer than the programs.
    above, below = map(math.prod, zip(*(x.as_integer_ratio() for x in (1 + drawn / 100).tolist()), strict=True))
    lines = said(started(ranks)["rounded"])
    assert len(lines) == 2
    for line in lines:
        total, product = map(float.fromhex, line.split())
        assert abs(total - math.fsum(drawn)) <= errors * math.fsum(abs(drawn))
        found, of = product.as_integer_ratio()
        off = abs(found * below - above * of)
        assert off * 10**20 <= int(1.01 * errors * 10**20) * above * of


@pytest.mark.parametrize("count", [4, pytest.param(100, marks=pytest.mark.soak)])
def test_random_programs_under_mpich(count: int) -> None:
    """Random programs have the same results under MPICH."""
    assert printed(3, SCRIPT, "random", "0", str(count), environment=MPICH) == alone(0, count)


def test_sums_of_few_go_by_messages(started: Started) -> None:
    """Sums to which most ranks contribute nothing go by messages, since MPI's reductions would move more data."""
    patterns = ("allreduce", "reduce", "reduce-scatter")
    expected = sorted(f"{pattern}:{way}" for pattern in patterns for way in ("world", "sums"))
    assert said(started(4)["ways"])[0].split() == expected


@pytest.mark.parametrize("ranks", [2, 3])
def test_exchanges_stay_within_their_memory(started: Started, ranks: int) -> None:
    """Arrays of wrong sizes are refused before any exchange begins."""
    (line,) = said(started(ranks)["memory"])
    for reason in (
        "the longest message has 0 bytes; accepted are 1 and more",
        "an array has 4 dimensions; accepted are 1 to 3",
        "an array has to be contiguous, writable, and of as many bytes as its shape holds",
    ):
        assert reason in line


def test_memory_of_an_exchange_outlives_its_program(started: Started) -> None:
    assert said(started(2)["dropped"]) == ["dropped"]
