"""Laws that hold on every kind of machine."""

from pathlib import Path

import numpy as np
import pytest
import unisono as un

from .conftest import SOAK, call, json_of, other_kinds, refusal

#: Parts of each kind of machine, with a collective and, if one is named, an algorithm.
CASES = [
    ("wse2", (6, 5), "allreduce", None),
    ("wse2", (9,), "reduce", "two-phase"),
    ("archer", (12,), "allreduce", "rabenseifner"),
    ("hx2mesh-small", (4, 6), "allreduce", "bucket"),
    ("hx2mesh-small", (24,), "alltoall", None),
    ("torus2d-small", (4, 4), "allreduce", None),
    ("fattree-small", (16,), "allgather", None),
    ("dgx-h100", (8,), "allreduce", None),
    ("hx2mesh-small-reducing", (4, 6), "reduce", "in-network"),
    ("piuma", (128,), "allreduce", None),
    ("piuma", (20,), "reduce", "in-network"),
]
CASES += [(name, (12,), "allreduce", None) for name in other_kinds(*(case[0] for case in CASES)).values()]
ON_EVERY_KIND = pytest.mark.parametrize(("name", "shape", "collective", "algorithm"), CASES)


@ON_EVERY_KIND
def test_a_saved_schedule_simulates_as_its_plan(
    name: str, shape: tuple[int, ...], collective: str, algorithm: str | None, tmp_path: Path
) -> None:
    machine = un.machine(name, shape=shape)
    schedule = un.plan(collective, machine, elements=600, algorithm=algorithm).schedule
    expected = un.simulate(schedule)
    for file in ("made.sched", "made.json"):
        un.save(schedule, tmp_path / file)
        loaded = un.load(tmp_path / file)
        assert loaded == schedule
        run = un.simulate(loaded)
        assert run.seconds == expected.seconds
        assert np.array_equal(run.finish, expected.finish)
    for where in (machine, name):
        assert un.simulate(schedule, where).seconds == expected.seconds
    assert schedule.machine is not None
    assert schedule.machine.shape == machine.shape


@ON_EVERY_KIND
def test_commands_on_a_request_and_on_its_file_agree(
    name: str, shape: tuple[int, ...], collective: str, algorithm: str | None, tmp_path: Path
) -> None:
    request = [collective, "--machine", name, "--shape", "x".join(map(str, shape)), "--elements", "600"]
    request += ["--algorithm", algorithm] if algorithm else []
    file = str(tmp_path / "made.sched")
    assert call("schedule", *request, "-o", file).code == 0
    for command in ("verify", "simulate"):
        by_request, by_file = json_of(command, *request), json_of(command, file)
        for answer in (by_request, by_file):
            for key in ("wall_seconds", "seed"):
                answer.pop(key, None)
        assert by_request == by_file


@ON_EVERY_KIND
def test_plans_list_algorithms_of_their_kind(
    name: str, shape: tuple[int, ...], collective: str, algorithm: str | None
) -> None:
    machine = un.machine(name, shape=shape)
    kinds = {listed["name"]: listed["machines"] for listed in un.algorithms(collective)}
    for candidate in un.plan(collective, machine, elements=600).candidates:
        assert machine.kind in kinds[candidate["algorithm"]]


MODELS = (None, "paper", "links")


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("shape", [(9,), (4, 4), (5, 7)])
@pytest.mark.parametrize("collective", ["allreduce", "broadcast", "reduce"])
def test_a_schedule_on_a_wafer_has_the_time_of_its_plan(
    collective: str, shape: tuple[int, ...], model: str | None
) -> None:
    for elements in (1, 600):
        candidates = un.plan(collective, "wse2", shape=shape, elements=elements).candidates
        # A model tests a part of the candidates; in `make soak` all.
        for candidate in candidates if SOAK else candidates[MODELS.index(model) :: len(MODELS)]:
            name, params = candidate["algorithm"], candidate["params"]
            plan = un.plan(
                collective, "wse2", shape=shape, elements=elements, algorithm=name, params=params, model=model
            )
            found, expected = (
                {**time, "phases": [{**phase, "note": None} for phase in time["phases"] or []]}
                for time in (plan.schedule.predict(model), plan.predicted)
            )
            assert found == expected, (name, params, elements)


def test_the_time_of_a_schedule_does_not_rest_on_its_origin(tmp_path: Path) -> None:
    chain = un.plan("reduce", "wse2", shape=4, elements=1, algorithm="chain").schedule
    star = un.plan("reduce", "wse2", shape=4, elements=1, algorithm="star").schedule
    assert chain.predict() != star.predict()
    un.save(chain, tmp_path / "made.sched")
    text = (tmp_path / "made.sched").read_text()
    (tmp_path / "made.sched").write_text(text.replace("origin chain", "origin star"))
    renamed = un.load(tmp_path / "made.sched")
    assert renamed.origin == "star"
    assert renamed.predict() == chain.predict()


def test_a_sweep_of_a_subset_is_its_plans() -> None:
    request = ["allreduce", "--machine", "piuma", "--nodes", "4", "--subset", "1,3"]
    for point in json_of("sweep", *request, "--elements", "1,600")["points"]:
        plan = json_of("plan", *request, "--elements", str(point["elements"]))
        best = min(plan["candidates"], key=lambda candidate: candidate["seconds"])
        assert (point["shape"], point["best"], point["seconds"]) == (plan["shape"], best["algorithm"], best["seconds"])
    without = call("sweep", "allreduce", "--machine", "piuma", "--elements", "1")
    assert (without.code, "--shapes" in without.err and "--subset" in without.err) == (2, True)


