"""`calibrate`, `plan`, `bench`, `tune` and `export` in the order of docs/mpi.md; times are not judged."""

import json
import math
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
import unisono as un
from unisono.mpi import exports

from ..python.conftest import Ran, Shared, call, written
from ..python.test_mpi import MPICH, OPEN_MPI
from .launching import REFUSED_FIT, Case, launch, together

CORES = len(os.sched_getaffinity(0))
BENCHED = ("reduce", "broadcast", "allgather", "reduce-scatter", "alltoall")

Words = list[str | Path]


def command(*words: str | Path, fails: bool = False, on: int | None = None) -> Case:
    return Case(["unisono", *words], fails=fails, on=on)


def json_of_ranks(runs: list[Ran]) -> dict[str, Any]:
    """Returns the JSON of a command; its ranks must print nothing else to standard output."""
    found: dict[str, Any] = json.loads("".join(ran.out for ran in runs))
    return found


def calibrated(runs: list[Ran]) -> dict[str, Any] | None:
    """Returns the JSON of a calibration; None if it refused its times, which other work on the cores disturbed."""
    return None if any(REFUSED_FIT in ran.err for ran in runs) else json_of_ranks(runs)


def error_of_ranks(runs: list[Ran]) -> str:
    """Returns the error of a command; exactly one rank must print it, and all ranks end with code 2."""
    assert {ran.code for ran in runs} == {2}, runs
    told = [line for ran in runs for line in ran.err.splitlines() if line.startswith("error:")]
    assert len(told) == 1, runs
    return told[0]


#: Wrong commands on three ranks, with their errors; PLAN stands for a plan of an allreduce on two ranks.
WRONG: list[tuple[list[str], str]] = [
    (["calibrate", "-o", "m.txt"], "does not end in .toml"),
    (["calibrate", "-o", "m.toml", "--rounds", "3"], "--rounds is 3"),
    (["bench", "allreduce", "--plan", "nowhere.plan"], "nowhere.plan"),
    (["bench", "allreduce", "--plan", "PLAN"], "no rows for allreduce on 3 ranks; it has them for 2"),
    (["bench", "allreduce", "--plan", "PLAN", "--sizes", "6"], "6 bytes"),
    (["bench", "allreduce", "--plan", "PLAN", "--sizes", "8,8GiB"], "8589934592 bytes are more than a call of MPI has"),
    (["bench", "reduce", "--plan", "PLAN"], "no rows for reduce on 3 ranks with 3 a node; it has them for 1, 2 a node"),
    (["tune", "scan", "--machine", "archer", "-o", "t.plan"], "'scan' cannot be tuned"),
    (
        ["tune", "allreduce", "--machine", "archer", "-o", "t.plan", "--library", "x"],
        "--library is for --for mpich",
    ),
    (["bench", "broadcast", "--plan", "PLAN"], "has no rows for broadcast; 'unisono show"),
    (["tune", "allreduce", "--machine", "wse2", "-o", "t.plan"], "of kind wafer"),
    (
        ["tune", "allreduce", "--machine", "archer", "-o", "t.plan", "--share", "1e-9"],
        "--share is 1e-09, which is 0 of",
    ),
    (["tune", "allreduce", "--machine", "archer", "-o", "t.plan", "--ranks", "2-9"], "accepted are 1 to 3"),
    (["tune", "allreduce", "--machine", "archer", "-o", "t.plan", "--ranks", "1"], "nothing to tune"),
    (["tune", "allreduce", "--machine", "archer", "-o", "t.plan", "--ranks", "x"], "whole numbers"),
    (["tune", "allreduce", "--machine", "archer", "-o", "t.plan", "--per-node", "2"], "3 ranks, 2 a node"),
    (["tune", "allreduce", "--machine", "archer"], "error: tune lacks -o T.plan: mpiexec"),
    (["tune", "allreduce", "-o", "t.plan"], "error: tune lacks --machine M.toml: mpiexec"),
    (
        ["tune", "allreduce", "--machine", "archer", "-o", "t.plan", "--bits", "size", "--share", "0.5"],
        "--bits chooses whole tables",
    ),
    (["tune"], "error: tune lacks a COLLECTIVE and --machine M.toml and -o T.plan: mpiexec"),
]


