"""The text of commands names the algorithm, the sources of numbers, and failed parts of a machine."""

import io
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import unisono as un
from unisono.cli import _output
from unisono.cli._output import bandwidths_text

from .conftest import ROOT, call, json_of, refusal, text_of, written


@pytest.mark.parametrize(
    ("collective", "machine", "shape"),
    [
        ("reduce", "wse2", (16, 16)),
        ("allreduce", "wse2", (8, 8)),
        ("allreduce", "wse2", (12,)),
        ("broadcast", "wse2", (5, 3)),
        ("allgather", "wse2", (7,)),
        ("allreduce", "archer", (12,)),
        ("allgather", "hx2mesh-small", (2, 4)),
    ],
)
@pytest.mark.parametrize("elements", [1, 256])
def test_a_sweep_finds_the_plan(collective: str, machine: str, shape: tuple[int, ...], elements: int) -> None:
    (point,) = un.sweep(collective, machine, shapes=[shape], elements=[elements])
    plan = un.plan(collective, machine, shape=shape, elements=elements)
    assert (point["model"], point["cycles"], point["seconds"]) == (
        plan.report()["model"],
        plan.predicted["cycles"],
        plan.predicted["seconds"],
    )
    # `plan` accepts the algorithm and parameters of a sweep's point.
    assert point["params"] == plan.params
    parts = {"x-y", "reduce-broadcast", "x-y-allreduce", point["best"]}
    params = {name: value for name, value in point["params"].items() if value not in parts}
    again = un.plan(collective, machine, shape=shape, elements=elements, algorithm=point["best"], params=params)
    # On a wafer the time of a choice is simulated, and that of a named algorithm is the model's.
    is_simulated = machine == "wse2" and plan.predicted["source"] == "simulated"
    found = un.simulate(again.schedule).seconds if is_simulated else again.predicted["seconds"]
    assert found == plan.predicted["seconds"]


def test_a_plan_names_its_operator() -> None:
    where = ("--machine", "archer", "--ranks", "4", "--elements", "8", "--op", "max")
    assert text_of("plan", "allreduce", *where).startswith("allreduce (max) of 8 f32 (32 bytes) on 4 ranks of archer\n")
    assert text_of("plan", "allgather", *where).startswith("allgather of 8 f32")


def test_lines_of_a_shown_file_have_a_largest_length() -> None:
    assert max(map(len, text_of("show", str(ROOT / "examples/programs/transformer.hlo")).splitlines())) <= 200


def test_discover_names_the_graph_that_it_wrote(tmp_path: Path) -> None:
    file = str(tmp_path / "a.dot")
    assert text_of("discover", str(ROOT / "examples/tasks/nbody.py"), "--nodes", "4", "--graph", file).endswith(
        f"\nwrote {file}\n"
    )


def test_a_sweep_says_its_model() -> None:
    text = text_of("sweep", "reduce", "--machine", "wse2", "--shapes", "4,4x4", "--elements", "8")
    assert "times simulated by the model paper or links, as in 'unisono plan'" in text


@pytest.mark.parametrize(
    ("collective", "words"),
    [
        ("allreduce", "allreduce of 64 f32 (256 bytes) on"),
        ("allgather", "allgather of 64 f32 (256 bytes) of each rank on"),
        ("reduce-scatter", "reduce-scatter of 64 f32 (256 bytes) for each rank on"),
        ("alltoall", "alltoall of 64 f32 (256 bytes) between every two ranks on"),
    ],
)
def test_sizes_of_blocks_are_said_to_be(collective: str, words: str) -> None:
    for command in ("plan", "simulate"):
        assert text_of(command, collective, "--machine", "archer", "--ranks", "4", "--elements", "64").startswith(words)


def test_a_simulated_time_is_not_said_to_be_of_the_model() -> None:
    where = ("--machine", "hx2mesh-small", "--shape", "2x2", "--bytes", "96MiB", "--algorithm", "bucket")
    report = json_of("plan", "allreduce", *where)
    assert report["predicted"]["source"] == "simulated"
    assert "(simulated)" in text_of("plan", "allreduce", *where)


