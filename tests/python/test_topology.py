"""Networks: their parts, their pictures, and the check of their routing."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import unisono as un
from unisono._core import check_routing, part_names, plane
from unisono.machines import graphml, graphs
from unisono.pictures.networks import DRAWN, boxes, draw
from unisono.pictures.networks.graph import layout, route

from .conftest import ROOT, SOAK, call, json_of, network_text, refusal, written

HEAD = network_text("", planes=2)
#: A small complete network of each family.
SMALL = {
    "boxes": 'name = "boxes"\nboxes = 2\naccelerators = 2\ninside = """0 2\n1 2\n0 3 gbps=25"""\nuplinks = "3 0"',
    "dragonfly": 'name = "dragonfly"\np = 2\na = 4\nh = 2\ng = 9\nrouting = "valiant"',
    "fattree": 'name = "fattree"\naccelerators = 100\nlevels = 3\ndown = 2\nup = 1',
    "graph": 'name = "graph"\naccelerators = 4\nedges = [[0, 4], [1, 4], [2, 5], [3, 5], [4, 5]]',
    "hxmesh": 'name = "hxmesh"\nboard = [2, 3]\nboards = [2, 2]',
    "hypercube": 'name = "hypercube"\ndimensions = 4\nboard_dimensions = 1',
    "hyperx": 'name = "hyperx"\ndims = [3, 2, 2]\nterminals = 6\ncables = [1, 2, 1]',
    "mesh": 'name = "mesh"\ndims = [2, 3, 2, 2]',
    "torus": 'name = "torus"\ndims = [4, 6]\nboard = [2, 2]',
}


def network(family: str) -> un.Machine:
    return un.Machine.from_toml(HEAD + SMALL[family], family)


def test_json_of_hx2mesh_small() -> None:
    report = json_of("topology", "hx2mesh-small")
    assert report["accelerators"] == 1024
    assert report["switches"] == 128
    assert report["cables"] == {"dac": 4096, "aoc": 4096}
    assert report["cost_usd"] == 128 * 14280 + 4096 * 272 + 4096 * 603
    assert report["diameter"] == 4
    assert report["bisection_share"] == 0.25
    assert report["plane"]["switches"] * report["planes"] == report["switches"]
    assert report["extents"] == [32, 32]
    assert report == un.machine("hx2mesh-small").topology


def test_text_has_the_same_numbers() -> None:
    text = call("topology", "dragonfly-large").out
    for word in ("16,320", "15,360", "499,200", "122,880", "429.220 M$", "all 16 planes", "5 cables"):
        assert word in text, word


def test_families_are_listed_and_documented() -> None:
    families = un.topologies()
    assert json_of("topology") == {"topologies": families}
    assert [family["name"] for family in families] == sorted(SMALL) == sorted(DRAWN)
    page = (ROOT / "docs" / "networks.md").read_text()
    for family in families:
        assert f"`{family['name']}`" in page
        assert all(f"`{key}" in page for key in family["keys"]), family


def test_table_of_presets_is_what_they_are() -> None:
    page = (ROOT / "docs" / "networks.md").read_text()
    for preset in un.machine_presets():
        facts = un.machine(preset["name"]).topology
        if facts is None or facts["cost_usd"] is None or preset["name"].endswith("artifact"):
            continue
        counts = [facts["switches"], *facts["cables"].values()]
        counted = " | ".join(f"{count:,}" for count in counts)
        rest = f"{facts['cost_usd'] / 1e6:.2f} | {facts['diameter']} | {100 * facts['bisection_share']:.2f} %"
        assert f"| `{preset['name']}` | {counted} | {rest} |" in page, preset["name"]


def test_other_machines_have_no_topology() -> None:
    assert un.machine("wse2").topology is None
    assert un.machine("archer").topology is None


@pytest.mark.parametrize("family", SMALL)
def test_planes_and_routings(family: str) -> None:
    machine = network(family)
    facts, found = machine.topology, plane(machine)
    assert facts is not None
    assert found["accelerators"] == facts["accelerators"] == np.prod(facts["extents"])
    assert max(found["a"].max(), found["b"].max()) < found["nodes"]
    routing = check_routing(machine)
    assert routing["deadlock_free"]
    assert routing["channels"] > 0
    assert machine.shape == (facts["accelerators"],)


@pytest.mark.parametrize("family", SMALL)
def test_pictures_are_the_same_every_time(family: str) -> None:
    image = draw(network(family))
    assert image.startswith(b"\x89PNG")
    drawing = draw(network(family), "svg")
    assert b"<svg" in drawing
    if SOAK or family == "torus":
        assert image == draw(network(family))
        assert drawing == draw(network(family), "svg")


@pytest.mark.parametrize("size", ["small", "large"])
@pytest.mark.parametrize("name", ["fattree-tapered75", "dragonfly", "hx4mesh", "torus2d"])
def test_large_networks_are_drawn_in_part(name: str, size: str) -> None:
    drawing = draw(un.machine(f"{name}-{size}"), "svg")
    assert 10_000 < len(drawing) < 3_000_000


def test_plot_and_check_on_the_command_line(tmp_path: Path) -> None:
    for name in ("net.png", "net.svg"):
        report = json_of("topology", "torus2d-small", "--check", "--plot", str(tmp_path / name))
        assert report["file"] == str(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 10_000
        assert report["routing"]["deadlock_free"]
    assert "free of deadlock" in call("topology", "torus2d-small", "--check").out


def test_a_graph_from_a_file_beside_the_machine_file(tmp_path: Path) -> None:
    (tmp_path / "ring.txt").write_text("# a ring\n0 1\n1 2\n2 3 aoc\n3 0\n")
    file = written(tmp_path / "ring.toml", HEAD + 'name = "graph"\naccelerators = 4\nfile = "ring.txt"')
    report = json_of("topology", str(file))
    assert report["cables"] == {"dac": 6, "aoc": 2}
    assert report["bisection_share"] == 0.5
    machine = un.machine(file)
    # The description contains everything in the file.
    assert un.Machine.from_toml(machine.to_toml(), "copy").topology == machine.topology


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["wse2"], "this needs a network"),
        (["archer"], "this needs a network"),
        (["hx3mesh-small"], "did you mean hx4mesh-small?); 'unisono machines' lists the presets"),
        (["hx2mesh-small", "--plot", "net.gif"], "end in .png, .svg or .pdf"),
        (["hx2mesh-small", "--plot", "nowhere/net.png"], "nowhere"),
        (["--check"], "name a network"),
    ],
)
def test_wrong_input_is_one_sentence(arguments: list[str], word: str) -> None:
    refused = refusal("topology", *arguments)
    assert refused.count("\n") == 1
    assert word in refused


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ('name = "dragonfly"\np = 1\na = 2\nh = 1\ng = 9', ["g = 9", "could not be reached"]),
        ('name = "torus"\ndims = [4, 6]\nboard = [3, 2]', ["[3, 2]", "divisor"]),
        ('name = "hxmesh"\nboard = [2, 0]\nboards = [2, 2]', ["2 x 0 x 2 x 2 accelerators"]),
        ('name = "hxmesh"\nboard = [2]\nboards = [2, 2]', ["invalid length 1"]),
        ('name = "fattree"\naccelerators = 5000\nlevels = 2\ndown = 32\nup = 32', ["5000", "at most 64 leaves"]),
        ('name = "torus"\ndims = [99999, 99999, 99999]', ["accepted are 1 to 16777216"]),
        ('name = "torus"\ndims = [4, 4]\ncolour = 1', ["unknown field `colour`"]),
        ('name = "moebius"', ["moebius", "dragonfly, fattree"]),
        ('name = "graph"\naccelerators = 2\nfile = "none.txt"', ["none.txt", "does not exist"]),
        ('name = "torus"\ndims = [4, 4]\n[prices]\nswitch_usd = -1', ["prices.switch_usd", "at least 0"]),
    ],
)
def test_sizes_that_do_not_close_are_one_sentence(lines: str, words: list[str], tmp_path: Path) -> None:
    file = written(tmp_path / "mine.toml", HEAD + lines)
    refused = refusal("topology", str(file))
    assert refused.count("\n") == 1, refused
    for word in ["mine.toml" if "none.txt" not in lines else "", *words]:
        assert word in refused


def test_json_has_no_numbers_that_json_lacks() -> None:
    report = json_of("topology", "fattree-tapered50-large-artifact")
    assert report["cost_usd"] is None
    assert json.dumps(report, allow_nan=False)
    assert "512 ports is not sold" in call("topology", "fattree-tapered50-large-artifact").out


def test_failures_are_left_out() -> None:
    whole, left = (
        json_of("topology", "hx2mesh-small"),
        json_of("topology", "hx2mesh-small", "--fail", "0-1", "--fail", "7"),
    )
    assert (whole["failed"], whole["kept"]) == ([], None)
    assert left["failed"] == ["0-1", "7"]
    assert left["accelerators"] == 1023
    assert left["kept"] == [n for n in range(1024) if n != 7]
    assert left["cost_usd"] == whole["cost_usd"]
    facts = un.machine("hx2mesh-small", failed=["0-1", 7]).topology
    assert facts is not None
    assert facts == {key: left[key] for key in facts}
    asked: dict[str, Any] = {"shape": "8x8", "bytes": "1MiB", "algorithm": "dual-rings"}
    slower = un.plan("allreduce", un.machine("torus2d-small", failed=["0-1"]), **asked)
    assert slower.predicted["seconds"] > un.plan("allreduce", "torus2d-small", **asked).predicted["seconds"]
    assert any("shortest ways that are left" in note for note in slower.report()["notes"])


def test_failures_stay_with_a_schedule(tmp_path: Path) -> None:
    file = str(tmp_path / "a.sched")
    asked = ("allreduce", "--machine", "hx2mesh-small", "--shape", "4x4", "--bytes", "64KiB", "--algorithm", "bucket")
    call("schedule", *asked, "--fail", "0-1", "-o", file)
    planned = json_of("simulate", *asked, "--fail", "0-1")
    saved = json_of("simulate", file)
    assert saved["seconds"] == planned["seconds"]
    loaded = un.load(file)
    assert loaded.machine is not None
    assert loaded.machine.describe()["failed"] == ["0-1"]
    # A schedule planned without failures keeps its accelerators on the degraded machine.
    call("schedule", *asked, "-o", file)
    assert json_of("simulate", file, "--fail", "0-1")["seconds"] == planned["seconds"]
    assert json_of("simulate", file)["seconds"] < planned["seconds"]


@pytest.mark.parametrize(
    ("fail", "said"),
    [
        ("0-3", "hx2mesh-small: no cable joins accelerator 0 and accelerator 3"),
        ("2000", "hx2mesh-small: the failure 2000 names node 2000; the nodes are 0 to 1087"),
        ("x", "hx2mesh-small: 'x' is not a failure; accepted are A-B for all cables between two nodes"),
    ],
)
def test_failures_that_are_not_there_are_refused(fail: str, said: str) -> None:
    assert said in refusal("bound", "allreduce", "--machine", "hx2mesh-small", "--bytes", "1KiB", "--fail", fail)


def test_what_is_cut_off_is_refused() -> None:
    text = HEAD + 'name = "mesh"\ndims = [4]'
    with pytest.raises(un.InputError, match=r"without what failed \(1-2\) the accelerators are cut off: 2, 3;"):
        un.Machine.from_toml(text, "row").asked(failed=["2-1"])


IMPORTS = ROOT / "crates" / "fuzz" / "corpus" / "machine-import"


@pytest.mark.parametrize("name", ["dgx-a100", "dgx1-v100", "h100", "mi250", "pcie-v100"])
def test_a_topology_of_nccl_becomes_a_machine(name: str, tmp_path: Path) -> None:
    out = str(tmp_path / "mine.toml")
    report = json_of("machines", "import", str(IMPORTS / f"{name}.xml"), "-o", out)
    assert (report["name"], report["kind"], report["file"]) == (name, "network", out)
    machine = un.machine(out)
    assert machine.to_toml() == un.import_machine(IMPORTS / f"{name}.xml").to_toml()
    assert check_routing(machine)["deadlock_free"]
    plan = un.plan("allgather", machine, bytes="64KiB")
    assert un.simulate(plan.schedule).seconds >= max(
        b["seconds"] for b in un.bounds("allgather", machine, bytes="64KiB")
    )


def test_several_boxes_of_a_topology(tmp_path: Path) -> None:
    out = str(tmp_path / "mine.toml")
    call("machines", "import", str(IMPORTS / "h100.xml"), "--boxes", "4", "-o", out)
    facts = un.machine(out).topology
    assert facts is not None
    assert (facts["family"], facts["extents"]) == ("boxes", [4, 8])


@pytest.mark.parametrize("count", [0, -1, 2**24, 2**32 - 1])
@pytest.mark.parametrize("option", ["--boxes", "--accelerators"])
def test_counts_of_an_import_have_a_range(option: str, count: int, tmp_path: Path) -> None:
    out = tmp_path / "mine.toml"
    refused = refusal("machines", "import", str(IMPORTS / "h100.xml"), option, str(count), "-o", str(out))
    assert f"{option[2:]} is {count}; accepted are whole numbers from 1 to 16777215" in refused
    assert not out.exists()


def test_a_machine_is_printed_key_by_key(tmp_path: Path) -> None:
    out = str(tmp_path / "mine.toml")
    call("machines", "import", str(IMPORTS / "ring.edges"), "-o", out)
    lines = call("machines", out).out.split("\n")
    assert "topology.accelerators  4" in lines
    assert "prices.dac_usd         0.0" in lines
    assert not any("{" in line for line in lines)


def test_numbers_of_any_size_are_short(tmp_path: Path) -> None:
    cables, out = tmp_path / "far.edges", str(tmp_path / "far.toml")
    cables.write_text("0 1 gbps=1e-9\n")
    call("machines", "import", str(cables), "-o", out)
    for command in ("plan", "bound"):
        printed = call(command, "broadcast", "--machine", out, "--bytes", "240GiB").out
        assert "2.062e+18" in printed
        assert max(map(len, printed.split("\n"))) < 200


def test_times_beyond_the_clock_of_timetables_stay_above_bounds(tmp_path: Path) -> None:
    cables, out = tmp_path / "far.edges", str(tmp_path / "far.toml")
    cables.write_text("0 1 gbps=1e-9 ns=1e12\n1 2 gbps=1e-9\n")
    call("machines", "import", str(cables), "-o", out)
    for collective in ("allgather", "allreduce", "broadcast", "scatter"):
        for size in ("4B", "1MiB", "1GiB"):
            plan = json.loads(call("plan", collective, "--machine", out, "--bytes", size, "--json").out)
            assert plan["ratio"] >= 1 - 1e-9, (collective, size)


def test_a_list_of_cables_becomes_a_machine(tmp_path: Path) -> None:
    out = str(tmp_path / "mine.toml")
    ring = str(IMPORTS / "ring.edges")
    call("machines", "import", ring, "--accelerators", "2", "-o", out)
    assert un.machine(out).shape == (2,)
    assert un.import_machine(ring, "edges", name="ring").shape == (4,)


GRAPHML = """<?xml version='1.0' encoding='utf-8'?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="d0" for="node" attr.name="switch" attr.type="boolean"><default>false</default></key>
  <key id="d1" for="edge" attr.name="gbps" attr.type="double" />
  <graph edgedefault="undirected">
    <node id="left" /><node id="middle"><data key="d0">true</data></node><node id="right" />
    <edge source="left" target="middle"><data key="d1">400</data></edge>
    <edge source="right" target="middle"><data key="d1">200</data></edge>
  </graph>
