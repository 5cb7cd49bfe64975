"""Expected times and bus bandwidths: laws between them, the files of `unisono expect`, and wrong input."""

import json
import math
import random
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import unisono as un
from unisono.base import reports
from unisono.machines.descriptions import Shape
from unisono.planning.expectations import prometheus_text

from .conftest import ROOT, call, json_of
from .test_reports import differences

SAMPLE = re.compile(r'(unisono_expected_\w+)\{((?:\w+="(?:[^"\\\n]|\\[\\"n])*",?)+)\} ([0-9.e+-]+)')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
ON_2 = ("--machine", "dgx-h100", "--ranks", "2")


def random_machine(draw: random.Random) -> tuple[str, un.Machine]:
    """Returns a supported collective, and a part of a random preset with random rates."""
    several: tuple[tuple[str, Shape, list[str]], ...] = (
        ("archer", draw.randint(1, 9), sorted(set(un.collectives()) - {"message"})),
        ("dgx-h100", draw.randint(2, 8), ["allreduce", "allgather", "broadcast", "alltoall", "scan", "barrier"]),
        ("a100x4", draw.randint(2, 4), ["allreduce", "reduce-scatter", "gather", "scatter"]),
        ("torus2d-small", (draw.randint(1, 3), draw.randint(2, 3)), ["allreduce", "allgather", "reduce"]),
        ("paper-sim", draw.randint(1, 6), ["allreduce", "reduce", "allgather"]),
        ("wse2", (draw.randint(1, 4), draw.randint(2, 4)), ["allreduce", "broadcast", "alltoall"]),
        ("piuma", 128, ["allreduce", "broadcast", "reduce", "barrier"]),
    )
    name, shape, kinds = draw.choice(several)
    text = un.preset_toml(name)
    for key in ("link_gbps", "link_latency_ns", "launch_ns", "signal_ns", "beta_ns_per_byte", "alpha_p_ns"):
        # Rates only rise, since measured rates must be at most those of the data sheet.
        if stated := re.search(rf"^{key} = ([0-9.]+)", text, re.MULTILINE):
            value = float(stated[1]) * draw.uniform(1, 4)
            text = f"{text[: stated.start(1)]}{value:.3f}{text[stated.end(1) :]}"
    return draw.choice(kinds), un.machine(un.Machine.from_toml(text, name), shape)


