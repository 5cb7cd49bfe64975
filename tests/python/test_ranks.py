"""Machines of ranks: plans, bounds, simulations, GOAL programs, on the command line and in Python."""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import unisono as un
from unisono.planning.multiplying import schedules

from .conftest import SOAK, call, json_of, refusal, written
from .test_bounds import cluster

ROOT = Path(__file__).parents[2]
GOAL = ROOT / "tests" / "goal"
#: For each collective, algorithms of its steps among nodes and inside nodes.
TREES, RINGS = ("binomial", "linear", "binomial:radix=4"), ("ring", "recursive-doubling", "bruck")
STEPS: dict[str, dict[str, tuple[str, ...]]] = {
    "allreduce": {
        "among": ("recursive-doubling", "recursive-multiplying", "ring"),
        "scatter": ("recursive-halving", "linear", "ring"),
        "gather": RINGS,
    },
    "broadcast": {"among": ("binomial", "circulant", "binomial:radix=4"), "scatter": TREES, "gather": RINGS},
    "reduce": {"among": ("binomial", "circulant"), "scatter": ("linear", "ring"), "gather": TREES},
}
LEVELS = """
name = "two-level"
kind = "endpoint"
model = "pipelining-postal"
alpha_p_ns = 1340
alpha_r_ns = 340
beta_ns_per_byte = 0.1
gamma_ns_per_byte = 0.02
[[levels]]
name = "node"
size = 4
alpha_p_ns = 300
alpha_r_ns = 100
"""
RATIO_4 = """
name = "ratio4"
kind = "endpoint"
model = "pipelining-postal"
alpha_p_ns = 4000
alpha_r_ns = 1000
beta_ns_per_byte = 0
gamma_ns_per_byte = 0
"""


@pytest.fixture
def machine(tmp_path: Path) -> Any:
    def write(text: str) -> str:
        path = written(tmp_path / "machine.toml", text)
        return str(path)

    return write


def test_recursive_multiplying_beats_doubling_on_archer() -> None:
    report = json_of("plan", "allreduce", "--machine", "archer", "--ranks", "96", "--bytes", "8")
    assert report["algorithm"] == "recursive-multiplying"
    assert report["params"] == {"schedule": "a6,a4,a4"}
    assert report["predicted"]["seconds"] == pytest.approx(7.76e-6)
    assert report["model"] == "pipelining-postal"
    assert set(report["predicted"]["terms"]) >= {"energy", "distance", "depth", "contention", "links"}
    assert report["lower_bound"]["seconds"] <= report["predicted"]["seconds"]
    names = [candidate["algorithm"] for candidate in report["candidates"]]
    assert names.index("recursive-multiplying") < names.index("recursive-doubling")
    times = [candidate["seconds"] for candidate in report["candidates"]]
    assert times == sorted(times)


@pytest.mark.parametrize(
    ("ranks", "units"), [(7, 10), (8, 11), (13, 15), (16, 14), (64, 21), (97, 24), (127, 26), (128, 25), (256, 28)]
)
def test_optimal_costs_at_ratio_4(machine: Any, ranks: int, units: int) -> None:
    plan = un.plan("allreduce", un.machine(machine(RATIO_4), ranks), elements=1, algorithm="recursive-multiplying")
    # Stage costs add up to `units`; with a merge or split, stages may overlap and take less time.
    assert plan.predicted["seconds"] * 1e6 <= units + 1e-9
    if ranks & (ranks - 1) == 0:
        assert plan.predicted["seconds"] * 1e6 == pytest.approx(units)


@pytest.mark.parametrize("ranks", [6, 11, 14, 27, 44, 55, 61])
def test_default_stages_are_the_best_that_a_plan_lists(machine: Any, ranks: int) -> None:
    """Times of schedules decide, not sums of stage costs, which are upper bounds if stages overlap."""
    where = un.machine(machine(RATIO_4), ranks)
    name = "recursive-multiplying"
    listed = un.plan("allreduce", where, elements=1).candidates
    least = min(one["seconds"] for one in listed if one["algorithm"] == name)
    assert un.plan("allreduce", where, elements=1, algorithm=name).predicted["seconds"] == least


