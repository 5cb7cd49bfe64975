"""Programs of other tools: from files to the time of a step, on the command line and in Python."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import unisono as un
from unisono.base import reports
from unisono.cli import main

from .conftest import ROOT, Shared, call, json_of, refusal, text_of, written
from .test_reports import check

FOLDER = ROOT / "examples" / "programs"
TRANSFORMER = FOLDER / "transformer.hlo"
RATES: dict[str, Any] = {"tflops": 494.0, "memory_gb_per_second": 3350.0}
OPTIONS = ("--tflops", "494", "--memory-gb-per-second", "3350")

#: A program in which 8 devices sum a vector of 1 MiB.
SUM = """HloModule small, num_partitions=8

ENTRY %main (x: f32[262144]) -> f32[262144] {
  %x = f32[262144]{0} parameter(0)
  ROOT %r = f32[262144]{0} all-reduce(%x), channel_id=1, replica_groups=[1,8]<=[8], use_global_device_ids=true
}
"""


#: Replacements that reduce the transformer from 256 to 64 devices, with 8 parts of the batch, for faster planning.
FEWER = {
    "num_partitions=256": "num_partitions=64",
    "[32,8]<=[256]": "[8,8]<=[64]",
    "[8,32]<=[32,8]T(1,0)": "[8,8]<=[8,8]T(1,0)",
    "'axis_0'=32": "'axis_0'=8",
}
Modelled = Callable[..., reports.StepReport]


@pytest.fixture(scope="session")
def fewer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    text = TRANSFORMER.read_text()
    for whole, part in FEWER.items():
        assert whole in text
        text = text.replace(whole, part)
    return written(tmp_path_factory.mktemp("programs") / "fewer.hlo", text)


@pytest.fixture(scope="session")
def modelled(fewer: Path, shared: Shared) -> Modelled:
    """Returns a function that computes a program's step by the model once a run, since planning takes long."""

    def of(machine: str, program: Path = fewer) -> reports.StepReport:
        report: reports.StepReport = shared(
            f"step-{program.stem}-{machine}", lambda: un.step(program, machine, **RATES)
        )
        return report

    return of


@pytest.fixture
def small(tmp_path: Path) -> str:
    path = written(tmp_path / "small.hlo", SUM)
    return str(path)


@pytest.mark.parametrize("level", ["model", "packet"])
def test_short_steps_print_their_times_and_no_ratio_below_1(tmp_path: Path, level: str) -> None:
    """In a ring, messages leave before their receives begin, which must not make ratios smaller than 1."""
    plan = un.plan("allreduce", "fattree-small", shape=16, elements=64, algorithm="ring")
    un.emit(plan.schedule, "chakra", tmp_path)
    arguments = ("workload", "--from", str(tmp_path), "--machine", "fattree-small", "--level", level)
    report = json_of(*arguments)
    assert {row["kind"] for row in report["collectives"]} == {"send", "receive"}
    assert all(row["ratio"] is None or row["ratio"] >= 1 - 1e-9 for row in report["collectives"])
    assert all((row["ratio"] is None) == (row["bound"] is None) for row in report["collectives"])
    seconds = float(re.search(r"iteration +([0-9.]+) µs", call(*arguments).out)[1])  # type: ignore[index]
    assert seconds * 1e-6 == pytest.approx(report["seconds"], abs=5e-10)


@pytest.mark.parametrize(
    ("machine", "devices"),
    [
        ("fattree-small", 256),
        ("hx2mesh-small", 64),
        ("torus2d-small", 64),
        pytest.param("hx2mesh-small", 256, marks=pytest.mark.soak),
        pytest.param("torus2d-small", 256, marks=pytest.mark.soak),
    ],
)
def test_a_step_is_its_compute_and_what_is_exposed(machine: str, devices: int, fewer: Path, modelled: Modelled) -> None:
    program = TRANSFORMER if devices == 256 else fewer
    report = modelled(machine, program)
    assert report["accelerators"] == devices
    assert report["seconds"] == pytest.approx(report["compute_seconds"] + report["exposed_seconds"])
    assert report["communication_seconds"] == pytest.approx(report["exposed_seconds"] + report["hidden_seconds"])
    assert sum(row["count"] for row in report["collectives"]) == 32
    assert all(row["ratio"] is not None and row["ratio"] > 1 - 1e-9 for row in report["collectives"])
    phases = report["phases"]
    assert sum(phase["compute_seconds"] for phase in phases) == pytest.approx(report["compute_seconds"])
    blocking = un.step(program, machine, overlap=False, **RATES)
    assert blocking["seconds"] == pytest.approx(report["compute_seconds"] + report["communication_seconds"])


