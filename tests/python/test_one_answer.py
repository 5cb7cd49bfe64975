"""All commands that compute the same quantity give the same value."""

import itertools
import random
import sys
from pathlib import Path

import pytest
import unisono as un

from .conftest import ROOT, SOAK, call, refusal

sys.path.insert(0, str(ROOT / "benches"))
import one_time

#: Large workloads, which run on one network only because each takes a second.
LARGE = {"resnet-152", "resnet-152-artifact"}
NETWORKS = ["torus2d-small", "hx2mesh-small", "fattree-small"]
NAMED = [
    (preset["name"], network)
    for preset in un.workload_presets()
    for network in (NETWORKS[:1] if preset["name"] in LARGE else NETWORKS)
    if preset["accelerators"] <= 1024
]


def described(seed: int) -> str:
    """Returns a random workload of few ranks, with more or less compute than communication."""
    draw = random.Random(seed)
    sizes = [draw.choice([1, 2, 3, 4]), draw.choice([2, 4])]
    lines = ['name = "drawn"']
    for name, size in zip("ab", sizes, strict=True):
        lines += ["[[dimensions]]", f'name = "{name}"', f"size = {size}", f"shape = [{size}, 1]"]
    for step in range(draw.randint(1, 3)):
        lines += ["[[steps]]", f'name = "step {step}"', f"compute_us = {draw.choice([0, 3, 1000])}"]
        for _ in range(draw.randint(0, 2)):
            kind = draw.choice(["allreduce", "allgather", "broadcast", "alltoall", "send"])
            over = draw.choice(['["a"]', '["b"]', '["a", "b"]'])
            lines += ["[[steps.communication]]", f'collective = "{kind}"', f"elements = {12 * draw.randint(1, 99999)}"]
            lines += [f"over = {over}", f"blocking = {draw.choice(['true', 'false'])}"]
    return "\n".join(lines)


def compared(named: str, described: str, machine: str, level: str = "model") -> list[str]:
    """Checks that `workload`, `step` and `compare` agree on a workload; returns the names of its phases."""
    first, second = un.workload(named, machine, level=level), un.step(described, machine, level=level)
    [third] = un.compare([named], [machine], level=level)
    for key in ("seconds", "compute_seconds", "exposed_seconds"):
        assert second[key] == pytest.approx(first[key], rel=1e-9)
        assert third[key] == pytest.approx(first[key], rel=1e-9)
    assert second["phases"] == first["phases"]
    return [phase["name"] for phase in first["phases"]]


@pytest.mark.parametrize(("name", "machine"), NAMED)
def test_a_workload_takes_the_time_of_its_description(name: str, machine: str) -> None:
    compared(name, str(ROOT / "workloads" / f"{name}.toml"), machine)


@pytest.mark.parametrize("level", ["model", "flow", "packet"])
@pytest.mark.parametrize("seed", range(3))
def test_random_workloads_take_one_time(seed: int, level: str, tmp_path: Path) -> None:
    file = tmp_path / "drawn.toml"
    for machine, number in itertools.product(NETWORKS, range(2)):
        file.write_text(described(2 * seed + number))
        phases = compared(str(file), str(file), machine, level)
        assert phases == [f"step {step}" for step in range(len(phases))]


@pytest.mark.parametrize(("compute_us", "is_planned"), [(100, True), (10000, False)])
def test_collectives_are_planned_where_they_are_worth_it(compute_us: int, is_planned: bool, tmp_path: Path) -> None:
    file = tmp_path / "small.toml"
    file.write_text(f"""
name = "small"
[[dimensions]]
name = "d"
size = 8
shape = [2, 4]
[[steps]]
name = "first"
compute_us = {compute_us}
[[steps.communication]]
collective = "allreduce"
elements = 1000000
""")
    [one] = un.workload(file, "hx2mesh-small")["phases"][0]["communication"]
    plan = un.plan("allreduce", "hx2mesh-small", shape=(2, 4), elements=1000000)
    is_of_plan = one["end"] - one["begin"] == pytest.approx(plan.predicted["seconds"], rel=1e-9)
    assert (one["algorithm"] == plan.algorithm) == is_of_plan == is_planned


@pytest.mark.parametrize("machine", ["archer", "paper-sim", "hx2mesh-small"])
@pytest.mark.parametrize("program", ["nbody", "fft2d", "power", "matmul"])
def test_collectives_alone_take_what_discovery_predicts(program: str, machine: str) -> None:
    script = str(ROOT / "examples" / "tasks" / f"{program}.py")
    discovered = call("discover", script, "--nodes", "16", "--machine", machine, "--json").json["predicted"]
    rates = ("--tflops", "1000", "--memory-gb-per-second", "1000")
    timed = call("workload", "--from", script, "--ranks", "16", "--machine", machine, *rates, "--json").json
    assert timed["communication_seconds"] == pytest.approx(discovered["seconds"], rel=1e-9)


