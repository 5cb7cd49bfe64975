"""`unisono diagnose`: posted logs, laws of findings on random logs, and files that are no logs."""

import json
import random
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import unisono as un
from unisono.logs.benchmarks import Log, read_logs
from unisono.logs.collectives import Measured
from unisono.logs.expectations import Expected, Key, expected_times, key_of
from unisono.logs.findings import KINDS, Finding, findings
from unisono.logs.library_calibration import calibrated
from unisono.logs.remarks import Remark, remarks
from unisono.planning.libraries import library_choice, library_sizes

from .conftest import ROOT, call, refusal, written
from .posted_logs import H100, MISSED, POSTED, Posted, nccl_log, osu_log

sys.path.insert(0, str(ROOT / "docs"))


def given(posted: Posted, folder: Path) -> list[str]:
    """Writes the logs and the machine of a thread, and returns the words of the command."""
    words = ["diagnose", *posted.options]
    for name, text in posted.logs.items():
        (folder / name).write_text(text)
        words.append(str(folder / name))
    if posted.box is not None:
        import gpu_page

        names = ("architecture", "gpus", "nvlinks", "interfaces", "gbps", "pcie")
        row = {
            **dict(zip(names, map(str, posted.box), strict=True)),
            "boxes": str(posted.boxes),
            "joined": posted.joined,
        }
        (folder / "machine.toml").write_text(gpu_page.machine_of(row).to_toml())
        words += ["--machine", str(folder / "machine.toml")]
    return words


@pytest.mark.parametrize("posted", POSTED, ids=lambda posted: posted.source)
def test_a_posted_log_ends_as_its_thread(posted: Posted, tmp_path: Path) -> None:
    ran = call(*given(posted, tmp_path), "--json")
    report = ran.json
    assert ran.code == (1 if posted.says else 0), report["sentences"]
    sentences = "\n".join(report["sentences"])
    for text in posted.says:
        assert text in sentences
    assert len(report["sentences"]) <= 3
    kinds = {finding["kind"] for finding in report["findings"]}
    assert kinds <= set(posted.kinds or KINDS)


def test_threads_that_times_do_not_decide_are_listed() -> None:
    assert not set(MISSED) & {posted.source for posted in POSTED}
    assert len(POSTED) >= 15


SIZES = [8 << power for power in range(0, 26, 2)]


def curve(draw: random.Random, ranks: int = 8, noise: float = 0.04) -> list[Measured]:
    """Returns times of an ideal library, a start and a time per byte, with noise below the tolerance."""
    start, beta = draw.uniform(300e-6, 900e-6), 10 ** draw.uniform(-11, -9)
    return [
        Measured("allreduce", ranks, 1, size, (start + beta * size) * (1 + draw.uniform(0, noise))) for size in SIZES
    ]


def slower(points: Sequence[Measured], sizes: Sequence[int], factor: float) -> list[Measured]:
    return [replace(of, seconds=of.seconds * factor) if of.bytes in sizes else of for of in points]


def of_kind(kind: str, found: Sequence[Finding]) -> list[Finding]:
    return [of for of in found if of.kind == kind]


def test_ideal_logs_have_no_findings() -> None:
    draw = random.Random(1)
    for _ in range(200):
        points = curve(draw)
        logs = [
            Log(f"day{day}", [replace(of, seconds=of.seconds * draw.uniform(0.97, 1.0)) for of in points], [])
            for day in range(draw.randint(1, 5))
        ]
        assert not findings(logs)


def test_a_size_that_is_slow_is_a_cliff_that_costs_what_it_loses() -> None:
    """If all sizes from a size on take a multiple of their time, the cliff extends from this size to the last size."""
    draw = random.Random(2)
    for _ in range(200):
        factor, beta = draw.uniform(1.5, 30), 10 ** draw.uniform(-10, -9)
        points = [Measured("allgather", 6, 2, size, beta * size) for size in SIZES]
        sizes = SIZES[draw.randrange(1, len(SIZES)) :]
        [found] = findings([Log("x", slower(points, sizes, factor), [], of_gpus=True)])
        assert (found.kind, found.first_bytes, found.last_bytes) == ("cliff", sizes[0], sizes[-1])
        assert found.ratio == pytest.approx(factor)
        assert found.lost == pytest.approx(len(sizes) * (1 - 1 / factor))
        assert ("PFC" in found.advice) == (factor > 3)


