"""Guidelines between measured collectives, and the logs of benchmarks of MPI."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
import unisono as un
from unisono.logs.benchmarks import read_benchmarks
from unisono.logs.collectives import Measured
from unisono.logs.guidelines import GUIDELINES, violations

from .conftest import ROOT, call, refusal, written

OSU = """
# OSU MPI{} Allreduce Latency Test v7.3
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations
4                      20.10              19.00             21.00         1000
1024                   30.00              29.00             31.00         1000

# OSU MPI{} Allgather Latency Test v7.3
# Size       Avg Latency(us)
256                     9.50
# OSU MPI{} Barrier Latency Test v7.3
# Avg Latency(us)
            30.25
# OSU MPI{} Allgatherv Latency Test v7.3
# Size       Avg Latency(us)
1                       7.00
"""
IMB = """
#----------------------------------------------------------------
# Benchmarking Allreduce
# #processes = 2
# ( 2 additional processes waiting in MPI_Barrier )
#----------------------------------------------------------------
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
            0         1000         0.05         0.06         0.05
            4         1000         1.10         1.30         1.20

#----------------------------------------------------------------
# Benchmarking Alltoall
# #processes = 4
#----------------------------------------------------------------
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
         1024          640         2.10         2.30         2.20

#---------------------------------------------------
# Benchmarking Barrier
# #processes = 4
#---------------------------------------------------
 #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
         1000         1.10         1.30         1.25

#---------------------------------------------------
# Benchmarking PingPong
# #processes = 2
#---------------------------------------------------
       #bytes #repetitions      t[usec]   Mbytes/sec
            1         1000         0.60         1.60
