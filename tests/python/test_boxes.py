"""Boxes of GPUs of one kind: more of them never take less time, and a dump of a box is the box of the preset."""

import random
import re
from pathlib import Path

import pytest
import unisono as un
from unisono.planning.libraries import library_choice

from .conftest import SOAK, written

#: Forests are heuristic. The forest of more ranks may be better by this share.
SLACK = 0.005
#: The interfaces of two boxes carry a part of a long broadcast that NVLinks carry on one box.
OVER_INTERFACES = 0.02


@pytest.mark.parametrize("kind", ["allreduce", "broadcast"])
@pytest.mark.parametrize("seed", range(40 if SOAK else 6))
def test_more_boxes_never_take_less_time(seed: int, kind: str) -> None:
    draw = random.Random(f"boxes {seed}")
    # One box of A100 has no interfaces, which carry a tenth of what its NVLinks do; nothing sums on the way there.
    name, fewer = [("dgx-h100", 1), ("dgx-h100", 2), ("dgx-a100", 2)][seed % 3]
    size = 4 * int(2 ** draw.uniform(1, 28 if SOAK else 26))
    plans = [un.plan(kind, un.machine(name, nodes=boxes), bytes=size) for boxes in (fewer, fewer + 1)]
    less, more = (plan.predicted["seconds"] for plan in plans)
    slack = OVER_INTERFACES if (kind, fewer) == ("broadcast", 1) else SLACK
    assert more >= less * (1 - slack), (name, fewer, size)
    if size <= 1 << 16:
        less, more = (un.simulate(plan.schedule).seconds for plan in plans)
        assert more >= less * (1 - SLACK), (name, fewer, size)


def test_a_gpu_that_requests_a_sum_sends_its_own_operand_too() -> None:
    """If switches pull operands, 1 + 1/n of a long vector crosses each link of n GPUs, on one box and on two boxes."""
    size = 256 << 20
    one, two = (
        un.plan("allreduce", machine, bytes=size, algorithm="in-network", model="data-sheet")
        for machine in (un.machine("dgx-h100", nodes=boxes) for boxes in (1, 2))
    )
    least = size / 450e9 * (1 + 1 / 8)
    assert least <= one.predicted["seconds"] <= two.predicted["seconds"] < 1.2 * least


def test_scratch_memory_beyond_its_numbers_leaves_a_candidate_out() -> None:
    """Blocks of all ranks have more elements than an index, and other algorithms hold fewer."""
    planned = un.plan("reduce-scatter", un.machine("dgx-h100", nodes=2), bytes="700MiB")
    assert "circulant" not in {candidate["algorithm"] for candidate in planned.candidates}