def test_a_larger_size_that_is_quicker_is_found() -> None:
    draw = random.Random(3)
    for _ in range(100):
        points, at = curve(draw, noise=0), draw.randrange(len(SIZES) - 1)
        factor = draw.uniform(1.3, 9) * points[at + 1].seconds / points[at].seconds
        found = findings([Log("x", slower(points, SIZES[at : at + 1], factor), [])])
        assert [of.bytes for of in found if "as long at" in of.words] == [SIZES[at]]


def test_the_slow_one_of_several_logs_is_named() -> None:
    draw = random.Random(4)
    for _ in range(100):
        points, factor, count = curve(draw), draw.uniform(1.3, 5), draw.randint(2, 8)
        slow = draw.randrange(count)
        logs = [
            Log(str(at), slower(points, SIZES, factor if at == slow else 1), [], hosts=frozenset({f"h{at}", "h"}))
            for at in range(count)
        ]
        [found] = findings(logs)
        assert (found.kind, found.log, found.sizes) == ("spread", str(slow), len(SIZES))
        assert f"only slow logs have: h{slow} (in 1 of 1)" in found.advice


def test_repeats_that_differ_are_found() -> None:
    points = curve(random.Random(5))
    [found] = findings([Log("x", [*points, *slower(points, SIZES[4:6], 2.0)], [])])
    assert (found.kind, found.sizes, found.first_bytes) == ("spread", 2, SIZES[4])


def expectation(machine: un.Machine, points: Sequence[Measured], library: str | None) -> dict[Key, Expected]:
    found, notes = expected_times(machine, points, library)
    assert not notes
    return found


@pytest.mark.parametrize(("name", "library", "first"), [("dgx-h100", "nccl", 256 << 20), ("archer", None, 1 << 10)])
def test_times_are_judged_by_what_a_machine_allows(name: str, library: str | None, first: int) -> None:
    """Expected times give no finding, longer times are below expectation, times below the ceiling impossible."""
    draw, machine = random.Random(6), un.machine(name)
    sizes = [first, 2 * first, 4 * first]
    points = [Measured("allreduce", 8, 1, size, 1.0) for size in sizes]
    expected = expectation(machine, points, library)
    exact = [replace(of, seconds=expected[key_of(of)].seconds) for of in points]
    assert not of_kind("below-expectation", findings([Log("x", exact, [])], expected=expected))
    assert not of_kind("faster-than-possible", findings([Log("x", exact, [])], expected=expected))
    for _ in range(20):
        slow, factor = draw.sample(sizes, draw.randint(1, 3)), draw.uniform(1.6, 9)
        found = of_kind("below-expectation", findings([Log("x", slower(exact, slow, factor), [])], expected=expected))
        assert [(of.sizes, of.first_bytes) for of in found] == [(len(slow), min(slow))]
        assert found[0].ratio == pytest.approx(factor)
        assert found[0].ceiling is not None
        assert found[0].ceiling <= found[0].expected * (1 + 1e-9)
    fast = [replace(of, seconds=0.9 * (expected[key_of(of)].ceiling or 1.0)) for of in points]
    [impossible] = of_kind("faster-than-possible", findings([Log("x", fast, [])], expected=expected))
    assert impossible.sizes == len(sizes)


def test_a_node_without_a_fault_is_not_accused() -> None:
    """Two sizes of a real node took longer than larger ones; its other times are normal for NCCL's own estimates."""
    logs = read_logs([ROOT / "docs" / "measured" / "a100x4-nvlink.csv"])
    expected = expectation(un.machine("a100x4"), [of for of in logs[0].points if of.ranks == 2][::2], "nccl")
    assert not of_kind("below-expectation", findings(logs, expected=expected))
    assert len(findings(logs)) == 3


