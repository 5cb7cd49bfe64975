"""Training workloads on networks, by the model and packet by packet."""

import tomllib
from pathlib import Path

import pytest
import unisono as un
from unisono.base.html import TableOfRows
from unisono.pictures.plots import workloads

from .conftest import ROOT, json_of, refusal, text_of, written

#: A workload in which accelerators allreduce 1 MB while they compute for 5 ms, and then send it in pairs.
PAIRS = """
name = "pairs"
[[dimensions]]
name = "data"
size = 8
shape = [4, 2]
[[dimensions]]
name = "pair"
size = 2
[[steps]]
name = "first"
compute_us = 100
[[steps.communication]]
collective = "allreduce"
elements = 262144
over = ["pair"]
blocking = false
[[steps]]
name = "second"
compute_us = 5000
[[steps.communication]]
collective = "exchange"
partners = [1, 2]
elements = 262144
over = ["data"]
"""


@pytest.fixture
def pairs(tmp_path: Path) -> str:
    path = written(tmp_path / "pairs.toml", PAIRS)
    return str(path)


def test_packets_agree_with_the_model(pairs: str) -> None:
    by_model, by_packet = (un.workload(pairs, "torus2d-small", level=level) for level in ("model", "packet"))
    for report in (by_model, by_packet):
        assert report["accelerators"] == 16
        assert report["compute_seconds"] == pytest.approx(5.1e-3)
        assert [phase["name"] for phase in report["phases"]] == ["first", "second"]
        # The allreduce is hidden, the exchange is not.
        exchange = report["phases"][1]["communication"][0]
        assert report["exposed_seconds"] == pytest.approx(exchange["end"] - exchange["begin"], rel=1e-3)
    assert by_packet["seconds"] == pytest.approx(by_model["seconds"], rel=2e-3)
    assert by_packet["packets"] is not None
    assert by_packet["packets"] > 0
    assert by_model["packets"] is None
    held = un.workload(pairs, "torus2d-small", overlap=False)
    first = held["phases"][0]["communication"][0]
    assert held["seconds"] - by_model["seconds"] == pytest.approx(first["end"] - first["begin"])


def test_a_workload_file_names_algorithms_at_every_level(pairs: str) -> None:
    named = 'over = ["data"]\nalgorithm = "bucket"'
    Path(pairs).write_text(PAIRS.replace('over = ["pair"]', named).replace("262144", "65536"))
    before = un.workload(pairs, "torus2d-small")
    assert before["phases"][0]["communication"][0]["algorithm"] == "bucket"
    for level in ("model", "flow", "packet"):
        for report in (un.workload(pairs, "torus2d-small", level=level), un.step(pairs, "torus2d-small", level=level)):
            made = [c for phase in report["phases"] for c in phase["communication"]]
            assert made[0]["algorithm"] == "bucket"
            assert report["seconds"] == pytest.approx(before["seconds"], rel=0.05)
    by_file = un.step(pairs, "torus2d-small")["phases"][0]["communication"][0]
    assert by_file == {**before["phases"][0]["communication"][0], "blocking": by_file["blocking"]}
    other = un.step(pairs, "torus2d-small", algorithms={"allreduce": "ring"})
    assert other["phases"][0]["communication"][0]["algorithm"] == "ring"
    with pytest.raises(un.InputError, match="level is 'guess'; accepted are model, flow and packet"):
        un.workload(pairs, "torus2d-small", level="guess")