@pytest.mark.parametrize("gap_ns", [1000, 4000])
@pytest.mark.parametrize("ranks", [*range(5, 21), *([] if not SOAK else range(21, 41))])
def test_the_default_is_the_best_of_all_schedules(machine: Any, gap_ns: int, ranks: int) -> None:
    where = un.machine(machine(RATIO_4.replace("alpha_r_ns = 1000", f"alpha_r_ns = {gap_ns}")), ranks)

    def seconds(**params: str) -> float:
        plan = un.plan("allreduce", where, elements=1, algorithm="recursive-multiplying", params=params or None)
        return float(plan.predicted["seconds"])

    assert seconds() <= min(seconds(schedule=schedule) for schedule in schedules(ranks)) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("schedule", "ranks", "finish"),
    [
        ("a2,a2,a2", 8, [1830] * 8),
        ("a8", 8, [1210] * 8),
        ("a7", 7, [1110] * 7),
        ("c6m2,a2,a2,e6m2", 7, [1930, 1430, 2430, 1930, 2430, 1930, 1830]),
        ("m1g2a3,n1g3a2", 7, [1420, 1320, 1320, 1320, 1320, 1320, 1420]),
        ("m3g2a2,n3g2a2", 7, [1320, 1420, 1420, 1220, 1320, 1220, 1320]),
    ],
)
def test_finish_times_of_the_papers_simulator(machine: Any, schedule: str, ranks: int, finish: list[int]) -> None:
    # The vectors of the paper have no elements, so bytes must cost nothing.
    text = (
        (ROOT / "machines" / "paper-sim.toml").read_text().replace("beta_ns_per_byte = 0.4", "beta_ns_per_byte = 0.0")
    )
    where = un.machine(machine(text), ranks)
    plan = un.plan("allreduce", where, elements=1, algorithm="recursive-multiplying", params={"schedule": schedule})
    done = un.simulate(plan.schedule)
    assert done.finish_ns is not None
    assert done.finish_ns.tolist() == finish


def test_goal_files_run_as_in_loggopsim() -> None:
    head, *rows = [line.split("\t") for line in (GOAL / "expected.tsv").read_text().splitlines()]
    assert len(rows) > 20
    for row in rows:
        expected = dict(zip(head, row, strict=True))
        options = [] if "default" in expected["args"] else expected["args"].split()
        options = [f"-{option}" if option.startswith("-") else option for option in options]
        report = json_of("simulate", "--goal", str(GOAL / expected["file"]), *options)
        assert max(report["finish_ns"]) == int(expected["max_finish"]), expected
        assert sum(report["finish_ns"]) == int(expected["sum_finish_all_hosts"]), expected
        assert report["events"] == int(expected["events"]), expected
        assert report["deadlock"] == []


def test_a_program_that_cannot_finish_ends_with_1(tmp_path: Path) -> None:
    path = tmp_path / "stuck.goal"
    path.write_text("num_ranks 2\nrank 0 {\nl1: recv 8b from 1\n}\nrank 1 {\nl1: recv 8b from 0\n}\n")
    ran = call("simulate", "--goal", str(path), "--json")
    assert (ran.code, len(ran.json["deadlock"])) == (1, 2)
    assert "rank 0 task 1 (recv 8b from 1" in ran.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("num_ranks 2\nrank 1 {\n}\n", "line 2"),
        ("num_ranks 1\nrank 0 {\nl1: calc 5\nl1 requires l9\n}\n", "line 4"),
        ("num_ranks 1\nrank 0 {\nl1: send 8b to 7\n}\n", "line 3"),
        ("rank 0 {\n}\n", "num_ranks"),
    ],
)
def test_wrong_goal_is_named_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    path = written(tmp_path / "wrong.goal", text)
    refused = refusal("simulate", "--goal", str(path))
    assert said in refused
    assert refused.count("\n") == 1


def test_schedules_go_to_goal_and_back(tmp_path: Path) -> None:
    where = un.machine("archer", 12)
    schedule = un.plan("allreduce", where, elements=64, algorithm="rabenseifner").schedule
    path = tmp_path / "out.goal"
    un.emit(schedule, "goal", path)
    run = un.simulate_goal(path, zero_byte="sane")
    direct = un.simulate(schedule)
    # GOAL has a calc for each reduction, so the numbers of tasks are equal.
    assert run.events == direct.events


def test_levels_make_hierarchies_worth_while(machine: Any) -> None:
    path = machine(LEVELS)
    report = json_of("plan", "allreduce", "--machine", path, "--ranks", "32", "--bytes", "1MiB")
    seconds: dict[str, float] = {}
    for candidate in report["candidates"]:
        seconds.setdefault(candidate["algorithm"], candidate["seconds"])
    assert seconds["hierarchical"] < seconds["recursive-doubling"]
    for mode in ("leaders", "lanes"):
        arguments = ("verify", "allreduce", "--machine", path, "--ranks", "16", "--elements", "37")
        proof = json_of(*arguments, "--algorithm", "hierarchical", "--param", f"mode={mode}")
        assert proof["complete"]