#: A program in which one rank of two, the last argument, fails while the other rank waits for it.
ALONE = """
import sys
from unittest.mock import patch
from unisono import Error
from unisono.tuning import kept
from unisono.__main__ import main
contest, which = kept.contest, int(sys.argv.pop())
def fails(mpi, comm, *arguments):
    if comm.rank == which:
        raise Error("this rank alone fails")
    return contest(mpi, comm, *arguments)
with patch.object(kept, "contest", fails):
    sys.exit(main())
"""

#: A program whose rank 1 is killed after some contests, the last argument; it prints the number of contests.
KILLED = """
import os, signal, sys
from unisono.tuning import kept
from unisono.cli import main
contest, left = kept.contest, int(sys.argv.pop())
made = 0
def counted(mpi, comm, *arguments):
    global made
    if made == left and comm.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    made += 1
    return contest(mpi, comm, *arguments)
counted.__module__, counted.__qualname__ = contest.__module__, contest.__qualname__
kept.contest = counted
code = main(sys.argv[1:])
print(f"contests {made}", file=sys.stderr)
sys.exit(code)
"""


LOST = """
import sys
from unittest.mock import patch
from unisono.tuning import tables as tuning
from unisono.cli import main
encoded = tuning.encoded_plans
# Plans that serve other sizes than those that are timed.
with patch.object(
    tuning, "encoded_plans", lambda rows: encoded([(plan, first + 4, last + 4) for plan, first, last in rows])
):
    sys.exit(main(sys.argv[1:]))
"""


def cases_of_two(folder: Path) -> dict[str, Case]:
    """Returns commands on two ranks of Open MPI, by name."""
    plan, lost, elsewhere = folder / "library.plan", folder / "lost.py", folder / "elsewhere.plan"
    made = un.plan("allreduce", "archer", shape=2, elements=8, algorithm="recursive-doubling")
    un.save_plans([(made, 0, 100), (("allreduce", 2), 101, None)], plan)
    un.save_plans([(made, 0, 100, None, "mpich 5.0.2 spin own")], elsewhere)
    lost.write_text(LOST)
    said: Words = [
        "--machine",
        "archer",
        "-o",
        folder / "t.plan",
        "--sizes",
        "8,64KiB",
        "--rounds",
        "2",
        "--candidates",
        "4",
    ]
    few = ["tune", "allreduce", "--machine", "paper-sim", "--sizes", "4KiB", "--rounds", "2", "--candidates", "1"]
    return {
        "calibrate": command("calibrate", "-o", folder / "m.toml", "--rounds", "10", "--json", fails=True),
        "library": command("bench", "allreduce", "--plan", plan, "--sizes", "64,256", "--rounds", "1", "--json"),
        "alone": command("bench", "reduce", "--sizes", "64,256", "--rounds", "1", "--json"),
        "elsewhere": command("bench", "allreduce", "--plan", elsewhere, "--sizes", "64,256", "--rounds", "1", "--json"),
        "tune": command("tune", "allreduce,broadcast", *said, "--for", "openmpi-rules", "--json"),
        "other": command("tune", "broadcast", *few[2:], "--for", "mpich-json", "-o", folder / "other.plan"),
        "lost": Case([lost, *few, "-o", folder / "lost.plan"], fails=True),
        "lost share": Case([lost, *few, "--share", "1", "-o", folder / "lost.plan"], fails=True),
        **benches(folder),
    }


def benches(folder: Path) -> dict[str, Case]:
    """Returns a `bench` of each collective under a plan, by collective."""
    found = {}
    for collective in BENCHED:
        plan = folder / f"{collective}.plan"
        un.save_plans([(un.plan(collective, "archer", shape=2, elements=64), 0, None)], plan)
        found[collective] = command("bench", collective, "--plan", plan, "--sizes", "256", "--rounds", "2", "--json")
    return found