def test_the_page_lists_the_threads_and_shows_what_is_printed() -> None:
    page = (ROOT / "docs" / "diagnose.md").read_text()
    for source, reason in MISSED.items():
        assert f"| {source} | {reason} |" in page
    assert f"the times of {len(POSTED)} threads" in page
    ran = call("diagnose", str(ROOT / "docs" / "measured" / "a100x4-nvlink.csv"))
    assert ran.code == 1
    for line in ran.out.splitlines():
        if line.startswith(("cliff", "1. ", "2. ", "3. ")):
            assert line in page


def test_a_setting_that_leaves_a_slower_algorithm_is_named() -> None:
    machine, point = un.machine("dgx-h100"), Measured("allreduce", 8, 1, 1 << 30, 1.0)
    expected = expectation(machine, [point], "nccl")
    choices = expected[key_of(point)].choices
    tree = next(one for one in choices if (one.algorithm, one.protocol) == ("tree", "simple"))
    assert choices[0].algorithm == "nvls"
    log = Log("x", [replace(point, seconds=tree.seconds)], remarks("mpirun -x NCCL_ALGO=Tree -x NCCL_PROTO=Simple"))
    [found] = of_kind("algorithm", findings([log], expected=expected))
    assert found.advice == "unset NCCL_ALGO and NCCL_PROTO"
    assert "tree simple, where nvls simple is quicker" in found.words
    assert not of_kind("algorithm", findings([replace(log, remarks=[])], expected=expected))


def test_fitted_times_show_a_wrong_choice_of_the_library() -> None:
    """If one protocol takes ten times NCCL's own estimate, a finding names a quicker algorithm or protocol."""
    machine = un.machine("dgx-a100")
    points = [Measured("allreduce", 8, 1, 1 << power, 1.0) for power in range(10, 31)]
    own = expectation(machine, points, "nccl")
    times = [
        replace(of, seconds=own[key_of(of)].seconds * (10 if own[key_of(of)].choices[0].protocol == "ll" else 1))
        for of in points
    ]
    made = calibrated(machine, times)[0]
    found = of_kind("algorithm", findings([Log("x", times, [])], expected=expectation(made, times, "nccl")))
    assert found
    assert all(of.advice.startswith("set NCCL_ALGO=") for of in found)


