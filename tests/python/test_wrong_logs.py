"""Logs with wrong results, with several groups of ranks, and with tests that are not read."""

import random
import re
from pathlib import Path

import pytest
import unisono as un
from unisono.logs.benchmarks import read_logs
from unisono.logs.collectives import LeftOut, Measured, read_log

from .conftest import call, refusal, written
from .posted_logs import hosts, imb_log, nccl_log, osu_log, rows_of
from .test_collective_logs import SHARES, log_of

SIZES = [(1 << power, 30.0 * (1 + power)) for power in range(10, 14)]


def is_row(line: str) -> bool:
    return line.split()[:1] != [] and line.split()[0].isdecimal()


@pytest.mark.parametrize("kind", [*SHARES])
def test_a_wrong_result_of_any_row_is_refused(kind: str) -> None:
    """A count of wrong elements, out of place or in place, and the line after the rows each refuse a log."""
    some = random.Random(kind)
    points = [Measured(kind, 8, 1, 64 << n, 1e-5) for n in range(4)]
    lines = log_of(points, is_named=True, some=some).splitlines()
    read_log("\n".join(lines), "log")
    place = some.choice([place for place, line in enumerate(lines) if is_row(line)])
    for column in (8, 12):
        for count in (str(some.randint(1, 99)), "1e+06", "nan", "x"):
            words = lines[place].split()
            words[column] = count
            wrong = [*lines[:place], " ".join(words), *lines[place + 1 :]]
            with pytest.raises(un.InputError, match=rf"line {place + 1}: .*wrong"):
                read_log("\n".join(wrong), "log")
    for end in ("# Out of bounds values : 7 FAILED", " Out of bounds values : 1 FAILED", "# Out of bounds values : 3"):
        with pytest.raises(un.InputError, match=f"line {len(lines) + 1}: the test found wrong results"):
            read_log("\n".join([*lines, end]), "log")
    read_log("\n".join([*lines, "# Out of bounds values : 0 OK"]), "log")


def test_wrong_results_of_mpi_are_refused(tmp_path: Path) -> None:
    """OSU's benchmarks state them in a column Validation, builds of IMB that check results in a column defects."""
    some, log = random.Random(5), tmp_path / "a.log"
    osu = osu_log("Allreduce", SIZES).replace("(us)", "(us) Validation").splitlines()
    osu = [f"{line} Pass" if is_row(line) else line for line in osu]
    imb = imb_log(4, {"Allreduce": SIZES}).replace("t_avg[usec]", "t_avg[usec] defects").splitlines()
    imb = [f"{line} 0.00" if is_row(line) else line for line in imb]
    for lines, right, bad in ((osu, "Pass", ("Fail",)), (imb, "0.00", ("0.25", "12.00", "nan"))):
        given = ["--ranks", "4"] if lines is osu else []
        log.write_text("\n".join(lines))
        assert len(call("diagnose", str(log), *given, "--json").json["times"]) == len(SIZES)
        place = some.choice([place for place, line in enumerate(lines) if is_row(line)])
        for word, said in [*((word, "the result is wrong") for word in bad), ("", "the row is cut")]:
            row = lines[place].removesuffix(right) + word
            log.write_text("\n".join([*lines[:place], row, *lines[place + 1 :]]))
            assert f"line {place + 1}: {said}" in refusal("diagnose", str(log), *given)


def grouped(kind: str, nodes: int, each: int, group_of: list[int]) -> str:
    """Returns the output of nccl-tests whose rank r belongs to the group ``group_of[r]``."""
    whole = nccl_log(kind, nodes, each, []).splitlines()
    ranks = [
        line.replace("Group  0", f"Group {group:2}")
        for line, group in zip(hosts(nodes, each, "NVIDIA H100 80GB HBM3"), group_of, strict=True)
    ]
    rows = rows_of(kind, group_of.count(group_of[0]), SIZES)
    return "\n".join([*whole[:2], *ranks, *whole[2 + len(ranks) : -1], *rows, "# Out of bounds values : 0 OK", ""])