@pytest.fixture(scope="module")
def of_two(tmp_path_factory: pytest.TempPathFactory, shared: Shared) -> dict[str, list[Ran]]:
    """Runs all cases of two ranks in one start."""

    def compute() -> dict[str, list[Ran]]:
        folder = tmp_path_factory.mktemp("flow")
        named = cases_of_two(folder)
        runs = dict(zip(named, together(OPEN_MPI, 2, named.values(), folder), strict=True))
        assert not (folder / "lost.plan").exists()
        return runs

    found: dict[str, list[Ran]] = shared("flow-2", compute)
    return found


def test_each_output_feeds_the_next(tmp_path: Path) -> None:
    machine, first, tuned = tmp_path / "m.toml", tmp_path / "first.plan", tmp_path / "tuned.plan"

    request: Words = [
        "allreduce",
        "--machine",
        machine,
        "--ranks",
        "4",
        "--bytes",
        "4KiB",
        "--algorithm",
        "rabenseifner",
    ]
    sizes = ["--sizes", "256,4KiB,128KiB", "--rounds", "3"]
    # The file of a calibration that is refused.
    machine.write_text(un.preset_toml("archer"))
    options = ["--ranks", "2,4", "--sizes", "64,4KiB", "--rounds", "2", "--candidates", "2"]
    runs = together(
        OPEN_MPI,
        4,
        [
            command("calibrate", "-o", machine, "--rounds", "10", "--json", fails=True),
            command("plan", *request, "-o", first, "--serve", "0-64KiB", "--json", on=0),
            command("bench", "allreduce", "--plan", first, *sizes, "--json"),
            command("tune", "allreduce,broadcast", "--machine", machine, "-o", tuned, *options, "--json"),
        ],
        tmp_path,
    )
    planned, timed, decided = map(json_of_ranks, runs[1:])
    for ran in (runs[0], runs[2], runs[3]):
        # The note appears once if the computer has fewer than four cores.
        note = f"note: 4 ranks share {CORES} core{'' if CORES == 1 else 's'}: a rank that waits takes time from others"
        assert sum(one.err.count(note) for one in ran) == (CORES < 4), ran
    if (measured := calibrated(runs[0])) is not None:
        assert measured["file"] == str(machine)
        assert {"beta", "gamma", "multicast-blocking", "multicast-non-blocking"} == set(measured["residuals"])
        written = tomllib.loads(machine.read_text())
        for key in ("alpha_p_ns", "alpha_r_ns", "beta_ns_per_byte", "gamma_ns_per_byte"):
            assert written[key] == measured[key] > 0
        assert [peers for peers, _, _ in written["fit"]["multicast_ns"]] == [1, 2, 3]
    else:
        assert machine.read_text() == un.preset_toml("archer")

    assert planned["algorithm"] == "rabenseifner"

    assert (timed["ranks"], timed["per_node"]) == (4, 4)
    assert [row["bytes"] for row in timed["rows"]] == [256, 4096, 131072]
    for row in timed["rows"]:
        assert row["seconds"] > 0
        assert row["ratio"] == pytest.approx(row["default_seconds"] / row["seconds"])
        assert 0 <= row["rounds_won"] <= row["rounds"] == 3
        ran = row["ran"]
        assert not ran["warning"]
        # The plan has no row for sizes above 64 KiB.
        served = row["bytes"] <= 65536
        assert row["algorithm"] == ("rabenseifner" if served else "library")
        assert ran["planned_calls"] == (ran["calls"] if served else 0)
        assert ran["schedule_bits"] == (ran["bits"] if served else None)
        assert served or ran["bits"] == ran["default_bits"]

    assert decided["missing"] == []
    assert {(cell["collective"], cell["ranks"], cell["bytes"]) for cell in decided["cells"]} == {
        (collective, ranks, size)
        for collective in ("allreduce", "broadcast")
        for ranks in (2, 4)
        for size in (64, 4096)
    }
    for cell in decided["cells"]:
        library, *others = cell["contenders"]
        assert library["algorithm"] == "library"
        assert len(others) >= 2
        assert all(contender["effective"] for contender in others)
        assert cell["per_node"] == cell["ranks"]
    rows = un.load_plans(tuned)
    assert len(rows) == len(decided["table"])
    for collective in ("allreduce", "broadcast"):
        for ranks in (2, 3, 4):
            of = [row for row in rows if (row["collective"], row["ranks"]) == (collective, ranks)]
            assert all(row["per_node"] == ranks for row in of)
            # The rows cover every size: each row begins where the previous row ends.
            assert [row["first_bytes"] for row in of] == [0, *((row["last_bytes"] or 0) + 1 for row in of[:-1])]
            assert of[-1]["last_bytes"] is None
    interpolated = {row["ranks"] for row in decided["table"] if not row["measured"]}
    assert interpolated == {3}

    # In a separate start, unlike the cases that share one.
    again = launch(OPEN_MPI, 3, "-m", "unisono", "bench", "allreduce", "--plan", tuned, *sizes, "--json")
    assert again.returncode == 0, again.stdout + again.stderr
    assert not any(row["ran"]["warning"] for row in json.loads(again.stdout)["rows"])

    for table, target in ((first, "openmpi-rules"), (tuned, "openmpi-rules"), (tuned, "openmpi-json")):
        done = call("export", str(table), "--format", target, "-o", str(tmp_path / target), "--no-check", "--json")
        told = json.loads(done.out)
        # If the library was best everywhere, no file is written.
        sayable = table == first or any(row["algorithm"] not in (None, "library") for row in rows)
        if done.code == 0:
            assert sayable
            assert Path(told["file"]).stat().st_size > 0
        else:
            assert table == tuned
            assert "cannot express this table" in told["refused"]