def test_a_faster_machine_is_asked_for_with_what_if(fewer: Path, modelled: Modelled) -> None:
    text = (ROOT / "machines" / "hx2mesh-small.toml").read_text().replace("[16, 16]", "[4, 4]")
    machine = un.Machine.from_toml(text, "hx2mesh of 64")
    changes: list[dict[str, object]] = [
        {"link_gbps": 800},
        {"machine": "fattree-small"},
        {"machine": un.machine("fattree-small"), "link_gbps": 800},
        {"fail": "0-1"},
        {"tflops": 988},
    ]
    report = un.step(fewer, machine, what_if=changes, **RATES)
    check(report, "StepReport")
    faster, other, both, failed, computing = report["what_if"]
    assert faster["communication_seconds"] < report["communication_seconds"]
    alone = modelled("fattree-small")
    assert (other["seconds"], other["machine"]) == (alone["seconds"], "fattree-small")
    assert both["communication_seconds"] < other["communication_seconds"]
    assert failed["communication_seconds"] > report["communication_seconds"]
    assert failed["compute_seconds"] == report["compute_seconds"]
    assert computing["compute_seconds"] < report["compute_seconds"]
    assert computing["speed_up"] == pytest.approx(report["seconds"] / computing["seconds"])


def test_cables_with_a_rate_of_their_own_are_changed_by_it(tmp_path: Path) -> None:
    gradients = tmp_path / "sum.goal"
    work = {0: "l1: send 64000000b to 8", 8: "l1: recv 64000000b from 0"}
    ranks = [f"rank {rank} {{\n{work.get(rank, 'l1: calc 1')}\n}}\n" for rank in range(16)]
    gradients.write_text("".join(["num_ranks 16\n", *ranks]))
    report = un.step(gradients, "dgx-a100-x2", what_if=[{"gbps.200": 400}])
    before, after = report["seconds"], report["what_if"][0]["seconds"]
    assert before / after == pytest.approx(2, rel=0.05)
    with pytest.raises(un.InputError, match=r"no cable states gbps=100; those of dgx-a100-x2 state 200"):
        un.step(gradients, "dgx-a100-x2", what_if=[{"gbps.100": 400}])
    with pytest.raises(un.InputError, match="none of torus2d-small states one"):
        un.step(gradients, "torus2d-small", what_if=[{"gbps.100": 400}])
    everywhere = tmp_path / "pair.toml"
    cables = written(tmp_path / "pair.edges", "".join(f"{k} 16 gbps=200\n" for k in range(16)))
    everywhere.write_text(un.import_machine(cables, accelerators=16).to_toml())
    with pytest.raises(un.InputError, match=r"link_gbps changes nothing: .* give gbps.200=N"):
        un.step(gradients, everywhere, what_if=[{"link_gbps": 800}])


def test_the_part_of_a_machine_is_that_of_its_shape(small: str) -> None:
    row, square = (un.step(small, un.machine("torus2d-small", shape=shape))["seconds"] for shape in ("8", "2x4"))
    plan = un.plan("allreduce", un.machine("torus2d-small", shape="8"), bytes="1MiB")
    assert row == plan.predicted["seconds"]
    assert square != row


def test_ranks_at_the_prices_of_a_model(small: str) -> None:
    report = un.step(small, "archer")
    plan = un.plan("allreduce", "archer", shape=8, bytes="1MiB")
    assert report["seconds"] == plan.predicted["seconds"]
    assert report["collectives"][0]["algorithm"] == plan.algorithm


