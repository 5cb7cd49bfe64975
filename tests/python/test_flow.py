"""All-to-all on networks: the bound `flow`, its certificates, and the algorithm `concurrent-flow`."""

import json
from pathlib import Path

import pytest
import unisono as un

from .bound_checker import bound_seconds
from .conftest import call, four_accelerators, network_text, written

#: Cables with their Gbit/s among four accelerators and switch 4, through which the fastest path from 0 to 1 leads.
CABLES = [(0, 4, 300), (1, 4, 300), (0, 1, 50), (1, 2, 100), (2, 3, 200), (3, 0, 25)]


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    return four_accelerators(tmp_path / "ring.toml", CABLES, planes=2)


def flow_seconds(machine: Path | str, shape: str | None = None) -> float:
    found = un.bounds("alltoall", machine, bytes="1MiB", shape=shape)
    return next(bound["seconds"] for bound in found if bound["name"] == "flow")


def test_a_certificate_proves_the_bound(machine: Path, tmp_path: Path) -> None:
    seconds = flow_seconds(machine)
    # Ranks 2 and 3 send two blocks each to 0 and 1, over links of 125 Gbit/s in two planes.
    assert seconds == pytest.approx(4 * 2**20 * 8 / (2 * 125e9))
    plan = un.plan("alltoall", machine, bytes="1MiB")
    assert un.simulate(plan.schedule).seconds >= seconds
    file = written(tmp_path / "bound.json", plan.certificate())
    found = un.check_bound(file, machine)
    assert found["holds"]
    assert found["seconds"] == pytest.approx(seconds)
    again = bound_seconds(file.read_text(), [(a, b, rate * 10**9) for a, b, rate in CABLES], 2)
    assert float(again) == pytest.approx(seconds)


def test_certificates_on_the_command_line(machine: Path, tmp_path: Path) -> None:
    file = tmp_path / "bound.json"
    done = call("plan", "alltoall", "--machine", str(machine), "--bytes", "1MiB", "--certificate", str(file))
    assert done.code == 0
    done = call("verify", "--certificate", str(file), "--machine", str(machine))
    assert done.code == 0
    assert done.out.startswith("accepted: alltoall of 1048576 bytes on 4 ranks of ring takes at least")
    document = json.loads(file.read_text())
    document["seconds"] *= 1.01
    file.write_text(json.dumps(document))
    assert call("verify", "--certificate", str(file), "--machine", str(machine)).code == 1


@pytest.mark.parametrize(
    ("machine", "shape", "seconds"),
    [
        # Each GPU sends 7 blocks at 300 GB/s.
        ("dgx-a100", None, 7 * 2**20 / 300e9),
        # 64 blocks in each direction between the boxes, through 8 interfaces of 25 GB/s.
        ("dgx-a100-x2", None, 64 * 2**20 / 200e9),
        ("mi300x", None, 2**20 / 64e9),
        # In a torus of n ranks and sides k, every link carries n k / 8 blocks, in 4 planes of 400 Gbit/s.
        ("torus2d-small", None, 1024 * 32 / 8 * 2**20 / 200e9),
    ],
)
def test_the_bound_of_presets(machine: str, shape: str | None, seconds: float) -> None:
    assert flow_seconds(machine, shape) == pytest.approx(seconds)


@pytest.mark.parametrize("params", [{}, {"chunks": "7", "batch": "2"}])
def test_flows_are_proved_and_no_faster_than_the_bound(params: dict[str, str], machine: Path) -> None:
    plan = un.plan("alltoall", machine, bytes="1MiB", algorithm="concurrent-flow", params=params)
    assert plan.schedule.verify().holds
    assert un.simulate(plan.schedule).seconds >= flow_seconds(machine)


def test_a_torus_sends_near_its_bound(tmp_path: Path) -> None:
    file = tmp_path / "torus.toml"
    file.write_text(network_text('name = "torus"\ndims = [8, 8]\n', "torus", planes=4, buffer_bytes=1 << 25))
    plan = un.plan("alltoall", file, bytes="64KiB")
    assert plan.algorithm == "concurrent-flow"
    assert un.simulate(plan.schedule).seconds < 1.02 * flow_seconds(file)


def test_unlike_links_are_loaded_evenly() -> None:
    plan = un.plan(
        "alltoall",
        un.machine("mi250").data_sheet(),
        bytes="1MiB",
        algorithm="concurrent-flow",
        params={"chunks": "64", "batch": "4"},
    )
    assert un.simulate(plan.schedule).seconds < 1.1 * flow_seconds("mi250")


def test_flows_need_links() -> None:
    with pytest.raises(un.UnsupportedError, match="the links of a network"):
        un.plan("alltoall", "archer", shape=8, elements=4, algorithm="concurrent-flow")