def test_a_share_of_the_points_is_tuned_and_one_rank_says_what_is_wrong(tmp_path: Path) -> None:
    tuned, plan = tmp_path / "t.plan", tmp_path / "two.plan"
    spread = [(un.plan("reduce", "archer", shape=3, elements=8), 0, None, per_node) for per_node in (1, 2)]
    un.save_plans([(un.plan("allreduce", "archer", shape=2, elements=8), 0, None), *spread], plan)
    options = ["--ranks", "2,3", "--sizes", "64,4KiB,64KiB", "--rounds", "2", "--candidates", "2", "--share", "0.25"]
    words: Words = ["tune", "allreduce,broadcast", "--machine", "archer", "-o", tuned, *options, "--json"]
    of_bits, few = tmp_path / "bits.plan", ["--sizes", "64,64KiB", "--rounds", "2", "--candidates", "2", "--json"]
    alike = command("tune", "allreduce,reduce", "--machine", "archer", "-o", of_bits, "--bits", "size", *few)
    wrong = {why: [plan if word == "PLAN" else word for word in words] for words, why in WRONG}
    cases = [command(*words), alike, *(command(*words, fails=True) for words in wrong.values())]
    runs, same, *failed = together(OPEN_MPI, 3, cases, tmp_path)
    for why, found in zip(wrong, failed, strict=True):
        assert why in error_of_ranks(found)
    for choice in json_of_ranks(same)["choices"]:
        *tables, library = choice["contenders"]
        assert (choice["ranks"], len(tables), library["algorithms"]) == (3, 2, "library")
        times = [contender["seconds"] for contender in tables]
        products = [math.prod(of) for of in times]
        assert [price["seconds"] for price in choice["prices"]] == times[products.index(min(products))]
        assert choice["cost"] >= 1
    checked = call("verify", str(of_bits), "--require", "size", "--json").json
    assert checked["bits"] == ["ranks", "place", "size"]
    assert [one["left_to_library"] for one in checked["tables"]] == [["other numbers of ranks a node"]] * 2
    decided = json_of_ranks(runs)
    contenders = [contender for cell in decided["cells"] for contender in cell["contenders"]]
    assert len(decided["cells"]) == 12
    assert decided["points"] == len(contenders)
    assert decided["measured"] == sum(contender["measured"] for contender in contenders)
    assert 4 < decided["measured"] <= decided["points"] / 4
    assert all(contender["seconds"] > 0 for contender in contenders)
    assert {row["ranks"] for row in decided["table"]} == {2, 3}
    assert un.load_plans(tuned)