def test_the_rates_of_a_machine_file_are_taken(tmp_path: Path, fewer: Path, modelled: Modelled) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        un.machine("fattree-small").to_toml() + "\n[accelerator]\ntflops = 494\nmemory_gb_per_second = 3350\n"
    )
    report = un.step(fewer, str(file))
    assert report["seconds"] == modelled("fattree-small")["seconds"]
    assert un.step(fewer, str(file), tflops=988)["compute_seconds"] < report["compute_seconds"]


@pytest.mark.parametrize(
    ("machine", "devices"),
    [
        ("fattree-small", 64),
        pytest.param("fattree-small", 256, marks=pytest.mark.soak),
        pytest.param("hx2mesh-small", 256, marks=pytest.mark.soak),
    ],
)
def test_packets_take_about_what_the_model_predicts(
    machine: str, devices: int, fewer: Path, modelled: Modelled
) -> None:
    program = TRANSFORMER if devices == 256 else fewer
    model, packets = modelled(machine, program), un.step(program, machine, level="packet", **RATES)
    check(packets, "StepReport")
    assert packets["level"] == "packet"
    assert packets["packets"]
    assert packets["events"]
    assert packets["compute_seconds"] == model["compute_seconds"]
    parts = packets["compute_seconds"] + packets["exposed_seconds"] + packets["waiting_seconds"]
    assert packets["seconds"] == pytest.approx(parts)
    assert packets["seconds"] == pytest.approx(model["seconds"], rel=0.15)
    assert {row["algorithm"] for row in packets["collectives"]} == {row["algorithm"] for row in model["collectives"]}


@pytest.mark.parametrize("machine", ["torus2d-small", "archer", "fattree-small-reducing"])
def test_one_collective_by_packets_is_its_simulated_plan(small: str, machine: str) -> None:
    plan = un.plan("allreduce", machine, shape=8, bytes="1MiB")
    run = un.simulate(plan.schedule)
    assert un.step(small, machine, level="packet")["seconds"] == pytest.approx(run.seconds, rel=1e-9)


def test_another_algorithm_is_asked_for_with_what_if(small: str) -> None:
    report = un.step(small, "torus2d-small", what_if=[{"allreduce": "ring"}], algorithms={"allreduce": "binomial"})
    ring = un.plan("allreduce", un.machine("torus2d-small", shape="8"), bytes="1MiB", algorithm="ring")
    assert report["what_if"][0]["seconds"] == ring.predicted["seconds"]
    assert report["seconds"] > report["what_if"][0]["seconds"]
    with pytest.raises(un.UnsupportedError, match="in-network"):
        un.step(small, "torus2d-small", algorithms={"allreduce": "in-network"})


def test_large_groups_that_lie_alike_take_forests(tmp_path: Path) -> None:
    """8 groups of 32, whose ranks are 8 apart, each sum 64 MiB."""
    text = SUM.replace("=8", "=256", 1).replace("[1,8]<=[8]", "[8,32]<=[32,8]T(1,0)").replace("262144", f"{1 << 24}")
    path = written(tmp_path / "groups.hlo", text)

    def row(machine: str, **options: Any) -> Any:
        (only,) = un.step(path, machine, **options)["collectives"]
        assert (only["kind"], only["group"]) == ("allreduce", 32)
        return only

    free = row("hx2mesh-small")
    rings = row("hx2mesh-small", algorithms={"allreduce": "bidirectional-ring"})
    assert free["algorithm"] == "forest"
    assert free["bound"] < free["seconds"] < 0.6 * rings["seconds"]
    # On a torus all groups share links, which forests for a single group would overload.
    assert row("torus2d-small")["algorithm"] == "dual-rings"


def test_the_price_of_the_network_is_reported(small: str) -> None:
    report = un.step(small, "fattree-small", what_if=[{"machine": "torus2d-small"}, {"machine": "dgx-h100"}])
    facts = un.machine("fattree-small").topology
    assert facts is not None
    assert report["cost_usd"] == facts["cost_usd"]
    assert report["time_x_cost"] == pytest.approx(report["seconds"] * facts["cost_usd"])
    torus, box = report["what_if"]
    assert torus["cost_usd"] is not None
    assert torus["cost_usd"] < facts["cost_usd"]
    assert (box["cost_usd"], box["time_x_cost"]) == (None, None)


