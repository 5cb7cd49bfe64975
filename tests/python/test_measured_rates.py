"""The two kinds of rates of a network: bounds use the data sheet, predictions and simulations measured rates."""

import random
from pathlib import Path
from typing import Any

import pytest
import unisono as un

from .conftest import call, json_of

KINDS = ["allreduce", "allgather", "alltoall", "broadcast", "reduce-scatter"]
OWN = 400


def server(draw: random.Random) -> tuple[un.Machine, un.Machine]:
    """Returns random GPUs around a switch that copies and reduces, with and without measured rates."""
    gpus = draw.randint(3, 5)
    lines = [(f"{gpu} {gpus}", "") for gpu in range(gpus)]
    for _ in range(draw.randint(0, 4)):
        a, rate, share = draw.randrange(gpus), draw.choice([100, 1000]), draw.choice([None, 0.3, 0.8, 1])
        measured = "" if share is None else f" measured={rate * share}"
        lines.append((f"{a} {(a + draw.randrange(1, gpus)) % gpus} gbps={rate}", measured))
    common: dict[str, object] = {
        "name": "server", "kind": "network", "planes": 1, "link_gbps": OWN, "link_latency_ns": 100,
        "input_latency_ns": 0, "output_latency_ns": 0, "packet_bytes": 4096, "buffer_bytes": 1 << 22,
        "send_machines": 1, "send_machines_per": "link",
    }  # fmt: skip
    topology = {"name": "graph", "accelerators": gpus}
    switch = {"multicast": True, "operators": ["sum"], "pulls": draw.random() < 0.5}
    starts = {"launch_ns": draw.randint(1, 3000), "signal_ns": draw.randint(0, 3000)}
    blocks = {"thread_block": {"simple": {"gb_per_second": draw.uniform(1, 40), "message_ns": draw.randint(0, 4000)}}}
    own = {"measured_gbps": OWN * draw.choice([0.3, 0.5, 0.95])}
    of_switch = {"measured_share": draw.choice([0.5, 0.9])} if draw.random() < 0.5 else {}
    stated = {
        **common, **starts, **own, **(blocks if draw.random() < 0.5 else {}),
        "topology": {**topology, "edges": "".join(f"{a}{b}\n" for a, b in lines)},
        "switches": [{**switch, **of_switch}],
    }  # fmt: skip
    sheet = {**common, "topology": {**topology, "edges": "".join(f"{a}\n" for a, _ in lines)}, "switches": [switch]}
    return un.machine(stated), un.machine(sheet)