def test_what_is_tuned_for_a_library_can_be_said_there(of_two: dict[str, list[Ran]], tmp_path: Path) -> None:
    decided = json_of_ranks(of_two["tune"])
    says = exports.says("openmpi-rules")
    for cell in decided["cells"]:
        contenders = [c for c in cell["contenders"] if c["algorithm"] != "library"]
        assert contenders
        made = [
            un.plan(
                cell["collective"], "archer", shape=2, bytes=cell["bytes"], algorithm=c["algorithm"], params=c["params"]
            )
            for c in contenders
        ]
        called = [says(exports.row_of(plan, cell["bytes"], cell["bytes"])) for plan in made]
        assert None not in called
        # No schedule is measured twice.
        assert len(set(called)) == len(called)
    if any(row["algorithm"] != "library" for row in decided["table"]):
        told = un.export(decided["file"], "openmpi-rules", tmp_path / "t.rules")
        assert told["left"] == []


def test_a_file_for_another_library_than_is_measured_is_noted(of_two: dict[str, list[Ran]]) -> None:
    note = "note: --for mpich-json is for mpich, where algorithms take other times than under 'openmpi "
    assert sum(ran.err.count(note) for ran in of_two["other"]) == 1
    assert not any("note: --for" in ran.err for ran in of_two["tune"])


def check_benches(runs: dict[str, list[Ran]]) -> None:
    for collective in BENCHED:
        (row,) = json_of_ranks(runs[collective])["rows"]
        assert row["algorithm"] == un.plan(collective, "archer", shape=2, elements=64).algorithm
        assert row["ran"]["planned_calls"] == row["ran"]["calls"]
        assert not row["ran"]["warning"], row
        assert (row["ran"]["schedule_bits"] is not None) == (collective in ("reduce", "reduce-scatter"))


def test_two_ranks_calibrate_and_bench(of_two: dict[str, list[Ran]]) -> None:
    if (measured := calibrated(of_two["calibrate"])) is not None:
        assert measured["fit"]["multicast_peers"] == "one rank, several times"
        assert all(math.isfinite(residual) for residual in measured["residuals"].values())
    check_benches(of_two)


def test_two_ranks_of_mpich_bench(tmp_path: Path) -> None:
    named = benches(tmp_path)
    check_benches(dict(zip(named, together(MPICH, 2, named.values(), tmp_path), strict=True)))


def test_rows_of_the_library_are_timed_as_such(of_two: dict[str, list[Ran]], tmp_path: Path) -> None:
    timed = json_of_ranks(of_two["library"])
    shown = call("show", str(written(tmp_path / "bench.json", json.dumps(timed))), "--json").json
    assert shown["form"] == "report"
    assert [row["ratio"] for row in shown["rows"]] == [row["ratio"] for row in timed["rows"]]
    assert [row["algorithm"] for row in timed["rows"]] == ["recursive-doubling", "library"]
    assert [row["ran"]["planned_calls"] > 0 for row in timed["rows"]] == [True, False]


def test_two_ranks_time_the_library_alone(of_two: dict[str, list[Ran]]) -> None:
    timed = json_of_ranks(of_two["alone"])
    assert (timed["plan"], timed["notes"]) == (None, [])
    for row in timed["rows"]:
        assert row["algorithm"] == "library"
        assert row["seconds"] == row["default_seconds"] > 0
        assert (row["ratio"], row["rounds_won"]) == (None, None)
        assert row["ran"]["planned_calls"] == 0


def test_rows_that_were_tuned_elsewhere_are_timed_and_noted(of_two: dict[str, list[Ran]]) -> None:
    timed, of_library = json_of_ranks(of_two["elsewhere"]), json_of_ranks(of_two["library"])
    assert of_library["notes"] == []
    (note,) = timed["notes"]
    assert "tuned under 'mpich 5.0.2 spin own', and this is 'openmpi " in note
    shown = [row["ran"]["shown"] for row in timed["rows"]]
    assert [row["ran"]["planned_calls"] > 0 for row in timed["rows"]] == [True, False]
    assert shown[1] == "the library, as no row of the plan is for it"


@pytest.mark.parametrize("name", ["lost", "lost share"])
def test_a_schedule_that_did_not_run_is_no_measurement(of_two: dict[str, list[Ran]], name: str) -> None:
    """A call that no plan serves runs in the library, whose time would count as the schedule's."""
    why = "did not run where it was measured: calls of allreduce of 4096 bytes on 2 ranks"
    assert {ran.code for ran in of_two[name]} == {1}
    assert any(why in ran.err for ran in of_two[name])
    assert not any("wrote" in ran.out for ran in of_two[name])