#: Workloads whose plans take seconds. Smaller variants of these workloads are tested.
DEAR = {"dlrm", "resnet-152", "resnet-152-artifact"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(p["name"], marks=[pytest.mark.soak] * (p["name"] in DEAR)) for p in un.workload_presets()],
)
def test_a_workload_is_a_program(name: str) -> None:
    machine = "fattree-small" if not name.startswith("gpt-3-moe") else "fattree-large"
    report, before = un.step(name, machine), un.workload(name, machine)
    assert report["accelerators"] == before["accelerators"]
    assert report["compute_seconds"] == pytest.approx(before["compute_seconds"])
    # An exchange with two partners becomes two permutations, one after the other.
    assert report["seconds"] == pytest.approx(before["seconds"], rel=0.02)
    by_flows = un.step(name, machine, level="flow")
    check(by_flows, "StepReport")
    assert by_flows["seconds"] == pytest.approx(report["seconds"], rel=0.02)


def test_a_workload_takes_boxes_in_order() -> None:
    boxes = un.machine("dgx-h100-x8", nodes=48)
    report = un.step("gpt-3", boxes)
    assert report["seconds"] >= report["compute_seconds"]


def test_servers_state_the_rates_of_their_accelerators(fewer: Path) -> None:
    report = un.step(fewer, "dgx-h100-x8")
    other = un.step(fewer, "fattree-small", tflops=989, memory_gb_per_second=3350)
    assert report["compute_seconds"] == other["compute_seconds"]


