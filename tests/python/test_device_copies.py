"""Copies between host and devices of a process: counts by formula, times on machines, and refusals."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import unisono as un
from unisono.tasks import Program, View, all_, halo, one_to_one

from ..mpi.standin import StandIn
from .conftest import call, json_of, written
from .test_discover import n_body

#: A machine of a host and devices, with 10 µs a copy and 10 GB/s.
HOST = """
name = "host-and-devices"
kind = "endpoint"
model = "hockney"
alpha_ns = 10000
beta_ns_per_byte = 0.1
"""


@pytest.fixture
def machine(tmp_path: Path) -> str:
    path = written(tmp_path / "host.toml", HOST)
    return str(path)


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = written(tmp_path / "n-body.json", json.dumps(n_body(4)))
    return str(path)


def nothing(*_: View) -> None:
    """A kernel that is never run."""


def bodies(number: int, steps: int, **options: Any) -> Program:
    program = Program()
    p, v = program.zeros(number, name="P"), program.zeros(number, name="V")
    for _ in range(steps):
        program.task(nothing, range=number, reads=[p[all_]], updates=[v[one_to_one]], name="time_step", **options)
        program.task(nothing, range=number, reads=[v[one_to_one]], updates=[p[one_to_one]], name="update_p", **options)
    return program


def test_the_command_python_and_a_program_agree(file: str) -> None:
    found = json_of("discover", file, "--nodes", "4", "--devices", "2", "--rank", "3")
    assert found == {"program": file, "rules": "full", "notes": [], **un.discover(n_body(4), 4, devices=2, rank=3)}
    explained = bodies(64, 4).explain(4, devices=2, rank=3)
    assert explained.devices == found["devices"] == explained.report()["devices"]
    devices = found["devices"]
    assert (devices["count"], devices["rank"], devices["broadcasts"]) == (2, 3, 3)
    rows = [(row["moment"], row["buffer"], row["kind"], row["count"], row["messages"]) for row in devices["operations"]]
    # Each device has 8 of 64 bodies; messages are sender, receiver, bytes.
    assert rows == [
        ("before-kernel", "P", "copies", 1, [[0, 1, 512], [0, 2, 512]]),
        ("before-kernel", "V", "copies", 1, [[0, 1, 64], [0, 2, 64]]),
        ("before-exchange", "P", "copies", 3, [[1, 0, 64], [2, 0, 64]]),
        ("after-exchange", "P", "broadcast", 3, []),
    ]
    assert (
        devices["bytes"] == sum(row["count"] * row["bytes"] for row in devices["operations"]) == 1152 + 3 * (128 + 1024)
    )
    assert "3 of them broadcasts" in str(explained)
    ran = call("discover", file, "--nodes", "4", "--devices", "2", "--rank", "3")
    assert "rank 3 with 2 devices: 13 copies (4608 bytes), 3 of them broadcasts; 13 if each" in ran.out
    assert "4 nodes: 3 collectives" in ran.out


def test_messages_alone_update_each_device_for_each_message(file: str) -> None:
    for devices in (1, 4):
        found = un.discover(file, 4, "off", devices=devices)["devices"]
        assert found["broadcasts"] == 0
        rows = [row for row in found["operations"] if row["moment"] == "before-kernel" and row["buffer"] == "P"]
        # First the host has all elements. Later each device gets three messages, and the elements of other devices.
        assert [row["updates"] for row in rows] == [devices, devices * (3 + (devices > 1))]
        assert [row["copies"] for row in rows] == [devices, devices]


def test_copies_take_what_the_machine_of_devices_says(machine: str) -> None:
    explained = bodies(1000, 3).explain(4, devices=2, device_machine=machine, simulate=True)
    assert explained.devices is not None
    assert explained.prediction is None
    predicted = explained.devices["predicted"]
    rows = predicted["operations"]
    assert [row["pattern"] for row in rows] == ["point-to-point", "point-to-point", "point-to-point", "broadcast"]
    # The host sends its copies one after the other; two devices send to the host at once.
    alpha, beta = 10_000, 0.1
    host_to_both = 2 * (alpha + beta * 8000)
    assert rows[0]["seconds"] == pytest.approx(host_to_both / 1e9)
    plan = un.plan("broadcast", machine, shape=3, elements=1000, dtype="f64")
    assert (rows[3]["seconds"], rows[3]["algorithm"]) == (plan.predicted["seconds"], plan.algorithm)
    assert rows[3]["seconds"] <= rows[0]["seconds"]
    assert predicted["seconds"] == pytest.approx(sum(row["seconds"] * row["count"] for row in rows))
    assert predicted["simulated_seconds"] == pytest.approx(predicted["seconds"])
    assert f"copies on host-and-devices by {predicted['model']}" in str(explained)
    # A machine of nodes and a machine of devices can be combined.
    both = bodies(1000, 3).explain(4, machine="paper-sim", devices=2, device_machine=machine)
    assert both.devices is not None
    assert both.devices["predicted"]["seconds"] == predicted["seconds"]
    assert both.predicted == bodies(1000, 3).explain(4, machine="paper-sim").predicted


def test_partial_results_of_devices_go_to_the_host(machine: str) -> None:
    program = Program()
    a, total = program.zeros(64, name="a"), program.array(5, name="total")
    program.task(nothing, range=64, reads=[a[one_to_one]], reduces=[total[all_]], name="sum")
    found = program.explain(1, devices=4, device_machine=machine).devices
    assert found is not None
    (row,) = (row for row in found["operations"] if row["kind"] == "reduce")
    assert (row["moment"], row["messages"]) == ("after-kernel", [[d, 0, 40] for d in range(1, 5)])
    assert found["predicted"]["operations"][-1]["algorithm"] == "messages"


def test_places_of_kernels() -> None:
    def read(program: Program) -> None:
        (p,) = (array for array in program.arrays if array.name == "P")
        program.host_task(nothing, reads=[p], name="say")

    def moments(program: Program, task: str) -> list[tuple[str, list[list[int]]]]:
        found = program.explain(1, devices=2).devices
        assert found is not None
        return [(row["buffer"], row["messages"]) for row in found["operations"] if row["task"] == task]

    # If no kernel names a device, all kernels except the kernels of host tasks run on devices.
    program = bodies(8, 1)
    read(program)
    assert moments(program, "say") == [("P", [[1, 0, 32], [2, 0, 32]])]
    assert moments(bodies(8, 1, on="cupy"), "update_p") == []
    # If one kernel names a device, the others run on the host.
    program = bodies(8, 1, on="cupy")
    (p,) = (array for array in program.arrays if array.name == "P")
    program.task(nothing, range=8, updates=[p[one_to_one]], name="shake")
    assert moments(program, "shake") == [("P", [[1, 0, 32], [2, 0, 32]])]
    assert moments(bodies(8, 1, on="host"), "time_step") == []


def test_a_kernel_on_the_host_runs() -> None:
    program = Program()
    a = program.zeros(4)
    program.task(lambda view: view.__iadd__(2), range=4, updates=[a[one_to_one]], on="host", name="add")
    program.run()
    assert np.array_equal(program.fetch(a), [2, 2, 2, 2])
    # A fetch reads on the host.
    found = bodies(8, 1).explain(1, devices=2)
    assert found.devices is not None
    assert {row["task"] for row in found.devices["operations"]} == {"time_step"}


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """Replaces CuPy by a stand-in with four devices."""
    module = StandIn(devices=4)
    monkeypatch.setitem(sys.modules, "cupy", module)
    return module


def wave(devices: int | None, on: str, rows: int = 17, steps: int = 5) -> tuple[Program, Any]:
    """Returns a program of a wave on a string with a reduction and a kernel on the host, and its arrays."""
    program = Program(devices=devices)
    now = program.array(rows, init=np.sin(np.arange(rows)), name="now")
    before = program.array(rows, init=np.sin(np.arange(rows) - 0.1), name="before")
    energy = program.array(2, name="energy")

    def step(wide: Any, old: Any, offsets: Any) -> None:
        first = offsets[1][0] - offsets[0][0]
        old[...] = 2 * wide[first : first + len(old)] - old
        inner = slice(1 if first == 0 else 0, len(old))
        old[inner] += 0.1 * wide[first + inner.start - 1 : first + len(old) - 1]

    def measure(now: Any, energy: Any, offsets: Any) -> None:
        energy[0] += (now**2).sum()
        energy[1] += len(now)

    def shift(now: Any, offsets: Any) -> None:
        now += 0.01

    for k in range(steps):
        program.task(
            step, rows, reads=[now[halo(1)]], updates=[before[one_to_one]], on=on, offsets=True, name=f"step {k}"
        )
        now, before = before, now
        if k % 2:
            program.task(shift, 3, updates=[now[one_to_one]], offset=k, offsets=True, on="host")
        program.task(measure, rows, reads=[now[one_to_one]], reduces=[energy[all_]], on=on, offsets=True)
    return program, (now, before, energy)


@pytest.mark.parametrize("devices", [1, 2, 3, 4])
def test_a_run_on_several_devices_has_the_contents_of_the_host(gpus: StandIn, devices: int) -> None:
    (program, arrays), (host, expected) = wave(devices, "cupy"), wave(None, "numpy")
    for array, other in zip(arrays, expected, strict=True):
        assert np.allclose(program.fetch(array), host.fetch(other), rtol=1e-12)
    # With more devices than points, devices without a part of the range run no kernel.
    few, small = wave(4, "cupy", rows=3, steps=1)
    host, expected = wave(None, "numpy", rows=3, steps=1)
    assert np.allclose(few.fetch(small[0]), host.fetch(expected[0]))


@pytest.mark.parametrize("devices", [2, 3, 4])
def test_a_run_copies_what_the_explanation_lists(gpus: StandIn, devices: int) -> None:
    program, arrays = wave(devices, "cupy", rows=24)
    found = program.explain(1).devices
    assert found is not None
    assert found["count"] == devices
    program.run()

    def elements(picked: Any) -> int:
        return sum(row["count"] * m[2] // 8 for row in found["operations"] for m in row["messages"] if picked(m))

    assert gpus.up == elements(lambda m: m[1] != 0)
    # An element that several devices need is copied to the host once.
    down = elements(lambda m: m[1] == 0)
    between = elements(lambda m: m[0] != 0 and m[1] != 0)
    assert 0 < gpus.down <= down + between
    for array in arrays:
        program.fetch(array)


@pytest.mark.parametrize("devices", [1, 3])
def test_kernels_are_measured_on_the_contents_of_devices(gpus: StandIn, devices: int) -> None:
    program, arrays = wave(devices, "cupy", steps=2)
    program.run()
    alone = Program()
    alone._copy_from(program)
    for array, copied in zip(arrays[:2], alone._local_arrays[:2], strict=True):
        assert np.array_equal(copied.data, program.fetch(array))


def test_devices_of_a_run_are_checked(gpus: StandIn) -> None:
    program, _ = wave(8, "cupy")
    with pytest.raises(un.InputError, match="the program has 8 devices; CuPy finds 4"):
        program.run()
    for devices in (0, -1):
        with pytest.raises(un.InputError, match=f"devices is {devices}; accepted are numbers from 1 on"):
            Program(devices=devices)
    with pytest.raises(un.InputError, match="devices"):
        Program(devices=1.5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--devices", "0"), "the number of devices is 0; accepted are 1 to 256"),
        (("--devices", "-1"), "devices is -1"),
        (("--devices", "2", "--rank", "4"), "the rank is 4; accepted are 0 to 3"),
        (("--rank", "1"), "--rank is for processes with devices; give their number with --devices"),
        (("--device-machine", "archer"), "--device-machine is for processes with devices"),
        (("--devices", "2", "--simulate"), "--simulate is for a prediction on a machine; name it with --machine"),
        (("--devices", "2", "--device-machine", "archer", "--model", "postal"), "--model is for a prediction"),
        (("--devices", "2", "--device-machine", "wse2"), "wse2"),
    ],
)
def test_what_has_no_meaning_is_refused(file: str, arguments: tuple[str, ...], said: str) -> None:
    ran = call("discover", file, "--nodes", "4", *arguments)
    assert ran.code != 0
    assert said in ran.err
    assert "Traceback" not in ran.err


def test_python_refuses_the_same(machine: str) -> None:
    for options in ({"rank": 1}, {"device_machine": machine}):
        with pytest.raises(un.InputError, match="give their number as devices"):
            bodies(8, 1).explain(2, **options)
        with pytest.raises(un.InputError, match="give their number as devices"):
            un.discover(n_body(1), 2, **options)
    with pytest.raises(un.InputError, match="needs a machine"):
        bodies(8, 1).explain(2, devices=2, simulate=True)
