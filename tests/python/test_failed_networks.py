"""Workloads and packets on networks of every family with failed links and accelerators."""

import random
from pathlib import Path
from typing import Any

import pytest
import unisono as un
from unisono.machines import part_names
from unisono.planning.comparison import failed_names

from .conftest import call, network_text, refusal, written

#: A workload of eight ranks, in which ranks r and r ^ 1 send each other 1 MiB.
WORKLOAD = """
name = "pairs"
[[dimensions]]
name = "all"
size = 8
shape = [2, 4]
[[steps]]
name = "only"
compute_us = 1
[[steps.communication]]
collective = "exchange"
elements = 262144
partners = [1]
"""
#: A network of each family, with eight or sixteen accelerators, and the name of one of its cables.
FAMILIES: dict[str, tuple[dict[str, Any], str]] = {
    "boxes": (
        {"boxes": 4, "accelerators": 4, "inside": "0 4\n1 4\n2 4\n3 4\n0 1", "uplinks": "4 0\n4 1"},
        "0-1",
    ),
    "dragonfly": ({"p": 2, "a": 4, "h": 2, "g": 4}, "32-33"),
    "fattree": ({"accelerators": 16, "levels": 2, "down": 4, "up": 4}, "16-20:1"),
    "graph": (
        {"accelerators": 16, "edges": "\n".join(f"{n} {(n + k) % 16}" for n in range(16) for k in (1, 5))},
        "0-1",
    ),
    "hxmesh": ({"board": [2, 2], "boards": [2, 2]}, "0-1"),
    "hypercube": ({"dimensions": 4}, "0-1"),
    "hyperx": ({"dims": [4, 4]}, "16-17"),
    "mesh": ({"dims": [4, 4]}, "0-1"),
    "torus": ({"dims": [4, 4]}, "0-1"),
}


def network(family: str) -> un.Machine:
    timing = {"link_gbps": 400, "link_latency_ns": 40, "input_latency_ns": 20, "output_latency_ns": 20}
    buffers = {"planes": 1, "packet_bytes": 8192, "buffer_bytes": 1 << 24}
    topology = {"name": family, **FAMILIES[family][0]}
    return un.machine({"name": "small", "kind": "network", "topology": topology, **timing, **buffers})


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    return written(tmp_path / "pairs.toml", WORKLOAD)


def test_every_family_is_here() -> None:
    with pytest.raises(un.InputError) as refused:
        un.machine({**network("torus").describe(), "topology": {"name": "none"}})
    assert str(refused.value).split("accepted are ")[1].split(", ") == sorted(FAMILIES)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_failed_link_costs_time(family: str, workload: Path) -> None:
    whole, cable = network(family), FAMILIES[family][1]
    broken = un.machine(whole, failed=[cable])
    for level in ("model", "flow", "packet"):
        before, after = (un.workload(workload, machine, level=level) for machine in (whole, broken))
        assert after["accelerators"] == before["accelerators"] == 8
        assert after["compute_seconds"] == before["compute_seconds"]
        # 1 MiB over one link of 400 Gb/s takes 21 us, and no path is shorter than before.
        assert after["seconds"] >= before["seconds"] * 0.999 > 20e-6, level
    # If all pairs are neighbors by one cable, the pair that lost its cable ends last.
    if family in {"hxmesh", "hypercube", "mesh", "torus"}:
        assert un.workload(workload, broken, level="packet")["seconds"] > before["seconds"]


@pytest.mark.parametrize("family", FAMILIES)
def test_one_link_of_each_class_fails(family: str, workload: Path) -> None:
    whole = network(family)
    broken = un.machine(whole, failed=["one-link"])
    # The remaining parts have the same names as in the whole network.
    assert part_names(broken) == part_names(whole)
    failed = broken.describe()["failed"]
    assert failed
    row = un.compare([workload], [broken])[0]
    assert (row["failed"], row["machine_accelerators"]) == (failed, (whole.topology or {})["accelerators"])
    assert row["seconds"] is not None
    assert row["seconds"] >= 20e-6


def test_parts_fail_by_name(workload: Path) -> None:
    whole = network("hxmesh")
    assert part_names(whole)[-1] == "row switch 3"
    by_name = un.machine(whole, failed=["board 0,1 to row switch 0"])
    assert by_name.describe()["failed"] == ["2-20", "3-20"]
    ran = call("workload", str(workload), "--machine", "hx2mesh-small", "--fail", "board 2,1 to row switch 4")
    assert ran.out.splitlines()[0] == "pairs on 8 accelerators of hx2mesh-small without 130-1060, 131-1060, by model"
    refused = refusal("compare", str(workload), "--machines", "hx2mesh-small", "--fail", "board 99,0")
    assert "'board 99,0' is not a failure; accepted are A-B" in refused


