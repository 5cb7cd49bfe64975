"""A machine is made in one step from a whole request, in Python, in a file and on the command line."""

import random
import tomllib
from pathlib import Path
from typing import Any

import pytest
import unisono as un

from .conftest import call, json_of, refusal

#: Presets of boxes, whose number a user can request.
BOXES = ["dgx-a100", "dgx-a100-x2", "dgx-h100", "dgx-h100-x8", "mi250"]


def written(preset: str, own: dict[str, Any], path: Path) -> Path:
    """Writes the file of a preset with changed values of keys."""
    lines = un.preset_toml(preset).splitlines()
    for key, value in own.items():
        lines = [line for line in lines if not line.startswith(f"{key} =")]
        lines.insert(next(at for at, line in enumerate(lines) if line.startswith("kind")), f"{key} = {value!r}")
    path.write_text("\n".join(lines) + "\n")
    return path


def a_failure(draw: random.Random, path: Path, nodes: int) -> list[str]:
    """Draws the failure of a cable or accelerator of the machine with ``nodes`` boxes."""
    report = json_of("topology", str(path), "--nodes", str(nodes), "--cables")
    cables = [f"{cable['a']}-{cable['b']}" for cable in report["cable_list"]]
    # Without its cable to the switch, a GPU still has its network interface, or is cut off.
    return [draw.choice([*cables, *map(str, range(report["accelerators"]))])]


@pytest.mark.parametrize("seed", range(8))
def test_all_ways_of_asking_make_one_machine(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    preset, nodes = draw.choice(BOXES), draw.randint(2, 4)
    rate = draw.randint(1, 4000)
    own = {"link_gbps": rate, "measured_gbps": rate * 0.8, "signal_ns": draw.randint(0, 999)}
    own["planes"] = draw.randint(1, 2)
    path = written(preset, own, tmp_path / "mine.toml")
    fail = a_failure(draw, path, nodes)
    made = un.machine(path, nodes=nodes, failed=fail)
    about = made.describe()
    assert {key: about[key] for key in own} == own
    assert about["failed"] == fail
    assert un.machine(path, nodes=nodes).topology["accelerators"] == about["topology"]["accelerators"] * nodes  # type: ignore[index]
    described = tomllib.loads(path.read_text())
    sized = un.machine(path, nodes=nodes).describe()
    ways = {
        "a dictionary": un.machine(described, nodes=nodes, failed=fail),
        "one after the other": un.machine(un.machine(path, nodes=nodes), failed=fail),
        "failures in the description": un.machine({**sized, "failed": fail}),
        "the same number of boxes again": un.machine({**sized, "failed": fail}, nodes=nodes),
        "another number first": un.machine(un.machine(path, nodes=nodes + 1), nodes=nodes, failed=fail),
        "its own file": un.machine(made.describe()),
    }
    changed = un.machine(preset, nodes=nodes)
    for key, value in own.items():
        changed = changed.changed(key, str(value))
    ways["values changed last"] = un.machine(changed, failed=fail)
    for way, other in ways.items():
        assert other.to_toml() == made.to_toml(), way
    on_the_command_line = json_of("topology", str(path), "--fail", *fail, "--nodes", str(nodes))
    # The command also names what failed, and describes the network without failures.
    whole = on_the_command_line.pop("whole")
    assert len(on_the_command_line.pop("failed_names")) == len(fail)
    assert on_the_command_line == made.topology
    without = un.machine(path, nodes=nodes).topology
    assert without is not None
    assert whole == {key: without[key] for key in ("family", "accelerators", "extents")}
    # Numbers of nodes, and thus failures, depend on the number of boxes.
    with pytest.raises(un.InputError, match="states failures"):
        un.machine({**sized, "failed": fail}, nodes=nodes + 1)


@pytest.mark.parametrize("machine", ["dgx-h100"])
def test_a_gpu_that_failed_is_left_out_of_several_boxes(machine: str) -> None:
    on = ["--machine", machine, "--nodes", "2", "--bytes", "1MiB"]
    assert json_of("bound", "allreduce", *on)["shape"] == [2, 8]
    assert json_of("bound", "allreduce", *on, "--fail", "3")["shape"] == [15]
    # Interface 17 of GPU 0 exists in two boxes only.
    assert json_of("bound", "allreduce", *on, "--fail", "0-17")["shape"] == [2, 8]
    assert call("bound", "allreduce", *on[:2], "--bytes", "1MiB", "--fail", "0-17").code == 2


def test_two_boxes_of_slow_links_are_not_faster_than_one(tmp_path: Path) -> None:
    path = written("dgx-h100", {"link_gbps": 200, "measured_gbps": 164.8}, tmp_path / "mine.toml")
    seconds = [
        un.plan("allreduce", un.machine(path, nodes=nodes), bytes="4MiB", algorithm="ring").predicted["seconds"]
        for nodes in (1, 2)
    ]
    assert seconds[1] > seconds[0]


def test_the_shape_is_of_the_machine_that_was_asked_for() -> None:
    assert un.machine("dgx-h100", 16, nodes=2).shape == (16,)
    ready = un.machine("dgx-h100", 8)
    assert un.machine(ready, 8, nodes=2).shape == (8,)
    assert un.machine(ready, nodes=2).shape == (8,)
    assert un.machine("piuma", nodes=2, subset=[1]).changed("core_latency_ns", "6").shape == (128,)


@pytest.mark.parametrize(
    "preset", [one["name"] for one in un.machine_presets() if un.machine(one["name"]).describe().get("cluster")]
)
def test_more_ranks_than_a_box_has_name_the_boxes_that_have_them(preset: str) -> None:
    shape = un.machine(preset).shape
    assert shape is not None
    (size,) = shape
    for ranks in (size + 1, 2 * size):
        with pytest.raises(un.InputError, match=r"or for 2 boxes: --nodes 2") as refused:
            un.bounds("allreduce", un.machine(preset, ranks), elements=1)
        assert f"{ranks} ranks do not fit on {preset}" in str(refused.value)
        assert un.machine(preset, ranks, nodes=2).shape == (ranks,)
    with pytest.raises(un.InputError) as alone:
        un.bounds("allreduce", un.machine("mi300x", 16), elements=1)
    assert "--nodes" not in str(alone.value)


def test_one_box_without_a_cluster_says_what_is_missing() -> None:
    refused = refusal("plan", "allreduce", "--machine", "mi300x", "--nodes", "2", "--bytes", "1MiB")
    assert "mi300x is one box, and its description does not say how several are joined" in refused
