"""Logs of nccl-tests and tables of times: what is read, noted or refused, and the GPUs that a log names."""

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import unisono as un
from unisono import _core
from unisono.logs.collectives import LeftOut, Measured, read_log, read_logs
from unisono.logs.library_calibration import check_gpus, preset_of

from tests.python.conftest import ROOT, call, refusal, text_of, written

MESH = "a100x4"
TIMES = ROOT / "docs" / "measured" / "a100x4-nvlink.csv"
LOG = """# nccl-tests version 2.13.8 all_reduce_perf
# nThread 1 nGpus 4 minBytes 8 maxBytes 8388608 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1
#
# Using devices
#  Rank  0 Group  0 Pid  34534 on   node-a device  0 [0000:07:00] NVIDIA A100-SXM4-80GB
#  Rank  1 Group  0 Pid  34534 on   node-a device  1 [0000:0b:00] NVIDIA A100-SXM4-80GB
#  Rank  2 Group  0 Pid  34534 on   node-a device  2 [0000:48:00] NVIDIA A100-SXM4-80GB
#  Rank  3 Group  0 Pid  34534 on   node-a device  3 [0000:4c:00] NVIDIA A100-SXM4-80GB
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
           0             0     float     sum      -1     0.16    0.00    0.00      0     0.15    0.00    0.00      0
           8             2     float     sum      -1    12.95    0.00    0.00      0    12.80    0.00    0.00      0
     1048576        262144     float     sum      -1    32.00   32.77   49.15      0    31.90   32.87   49.31      0
     8388608       2097152     float     sum      -1   119.35   70.29  105.43    N/A   118.00   71.09  106.63    N/A
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 51.5
"""


def test_rows_of_other_tests_are_left_out_with_a_note(tmp_path: Path) -> None:
    other = LOG.replace("all_reduce_perf", "alltoallv_perf")
    both, alone, table = tmp_path / "both.log", tmp_path / "alone.log", tmp_path / "t.csv"
    both.write_text(LOG + other)
    alone.write_text(other)
    table.write_text("op,gpus,bytes,time_us\nallreduce,4,1048576,32.00\nsendrecv,4,1048576,9.5\n")
    kept = read_log(LOG, "a.log")
    assert read_log(LOG + other, "a.log") == read_log(other + LOG, "a.log") == kept
    said = "4 rows of 'alltoallv' are left out"
    assert said in call("diagnose", str(both)).out
    assert said in text_of("calibrate", "--from", str(both), "--machine", MESH, "-o", str(tmp_path / "m.toml"))
    assert "1 row of 'sendrecv' is left out" in call("diagnose", str(table)).out
    for command in (["diagnose"], ["calibrate", "-o", str(tmp_path / "m.toml"), "--from"]):
        refused = refusal(*command, str(alone))
        assert f"{said}, since" in refused
        assert "no other rows" in refused
    # A name that is no test of nccl-tests is refused.
    table.write_text("op,gpus,bytes,time_us\nallreduxe,4,1048576,32.00\n")
    assert "'allreduxe' is no collective" in call("diagnose", str(table)).err


def test_a_row_that_is_cut_at_any_place_before_its_errors_is_refused() -> None:
    begin = LOG.index("     8388608")
    row = LOG[begin:].splitlines()[0]
    for end in range(len("     8388608") + 1, row.index("N/A")):
        with pytest.raises(un.InputError, match="line 16"):
            read_log(LOG[:begin] + row[:end], "a.log")