def test_all_models_predict_within_their_bounds(machine: Any) -> None:
    text = """
name = "all"
kind = "endpoint"
model = "loggops"
alpha_ns = 2000
alpha_p_ns = 1500
alpha_r_ns = 400
beta_ns_per_byte = 0.5
gamma_ns_per_byte = 0.1
L_ns = 2500
o_ns = 1500
g_ns = 1000
G_ns_per_byte = 6
O_ns_per_byte = 1
S_bytes = 65535
f_messages = 4
"""
    where = un.machine(machine(text), 13)
    models = ("hockney", "postal", "pipelining-postal", "logp", "loggp", "logfp", "loggops")
    collectives = [
        *("allgather", "allreduce", "alltoall", "barrier", "broadcast"),
        *("gather", "reduce", "reduce-scatter", "scan", "scatter"),
    ]
    for model in models:
        for collective in collectives:
            for elements in (1, 5000):
                plan = un.plan(collective, where, elements=elements, model=model)
                assert plan.model == model
                assert plan.ratio is not None
                for candidate in plan.candidates:
                    assert (candidate["ratio"] or 0) >= 1 - 1e-9, (model, collective, elements, candidate)
                assert un.simulate(plan.schedule, model=model).seconds == pytest.approx(plan.predicted["seconds"])


@pytest.mark.parametrize(
    ("model", "parameters", "collective", "ranks"),
    [
        # The gap exceeds the time of a message, so interfaces stay busy after it.
        ("loggp", "L_ns = 0\no_ns = 1\ng_ns = 10\nG_ns_per_byte = 7", "allgather", 3),
        # Costs are fractions of a picosecond.
        (
            "pipelining-postal",
            "alpha_p_ns = 0\nalpha_r_ns = 0.0001\nbeta_ns_per_byte = 0.1665525504275246",
            "allgather",
            39,
        ),
        ("hockney", "alpha_ns = 0.0001\nbeta_ns_per_byte = 0.0004", "alltoall", 3),
        ("loggp", "L_ns = 1\no_ns = 0\ng_ns = 4089.58\nG_ns_per_byte = 0.8702892984238467", "gather", 2),
    ],
)
def test_no_plan_is_below_its_bound(machine: Any, model: str, parameters: str, collective: str, ranks: int) -> None:
    path = machine(f'name = "odd"\nkind = "endpoint"\nmodel = "{model}"\n{parameters}\n')
    for elements in (1, 2, 23, 1000):
        for candidate in un.plan(collective, un.machine(path, ranks), elements=elements).candidates:
            assert (candidate["ratio"] or 0) >= 1, (elements, candidate)


def test_plans_of_a_million_ranks() -> None:
    arguments = ("--machine", "archer", "--ranks", "1000000", "--bytes", "8")
    report = json_of("plan", "allreduce", *arguments, "--algorithm", "recursive-multiplying")
    assert report["params"] == {"schedule": "a5,a5,a5,a5,a5,a5,a4,a4,a4"}
    assert report["predicted"]["source"] == "rounds"
    assert report["predicted"]["terms"] is None
    assert report["predicted"]["seconds"] == pytest.approx(23.28e-6)
    refused = refusal("verify", "allreduce", *arguments, "--algorithm", "recursive-multiplying")
    assert "at most 67108864 are made" in refused


@pytest.mark.parametrize("ranks", [5, 16, 23])
def test_hierarchies_where_ranks_are_dealt_to_nodes(machine: Any, ranks: int) -> None:
    cyclic = un.machine(machine(LEVELS.replace("[[levels]]", 'placement = "cyclic"\n[[levels]]')), ranks)
    block = un.machine(machine(LEVELS), ranks)
    for collective in ("allgather", "allreduce", "broadcast", "reduce"):
        for root in (0, ranks - 2):
            times = []
            for where in (cyclic, block):
                plan = un.plan(collective, where, elements=50, algorithm="hierarchical", root=root)
                assert plan.schedule.verify().complete
                times.append(plan.predicted["seconds"])
            # If all nodes are full, both placements differ only in the numbers of ranks.
            if ranks % 4 == 0 and root == 0:
                assert times[0] == times[1]
    names = [candidate["algorithm"] for candidate in un.plan("allreduce", cyclic, elements=50).candidates]
    assert "hierarchical" in names
    with pytest.raises(un.UnsupportedError, match="not consecutive"):
        un.plan("allreduce", cyclic, elements=50, algorithm="hierarchical", op="ordered", dtype="i64")


