"""Programs of tasks under mpiexec: the same data on any number of ranks, and errors instead of waiting for ever."""

import functools
import hashlib
import math
import runpy
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from unisono.tasks import Program

from ..python.conftest import ROOT
from ..python.test_mpi import MPICH, OPEN_MPI
from .random_tasks import RandomProgram
from .test_world import launch

SCRIPT = ROOT / "tests" / "mpi" / "tasks.py"
SENT = ROOT / "tests" / "mpi" / "sent.py"
EXAMPLES = ROOT / "examples" / "tasks"
#: What each example's forwards become on four ranks.
PATTERNS = {
    "nbody": {"allgather"},
    "nbody_numba": {"allgather"},
    "wave": {"halo"},
    "matmul": {"alltoall", "allgather", None},
    "power": {"allgather", "allreduce"},
    "jacobi": {"halo", "allreduce"},
    "fft2d": {"alltoall"},
}


def said(ranks: int, *arguments: str | Path, **variables: str) -> list[str]:
    """What rank 0 prints."""
    done = launch(OPEN_MPI, ranks, SCRIPT, *arguments, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def results() -> dict[str, dict[str, Any]]:
    """The names that each example leaves, on one rank."""
    return {name: runpy.run_path(str(EXAMPLES / f"{name}.py")) for name in PATTERNS}


@pytest.mark.parametrize("name", PATTERNS)
def test_examples_communicate_in_patterns(results: dict[str, dict[str, Any]], name: str) -> None:
    program = results[name]["program"]
    assert isinstance(program, Program)
    forwards = program.explain(nodes=4).forwards
    between = {f["collective"] for f in forwards if not f["before_task"].startswith("fetch of")}
    assert between == PATTERNS[name]


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_examples_equal_their_one_rank_result(results: dict[str, dict[str, Any]], ranks: int) -> None:
    arrays = [np.ascontiguousarray(results[name]["result"]) for name in PATTERNS]
    alone = [hashlib.sha256(array.tobytes()).hexdigest()[:16] for array in arrays]
    assert said(ranks, "example", *(EXAMPLES / f"{name}.py" for name in PATTERNS)) == alone


IN_PLACE = """
import numpy as np
from tests.python.test_tasks import count, smooth
from unisono.tasks import Program, all_, neighborhood, one_to_one

program = Program()
a = program.array(50, init=np.linspace(0, 1, 50) ** 2, name="a")
total = program.array(1, init=[3.0], name="total")

def turn(old, new):
    first = new.offset[0]
    for k in range(len(new)):
        new[k] = old[len(old) - 1 - first - k]


for k in range(6):
    program.task(smooth, range=50, reads=[a[neighborhood(1)]], updates=[a[one_to_one]])
    program.task(turn, range=50, reads=[a[all_]], writes=[a[one_to_one]])
    program.task(count, range=50, reads=[total[all_], a[one_to_one]], reduces=[total[all_]])
result = np.append(program.fetch(a), np.round(program.fetch(total), 9))
"""


def test_reads_of_what_a_task_changes_are_old_on_all_ranks(tmp_path: Path) -> None:
    file = tmp_path / "in_place.py"
    file.write_text(IN_PLACE)
    alone = said(1, "example", file)
    for ranks in (2, 3, 4):
        assert said(ranks, "both", "example", file) == alone * 2, ranks


def test_examples_are_right(results: dict[str, dict[str, Any]]) -> None:
    """Against plain NumPy."""
    assert np.allclose(results["fft2d"]["result"].T, np.fft.fft2(results["fft2d"]["signal"]))
    i, j = np.ogrid[:40, :40]
    assert np.allclose(results["matmul"]["result"], np.cos(i * j) @ np.sin(i + 2 * j).T)
    places = np.arange(60)
    largest = np.linalg.eigvalsh(1 / (1 + np.abs(places[:, None] - places)))[-1]
    assert results["power"]["result"][0] == pytest.approx(largest, rel=0.02)
    # The solution of -u'' = 1 at its grid points. It bounds the error by the residual, of which the example sees half.
    x = np.arange(1, 33)
    assert np.allclose(results["jacobi"]["result"], x * (33 - x) / (2 * 32**2), rtol=2 * 1e-2, atol=0)
    assert np.allclose(results["nbody_numba"]["result"], results["nbody"]["result"], rtol=1e-12, atol=1e-12)
    assert len((EXAMPLES / "nbody.py").read_text().splitlines()) <= 25


@functools.cache
def alone(count: int) -> list[str]:
    """Random programs on one rank."""
    found = said(1, "random", "0", str(count))
    assert len(set(found)) == count
    return found


@pytest.mark.parametrize("count", [25, pytest.param(1000, marks=pytest.mark.soak)])
@pytest.mark.parametrize("by_messages", ["0", "1"])
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_random_programs_have_the_same_data_everywhere(ranks: int, by_messages: str, count: int) -> None:
    assert said(ranks, "random", "0", str(count), UNISONO_POINT_TO_POINT=by_messages) == alone(count)


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


@pytest.mark.parametrize("count", [12, pytest.param(100, marks=pytest.mark.soak)])
def test_kernels_on_devices_change_nothing(count: int) -> None:
    """Each rank has other kernels on what stands for a device; arrays go to it and come back as needed."""
    for ranks in (1, 2, 3):
        assert said(ranks, "mixed", "0", str(count), UNISONO_CHECK_READS="1") == alone(count), ranks
    assert said(3, "mixed", "0", str(count), UNISONO_POINT_TO_POINT="1") == alone(count)


def test_messages_longer_than_mpi_counts_go_in_pieces() -> None:
    """With a limit of 16 bytes instead of 2^30."""
    assert said(3, "random", "40", "50", "16") == said(1, "random", "40", "50")


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("task", "different programs: submission 5 is task 'step3' on rank 0, 2, task 'step3x' on rank 1"),
        ("fewer", "submission 7 is task 'fetch of a' on rank 0, 2, task 'more' on rank 1"),
        ("order", "submission 7 is task 'fetch of a' on rank 0, 2, task 'fetch of b' on rank 1"),
        ("contents", "the contents that array 'drawn' begins with differ between ranks 0 and 1"),
    ],
)
def test_ranks_that_differ_are_all_told(how: str, why: str) -> None:
    done = launch(OPEN_MPI, 3, SCRIPT, "wrong", how)
    assert done.returncode != 0
    assert done.stderr.count(why) == 3, done.stderr