def test_the_command(pairs: str, tmp_path: Path) -> None:
    picture = tmp_path / "pairs.svg"
    report = json_of("workload", pairs, "--machine", "torus2d-small", "--plot", str(picture))
    assert {"seconds", "compute_seconds", "communication_seconds", "exposed_seconds", "phases"} <= set(report)
    assert picture.read_bytes() == workloads.draw(report, "svg")
    accelerators = report["accelerators"]
    assert f"on {accelerators} accelerators of torus2d-small" in picture.read_text()
    # Names are drawn if they have room; the first step is too short for its name.
    assert all(f"<!-- {name} -->".encode() in picture.read_bytes() for name in ("second", "allreduce", "exchange"))
    listed = json_of("workload")
    names = [w["name"] for w in listed["workloads"]]
    models = ["cosmoflow", "dlrm", "gpt-3", "gpt-3-moe", "resnet-152"]
    artifact = [f"{name}-artifact" for name in models]
    assert names == [*sorted([*models, *artifact, "dlrm-artifact-rings"]), "vgg16"]
    text = text_of("workload", pairs, "--machine", "torus2d-small")
    assert "exchange among 2" in text


def test_names_in_pictures_of_many_steps() -> None:
    report = un.workload("gpt-3", "hx2mesh-small")
    first = report["phases"][0]
    begin, end = 0.0, report["seconds"]
    one = first["communication"][0]
    # The phases have a step that is hardly visible, and upright and long names of collectives.
    report["phases"] = [
        {**first, "name": "tiny", "begin": begin, "compute_seconds": end / 1e4, "communication": []},
        {
            **first,
            "name": "forward",
            "begin": end / 1e4,
            "compute_seconds": end / 4,
            "communication": [
                {**one, "collective": "allreduce", "begin": end * 0.3, "end": end * 0.32},
                {**one, "collective": "allgather", "ranks": 7, "begin": end * 0.4, "end": end * 0.9},
            ],
        },
    ]
    svg = workloads.draw(report, "svg")
    assert all(f"<!-- {name} -->".encode() in svg for name in ("forward", "allreduce", "allgather among 7"))
    assert b"<!-- tiny -->" not in svg


@pytest.mark.parametrize("collective", sorted(set(un.collectives()) - {"message"}))
def test_any_collective_is_communication(collective: str, pairs: str) -> None:
    text = PAIRS.replace('"allreduce"', f'"{collective}"')
    Path(pairs).write_text(text)
    by_model, by_packet = (un.workload(pairs, "torus2d-small", level=level) for level in ("model", "packet"))
    for report in (by_model, by_packet):
        one = report["phases"][0]["communication"][0]
        assert (one["collective"], one["ranks"]) == (collective, 2)
        assert one["algorithm"]
    Path(pairs).write_text(text.replace('over = ["pair"]', 'over = ["data"]'))
    by_model, by_packet = (un.workload(pairs, "torus2d-small", level=level) for level in ("model", "packet"))
    first, second = (report["phases"][0]["communication_seconds"] for report in (by_model, by_packet))
    assert 0.4 * second < first < 2.5 * second


def test_an_algorithm_without_a_closed_form_can_be_named(pairs: str) -> None:
    text = PAIRS.replace('over = ["pair"]', 'over = ["data"]\nalgorithm = "binomial"')
    Path(pairs).write_text(text.replace('"allreduce"', '"broadcast"'))
    one = un.workload(pairs, "torus2d-small")["phases"][0]["communication"][0]
    assert (one["algorithm"], one["params"]) == ("binomial", {})
    assert one["end"] > one["begin"]


def test_reports_are_the_same_on_switches_that_reduce() -> None:
    machine = un.machine("piuma-a100", nodes=2)
    on_network = un.workload("dlrm", "hx2mesh-small")
    for overlap in (True, False):
        report = un.workload("vgg16", machine, overlap=overlap)
        assert set(report) == set(on_network)
        assert {key for phase in report["phases"] for key in phase} == set(on_network["phases"][0])
        communication = [one for phase in report["phases"] for one in phase["communication"]]
        assert set(communication[0]) == set(on_network["phases"][0]["communication"][0])
        assert sum(one["end"] - one["begin"] for one in communication) == pytest.approx(report["communication_seconds"])
        assert sum(phase["communication_seconds"] for phase in report["phases"]) == pytest.approx(
            report["communication_seconds"]
        )
        assert communication[-1]["end"] == pytest.approx(report["seconds"])
        assert sum(phase["compute_seconds"] for phase in report["phases"]) == pytest.approx(report["compute_seconds"])
    with pytest.raises(un.InputError, match="minibatch and algorithm are for vgg16"):
        un.workload("dlrm", "hx2mesh-small", minibatch=4)
    with pytest.raises(un.InputError, match="wse2 is of kind wafer; vgg16 runs on switches that reduce"):
        un.workload("vgg16", "wse2")