def test_equal_candidates_are_one_row_and_the_vendors_is_beside() -> None:
    arguments = ("plan", "reduce", "--machine", "wse2", "--shape", "16x16", "--elements", "256")
    few, every = text_of(*arguments), text_of(*arguments, "--all")
    report = json_of(*arguments)
    rows = [row for row in every.splitlines() if row.startswith("x-y ")]
    assert len(rows) == sum(row["algorithm"] == "x-y" for row in report["candidates"])
    chain = next(row for row in report["candidates"] if row["params"] == {"x": "chain", "y": "chain"})
    times = [row["cycles"] for row in report["candidates"] if row["algorithm"] == "x-y"]
    assert f"(and {times.count(times[0]) - 1} alike)" in few
    assert "alike" not in every
    listed = few.partition("candidate")[2].splitlines()[2:12]
    shown = sum(1 + int(row.partition("(and ")[2].split()[0]) if "(and " in row else 1 for row in listed)
    assert f"and {len(report['candidates']) - shown} more: --all" in few
    ratio = chain["seconds"] / report["predicted"]["seconds"]
    assert f"chain (the vendor's pattern): {chain['cycles']:g} cycles" in few
    assert f"{ratio:.2f} times as long" in few


def test_memory_is_counted_in_bytes() -> None:
    arguments = ("reduce", "--machine", "wse2", "--shape", "8x8", "--elements", "100000", "--algorithm", "chain")
    memory = json_of("plan", *arguments)["memory"]
    assert memory["needed_bytes"] >= 400000 * 2
    assert memory["pe_bytes"] == 49152
    need = f"a PE needs {memory['needed_bytes']} bytes for input, output and scratch memory, and has 49152"
    assert need in text_of("plan", *arguments)
    assert need in refusal("simulate", *arguments)
    assert "memory" not in text_of("plan", *arguments[:-3], "100")


def test_runs_and_projects_name_the_algorithm(tmp_path: Path) -> None:
    where = ("reduce", "--machine", "wse3", "--shape", "4x4", "--elements", "64", "--algorithm", "kd-tree")
    run = text_of("simulate", *where)
    assert "\nalgorithm" in run
    assert "kd-tree" in run.splitlines()[1]
    assert "hop_cycles of wse3 are assumed" in run
    wrote = text_of("emit", *where, "--format", "csl", "-o", str(tmp_path / "csl"))
    assert wrote.startswith("algorithm kd-tree chunk=8")
    assert "more: --json lists all" in wrote
    readme = (tmp_path / "csl" / "README.md").read_text()
    assert "Algorithm: kd-tree chunk=8" in readme
    assert "hop_cycles of wse3 are assumed" in readme


def test_a_folder_holds_one_program(tmp_path: Path) -> None:
    where = ("allreduce", "--machine", "wse2", "--shape", "4x4", "--elements", "64")
    folder = str(tmp_path / "out")
    assert call("emit", *where, "--format", "csl", "-o", folder).code == 0
    before = {path: path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}
    assert "files of another program" in refusal("emit", *where, "--format", "csl-module", "-o", folder)
    assert before == {path: path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}
    with pytest.raises(un.InputError, match="another program"):
        un.emit(un.plan("allreduce", "wse2", shape=(4, 4), elements=64, target="csl").schedule, "csl-module", folder)
    assert json_of("emit", *where, "--format", "csl", "-o", folder)["replaced"] == []
    other = (*where[:-1], "32", "--algorithm", "chain")
    (Path(folder) / "notes.txt").write_text("mine")
    for path in Path(folder).glob("pe_*.csl"):
        path.unlink()
    assert "replaced" in text_of("emit", *other, "--format", "csl", "-o", folder)


def test_certificates_of_other_things_are_not_overwritten(tmp_path: Path) -> None:
    bound, schedule = tmp_path / "bound.json", tmp_path / "a.sched"
    where = ("--machine", "torus2d-small", "--shape", "4x4", "--bytes", "4KiB")
    text = text_of("plan", "allgather", *where, "--certificate", str(bound))
    kept = bound.read_bytes()
    assert " µs, not the bound" in text or "not the bound" not in text
    assert json_of("show", str(bound))["root"] is None
    un.save(un.plan("allreduce", "archer", shape=4, elements=8).schedule, schedule)
    for option in ("--certificate", "--check"):
        ran = call("verify", str(schedule), option, str(bound))
        assert (ran.code, bound.read_bytes()) == (2, kept)
        assert "bound" in ran.err
    own = str(tmp_path / "a.cert")
    assert call("verify", str(schedule), "--certificate", own).err == ""
    assert call("verify", str(schedule), "--certificate", own).err == ""
    un.save(un.plan("allreduce", "archer", shape=5, elements=8).schedule, schedule)
    assert "was the certificate of another schedule" in call("verify", str(schedule), "--certificate", own).err