@pytest.mark.parametrize("kind", one_time.KINDS)
def test_a_random_problem_takes_one_time(kind: str) -> None:
    for seed in range(10 if SOAK else 3):
        problem = one_time.drawn(kind, seed)
        for way, ratio in one_time.times(kind, problem, files=SOAK).alike.items():
            assert ratio == pytest.approx(1, rel=1e-9), (problem, way)


def test_discovery_names_its_question() -> None:
    script = str(ROOT / "examples" / "tasks" / "nbody.py")
    assert "communication alone on archer by" in call("discover", script, "--nodes", "4", "--machine", "archer").out


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("command", ["plan", "bound", "schedule", "simulate"])
def test_wafers_refuse_short_elements_alike(command: str, dtype: str, tmp_path: Path) -> None:
    output = ("-o", str(tmp_path / "r.sched")) if command == "schedule" else ()
    where = ("--machine", "wse2", "--shape", "4", "--elements", "8", "--dtype", dtype)
    assert f"no wavelet carries elements of {dtype}" in refusal(command, "reduce", *where, *output)


def test_plans_of_long_elements_say_that_no_program_runs_them() -> None:
    made = call("plan", "reduce", "--machine", "wse2", "--shape", "4", "--elements", "8", "--dtype", "f64", "--json")
    assert any("neither simulated nor emitted" in note for note in made.json["notes"])


@pytest.mark.parametrize("target", ["mscclpp", "msccl-xml"])
def test_plans_for_files_of_gpus_have_one_clock(target: str) -> None:
    where = ("--machine", "dgx-a100", "--bytes", "4KiB", "--for", target)
    assert "timed by their thread blocks" in refusal("plan", "allreduce", *where, "--model", "packets")


@pytest.mark.parametrize("seed", range(40 if SOAK else 8))
def test_a_file_of_msccl_is_read_alike_by_all_commands(seed: int, tmp_path: Path) -> None:
    """The collective of a file is the one that the file states, unless the command line states another."""
    draw = random.Random(seed)
    kind = draw.choice(["allreduce", "reduce", "broadcast", "reduce-scatter"])
    op, dtype, ranks = draw.choice(["sum", "max", "min"]), draw.choice(["f32", "f16", "i64"]), draw.randint(2, 5)
    root = draw.randrange(ranks) if kind in ("reduce", "broadcast") else 0
    file, stored = str(tmp_path / "a.xml"), str(tmp_path / "a.sched")
    where = ("--machine", "archer", "--ranks", str(ranks), "--bytes", "960", "--format", "msccl-xml", "-o", file)
    made = call("emit", kind, *where, "--op", op, "--dtype", dtype, "--root", str(root))
    assert made.code == 0, made.err
    others = {"--op": ["sum", "max"], "--dtype": ["f32", "f64"], "--root": ["0", "1"]}
    given = [
        word for name in draw.sample(sorted(others), draw.randint(0, 1)) for word in (name, draw.choice(others[name]))
    ]
    given += draw.choice([[], ["--bytes", "1920"]])
    of_import = call("import", file, "--format", "msccl-xml", "-o", stored, *given)
    of_file = call("verify", file, "--require", "ranks", *given)
    if of_import.code:
        # Another root than the file's has another input.
        assert (of_file.code, of_file.err) == (of_import.code, of_import.err)
        return
    imported = call("verify", stored, "--require", "ranks")
    assert of_file.code == imported.code
    assert of_file.out.split(", ")[0] == imported.out.split(", ")[0]
    if not given:
        count, name = un.load(file).elements, un.load(file).dtype
        assert f"{kind} of {count} {dtype} on {ranks} ranks" in of_file.out
        assert name == dtype
        assert un.load(file).operator == op
        assert un.load(file).root == root
        noted = "results of the file may differ between ranks" in made.out
        plan = call("verify", kind, *where[:6], "--op", op, "--dtype", dtype, "--root", str(root), "--require", "ranks")
        assert noted is (plan.code == 0 and of_file.code == 1)


#: Presets and shapes: whole and partial rows of grids, boxes, and lines.
PARTS = [
    ("dgx-a100-x2", "16"), ("dgx-a100-x4", "8"), ("dgx-a100-x4", "24"),
    ("torus2d-small", "64"), ("torus2d-small", "48"), ("hx2mesh-small", "4x8"),
    ("fattree-small", "16"), ("dgx2", "16"), ("archer", "6"), ("wse2", "3x4"), ("wse2", "5"),
]  # fmt: skip


@pytest.mark.parametrize(("machine", "shape"), PARTS)
def test_every_command_states_the_same_shape(machine: str, shape: str) -> None:
    where = ("broadcast", "--machine", machine, "--shape", shape, "--elements", "4", "--json")
    shapes = {command: call(command, *where).json["shape"] for command in ("plan", "simulate", "bound")}
    assert shapes["simulate"] == shapes["bound"] == shapes["plan"]
    assert un.machine(machine, shape=shape).extents == tuple(shapes["plan"])
