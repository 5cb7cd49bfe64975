"""Switches that reduce: plans, schedules with their placement, registers, runs, and wrong input in one sentence."""

import random
from pathlib import Path

import pytest
import unisono as un
from unisono.planning import training

from .conftest import Spawn, call, json_of, refusal, written


def planned(nodes: int = 2, elements: int = 256, embeddings: int = 1, name: str = "piuma") -> un.Plan:
    machine = un.machine(name, nodes=nodes)
    params = {"embeddings": str(embeddings)}
    return un.plan("allreduce", machine, elements=elements, algorithm="in-network", params=params)


@pytest.mark.parametrize("seed", range(4))
def test_predictions_are_near_simulations_with_any_buffers_and_engines(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(6):
        changed: dict[str, object] = {
            key: draw.choice([1, 5, 25, 300]) for key in ("core_latency_ns", "socket_latency_ns", "node_latency_ns")
        }
        changed |= {key: draw.choice([17.3, 64, 400]) for key in ("core_gbps", "socket_gbps", "memory_gbps")}
        changed |= {"buffer_packets": draw.choice([1, 2, 7, 64]), "packet_bytes": draw.choice([16, 64, 256])}
        changed |= {"engine_level_ns": draw.choice([0, 3, 20])}
        changed |= draw.choice([{}, {"engine_gbps": draw.choice([4, 50])}])
        on = un.machine(un.machine("piuma").describe() | changed, draw.choice([3, 9, 20]))
        collective, count = draw.choice(["allreduce", "reduce", "broadcast"]), draw.choice(["1", "2"])
        elements = draw.choice([16, 300, 4096])
        plan = un.plan(collective, on, elements=elements, algorithm="in-network", params={"embeddings": count})
        ran = un.simulate(plan.schedule, on)
        assert ran.seconds == pytest.approx(plan.predicted["seconds"], rel=0.1), (changed, collective, elements, count)


def test_sixteen_nodes_rank_in_network_against_the_cores() -> None:
    found = json_of("plan", "allreduce", "--machine", "piuma", "--nodes", "16", "--bytes", "128KiB")
    rows = [(row["algorithm"], row["params"].get("embeddings")) for row in found["candidates"]]
    assert rows[0] == ("in-network", "1")
    assert {("in-network", "2"), ("rabenseifner", None), ("recursive-doubling", None)} <= set(rows)
    assert found["predicted"]["seconds"] == pytest.approx(41.25e-6)
    assert found["lower_bound"]["seconds"] == pytest.approx(40.96e-6)
    assert any("memories limit the throughput" in note for note in found["notes"])


def test_a_run_takes_what_the_plan_says_and_is_the_same_each_time(tmp_path: Path) -> None:
    for embeddings in (1, 2):
        plan = planned(elements=32768, embeddings=embeddings)
        assert plan.schedule.verify().holds
        un.emit(plan.schedule, "registers", tmp_path / "a.registers")
        run, again = un.simulate(plan.schedule), un.simulate(un.load(tmp_path / "a.registers"))
        assert run.result_correct is True
        assert str(run.metrics) == str(again.metrics)
        assert run.nanoseconds == again.nanoseconds
        assert run.metrics["embeddings"].value == embeddings
        assert run.seconds == pytest.approx(plan.predicted["seconds"], rel=0.01)


def test_embeddings_that_share_no_link_take_half_the_time() -> None:
    runs = [un.simulate(planned(16, 1 << 17, count, "piuma-wide").schedule) for count in (1, 2)]
    assert runs[0].seconds / runs[1].seconds > 1.9
    assert len(runs[1].metrics["link_loads"].value) == 1


def test_schedules_of_registers_are_proved() -> None:
    for collective in ("allreduce", "reduce", "broadcast", "barrier", "scan"):
        plan = un.plan(collective, un.machine("piuma", nodes=1), elements=16, algorithm="in-network")
        assert plan.schedule.verify().complete, collective


def test_one_flipped_port_is_refused(within: Spawn, tmp_path: Path) -> None:
    sized = ("--machine", "piuma", "--nodes", "1", "--elements", "64")
    assert within("schedule", "allreduce", *sized, "-o", "a.registers").code == 0
    assert within("verify", "a.registers").code == 0
    assert within("simulate", "a.registers", "--json").json["result_correct"]
    text = (tmp_path / "a.registers").read_text()
    (tmp_path / "b.registers").write_text(text.replace("request memory -> 0", "request memory -> 1", 1))
    refused = within("verify", "b.registers", "--json")
    assert refused.code == 1
    assert refused.json["diagnostics"]
    for command in (("simulate", "b.registers"), ("import", "b.registers", "--format", "registers", "-o", "b.sched")):
        ran = within(*command)
        assert ran.code == 2
        assert "the registers are wrong" in ran.err


def test_registers_are_emitted_and_imported(within: Spawn, tmp_path: Path) -> None:
    sized = ("--machine", "piuma", "--nodes", "2", "--elements", "64")
    assert within("schedule", "allreduce", *sized, "-o", "a.sched").code == 0
    assert within("emit", "a.sched", "--format", "registers", "-o", "a.registers").code == 0
    assert within("import", "a.registers", "--format", "registers", "-o", "b.sched").code == 0
    ran = [within("simulate", file, "--json").json for file in ("a.sched", "a.registers", "b.sched")]
    ran.append(within("simulate", "allreduce", *sized, "--json").json)
    ran.append(within("simulate", "a.sched", "--machine", "piuma", "--nodes", "2", "--json").json)
    for one in ran:
        one.pop("wall_seconds")
    assert all(one == ran[0] for one in ran)
    elsewhere = within("simulate", "a.sched", "--machine", "piuma")
    assert elsewhere.code == 1
    assert "there is no core 128 for node 128; piuma has 0 to 127" in elsewhere.err
    (tmp_path / "c.sched").write_text(un.plan("allreduce", "archer", shape=4, elements=8).schedule.to_text())
    refused = within("emit", "c.sched", "--format", "registers", "-o", "c.registers")
    assert refused.code == 1
    assert "not placed on switches that reduce" in refused.err


@pytest.mark.parametrize(
    ("found", "replacement", "code", "says"),
    [
        ("switches 0-127 0-127", "switches 0-127 0-126", 2, "255 cores and switches are named for 256 nodes"),
        ("switches 0-127 0-127", "switches 0-127 0-128", 2, "more cores and switches are named than the 256 nodes"),
        ("switches 0-127 0-127", "switches 0-127 128-255", 1, "there is no switch 128 for node 128"),
        ("switches 0-127 0-127", "switches 0-127 1-127 0", 1, "a core has a link to its own switch"),
        ("switches 0-127 0-127", "switches 0-126 126 0-127", 1, "core 126 has two nodes, one of them 127"),
        ("channels 0.0x255 0.1x128", "channels 0.0x255 0.1x127", 2, "there are 382 channels for 383 streams"),
        ("channels 0.0x255 0.1x128", "channels 0.0x255 0.1x129", 2, "more channels than the 383 streams"),
        ("channels 0.0x255 0.1x128", "channels 0.0x383", 1, "a request goes to one switch"),
        ("channels 0.0x255 0.1x128", "channels 9.0x255 9.1x128", 1, "stream s0 has identifier 9; piuma has 8"),
        ("channels 0.0x255 0.1x128", "channels 0.0x255 0.7x128", 1, "stream s255 has channel 7"),
        ("channels 0.0x255 0.1x128", "", 2, "the placement has no line 'channels'"),
        ("placement switches 0-127 0-127\n", "", 2, "channels must follow a placement on switches"),
        (
            "placement switches 0-127 0-127",
            "placement nodes 0-127",
            2,
            "128 accelerators and switches are named for 256",
        ),
        ("placement switches 0-127 0-127", "placement nodes 0-255", 2, "channels must follow a placement on switches"),
    ],
)
def test_a_damaged_placement_is_one_sentence(
    found: str, replacement: str, code: int, says: str, tmp_path: Path
) -> None:
    plan = un.plan("allreduce", un.machine("piuma", nodes=1), elements=8, algorithm="in-network")
    text = plan.schedule.to_text()
    assert text.count(found) == 1
    file = written(tmp_path / "made.sched", text.replace(found, replacement))
    ran = call("simulate", str(file))
    assert ran.code == code
    assert says in ran.err
    assert len(ran.err.strip().splitlines()) == 1


def test_a_schedule_on_the_cores_has_no_simulation(tmp_path: Path) -> None:
    options = ("allreduce", "--machine", "piuma", "--nodes", "1", "--elements", "8", "--algorithm", "rabenseifner")
    file = str(tmp_path / "cores.sched")
    assert call("schedule", *options, "-o", file).code == 0
    for ran in (call("simulate", *options), call("simulate", file)):
        assert ran.code == 2
        assert "rabenseifner runs on the cores of piuma, where only plans have times" in ran.err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--nodes", "1", "--ranks", "129"), "cores for 1 to 128"),
        (("--nodes", "4", "--subset", "1,9"), "the subset names node 9"),
        (("--nodes", "4", "--subset", "1,x"), "not a whole number"),
        (("--nodes", "0"), "nodes is 0"),
        (("--nodes", "40000"), "can have 1 to 32768"),
        (("--nodes", "1", "--algorithm", "in-network", "--param", "embeddings=9"), "use up the 8 identifiers"),
        (("--nodes", "1", "--algorithm", "in-network", "--op", "ordered", "--dtype", "i64"), "order of their ports"),
        (("--nodes", "1", "--algorithm", "bruck"), "bruck"),
        (("--nodes", "1", "--model", "paper"), "accepted are alpha-beta"),
    ],
)
def test_wrong_input_is_one_sentence(options: tuple[str, ...], says: str) -> None:
    refused = refusal("plan", "allreduce", "--machine", "piuma", "--elements", "4", *options)
    assert says in refused
    assert len(refused.strip().splitlines()) == 1