def test_a_placement_of_another_size_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "made.sched"
    un.save(un.plan("allreduce", "hx2mesh-small", shape=(2, 3), elements=8).schedule, file)
    text = file.read_text()
    assert "placement nodes 0-2 32-34\n" in text
    for nodes, message in (
        ("0-2 32-35", "more nodes are named than the 6 ranks"),
        ("0-2", "3 nodes are named for 6 ranks"),
        ("2-0 3-8", "run backwards"),
        ("0-2 4294967294-4294967296", "4294967296"),
    ):
        file.write_text(text.replace("nodes 0-2 32-34", f"nodes {nodes}"))
        assert message in refusal("simulate", str(file))
    file.write_text(text.replace("nodes 0-2 32-34", "nodes 0-2 4000-4002"))
    ran = call("verify", str(file), "--json")
    assert ran.code == 1
    assert [d["code"] for d in ran.json["diagnostics"]] == ["placement-machine"]


def test_a_schedule_on_scattered_accelerators_stays_there(tmp_path: Path) -> None:
    schedule = un.plan("allreduce", "hx2mesh-small", shape=4, elements=64).schedule
    places = [0, 100, 200, 300]
    expected = un.simulate(schedule, places=places).seconds
    file = tmp_path / "made.sched"
    far = schedule.on(un.machine("hx2mesh-small"), places)
    un.save(far, file)
    assert un.simulate(un.load(file)).seconds == expected
    assert far.machine is not None
    assert un.simulate(far, far.machine).seconds == expected
    for options in ([], ["--machine", "hx2mesh-small"]):
        assert json_of("simulate", str(file), *options)["seconds"] == expected
    with pytest.raises(un.InputError, match="the place of two ranks is 7"):
        un.simulate(schedule, places=[0, 7, 7, 8])


@pytest.mark.parametrize("collective", ["allreduce", "reduce", "broadcast", "scan", "barrier"])
def test_sweeps_run_on_switches_that_reduce(collective: str) -> None:
    (point,) = un.sweep(collective, un.machine("piuma", nodes=1), shapes=[128], elements=[16])
    assert point["seconds"] > 0
    assert point["cycles"] is None


def test_a_run_of_nodes_past_all_numbers_is_refused() -> None:
    text = un.plan("allreduce", "hx2mesh-small", shape=2, elements=8).schedule.to_json()
    assert '"nodes":[[0,2]]' in text
    with pytest.raises(un.InputError, match="more nodes are named than the 2 ranks"):
        un.Schedule.parse_json(text.replace('"nodes":[[0,2]]', f'"nodes":[[5,{2**64 - 1}]]'))


#: By simulator, the options of a machine, and the metrics and files of its runs.
SIMULATED = {
    "fabric": (["wse2", "--shape", "6x5"], {"hops", "stalled_cycles"}, {"trace"}),
    "endpoint": (["archer", "--ranks", "12"], {"messages", "unreceived_messages"}, {"trace", "timeline"}),
    "network": (
        ["hx2mesh-small", "--shape", "4x6"],
        {"messages", "unreceived_messages", "planes", "packets", "hops", "link_packets"},
        {"trace", "timeline"},
    ),
    "collective-engine": (
        ["piuma", "--nodes", "1"],
        {"latency", "embeddings", "packets", "computed_events", "link_loads", "elements_flowed", "digest"},
        set(),
    ),
}


def test_runs_answer_alike_on_every_kind_of_machine() -> None:
    answers = {}
    for simulator, (machine, metrics, _) in SIMULATED.items():
        answer = answers[simulator] = json_of("simulate", "allreduce", "--machine", *machine, "--elements", "60")
        assert answer["sim"] == simulator
        assert set(answer["metrics"]) == metrics
        assert all(set(metric) == {"value", "unit"} for metric in answer["metrics"].values())
    assert len({frozenset(answer) for answer in answers.values()}) == 1
    filled = {name: {key for key, value in answer.items() if value is not None} for name, answer in answers.items()}
    assert {name for name in filled if "cycles" in filled[name]} == {"fabric"}
    assert {name for name in filled if "stalls" in filled[name]} == {"fabric"}
    # Simulators without data check no result, so their reports have no `result_correct`.
    assert {name for name in filled if "result_correct" in filled[name]} == {"fabric", "collective-engine"}
    assert all({"seconds", "nanoseconds", "finish", "events", "wall_seconds"} <= keys for keys in filled.values())


@pytest.mark.parametrize("simulator", SIMULATED)
def test_a_run_without_a_trace_or_a_timeline_says_so(simulator: str, tmp_path: Path) -> None:
    (name, option, size), _, written = SIMULATED[simulator]
    machine = un.machine(name, **({"nodes": int(size)} if option == "--nodes" else {"shape": size}))
    run = un.simulate(un.plan("allreduce", machine, elements=6).schedule)
    assert run.simulator == simulator == machine.simulator
    assert run.metrics == run.metrics
    for kind, write, path in (
        ("trace", run.trace, tmp_path / "run.json"),
        ("timeline", run.timeline, tmp_path / "run.svg"),
    ):
        if kind in written:
            write(path)
            assert path.stat().st_size > 0
        else:
            with pytest.raises(un.UnsupportedError, match=f"simulator {simulator}"):
                write(path)
            assert not path.exists()
