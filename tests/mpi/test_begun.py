"""Non-blocking collectives under a plan (`unisono run --nonblocking`)."""

from collections.abc import Callable
from pathlib import Path

import pytest
import unisono as un

from ..python.test_mpi import Compile, compiled, plan, report, run

__all__ = ["compiled", "plan"]

Plans = Callable[[int], Path]
#: The names that reports give to the non-blocking calls of `begun.c`.
NAMES = ("iallreduce", "ibroadcast", "iallgather", "ialltoall", "ireduce", "ireduce-scatter", "ibarrier")


@pytest.mark.parametrize(
    ("abi", "ranks"),
    [
        ("openmpi", 1),
        ("openmpi", 2),
        pytest.param("openmpi", 3, marks=pytest.mark.soak),
        ("openmpi", 5),
        pytest.param("mpich", 2, marks=pytest.mark.soak),
        ("mpich", 3),
    ],
)
def test_begun_calls_end_however_they_are_completed(
    compiled: Compile, plan: Plans, tmp_path: Path, abi: str, ranks: int
) -> None:
    said, rounds = tmp_path / "report", 10 if abi == "openmpi" else 5
    options = ("--plan", str(plan(ranks)), "--report", str(said), "--nonblocking")
    done = run(ranks, compiled("begun", abi), str(rounds), options=options)
    assert (done.code, done.out) == (0, f"ok {ranks}\n"), done.out + done.err
    calls = dict.fromkeys(NAMES, 0)
    for (name, algorithm), count in report(said).items():
        if name in calls:
            assert algorithm != "library"
            calls[name] += count
    # The program makes one further sum while messages are in flight, and one broadcast whose datatype it frees early.
    assert calls == dict.fromkeys(NAMES, rounds) | {"iallreduce": rounds + 1, "ibroadcast": rounds + 1}
    assert "passed through" not in said.read_text()


@pytest.mark.parametrize(("abi", "options"), [("openmpi", ()), ("abi", ("--nonblocking",))])
def test_the_library_makes_them_where_it_is_not_told_or_cannot_carry_them_on(
    compiled: Compile, plan: Plans, tmp_path: Path, abi: str, options: tuple[str, ...]
) -> None:
    said = tmp_path / "report"
    done = run(2, compiled("begun", abi), "5", options=("--plan", str(plan(2)), "--report", str(said), *options))
    assert (done.code, done.out) == (0, "ok 2\n"), done.out + done.err
    assert not set(NAMES) & {name for name, _ in report(said)}
    assert "MPI_Iallreduce" in said.read_text()


@pytest.mark.parametrize("rows", ["one", "two"])
@pytest.mark.parametrize("abi", ["openmpi", "mpich"])
def test_unlike_lengths_end_with_an_error(compiled: Compile, tmp_path: Path, abi: str, rows: str) -> None:
    """Messages reveal lengths that differ within a row of the plan, notes of the ranks lengths of different rows."""
    plans = [un.plan("allreduce", "archer", shape=3, elements=96, algorithm=a) for a in ("ring", "recursive-doubling")]
    path, limit = tmp_path / "t.plan", 379
    un.save_plans([(plans[0], 0, None)] if rows == "one" else [(plans[0], 0, limit), (plans[1], limit + 1, None)], path)
    told = tmp_path / "told"
    done = run(3, compiled("begun", abi), "1", "lengths", told, options=("--plan", str(path), "--nonblocking"))
    assert done.code != 0
    assert set(told.read_text().split()) == {"truncated"}


@pytest.mark.parametrize("abi", ["openmpi", "mpich"])
@pytest.mark.parametrize("algorithm", ["dissemination", "recursive-doubling"])
def test_begun_calls_keep_operators_and_bits(compiled: Compile, tmp_path: Path, abi: str, algorithm: str) -> None:
    """Begun calls keep operators that are freed before their end, and give all ranks the same bits."""
    path = tmp_path / "t.plan"
    un.save_plans([(un.plan("allreduce", "archer", shape=4, elements=16, algorithm=algorithm), 0, None)], path)
    options = ("--plan", str(path), "--nonblocking", "--safe-ops")
    done = run(4, compiled("begun", abi), "1", "users", options=options)
    assert (done.code, done.out) == (0, "ok 4\n"), done.out + done.err
