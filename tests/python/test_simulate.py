"""Simulated runs: results, refusals, and traces."""

import json
from pathlib import Path
from typing import Any

import pytest
import unisono as un
from click import BadParameter
from unisono.cli._types import TracePes
from unisono.simulation.traces import sample

from .conftest import Ran, call, json_of, text_of

ON_8 = ["reduce", "--machine", "wse2", "--shape", "8", "--elements", "16", "--algorithm", "chain"]
KEYS = {
    "cycles", "seconds", "finish", "events", "metrics", "wall_seconds", "result_correct", "stalls", "predicted_cycles",
    "lower_bound", "queue_depth", "sim",
}  # fmt: skip


def trace_events(file: Path) -> tuple[dict[str, Any], list[dict[str, Any]], dict[int, str]]:
    """Returns a trace file, its operations, and the names of its tracks by id."""
    whole = json.loads(file.read_text())
    events = whole["traceEvents"]
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    return whole, [event for event in events if event["ph"] == "X"], names


def refused(ran: Ran, code: int, *words: str) -> None:
    assert ran.code == code, ran
    assert ran.err.startswith("error: ")
    assert ran.err.count("\n") == 1
    for word in words:
        assert word in ran.err


def test_chain_takes_its_closed_form() -> None:
    report = json_of("simulate", *ON_8)
    assert set(report) >= KEYS
    assert report["cycles"] == 16 + 6 * 7
    assert report["predicted_cycles"] == {"paper": 58, "links": pytest.approx(58, abs=12)}
    assert report["lower_bound"]["name"] == "physical-1d"
    assert report["lower_bound"]["cycles"] <= report["cycles"]
    assert report["result_correct"] is True
    assert report["mismatch"] is None
    assert len(report["finish"]) == 8
    assert max(report["finish"]) == report["cycles"]
    assert report["queue_depth"] == 4
    assert report["seconds"] == pytest.approx(58 / 850e6)


def test_finish_of_many_pes_is_not_listed() -> None:
    report = json_of("simulate", "broadcast", "--machine", "wse2", "--shape", "65x64", "--elements", "1")
    assert report["finish"] is None


def test_people_get_a_table() -> None:
    text = text_of("simulate", *ON_8, "--queue-depth", "2")
    assert "58 cycles" in text
    assert "queue depth 2" in text
    assert "correct" in text
    assert "model paper" in text


@pytest.mark.parametrize("collective", ["broadcast", "reduce", "allreduce"])
@pytest.mark.parametrize(("shape", "elements"), [("1", 5), ("4", 0), ("1x1", 3), ("3x2", 0)])
def test_nothing_to_do(collective: str, shape: str, elements: int) -> None:
    run = un.simulate(un.plan(collective, "wse2", shape=shape, elements=elements).schedule)
    # A run without elements has no result to check.
    assert (run.result_correct, run.elements_checked) == ((True, elements) if elements else (None, None))
    assert run.finish.max() == run.cycles


@pytest.mark.parametrize("name", ["a.sched", "a.json"])
def test_a_file_runs_as_planned(name: str, tmp_path: Path) -> None:
    file = str(tmp_path / name)
    assert call("schedule", *ON_8, "-o", file).code == 0
    assert json_of("simulate", file)["cycles"] == 58
    assert json_of("simulate", file, "--machine", "wse2")["cycles"] == 58
    refused(call("simulate", file, "--machine", "wse2", "--shape", "9"), 2, "8 nodes", "9 PEs")
    refused(call("simulate", file, "--elements", "16"), 2, "file")


def test_a_schedule_without_a_machine_needs_one() -> None:
    b = un.ScheduleBuilder(ranks=2, elements=4, collective="reduce")
    stream = b.stream(1, 0)
    b.combine(1, [b.input(1)], [stream])
    b.combine(0, [stream, b.input(0)], [b.output(0)])
    mine = b.build()
    with pytest.raises(un.InputError, match="machine"):
        un.simulate(mine)
    run = un.simulate(mine, un.machine("wse2", shape=2))
    assert run.result_correct
    assert run.cycles == 4 + 6
    assert "10 cycles" in repr(run)