def dumped(preset: str, each: int) -> str:
    """Returns a box of ``preset`` as NCCL dumps it, with ``each`` GPUs and as many interfaces on a PCIe switch."""
    machine = un.machine(preset, nodes=2).describe()
    uplink = machine["topology"]["uplinks"].splitlines()[0]
    speed = int(re.search(r"gbps=(\d+)", uplink)[1]) * 1000  # type: ignore[index]
    gpu, sm, vendor = machine["gpu"], {"ampere": 80, "hopper": 90, "blackwell": 100}, {"intel": "GenuineIntel"}
    link = 'class="{}" link_speed="{}" link_width="16"'
    pcie = {200: "16.0 GT/s PCIe", 400: "32.0 GT/s PCIe"}.get(speed // 1000, "64.0 GT/s PCIe")
    cpus = []
    for numa in range(2):
        switches = []
        for at in range(4 * numa, 4 * numa + 4, each):
            inside = ""
            for one in range(at, at + each):
                inside += f"""<pci busid="0000:1{one}:00.0" {link.format("0x030200", pcie)}>
<gpu dev="{one}" sm="{sm[gpu["architecture"]]}" rank="{one}" gdr="1">
<nvlink target="0000:c4:00.0" count="{gpu["nvlinks"]}" tclass="0x068000"/></gpu></pci>
<pci busid="0000:5{one}:00.0" {link.format("0x020700", pcie)}>
<nic><net name="n{one}" dev="{one}" speed="{speed}" port="1" gdr="1"/></nic></pci>"""
            switches.append(f'<pci busid="0000:0{at}:00.0" {link.format("0x060400", pcie)}>{inside}</pci>')
        maker = f'vendor="{vendor.get(gpu["cpu"], "AuthenticAMD")}" familyid="6" modelid="143"'
        cpus.append(f'<cpu numaid="{numa}" arch="x86_64" {maker}>{"".join(switches)}</cpu>')
    return f'<system version="1">{"".join(cpus)}</system>'


@pytest.mark.parametrize("seed", range(48 if SOAK else 8))
def test_an_import_takes_the_time_of_the_preset_of_its_box(seed: int, tmp_path: Path) -> None:
    """The preset has other latencies on the way between boxes, which are the same in total."""
    draw = random.Random(f"import {seed}")
    preset, boxes = ["dgx-a100", "dgx-h100", "dgx-h200", "dgx-b200"][seed % 4], 2 + seed % 2 * SOAK
    kind = draw.choice(["alltoall", "allgather", "allreduce", "reduce-scatter", "broadcast", "reduce"])
    size = 4 * int(2 ** draw.uniform(1, 26 if SOAK else 20))
    file = written(tmp_path / "box.xml", dumped(preset, draw.choice([1, 2, 4])))
    machines = un.machine(preset, nodes=boxes), un.import_machine(file, boxes=boxes)
    first, second = (un.plan(kind, machine, bytes=size, as_library="nccl") for machine in machines)
    said = preset, boxes, kind, size
    assert second.report()["library"]["seconds"] == pytest.approx(first.report()["library"]["seconds"], rel=0.1), said
    assert second.predicted["seconds"] == pytest.approx(first.predicted["seconds"], rel=0.15), said


def test_no_attribute_that_may_change_times_is_dropped_without_a_note(tmp_path: Path) -> None:
    file, text = tmp_path / "box.xml", dumped("dgx-h100", 2)

    def notes(of: str) -> str:
        file.write_text(of)
        return " ".join(un.import_machine(file, boxes=2).describe()["notes"])

    assert "not read" not in notes(text)
    for element, attribute in (("net", "rail"), ("net", "latency"), ("net", "coll"), ("gpu", "mode"), ("cpu", "half")):
        changed = text.replace(f"<{element} ", f'<{element} {attribute}="1" ', 1)
        assert f"{attribute} of <{element}> is not read" in notes(changed)
    assert "network interface n3 states no gdr" in notes(re.sub(r'(name="n3"[^>]*) gdr="1"', r"\1", text))
    assert "all 8 GPUs state no gdr" in notes(re.sub(r'(<gpu [^>]*) gdr="1"', r"\1", text))


@pytest.mark.parametrize("kind", ["allgather", "allreduce", "alltoall", "broadcast", "reduce", "reduce-scatter"])
def test_no_algorithm_of_nccl_takes_less_time_on_more_boxes(kind: str) -> None:
    """NCCL shortens the chunks of an NVLS tree from four boxes on (``ncclNvlsTuning``), so that the tree fills sooner.

    NCCL assumes that a tree by LL128 reaches 7/9 of its rate on one box, but 120/128 on several boxes.
    """
    draw = random.Random(f"nccl {kind}")
    for preset in ("dgx-a100", "dgx-b200", "dgx-h100"):
        for size in (4 * int(2 ** draw.uniform(0, 26)) for _ in range(8 if SOAK else 2)):
            before: dict[tuple[str, str], float] = {}
            for boxes in range(1, 6 if SOAK or kind != "alltoall" else 4):
                found = library_choice(kind, un.machine(preset, nodes=boxes), size // 4)
                times = {(one["algorithm"], one["protocol"]): one["seconds"] for one in found["choices"]}
                times |= {} if times else {("sendrecv", ""): found["seconds"] or 0.0}
                for one, seconds in times.items():
                    slack = 0.05 if one[0] == "nvls_tree" and boxes == 4 else 1e-6
                    if one == ("tree", "ll128") and boxes == 2:
                        continue
                    assert seconds >= before.get(one, 0.0) * (1 - slack), (preset, kind, size, boxes, one)
                before = times


@pytest.mark.parametrize("seed", range(40 if SOAK else 8))
def test_no_library_takes_less_time_than_the_bound(seed: int) -> None:
    """The links of the machine may be slower than every rate of NCCL's search."""
    draw = random.Random(f"slow {seed}")
    kind = draw.choice(["allgather", "allreduce", "alltoall", "broadcast", "reduce", "reduce-scatter"])
    described = un.machine(draw.choice(["dgx-h100", "dgx-a100"]), nodes=2).describe()
    topology = described["topology"]
    gbps, ns = 10 ** draw.uniform(-2, 2), draw.choice([650, 10_000])
    for key in ("inside", "uplinks"):
        topology[key] = re.sub(r"gbps=\S+( measured=\S+)? ns=\S+", f"gbps={gbps} ns={ns}", topology[key])
    machine = un.machine(described)
    size = 4 * int(2 ** draw.uniform(0, 28))
    (least,) = [max(one["seconds"] for one in un.bounds(kind, machine, bytes=size) if one["standing"] == "bound")]
    found = library_choice(kind, machine, size // 4)
    for seconds in (found["seconds"] or 0.0, *(one["seconds"] for one in found["choices"])):
        assert seconds >= least * (1 - 1e-9), (kind, size, gbps, ns)


@pytest.mark.parametrize("library", ["nccl", "NCCL", "rccl"])
def test_a_call_without_elements_takes_no_time(library: str) -> None:
    for kind in ("allreduce", "allgather", "alltoall"):
        made = un.plan(kind, "mi300x" if library == "rccl" else "dgx-h100", bytes=0, as_library=library)
        found = made.report()["library"]
        assert (found["algorithm"], found["seconds"], found["choices"]) == ("none", 0.0, [])
