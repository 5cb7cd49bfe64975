"""Gather, scatter, scan, and persistent collectives, served by a plan."""

from collections.abc import Callable
from pathlib import Path

import pytest
import unisono as un

from ..python.test_mpi import Compile, compiled, plan, report, run, shim

__all__ = ["compiled", "plan"]

Plans = Callable[[int], Path]
ABIS = [("openmpi", 2), pytest.param("openmpi", 3, marks=pytest.mark.soak), ("openmpi", 5), ("mpich", 2), ("abi", 2)]
#: The names that reports give to the calls that `persistent.c` starts.
STARTED = (
    "iallreduce",
    "ibroadcast",
    "iallgather",
    "ialltoall",
    "ireduce",
    "ireduce-scatter",
    "ibarrier",
    "igather",
    "iscatter",
    "iscan",
)


@pytest.fixture(scope="session")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> Plans:
    """Returns a function that writes a plan of gather, scatter and scan, with two algorithms each by size."""
    folder = tmp_path_factory.mktemp("pieces")

    def write(ranks: int) -> Path:
        path = folder / f"{ranks}.plan"
        if not path.exists():
            rows: list[tuple[un.Plan, int, int | None]] = []
            for kind, short, long in (
                ("gather", "binomial", "linear"),
                ("scatter", "binomial", "linear"),
                ("scan", "recursive-doubling", "linear"),
            ):
                plans = [un.plan(kind, "archer", shape=ranks, elements=8, algorithm=name) for name in (short, long)]
                rows += [(plans[0], 0, 499), (plans[1], 500, None)]
            un.save_plans(rows, path)
        return path

    return write


@pytest.mark.parametrize(("abi", "ranks"), ABIS)
@pytest.mark.parametrize("options", [pytest.param((), marks=pytest.mark.soak), ("--nonblocking",), ("--check",)])
def test_gather_scatter_and_scan_are_served(
    compiled: Compile, pieces: Plans, tmp_path: Path, abi: str, ranks: int, options: tuple[str, ...]
) -> None:
    said, rounds = tmp_path / "report", 24
    done = run(
        ranks,
        compiled("pieces", abi),
        str(rounds),
        options=("--plan", str(pieces(ranks)), "--report", str(said), *options),
    )
    assert (done.code, done.out) == (0, f"ok {ranks}\n"), done.out + done.err
    rows = report(said)
    served = {kind: sum(n for (k, a), n in rows.items() if k == kind and a != "library") for kind in ("gather", "scan")}
    # Every fourth call is non-blocking and has another name; gathers are served if their root is the plan's.
    assert served["scan"] == rounds * 3 // 4
    assert 0 < served["gather"] < rounds
    assert ("scan", "linear") in rows
    if "--nonblocking" in options and abi == "openmpi":
        assert sum(n for (k, a), n in rows.items() if k == "iscan" and a != "library") == rounds // 4
    if "--check" in options:
        assert " 0 differences" in said.read_text()


@pytest.mark.parametrize(
    ("abi", "ranks"), [*ABIS, ("openmpi", 1), pytest.param("openmpi", 4, marks=pytest.mark.soak), ("mpich", 3)]
)
def test_persistent_calls_are_started_in_any_order(
    compiled: Compile, plan: Plans, pieces: Plans, tmp_path: Path, abi: str, ranks: int
) -> None:
    program, rounds = compiled("persistent", abi), 4 if ranks < 3 else 2
    found: dict[str, int] = {}
    for path in (plan(ranks), pieces(ranks)) if ranks > 1 else (plan(ranks),):
        said = tmp_path / "report"
        options = ("--plan", str(path), "--report", str(said), "--nonblocking")
        # Only planned broadcasts keep a datatype that `order` frees.
        words = ("order",) if path == plan(ranks) and abi != "abi" else ()
        done = run(ranks, program, str(rounds), *words, options=options)
        assert (done.code, done.out) == (0, f"ok {ranks}\n"), done.out + done.err
        for (name, algorithm), calls in report(said).items():
            if algorithm != "library" and name in STARTED:
                found[name] = found.get(name, 0) + calls
    if abi == "abi":
        # With the standard ABI, the library does not advance persistent calls of a plan.
        assert not found
        assert "MPI_Allreduce_init" in said.read_text()
    elif ranks > 1:
        # On one of three communicators, the root differs from that of the plan's gather and scatter.
        expected = dict.fromkeys(STARTED, 3 * rounds) | {"igather": 2 * rounds, "iscatter": 2 * rounds}
        assert found == expected


def test_a_rank_without_tags_leaves_its_persistent_calls_to_the_library_on_all_ranks(
    compiled: Compile, tmp_path: Path
) -> None:
    """A call needs a tag for its schedule and a tag for its request. Rank 0 may have only the first tag left."""
    library, path = shim(tmp_path), tmp_path / "t.plan"
    made = un.plan("allreduce", "archer", shape=2, elements=16, algorithm="recursive-doubling")
    un.save_plans([(made, 0, None)], path)
    for largest, serves in ((2, False), (4, True)):
        said = tmp_path / "report"
        options = ("--plan", str(path), "--report", str(said), "--nonblocking")
        env = {"LD_PRELOAD": str(library), "TAGS": str(largest)}
        done = run(2, compiled("persistent", "openmpi"), "1", options=options, env=env, seconds=120)
        assert (done.code, done.out) == (0, "ok 2\n"), done.out + done.err
        assert ("recursive-doubling" in said.read_text()) == serves


def test_persistent_calls_need_the_option(compiled: Compile, plan: Plans, tmp_path: Path) -> None:
    said = tmp_path / "report"
    done = run(2, compiled("persistent", "openmpi"), "2", options=("--plan", str(plan(2)), "--report", str(said)))
    assert (done.code, done.out) == (0, "ok 2\n"), done.out + done.err
    assert not {name for name, _ in report(said)} & set(STARTED)
    assert "MPI_Start " in said.read_text()