def test_the_command_prints_a_table(tmp_path: Path, fewer: Path) -> None:
    words = ("workload", "--from", str(fewer), "--machine", "fattree-small", *OPTIONS, "--what-if", "planes=2")
    plot = str(tmp_path / "step.svg")
    ran = call(*words, "--plot", plot)
    assert (ran.code, ran.err) == (0, "")
    assert "allreduce among 8" in ran.out
    assert "planes=2" in ran.out
    assert Path(plot).read_text().startswith("<?xml")
    report = json_of(*words)
    assert report.pop("files") == []
    check(report, "StepReport")
    assert set(reports.StepReport.__annotations__) <= set(report)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--from", "missing.hlo"), "the program 'missing.hlo' does not exist"),
        (("gpt-3", "--from", "small.hlo"), "'gpt-3' and --from both name a workload"),
        (("--from", "small.hlo", "--algorithm", "ring"), "or KIND=NAME as in allreduce=ring; 'ring' is neither"),
        (("--from", "small.hlo", "--algorithm", "allreduce=rign"), "'rign' is not an algorithm (did you mean ring?)"),
        (("--from", "small.hlo", "--algorithm", "allgather=ring"), "small has no allgather, so no algorithm can be"),
        (("--from", "small.hlo", "--what-if", "allreduce=fast"), "'fast'"),
        (("--from", "small.hlo", "--minibatch", "2"), "--minibatch is for vgg16"),
        (("--from", "small.hlo", "--what-if", "planes"), "'planes' is not KEY=VALUE"),
        (("--from", "small.hlo", "--what-if", "color=3"), "unknown field `color`"),
        (
            ("--from", "small.hlo", "--what-if", "plane=3"),
            "unknown field `plane` (did you mean planes?); accepted are keys of the machine file such as planes,",
        ),
        (
            ("--from", "small.hlo", "--what-if", "color=3"),
            "fattree-small` prints them), also machine, fail, gbps.RATE, tflops, memory_gb_per_second, and",
        ),
        (("--from", "small.hlo", "--what-if", "planes=many"), 'planes=many: found the string "many"; accepted is a'),
        (("--from", "small.hlo", "--what-if", "topology=5"), "found the integer `5`; accepted is a table"),
        (("--from", "small.hlo", "--what-if", "kind=wafer"), "kind identifies the machine; accepted are other keys"),
        (("--from", "small.hlo", "--what-if", "accelerator.tflops=5"), "accepted are tflops and memory_gb_per_second"),
        (("--from", "small.hlo", "--what-if", "broadcast=binomial"), "small has no broadcast, so no algorithm can be"),
        (("--from", "small.hlo", "--what-if", "planes=1,planes=2"), "occurs twice; give each value a --what-if of its"),
        (("--from", "small.hlo", "--what-if", "machine=none"), "'none' is neither a machine preset nor"),
        (("--from", "small.hlo", "--tflops", "5"), "tflops is given without memory_gb_per_second"),
        (("--from", "small.hlo", "--tflops", "-1", "--memory-gb-per-second", "1"), "accepted is a number above 0"),
        (("gpt-3", "--strict"), "--strict is for a program of another tool"),
        (("--from", "cut.hlo"), "cut.hlo, line 3: computation 'main' has no end; the file is cut off"),
        (("--from", "data.bin"), "data.bin: the file begins with 'no program'; accepted are"),
        (("--from", "empty"), "the folder 'empty' has no files"),
        (("--from", "odd.hlo", "--strict"), "odd.hlo, line 5: the time of 'sing' is not known"),
    ],
)
def test_wrong_input_is_one_sentence(
    words: tuple[str, ...],
    message: str,
    small: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cut.hlo").write_text(SUM[:-3])
    (tmp_path / "odd.hlo").write_text(SUM.replace("all-reduce", "sing"))
    (tmp_path / "data.bin").write_bytes(b"no program")
    (tmp_path / "empty").mkdir()
    ran = call("workload", *words, "--machine", "fattree-small")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert message in ran.err


def test_algorithms_are_named_by_their_collectives(small: str) -> None:
    report = json_of("workload", "--from", small, "--machine", "torus2d-small", "--algorithm", "all-reduce=Ring")
    assert report["collectives"][0]["algorithm"] == "ring"
    # Without the option, the planner chooses another algorithm.
    assert un.step(small, "torus2d-small")["collectives"][0]["algorithm"] != "ring"


def kilobytes(name: str) -> int:
    """Returns a size in kilobytes from /proc/self/status."""
    (line,) = re.findall(rf"^{name}:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    return int(line)


def test_a_program_that_is_too_large_names_what_makes_it_so() -> None:
    words = ("workload", "--from", "resnet-152", "--machine", "torus2d-small", "--level", "packet")
    # Writing 5 resets the peak memory of the process.
    Path("/proc/self/clear_refs").write_text("5")
    before = kilobytes("VmRSS")
    refused = refusal(*words, "--limit-memory", "300MB")
    message = refused.splitlines()[-1]
    assert "resnet-152: the task graph of the program needs about" in message
    assert "allreduce among 1024 ranks by bucket takes up to" in message
    assert "such as --algorithm allreduce=ring" in message
    # The refusal comes before the schedules are built, and so within the given limit.
    assert kilobytes("VmHWM") - before < 3e5


def test_boxes_are_as_many_as_asked_for(fewer: Path) -> None:
    words = ("workload", "--from", str(fewer), "--machine", "dgx-a100-x4", *OPTIONS)
    ran = call(*words, "--nodes", "8")
    assert (ran.code, ran.out.splitlines()[0]) == (0, "jit_step on 64 accelerators of dgx-a100-x4, by the model")
    assert "64 ranks do not fit on dgx-a100-x4, which has 32 accelerators" in refusal(*words)


def test_operations_whose_time_is_not_known_are_counted(tmp_path: Path) -> None:
    (tmp_path / "odd.hlo").write_text(SUM.replace("all-reduce", "sing"))
    words = ("workload", "--from", str(tmp_path / "odd.hlo"), "--machine", "fattree-small", *OPTIONS)
    ran = text_of(*words)
    assert "operations whose time is not known, local ones counted by their memory traffic: sing (1)" in ran


def test_a_program_as_traces_takes_the_same_time(tmp_path: Path, fewer: Path) -> None:
    program = un.read_workload(fewer)
    files = program.to_chakra()
    assert len(files) == program.ranks
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "notes.txt").write_text("not a trace")
    report = un.step(tmp_path, "torus2d-small", **RATES)
    before = un.step(program, "torus2d-small", **RATES)
    # Except for the format and second opinions, traces give the report of the program.
    assert report == {**before, "format": "chakra", "second_opinion": []}
    (tmp_path / "jit_step.7.et").unlink()
    refused = refusal("workload", "--from", str(tmp_path), "--machine", "torus2d-small")
    assert "jit_step.0.et: the trace of rank 7 is missing" in refused


def test_traces_of_a_profiler(tmp_path: Path) -> None:
    folder = FOLDER / "ddp"
    report = un.step(folder, "dgx-h100")
    # The slower rank 1, by 5 %, decides: 4 forward, 4 backward, the optimizer, and 40 us of the host.
    assert report["compute_seconds"] == pytest.approx((4 * 900 + 4 * 1800 + 600) * 1.05e-6 + 40e-6)
    # The trace omits nothing; the notes are the machine's.
    assert (report["format"], report["classes"], report["notes"]) == ("kineto", 2, un.machine("dgx-h100").notes())
    (row,) = report["collectives"]
    assert (row["kind"], row["bytes"], row["count"], row["group"]) == ("allreduce", 48_000_000, 4, 2)
    # Three of four sums are hidden by compute, the last one is not.
    assert report["exposed_seconds"] == pytest.approx(row["seconds"])
    alone = un.step(folder / "step.0.json", "dgx-h100")
    assert alone["notes"] == ["the trace of rank 0 stands for all 2 ranks", *report["notes"]]
    assert alone["compute_seconds"] < report["compute_seconds"]
    ran = text_of("workload", "--from", str(folder / "step.1.json"), "--machine", "dgx-h100")
    assert "the trace of rank 1 stands for all 2 ranks" in ran
    subprocess.run([sys.executable, str(FOLDER / "ddp.py"), str(tmp_path)], check=True)
    for rank in range(2):
        assert (tmp_path / f"step.{rank}.json").read_text() == (folder / f"step.{rank}.json").read_text()


#: Machines without costs for starts of kernels, signals and copies, which traces lack.
@pytest.mark.parametrize("machine", ["torus2d-small", "dgx2"])
@pytest.mark.parametrize("target", ["chakra", "astra-sim"])
def test_a_schedule_as_traces_takes_the_same_time(tmp_path: Path, machine: str, target: str) -> None:
    plan = un.plan("allreduce", machine, shape=8, bytes="1MiB", algorithm="ring")
    names = un.emit(plan.schedule, target, tmp_path / "out")
    assert [name for name in names if name.endswith(".et")] == [f"allreduce.{rank}.et" for rank in range(8)]
    run = un.simulate(plan.schedule)
    again = un.simulate_goal(tmp_path / "out", machine=machine)
    assert (again.seconds, list(again.finish)) == (run.seconds, list(run.finish))
    # The traces as a program take about the same time by the model, and the same by packets.
    report = un.step(tmp_path / "out", machine)
    assert 0.5 * run.seconds < report["seconds"] < 2 * run.seconds
    assert un.step(tmp_path / "out", machine, level="packet")["seconds"] == pytest.approx(run.seconds, rel=1e-9)


@pytest.mark.parametrize("machine", ["torus2d-small", pytest.param("hx2mesh-small", marks=pytest.mark.soak), "dgx2"])
def test_every_algorithm_takes_the_same_time_as_traces(tmp_path: Path, machine: str) -> None:
    made = {"chakra": 0, "astra-sim": 0}
    for kind in un.collectives():
        for algorithm in (entry["name"] for entry in un.algorithms(kind)):
            try:
                schedule = un.plan(kind, machine, shape=8, bytes="4KiB", algorithm=algorithm).schedule
            except un.UnsupportedError:
                continue
            run = un.simulate(schedule)
            for target in made:
                folder = tmp_path / f"{kind}-{algorithm}-{target}"
                try:
                    un.emit(schedule, target, folder)
                except un.NotExpressibleError:
                    # Sums in switches are no messages of ranks, and ASTRA-sim has custom algorithms of some kinds only.
                    continue
                again = un.simulate_goal(folder, machine=machine)
                assert (again.seconds, list(again.finish)) == (run.seconds, list(run.finish)), (kind, algorithm)
                made[target] += 1
    assert made["chakra"] >= 40
    assert made["astra-sim"] >= 25


@pytest.mark.parametrize("ending", ["sched", "xml"])
def test_a_schedule_is_a_program(tmp_path: Path, ending: str) -> None:
    plan = un.plan("allreduce", "torus2d-small", shape=8, elements=8, algorithm="ring")
    path = tmp_path / f"ring.{ending}"
    if ending == "sched":
        un.save(plan.schedule, path)
    else:
        un.emit(plan.schedule, "msccl-xml", path)
    report = un.step(path, "torus2d-small", level="packet")
    assert (report["format"], report["accelerators"]) == ("chakra", 8)
    assert report["seconds"] == pytest.approx(un.simulate(un.load(path), machine="torus2d-small").seconds, rel=1e-9)
    with pytest.raises(un.InputError, match="states its own"):
        un.read_workload(path, ranks=8)
    path.write_text("<algo" if ending == "xml" else "schedule")
    ran = call("workload", "--from", str(path), "--machine", "torus2d-small")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert f"ring.{ending}" in ran.err


def test_sums_of_traces_take_the_time_of_the_machine(tmp_path: Path) -> None:
    machine = un.machine("torus2d-small", shape=4).changed("gamma_ns_per_byte", "0.5")
    plan = un.plan("allreduce", machine, bytes="1MiB", algorithm="ring")
    un.emit(plan.schedule, "chakra", tmp_path / "out")
    report = un.step(tmp_path / "out", machine)
    # Each of 4 ranks reduces three quarters of the vector, divided among the planes.
    planes = machine.describe()["planes"]
    assert report["compute_seconds"] == pytest.approx(0.75 * 2**20 * 0.5e-9 / planes)


def test_programs_of_tasks_are_programs() -> None:
    path = str(FOLDER / "nbody.json")
    report = un.step(path, "hx2mesh-small", ranks=64, tflops=1.0, memory_gb_per_second=1000.0)
    check(report, "StepReport")
    assert (report["format"], report["accelerators"], report["unknown"]) == ("tasks", 64, {"check": 64})
    assert [(row["kind"], row["bytes"], row["count"]) for row in report["collectives"]] == [
        ("allgather", 24 * 65536 // 64, 1),
        ("allreduce", 8, 1),
    ]
    # Two steps compute forces on 1024 bodies, in 1.34 ms each.
    assert report["compute_seconds"] == pytest.approx(2 * 1024 * 1310720e-12, rel=1e-3)
    options = ("--ranks", "64", "--machine", "hx2mesh-small", "--tflops", "1", "--memory-gb-per-second", "1000")
    assert json_of("workload", "--from", path, *options, "--json")["seconds"] == report["seconds"]
    assert un.read_workload(path, ranks=3).ranks == 3
    for ranks, message in [(None, "for any number of ranks"), (0, "ranks is 0"), (2**40, "accepted are numbers")]:
        with pytest.raises(un.InputError, match=message):
            un.read_workload(path, ranks=ranks)
    with pytest.raises(un.InputError, match="states its own"):
        un.read_workload("gpt-3", ranks=4)
    with pytest.raises(un.InputError, match="states its own"):
        un.read_workload(str(TRANSFORMER), ranks=4)
    with pytest.raises(un.InputError, match="states no operations"):
        un.read_workload(path, ranks=4, strict=True)


def test_goal_is_a_program(tmp_path: Path) -> None:
    report = un.step(ROOT / "tests" / "goal" / "ring_P4_d4096.goal", "torus2d-small")
    assert (report["format"], report["accelerators"], report["compute_seconds"]) == ("goal", 4, 0)
    check(report, "StepReport")
    text = "num_ranks 2\nrank 0 {\na: calc 5000\nb: send 8b to 1\nb requires a\n}\nrank 1 {\nrecv 8b from 0\n}\n"
    (tmp_path / "a.goal").write_text(text)
    assert un.step(tmp_path / "a.goal", "torus2d-small")["seconds"] > 5e-6
    # A send ends when it starts, so the calc after it runs during the transfer.
    long = text.replace("8b", "1048576b").replace("a: calc 5000\nb: send", "a: calc 50000\nb: send")
    (tmp_path / "b.goal").write_text(long.replace("b requires a", "a requires b"))
    run = un.simulate_goal(tmp_path / "b.goal", machine="torus2d-small")
    assert un.step(tmp_path / "b.goal", "torus2d-small")["seconds"] == pytest.approx(run.seconds, rel=1e-3)
    ranks = (f"rank {n} {{\na: recv 8b from {1 - n}\nb: send 8b to {1 - n}\nb requires a\n}}\n" for n in range(2))
    circle = "num_ranks 2\n" + "".join(ranks)
    for wrong, message in [
        (text.replace("recv 8b", "recv 9b"), "a.goal, rank 0, node 1: it sends 8 bytes to rank 1 with tag 0, which"),
        (text.replace("from 0", "from -1"), "a.goal: rank 1 has a recv of any rank or any tag; accepted are messages"),
        (text.replace("calc 5000", "calc 5000 cpu 1"), "a.goal: rank 0 has a calc on CPU 1 and network interface 0;"),
        (text.replace("send 8b", "send b"), "a.goal, line 4: found 'b to 1' where a number of bytes is expected"),
        (
            circle,
            "a.goal, rank 0, node 0: it is a receive of 8 bytes from rank 1 ('recv'), and waits for rank 1,",
        ),
    ]:
        (tmp_path / "a.goal").write_text(wrong)
        ran = call("workload", "--from", str(tmp_path / "a.goal"), "--machine", "torus2d-small")
        assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
        assert message in ran.err


def test_groups_beside_traces(tmp_path: Path, fewer: Path) -> None:
    for name, data in un.read_workload(fewer).to_chakra().items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "groups.json").write_text('{"0-0": [0, 1]}')
    refused = refusal("workload", "--from", str(tmp_path), "--machine", "torus2d-small", *OPTIONS)
    assert re.search(r"jit_step\.\d+\.et, rank \d+, node \d+: (process group|rank)", refused)


def test_traces_with_collectives_are_no_tasks(tmp_path: Path, small: str) -> None:
    for name, data in un.read_workload(small).to_chakra().items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "small.hlo").unlink()
    refused = refusal("simulate", "--goal", str(tmp_path), "--machine", "torus2d-small")
    assert "rank 0 has the collective 'r'; accepted are compute, sends and receives" in refused