@pytest.mark.parametrize("seed", range(60 if SOAK else 12))
def test_no_algorithms_on_the_levels_of_a_cluster_are_faster_than_its_plan(seed: int) -> None:
    draw = random.Random(seed)
    machine, _ = cluster(draw)
    elements = draw.choice((40, 3000, 200_000))
    for collective, steps in STEPS.items():
        plan = un.plan(collective, machine, elements=elements)
        assert plan.schedule.verify().complete
        for _ in range(5):
            params = {"mode": "lanes", **{step: draw.choice(names) for step, names in steps.items()}}
            try:
                other = un.plan(collective, machine, elements=elements, algorithm="hierarchical", params=params)
            except un.UnsupportedError:
                # A node of the cluster has fewer ranks, or an algorithm needs a power of two.
                continue
            assert plan.predicted["seconds"] <= 1.02 * other.predicted["seconds"], (collective, params)


def test_messages_that_cost_less_than_nothing_have_no_length(tmp_path: Path) -> None:
    goal = written(tmp_path / "empty.goal", "num_ranks 2\nrank 0 {\nsend 0b to 1\n}\nrank 1 {\nrecv 0b from 0\n}\n")
    un.simulate_goal(goal, G=2000).trace(tmp_path / "empty.json")
    events = json.loads((tmp_path / "empty.json").read_text())["traceEvents"]
    assert [event["dur"] for event in events if event["ph"] == "X"] == [1.5, 0.0]


def test_bounds_by_another_model() -> None:
    arguments = ("--bytes", "8", "--model", "hockney")
    refused = refusal("bound", "allreduce", "--machine", "archer", "--ranks", "4", *arguments)
    assert "alpha_ns is missing" in refused
    assert "machines of ranks" in refusal("bound", "allreduce", "--machine", "wse2", "--shape", "4", *arguments)


def test_noise_and_late_ranks() -> None:
    schedule = un.plan("allreduce", un.machine("archer", 16), elements=2).schedule
    quiet = un.simulate(schedule).seconds
    noisy = un.simulate(schedule, noise=("exponential", 100.0), seed=3)
    assert noisy.seconds > quiet
    assert un.simulate(schedule, noise=("exponential", 100.0), seed=3).seconds == noisy.seconds
    assert un.simulate(schedule, noise=("exponential", 100.0), seed=4).seconds != noisy.seconds
    late = un.simulate(schedule, late=[0.0] * 15 + [50_000.0])
    assert late.seconds == pytest.approx(quiet + 50e-6, rel=0.2)
    # The list of delays is longer than any name of a file.
    many = ",".join(str(100_000.25 + rank) for rank in range(64))
    arguments = ("--machine", "archer", "--ranks", "64", "--elements", "2", "--late", many)
    report = json_of("simulate", "allreduce", *arguments)
    assert report["nanoseconds"] > 100_063
    common = ("simulate", "allreduce", "--machine", "archer", "--ranks", "4", "--elements", "2")
    for wrong, said in [
        (("--noise", "pink:3"), "is no noise"),
        (("--noise", "normal:3"), "is no noise"),
        (("--late", "1,2,x"), "neither a file"),
        (("--late", "1,2,3"), "there are 4"),
        (("--timeline", "x.gif"), "none of .png, .svg and .pdf"),
        (("--L", "3"), "goes with --goal"),
        (("--queue-depth", "3"), "are a wafer's"),
        (("--sim", "fabric"), "of kind endpoint"),
    ]:
        assert said in refusal(*common, *wrong)


def test_pictures_and_traces_are_the_same_every_time(tmp_path: Path) -> None:
    schedule = un.plan("allreduce", un.machine("paper-sim", 7), elements=1).schedule
    for name in ("a.png", "a.svg", "a.json"):
        files = []
        for again in ("one", "two"):
            (tmp_path / again).mkdir(exist_ok=True)
            path = tmp_path / again / name
            done = un.simulate(schedule)
            done.trace(path) if name.endswith("json") else done.timeline(path)
            files.append(path.read_bytes())
        assert files[0] == files[1]
    events = json.loads((tmp_path / "one" / "a.json").read_text())["traceEvents"]
    arrows = [event for event in events if event["ph"] in "sf"]
    assert len(arrows) == 2 * done.metrics["messages"].value
    many = un.simulate(un.plan("allreduce", un.machine("archer", 65), elements=1).schedule)
    with pytest.raises(un.InputError, match="has room for 64"):
        many.timeline(tmp_path / "many.png")