@pytest.mark.parametrize("seed", range(6))
def test_no_plan_is_faster_than_the_ceiling_and_rows_are_those_of_plans(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(5):
        collective, machine = random_machine(draw)
        sizes = [4 * draw.randrange(0, 600) for _ in range(2)]
        expected = un.expect(collective, machine, sizes=sizes)
        assert not differences(expected, reports.Expectation)
        assert [row["bytes"] for row in expected["rows"]] == sorted(row["bytes"] for row in expected["rows"])
        for row in expected["rows"]:
            elements = None if collective == "barrier" else row["elements"]
            report = un.plan(collective, machine, elements=elements).report()
            assert (row["plan"], row["algorithm"]) == (report["predicted"]["seconds"], report["algorithm"])
            assert row["busbw"]["plan"] == report["busbw"]
            assert (row["library"], row["choice"], row["busbw"]["library"]) == (None, None, None)
            ceiling = row["ceiling"]
            assert ceiling is not None
            # The paper's improved form for star may be one cycle below the bound.
            slack = 1 / (machine.clock_mhz * 1e6) if machine.kind == "wafer" else 0.0
            assert row["plan"] is not None
            assert ceiling <= row["plan"] * (1 + 1e-12) + slack
            rate, most = row["busbw"]["plan"], row["busbw"]["ceiling"]
            assert slack or rate is None or most is None or rate <= most * (1 + 1e-12)


@pytest.mark.parametrize("collective", ["allreduce", "allgather", "reduce-scatter", "broadcast", "reduce"])
def test_the_library_is_that_of_the_plan(collective: str) -> None:
    sizes = [8, 64 << 10]
    expected = un.expect(collective, un.machine("dgx-h100", 4), sizes=sizes, as_library="nccl")
    assert not differences(expected, reports.Expectation)
    for row, size in zip(expected["rows"], sizes, strict=True):
        own = un.plan(collective, un.machine("dgx-h100", 4), bytes=size, as_library="nccl").report()["library"]
        assert (row["library"], row["busbw"]["library"]) == (own["seconds"], own["busbw"])
        assert row["choice"] == {key: own[key] for key in ("algorithm", "protocol", "channels")}
    blocks = "nccl-tests state that of all 4 blocks"
    assert any(blocks in note for note in expected["notes"]) is (collective in ("allgather", "reduce-scatter"))
    assert any("as nccl, " in note for note in expected["notes"])


#: Unisono's algorithm and parameters that do the same as a library's; None if there are none.
Ours = tuple[str, dict[str, str]] | None
#: Choices of MPI libraries, from their sources: collective, ranks, bytes, the library's name, and Unisono's.
CHOICES: dict[str, list[tuple[str, int, int, str, Ours]]] = {
    "openmpi": [
        ("allreduce", 4, 8, "ring", ("recursive-doubling", {})),
        ("allreduce", 8, 4096, "recursive_doubling", ("recursive-doubling", {})),
        ("allreduce", 16, 16, "segmented_ring", ("recursive-doubling", {})),
        ("allreduce", 3, 131072, "segmented_ring", ("ring", {})),
        ("allreduce", 100, 1 << 20, "rabenseifner", ("rabenseifner", {})),
        ("allgather", 2, 64, "two_proc", ("ring", {})),
        ("allgather", 12, 64, "recursive_doubling", ("bruck", {})),
        ("allgather", 40, 4096, "neighbor", ("neighbor", {})),
        ("allgather", 41, 4096, "neighbor", ("ring", {})),
        ("broadcast", 2, 16, "pipeline", ("pipelined-chain", {"segment": "16"})),
        ("broadcast", 16, 1024, "knomial", ("binomial", {"radix": "4"})),
        ("broadcast", 16, 1 << 20, "scatter_allgather", ("scatter-allgather", {"allgather": "recursive-doubling"})),
        ("alltoall", 32, 256, "modified_bruck", ("bruck", {})),
        ("reduce", 300, 8192, "in-order_binary", None),
        ("reduce", 3, 1 << 30, "pipeline", ("pipelined-chain", {"segment": str(1 << 30)})),
        ("reduce", 3, 1 << 32, "pipeline", None),
        ("reduce-scatter", 8, 1 << 22, "butterfly", None),
        ("scatter", 16, 32768, "linear_nb", ("linear", {})),
    ],
    "mpich": [
        ("allreduce", 16, 8, "recursive_doubling", ("recursive-doubling", {})),
        ("allreduce", 16, 60, "recursive_doubling", ("recursive-doubling", {})),
        ("allreduce", 16, 64, "reduce_scatter_allgather", ("rabenseifner", {})),
        ("allgather", 16, 32764, "recursive_doubling", ("recursive-doubling", {})),
        ("allgather", 12, 6824, "brucks", ("bruck", {})),
        ("allgather", 12, 6828, "ring", ("ring", {})),
        ("alltoall", 8, 256, "brucks", ("bruck", {})),
        ("alltoall", 7, 256, "scattered", ("linear", {})),
        ("broadcast", 7, 1 << 20, "binomial", ("binomial", {})),
        ("broadcast", 12, 12292, "scatter_ring_allgather", ("scatter-allgather", {})),
        ("scan", 5, 64, "recursive_doubling", ("recursive-doubling", {})),
        ("barrier", 5, 0, "k_dissemination", ("dissemination", {})),
    ],
}


@pytest.mark.parametrize(
    ("library", "collective", "ranks", "size", "theirs", "ours"),
    [(library, *row) for library, rows in CHOICES.items() for row in rows],
)
def test_mpi_libraries_choose_by_their_tables(
    library: str, collective: str, ranks: int, size: int, theirs: str, ours: Ours
) -> None:
    machine = un.machine("archer", ranks)
    elements = 0 if collective == "barrier" else size // 4
    own = un.plan(collective, machine, elements=elements, as_library=library).report()["library"]
    assert own["algorithm"] == theirs
    assert not differences(own, reports.LibraryReport)
    if ours is None:
        assert own["seconds"] is None
        assert any(note.startswith(f"{theirs} has no time: no algorithm here does the same") for note in own["notes"])
        return
    algorithm, params = ours
    same = un.plan(collective, machine, elements=elements, algorithm=algorithm, params=params)
    assert own["seconds"] == same.predicted["seconds"]


def test_trees_of_mpi_libraries_take_as_long_as_their_messages() -> None:
    """In the Hockney model a rank sends one message after the other."""
    model = "alpha_ns = 1000\nbeta_ns_per_byte = 1\ngamma_ns_per_byte = 0\n"
    machine = un.Machine.from_toml(f'name = "h"\nkind = "endpoint"\nmodel = "hockney"\n{model}', "h.toml")

    def check(collective: str, ranks: int, size: int, algorithm: str, messages: int) -> None:
        on = un.machine(machine, ranks)
        own = un.plan(collective, on, bytes=size, as_library="openmpi").report()["library"]
        assert own["algorithm"] == algorithm
        assert own["seconds"] == pytest.approx(messages * (1000 + size) * 1e-9)

    check("broadcast", 7, 65536, "basic_linear", 6)
    check("reduce", 3, 65536, "linear", 2)
    # The paths are 0, 1, 3 and 0, 2, 4 and 0, 1, 5: the root sends to its second child after the first.
    check("broadcast", 6, 128, "binary_tree", 3)


def test_an_allreduce_of_a_reduce_and_a_broadcast_takes_both() -> None:
    on = un.machine("archer", 130)

    def own(collective: str) -> float:
        found = un.plan(collective, on, bytes=1024, as_library="openmpi").report()["library"]["seconds"]
        assert found is not None
        return found

    assert own("allreduce") == pytest.approx(own("reduce") + own("broadcast"))


def test_expect_as_an_mpi_library() -> None:
    expected = un.expect("allreduce", un.machine("archer", 8), sizes=[8, 65536], as_library="mpich")
    assert not differences(expected, reports.Expectation)
    assert [row["choice"]["algorithm"] for row in expected["rows"] if row["choice"]] == [
        "recursive_doubling",
        "reduce_scatter_allgather",
    ]
    assert any("DEVICE_COLLECTIVES" in note for note in expected["notes"])
    out = call(
        "expect", "reduce-scatter", "--machine", "archer", "--ranks", "3", "--sizes", "64", "--as", "openmpi"
    ).out
    assert "butterfly" in out


def test_rules_written_beside_a_choice_serve_the_planned_size_only(tmp_path: Path) -> None:
    words = ("plan", "broadcast", "--machine", "archer", "--ranks", "16", "--bytes", "64KiB", "--for", "openmpi")
    for more in ((), ("--as", "openmpi")):
        assert call(*words, *more, "-o", str(tmp_path / f"{len(more)}.conf")).code == 0
    plain = (tmp_path / "0.conf").read_text()
    assert plain == (tmp_path / "2.conf").read_text()
    assert "\n65537 0 0 0\n" in plain


def test_threads_change_nothing_and_report_their_progress() -> None:
    done: list[tuple[int, int]] = []
    with ThreadPoolExecutor(2) as executor:
        found = un.expect(
            "allreduce", "a100x4", sizes=["1KiB", 8, 64, 8], executor=executor, progress=lambda *at: done.append(at)
        )
    assert found == un.expect("allreduce", "a100x4", sizes=[8, 64, 1024])
    assert done == [(1, 3), (2, 3), (3, 3)]


def test_default_sizes_are_those_of_all_blocks() -> None:
    def sizes(collective: str, machine: un.Machine) -> list[int]:
        return [row["bytes"] for row in un.expect(collective, machine)["rows"]]

    # One rank may have vectors of all sizes; of eight ranks, each has an eighth of the largest buffer.
    powers = [4**power for power in range(3, 16)]
    assert sizes("allreduce", un.machine("archer", 1)) == [8, *powers]
    assert sizes("gather", un.machine("archer", 8)) == [8, *(size for size in powers if 8 * size <= 2**30)]
    # A PE has 48 KiB.
    assert sizes("broadcast", un.machine("wse2", 4)) == [8, *powers[:5]]
    assert len(sizes("barrier", un.machine("archer", 4))) == 1


def test_files_have_the_report(tmp_path: Path) -> None:
    words = ("expect", "allreduce", *ON_2, "--sizes", "0,8,1KiB", "--as", "nccl")
    files = [str(tmp_path / name) for name in ("e.json", "e.prom", "e.png")]
    report = json_of(*words, "-o", files[0])
    assert report.pop("files") == [files[0]]
    assert json.loads(Path(files[0]).read_text()) == report
    assert json_of(*words, "-o", files[1], "--plot", files[2])["files"] == files[1:]
    assert Path(files[2]).read_bytes().startswith(b"\x89PNG")
    text = Path(files[1]).read_text()
    values = [line.rsplit(" ", 1)[1] for line in text.splitlines() if not line.startswith("#")]
    assert all(len(value.partition("e")[0].replace(".", "").strip("0")) <= 12 for value in values), values
    expected = {
        (metric, "allreduce", "dgx-h100", str(row["bytes"]), of, "2", "f32"): value
        for row in report["rows"]
        for metric, values in (("busbw_gigabytes_per_second", row["busbw"]), ("seconds", row))
        for of in ("ceiling", "library", "plan")
        if (value := values[of]) is not None
    }
    assert samples(text) == pytest.approx(expected, rel=1e-11)


def samples(text: str) -> dict[tuple[str, ...], float]:
    """Returns the values of a Prometheus text by metric and labels; checks that descriptions precede samples."""
    assert text.endswith("\n")
    found: dict[tuple[str, ...], float] = {}
    described: list[str] = []
    for line in text[:-1].split("\n"):
        if line.startswith("# TYPE "):
            name = line.split(" ")[2]
            assert line == f"# TYPE {name} gauge"
            assert described[-1] == name
        elif line.startswith("# HELP "):
            described.append(line.split(" ")[2])
        elif line.startswith("# note: "):
            assert not described
        else:
            match = SAMPLE.fullmatch(line)
            assert match, line
            assert match[1] == described[-1]
            labels = LABEL.findall(match[2])
            assert [label for label, _ in labels][:6] == ["collective", "machine", "bytes", "of", "ranks", "dtype"]
            key = (match[1].removeprefix("unisono_expected_"), *(value for _, value in labels))
            assert key not in found
            found[key] = float(match[3])
    assert len(described) == len(set(described))
    return found


def test_labels_are_escaped_and_what_has_no_value_has_no_line() -> None:
    expected = un.expect("barrier", un.machine("archer", 3))
    expected["machine"] = 'a "b"\\\nc'
    found = samples(prometheus_text(expected))
    assert {key[:3] for key in found} == {("seconds", "barrier", 'a \\"b\\"\\\\\\nc')}
    assert {key[4] for key in found} == {"ceiling", "plan"}


def test_gauges_name_what_failed() -> None:
    expected = un.expect("allgather", un.machine("ndv2", failed=["0-1", 7]), sizes=[64], dtype="f16")
    text = prometheus_text(expected)
    assert expected["failed"] == ["0-1", "7"]
    assert {key[5:] for key in samples(text)} == {("7", "f16", "0-1 7")}
    assert [line[8:] for line in text.split("\n") if line.startswith("# note: ")] == expected["notes"]
    assert "failed in every plane: 0-1, 7;" in text


def test_the_command_prints_what_the_page_shows() -> None:
    line = "expect allreduce --machine dgx-h100 --sizes 8,1MiB,1GiB --as nccl"
    assert f"$ unisono {line}\n{call(*line.split()).out}```" in (ROOT / "docs" / "commands.md").read_text()


def test_what_has_no_bandwidth_has_times() -> None:
    ran = call("expect", "barrier", "--machine", "archer", "--ranks", "4", "--sizes", "8")
    assert (ran.code, "--sizes is not used" in ran.err, "GB/s" in ran.out) == (0, True, False)
    assert "ceiling, µs" in ran.out
    (row,) = json_of("expect", "scan", "--machine", "archer", "--ranks", "4", "--sizes", "8")["rows"]
    assert row["busbw"] == {"ceiling": None, "library": None, "plan": None}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-o", "e.csv"], "'e.csv' ends in neither .json (the report) nor .prom (gauges for Prometheus)"),
        (["--plot", "e.jpg"], "is no name of a picture"),
        (["--sizes", "8,9"], "9 bytes are no whole number of elements of f32"),
        (["--sizes", "8,"], "is not a list of sizes"),
        (["--sizes", "many"], "is not a size in bytes"),
        (["--sizes", "8", "--as", "acme"], "accepted are mpich, nccl, openmpi"),
        (["--sizes", "8", "--algorithm", "rign"], "did you mean ring?"),
        (["--sizes", "0", "--plot", "e.png"], "there is none, as nothing is sent at these sizes"),
        (["--bytes", "many"], "is not a size in bytes"),
        (["--bytes", "1Mb"], "may mean bits; for bytes write MB"),
    ],
)
def test_wrong_input_is_refused_in_one_sentence(words: list[str], message: str) -> None:
    ran = call("expect", "allreduce", *ON_2, *words)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1), ran.err
    assert message in ran.err