def test_a_log_that_is_cut_at_any_place_is_refused_or_noted(tmp_path: Path) -> None:
    end = LOG.index("# Avg bus bandwidth") + len("# Avg bus bandwidth")
    for at in [*range(LOG.index("#  Rank  3"), end, 7), end]:
        left_out = LeftOut()
        try:
            read_log(LOG[:at], "a.log", left_out=left_out)
        except un.InputError:
            assert at < end
            continue
        assert bool(left_out.sentences()) is (at < end), LOG[:at]
    # A second test hides neither the end of the first nor its absence.
    for text, noted in ((LOG + LOG, False), (LOG[: LOG.index("# Out")] + LOG, True)):
        (tmp_path / "a.log").write_text(text)
        commands = (
            ["diagnose", str(tmp_path / "a.log")],
            ["check-guidelines", str(tmp_path / "a.log")],
            ["calibrate", "--from", str(tmp_path / "a.log"), "--machine", MESH, "-o", str(tmp_path / "m.toml")],
        )
        for command in commands:
            ran = call(*command)
            assert ("ends at 8388608 bytes without" in ran.out + ran.err) is noted, (command, ran.out, ran.err)


@pytest.mark.parametrize("at", [0, 1, 2, 3])
def test_a_row_whose_words_do_not_fit_each_other_is_refused_with_its_line(at: int) -> None:
    """The words are the size, the count, the type and the operator of a row."""
    some = random.Random(f"words {at}")
    for _ in range(20):
        kind, ranks = some.choice(["allreduce", "allgather"]), some.choice([3, 5, 8])
        lines = log_of([Measured(kind, ranks, 1, 840 << some.randint(0, 20), 1e-5)], is_named=True, some=some)
        rows = [(place, line.split()) for place, line in enumerate(lines.splitlines(), 1) if line.split()[:1] != ["#"]]
        place, words = next((place, words) for place, words in rows if words and words[0].isdecimal())
        other = str(int(words[at]) * 7) if at < 2 else "half" if at == 2 else "summ"
        text = lines.splitlines()
        text[place - 1] = " ".join([*words[:at], other, *words[at + 1 :]])
        with pytest.raises(un.InputError, match=rf"line {place}: "):
            read_log("\n".join(text), "log")


#: The names of tests of nccl-tests, and their busbw / algbw.
SHARES: dict[str, tuple[str, Callable[[int], float]]] = {
    "allreduce": ("all_reduce", lambda n: 2 * (n - 1) / n),
    "allgather": ("all_gather", lambda n: (n - 1) / n),
    "reduce-scatter": ("reduce_scatter", lambda n: (n - 1) / n),
    "alltoall": ("alltoall", lambda n: (n - 1) / n),
    "gather": ("gather", lambda n: (n - 1) / n),
    "scatter": ("scatter", lambda n: (n - 1) / n),
    "broadcast": ("broadcast", lambda n: 1.0),
    "reduce": ("reduce", lambda n: 1.0),
}


ROOTED = ("broadcast", "reduce", "gather", "scatter")