#: Seconds: backward 31.83 ms; two rings of 6 steps of a quarter of 100.66 MB, and one message of all, at 200 GB/s.
PIPELINE = 31.83e-3 + (2 * 6 / 4 + 1) * 4 * 25165824 / 200e9


def test_stages_of_a_pipeline_run_at_the_same_time() -> None:
    for level in ("model", "flow"):
        report = un.workload("gpt-3-artifact", "fattree-small-one-plane", level=level)
        assert report["seconds"] == pytest.approx(PIPELINE, rel=1e-3)
        assert report["seconds"] == pytest.approx(
            report["compute_seconds"] + report["exposed_seconds"] + report["waiting_seconds"]
        )
    preset = next(known for known in un.workload_presets() if known["name"] == "gpt-3-artifact")
    assert preset["compute_seconds"] == pytest.approx(31.83e-3)


@pytest.mark.soak
def test_stages_of_a_pipeline_run_at_the_same_time_by_packets() -> None:
    # Each rank adds 0.75 vectors twice, at 0.01 ns an element.
    by_packets = un.workload("gpt-3-artifact", "fattree-small-one-plane", level="packet")
    assert by_packets["seconds"] == pytest.approx(PIPELINE + 2 * 0.75 * 25165824 * 0.01e-9, rel=1e-3)


def test_communication_costs_more_where_bandwidth_is_less() -> None:
    seconds = [
        un.workload("gpt-3", name)["exposed_seconds"] for name in ("fattree-small", "hx2mesh-small", "hx4mesh-small")
    ]
    assert all(s > 0 for s in seconds)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["alexnet", "--machine", "torus2d-small"], "'alexnet' is neither a workload nor a workload file"),
        (["alexnet", "--machine", "torus2d-small"], "resnet-152-artifact, vgg16"),
        (["no.toml", "--machine", "torus2d-small"], "the workload file 'no.toml' does not exist"),
        (["gpt-3-moe", "--machine", "torus2d-small"], "gpt-3-moe needs 1536 accelerators, and torus2d-small has 1024"),
        (["gpt-3", "--machine", "archer"], "archer is of kind endpoint; workloads run on machines of kind network"),
        (["gpt-3"], "name the machine on which it runs, with --machine"),
        (["gpt-3", "--machine", "torus2d-small", "--plot", "a.txt"], "end in .png, .svg or .pdf"),
    ],
)
def test_mistakes_are_one_sentence(arguments: list[str], said: str) -> None:
    assert said in refusal("workload", *arguments)


@pytest.mark.parametrize("machine", ["dgx-h100", pytest.param("dgx-a100", marks=pytest.mark.soak)])
def test_a_workload_runs_on_the_boxes_that_its_refusal_names(machine: str) -> None:
    for few in ([], ["--nodes", "4"]):
        for request in (["gpt-3"], ["--from", "gpt-3"]):
            refused = refusal("workload", *request, "--machine", machine, *few)
            assert (
                refused.rstrip().endswith("48 boxes have as many: --nodes 48") or "for 48 boxes: --nodes 48" in refused
            )
    reports = []
    for request in (["gpt-3"], ["--from", "gpt-3"]):
        text = json_of("workload", *request, "--machine", machine, "--nodes", "48")
        reports.append(text["seconds"])
    assert reports[0] == reports[1]