</graphml>
"""


def test_a_graph_in_graphml_becomes_a_machine(tmp_path: Path) -> None:
    file, out = tmp_path / "star.graphml", str(tmp_path / "star.toml")
    file.write_text(GRAPHML)
    assert call("machines", "import", str(file), "-o", out).code == 0
    # Accelerators are numbered before switches, so the cable of 200 Gb/s belongs to rank 1.
    assert un.machine(out).shape == (2,)
    same = un.machine({**un.machine(out).describe(), "name": "star"} | {"summary": ""})
    assert same.shape == (2,)
    times = [un.plan("broadcast", out, bytes="1MiB", root=root).bound for root in (0, 1)]
    assert times[0] is not None
    assert times[0]["seconds"] >= 2**20 / 25e9


def test_a_default_for_all_is_one_for_nodes_and_one_for_edges() -> None:
    key = '<key id="{}" for="{}" attr.name="note" attr.type="int"><default>7</default></key>'
    text = GRAPHML.replace("<graph edge", "{}<graph edge")
    both = graphml.parse(text.format(key.format("a", "node") + key.format("b", "edge")), "star")
    one = graphml.parse(text.format(key.format("a", "all")), "star")
    assert (one.nodes(data=True), one.edges(data=True)) == (both.nodes(data=True), both.edges(data=True))
    assert all(data["note"] == 7 for *_, data in [*one.nodes(data=True), *one.edges(data=True)])


def test_attributes_that_are_not_read_are_noted(tmp_path: Path) -> None:
    file = written(tmp_path / "star.graphml", GRAPHML.replace('"gbps"', '"bandwidth"'))
    notes = un.import_machine(str(file)).describe()["notes"]
    assert any("are not read: 'bandwidth'; read are gbps, measured, ns, count" in note for note in notes)
    assert any("2 of the 2 lines of cables state no rate" in note for note in notes)
    assert not any("not read" in note for note in graphs.of_graph(graphml.parse(GRAPHML, "star")).describe()["notes"])


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("undirected", "directed", "directed"),
        (">400<", ">fast<", "gbps is 'fast', and its key declares a number"),
        ('target="middle"', 'target="nowhere"', "names node 'nowhere'"),
        ('id="right"', 'id="left"', "node 'left' stands twice"),
        ('key="d1"', 'key="d7"', "key 'd7', which is not declared"),
        ("<?xml", "<!DOCTYPE x []><?xml", "entities"),
        ('"boolean"', '"string"', "switch='false'; accepted are the booleans"),
        ('<edge source="left"', '<hyperedge /><edge source="left"', "a <hyperedge>"),
        ('<node id="left" />', '<node id="left"><graph /></node>', "a <graph>"),
    ],
)
def test_wrong_graphml_is_refused(old: str, new: str, said: str, tmp_path: Path) -> None:
    file = written(tmp_path / "star.graphml", GRAPHML.replace(old, new))
    refused = refusal("machines", "import", str(file), "-o", str(tmp_path / "star.toml"))
    assert refused.startswith(f"error: {file}: ")
    assert said in refused


def test_the_file_of_a_preset_is_written_with_its_sources(tmp_path: Path) -> None:
    out = tmp_path / "mine.toml"
    assert call("machines", "dgx-h100", "-o", str(out)).code == 0
    assert "# One DGX H100" in out.read_text()
    assert un.machine(str(out)).describe() == un.machine("dgx-h100").describe()
    assert "did you mean dgx-h100?" in refusal("machines", "dgx-h10", "-o", str(tmp_path / "other.toml"))


@pytest.mark.parametrize("text", ["", "hello", "<graphs/>", "<system/>", '{"a": 1}', "0 1 tin"])
@pytest.mark.parametrize("source", ["nccl-topo", "edges", "graphml"])
def test_files_that_are_no_topology_are_refused(text: str, source: str, tmp_path: Path) -> None:
    file, out = tmp_path / "topo.xml", tmp_path / "mine.toml"
    file.write_text(text)
    refused = refusal("machines", "import", str(file), "--from", source, "-o", str(out))
    assert refused.count("\n") == 1
    assert refused.startswith(f"error: {file}")
    assert not out.exists()


@pytest.mark.parametrize("name", ["dgx-a100-x2", "dgx-h100", "mi250", "ndv2", "dgx2"])
def test_graphs_hide_no_cable_behind_a_node(name: str) -> None:
    found = plane(un.machine(name))
    ends = list(zip(found["a"].tolist(), found["b"].tolist(), strict=True))
    _hides_no_cable(name, layout(found["accelerators"], found["nodes"], ends), ends)


@pytest.mark.parametrize("name", ["dgx-a100-x2", "mi250-x2"])
def test_boxes_stand_apart_and_hide_no_cable(name: str) -> None:
    """The nodes of a box are between two columns without nodes of other boxes, and shared switches above all."""
    machine = un.machine(name)
    found, of_box = plane(machine), boxes.boxes_of(part_names(machine))
    ends = list(zip(found["a"].tolist(), found["b"].tolist(), strict=True))
    places = boxes.layout(found["accelerators"], ends, of_box)
    _hides_no_cable(name, places, ends)
    inside = [[places[node] for node, of in enumerate(of_box) if of == box] for box in (0, 1)]
    assert max(x for x, _ in inside[0]) + 1 < min(x for x, _ in inside[1])
    shared = [y for (_, y), of in zip(places, of_box, strict=True) if of is None]
    assert max(y for of in inside for _, y in of) < min(shared)


def _hides_no_cable(name: str, places: list[tuple[float, float]], ends: list[tuple[int, int]]) -> None:
    for at, (x, y) in enumerate(places):
        for u, v in places[:at]:
            assert max(abs(x - u), abs(y - v)) > 0.6, f"nodes of {name} overlap"
    for a, b in ends:
        for start, end in pairwise(route(places, a, b)):
            for share in range(11):
                x, y = (s + (e - s) * share / 10 for s, e in zip(start, end, strict=True))
                behind = [n for n, (u, v) in enumerate(places) if max(abs(x - u), abs(y - v)) < 0.3]
                assert set(behind) <= {a, b}, f"the cable {a}-{b} of {name} passes behind {behind}"