def test_other_collectives_and_machines_are_refused_in_one_sentence() -> None:
    for words, message in (
        (["scan", *ON_2, "--plot", "e.png"], "nccl-tests define none of a scan"),
        (["scan", *ON_2, "--sizes", "8", "--as", "nccl"], "NCCL has no algorithms for scan"),
        (["allreduce", "--machine", "archer", "--ranks", "4", "--as", "nccl"], "archer is of kind endpoint"),
        (["allreduce", "--machine", "archer"], "ranks is missing"),
        (["gather", "--machine", "piuma", "--nodes", "1"], "no algorithm makes gather"),
    ):
        ran = call("expect", *words)
        assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1), ran.err
        assert message in ran.err
    with pytest.raises(un.InputError, match="sizes is an empty list"):
        un.expect("allreduce", "a100x4", sizes=[])
    with pytest.raises(un.InputError, match="must be a list of sizes in bytes"):
        un.expect("allreduce", "a100x4", sizes="8")


def test_rows_state_the_source_of_their_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a curve has simulated times and times of the model, a column states the source."""
    options = ("allreduce", "--machine", "a100x4", "--sizes", "64,4096")
    rows = json_of("expect", *options)["rows"]
    for row in rows:
        report = un.plan("allreduce", "a100x4", bytes=row["bytes"]).report()
        assert row["source"] == report["predicted"]["source"]
    one = call("expect", *options)
    assert "plan by" not in one.out
    mixed = un.expect("allreduce", "a100x4", sizes=[64, 4096])
    mixed["rows"][0]["source"] = "simulated"
    monkeypatch.setattr(un, "expect", lambda *_, **__: mixed)
    printed = call("expect", *options).out
    assert "plan by" in printed
    lines = [line for line in printed.splitlines() if re.match(r" *(64|4096) ", line)]
    assert [re.findall(r" (simulation|model) ", line) for line in lines] == [["simulation"], ["model"]]


def test_each_row_prints_the_algorithm_of_the_plan_of_its_size() -> None:
    sizes = ("64", "64KiB", "64MiB")
    printed = call("expect", "allreduce", "--machine", "dgx-a100", "--sizes", ",".join(sizes)).out.splitlines()
    (head,) = (line for line in printed if "plan chooses" in line)
    at = head.index("plan chooses")
    chosen = [un.plan("allreduce", "dgx-a100", bytes=size).algorithm for size in sizes]
    assert [line[at:].rstrip() for line in printed if re.match(r" *(64|65536|67108864) ", line)] == chosen
    assert len(set(chosen)) > 1


@pytest.mark.parametrize("kind", [*un.collectives()])
def test_bandwidths_refuse_counts_and_times_without_a_rate(kind: str) -> None:
    for ranks, seconds in ((0, 1.0), (4, -1.0), (4, math.inf), (4, math.nan)):
        with pytest.raises(un.InputError, match=r"^(ranks|seconds) is .*; accepted is "):
            un.bandwidths(kind, ranks, 1 << 20, seconds)
    rates = un.bandwidths(kind, 4, 1 << 20, 1e-3)
    assert all(rate is None or rate > 0 for rate in rates.values())
