"""Networks packet by packet: schedules, GOAL programs and traffic, on the command line and in Python."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import unisono as un

from .conftest import call, json_of, network_text, refusal, written

LARGE: dict[str, Any] = {"planes": 4, "buffer_bytes": 1 << 25, "more": "host_overhead_ns = 1\n"}
MESH = network_text('name = "hxmesh"\nboard = [2, 2]\nboards = [2, 2]\n', "mesh16", **LARGE)
RING = network_text('name = "torus"\ndims = [8]\n', "ring8", **LARGE)
#: Bytes/s of an accelerator with 4 planes x 4 ports of 400 Gb/s.
INJECTION = 16 * 400e9 / 8


@pytest.fixture
def mesh(tmp_path: Path) -> str:
    """Writes a machine file of 16 accelerators."""
    path = written(tmp_path / "mesh16.toml", MESH)
    return str(path)


@pytest.fixture
def ring(tmp_path: Path) -> str:
    """Writes a machine file of 8 accelerators in a ring."""
    path = written(tmp_path / "ring8.toml", RING)
    return str(path)


def test_a_schedule_runs_packet_by_packet(ring: str) -> None:
    report = json_of("simulate", "allreduce", "--machine", ring, "--bytes", "1MiB", "--algorithm", "ring")
    # 14 rounds, each of 1 MiB / 8 ranks / 4 planes = 4 packets through one link, and 1 ns at each host.
    assert report["nanoseconds"] == pytest.approx(14 * (80 + 4 * 163.84 + 2))
    assert report["sim"] == "network"
    # Only proved schedules run, and no data moves that could be checked.
    assert report["result_correct"] is None
    counts = {name: metric["value"] for name, metric in report["metrics"].items()}
    assert (counts["messages"], counts["packets"], counts["hops"]) == (14 * 8, 4 * 14 * 8, 4 * 14 * 8)
    assert len(report["finish"]) == 8


def test_the_same_schedule_is_right_on_every_topology(mesh: str, ring: str) -> None:
    schedule = un.plan("allreduce", un.machine(mesh, 8), elements=512, algorithm="recursive-doubling").schedule
    inputs = [np.arange(512, dtype=np.float32) + rank for rank in range(8)]
    expected = schedule.interpret(inputs)
    for machine in (mesh, ring):
        run = un.simulate(schedule, un.machine(machine, 8))
        assert run.result_correct is None
        assert run.metrics["packets"].value == run.metrics["messages"].value == 24
        assert all(np.array_equal(a, b) for a, b in zip(expected, schedule.interpret(inputs), strict=True))


def test_ranks_lie_on_the_part_that_was_asked_for(mesh: str) -> None:
    # Columns 0 and 1 of rows 0 and 1: one board, whose neighbors are a trace apart.
    options = ["--machine", mesh, "--shape", "2x2", "--bytes", "64", "--algorithm", "recursive-doubling"]
    report = json_of("simulate", "allreduce", *options)
    assert (report["metrics"]["messages"]["value"], report["metrics"]["hops"]["value"]) == (8, 8)
    schedule = un.plan("allreduce", un.machine(mesh, 4), elements=16, algorithm="recursive-doubling").schedule
    on_board = un.simulate(schedule, places=[0, 1, 4, 5])
    assert on_board.seconds == pytest.approx(report["seconds"])
    assert on_board.metrics["hops"] == (8, "packets over links of one plane")
    places, _ = un.submesh(mesh, [1], [1])
    assert un.simulate(schedule, places=places).seconds == on_board.seconds
    with pytest.raises(un.InputError, match="the place of a rank is 16; mesh16 has accelerators 0 to 15"):
        un.simulate(schedule, places=[0, 1, 2, 16])
    ten = un.plan("allreduce", un.machine(mesh, 10), elements=16, algorithm="ring").schedule
    with pytest.raises(un.InputError, match="shape 5x2 does not fit on the 4x4 accelerators of mesh16"):
        un.simulate(ten, un.machine(mesh, (5, 2)))


def test_a_run_is_traced_and_drawn(ring: str, tmp_path: Path) -> None:
    trace, picture = tmp_path / "run.json", tmp_path / "run.svg"
    options = ["--bytes", "64", "--algorithm", "ring", "--trace", str(trace), "--timeline", str(picture)]
    json_of("simulate", "allreduce", "--machine", ring, *options)
    events = json.loads(trace.read_text())["traceEvents"]
    assert {event["name"] for event in events} >= {"send", "receive", "message"}
    assert "<svg" in picture.read_text()


def test_goal_programs_run_on_networks(ring: str, tmp_path: Path) -> None:
    path = tmp_path / "one.goal"
    path.write_text(
        "num_ranks 3\nrank 0 {\nl1: calc 100\nl2: send 8192b to 2\nl2 requires l1\n}\nrank 1 {\n}\nrank 2 {\n"
        "l1: recv 8192b from 0\n}\n"
    )
    report = json_of("simulate", "--goal", str(path), "--machine", ring)
    # A calc of 100 ns, overheads of 1 ns, two links, and a quarter of a packet on each plane.
    assert report["finish_ns"] == pytest.approx([101, 0, 101 + 160 + 163.84 / 4 + 1])
    assert report["deadlock"] == []
    assert "for a run without one" in refusal("simulate", "--goal", str(path), "--machine", ring, "--L", "10")


def test_an_alltoall_is_below_its_bound(mesh: str) -> None:
    report = json_of("traffic", "alltoall", "--machine", mesh, "--bytes", "4MiB")
    # (1/2a) (N-1) / (N - N/x) for x = 2 boards a side of a x a = 2 x 2.
    bound = 0.25 * 15 / (16 - 8)
    # In the order of shifts, accelerators send in different directions at a time.
    assert 0.6 * bound < report["share_of_injection"] < bound
    assert report["share_of_peak"] == report["share_of_injection"]
    assert report["seconds"] == pytest.approx(15 * 2**22 / report["share_of_injection"] / INJECTION)
    least, mean, most = (report[f"bytes_per_second_{which}"] for which in ("min", "mean", "max"))
    assert 0 < least <= mean <= most <= INJECTION
    assert report["packets"] == 16 * 15 * 128
    threads = json_of("traffic", "alltoall", "--machine", mesh, "--bytes", "4MiB", "--jobs", "2")
    assert threads | {"wall_seconds": 0} == report | {"wall_seconds": 0}
    flows = json_of("traffic", "alltoall", "--machine", mesh, "--bytes", "4MiB", "--level", "flow")
    assert flows["packets"] is None
    # Flows keep the order of messages, as packets do.
    assert flows["share_of_injection"] == pytest.approx(report["share_of_injection"], rel=0.1)


def test_a_permutation_is_drawn_by_its_seed(mesh: str) -> None:
    first, again, other = (
        json_of("traffic", "permutation", "--machine", mesh, "--bytes", "1MiB", "--seed", seed) for seed in "112"
    )
    without_clock = [{k: v for k, v in report.items() if k != "wall_seconds"} for report in (first, again, other)]
    assert without_clock[0] == without_clock[1] != without_clock[2]
    assert first["packets"] == 16 * 32


def test_an_allreduce_has_half_the_injection(mesh: str) -> None:
    report = json_of("traffic", "allreduce", "--machine", mesh, "--bytes", "64MiB", "--algorithm", "dual-rings")
    assert report["algorithm"] == "dual-rings"
    assert 0.9 < report["share_of_peak"] <= 16 / 15
    assert report["share_of_peak"] == 2 * report["share_of_injection"]
    flows = un.traffic("allreduce", mesh, bytes="64MiB", algorithm="dual-rings", level="flow")
    assert flows.seconds == pytest.approx(report["seconds"], rel=0.1)


def test_a_sweep_is_drawn(mesh: str, tmp_path: Path) -> None:
    picture = tmp_path / "alltoall.png"
    report = json_of("traffic", "alltoall", "--machine", mesh, "--bytes", "1KiB,64KiB", "--plot", str(picture))
    assert [point["bytes"] for point in report["points"]] == [1024, 65536]
    assert report["files"] == [str(picture)]
    first = picture.read_bytes()
    assert first.startswith(b"\x89PNG")
    assert call("traffic", "alltoall", "--machine", mesh, "--bytes", "1KiB,64KiB", "--plot", str(picture)).code == 0
    assert picture.read_bytes() == first


def test_traffic_that_does_not_fit_is_refused_with_its_size() -> None:
    """An alltoall of 268,419,072 messages of 32 packets is refused before its tables of tasks are built."""
    refused = refusal("traffic", "alltoall", "--machine", "hx2mesh-large", "--bytes", "1MiB", "--level", "packet")
    assert "alltoall of 1048576 bytes on 16384 accelerators is 8.6e9 packets a plane, about " in refused
    assert " packet-hops, " in refused
    assert " GB of memory and " in refused
    assert " h of one core" in refused
    assert "--level flow" in refused


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["gather"], "'gather' is no traffic; accepted are allreduce, alltoall, permutation"),
        (["alltoall", "--algorithm", "ring"], "an algorithm is for allreduce; alltoall has none"),
        (["alltoall", "--bytes", "-1"], "'-1' is not a size in bytes"),
        (["permutation", "--seed", "-1"], "the seed is -1"),
        (["alltoall", "--machine", "archer"], "archer is of kind endpoint; this needs a network"),
        (["alltoall", "--level", "wavelet"], "'wavelet'"),
    ],
)
def test_wrong_traffic_is_refused(mesh: str, arguments: list[str], said: str) -> None:
    assert said in refusal("traffic", "--machine", mesh, "--bytes", "1KiB", *arguments)


def test_unlike_accelerators_are_listed_with_both_rates(tmp_path: Path) -> None:
    """If two accelerators have different rates, the output has both."""
    path = tmp_path / "unlike.toml"
    head = MESH.split("[topology]", maxsplit=1)[0].replace("planes = 4", "planes = 1")
    path.write_text(f'{head}[topology]\nname = "graph"\naccelerators = 2\nedges = "0 2 gbps=200\\n1 2 gbps=400"\n')
    shown = call("traffic", "alltoall", "--machine", str(path), "--bytes", "64KiB").out
    assert "injection  200.0 to 400.0 Gb/s an accelerator; shares are of the highest" in shown