def test_a_message_has_the_prices_of_its_protocol(machine: Any) -> None:
    text = 'name = "two"\nkind = "endpoint"\nmodel = "postal"\nalpha_ns = 1000\nbeta_ns_per_byte = 1\n'
    level = '[[levels]]\nname = "node"\nsize = 2\nalpha_ns = 7\n'
    protocols = (
        "[[protocols]]\nfrom_bytes = 64\nalpha_ns = 3000\n[[protocols]]\nfrom_bytes = 4096\nbeta_ns_per_byte = 2\n"
    )
    flat, with_node = (un.machine(machine(text + inside + protocols), 2) for inside in ("", level))
    for count in (4, 60, 64, 4092, 4096, 1 << 20):
        alpha = 3000 if 64 <= count < 4096 else 1000
        found = [
            un.plan("broadcast", where, bytes=count, algorithm="binomial", params={}).predicted["seconds"]
            for where in (flat, with_node)
        ]
        assert found == pytest.approx([(alpha + count * (1 + (count >= 4096))) * 1e-9, (7 + count) * 1e-9]), count


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("alpha_r_ns = 1000", ""), "alpha_r_ns is missing"),
        (("alpha_r_ns = 1000", "alpha_r_ns = -3"), "line 6: alpha_r_ns is -3"),
        (("alpha_r_ns = 1000", "alpha_q_ns = 3"), "line 6: unknown field `alpha_q_ns`"),
        (('"pipelining-postal"', '"pigeon"'), "pigeon"),
        (
            ("alpha_r_ns = 1000", "alpha_r_ns = 1e14"),
            "line 6: alpha_r_ns is 100000000000000; accepted is a number from 0",
        ),
        (("alpha_r_ns = 1000", 'alpha_r_ns = "x"'), 'line 6: alpha_r_ns is "x"'),
        (("alpha_r_ns = 1000", "alpha_r_ns = 1\nS_bytes = 1.5"), "line 7: S_bytes is 1.5; accepted is a whole number"),
        (
            ("\ngamma_ns_per_byte = 0", '\n[[levels]]\nname = "n"\nsize = 2\nalpha_r_ns = -1'),
            "line 11: alpha_r_ns is -1",
        ),
        (
            ("\ngamma_ns_per_byte = 0", '\n[[levels]]\nname = "n"\nsize = 2\nS_bytes = 1'),
            "line 11: unknown field `S_bytes`",
        ),
        (
            ("\ngamma_ns_per_byte = 0", "\n[[protocols]]\nfrom_bytes = 9\n[[protocols]]\nfrom_bytes = 9"),
            "line 11: from_bytes is 9; accepted is at least 2, and more than that of the protocol before",
        ),
        (
            ("\ngamma_ns_per_byte = 0", "\n[[protocols]]\nfrom_bytes = 9\nS_bytes = 1"),
            "line 10: unknown field `S_bytes`",
        ),
    ],
)
def test_wrong_machines_are_named(machine: Any, change: tuple[str, str], said: str) -> None:
    refused = refusal(
        "plan", "allreduce", "--machine", machine(RATIO_4.replace(*change)), "--ranks", "4", "--bytes", "8"
    )
    assert said in refused


@pytest.mark.parametrize(
    ("schedule", "said"),
    [("a3,a3", "3"), ("m9g2a3,n9g3a2", "9"), ("c6m4,a2,e6m4", "6"), ("a0", "a0"), ("", "")],
)
def test_schedules_that_do_not_fit_are_refused(schedule: str, said: str) -> None:
    arguments = ("plan", "allreduce", "--machine", "archer", "--ranks", "7", "--bytes", "8")
    assert said in refusal(*arguments, "--algorithm", "recursive-multiplying", "--param", f"schedule={schedule}")