def test_nobody_waits_for_a_rank_that_ended() -> None:
    done = launch(OPEN_MPI, 3, SCRIPT, "wrong", "end")
    assert done.returncode != 0
    assert done.stderr.count("the end on rank 1") == 2, done.stderr
    for how in ("kernel", "exit"):
        done = launch(OPEN_MPI, 3, SCRIPT, "wrong", how)
        assert done.returncode != 0
        assert "task 'step0' failed on rank 1" in done.stderr
    done = launch(OPEN_MPI, 3, SCRIPT, "wrong", "proof")
    assert done.returncode != 0
    assert "the proof of messages failed on rank 1; all ranks are ended" in done.stderr


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_sums_have_the_same_bits_on_all_ranks(ranks: int) -> None:
    """`floats` compares them; plans and messages may round otherwise than the library."""
    assert len(said(ranks, "both", "floats")) == 8


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_what_ranks_send_is_what_is_priced(ranks: int, tmp_path: Path) -> None:
    """`sent.py` compares pairs, bytes, order and names with the schedules of `explain`, and names with the trace."""
    done = launch(OPEN_MPI, ranks, SENT, str(tmp_path / "trace.json"), "0", "100")
    assert done.returncode == 0, done.stdout + done.stderr
    counts = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    assert len(counts) == 4
    for (messages, others), by_messages in zip(counts, (False, False, True, True), strict=True):
        assert messages > 30
        assert (others > 10) == (not by_messages)


def test_rounded_results_are_within_the_bound_of_any_order() -> None:
    """Of n terms (n - 1) u times the sum of magnitudes; of n factors (n - 1) u of the product, to first order."""
    drawn = np.random.default_rng(0).normal(size=10_007)
    errors = (drawn.size - 1) * 2.0**-53
    exact = math.prod(Fraction(x) for x in (1 + drawn / 100).tolist())
    for ranks in (1, 2, 3, 4):
        lines = said(ranks, "both", "rounded")
        assert len(lines) == 2
        for line in lines:
            total, product = map(float.fromhex, line.split())
            assert abs(total - math.fsum(drawn)) <= errors * math.fsum(abs(drawn)), ranks
            assert abs(Fraction(product) / exact - 1) <= 1.01 * errors, ranks


@pytest.mark.parametrize("count", [12, pytest.param(100, marks=pytest.mark.soak)])
def test_random_programs_under_mpich(count: int) -> None:
    """Another library, with other collectives."""
    done = launch(MPICH, 3, SCRIPT, "random", "0", str(count))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == alone(count)


def test_sums_of_few_go_by_messages() -> None:
    """Where most ranks contribute nothing to an element, MPI's reductions would move more."""
    patterns = ("allreduce", "reduce", "reduce-scatter")
    classes = ("WorldReduction", "WorldReduction", "WorldReduceScatter", *["Messages"] * 3)
    expected = [f"{pattern}:{name}" for pattern, name in zip(2 * patterns, classes, strict=True)]
    assert said(4, "ways")[0].split() == expected


def test_exchanges_stay_within_their_memory() -> None:
    """Sizes are compared before anything begins, on any number of ranks."""
    for ranks in (2, 3):
        (line,) = said(ranks, "memory")
        for reason in (
            "counts and places of a collective do not fit its packed memory",
            "a side of a collective is missing or not in its array",
            "packed memory has 63 bytes; the parts need 64",
            "a part is not in its box, or the box is not in the array",
            "a region is not in its array",
            "a count or a place is 2147483648; accepted are up to 2147483647",
            "the longest message has 0 bytes; accepted are 1 and more",
            "an array has 4 dimensions; accepted are 1 to 3",
            "an array has to be contiguous, writable, and of as many bytes as its shape holds",
        ):
            assert reason in line


def test_memory_of_an_exchange_outlives_its_program() -> None:
    assert said(2, "dropped", UNISONO_POINT_TO_POINT="1") == ["dropped"]