"""
#: Seconds of an ideal library by seconds per byte and bytes: no collective is slower than one that contains it.
IDEAL: dict[str, Callable[[float, int], float]] = {
    "barrier": lambda beta, n: 1e-6,
    "broadcast": lambda beta, n: 1e-6 + beta * n,
    "reduce": lambda beta, n: 1e-6 + beta * n,
    "allreduce": lambda beta, n: 1.5e-6 + 2 * beta * n,
    "scatter": lambda beta, n: 1e-6 + beta * n,
    "gather": lambda beta, n: 1e-6 + beta * n,
    "allgather": lambda beta, n: 1e-6 + beta * n,
    "alltoall": lambda beta, n: 2e-6 + beta * n,
    "reduce-scatter": lambda beta, n: 1e-6 + beta * n,
}


def test_logs_of_mpi_have_whole_vectors(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    for suffix in ("", "-CUDA"):
        log.write_text(OSU.replace("{}", suffix))
        assert [(p.collective, p.ranks, p.bytes, round(p.seconds * 1e6, 2)) for p in read_benchmarks([log], 8)] == [
            ("allreduce", 8, 4, 20.1), ("allreduce", 8, 1024, 30.0), ("allgather", 8, 2048, 9.5),
            ("barrier", 8, 0, 30.25),
        ]  # fmt: skip
    log.write_text(IMB)
    assert [(p.collective, p.ranks, p.bytes, round(p.seconds * 1e6, 2)) for p in read_benchmarks([log])] == [
        ("allreduce", 2, 4, 1.2), ("alltoall", 4, 4096, 2.2), ("barrier", 4, 0, 1.25),
    ]  # fmt: skip


def test_tuning_reports_have_the_chosen_times(tmp_path: Path) -> None:
    contenders = [{"algorithm": "library", "seconds": 3e-6}, {"algorithm": "ring", "seconds": 2e-6}]
    cell = {
        "collective": "allgather",
        "ranks": 6,
        "per_node": 4,
        "bytes": 64,
        "chosen": "ring",
        "contenders": contenders,
    }
    report = written(tmp_path / "tuned.json", json.dumps({"cells": [cell]}))
    assert read_benchmarks([report]) == [Measured("allgather", 6, 2, 384, 2e-6)]
    for damaged in (
        {},
        {"nccl_version": "2.28.3", "communicators": []},
        {"cells": [{**cell, "chosen": "none"}]},
        {"cells": 3},
        {"cells": [{**cell, "per_node": 0}]},
        {"cells": [{**cell, "bytes": "64"}]},
        {"cells": [{**cell, "contenders": [{"algorithm": "ring", "seconds": 0.0}]}]},
        {"cells": [3]},
    ):
        report.write_text(json.dumps(damaged))
        keys = ", ".join(map(repr, damaged)) or "none"
        with pytest.raises(un.InputError, match=rf"has no 'cells' with times \(its keys: {keys}\)"):
            read_benchmarks([report])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (OSU, "does not state the number of ranks, as logs of the OSU benchmarks do not; give --ranks"),
        (OSU.replace("20.10", "fast"), "the time is 'fast'; accepted are microseconds above 0"),
        ("# OSU MPI Allreduce Latency Test v7.3\n", "has no times of collectives; it may be cut"),
        (IMB.replace("         1.10         1.30         1.20", ""), "the row is cut, as it has no t_avg"),
        (IMB.replace("#processes = 2", "#processes = 99999999999"), "accepted are 1 to 16777216"),
        (IMB[: IMB.index("1.20") + 3], "the time is 1.2, without two decimals; the row is cut"),
        (OSU[: OSU.index("9.50") + 1], "the time is 9, without two decimals; the row is cut"),
        (IMB, "--ranks 4 is for logs of the OSU benchmarks"),
        ("hello", "has none of the formats that are read: the output of nccl-tests"),
        ("{", "is no JSON"),
    ],
)
def test_what_is_no_log_is_refused(tmp_path: Path, text: str, message: str) -> None:
    log = written(tmp_path / "a.log", text.replace("{}", ""))
    assert message in refusal("check-guidelines", str(log), *([] if text == OSU else ["--ranks", "4"]))


def test_an_ideal_library_breaks_nothing_and_a_slow_collective_is_named() -> None:
    draw = random.Random(7)
    for _ in range(200):
        beta, ranks = 10 ** draw.uniform(-12, -8), draw.choice([2, 6, 8])
        sizes = sorted({4, *(draw.randrange(1, 1 << 24) for _ in range(12))})
        points = [
            Measured(name, ranks, 1, 0 if name == "barrier" else size, of(beta, size))
            for name, of in IDEAL.items()
            for size in sizes
        ]
        found, count = violations(points)
        assert not found
        assert count > 8 * len(sizes)
        slow = draw.choice([name for name, _ in GUIDELINES])
        factor = draw.uniform(4, 9)
        found, _ = violations(
            [p if p.collective != slow else Measured(slow, ranks, 1, p.bytes, factor * p.seconds) for p in points]
        )
        assert slow in {of.collective for of in found}
        assert all(of.seconds > of.other_seconds for of in found)


def test_the_least_of_several_times_counts() -> None:
    draw = random.Random(11)
    for _ in range(100):
        names, sizes = draw.sample(sorted(IDEAL), 5), draw.sample(range(1, 1 << 20), 4)
        points = [Measured(name, 6, 1, size, draw.uniform(1e-6, 9e-6)) for name in names for size in sizes]
        slower = [Measured(p.collective, 6, 1, p.bytes, p.seconds * draw.uniform(1, 9)) for p in points]
        again = [*points, *draw.sample(slower, 12)]
        draw.shuffle(again)
        found, expected = violations(again), violations(points)
        assert found[1] == expected[1]
        assert sorted(map(str, found[0])) == sorted(map(str, expected[0]))


def test_ranks_between_powers_of_two_are_compared_with_the_next() -> None:
    points = [Measured("broadcast", ranks, 1, 8, us * 1e-6) for ranks, us in ((7, 30.0), (8, 20.0), (5, 22.0))]
    [found] = violations(points)[0]
    assert (found.ranks, found.guideline) == (7, "broadcast <= 1.2 x broadcast on 8 ranks")
    assert found.ratio == pytest.approx(30 / 24)


def test_the_command_prints_what_the_page_shows_and_ends_with_1() -> None:
    page = (ROOT / "docs" / "commands.md").read_text()
    line = "check-guidelines examples/logs/openmpi.csv --tolerance 3"
    ran = call(*line.replace("examples", str(ROOT / "examples"), 1).split())
    assert ran.code == 1
    assert f"$ unisono {line}\n{ran.out}```" in page
    report = call("check-guidelines", str(ROOT / "examples" / "logs" / "openmpi.csv"), "--json").json
    assert set(report["violations"][0]) == {
        "collective", "bytes", "ranks", "seconds", "guideline", "other_seconds", "ratio",
    }  # fmt: skip
    assert call("check-guidelines", str(ROOT / "README.md")).code == 2
    assert "which holds no times" in refusal("check-guidelines", "some.plan")
