"""Reports of NCCL's RAS: the findings of `unisono diagnose` on communicators whose ranks differ."""

import contextlib
import random
from pathlib import Path

import pytest
import unisono as un
from unisono.logs.ras import is_ras, ras_hangs, read_ras

from .conftest import call

HASH = "78db921d1c117b4a"
PLACE = "GPU 3 managed by process 1650386 on node node1"


def report(*sections: str, size: int = 8, count: int = 1, errors: str = "MISMATCH", warnings: str = "") -> bytes:
    """Returns a report in the words of NCCL 2.28, with one group of communicators."""
    return f"""NCCL version 2.28.3 compiled with CUDA 12.9
CUDA runtime version 12090, driver version 12080

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      2          4            1          8        8

Communicators... (0.00s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0  {count:8}         2         4  {size:8}         8   RUNNING  {errors}

Errors
======

{"".join(sections)}Warnings
========

{warnings}""".encode()


def counts(of: dict[int, int], kind: str | None = "AllReduce") -> str:
    """Returns the section of a communicator whose rank k has launched ``of[k]`` operations; it lists minorities."""
    lines = [f"#0-0 ({HASH}) MISMATCH"]
    lines.append(f"  Communicator ranks have different {f'{kind} ' if kind else 'collective '}operation counts")
    for number in sorted(set(of.values()), key=lambda number: -[*of.values()].count(number)):
        ranks = [rank for rank, own in of.items() if own == number]
        what = f"have launched up to operation {number}" if number else "have not launched any operations"
        if len(ranks) > 1:
            lines.append(f"  {len(ranks)} ranks {what}")
        if len(ranks) * 2 <= len(of):
            one = f" {what.replace('have', 'has', 1)}" if len(ranks) == 1 else ""
            lines += [f"  Rank {rank}{one} -- {PLACE}" for rank in ranks]
    return "\n".join(lines) + "\n\n"


