"""Forests on networks: plans, certificates of bounds, and refusals."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
import unisono as un

from .bound_checker import bound_seconds
from .conftest import SOAK, call, four_accelerators, network_text, refusal, text_of, written

#: Cables with their Gbit/s among four accelerators and two switches.
CABLES = [(0, 4, 300), (1, 4, 300), (2, 5, 300), (3, 5, 300), (4, 5, 100), (0, 1, 50), (2, 3, 50)]


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    return four_accelerators(tmp_path / "two-boxes.toml", CABLES)


@pytest.mark.parametrize("collective", ["allgather", "reduce_scatter", "allreduce", "broadcast", "reduce"])
def test_a_certificate_proves_the_bound(collective: str, machine: Path, tmp_path: Path) -> None:
    plan = un.plan(collective, machine, bytes="1MiB", algorithm="forest")
    assert plan.schedule.verify().holds
    cut = next(bound for bound in un.bounds(collective, machine, bytes="1MiB") if bound["name"] == "cut")
    file = written(tmp_path / "bound.json", plan.certificate())
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
    text = text_of("verify", "--certificate", str(file), "--machine", str(machine))
    assert text.startswith("accepted: allgather of 1048576 bytes on 4 ranks of two-boxes takes at least 167.772 µs")
    assert "places  0 to 3" in text
    # The certificate is refused for another network, and with a larger bound than its prices prove.
    assert call("verify", "--certificate", str(file), "--machine", "torus2d-small").code == 1
    document = json.loads(file.read_text())
    document["seconds"] *= 1.01
    file.write_text(json.dumps(document))
    done = call("verify", "--certificate", str(file), "--machine", str(machine), "--json")
    assert done.code == 1
    assert done.json["holds"] is False


def test_a_certificate_belongs_to_a_machine_with_its_failures(machine: Path, tmp_path: Path) -> None:
    file = tmp_path / "bound.json"
    options = ["--machine", str(machine), "--fail", "1-0", "--fail", "2-3"]
    made = call("plan", "broadcast", *options, "--bytes", "1MiB", "--root", "2", "--certificate", str(file), "--json")
    assert made.json["certificate"]["bound"] == "cut"
    found = call("verify", "--certificate", str(file), *options, "--json")
    assert found.code == 0
    assert {
        key: found.json[key] for key in ("collective", "bytes", "root", "machine", "failed", "places", "bound")
    } == {
        "collective": "broadcast",
        "bytes": 1 << 20,
        "root": 2,
        "machine": "two-boxes",
        "failed": ["0-1", "2-3"],
        "places": [0, 1, 2, 3],
        "bound": "cut",
    }
    assert found.json["seconds"] == made.json["certificate"]["seconds"]
    text = call("verify", "--certificate", str(file), *options).out
    assert "failed  0-1, 2-3\nroot    rank 2\nplaces  0 to 3\nbound   cut\n" in text
    other = call("verify", "--certificate", str(file), "--machine", str(machine))
    assert other.code == 1
    assert "it is for two-boxes without 0-1, 2-3, not for two-boxes" in other.out


@pytest.mark.parametrize(
    "option", ["--subset=0", "--root=1", "--bytes=3", "--op=max", "--method=exact", "--model=links"]
)
def test_a_check_of_a_bound_refuses_options_without_effect(option: str, machine: Path, tmp_path: Path) -> None:
    file = written(tmp_path / "bound.json", un.plan("allgather", machine, bytes=64).certificate())
    assert option.split("=")[0] in refusal("verify", "--certificate", str(file), "--machine", str(machine), option)


def test_the_bound_of_a_certificate_may_be_smaller_than_that_of_the_plan(machine: Path, tmp_path: Path) -> None:
    file = tmp_path / "bound.json"
    done = call("plan", "allgather", "--machine", str(machine), "--bytes", "16", "--certificate", str(file))
    assert "the certificate proves the bound cut of 0.003 µs, not the bound reach of gather" in done.out
    refused = refusal(
        "plan", "allgather", "--machine", str(machine), "--bytes", "16", "-o", str(file), "--certificate", str(file)
    )
    assert "both write" in refused
    document = json.loads(file.read_text())
    document["bytes"] = 2**64 - 1
    file.write_text(json.dumps(document))
    done = call("verify", "--certificate", str(file), "--machine", str(machine))
    assert done.out.split("\n")[0].endswith("takes at least 2.951e+09 s")


def test_one_rank_has_no_certificate(machine: Path) -> None:
    with pytest.raises(un.InputError, match="on one rank needs no link"):
        un.plan("broadcast", machine, shape=1, elements=4).certificate()


def test_a_certificate_is_read_from_a_file(machine: Path) -> None:
    with pytest.raises(un.InputError, match="name of a file"):
        un.check_bound(un.plan("allgather", machine, bytes=64).certificate(), machine)


def star(tmp_path: Path, leaves: int, rate: str = "100") -> Path:
    """Writes a network of accelerators around one switch."""
    lines = "\n".join(f"{leaf} {leaves} gbps={rate}" for leaf in range(leaves))
    topology = f"name = \"graph\"\naccelerators = {leaves}\nedges = '''\n{lines}\n'''\n"
    return written(tmp_path / "star.toml", network_text(topology, "star", gbps=100, ns=(0, 0, 0), packet_bytes=4096))


@pytest.mark.parametrize("rate", ["1e-9", "1.4e-6", "33.33333333333", "2400", "1e9", "1e15"])
def test_bounds_hold_at_any_rate(rate: str, tmp_path: Path) -> None:
    machine = star(tmp_path, 3, rate)
    plan = un.plan("broadcast", machine, bytes=4096, algorithm="forest")
    file = written(tmp_path / "bound.json", plan.certificate())
    found = un.check_bound(file, machine)
    assert found["seconds"] == pytest.approx(4096 * 8 / (float(rate) * 1e9), rel=1e-11)
    assert all(
        un.simulate(plan.schedule).seconds >= bound["seconds"] * (1 - 1e-9)
        for bound in un.bounds("broadcast", machine, bytes=4096)
    )


def test_certificates_of_many_ranks_take_little_memory(tmp_path: Path) -> None:
    machine = star(tmp_path, 600)
    file = tmp_path / "bound.json"
    options = ["--machine", str(machine), "--limit-memory", "100MiB"]
    done = call("plan", "broadcast", *options, "--bytes", "1KiB", "--certificate", str(file))
    assert done.code == 0, done.err
    assert call("verify", "--certificate", str(file), *options).code == 0
    # With these prices, no two ranks have a path of price 0.
    document = json.loads(file.read_text())
    document["prices"] = [[leaf, 600, 1 + leaf] for leaf in range(600)]
    document["seconds"] = 0.0
    file.write_text(json.dumps(document))
    assert call("verify", "--certificate", str(file), *options).code == 0
    refused = refusal("verify", "--certificate", str(file), "--machine", str(machine), "--limit-memory", "10MB")
    assert "the check of a certificate needs about 23.0 MB of memory" in refused


@pytest.mark.parametrize("text", ["", "{}", '{"format": "unisono-bound 2"}', "prices"])
def test_what_is_no_certificate_is_refused(text: str, machine: Path, tmp_path: Path) -> None:
    file = written(tmp_path / "bound.json", text)
    assert refusal("verify", "--certificate", str(file), "--machine", str(machine)).count("\n") == 1
    with pytest.raises(un.InputError):
        un.check_bound(file, machine)


def test_forests_need_links() -> None:
    with pytest.raises(un.UnsupportedError, match="the links of a network"):
        un.plan("allgather", "archer", shape=8, elements=4, algorithm="forest")
    with pytest.raises(un.InputError, match="certificate"):
        un.plan("allgather", "archer", shape=8, elements=4).certificate()
    with pytest.raises(un.UnsupportedError, match="messages away"):
        un.plan("allgather", "torus2d-small", elements=4, algorithm="forest", params={"depth": "3"})


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


def test_a_large_torus_sends_near_its_bound_by_a_forest_of_its_front() -> None:
    # A forest of 1024 ranks has over a million messages; by symmetry the planner needs only those of one rank.
    plan = un.plan("allgather", "torus2d-small", bytes="16KiB")
    assert plan.algorithm == "forest"
    assert plan.ratio is not None
    assert plan.ratio < 1.02
    (point,) = plan.front()["points"]
    assert point["depth"] == int(plan.params["depth"])
    times = dict(point["forests"])
    assert set(times) == {1, 4, 16, 64, 256}
    assert min(times.values()) == pytest.approx(plan.predicted["seconds"], rel=0.01)


@pytest.mark.parametrize(("form", "begin"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_pictures_of_plans(form: str, begin: bytes, machine: Path, tmp_path: Path) -> None:
    pictures = []
    for name in ("a", "b") if SOAK or form == "svg" else ("a",):
        file = tmp_path / f"{name}.{form}"
        words = ("plan", "allgather", "--machine", str(machine), "--bytes", "1MiB", "--algorithm", "forest")
        done = call(*words, "--plot", str(file))
        assert (done.code, done.err) == (0, "")
        assert f"wrote {file}" in done.out
        pictures.append(file.read_bytes())
    assert pictures[0].startswith(begin)
    assert pictures[0] == pictures[-1]


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
    assert done.err.startswith("note: ")
    assert note in done.err
    assert file.read_bytes().startswith(b"\x89PNG")
    assert call("plan", "allgather", "--bytes", "16KiB", *words, "--plot", "plan.gif").code == 2


def test_short_packets_do_not_fill_the_buffers_of_links() -> None:
    """A packet of any length takes one slot of a buffer, and 64 chunks of 32 ranks exceed its 1,024 slots."""
    machine = un.machine("dgx-a100-x4")
    plan = un.plan("allreduce", machine, bytes="64KiB", algorithm="forest")
    assert un.simulate(plan.schedule).seconds == pytest.approx(plan.predicted["seconds"], rel=0.01)
    assert all(one["params"].get("chunks") != "64" for one in plan.candidates)


@pytest.mark.parametrize(("slow", "size"), [(3, "64KiB"), (6, "256KiB")])
def test_an_allreduce_keeps_a_slow_host_out_of_its_middle(slow: int, size: str) -> None:
    """The slow host's cable carries one vector in each direction; a ring of eight would send 1.75 vectors."""
    edges = "".join(f"{rank} 8 gbps={25 if rank == slow else 100} ns=150\n" for rank in range(8))
    star = un._core.import_network(edges, "edges", "edges", "star", 1, 8)
    plan, ring = un.plan("allreduce", star, bytes=size), un.plan("allreduce", star, bytes=size, algorithm="ring")
    assert plan.schedule.verify().holds
    assert un.simulate(plan.schedule).seconds < 0.9 * un.simulate(ring.schedule).seconds