def test_the_artifact_rounds_the_sizes_of_resnet_down() -> None:
    given, rounded = (
        [step["communication"][0]["elements"] for step in tomllib.loads(text)["steps"] if "communication" in step]
        for text in ((ROOT / f"workloads/{name}.toml").read_text() for name in ("resnet-152", "resnet-152-artifact"))
    )
    ranks = 1024
    assert rounded == [size // (4 * ranks) * (4 * ranks) for size in given]


@pytest.mark.parametrize(
    ("machine", "dims", "copies"),
    [("hx2mesh-small", None, 2), ("fattree-small", None, 2), ("torus2d-small", [48, 32], 4)],
)
def test_copies_of_a_model_fill_a_network(machine: str, dims: list[int] | None, copies: int) -> None:
    found = un.machine(machine).describe()
    on = un.machine({**found, "topology": {**found["topology"], **({"dims": dims} if dims else {})}})
    one, all_copies = un.workload("gpt-3", on), un.workload("gpt-3", on, fill=True)
    topology = on.topology or {}
    accelerators = topology["accelerators"]
    assert (one["copies"], all_copies["copies"]) == (1, copies)
    assert all_copies["accelerators"] == 384 * copies
    assert all_copies["utilization"] == pytest.approx(384 * copies / accelerators)
    assert all_copies["used_cost_usd"] == pytest.approx(all_copies["utilization"] * topology["cost_usd"])
    # All copies compute the same as one, and then reduce their gradients.
    assert all_copies["compute_seconds"] == one["compute_seconds"]
    reduced = [c for phase in all_copies["phases"] for c in phase["communication"] if c["bytes"] > 1e9]
    expected = ("allreduce", copies, 4 * 12 * 12288**2 // 4)
    assert [(c["collective"], c["ranks"], c["bytes"]) for c in reduced] == [expected]
    assert not any(c["ranks"] == 1 for phase in one["phases"] for c in phase["communication"])


def test_a_filled_network_has_the_size_that_its_workload_states() -> None:
    """With `fill`, a workload of 1,024 ranks runs with as many copies as a network has accelerators."""
    whole, filled = un.workload("resnet-152", "fattree-small"), un.workload("resnet-152", "fattree-small", fill=True)
    assert filled == whole
    assert un.workload("resnet-152", "dgx-h100", fill=True)["copies"] == 8
    rows = un.compare(["resnet-152"], ["fattree-small", "dgx2"], fill=True)
    assert [(row["copies"], row["utilization"]) for row in rows] == [(1024, 1.0), (16, 1.0)]
    assert isinstance(rows, TableOfRows)
    assert "<td>1,024 of 1,024</td>" in rows._repr_html_()


def test_what_cannot_fill_a_network_is_refused(pairs: str) -> None:
    refused = refusal("workload", pairs, "--machine", "torus2d-small", "--fill")
    assert "pairs cannot fill torus2d-small: none of its dimensions has data_parallel = true" in refused
    with pytest.raises(
        un.InputError, match=r"fill \(--fill\) is for workloads, by name or TOML file, and step states its ranks"
    ):
        un.step(str(ROOT / "examples" / "programs" / "ddp"), "dgx-h100", fill=True)
    with pytest.raises(un.InputError, match="vgg16 runs on all nodes"):
        un.workload("vgg16", "piuma", fill=True)
    row = un.compare(["gpt-3", "gpt-3-artifact"], ["fattree-small"], fill=True)[1]
    assert row["seconds"] is None
    assert "gpt-3-artifact cannot fill fattree-small" in str(row["reason"])


def test_the_command_says_what_is_used() -> None:
    text = text_of("workload", "gpt-3", "--machine", "hx2mesh-small", "--fill")
    assert "uses           75.0% of the accelerators, 2 copies of the model, 4.059 M$ of the network" in text
    text = text_of("compare", "gpt-3", "--machines", "hx2mesh-small", "--fill")
    assert "768 of 1,024, 2 copies" in text
    assert "s x $ a copy" in text