@pytest.mark.parametrize("seed", range(20))
def test_ranks_behind_are_named(seed: int) -> None:
    draw = random.Random(seed)
    size, most = draw.randint(2, 40), draw.randint(1, 10**6)
    late = draw.sample(range(size), draw.randint(1, max(1, size // 2)))
    launched = dict.fromkeys(range(size), most)
    launched |= {rank: draw.randint(0, most - 1) for rank in late}
    kind = draw.choice([None, "AllReduce", "Broadcast"])
    (hang,), notes = ras_hangs([read_ras(report(warnings=counts(launched, kind), size=size), "ras.txt")])
    assert (hang.kind, hang.group, hang.call, notes) == ("missing", HASH, most, [])
    assert sorted(hang.waits_for) == sorted(late)
    if size > 2 * len(late):
        assert hang.ranks == ()
    assert ("usual while a job goes on" in hang.words) is (min(launched.values()) == most - 1)


def test_the_words_are_those_of_dumps(tmp_path: Path) -> None:
    text = report(warnings=counts({**dict.fromkeys(range(7), 64), 7: 60}))
    (tmp_path / "ras.txt").write_bytes(text)
    ran = call("diagnose", str(tmp_path / "ras.txt"))
    words = "7 ranks wait in AllReduce for rank 7: rank 7 made its last call, 60, and no further one"
    assert ran.code == 1, ran.err
    assert ran.out == f"1 report of 1 communicator: 1 hang\n\n1. communicator {HASH}, call 64: {words} ({PLACE})\n"


def test_who_goes_on_between_two_reports_is_no_hang() -> None:
    first = read_ras(report(warnings=counts({0: 9, 1: 9, 2: 9, 3: 8}), size=4), "one")
    later = read_ras(report(warnings=counts({0: 12, 1: 12, 2: 12, 3: 11}), size=4), "two")
    found, notes = ras_hangs([first, later])
    assert found == []
    assert "goes on: its last ranks went from operation 8 to 11" in notes[0]
    (hang,), notes = ras_hangs([first, first])
    assert (hang.waits_for, notes, "usual" in hang.words) == ((3,), [], False)


def test_healthy_and_failed_jobs() -> None:
    assert ras_hangs([read_ras(report(errors="OK", count=8), "ras")]) == ([], [])
    gone = "DEAD\n  1 job process is considered dead (unreachable via the RAS network)\n"
    gone += "  Process 3487984 on node 172.16.64.213 managing GPU 5\n\n"
    lost = f"#0-0 ({HASH}) INCOMPLETE\n  Missing communicator data from 1 rank\n  The missing rank: 5\n\n"
    failed = (
        f"#0-0 ({HASH}) ERROR\n  Asynchronous error on 1 rank\n  Rank 2 reported Remote process error -- {PLACE}\n\n"
    )
    (missing, error), notes = ras_hangs([read_ras(report(gone, lost, failed, errors="INCOMPLETE,ERROR"), "ras")])
    assert (missing.waits_for, error.kind, error.ranks) == ((5,), "failed", (2,))
    assert "rank 5 gave no data, so it may have ended or failed" in missing.words
    assert f"rank 2 reported Remote process error ({PLACE})" in error.words
    assert notes == ["1 process is dead or without an answer: process 3487984 on 172.16.64.213 (GPU 5)"]
    states = f"#0-0 ({HASH}) MISMATCH\n  Communicator ranks have different status\n  7 ranks have status FINALIZE\n"
    (hang,), _ = ras_hangs([read_ras(report(warnings=f"{states}  Rank 3 has status RUNNING -- {PLACE}\n"), "ras")])
    assert "7 ranks have status FINALIZE, and rank 3 has status RUNNING" in hang.words


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (report().partition(b"Warnings")[0], "a cut report of RAS: it ends before its section Warnings"),
        (report().replace(b"    0  ", b"    x  "), "its table has no groups"),
        (report(warnings=counts({0: 1, 1: 2}), size=1), "communicator of 1"),
        (report(warnings=counts({0: 1, 1: 2, 99: 0})), "rank 99"),
        (report(warnings=counts({0: 1, 1: 2}).replace("#0-0", "#3-0")), "#3-0 is in no group"),
        (report(size=99999999), "accepted is each group once, of 1 to 2^24"),
    ],
)
def test_damaged_reports_are_one_sentence(text: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "ras.txt").write_bytes(text)
    ran = call("diagnose", str(tmp_path / "ras.txt"))
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1), ran.err
    assert message in ran.err


def test_options_of_logs_are_refused(tmp_path: Path) -> None:
    (tmp_path / "ras.txt").write_bytes(report(errors="OK"))
    assert "--ranks is for logs of times" in call("diagnose", str(tmp_path / "ras.txt"), "--ranks", "4").err


def test_changed_reports_are_read_or_refused() -> None:
    """Reports with randomly changed bytes are read or refused."""
    draw = random.Random(7)
    whole = report(warnings=counts({0: 5, 1: 5, 2: 4, 3: 0, 4: 5, 5: 5, 6: 5, 7: 5}))
    for _ in range(3000):
        data = bytearray(whole)
        for _ in range(draw.randint(1, 6)):
            at = draw.randrange(len(data))
            new = draw.choice([b"9" * draw.randint(1, 30), bytes([draw.randrange(256)]), b"", b"\n", b"-1"])
            data[at : at + draw.randint(0, 3)] = new
        with contextlib.suppress(un.InputError):
            ras_hangs([read_ras(bytes(data), "ras")])
        assert is_ras(bytes(data)) in (True, False)


def test_a_rank_has_one_count_of_a_kind() -> None:
    whole = counts({0: 9, 1: 9, 2: 9, 3: 9, 4: 9, 5: 9, 6: 7, 7: 8})
    assert read_ras(report(warnings=whole), "ras.txt")
    twice = whole.replace("Rank 7 has", "Rank 6 has")
    assert twice != whole
    with pytest.raises(un.InputError, match="rank 6 is listed twice; it is damaged"):
        read_ras(report(warnings=twice), "ras.txt")
