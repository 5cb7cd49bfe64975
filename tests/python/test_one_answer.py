"""One question has one answer, whichever command is asked."""

from pathlib import Path

import pytest
import unisono as un

from .conftest import ROOT, call


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