def test_a_part_fails_once_and_its_cables_add_up() -> None:
    whole = network("hxmesh")
    for failure in ("board 0,1", "2-20", 3):
        with pytest.raises(un.InputError, match=f"the failure '{failure}' is named 2 times; name it once"):
            un.machine(whole, failed=[failure, "0-1", failure])
    fattree = un.machine("fattree-small", failed=["1024-1056:1", "1024-1056:1"])
    assert fattree.describe()["failed"] == ["1024-1056:1", "1024-1056:1"]


@pytest.mark.parametrize("family", FAMILIES)
def test_failures_have_names(family: str) -> None:
    whole = network(family)
    broken = un.machine(whole, failed=["one-link"])
    names = failed_names(broken)
    assert all(" to " in name for name in names)
    # Names of cables are accepted as failures of the same cables.
    assert un.machine(whole, failed=names).describe()["failed"] == broken.describe()["failed"]
    assert failed_names(whole) == []


def test_a_comparison_names_the_failures(workload: Path) -> None:
    out = call("compare", str(workload), "--machines", "hx2mesh-small", "--fail", "board 2,1 to row switch 4").out
    assert "hx2mesh-small, 2 failed" in out
    assert "failed on hx2mesh-small: accelerator 4,2 to row switch 4; accelerator 4,3 to row switch 4" in out


@pytest.mark.parametrize("family", FAMILIES)
def test_ranks_run_on_the_accelerators_that_are_left(family: str, workload: Path) -> None:
    whole = network(family)
    accelerators = (whole.topology or {})["accelerators"]
    few = un.machine(whole, failed=list(range(8, accelerators)))
    by_packet = un.workload(workload, few, level="packet")
    assert by_packet["accelerators"] == 8
    assert by_packet["seconds"] == pytest.approx(un.workload(workload, few, level="flow")["seconds"], rel=0.25)
    with pytest.raises(un.InputError, match="8 accelerators"):
        un.workload(workload, un.machine(few, failed=[7]))


def test_a_ring_without_a_link_sends_the_long_way(workload: Path, tmp_path: Path) -> None:
    """Ranks 0 and 1 send each other 1 MiB through seven links, three of which carry 1 MiB of other pairs too."""
    file = tmp_path / "ring.toml"
    file.write_text(network_text('name = "torus"\ndims = [8]\n', "ring", ns=(0, 0, 0), buffer_bytes=1 << 24))
    workload.write_text(WORKLOAD.replace("shape = [2, 4]\n", ""))
    times = []
    for fail in ([], ["--fail", "0-1"]):
        ran = call("workload", str(workload), "--machine", str(file), "--level", "packet", "--json", *fail)
        assert ran.code == 0, ran.err
        times.append(ran.json["seconds"] - 1e-6)
    message = (1 << 20) * 8 / 400e9
    assert times[0] == pytest.approx(message, rel=0.01)
    assert times[1] == pytest.approx(2 * message, rel=0.05)


@pytest.mark.parametrize("machine", ["piuma", "wse2"])
def test_links_fail_on_networks_alone(machine: str, workload: Path) -> None:
    refused = refusal("workload", str(workload), "--machine", machine, "--fail", "0-1")
    assert "links and nodes fail on machines of kind network" in refused


def test_a_failure_beside_a_job_costs_it_nothing() -> None:
    """A workload keeps its shape if a rectangle of that shape has no failed accelerator."""
    whole = un.workload("gpt-3", "torus2d-small")["exposed_seconds"]
    for failed in (1023, 5):
        ran = call("workload", "gpt-3", "--machine", "torus2d-small", "--fail", str(failed), "--json")
        assert ran.json["exposed_seconds"] == pytest.approx(whole, rel=0.01)
        assert not any("rows and columns" in note for note in ran.json["notes"])
    # Every rectangle of 24 x 16 or 16 x 24 accelerators contains one of these points.
    points = (15 * 32 + 15, 15 * 32 + 16, 16 * 32 + 15, 16 * 32 + 16)
    fails = [word for node in points for word in ("--fail", str(node))]
    lost = call("workload", "gpt-3", "--machine", "torus2d-small", *fails, "--json").json
    assert any("without rows and columns" in note and "495, 496" in note for note in lost["notes"])
    compared = call("compare", "gpt-3", "--machines", "torus2d-small", *fails)
    assert "note: gpt-3 on torus2d-small: ranks are in a line" in compared.out


