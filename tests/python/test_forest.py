"""Forests on networks: plans, certificates of bounds, and what is refused."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
import unisono as un

from .bound_checker import bound_seconds
from .conftest import call

#: Cables with their Gbit/s among four accelerators and two switches.
CABLES = [(0, 4, 300), (1, 4, 300), (2, 5, 300), (3, 5, 300), (4, 5, 100), (0, 1, 50), (2, 3, 50)]


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    lines = "\n".join(f"{a} {b} gbps={rate}" for a, b, rate in CABLES)
    text = (
        'name = "two-boxes"\nkind = "network"\nplanes = 1\nlink_gbps = 100\nlink_latency_ns = 100\n'
        "input_latency_ns = 0\noutput_latency_ns = 0\npacket_bytes = 4096\nbuffer_bytes = 65536\n"
        f"[topology]\nname = \"graph\"\naccelerators = 4\nedges = '''\n{lines}\n'''\n"
    )
    file = tmp_path / "two-boxes.toml"
    file.write_text(text)
    return file


@pytest.mark.parametrize("collective", ["allgather", "reduce_scatter", "allreduce", "broadcast", "reduce"])
def test_a_certificate_proves_the_bound(collective: str, machine: Path, tmp_path: Path) -> None:
    plan = un.plan(collective, machine, bytes="1MiB", algorithm="forest")
    assert plan.schedule.verify().holds
    cut = next(bound for bound in un.bounds(collective, machine, bytes="1MiB") if bound["name"] == "cut")
    file = tmp_path / "bound.json"
    file.write_text(plan.certificate())
    found = un.check_bound(file, machine)
    assert found["holds"]
    assert found["seconds"] == pytest.approx(cut["seconds"])
    again = bound_seconds(file.read_text(), [(a, b, rate * 10**9) for a, b, rate in CABLES], 1)
    assert float(again) == pytest.approx(cut["seconds"])
    assert un.simulate(plan.schedule).seconds >= cut["seconds"]


def test_certificates_on_the_command_line(machine: Path, tmp_path: Path) -> None:
    file = tmp_path / "bound.json"
    done = call("plan", "allgather", "--machine", str(machine), "--bytes", "1MiB", "--certificate", str(file))
    assert done.code == 0
    assert f"wrote {file}" in done.out
    done = call("verify", "--certificate", str(file), "--machine", str(machine))
    assert done.code == 0
    assert done.out.startswith("accepted: allgather on 4 ranks takes at least")
    # For another network, and with a bound that the prices do not prove.
    assert call("verify", "--certificate", str(file), "--machine", "torus2d-small").code == 1
    document = json.loads(file.read_text())
    document["seconds"] *= 1.01
    file.write_text(json.dumps(document))
    done = call("verify", "--certificate", str(file), "--machine", str(machine), "--json")
    assert done.code == 1
    assert done.json["holds"] is False


@pytest.mark.parametrize("text", ["", "{}", '{"format": "unisono-bound 2"}', "prices"])
def test_what_is_no_certificate_is_refused(text: str, machine: Path, tmp_path: Path) -> None:
    file = tmp_path / "bound.json"
    file.write_text(text)
    done = call("verify", "--certificate", str(file), "--machine", str(machine))
    assert done.code == 2
    assert done.err.count("\n") == 1
    with pytest.raises(un.InputError):
        un.check_bound(file, machine)


def test_forests_need_links() -> None:
    with pytest.raises(un.UnsupportedError, match="the links of a network"):
        un.plan("allgather", "archer", shape=8, elements=4, algorithm="forest")
    with pytest.raises(un.InputError, match="certificate"):
        un.plan("allgather", "archer", shape=8, elements=4).certificate()
    with pytest.raises(un.UnsupportedError, match="messages away"):
        un.plan("allgather", "torus2d-small", elements=4, algorithm="forest", params={"depth": "3"})


def test_a_torus_sends_near_its_bound() -> None:
    machine = un.machine("torus2d-small")
    plan = un.plan("allgather", machine, bytes="16KiB")
    assert plan.algorithm == "forest"
    assert plan.ratio is not None
    assert plan.ratio < 1.02


@pytest.mark.parametrize("collective", ["allgather", "reduce-scatter", "allreduce", "broadcast", "reduce"])
def test_trees_reach_every_rank_over_links(collective: str, machine: Path) -> None:
    plan = un.plan(collective, machine, bytes="1MiB", algorithm="forest")
    forest = plan.forest()
    links = {(a, b) for a, b, _ in forest["links"]}
    assert sum(tree["chunks"] for tree in forest["trees"]) == forest["chunks"]
    for tree in forest["trees"]:
        reached = {forest["places"][forest["root"]]}
        for way in tree["messages"]:
            assert way[0] in reached
            assert set(pairwise(way)) <= links
            reached.add(way[-1])
        assert reached == set(forest["places"])


def test_a_front_falls_with_depth_and_has_the_plan(machine: Path) -> None:
    plan = un.plan("broadcast", machine, bytes="1MiB", algorithm="forest", params={"depth": "3", "chunks": "16"})
    front = plan.front()
    fluid = [point["fluid_seconds"] or 0.0 for point in front["points"]]
    assert all(later <= earlier * (1 + 1e-9) for earlier, later in pairwise(fluid))
    assert front["fluid_seconds"] == pytest.approx(fluid[-1], rel=2e-3)
    times = {(point["depth"], count): time for point in front["points"] for count, time in point["forests"]}
    assert times.get((3, 16), plan.predicted["seconds"]) == pytest.approx(plan.predicted["seconds"])
    cut = next(bound for bound in un.bounds("broadcast", machine, bytes="1MiB") if bound["name"] == "cut")
    assert min(fluid) >= cut["seconds"] * (1 - 1e-9)


@pytest.mark.parametrize(("form", "begin"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_pictures_of_plans(form: str, begin: bytes, machine: Path, tmp_path: Path) -> None:
    pictures = []
    for name in ("a", "b"):
        file = tmp_path / f"{name}.{form}"
        words = ("plan", "allgather", "--machine", str(machine), "--bytes", "1MiB", "--algorithm", "forest")
        done = call(*words, "--plot", str(file))
        assert (done.code, done.err) == (0, "")
        assert f"wrote {file}" in done.out
        pictures.append(file.read_bytes())
    assert pictures[0].startswith(begin)
    assert pictures[0] == pictures[1]


@pytest.mark.parametrize(
    ("words", "note"),
    [
        (("--machine", "archer", "--ranks", "4"), "is no forest"),
        (("--machine", "torus2d-small", "--shape", "32x32", "--algorithm", "forest"), "shows only times"),
        (("--machine", "torus2d-small", "--shape", "4x4", "--algorithm", "ring"), "is no forest"),
    ],
)
def test_pictures_say_what_they_leave_out(words: tuple[str, ...], note: str, tmp_path: Path) -> None:
    file = tmp_path / "plan.png"
    done = call("plan", "allgather", "--bytes", "16KiB", *words, "--plot", str(file))
    assert done.code == 0
    assert note in done.err
    assert file.read_bytes().startswith(b"\x89PNG")
    assert call("plan", "allgather", "--bytes", "16KiB", *words, "--plot", "plan.gif").code == 2