def test_what_failed_is_printed_and_counts() -> None:
    plain = json_of("workload", "gpt-3", "--machine", "hx2mesh-small")
    failed = json_of("workload", "gpt-3", "--machine", "hx2mesh-small", "--fail", "0-1")
    # The messages of accelerators 0 and 1 pass the switch of their row: one more cable, at the same rate.
    assert 0 < failed["seconds"] - plain["seconds"] < 1e-6
    first = text_of("workload", "gpt-3", "--machine", "hx2mesh-small", "--fail", "0-1").splitlines()[0]
    assert first == "gpt-3 on 384 accelerators of hx2mesh-small without 0-1, by model"
    traffic = text_of("traffic", "allreduce", "--machine", "dgx-a100-x2", "--bytes", "1MiB", "--fail", "0-16:1")
    assert "of dgx-a100-x2 without 0-16:1, by" in traffic.splitlines()[0]
    row = json_of("compare", "gpt-3", "--machines", "hx2mesh-small", "--fail", "0-1")["rows"][0]
    assert (row["failed"], row["seconds"]) == (["0-1"], failed["seconds"])
    assert (row["accelerators"], row["machine_accelerators"]) == (384, 1024)
    compared = text_of("compare", "gpt-3", "--machines", "hx2mesh-small")
    assert "384 of 1,024" in compared
    assert "prices are the shares of the accelerators in use" in compared


def test_cables_are_listed_with_the_numbers_that_fail_takes() -> None:
    listed = json_of("topology", "hx2mesh-small", "--cables")["cable_list"]
    assert {(cable["a"], cable["b"]) for cable in listed} >= {(0, 1), (0, 32)}
    assert all(cable["gbps"] == 400 and cable["latency_ns"] > 0 for cable in listed)
    ran = call("topology", "hx2mesh-small", "--fail", "0-2")
    assert (ran.code, ran.err) == (2, "error: hx2mesh-small: no cable joins accelerator 0 and accelerator 2\n")
    assert "column switch 0" in text_of("topology", "hx2mesh-small", "--cables")


def test_tables_of_cables_name_the_source_of_their_rates() -> None:
    """One table has the rates of the data sheet, the other the measured ones; without measured rates both are equal."""
    asked = ("topology", "dgx-a100-x2", "--cables")
    report, printed = json_of(*asked), text_of(*asked)
    assert {one["gbps"] for one in report["plane"]["unlike_links"]} == {200}
    assert {cable["gbps"] for cable in report["cable_list"] if cable["kind"] == "aoc"} == {192}
    assert "Gb/s by data sheet" in printed
    assert "Gb/s as measured" in printed
    assert "Gb/s as" not in text_of("topology", "hx2mesh-small", "--cables")


def test_prices_that_a_file_does_not_state_are_said_to_be_of_the_paper(tmp_path: Path) -> None:
    (tmp_path / "cables.txt").write_text("0 2\n1 2\n")
    file = tmp_path / "own.toml"
    wrote = text_of(
        "machines", "import", str(tmp_path / "cables.txt"), "--from", "edges", "--accelerators", "2", "-o", str(file)
    )
    assert "no prices" in wrote
    assert "each link sends for itself" in wrote
    text = file.read_text()
    file.write_text(text[: text.index("[prices]")] + text[text.index("[topology]") :])
    assert "prices: those of the HammingMesh paper" in text_of("topology", str(file))


def test_missing_keys_are_named_together(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text('name = "mine"\nkind = "network"\n[topology]\nname = "torus"\ndims = [4, 4]\n')
    ran = call("topology", str(file))
    keys = ("planes", "link_gbps", "link_latency_ns", "input_latency_ns", "packet_bytes", "buffer_bytes")
    assert ran.code == 2
    assert ran.err.startswith(f"error: {file}: the keys ")
    assert all(key in ran.err for key in keys)
    assert "line" not in ran.err


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("packet_bytes", "4KiB", "packet_bytes is 4KiB; accepted are a number without a unit"),
        ("packet_bytes", '"4"', "packet_bytes: found the string"),
        ("packet_bytes", "-1", "packet_bytes: found the integer `-1`; accepted is a whole number from 0 to"),
    ],
)
def test_wrong_values_are_named_with_their_key(key: str, value: str, words: str, tmp_path: Path) -> None:
    text = un.machine("dgx-h100").to_toml()
    line = next(line for line in text.splitlines() if line.startswith(f"{key} ="))
    file = written(tmp_path / "own.toml", text.replace(line, f"{key} = {value}"))
    assert words in refusal("topology", str(file))