def test_a_shape_takes_healthy_accelerators() -> None:
    options = ("allreduce", "--machine", "hx2mesh-small", "--bytes", "64KiB", "--algorithm", "bucket", "--json")
    whole = call("plan", *options, "--shape", "8x8").json
    degraded = call("plan", *options, "--shape", "8x8", "--fail", "5").json
    assert degraded["shape"] == [8, 8]
    assert degraded["predicted"]["seconds"] == pytest.approx(whole["predicted"]["seconds"], rel=0.01)
    assert "without its failed accelerators (5)" in refusal("plan", *options, "--shape", "32x32", "--fail", "5")
    lost = call("plan", *options[:-3], "--algorithm", "ring", "--fail", "5", "--json").json
    assert any("ranks are in a line" in note for note in lost["notes"])


def test_a_failed_plane_takes_its_share_of_the_bandwidth(workload: Path) -> None:
    """Long messages are limited by bandwidth, so one failed plane of four makes them 4/3 as long."""
    whole, broken = (un.machine("hx2mesh-small", failed=failed) for failed in ((), ("plane 1",)))
    cut = [un.plan("allreduce", machine, shape="8x8", bytes="1GiB").predicted["seconds"] for machine in (whole, broken)]
    assert cut[1] / cut[0] == pytest.approx(4 / 3, rel=1e-3)
    flows = [un.traffic("alltoall", machine, bytes="64KiB", level="flow") for machine in (whole, broken)]
    assert flows[1].seconds / flows[0].seconds == pytest.approx(4 / 3, rel=1e-2)
    row = un.compare([workload], [broken])[0]
    assert (row["failed"], row["cost_usd"]) == (["plane 1"], un.compare([workload], [whole])[0]["cost_usd"])
    ran = call("compare", str(workload), "--machines", "hx2mesh-small,fattree-small", "--fail", "plane 1")
    assert "hx2mesh-small, 1 failed" in ran.out
    assert "failed on hx2mesh-small: plane 1\n" in ran.out
    assert "3 of 4 planes, 75.0 % of the bandwidth" in ran.out + ran.err
    assert "15 of 16 planes, 93.8 % of the bandwidth" in ran.out + ran.err


@pytest.mark.parametrize(
    ("machine", "plane", "why"),
    [
        ("gb200-nvl72", "plane 0", "because there is a single plane; fail links or nodes"),
        ("dgx-h100-x8", "plane 3", "because there is a single plane; fail links or nodes"),
        ("torus2d-small", "plane 4", "there is no 'plane 4'; accepted are plane 0 to plane 3"),
    ],
)
def test_planes_that_a_machine_lacks_are_refused(machine: str, plane: str, why: str) -> None:
    assert why in refusal("plan", "allreduce", "--machine", machine, "--bytes", "1KiB", "--fail", plane)


def random_boxes(rng: random.Random) -> un.Machine:
    """Returns two to four boxes of GPUs whose interfaces are faster or slower than their switch, with a lost part."""
    boxes, accelerators = rng.choice(((2, 4), (3, 4), (4, 3)))
    inside = "\n".join(f"{n} {accelerators} count={rng.choice((1, 2, 6))}" for n in range(accelerators))
    uplinks = "\n".join(f"{n} 0" for n in range(accelerators))
    topology = {"name": "boxes", "boxes": boxes, "accelerators": accelerators, "inside": inside, "uplinks": uplinks}
    timing = {"link_gbps": 200, "link_latency_ns": 100, "input_latency_ns": 20, "output_latency_ns": 20}
    buffers = {"planes": 1, "packet_bytes": 4096, "buffer_bytes": 1 << 24}
    whole = un.machine({"name": "boxes", "kind": "network", "topology": topology, **timing, **buffers})
    count = boxes * accelerators
    lost = rng.choice((str(rng.randrange(count)), f"{rng.randrange(accelerators)}-{count}"))
    return un.machine(whole, failed=[lost])


def test_plans_after_failures_are_as_fast_as_all_their_forests() -> None:
    """Forests that a plan leaves out by their busiest links are slower, and plans of the same bits find them."""
    rng, left_out = random.Random(5), 0
    for _ in range(6):
        machine, size = random_boxes(rng), 4 << rng.randrange(8, 20)
        plan = un.plan("allreduce", machine, bytes=size)
        seconds = plan.predicted["seconds"]
        plan.schedule.verify()
        assert plan.ratio is not None
        assert plan.ratio >= 1 - 1e-9
        forests = un.plan("allreduce", machine, bytes=size, algorithm="forest").candidates
        assert seconds <= 1.01 * min(one["seconds"] for one in forests)
        listed = [dict(one["params"]) for one in plan.candidates if one["algorithm"] == "forest"]
        lacking = [one for one in forests if dict(one["params"]) not in listed]
        left_out += len(lacking)
        assert all(one["params"]["depth"] == "1" for one in lacking)
        ordered = [one["seconds"] for one in forests if one["params"].get("order") == "ranks"]
        if ordered:
            same = un.plan("allreduce", machine, bytes=size, bits="place")
            assert same.predicted["seconds"] <= 1.01 * min(ordered)
    assert left_out > 0