def test_what_is_not_proved_does_not_run(tmp_path: Path) -> None:
    plan = un.plan("reduce", "wse2", shape=3, elements=4)
    wrong = un.Schedule.parse(plan.schedule.to_text().replace("reduce", "allreduce", 1))
    with pytest.raises(un.VerifyError) as failure:
        un.simulate(wrong)
    assert failure.value.diagnostics
    file = tmp_path / "wrong.sched"
    un.save(wrong, file)
    refused(call("simulate", str(file), "--trace", str(tmp_path / "t.json")), 1)
    assert [path.name for path in tmp_path.iterdir()] == ["wrong.sched"]


def test_a_run_that_is_stuck_says_where(tmp_path: Path) -> None:
    """Two neighbors both send long vectors before they receive, which finite queues turn into a deadlock."""
    b = un.ScheduleBuilder(ranks=2, elements=512)
    streams = [b.stream(0, 1), b.stream(1, 0)]
    for me in (0, 1):
        b.combine(me, [b.input(me)], [streams[me]])
        b.combine(me, [streams[1 - me], b.input(me)], [b.output(me)])
    mine = b.build().on(un.machine("wse2", shape=2))
    assert mine.verify()
    with pytest.raises(un.SimulationError, match="PE 0,0") as failure:
        un.simulate(mine)
    assert len(failure.value.stuck) == 2
    file = tmp_path / "stuck.sched"
    un.save(mine, file)
    ran = call("simulate", str(file), "--json", "--trace", str(tmp_path / "t.json"))
    refused(ran, 1, "deadlock", "PE 0,0", "PE 0,1")
    assert ran.err == f"error: {ran.json['error']}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["stuck.sched"]


def test_idle_cycles_follow_the_seed() -> None:
    schedule = un.plan("reduce", "wse2", shape=16, elements=64).schedule
    quiet = un.simulate(schedule).seconds
    noisy = [un.simulate(schedule, noop_probability=0.2, seed=seed).seconds for seed in (1, 1, 2, 3, 4)]
    assert noisy[0] == noisy[1]
    assert len(set(noisy)) > 1
    assert min(noisy) > quiet
    assert json_of("simulate", *ON_8, "--noop-probability", "0.2", "--seed", "3")["cycles"] > 58


