"""One question has one answer, whichever command is asked."""

import itertools
from pathlib import Path

import pytest
import unisono as un

from .conftest import ROOT, call

WORKLOADS = ["gpt-3", "gpt-3-artifact", "cosmoflow-artifact", "dlrm-artifact"]
NETWORKS = ["hx2mesh-small", "fattree-small", "torus2d-small"]
SMALL = """
name = "small"
[[dimensions]]
name = "d"
size = 12
shape = [4, 3]
[[steps]]
name = "first"
compute_us = 10
[[steps.communication]]
collective = "allreduce"
elements = 49536
blocking = false
[[steps]]
name = "second"
compute_us = 1
[[steps.communication]]
collective = "broadcast"
elements = 100
"""


def compared(workload: str, machine: str) -> tuple[list[float], list[str]]:
    """The seconds of a workload by each way to ask for them, and its phases by two of them."""
    named, program = un.workload(workload, machine), un.step(workload, machine)
    [row] = un.compare([workload], [machine])
    assert row["seconds"] is not None
    seconds = [named["seconds"], program["seconds"], row["seconds"]]
    assert named["exposed_seconds"] == program["exposed_seconds"]
    assert named["phases"] == program["phases"]
    return seconds, [phase["name"] for phase in named["phases"]]


@pytest.mark.parametrize(("workload", "machine"), list(itertools.product(WORKLOADS, NETWORKS)))
def test_a_workload_takes_one_time(workload: str, machine: str) -> None:
    seconds, _ = compared(workload, machine)
    assert len(set(seconds)) == 1, seconds


@pytest.mark.parametrize("level", ["model", "flow", "packet"])
def test_a_workload_of_a_file_takes_one_time(level: str, tmp_path: Path) -> None:
    file = tmp_path / "small.toml"
    file.write_text(SMALL)
    seconds, phases = compared(str(file), "torus2d-small")
    assert len(set(seconds)) == 1, seconds
    assert phases == ["first", "second"]
    levels = {of(file, "torus2d-small", level=level)["seconds"] for of in (un.workload, un.step)}
    assert len(levels) == 1


@pytest.mark.parametrize("machine", ["archer", "paper-sim", "hx2mesh-small"])
@pytest.mark.parametrize("program", ["nbody", "fft2d", "power", "matmul"])
def test_collectives_alone_take_what_discovery_predicts(program: str, machine: str) -> None:
    script = str(ROOT / "examples" / "tasks" / f"{program}.py")
    discovered = call("discover", script, "--nodes", "16", "--machine", machine, "--json").json["predicted"]
    rates = ("--tflops", "1000", "--memory-gb-per-second", "1000")
    timed = call("workload", "--from", script, "--ranks", "16", "--machine", machine, *rates, "--json").json
    assert timed["communication_seconds"] == pytest.approx(discovered["seconds"], rel=1e-9)


def test_discovery_names_its_question() -> None:
    script = str(ROOT / "examples" / "tasks" / "nbody.py")
    assert "communication alone on archer by" in call("discover", script, "--nodes", "4", "--machine", "archer").out


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("command", ["plan", "bound", "schedule", "simulate"])
def test_wafers_refuse_short_elements_alike(command: str, dtype: str, tmp_path: Path) -> None:
    output = ("-o", str(tmp_path / "r.sched")) if command == "schedule" else ()
    where = ("--machine", "wse2", "--shape", "4", "--elements", "8", "--dtype", dtype)
    ran = call(command, "reduce", *where, *output)
    assert ran.code == 2
    assert f"elements of {dtype} are not 32 bits wide" in ran.err


def test_plans_of_long_elements_say_that_no_program_runs_them() -> None:
    made = call("plan", "reduce", "--machine", "wse2", "--shape", "4", "--elements", "8", "--dtype", "f64", "--json")
    assert any("neither simulated nor emitted" in note for note in made.json["notes"])


@pytest.mark.parametrize("target", ["mscclpp", "msccl-xml"])
def test_plans_for_files_of_gpus_have_one_clock(target: str) -> None:
    where = ("--machine", "dgx-a100", "--bytes", "4KiB", "--for", target)
    ran = call("plan", "allreduce", *where, "--model", "packets")
    assert ran.code == 2
    assert "timed by their thread blocks" in ran.err


#: Parts of presets: whole rows and others, of grids, boxes and lines.
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