def test_nodes_are_for_switches_that_reduce() -> None:
    refused = refusal("plan", "reduce", "--machine", "wse2", "--shape", "4", "--nodes", "4", "--elements", "4")
    assert "kind wafer" in refused


def test_vgg16_has_its_layers_and_overlaps() -> None:
    layers = training.vgg16()
    assert len(layers) == 16
    assert sum(layer.weights for layer in layers) == 138_357_544
    machine = un.machine("piuma-a100", nodes=16)
    by = training.reduction(machine, "in-network")
    apart, over = (training.iteration(machine, 128, by, overlap=overlap) for overlap in (False, True))
    assert apart.exposed == pytest.approx(by.of(138_357_544))
    # The gradients of the first layer come last, and alone cannot be hidden.
    assert over.exposed == pytest.approx(by.of(layers[0].weights))
    ran = call("workload", "vgg16", "--machine", "piuma-a100", "--nodes", "16", "--json")
    assert ran.code == 0
    assert ran.json["seconds"] == pytest.approx(over.seconds)


@pytest.mark.parametrize(
    "option",
    [
        ("--queue-depth", "3"),
        ("--noop-probability", "0.1"),
        ("--noise", "uniform:3"),
        ("--late", ",".join(["0"] * 128)),
        ("--calibrated",),
        ("--trace", "t.json"),
        ("--timeline", "t.png"),
        ("--sim", "fabric"),
        ("--L", "3"),
    ],
)
def test_switches_refuse_options_of_other_machines(option: tuple[str, ...], within: Spawn, tmp_path: Path) -> None:
    ran = within("simulate", "allreduce", "--machine", "piuma", "--nodes", "1", "--elements", "4", *option)
    assert ran.code == 2, ran.out
    assert len(ran.err.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_schedule_in_switches_refuses_options_of_other_machines() -> None:
    schedule = planned().schedule
    for options in ({"queue_depth": 3}, {"noop_probability": 0.1}, {"late": [0.0] * schedule.ranks}, {"model": "logp"}):
        with pytest.raises(un.InputError, match="not for switches that reduce"):
            un.simulate(schedule, **options)


def of_nodes(*nodes: int, elements: int = 4096, embeddings: int = 1) -> un.Schedule:
    machine = un.machine("piuma", nodes=4, subset=list(nodes))
    params = {"embeddings": str(embeddings)}
    return un.plan("allreduce", machine, elements=elements, algorithm="in-network", params=params).schedule


def identifiers(*schedules: un.Schedule) -> list[list[int]]:
    return [list(run.metrics["identifiers"].value) for run in un.simulate_beside(schedules)]


def test_schedules_on_other_nodes_take_as_long_as_alone() -> None:
    schedules = [of_nodes(0, 1), of_nodes(2, 3)]
    together = un.simulate_beside(schedules)
    assert all(run.result_correct for run in together)
    assert [run.nanoseconds for run in together] == [un.simulate(each).nanoseconds for each in schedules]
    assert identifiers(*schedules) == [[0], [0]]


def test_schedules_on_the_same_nodes_share_their_time_and_no_identifier() -> None:
    one, two = of_nodes(0, 1), of_nodes(0, 1, embeddings=2)
    assert identifiers(one, one, two, of_nodes(2, 3)) == [[0], [1], [2, 3], [0]]
    alone = un.simulate(one).nanoseconds
    together = un.simulate_beside([one, one])
    # Two trees share the bandwidth of each memory.
    assert [run.nanoseconds / alone for run in together] == pytest.approx([2, 2], rel=0.05)
    assert all(run.result_correct for run in together)


def test_schedules_that_do_not_run_at_the_same_time_are_refused() -> None:
    with pytest.raises(un.InputError, match="9 schedules at once use up the 8 identifiers of piuma"):
        un.simulate_beside([of_nodes(0, 1)] * 9)
    with pytest.raises(un.InputError, match="schedule 2 is on another machine than the first"):
        un.simulate_beside([planned(2).schedule, planned(4).schedule])
    ranks = un.plan("allreduce", "archer", shape=4, elements=4).schedule
    with pytest.raises(un.InputError, match="archer is a machine of kind endpoint"):
        un.simulate_beside([ranks, ranks])
    with pytest.raises(un.InputError, match="at least one"):
        un.simulate_beside([])
    with pytest.raises(un.InputError, match="is not a schedule"):
        un.simulate_beside([planned()])  # type: ignore[list-item]


def test_the_command_runs_files_beside_each_other(within: Spawn) -> None:
    for name, nodes in (("a", "0,1"), ("b", "2,3")):
        sized = ("--machine", "piuma", "--nodes", "4", "--subset", nodes, "--elements", "64", "-o", f"{name}.sched")
        assert within("schedule", "allreduce", *sized).code == 0
    ran = within("simulate", "a.sched", "--beside", "b.sched", "--beside", "a.sched", "--json")
    assert ran.code == 0, ran.err
    rows = ran.json["beside"]
    assert [(row["schedule"], row["identifiers"]) for row in rows] == [
        ("a.sched", [0]),
        ("b.sched", [0]),
        ("a.sched", [1]),
    ]
    assert ran.json["nanoseconds"] == rows[0]["nanoseconds"] > rows[0]["alone_nanoseconds"]
    assert rows[1]["nanoseconds"] == rows[1]["alone_nanoseconds"]
    shown = within("simulate", "a.sched", "--beside", "b.sched")
    assert "at the same time" in shown.out
