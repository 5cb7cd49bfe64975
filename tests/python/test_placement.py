"""The part of a machine on which a schedule is placed, and schedules that do not fit on a machine."""

from pathlib import Path

import pytest
import unisono as un

from .conftest import call, json_of, refusal, written


@pytest.fixture(scope="module")
def switches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Writes a file with a schedule on 128 ranks and 128 switches."""
    file = tmp_path_factory.mktemp("placement") / "switches.sched"
    machine = un.machine("piuma", nodes=1)
    un.save(un.plan("allreduce", machine, elements=64, algorithm="in-network").schedule, file)
    return file


@pytest.mark.parametrize("shape", [None, (128,)])
@pytest.mark.parametrize("machine", ["archer", "hx2mesh-small", "torus2d-small"])
def test_switches_are_not_placed_on_ranks(
    machine: str, shape: tuple[int, ...] | None, switches: Path, tmp_path: Path
) -> None:
    with pytest.raises(un.InputError, match="256 nodes for 128 ranks"):
        un.load(switches).on(un.machine(machine, shape))
    where = ["--machine", machine, *(["--ranks", "128"] if shape else [])]
    out = str(tmp_path / "made.goal")
    for command in (["verify"], ["simulate"], ["emit", "--format", "goal", "-o", out]):
        ran = call(command[0], str(switches), *where, *command[1:])
        assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
        assert "256 nodes for 128 ranks" in ran.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("machine", ["archer", "hx2mesh-small", "piuma"])
def test_a_file_with_switches_and_no_placement_does_not_run(machine: str, switches: Path, tmp_path: Path) -> None:
    lines = switches.read_text().splitlines(keepends=True)
    at = lines.index("machine\n")
    described = un.machine(machine).to_toml().splitlines(keepends=True)
    file = written(tmp_path / "made.sched", "".join([*lines[:at], "machine\n", *(f"| {line}" for line in described)]))
    schedule = un.load(file)
    with pytest.raises(un.Error):
        schedule.predict()
    assert [d["code"] for d in schedule.verify().diagnostics] == ["placement-machine"]
    assert call("verify", str(file)).code == 1
    ran = call("simulate", str(file))
    assert ran.code in (1, 2)
    assert ran.err.count("\n") == 1
    assert "switches" in ran.err


def test_messages_have_no_switches(switches: Path, tmp_path: Path) -> None:
    ran = call("emit", str(switches), "--format", "goal", "-o", str(tmp_path / "made.goal"))
    assert ran.code == 1
    assert "256 nodes for 128 ranks" in ran.err


def test_ranks_are_not_placed_in_switches(tmp_path: Path) -> None:
    file = tmp_path / "made.sched"
    un.save(un.plan("allreduce", "archer", shape=8, elements=8).schedule, file)
    for command in ("verify", "simulate"):
        refused = refusal(command, str(file), "--machine", "piuma")
        assert "runs on the cores of piuma, where only plans have times" in refused


#: Parts of machines, as arguments of `un.machine`.
PARTS = [
    ("piuma", {"nodes": 3, "subset": [0, 2]}),
    ("piuma", {"nodes": 3, "subset": [1]}),
    ("piuma", {"nodes": 3, "subset": [0, 1]}),
    ("piuma", {"nodes": 2, "shape": 20}),
    ("hx2mesh-small", {"shape": (4, 6)}),
    ("hx2mesh-small", {"shape": 24}),
    ("wse2", {"shape": (3, 4)}),
    ("archer", {"shape": 12}),
]


@pytest.mark.parametrize(("name", "part"), PARTS)
def test_a_schedule_names_the_part_that_it_is_on(name: str, part: dict[str, object], tmp_path: Path) -> None:
    machine = un.machine(name, **part)  # type: ignore[arg-type]
    for collective in ("broadcast", "allreduce"):
        algorithm = "in-network" if name == "piuma" else None
        schedule = un.plan(collective, machine, elements=1, algorithm=algorithm).schedule
        un.save(schedule, tmp_path / "made.sched")
        for one in (schedule, un.load(tmp_path / "made.sched")):
            assert one.machine is not None
            assert one.machine.shape == machine.shape
            bounds = un.bounds(collective, one.machine, elements=1)
            assert bounds == un.bounds(collective, machine, elements=1)
            assert one.on(machine) == one.on(one.machine) == one
            # Bounds that assume a model, such as the bounds of star on a wafer, are left out.
            held = [bound for bound in bounds if "model" not in (bound["assumes"] or "")]
            if name == "piuma":
                assert max(bound["seconds"] for bound in held) <= un.simulate(one).seconds


def test_a_schedule_runs_on_the_subset_that_is_asked_for(tmp_path: Path) -> None:
    first, second = (un.machine("piuma", nodes=2, subset=[node]) for node in (0, 1))
    schedule = un.plan("broadcast", second, elements=1, algorithm="in-network").schedule
    un.save(schedule, tmp_path / "made.sched")
    assert un.simulate(schedule, second).seconds == un.simulate(schedule).seconds
    for other in (first, un.machine("piuma", nodes=2, shape=128)):
        with pytest.raises(un.InputError, match="placed on the cores of nodes 1 of piuma, not on"):
            un.simulate(schedule, other)
    file = [str(tmp_path / "made.sched"), "--machine", "piuma", "--nodes", "2"]
    assert call("simulate", *file, "--subset", "1").code == 0
    assert "not on the cores of nodes 0" in call("simulate", *file, "--subset", "0").err
    elsewhere = call("simulate", file[0], "--machine", "piuma", "--nodes", "1")
    assert (elsewhere.code, "--nodes" in elsewhere.err) == (1, True)


def test_scattered_accelerators_are_a_part(tmp_path: Path) -> None:
    places = [0, 100, 200, 300]
    near = un.plan("allreduce", "hx2mesh-small", shape=4, elements=64).schedule
    far = near.on(un.machine("hx2mesh-small"), places)
    assert far.machine is not None
    assert far.machine.shape == (4,)
    assert far.on(far.machine) == far
    assert un.plan("allreduce", far.machine, elements=64).schedule.machine.shape == (4,)  # type: ignore[union-attr]
    un.save(far, tmp_path / "made.sched")
    report = json_of("simulate", str(tmp_path / "made.sched"))
    assert (report["shape"], report["ranks"]) == ([4], 4)
    assert "on 4 ranks of hx2mesh-small" in call("simulate", str(tmp_path / "made.sched")).out


def test_a_grid_goes_where_its_machine_has_none(tmp_path: Path) -> None:
    file = str(tmp_path / "made.sched")
    un.save(un.plan("allreduce", "wse2", shape=(4, 4), elements=16).schedule, file)
    assert json_of("simulate", file, "--machine", "archer")["ranks"] == 16
    assert json_of("simulate", file, "--machine", "hx2mesh-small")["shape"] == [4, 4]
    assert un.load(file).on(un.machine("hx2mesh-small")).machine.shape == (4, 4)  # type: ignore[union-attr]


@pytest.mark.parametrize("part", [{"shape": (4, 4)}, {"shape": 16}])
def test_work_on_whole_networks_refuses_a_part(part: dict[str, object], tmp_path: Path) -> None:
    machine = un.machine("hx2mesh-small", **part)  # type: ignore[arg-type]
    goal = written(tmp_path / "made.goal", "num_ranks 1\nrank 0 {\nl1: calc 100\n}\n")
    for work in (
        lambda: un.traffic("alltoall", machine, bytes=64, level="flow"),
        lambda: un.traffic("permutation", machine, bytes=64, level="flow"),
        lambda: un.traffic("permutation", machine, bytes=64, level="packet"),
        lambda: un.workload("dlrm", machine),
        lambda: un.simulate_goal(goal, machine=machine),
        lambda: un.allocate(machine, samples=1),
    ):
        with pytest.raises(un.InputError, match="the whole of hx2mesh-small, and shape"):
            work()
    assert un.traffic("allreduce", machine, bytes=64, level="flow").accelerators == 16
    whole = un.machine("hx2mesh-small", shape=(32, 32))
    assert un.traffic("permutation", whole, bytes=64, level="flow").accelerators == 1024


def test_sections_of_a_file_are_there_once() -> None:
    text = un.plan("reduce", "wse2", shape=4, elements=8, algorithm="chain").schedule.to_text()
    machine = "".join(f"| {line}\n" for line in un.machine("archer").to_toml().splitlines())
    for more, message in (
        ("placement 1x4\n", "a second placement; the first is in line"),
        (f"machine\n{machine}", "a second machine; the first is in line"),
        ("pace 2\npace 3\n", "a second pace; the first is in line"),
        ("chunk 2\nchunk 2\n", "a second chunk; the first is in line"),
        ("route s0: xy\nroute s0: yx\n", "a second route of s0; the first is in line"),
    ):
        with pytest.raises(un.InputError, match=message):
            un.Schedule.parse(text + more)
    un.Schedule.parse(text + "pace 2\nchunk 2\nroute s0: xy\nroute s1: yx\n")


def test_a_placement_in_json_is_of_one_kind() -> None:
    text = un.plan("reduce", "wse2", shape=4, elements=8, algorithm="chain").schedule.to_json()
    assert text.count('"placement":{') == 1
    assert text.count('"pace":1') == 1
    for found, wrong in (
        ('"placement":{', '"placement":{"nodes":[[0,4]],'),
        ('"placement":{', '"placement":{"frobnicate":1,'),
        ('"pace":1', '"pace":0'),
        ('"chunk":1', '"chunk":0'),
    ):
        assert text.count(found) == 1
        with pytest.raises(un.InputError):
            un.Schedule.parse_json(text.replace(found, wrong))
    nodes = un.plan("allreduce", "hx2mesh-small", shape=4, elements=8).schedule.to_json()
    assert nodes.count('"nodes":[[0,4]]') == 1
    with pytest.raises(un.InputError):
        un.Schedule.parse_json(nodes.replace('"nodes":[[0,4]]', '"nodes":[[0,4]],"switches":[[0,4]],"channels":[]'))


def test_operators_of_switches_are_those_of_collectives(tmp_path: Path) -> None:
    text = un.machine("piuma").to_toml()
    assert text.count('"sum"') == 1
    file = tmp_path / "made.toml"
    for name in un.operators():
        file.write_text(text.replace('"sum"', f'"{name}"'))
        un.machine(file)
    file.write_text(text.replace('"sum"', '"sum", "summ"'))
    assert "operators is 'summ'; accepted is sum, prod" in refusal("machines", str(file))


def test_rare_wake_ups_are_beyond_the_limit() -> None:
    request = ["allreduce", "--machine", "wse2", "--shape", "4", "--elements", "4", "--noop-probability"]
    assert call("simulate", *request, "0.9").code == 0
    ran = call("simulate", *request, "0.999999999")
    assert ran.code != 0
    assert "steps" in ran.err


def test_a_run_states_how_many_elements_were_checked() -> None:
    machine = un.machine("piuma", nodes=64)
    assert machine.shape == (8192,)
    elements = 2**24 // 8192 + 1
    plan = un.plan("reduce", machine, elements=elements, dtype="i32", algorithm="in-network")
    run = un.simulate(plan.schedule)
    assert (run.result_correct, run.elements_checked) == (True, elements - 1)
    request = [
        "reduce",
        "--machine",
        "piuma",
        "--nodes",
        "64",
        "--elements",
        str(elements),
        "--algorithm",
        "in-network",
    ]
    said = f"correct in {elements - 1} of {elements} elements, the first of each embedding; no others flowed"
    assert said in call("simulate", *request).out
    for name, part in (("piuma", ["--nodes", "1"]), ("wse2", ["--shape", "4"]), ("archer", ["--ranks", "4"])):
        report = json_of("simulate", "allreduce", "--machine", name, *part, "--elements", "0")
        assert (report["result_correct"], report["elements_checked"]) == (None, None)
        report = json_of("simulate", "allreduce", "--machine", name, *part, "--elements", "9")
        assert report["elements_checked"] == (None if name == "archer" else 9)