def test_ranks_are_needed_and_wafers_are_not_ranks() -> None:
    refused = refusal("plan", "allreduce", "--machine", "archer", "--bytes", "8")
    assert "give the number of ranks of archer" in refused
    refusal("plan", "allreduce", "--machine", "archer", "--shape", "4x4", "--bytes", "8")
    refused = refusal(
        "plan", "reduce", "--machine", "archer", "--ranks", "4", "--bytes", "8", "--algorithm", "auto-gen"
    )
    assert "wafer" in refused


def test_long_vectors_on_free_bytes_are_noted() -> None:
    report = json_of("plan", "allreduce", "--machine", "archer", "--ranks", "4", "--bytes", "1MiB")
    assert any("costs nothing" in note for note in report["notes"])


def test_sweeps_in_seconds(tmp_path: Path) -> None:
    table, picture = tmp_path / "s.csv", tmp_path / "s.png"
    arguments = ("sweep", "allreduce", "--machine", "paper-sim", "--shapes", "4,7", "--elements", "1,1000")
    report = json_of(*arguments, "-o", str(table), "--plot", str(picture))
    assert len(report["points"]) == 4
    assert all(point["seconds"] <= point["baseline_seconds"] for point in report["points"])
    assert "seconds_recursive-doubling" in table.read_text().splitlines()[0]
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_finish_is_an_array_of_seconds() -> None:
    done = un.simulate(un.plan("broadcast", un.machine("archer", 5), elements=3).schedule)
    assert isinstance(done.finish, np.ndarray)
    assert done.finish.max() == pytest.approx(done.seconds)
    assert done.cycles is None


def test_a_root_that_nothing_asks_for_is_said_to_be_unused() -> None:
    for place in (("archer", "--ranks", "4"), ("wse2", "--shape", "4x4")):
        ran = call("plan", "allreduce", "--machine", *place, "--bytes", "8", "--root", "1")
        assert (ran.code, ran.err) == (0, "note: a collective of kind allreduce has no root; --root is not used\n")
        assert call("plan", "reduce", "--machine", *place, "--bytes", "8", "--root", "1").err == ""


def test_a_barrier_needs_no_size() -> None:
    report = json_of("simulate", "barrier", "--machine", "archer", "--ranks", "8")
    assert report["result_correct"] is None


def test_more_ranks_than_there_are_numbers() -> None:
    arguments = ("--machine", "archer", "--ranks", "4294967296", "--bytes", "8")
    refused = refusal("plan", "allreduce", *arguments)
    assert refused == "error: --ranks is 4294967296; accepted is a whole number from 1 to 4294967295\n"


def test_goal_prices_are_fractions_of_a_nanosecond(tmp_path: Path) -> None:
    path = written(tmp_path / "one.goal", "num_ranks 2\nrank 0 {\nsend 1000b to 1\n}\nrank 1 {\nrecv 1000b from 0\n}\n")
    # o + L + o + (n - 1) G.
    assert un.simulate_goal(path, G=0.08).seconds == pytest.approx((1500 + 2500 + 1500 + 999 * 0.08) / 1e9, rel=1e-12)
    assert un.simulate_goal(path, G=6.0, L=2500.0).finish.tolist() == un.simulate_goal(path).finish.tolist()
    report = json_of("simulate", "--goal", str(path), "--G", "0.08", "--L", "812.5")
    assert report["nanoseconds"] == pytest.approx(1500 + 812.5 + 1500 + 999 * 0.08, rel=1e-12)
    assert report["parameters"] == {"G": 0.08, "L": 812.5}
    for option, value, said in [
        ("--G", "0.0001", "is not a time in ns"),
        ("--G", "1e3", "is not a time in ns"),
        ("--S", "0.5", "'0.5' is not a valid integer"),
        ("--L", "-1", "L is -1; accepted are whole numbers from 0 to 2^63 - 1"),
    ]:
        assert said in refusal("simulate", "--goal", str(path), option, value)
    with pytest.raises(un.InputError, match=r"multiples of 0\.001 ns"):
        un.simulate_goal(path, o=0.0005)


def test_a_sweep_takes_numbers_of_ranks() -> None:
    common = ("sweep", "allreduce", "--machine", "archer", "--elements", "16")
    by_ranks = json_of(*common, "--ranks", "4,6")
    by_shapes = json_of(*common, "--shapes", "4,6")
    assert by_ranks["points"] == by_shapes["points"]
    refused = refusal(*common)
    assert "give --shapes, as 4..64 or 8x8,16x16, or --ranks, as 4,8,16, or one --subset of its nodes" in refused
    assert "--shapes and --ranks both choose" in refusal(*common, "--ranks", "4", "--shapes", "4")
