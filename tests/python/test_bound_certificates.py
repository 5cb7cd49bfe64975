"""Certificates of bounds belong to the part of the machine that the plan names."""

import json
from pathlib import Path

import pytest
import unisono as un

from .bound_checker import bound_seconds
from .conftest import SOAK, call, network_text, refusal, written

#: Gbit/s of the cable from an accelerator to the switch of its box, and from that switch to the outer switch.
INSIDE, OUTSIDE = 300, 100
BOXES = f"""
name = "boxes"
boxes = 2
accelerators = 2
inside = '''
0 2 gbps={INSIDE}
1 2 gbps={INSIDE}
0 1 gbps={INSIDE}
'''
uplinks = '''
2 0 gbps={OUTSIDE}
'''
"""
#: Options that name a machine, with the number of boxes and the pairs of nodes with failed cables.
MACHINES: list[tuple[list[str], int, list[tuple[int, int]]]] = [
    ([], 2, []),
    (["--nodes", "3"], 3, []),
    (["--fail", "0-1"], 2, [(0, 1)]),
    (["--fail", "2-3", "--fail", "0-1"], 2, [(0, 1), (2, 3)]),
    (["--nodes", "3", "--fail", "0-1"], 3, [(0, 1)]),
]
#: Options that choose ranks, with their accelerators; None means all.
PARTS: list[tuple[list[str], list[int] | None]] = [
    ([], None),
    (["--ranks", "3"], [0, 1, 2]),
    (["--shape", "2"], [0, 1]),
]


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    return written(tmp_path / "pairs.toml", network_text(BOXES, "pairs", gbps=100, ns=(100, 0, 0), packet_bytes=4096))


def cables(boxes: int, failed: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Returns the cables in bit/s; nodes are numbered: accelerators, then the switch of each box, the outer switch."""
    listed = []
    for box in range(boxes):
        first, switch = 2 * box, 2 * boxes + box
        pairs = [(first, switch, INSIDE), (first + 1, switch, INSIDE), (first, first + 1, INSIDE)]
        listed += [*pairs, (switch, 3 * boxes, OUTSIDE)]
    return [(a, b, rate * 10**9) for a, b, rate in listed if (a, b) not in failed]


@pytest.mark.parametrize("collective", ["allgather", "broadcast", "allreduce", "alltoall", "gather", "scan", "scatter"])
def test_a_certificate_is_accepted_with_the_options_of_its_plan_alone(
    collective: str, pairs: Path, tmp_path: Path
) -> None:
    file = tmp_path / "bound.json"
    cases = [(machine, part) for machine in MACHINES for part in PARTS]
    for at, ((machine, boxes, failed), (part, places)) in enumerate(cases):
        options = ["--machine", str(pairs), *machine, *part]
        made = call("plan", collective, *options, "--bytes", "1MiB", "--certificate", str(file), "--json")
        assert made.code == 0, made.err
        stated = made.json["certificate"]["seconds"]
        again = bound_seconds(file.read_text(), cables(boxes, failed), 1)
        assert float(again) == pytest.approx(stated), options
        # The certificate is checked with a quarter of all cases, one of them that of the plan; in `make soak` with all.
        others = cases if SOAK else cases[at % 4 :: 4]
        for (other, other_boxes, other_failed), (other_part, other_places) in others:
            found = call("verify", "--certificate", str(file), "--machine", str(pairs), *other, *other_part, "--json")
            same_machine = (boxes, failed) == (other_boxes, other_failed)
            same_part = other_places is None or other_places == (places or list(range(2 * boxes)))
            assert found.code == (0 if same_machine and same_part else 1), (options, other, other_part, found.out)
            assert found.json["holds"] is (found.code == 0)
            assert found.json["seconds"] == (stated if found.json["holds"] else None)


def test_a_refusal_names_the_boxes_and_the_part(pairs: Path, tmp_path: Path) -> None:
    file = tmp_path / "bound.json"
    options = ["--machine", str(pairs), "--nodes", "3", "--ranks", "4"]
    assert call("plan", "allgather", *options, "--bytes", "64", "--certificate", str(file)).code == 0
    done = call("verify", "--certificate", str(file), *options)
    assert done.out.startswith("accepted: allgather of 64 bytes on 4 ranks of pairs takes at least ")
    assert "boxes   3\nplaces  0 to 3\n" in done.out
    done = call("verify", "--certificate", str(file), "--machine", str(pairs))
    assert "it is for pairs of 3 boxes, not for pairs of 2 boxes" in done.out
    done = call("verify", "--certificate", str(file), *options[:4], "--shape", "2")
    assert "its 4 ranks are not those of shape 2 of pairs" in done.out
    assert "--subset" in refusal("verify", "--certificate", str(file), *options, "--subset", "0")


def test_the_part_of_a_machine_is_compared_in_python(pairs: Path, tmp_path: Path) -> None:
    file = tmp_path / "bound.json"
    machine = un.machine("hx2mesh-small", (4, 4))
    file.write_text(un.plan("allgather", machine, bytes=64).certificate())
    assert un.check_bound(file, machine)["holds"]
    assert un.check_bound(file, "hx2mesh-small")["holds"]
    other = un.check_bound(file, un.machine("hx2mesh-small", (2, 8)))
    assert other["reason"] == "its 16 ranks are not those of shape 2x8 of hx2mesh-small"
    assert un.check_bound(file, pairs)["holds"] is False


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
def test_a_certificate_of_a_barrier_is_of_one_element(dtype: str, pairs: Path, tmp_path: Path) -> None:
    file = tmp_path / "bound.json"
    options = ["--machine", str(pairs)]
    assert call("plan", "barrier", *options, "--dtype", dtype, "--certificate", str(file)).code == 0
    assert call("verify", "--certificate", str(file), *options).code == 0
    stated = json.loads(file.read_text())
    for more in (9, 1 << 20, 2**64 - 1):
        file.write_text(json.dumps(stated | {"bytes": more}))
        refused = call("verify", "--certificate", str(file), *options)
        assert refused.code == 1
        assert f"a barrier has one element, and no element has {more} bytes" in refused.out