@pytest.mark.parametrize("seed", range(12))
def test_no_time_is_below_the_bound_of_the_data_sheet(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    machine, sheet = server(draw)
    kind, elements = draw.choice(KINDS), draw.choice([8, 50_000])
    plan, other = (un.plan(kind, on, elements=elements) for on in (machine, sheet))
    assert plan.bound is not None
    assert other.bound is not None
    assert plan.bound["seconds"] == pytest.approx(other.bound["seconds"], rel=1e-9)
    least = plan.bound["seconds"] * (1 - 1e-9)
    assert plan.predicted["seconds"] >= least
    assert un.simulate(plan.schedule).seconds >= least
    assert (plan.report()["rates"], other.report()["rates"]) == ("measured", "data-sheet")
    (tmp_path / "m.toml").write_text(machine.to_toml())
    (tmp_path / "s.toml").write_text(sheet.to_toml())
    prices = str(tmp_path / "bound.json")
    words = (kind, "--machine", str(tmp_path / "m.toml"), "--elements", str(elements), "--certificate", prices)
    assert call("plan", *words).code == 0
    for file in ("m.toml", "s.toml"):
        assert call("verify", "--certificate", prices, "--machine", str(tmp_path / file)).code == 0


@pytest.mark.parametrize("seed", range(12))
def test_the_data_sheet_is_the_machine_without_what_was_measured(seed: int) -> None:
    draw = random.Random(100 + seed)
    machine, sheet = server(draw)
    assert machine.data_sheet().describe() == sheet.describe()
    blocks = un.Machine.from_toml(
        f"{sheet.to_toml()}\n[thread_block.ll]\nstart_ns = {draw.randint(1, 900)}\n", "blocks"
    )
    assert blocks.rates() == "measured"
    assert blocks.data_sheet().describe() == sheet.describe()
    kind, elements = draw.choice(KINDS), draw.choice([8, 50_000])
    by_model, alone = (
        un.plan(kind, machine, elements=elements, model="data-sheet"),
        un.plan(kind, sheet, elements=elements),
    )
    assert by_model.predicted["seconds"] == alone.predicted["seconds"]
    assert by_model.report()["rates"] == "data-sheet"
    measured = un.plan(kind, machine, elements=elements).schedule
    assert un.simulate(measured, model="data-sheet").seconds < un.simulate(measured).seconds


@pytest.mark.parametrize(("gpus", "pulls", "share"), [(2, True, 1.0), (5, True, 0.7), (8, True, 0.85), (4, False, 0.5)])
def test_a_pulled_sum_crosses_the_links_of_who_asks_once_more(gpus: int, pulls: bool, share: float) -> None:
    """A vector of S bytes puts S (1 + 1/n) bytes on each link, up and down, if sums are pulled, or else S.

    A link has ``share`` of 50 bytes a nanosecond. A pulled sum goes to the GPU that requests it, and back.
    """
    machine = un.machine(
        {
            "name": "star", "kind": "network", "planes": 1, "link_gbps": OWN, "link_latency_ns": 100,
            "input_latency_ns": 0, "output_latency_ns": 0, "packet_bytes": 4096, "buffer_bytes": 1 << 22,
            "send_machines": 1,
            "topology": {"name": "graph", "accelerators": gpus, "edges": [[n, gpus] for n in range(gpus)]},
            "switches": [{"multicast": True, "operators": ["sum"], "pulls": pulls, "measured_share": share}],
        }
    )  # fmt: skip
    params = {"embeddings": "1", "chunks": "1"}
    plan = un.plan("allreduce", machine, elements=100_000, algorithm="in-network", params=params)
    expected = 2 * (4e5 * (1 + 1 / gpus * pulls) / share / 50 + 100 * (1 + pulls)) * 1e-9
    assert plan.predicted["seconds"] == pytest.approx(expected, rel=1e-3)
    assert un.simulate(plan.schedule).seconds == pytest.approx(expected, rel=1e-3)


def test_rates_above_the_data_sheet_are_refused() -> None:
    text = un.machine("dgx-a100-x2").to_toml()
    for old, new, words in (
        (
            "measured_gbps = 1920.0",
            "measured_gbps = 2401.0",
            "measured_gbps is 2401.0; accepted is a number above 0 and at",
        ),
        ("gbps=200 measured=192", "gbps=200 measured=201", "measured= of a cable at most its gbps="),
    ):
        assert old in text
        with pytest.raises(un.InputError, match=words):
            un.Machine.from_toml(text.replace(old, new), "file")


def test_every_command_with_times_takes_the_data_sheet(tmp_path: Path) -> None:
    on: tuple[Any, ...] = ("--machine", "dgx-a100", "--bytes", "1MiB")
    for command, words in (
        ("plan", ("allreduce", "--algorithm", "ring", *on)),
        ("simulate", ("allreduce", "--algorithm", "ring", *on)),
        ("workload", ("--from", program(tmp_path), "--machine", "dgx-a100")),
    ):
        measured, sheet = json_of(command, *words), json_of(command, *words, "--model", "data-sheet")
        assert (measured["rates"], sheet["rates"]) == ("measured", "data-sheet")
        seconds = [
            report["predicted"]["seconds"] if command == "plan" else report["seconds"] for report in (measured, sheet)
        ]
        assert seconds[0] > seconds[1]
    assert json_of("bound", "allreduce", *on)["rates"] == "data-sheet"
    assert un.machine("archer").rates() is None
    with pytest.raises(un.InputError, match="data-sheet is a model of networks"):
        un.machine("archer").data_sheet()


def program(folder: Path) -> str:
    """Writes a GOAL program of one message."""
    file = folder / "send.goal"
    file.write_text("num_ranks 2\nrank 0 {\nl1: send 1000000b to 1\n}\nrank 1 {\nl1: recv 1000000b from 0\n}\n")
    return str(file)


def test_a_preset_with_another_name_is_named() -> None:
    with pytest.raises(un.InputError, match="the preset 'dgx-h100-kernels' is 'dgx-h100' now"):
        un.machine("dgx-h100-kernels")


def test_groups_of_one_box_reduce_side_by_side(tmp_path: Path) -> None:
    """Two groups of 4 in an H100 box use separate links, and the NVSwitches sum as fast as bytes arrive."""
    box = un.machine("dgx-h100").describe()
    # At their full rate, switches are faster than trees among 4 GPUs.
    machine = {**box, "switches": [{**box["switches"][0], "measured_share": 1.0}]}
    text = (
        "HloModule m, num_partitions=8\n\n%add (a: f32[], b: f32[]) -> f32[] {\n  %a = f32[] parameter(0)\n"
        "  %b = f32[] parameter(1)\n  ROOT %s = f32[] add(%a, %b)\n}\n\n"
        "ENTRY %main (p: f32[4194304]) -> f32[4194304] {\n"
        "  %p = f32[4194304]{0} parameter(0)\n  ROOT %r = f32[4194304]{0} all-reduce(%p), channel_id=1, "
        "replica_groups=GROUPS, use_global_device_ids=true, to_apply=%add\n}\n"
    )
    rows = []
    for groups in ("{{0,1,2,3},{4,5,6,7}}", "{{0,1,2,3}}"):
        (tmp_path / "m.hlo").write_text(text.replace("GROUPS", groups))
        rows.append(un.step(tmp_path / "m.hlo", machine)["collectives"][0])
    assert [row["algorithm"] for row in rows] == ["in-network", "in-network"]
    assert rows[0]["seconds"] == pytest.approx(rows[1]["seconds"], rel=1e-3)