def test_files_that_are_no_schedules_are_said_to_be_none(tmp_path: Path) -> None:
    page = written(tmp_path / "page.html", "<!doctype html>\n<html></html>\n")
    for command in ("simulate", "verify"):
        refused = refusal(command, str(page), *(("--machine", "archer") if command == "simulate" else ()))
        assert "is no schedule: it begins with '<!doctype html>'" in refused


def test_a_long_list_of_needless_communication_is_cut(tmp_path: Path) -> None:
    attributes = "channel_id=1, replica_groups=[1,8]<=[8], dimensions={0}, use_global_device_ids=true"
    gathers = [f"  %g.{n} = f32[8]{{0}} all-gather(%x), {attributes}" for n in range(14)]
    lines = [
        "HloModule m, num_partitions=8",
        "",
        "ENTRY %main (x: f32[1]) -> f32[8] {",
        "  %x = f32[1]{0} parameter(0)",
    ]
    program = written(tmp_path / "m.hlo", "\n".join([*lines, *gathers, "  ROOT %r = f32[8]{0} copy(%g.13)", "}", ""]))
    request = ("workload", "--from", str(program), "--machine", "dgx-h100")
    printed = [line for line in text_of(*request).splitlines() if "is not needed" in line]
    assert len(printed) == 10
    listed = json_of(*request)["second_opinion"]
    assert len(listed) == 13
    assert "and 3 more, of which cheaper ones would save" in text_of(*request)


def test_simulated_candidates_that_are_slower_than_others_have_a_remark() -> None:
    remark = "simulated candidates are listed first"
    where = ("reduce", "--machine", "wse2", "--shape", "16x16", "--elements", "256", "--for", "csl")
    for arguments in (where, where[:-2]):
        report = json_of("plan", *arguments)
        listed = [candidate for candidate in report["candidates"][:10] if candidate["expressible"] is not False]
        times = [candidate["seconds"] for candidate in listed]
        assert (remark in text_of("plan", *arguments)) == (times != sorted(times))


def test_bandwidths_of_short_vectors_are_no_zeros() -> None:
    draw = random.Random(3)
    for _ in range(200):
        rate = 10 ** draw.uniform(-9, 4)
        shown = bandwidths_text({"algbw": rate, "busbw": 2 * rate}).split(" ")[0]
        assert abs(float(shown) - rate) <= max(0.05 * rate, 0.005 if rate >= 0.01 else 0.0), (rate, shown)
    assert bandwidths_text({"algbw": 0.0, "busbw": 0.0}).startswith("0 GB/s")


@pytest.mark.parametrize(("rank", "printed"), [("0", ["tuning: 3 of 4 done after 20 s"]), ("1", [])])
def test_rank_0_prints_lines_of_progress(
    rank: str, printed: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    times = iter((100.0, 101.0, 114.0, 120.0, 150.0))
    monkeypatch.setenv("PMI_RANK", rank)
    monkeypatch.setattr("unisono.cli._output.time.monotonic", lambda: next(times))
    with _output.progress("tuning") as on_step:
        for done in range(1, 5):
            on_step(done, 4)
    assert capsys.readouterr().err.splitlines() == printed


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_long_steps_show_their_time_and_steps_inside_them_show_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for shows in (lambda: _output.progress("planning [all]"), lambda: _output.working("planning [all]")):
        terminal = _Terminal()
        monkeypatch.setattr("sys.stderr", terminal)
        with shows(), _output.working("inside"), _output.progress("inside"):
            pass
        assert "planning [all]" in terminal.getvalue()
        assert "0:00:0" in terminal.getvalue()
        assert "inside" not in terminal.getvalue()


def test_a_plan_of_several_sizes_shows_how_many_are_done(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steps: list[tuple[int, int]] = []

    @contextmanager
    def progress(_: str) -> Iterator[Callable[[int, int], None]]:
        yield lambda done, total: steps.append((done, total))

    monkeypatch.setattr("unisono.cli._plan_table.progress", progress)
    where = ("--machine", "archer", "--ranks", "4", "--serve", "1KiB-64KiB", "-o", str(tmp_path / "a.plan"))
    text_of("plan", "allreduce", *where)
    assert len(steps) > 2
    assert steps == [(done, len(steps)) for done in range(len(steps))]