def test_an_algorithm_that_no_log_measured_is_not_advised() -> None:
    """If all measured times are multiples of NCCL's own, an unmeasured algorithm's own estimate is the least time."""
    draw = random.Random(12)
    for name in ("dgx-a100", "dgx-h100"):
        machine, first = un.machine(name), draw.randint(10, 20)
        points = [Measured("allreduce", 8, 1, 1 << power, 1.0) for power in range(first, first + 5)]
        own = expectation(machine, points, "nccl")
        times = [replace(of, seconds=own[key_of(of)].seconds * draw.uniform(4, 5)) for of in points]
        made, groups = calibrated(machine, times)[:2]
        measured = {group.key[:2] for group in groups}
        expected = expectation(made, times, "nccl")
        assert any(min(of.choices, key=lambda one: one.seconds).is_fitted is False for of in expected.values())
        for found in of_kind("algorithm", findings([Log("x", times, [])], expected=expected)):
            assert any(f"where {' '.join(pair)} is quicker" in found.words for pair in measured), found.words
        for row in library_sizes("allreduce", made):
            elements = -(-max(row["first_bytes"], 1) // 4)
            if row["last_bytes"] is None or 4 * elements <= row["last_bytes"]:
                best = library_choice("allreduce", made, elements)["choices"][0]
                pair = (row["algorithm"], row["protocol"])
                assert pair in measured if best["calibrated"] else pair == (best["algorithm"], best["protocol"])


def test_a_sentence_has_the_cause_that_its_log_shows(tmp_path: Path) -> None:
    """In the log of aws/aws-ofi-nccl#889 the network plugin fails, and NCCL uses sockets."""
    before = ["host-a:1:2 [0] NCCL INFO Using network Socket"]
    (tmp_path / "a.log").write_text(nccl_log("allreduce", 2, 8, [(1 << 30, 600e3)], before=before))
    [sentence] = call("diagnose", str(tmp_path / "a.log"), "--machine", "dgx-h100", "--json").json["sentences"]
    assert "NCCL sends over TCP sockets: let it find InfiniBand" in sentence


def test_remarks_are_of_lines_and_excused_by_others() -> None:
    socket = "h:1:2 [0] NCCL INFO Using network Socket\n"
    assert [of.words for of in remarks(socket)] == ["NCCL sends over TCP sockets"]
    assert not remarks(socket + "h:1:2 [1] NCCL INFO Using network IB\n")
    assert not remarks("nothing to remark on")
    [algorithm] = remarks("a NCCL INFO NCCL_ALGO set by environment to Ring,NVLSTree")
    assert algorithm == Remark(
        "NCCL_ALGO=Ring,NVLSTree leaves NCCL no other algorithms",
        "unset NCCL_ALGO",
        "NCCL_ALGO",
        (("", "ring,nvlstree"),),
    )


ALGORITHMS = ("tree", "ring", "collnetdirect", "collnetchain", "nvls", "nvlstree", "pat")
FUNCTIONS = ("Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce")


def test_settings_of_single_functions_are_read_as_nccl_reads_them(tmp_path: Path) -> None:
    """The reference follows `parseList` of NCCL: a list sets a row of a matrix, and a later list replaces it."""
    some = random.Random(24)
    for _ in range(200):
        enabled = {function: dict.fromkeys(ALGORITHMS, True) for function in FUNCTIONS}
        entries, concerned = [], set[str]()
        for at in range(some.randint(1, 4)):
            of = "" if at == 0 and some.random() < 0.5 else some.choice(FUNCTIONS)
            names, excludes = some.sample(ALGORITHMS, some.randint(1, 3)), some.random() < 0.3
            for function in [of] if of else FUNCTIONS:
                enabled[function] = {name: (name in names) != excludes for name in ALGORITHMS}
                concerned.add(function)
            cased = [some.choice((str.upper, str.lower))(name) for name in names]
            entries.append(
                f"{some.choice((of, of.lower()))}{':' if of else ''}{'^' if excludes else ''}{','.join(cased)}"
            )
        value = ";".join(entries)
        quoted = some.choice(
            (f"NCCL_ALGO='{value}' ./x", f"h:1:2 [0] NCCL INFO NCCL_ALGO set by environment to {value}")
        )
        [setting] = remarks(quoted)
        assert f"NCCL_ALGO={value} " in setting.words
        for function, row in enabled.items():
            collective = "reduce-scatter" if function == "ReduceScatter" else function.lower()
            assert {name: setting.permits(collective, name) for name in ALGORITHMS} == row, (value, function)
            assert setting.concerns(collective) is (function in concerned)
            assert remarks(quoted, [collective, "alltoall"]) == ([setting] if function in concerned else [])
        assert not setting.concerns("alltoall")
    # A setting for another function is not reported, neither as a cause nor as a note.
    for function, is_noted in (("allreduce", True), ("broadcast", False)):
        before = [f"h:1:2 [0] NCCL INFO NCCL_PROTO set by environment to {function}:LL"]
        log = written(tmp_path / "a.log", nccl_log("allreduce", 1, 8, [(1 << 30, 60e3)], before=before))
        report = call("diagnose", str(log), "--machine", "dgx-h100", "--json").json
        said = f"NCCL_PROTO={function}:LL restricts NCCL's protocols"
        assert any(said in one["words"] for one in report["remarks"]) is is_noted
        assert any(said in one for one in report["sentences"]) is is_noted
        fit = call("calibrate", "--from", str(log), "--machine", "dgx-h100", "-o", str(tmp_path / "m.toml"), "--json")
        assert any(said in one for one in fit.json["notes"]) is is_noted


def test_an_excluded_algorithm_is_not_the_used_one() -> None:
    machine, point = un.machine("dgx-h100"), Measured("allreduce", 8, 1, 1 << 30, 1.0)
    expected = expectation(machine, [point], "nccl")
    first, *others = expected[key_of(point)].choices
    second = next(one for one in others if one.algorithm != first.algorithm)
    log = Log("x", [point], remarks(f"NCCL_ALGO=^{first.algorithm.replace('_', '')}"))
    [found] = of_kind("algorithm", findings([log], expected=expected))
    assert f"uses {second.name}, where {first.name} is quicker" in found.words
    assert found.advice == "unset NCCL_ALGO"


def test_choices_of_mpi_libraries_are_judged_by_their_rules(tmp_path: Path) -> None:
    """Open MPI broadcasts 64 KiB on 7 ranks by 6 messages of the root, although a binomial tree needs 3 rounds."""
    model = "alpha_ns = 1000\nbeta_ns_per_byte = 1\ngamma_ns_per_byte = 0\n"
    machine = written(tmp_path / "h.toml", f'name = "h"\nkind = "endpoint"\nmodel = "hockney"\n{model}')
    log = written(tmp_path / "a.csv", "op,ranks,bytes,time_us\nbroadcast,7,65536,400\n")

    def findings_of(library: str) -> list[dict[str, Any]]:
        ran = call("diagnose", str(log), "--machine", str(machine), "--as", library, "--json")
        return list(json.loads(ran.out)["findings"])

    (wrong,) = findings_of("openmpi")
    assert (wrong["kind"], wrong["measured"]) == ("algorithm", pytest.approx(400e-6))
    assert "basic_linear, where " in wrong["words"]
    assert "--for openmpi -o FILE" in wrong["advice"]
    # MPICH's choice is a binomial tree, which would take less than the measured time.
    (slow,) = findings_of("mpich")
    assert (slow["kind"], slow["expected"]) == ("below-expectation", pytest.approx(3 * (1000 + 65536) * 1e-9))


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("hello", (), "has none of the formats that are read: the output of nccl-tests"),
        (osu_log("Allreduce", [(4, 1.0)]), (), "give --ranks"),
        (osu_log("Allreduce", [(4, 1.0)]), ("--nodes", "2"), "give --ranks too"),
        (osu_log("Allreduce", [(4, 1.0)]), ("--ranks", "64", "--nodes", "65"), "--ranks 64 are on at most as many"),
        (nccl_log("allreduce", 1, 8, [(1 << 20, 30.0)]), ("--as", "nccl"), "name that with --machine"),
        (nccl_log("allreduce", 1, 8, [(1 << 20, 30.0)]), ("--machine", "dgx-a100"), "which is hopper"),
        (
            nccl_log("allreduce", 1, 8, [(1 << 20, 30.0)]),
            ("--machine", "dgx-h100", "--as", "xccl"),
            "accepted are mpich, nccl, openmpi, rccl",
        ),
        (
            nccl_log("allreduce", 2, 8, [(1 << 20, 30.0)]).replace("#  Rank  3 ", "# "),
            (),
            "of 1 of 16 GPUs are missing",
        ),
        (nccl_log("allreduce", 1, 8, [(1 << 20, 30.0)]), ("--tolerance", "-1"), "--tolerance is -1.0"),
    ],
)
def test_what_cannot_be_judged_has_one_sentence(
    text: str, options: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    (tmp_path / "a.log").write_text(text)
    refused = refusal("diagnose", str(tmp_path / "a.log"), *options)
    assert message in refused
    assert refused.count("\n") == 1


def test_a_log_of_one_box_names_its_machine(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(nccl_log("allreduce", 1, 8, [(1 << 30, 3858.0)]))
    good = call("diagnose", str(tmp_path / "a.log"))
    assert (good.code, "1 time of 1 log, beside dgx-h100 as nccl: 0 findings" in good.out) == (0, True)
    (tmp_path / "b.log").write_text(nccl_log("allreduce", 1, 8, [(1 << 30, 7716.0)]))
    both = call("diagnose", str(tmp_path / "a.log"), str(tmp_path / "b.log"))
    assert both.code == 1
    assert both.out.splitlines()[-2].startswith("1. b.log: allreduce on 8 ranks takes up to 2.00 x")
    assert H100[0] == "hopper"


REPRO = """#@operation=MPI_SUM
#@datatype_extent_bytes=4
#@nprocs=16
                     test       nrep        count    runtime_sec
                MPI_Bcast          0           10   0.0000500000
                MPI_Bcast          1           10   0.0000900000
                MPI_Bcast          2           10   0.0000600000
            MPI_Allgather          0            2   0.0000700000
"""
SUMMARY = """#@nprocs=16
                     test  msize_bytes total_nrep valid_nrep   mean_sec median_sec
                MPI_Bcast           40         10         10  0.0000700000 0.0000600000
"""


def test_medians_of_reprompi_are_read(tmp_path: Path) -> None:
    log = written(tmp_path / "repro.txt", REPRO)
    assert [(p.collective, p.ranks, p.bytes, round(p.seconds * 1e6, 3)) for p in read_logs([log])[0].points] == [
        ("broadcast", 16, 40, 60.0),
        ("allgather", 16, 128, 70.0),
    ]
    log.write_text(SUMMARY)
    assert [(p.bytes, round(p.seconds * 1e6, 3)) for p in read_logs([log])[0].points] == [(40, 60.0)]
    for damaged in (REPRO.replace("0.0000700000", ""), REPRO.replace("runtime_sec", "loc_tend_sec"), REPRO[:-5]):
        log.write_text(damaged)
        with pytest.raises(un.InputError):
            read_logs([log])


def inspected(collective: str, size: int, total: int, microseconds: int) -> str:
    """Returns a line of NCCL's inspector (README.md of ext-profiler/inspector in NVIDIA/nccl)."""
    of = {"coll": collective, "coll_sn": 1, "coll_msg_size_bytes": size, "coll_exec_time_us": microseconds}
    of["coll_algobw_gbs"] = total / microseconds * 1e-3
    return (
        json.dumps({"header": {"rank": 2, "n_ranks": 8, "nnodes": 1}, "metadata": {"pid": 1}, "coll_perf": of}) + "\n"
    )


def test_medians_of_inspectors_are_read(tmp_path: Path) -> None:
    log = tmp_path / "inspector.log"
    times = [61974, 61000, 63000]
    text = "".join(inspected("AllReduce", 1 << 34, 1 << 34, time) for time in times)
    text += inspected("AllGather", 1 << 20, 8 << 20, 90)
    log.write_text(text)
    [found] = read_logs([log])
    assert found.of_gpus
    assert [(p.collective, p.ranks, p.bytes, round(p.seconds * 1e6)) for p in found.points] == [
        ("allreduce", 8, 1 << 34, 61974),
        ("allgather", 8, 8 << 20, 90),
    ]
    for damaged in (text[:-30], text.replace("61000", "-5"), text.replace('"n_ranks": 8', '"n_ranks": 0')):
        log.write_text(damaged)
        with pytest.raises(un.InputError):
            read_logs([log])


def test_labels_of_launchers_are_removed(tmp_path: Path) -> None:
    text = nccl_log("allreduce", 2, 2, [(1 << 20, 30.0), (1 << 21, 50.0)])
    (tmp_path / "plain.log").write_text(text)
    plain = read_logs([tmp_path / "plain.log"])[0]
    of_open_mpi = (
        "[1,0]<stdout>:",
        "Thu Jul 18 15:41:05 2024<stdout>:",
        "[0]<stdout>: ",
        "[prterun-node-a.site-4711@1,0]<stdout>: ",
        "[prterun-node-a.site-4711@1,0][node-a:4715]<stderr>: ",
        "[prterun-node-a.site-4711@1,0][Thu Jul 18 15:41:05 2024]<stdout>: ",
    )
    of_containers = ("2024-07-18T15:41:05.123456789Z stdout F ", "2024-07-18T15:41:05+02:00 ")
    for label in ("[0] ", "3: ", " 0: ", "0:  ", *of_open_mpi, *of_containers):
        (tmp_path / "a.log").write_text("".join(f"{label}{line}\n" for line in text.splitlines()))
        of = read_logs([tmp_path / "a.log"])[0]
        assert (of.points, of.of_gpus) == (plain.points, True)


def test_logs_are_noted_to_be_of_no_wafer() -> None:
    log = str(ROOT / "docs" / "measured" / "a100x4-nvlink.csv")
    notes = call("diagnose", log, "--machine", "wse2", "--json").json["notes"]
    assert any(note.startswith("wse2 is a wafer") for note in notes)