@pytest.mark.parametrize("kind", [*SHARES])
def test_a_test_without_a_name_is_that_of_its_columns_or_refused(kind: str, tmp_path: Path) -> None:
    """nccl-tests checks no result of an alltoall in place; a gather and a scatter have the same columns."""
    some, log = random.Random(kind), tmp_path / "log"
    for ranks in (2, some.randint(3, 64)):
        points = [Measured(kind, ranks, -(-ranks // 8), 8 * ranks << 9 + n, 1e-5) for n in range(4)]
        for is_checked in (True, False):
            log.write_text(log_of(points, is_named=False, some=some, is_checked=is_checked))
            alike = {"gather": "gather and scatter", "scatter": "gather and scatter"}.get(kind)
            if kind in ("allgather", "alltoall") and not is_checked:
                alike = "allgather and alltoall"
            if alike is not None:
                with pytest.raises(un.InputError, match=f"names the test, and its columns are those of {alike}; add a"):
                    read_logs([log])
                continue
            found, _, notes = read_logs([log])
            assert {point.collective for point in found} == {kind}, (ranks, is_checked)
            [note] = [one for one in notes if "nothing names the test" in one]
            assert f"it is read as {kind}: add a line" in note


def test_a_setting_of_a_log_is_noted_by_a_fit(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("a:1:2 [0] NCCL INFO NCCL_ALGO set by environment to Tree\n" + LOG)
    fit = ["calibrate", "--from", str(tmp_path / "a.log"), "--machine", MESH, "-o", str(tmp_path / "m.toml")]
    [note] = [one for one in call(*fit, "--json").json["notes"] if "NCCL_ALGO=Tree" in one]
    assert "a fit takes the times for those of NCCL's own choice; unset NCCL_ALGO" in note


def test_the_machine_of_a_log_is_that_of_its_gpus() -> None:
    """GPUs of another preset, and GPUs of unknown architecture, are noted; each preset has its own GPUs."""
    names = {"A100-SXM4-80GB": "dgx-a100", "H100 80GB HBM3": "dgx-h100", "H200": "dgx-h200", "B200": "dgx-b200"}
    for gpu, preset in names.items():
        point = Measured("allreduce", 8, 1, 8, 1e-5, f"NVIDIA {gpu}")
        assert preset_of([point]) == preset
        assert not check_gpus(un.machine(preset), [point.gpu])
        assert not check_gpus(un.machine(preset, nodes=2), [point.gpu])
    for gpu in ("GB200", "GH200 480GB", "H100 PCIe", "H200 NVL"):
        with pytest.raises(un.InputError, match="--machine"):
            preset_of([Measured("allreduce", 8, 1, 8, 1e-5, f"NVIDIA {gpu}")])
    [other] = check_gpus(un.machine("dgx-h100"), ["NVIDIA H200"])
    assert "name dgx-h200 with --machine" in other
    [unknown] = check_gpus(un.machine("a100x4"), ["NVIDIA X900"])
    assert "the architecture of NVIDIA X900 is not known here; it is taken for ampere" in unknown


#: Names as drivers state them, by compute capability (NVIDIA, "CUDA GPU compute capability") and target of ROCm.
DRIVERS = {
    "volta": "Tesla V100-SXM2-32GB|Quadro GV100|Tesla T4|Quadro RTX 6000|NVIDIA GeForce RTX 2080 Ti|"
    "NVIDIA GeForce GTX 1660",
    "ampere": "NVIDIA A100-SXM4-80GB|NVIDIA A30|NVIDIA A10G|NVIDIA A40|NVIDIA A800-SXM4-80GB|NVIDIA RTX A6000|"
    "NVIDIA GeForce RTX 3090|NVIDIA L40S|NVIDIA L4|NVIDIA RTX 6000 Ada Generation|NVIDIA GeForce RTX 4090",
    "hopper": "NVIDIA H100 80GB HBM3|NVIDIA H100 NVL|NVIDIA H200|NVIDIA H20|NVIDIA H800|NVIDIA GH200 480GB",
    "blackwell": "NVIDIA B200|NVIDIA GB200|NVIDIA B300 SXM6 AC|NVIDIA GB300|NVIDIA GB10|NVIDIA GeForce RTX 5090|"
    "NVIDIA RTX PRO 6000 Blackwell Server Edition",
    "cdna2": "AMD Instinct MI250X|AMD Instinct MI210",
    "cdna3": "AMD Instinct MI300X|AMD Instinct MI300A|AMD Instinct MI325X|AMD Instinct MI308X",
    "cdna4": "AMD Instinct MI350X|AMD Instinct MI355X",
}


def test_gpus_have_the_architecture_of_their_compute_capability() -> None:
    for architecture, names in DRIVERS.items():
        for name in names.split("|"):
            assert _core.gpu_architecture(name) == architecture, name
    for other in ("Tesla P100-PCIE-16GB", "NVIDIA X900", "AMD Radeon RX 7900 XTX", ""):
        assert _core.gpu_architecture(other) is None, other
    # A log of GPUs of another architecture is refused, whatever their names.
    for machine, own in (
        ("dgx-h100", "hopper"),
        ("a100x4", "ampere"),
        ("gb200-nvl72", "blackwell"),
        ("mi300x", "cdna3"),
    ):
        for architecture, names in DRIVERS.items():
            for name in names.split("|"):
                if architecture == own:
                    assert not any("architecture" in note for note in check_gpus(un.machine(machine), [name]))
                    continue
                with pytest.raises(un.InputError, match=f"which is {architecture}, and {machine} states GPUs of {own}"):
                    check_gpus(un.machine(machine), [name])


def test_logs_of_direct_messages_are_expected_by_whole_sizes_and_not_fitted(tmp_path: Path) -> None:
    """A size of nccl-tests counts all blocks of a rank: times as expected are no findings, and they fit nothing."""
    machine, table = un.machine("dgx-h100", nodes=2), tmp_path / "times.csv"
    rows = ["op,gpus,nodes,bytes,time_us"]
    for kind in ("alltoall", "gather", "scatter"):
        for size in (1 << 20, 1 << 26):
            library = un.plan(kind, machine, bytes=size // 16, as_library="nccl").library
            assert library is not None
            assert library["seconds"] is not None
            rows.append(f"{kind},16,2,{size},{library['seconds'] * 1e6}")
    table.write_text("\n".join(rows) + "\n")
    ran = call("diagnose", str(table), "--machine", "dgx-h100", "--json")
    times = json.loads(ran.out)["times"]
    assert len(times) == 6
    for row in times:
        assert row["expected"] == pytest.approx(row["measured"], rel=1e-3)
    mixed = table.read_text() + "allreduce,16,2,1048576,120\n"
    table.write_text(mixed)
    ran = call("calibrate", "--from", str(table), "--machine", "dgx-h100", "-o", str(tmp_path / "mine.toml"))
    assert ran.code == 0, ran.err
    assert "times of alltoall are left out" in ran.out + ran.err


def test_logs_of_nccl_tests_are_read() -> None:
    points = read_log(LOG, "log")
    assert [point.bytes for point in points] == [8, 1 << 20, 1 << 23]
    assert [point.seconds for point in points] == pytest.approx([12.95e-6, 32e-6, 119.35e-6])
    found = {(point.collective, point.ranks, point.nodes, point.gpu) for point in points}
    assert found == {("allreduce", 4, 1, "NVIDIA A100-SXM4-80GB")}
    # Without the test's name, the ratio of the bandwidths, 2 x 3/4, shows the collective.
    unnamed = "\n".join(LOG.splitlines()[1:])
    last = unnamed.replace("           8             2     float     sum      -1    12.95    0.00    0.00", "#")
    assert [point.collective for point in read_log(last, "log")] == ["allreduce"] * 2
    two = LOG.replace("node-a device  2", "node-b device  0").replace("node-a device  3", "node-b device  1")
    assert {(point.ranks, point.nodes) for point in read_log(two, "log")} == {(4, 2)}
    # No preset has four of these GPUs, but one has eight.
    with pytest.raises(un.InputError, match="--machine"):
        preset_of(points)
    assert preset_of([Measured("allreduce", 8, 1, 8, 1e-5, "NVIDIA A100-SXM4-80GB")]) == "dgx-a100"


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        ("", "is no log"),
        ("# OSU MPI Allreduce Latency Test\n4 2.1\n", "a100x4 is of kind network, and logs of MPI give prices of"),
        ("# Benchmarking Allreduce\n#bytes t_avg[usec]\n4 2.10\n", "mpiexec -n P unisono calibrate --machine a100x4"),
        ("\n".join(LOG.splitlines()[:12]), "no times"),
        (LOG[: LOG.index("12.95")], "the row is cut"),
        (LOG.replace("12.95", "oops"), "the time is 'oops'"),
        (LOG.replace("all_reduce_perf", "sendrecv_perf"), "4 rows of 'sendrecv' are left out"),
        (LOG.replace("all_reduce_perf", "").replace("sum", "mul"), "nothing names the test"),
        (LOG.replace("#  Rank", "# Bank"), "state the GPUs"),
        (LOG.replace("time", "cputime"), "'cputime' is the time of the calls on the CPU; run the test without -C 1"),
        ("op,gpus,bytes,time_us\nallsum,4,8,9.1\n", "is no collective"),
        ("op,gpus,bytes,time_us\nallreduce,4,8\n", "line 2 has 3 cells, and the head has 4"),
        ("op,gpus,bytes,time_us\nallreduce,4,8,1,7\n", "line 2 has 5 cells, and the head has 4"),
        ("op,gpus,bytes,time_us\nallreduce,4,8,fast\n", "the time is 'fast'"),
        ("op,gpus,bytes,time_us,nodes\nallreduce,4,8,1,0\n", "nodes is 0; accepted are 1 to"),
        ("op,gpus,bytes,time_us\nallreduce,0,8,1\n", "gpus is 0; accepted are 1 to"),
        ("op,gpus,ranks,bytes,time_us\nallreduce,4,8,8,1\n", "the columns gpus and ranks"),
        ("op,gpus,bytes,time_us,time_us\nallreduce,4,8,1,2\n", "it occurs twice"),
        ("op,gpus,bytes,time_us,node\nallreduce,8,8,1,2\n", "'node': there is no such column; accepted are op,"),
        (LOG.replace("49.15      0", "49.15      3"), "3 elements of the result are wrong"),
        (LOG.replace("all_reduce", "all_gather"), "those of allgather on 4 GPUs are as 1 to 0.750"),
        (LOG.replace("   32.00", " 0.03200"), "the row has 32.77; the row is damaged, or its unit is another one"),
        (LOG.replace("A100-SXM4", "H100"), "which is hopper, and a100x4 states GPUs of ampere"),
        ("op,gpus,bytes,time_us\nallreduce,-4,8,1\n", "gpus is '-4'"),
        ("op,gpus,bytes,time_us\n", "no times"),
    ],
)
def test_other_and_cut_logs_get_one_sentence(text: str, needed: str, tmp_path: Path) -> None:
    log = written(tmp_path / "log", text)
    ran = call("calibrate", "--from", str(log), "--machine", str(MESH), "-o", str(tmp_path / "m.toml"))
    assert needed in ran.err, (ran.code, ran.err)
    assert len(ran.err.strip().splitlines()) == 1
    assert not (tmp_path / "m.toml").exists()


def test_columns_may_have_spaces() -> None:
    head = "# times\nop, gpus ,bytes,time_us"
    assert read_log(f"{head}\nallreduce, 4, 8, 8.0\n", "log") == [Measured("allreduce", 4, 1, 8, 8e-6)]


def log_of(points: list[Measured], *, is_named: bool, some: random.Random, is_checked: bool = True) -> str:
    """Returns the lines that nccl-tests print for points of one collective and number of GPUs."""
    of = points[0]
    test, share = SHARES[of.collective][0], SHARES[of.collective][1](of.ranks)
    redop, root = "sum" if "reduce" in test else "none", 0 if of.collective in ROOTED else -1
    lines = [f"# Collective test starting: {test}_perf"] if is_named else []
    lines += [
        f"#  Rank {gpu:2} Group  0 Pid 9 on host{gpu // 8} device {gpu % 8} [0] {of.gpu}" for gpu in range(of.ranks)
    ]
    lines += ["#  size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong"]
    for one in points:
        algbw = one.bytes / one.seconds * 1e-9
        half = f"{one.seconds * 1e6:.2f} {algbw:.2f} {share * algbw:.2f}"
        checks = ["0" if is_checked and not (in_place and test == "alltoall") else "N/A" for in_place in (False, True)]
        lines.append(f"{one.bytes} {one.bytes // 8} double {redop} {root} {half} {checks[0]} {half} {checks[1]}")
    return "\n".join([*lines, *([f"# Collective test concluded: {test}_perf"] if is_named else []), ""])


@pytest.mark.parametrize(
    ("name", "width", "op", "read"),
    [
        ("float", 4, "sum", "sum"),
        ("uint32", 4, "sum", "sum"),
        ("half", 2, "avg", "prod"),
        ("int8", 1, "sum", "prod"),
        ("f8e4m3", 1, "max", "prod"),
    ],
)
def test_sums_that_have_no_nvls_are_read_as_products(name: str, width: int, op: str, read: str) -> None:
    row = f"8388608 {8388608 // width} {name} {op} -1 119.35 70.29 105.43 0 118.00 71.09 106.63 0"
    (found,) = read_log("\n".join([*LOG.splitlines()[:11], row]), "log")
    assert (found.bytes, found.op) == (8388608, read)


@pytest.mark.parametrize("kind", [*SHARES])
def test_a_log_without_operators_has_the_same_times(kind: str) -> None:
    """Old releases of nccl-tests have no column of operators, or leave its cell blank for tests that do not reduce."""
    some = random.Random(kind)
    ranks = some.randint(2, 64)
    points = [Measured(kind, ranks, -(-ranks // 8), 8 * ranks << 9 + n, 1e-5, dtype="f64") for n in range(4)]
    text = log_of(points, is_named=True, some=some)
    blank = text.replace("none", "    ")
    # Unlike a blank cell, a test that reduces has its operator in every release.
    assert (blank == text) == ("reduce" in SHARES[kind][0])
    for older in (blank, *([blank.replace("redop", "")] if blank != text else [])):
        assert read_log(older, "log") == read_log(text, "log")
        for cut in (some.randint(1, 5) for _ in range(4)):
            row = next(line for line in older.splitlines() if line[:1].isdigit())
            with pytest.raises(un.InputError, match="the row is cut"):
                read_log(older.replace(row, " ".join(row.split()[:-cut])), "log")


def test_tests_in_one_file_keep_their_names_and_a_cut_file_gives_no_wrong_time() -> None:
    some = random.Random(11)
    for _ in range(25):
        text, expected = "", []
        for _ in range(some.randint(1, 3)):
            kind, ranks = some.choice(("allreduce", "allgather")), some.choice((3, 4, 16))
            sizes = (1 << 20, 1 << 24)[: some.randint(1, 2)]
            nodes, gpu = -(-ranks // 8), some.choice(("NVIDIA A100-SXM4-80GB", "NVIDIA H100"))
            run = [
                Measured(kind, ranks, nodes, n, some.randint(1000, 90000) / 1e8, gpu, "f64") for n in sizes
            ]  # fmt: skip
            text += log_of(run, is_named=some.random() < 0.5, some=some)
            expected += run
        assert [replace(one, seconds=round(one.seconds, 8)) for one in read_log(text, "log")] == expected
        for cut in some.sample(range(len(text)), min(len(text), 40)):
            try:
                points = read_log(text[:cut], "log")
            except un.InputError:
                continue
            assert [replace(one, seconds=round(one.seconds, 8)) for one in points] == expected[: len(points)], text[
                :cut
            ]


def test_damaged_logs_are_read_or_refused() -> None:
    some = random.Random(7)
    table = "\n".join(TIMES.read_text().splitlines()[:40])
    for _ in range(400):
        text = list(some.choice((LOG, table)))
        for _ in range(some.randint(1, 6)):
            at = some.randrange(len(text))
            text[at : at + some.randint(0, 9)] = some.choice(
                ("", "#", ",", "\n", " ", "-1", "9" * 30, "nan", "\0", "²")
            )
        try:
            points = read_log("".join(text), "log")
        except un.InputError:
            continue
        assert all(point.seconds > 0 and point.bytes >= 0 for point in points)


def test_logs_of_one_thread_for_all_gpus_are_noted(tmp_path: Path) -> None:
    for gpus, is_noted in ((1, False), (4, True)):
        path = written(tmp_path / "t.log", LOG.replace("nGpus 4", f"nGpus {gpus}"))
        ran = text_of("calibrate", "--from", str(path), "--machine", "dgx-a100", "-o", str(tmp_path / "m.toml"))
        assert ("started the kernels of 4 GPUs" in ran) == is_noted