@pytest.mark.parametrize(("environment", "which"), [(OPEN_MPI, 0), (MPICH, 1)], ids=["openmpi", "mpich"])
def test_a_rank_that_fails_alone_ends_the_others(environment: Path, which: int, tmp_path: Path) -> None:
    script, tuned = tmp_path / "alone.py", tmp_path / "t.plan"
    script.write_text(ALONE)
    few: Words = ["--machine", "archer", "-o", tuned, "--sizes", "64", "--rounds", "2", "--candidates", "1"]
    done = launch(environment, 2, script, "tune", "allreduce", *few, str(which))
    assert done.returncode != 0
    assert done.stderr.count("error: this rank alone fails\n") == 1
    assert not tuned.exists()


def test_one_rank_alone_is_told_to_use_mpiexec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tune = ["tune", "allreduce", "--machine", "archer", "-o", str(tmp_path / "t.plan")]
    for arguments in (["calibrate", "-o", "m.toml"], tune):
        ran = call(*arguments)
        assert ran.code == 2
        assert "at least two ranks: mpiexec -n 4 unisono" in ran.err
        with monkeypatch.context() as patched:
            patched.setenv("PMI_SIZE", "3")
            assert "each of the 3 that the launcher started is alone in MPI_COMM_WORLD" in call(*arguments).err
    # In a separate start, unlike the calls within this process.
    done = launch(OPEN_MPI, 1, "-m", "unisono", "bench", "allreduce", "--plan", "x")
    assert done.returncode == 2
    assert "at least two ranks: mpiexec -n 4 unisono" in done.stderr


def test_ranks_per_node_are_tuned_apart(tmp_path: Path) -> None:
    """MPICH emulates two nodes with two ranks each; two ranks are tuned on one node, and with one rank on each."""
    tuned = tmp_path / "t.plan"
    options = ["--machine", "archer", "-o", str(tuned), "--sizes", "64", "--rounds", "2", "--candidates", "1"]
    words = ["-m", "unisono", "tune", "allreduce", *options, "--ranks", "2", "--per-node", "1,2", "--json"]
    done = launch(MPICH, 4, *words, MPIR_CVAR_NUM_CLIQUES="2")
    assert done.returncode == 0, done.stdout + done.stderr
    cells = json.loads(done.stdout)["cells"]
    assert [(cell["ranks"], cell["per_node"]) for cell in cells] == [(2, 1), (2, 2)]
    assert [row["per_node"] for row in un.load_plans(tuned)] == [1, 2]


@pytest.mark.parametrize("options", [[], ["--share", "0.9"]], ids=["all", "share"])
def test_a_tune_whose_rank_is_killed_measures_only_the_rest_when_it_is_repeated(
    tmp_path: Path, options: list[str]
) -> None:
    program, plan = tmp_path / "killed.py", tmp_path / "t.plan"
    program.write_text(KILLED)
    # Three sizes are three contests at least: only plans that are faster than the library are timed again.
    sizes = "4KiB,16KiB,64KiB"
    few = ["tune", "broadcast", "--machine", "paper-sim", "--sizes", sizes, "--rounds", "2", "--candidates", "1"]
    words: Words = [program, *few, *options, "-o", plan, "--json"]
    killed = launch(OPEN_MPI, 2, *words, "2")
    assert killed.returncode != 0
    assert not plan.exists()
    assert len(Path(f"{plan}.points").read_text().splitlines()) == 1 + 2

    again = launch(OPEN_MPI, 2, *words, "-1")
    assert again.returncode == 0, again.stderr
    found = json.loads(again.stdout)
    assert found["resumed"] == 2
    assert "has 2 measurements of a run that ended early" in again.stderr
    chosen = found["measured"] if options else len(found["cells"])
    assert again.stderr.count(f"contests {chosen + len(found['confirmed']) - 2}\n") == 2, again.stderr
    assert plan.exists()
    assert not Path(f"{plan}.points").exists()