def test_the_page_prints_what_it_shows(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs" / "programs.md").read_text()
    shown = re.findall(r"^```\n\$ unisono (.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(shown) > 1
    for block in shown:
        line, _, printed = block.replace("\\\n", " ").partition("\n")
        assert main(line.split()) == 0
        assert capsys.readouterr().out == printed
    for example in re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        exec(compile(example, "docs/programs.md", "exec"), {})


def test_the_program_is_what_jax_compiles_now(modelled: Modelled) -> None:
    jax = pytest.importorskip("jax")
    script = FOLDER / "transformer.py"
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    graph = un.WorkloadGraph.read([("now.hlo", done.stdout.encode())], strict=True)
    assert graph.ranks == 256, jax.__version__
    report = graph.time(un.machine("fattree-small"), (494e12, 3350e9))
    assert report["compute_seconds"] == pytest.approx(
        modelled("fattree-small", TRANSFORMER)["compute_seconds"], rel=0.2
    )


def test_a_latency_that_every_cable_states_is_refused_with_a_way_out(tmp_path: Path) -> None:
    (tmp_path / "cables.txt").write_text("0 2 gbps=200 ns=50\n1 2 gbps=200 ns=50\n")
    machine = str(tmp_path / "two.toml")
    imported = ("machines", "import", str(tmp_path / "cables.txt"), "--from", "edges", "--accelerators", "2")
    assert call(*imported, "-o", machine).code == 0
    step = ("workload", "--from", "examples/programs/ddp", "--machine", machine, "--what-if")
    latency, rate = (call(*step, f"{key}=1000").err for key in ("link_latency_ns", "link_gbps"))
    assert "write other ns= into its file" in latency
    assert "give gbps.200=N" in rate