@pytest.mark.parametrize("kind", ["allreduce", "allgather", "broadcast"])
def test_a_split_test_has_the_ranks_of_one_group(kind: str, tmp_path: Path) -> None:
    """NCCL_TESTS_SPLIT_MASK=7 makes the group of a process its rank & 7; other splits are by % and /."""
    some = random.Random(kind)
    for _ in range(10):
        nodes, each = some.choice((1, 2, 3)), some.choice((2, 4))
        ranks = nodes * each
        for group_of, shape in (
            ([0] * ranks, (ranks, nodes, 1)),
            ([rank % each for rank in range(ranks)], (nodes, nodes, each)),
            ([rank // each for rank in range(ranks)], (each, 1, nodes)),
            ([rank & 1 for rank in range(ranks)], (ranks // 2, nodes, 2)),
        ):
            if shape[0] == 1:
                continue
            left_out = LeftOut()
            found = read_log(grouped(kind, nodes, each, group_of), "log", left_out=left_out)
            assert {(point.ranks, point.nodes) for point in found} == {shape[:2]}
            assert [point.bytes for point in found] == [size for size, _ in SIZES]
            said = f"{shape[2]} groups of {shape[0]} GPUs ran {kind} at the same time"
            assert any(said in one for one in left_out.sentences()) is (shape[2] > 1)
    # Means over groups of several sizes, or on several numbers of nodes, are times of none of them.
    for nodes, each, group_of in ((1, 4, [0, 0, 0, 1]), (2, 4, [0, 0, 1, 2, 1, 2, 3, 3])):
        log = written(tmp_path / "a.log", grouped(kind, nodes, each, group_of))
        assert "the times are means over groups of" in refusal("diagnose", str(log))


@pytest.mark.parametrize("title", ["Allgatherv", "Non-blocking Allgather", "Neighborhood Alltoall", "Bandwidth"])
def test_a_test_that_is_not_read_is_named(title: str, tmp_path: Path) -> None:
    """A note counts the rows of a test that is not read. They are never taken for rows of the previous test."""
    log, test = tmp_path / "a.log", re.sub(r"[ -]", "_", title)
    head = {"Bandwidth": "Bandwidth Test"}.get(title, f"{title} Latency Test")
    own = [osu_log("Allreduce", SIZES), imb_log(4, {"Allreduce": SIZES})]
    other = [osu_log("Allreduce", SIZES[:2]).replace("Allreduce Latency Test", head), imb_log(4, {test: SIZES[:2]})]
    for with_ranks, read, dropped in zip((True, False), own, other, strict=True):
        given = ["--ranks", "4"] if with_ranks else []
        said = f"2 rows of '{title if with_ranks else test}' are left out"
        for text in (read + dropped, dropped + read):
            log.write_text(text)
            report = call("diagnose", str(log), *given, "--json").json
            assert [row["bytes"] for row in report["times"]] == [size for size, _ in SIZES]
            assert any(said in note for note in report["notes"]), report["notes"]
        log.write_text(dropped)
        alone = refusal("diagnose", str(log), *given)
        assert said in alone
        assert "and the log has no other rows" in alone


def test_a_row_behind_a_message_is_read_or_refused(tmp_path: Path) -> None:
    some = random.Random(3)
    for _ in range(20):
        kind = some.choice([*SHARES])
        points = [Measured(kind, 8, 1, 64 << n, 1e-5) for n in range(4)]
        lines = log_of(points, is_named=True, some=some).splitlines()
        place = some.choice([place for place, line in enumerate(lines) if is_row(line)])
        message = f"node0:1000:1000 [0] NCCL {some.choice(('INFO', 'WARN'))} Channel 00/0 : 0[0] -> 1[1] "
        glued = [*lines[:place], message + lines[place], *lines[place + 1 :]]
        assert read_log("\n".join(glued), "log") == read_log("\n".join(lines), "log")
        cut = " ".join(lines[place].split()[: some.randint(4, 12)])
        with pytest.raises(un.InputError, match=f"line {place + 1}: the row is cut"):
            read_log("\n".join([*lines[:place], message + cut, *lines[place + 1 :]]), "log")
    log = written(tmp_path / "a.log", "\n".join(glued))
    assert len(read_logs([log])[0].points) == len(points)