def test_trace_has_a_track_for_each_pe(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    run = un.simulate(un.plan("reduce", "wse2", shape=(3, 4), elements=8, algorithm="chain").schedule)
    cycles = run.cycles
    run.trace(file)
    whole, operations, names = trace_events(file)
    assert {name.partition(" thread")[0] for name in names.values()} == {
        f"PE {r},{c}" for r in range(3) for c in range(4)
    }
    assert "1 us stands for 1 cycle" in json.dumps(whole["otherData"])
    assert max(event["ts"] + event["dur"] for event in operations) == cycles == run.cycles
    assert {event["tid"] for event in operations} <= set(names)
    assert all(event["args"]["elements"] == 8 and " i" in event["name"] for event in operations)
    run.trace(file, pes=[5])
    assert list(trace_events(file)[2].values()) == ["PE 1,1"]


@pytest.mark.parametrize(("chosen", "pes"), [("all", 8), ("3", 3), ("1", 1), ("99", 8), ("0,7", 2), ("2..4,6", 4)])
def test_trace_of_chosen_pes(chosen: str, pes: int, tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    report = json_of("simulate", *ON_8, "--trace", str(file), "--trace-pes", chosen)
    assert report["files"] == [str(file)]
    assert len(trace_events(file)[2]) == pes


def test_choice_of_pes_stays_small() -> None:
    kind = TracePes()
    with pytest.raises(BadParameter):
        kind.convert("0", None, None)
    assert kind.convert("0..9999999999999", None, None).of(4) == [0, 1, 2, 3, 4]
    assert sample(10, 4) == [0, 3, 6, 9]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--queue-depth", "0"], ["queue depth"]),
        (["--queue-depth", "-1"], ["queue_depth", "-1"]),
        (["--noop-probability", "1"], ["noop_probability", "1"]),
        (["--noop-probability", "nan"], ["noop_probability"]),
        (["--noop-probability", "0.1", "--seed", "-1"], ["seed", "-1"]),
        (["--sim", "dice"], ["dice", "fabric"]),
        (["--dtype", "f64"], ["f64"]),
        (["--trace-pes", "all"], ["--trace"]),
        (["--trace", "t.json", "--trace-pes", "8,9"], ["8", "7"]),
        (["--trace", "t.json", "--trace-pes", "-3"], ["-3"]),
        (["--trace", "t.json", "--trace-pes", "4..2"], ["4..2"]),
        (["--trace", "no/such/t.json"], ["no/such"]),
        (["--machine", "wse9"], ["wse9"]),
    ],
)
def test_wrong_input(options: list[str], words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refused(call("simulate", *ON_8, *options), 2, *words)
    assert list(tmp_path.iterdir()) == []


def test_a_trace_of_too_many_pes_says_how_to_sample(tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    options = ["broadcast", "--machine", "wse2", "--shape", "65x64", "--elements", "1", "--trace-pes", "all"]
    refused(call("simulate", *options, "--trace", str(file)), 2, "4160", "4096", "--trace-pes 256")
    assert not file.exists()
    assert call("simulate", *options[:-1], "16", "--trace", str(file)).code == 0
    assert len(trace_events(file)[2]) == 16


def test_a_machine_with_too_few_colors_is_refused(tmp_path: Path) -> None:
    machine = tmp_path / "small.toml"
    machine.write_text(un.machine("wse2", shape=8).to_toml().replace("colors = 24", "colors = 1", 1))
    refused(call("simulate", *ON_8, "--machine", str(machine)), 2, "color")


def test_measured_as_on_hardware() -> None:
    """A chain of 8 PEs takes 16 + 6 * 7 cycles, and 5 more because the first PE samples the trigger early."""
    found = json_of("simulate", *ON_8, "--calibrated")["calibrated"]
    assert set(found) == {
        "alpha", "runs", "calibrated", "clock_spread", "trigger_spread", "start_spread", "true_start_spread",
        "measured_cycles", "true_cycles", "quiet_cycles", "result_correct",
    }  # fmt: skip
    assert found["alpha"] == 1
    assert found["quiet_cycles"] == 58
    assert found["measured_cycles"] == found["true_cycles"] == 58 + 5
    assert found["start_spread"] == 5
    assert found["trigger_spread"] == 7 + 5
    assert json_of("simulate", *ON_8)["calibrated"] is None
    text = text_of("simulate", *ON_8, "--calibrated", "--noop-probability", "0.05", "--seed", "3")
    assert "alpha" in text
    assert "by the trigger alone" in text


def test_calibration_from_python() -> None:
    schedule = un.plan("reduce", "wse2", shape=256, elements=1).schedule
    noisy = un.measure(schedule, noop_probability=0.1, seed=5, wanted_spread=1)
    assert not noisy.calibrated
    assert noisy.alpha == pytest.approx(0.9, abs=0.02)
    assert noisy == un.measure(schedule, noop_probability=0.1, seed=5, wanted_spread=1)
    assert un.measure(schedule, clock_skew=0).clock_spread == 0
    with pytest.raises(un.InputError, match="clock_skew is -1"):
        un.measure(schedule, clock_skew=-1)
    with pytest.raises(un.InputError, match="machine"):
        un.measure(un.ScheduleBuilder(ranks=2, elements=4, collective="reduce").build())


@pytest.mark.parametrize(
    ("options", "subject"),
    [
        (["wse2", "--shape", "8"], "on 8 PEs of wse2"),
        (["wse2", "--shape", "1"], "on 1 PE of wse2"),
        (["wse2", "--shape", "4x3"], "on 4x3 PEs of wse2"),
        (["archer", "--ranks", "1"], "on 1 rank of archer"),
        (["hx2mesh-small", "--shape", "2x2"], "on 2x2 ranks of hx2mesh-small"),
    ],
)
def test_plans_and_runs_name_their_nodes(options: list[str], subject: str) -> None:
    for command in ("plan", "simulate"):
        ran = call(command, "broadcast", "--machine", *options, "--elements", "4")
        assert ran.out.splitlines()[0] == f"broadcast of 4 f32 (16 bytes) {subject}", ran


@pytest.mark.parametrize(("machine", "ranks"), [("archer", 5), ("dgx-h100", 4), ("piuma", 5)])
def test_a_barrier_runs_with_any_operator_and_type(machine: str, ranks: int) -> None:
    """Nothing reads the sums of a barrier, so its operator need not exist for its type."""
    for op in un.operators():
        # Switches that reduce do so in the order of their ports.
        for dtype in un.dtypes() if (machine, op) != ("piuma", "ordered") else ():
            plan = un.plan("barrier", machine, ranks=ranks, op=op, dtype=dtype)
            assert plan.schedule.verify().holds, (op, dtype)
            assert un.simulate(plan.schedule).result_correct in (True, None), (op, dtype)
