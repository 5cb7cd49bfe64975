"""Pages: their contents, refusals, and their appearance in a browser.

With ``UNISONO_RECORD=1`` in the environment the picture of the documentation is taken again.
"""

import json
import os
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import unisono as un
from playwright.sync_api import Browser, Page
from unisono.base.html import time_text
from unisono.viewing import schedules

from .conftest import ROOT, call, json_of, refusal, written
from .test_mpi import PATIENCE

#: A machine of each kind, and the unit of its simulator's times of transfers.
KINDS = (("wse2", (4, 4), "cycles"), ("archer", (8,), "ns"), ("hx2mesh-small", (4, 4), "ns"), ("piuma", None, "steps"))


def data_of(html: str) -> Any:
    """Returns the JSON data in the text of a page."""
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    return json.loads(found)


def panel(html: str, kind: str) -> Any:
    (found,) = [panel for panel in data_of(html)["panels"] if panel["kind"] == kind]
    return found


def machine(name: str, shape: tuple[int, ...] | None) -> un.Machine:
    return un.machine(name, nodes=1) if name == "piuma" else un.machine(name, shape)


@pytest.mark.parametrize(("name", "shape", "unit"), KINDS)
@pytest.mark.parametrize("collective", ["allreduce", "broadcast"])
def test_transfers_are_those_of_the_schedule(
    name: str, shape: tuple[int, ...] | None, unit: str, collective: str
) -> None:
    plan = un.plan(collective, machine(name, shape), elements=64)
    run = un.simulate(plan.schedule)
    seen = panel(un.view(plan.schedule), "map")
    assert seen["unit"] == unit
    if unit != "steps":
        assert seen["last"] == (run.cycles if unit == "cycles" else run.nanoseconds)
    moves = seen["moves"]
    assert moves["start"] == sorted(moves["start"])
    assert all(0 <= start <= end <= seen["last"] for start, end in zip(moves["start"], moves["end"], strict=True))
    # The elements that instructions send to all nodes, by the schedule's JSON.
    document = json.loads(plan.schedule.to_json())
    sent = sum(
        instruction["length"] * len(document["streams"][sink["stream"]]["sinks"])
        for program in document["programs"]
        for lane in program["lanes"]
        for instruction in lane
        for sink in instruction["sinks"]
        if "stream" in sink
    )
    amount = sum(moves["amount"])
    assert amount == (4 * sent if seen["amount"] == "bytes" else sent)


def test_links_of_a_wafer_carry_what_the_fabric_counts() -> None:
    schedule = un.plan("reduce", un.machine("wse2", (4, 6)), elements=48).schedule
    links = panel(un.view(schedule), "map")["links"]
    hops = un.simulate(schedule).metrics["hops"].value
    assert sum(links["load"]) == hops
    for a, b in zip(links["source"], links["target"], strict=True):
        assert abs(a // 6 - b // 6) + abs(a % 6 - b % 6) == 1


@pytest.mark.parametrize(("name", "shape"), [("hx2mesh-small", (4, 4)), ("dgx-h100", None), ("fattree-small", (40,))])
def test_links_of_a_network_carry_what_its_packets_cross(name: str, shape: tuple[int, ...] | None) -> None:
    schedule = un.plan("allgather", un.machine(name, shape), elements=4096).schedule
    links = panel(un.view(schedule), "map")["links"]
    assert sum(links["load"]) == un.simulate(schedule).metrics["hops"].value


def test_steps_are_the_longest_chains() -> None:
    """A ring's allgather on P ranks has P - 1 steps, since each rank sends the block that it received before."""
    schedule = un.plan("allgather", un.machine("archer", 6), elements=6, algorithm="ring").schedule
    bare = un.Schedule.parse(re.sub(r"(?m)^(\||machine).*\n?", "", schedule.to_text()))
    moves = panel(un.view(bare), "map")["moves"]
    assert sorted(set(moves["end"])) == [1, 2, 3, 4, 5]
    assert all(moves["start"].count(step) == 6 for step in range(5))


def test_candidates_are_those_of_the_plan() -> None:
    where = un.machine("archer", 16)
    plans = [un.plan("allreduce", where, elements=n) for n in (16, 4096, 65536)]
    seen = panel(un.view(plans[1], sizes=[plans[0], plans[2]]), "candidates")
    assert [point["elements"] for point in seen["points"]] == [16, 4096, 65536]
    assert seen["chosen"] == 1
    for plan, point in zip(plans, seen["points"], strict=True):
        assert [c["value"] for c in point["candidates"]] == [c["seconds"] for c in plan.candidates]
        assert point["bound"]["value"] == plan.bound["seconds"]


def test_a_page_asks_nothing_of_a_network_and_holds_no_code_of_its_subject(tmp_path: Path) -> None:
    schedule = un.plan("reduce", un.machine("archer", 4), elements=4).schedule
    file = tmp_path / "<img src=x onerror=alert(1)>.sched"
    un.save(schedule, file)
    html = un.view(file)
    assert "default-src 'none'" in html
    assert not re.search(r"""(?:src|href)=["']?(?:https?:)?//""", html)
    assert "<img" not in html
    assert data_of(html)["title"] == file.name


def test_files_that_show_prints_are_drawn(tmp_path: Path) -> None:
    plan = un.plan("reduce", un.machine("wse2", (3, 3)), elements=8)
    un.save(plan.schedule, tmp_path / "reduce.sched")
    un.simulate(plan.schedule, trace_pes=range(9)).trace(tmp_path / "run.json")
    (tmp_path / "plan.json").write_text(
        call("plan", "reduce", "--machine", "wse2", "--shape", "3x3", "--elements", "8", "--json").out
    )
    (tmp_path / "own.toml").write_text(un.machine("dgx-h100").to_toml())
    un.save_plans([(un.plan("allreduce", un.machine("archer", 4), elements=8), 0, None)], tmp_path / "own.plan")
    call("sweep", "reduce", "--machine", "wse2", "--shapes", "4,8", "--elements", "1,16", "-o", str(tmp_path / "s.csv"))
    wanted = {
        "reduce.sched": ["map", "timeline"],
        "run.json": ["timeline", "table"],
        "plan.json": ["candidates"],
        "own.toml": ["map"],
        "own.plan": ["table"],
        "s.csv": ["candidates"],
    }
    for name, kinds in wanted.items():
        answer = json_of("view", str(tmp_path / name), "-o", str(tmp_path / "page.html"))
        html = (tmp_path / "page.html").read_text()
        assert answer == {"file": str(tmp_path / "page.html"), "bytes": len(html.encode()), "opened": False}
        assert [panel["kind"] for panel in data_of(html)["panels"]] == kinds, name


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "name a file"),
        (("missing.sched",), "--machine must name one"),
        (("allreduce", "--machine", "archer", "--ranks", "4", "--bytes", "8", "-o", "page.png"), "end in .html"),
        (("allreduce", "--machine", "archer", "--ranks", "4", "-o", "page.html"), "neither is given"),
        (("allreduce", "--machine", "archer", "--ranks", "4", "--bytes", "8", "-o", "none/page.html"), "none"),
    ],
)
def test_wrong_input_is_one_sentence(
    arguments: tuple[str, ...], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert words in refusal("view", *arguments)
    assert not list(tmp_path.iterdir())


def test_damaged_files_are_one_sentence(tmp_path: Path) -> None:
    """A damaged trace, report or sweep gives a page, or an error of one sentence."""
    plan = un.plan("reduce", un.machine("wse2", (2, 2)), elements=8)
    un.simulate(plan.schedule, trace_pes=range(4)).trace(tmp_path / "run.json")
    report = call("plan", "reduce", "--machine", "wse2", "--shape", "2x2", "--elements", "8", "--json").out
    (tmp_path / "plan.json").write_text(report)
    call("sweep", "reduce", "--machine", "wse2", "--shapes", "4", "--elements", "1,16", "-o", str(tmp_path / "s.csv"))
    rng = random.Random(7)
    refused = 0
    for name in ("run.json", "plan.json", "s.csv"):
        whole = (tmp_path / name).read_text()
        numbers = [match.span() for match in re.finditer(r"[0-9]+(\.[0-9]+)?|\"[a-zA-Z_]+\"", whole)]
        for _ in range(60):
            low, high = rng.choice(numbers)
            other = rng.choice(["NaN", "null", "-1", "1e999", '"x"', "[]", "{}", "18446744073709551616"])
            (tmp_path / f"bad-{name}").write_text(whole[:low] + other + whole[high:])
            ran = call("view", str(tmp_path / f"bad-{name}"), "-o", str(tmp_path / "page.html"))
            assert ran.code in (0, 2), ran.err
            assert ran.code == 0 or re.fullmatch(r"error: [^\n]*\n", ran.err), ran.err
            refused += ran.code == 2
    assert refused > 30


def test_large_schedules_without_links_say_why_they_are_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedules, "MOST_NODES", 8)
    schedule = un.plan("broadcast", un.machine("archer", 9), elements=4).schedule
    assert "9 nodes" in panel(un.view(schedule), "text")["text"]


def test_a_large_wafer_is_a_heat_map_of_its_loads_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedules, "MOST_NODES", 8)
    schedule = un.plan("allreduce", un.machine("wse2", (4, 6)), elements=100).schedule
    run, loads = un.simulate(schedule), schedule.link_loads()
    assert loads is not None
    html = un.view(schedule)
    seen = panel(html, "heat")
    assert (seen["rows"], seen["columns"]) == (4, 6)
    largest, sent, ends = ([*layer["values"]] for layer in seen["layers"])
    assert ends == run.finish.tolist()
    for node in range(24):
        of_node = loads["elements"][loads["source"] == node].tolist()
        assert (largest[node], sent[node]) == (max(of_node, default=0), sum(of_node))
    directions = panel(html, "table")["rows"]
    assert [row[1] for row in directions] == [4 * 5, 4 * 5, 3 * 6, 3 * 6]
    assert sum(row[1] * row[3] for row in directions) == pytest.approx(int(loads["elements"].sum()))


@pytest.mark.parametrize(("name", "shape"), [("hx2mesh-small", (4, 6)), ("fattree-small", (40,))])
def test_a_large_network_is_a_heat_map_of_its_packets(
    name: str, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedules, "MOST_INSTRUCTIONS", 8)
    schedule = un.plan("allgather", un.machine(name, shape), elements=4096).schedule
    packets = un.simulate(schedule).metrics["link_packets"].value
    html = un.view(schedule)
    seen = panel(html, "heat")
    assert seen["rows"] * seen["columns"] == 1024
    layers = [layer["values"] for layer in seen["layers"]]
    assert all(len(values) == 1024 for values in layers)
    part = schedule.ranks
    assert [sum(value is not None for value in values) for values in layers] == [part] * 3
    classes = panel(html, "table")["rows"]
    assert sum(row[1] * row[3] for row in classes) == pytest.approx(sum(map(int, packets)))
    assert max(row[4] for row in classes) == max(packets)


def test_a_network_of_many_cables_is_a_heat_map() -> None:
    """A part of 16 x 17 accelerators has more nodes than a map in which cables can be told apart."""
    plan = un.plan("broadcast", un.machine("hx2mesh-small", (16, 17)), elements=4, algorithm="binomial")
    html = un.view(plan.schedule)
    assert [panel["kind"] for panel in data_of(html)["panels"]] == ["heat", "table"]
    small = un.plan("broadcast", un.machine("hx2mesh-small", (16, 16)), elements=4, algorithm="binomial")
    assert panel(un.view(small.schedule), "map")["nodes"]


def test_a_plan_begins_with_its_time_and_bandwidth() -> None:
    plan = un.plan("allreduce", "dgx-h100", elements=2**18)
    summary = data_of(un.view(plan))["facts"]["summary"]
    assert summary.startswith(f"{time_text(plan.predicted['seconds'])} predicted, {plan.ratio:.2f} times the bound of ")
    assert summary.endswith(f"{plan.report()['busbw']:,.4g} GB/s on the bus (busbw of nccl-tests)")


def test_failed_parts_are_named() -> None:
    machine = un.machine("hx2mesh-small", (4, 4), failed=["0-1"])
    facts = data_of(un.view(un.plan("allgather", machine, elements=64).schedule))["facts"]
    assert "accelerator" in facts["failed"]


def test_a_step_of_a_workload_is_drawn(tmp_path: Path) -> None:
    report = written(tmp_path / "step.json", call("workload", "gpt-3", "--machine", "hx2mesh-small", "--json").out)
    found = json.loads(report.read_text())
    html = un.view(report)
    assert [panel["kind"] for panel in data_of(html)["panels"]] == ["picture", "table"]
    made = [c for phase in found["phases"] for c in phase["communication"]]
    assert [row[1:4] for row in panel(html, "table")["rows"]] == [
        [c["collective"], c["ranks"], c["bytes"]] for c in made
    ]


def test_reports_of_comparisons_and_traffic_are_shown(tmp_path: Path) -> None:
    compared, sent = tmp_path / "compare.json", tmp_path / "traffic.json"
    machines = ["dgx-h100", "hx2mesh-small-one-plane"]
    compared.write_text(call("compare", "dlrm", "--machines", ",".join(machines), "--json").out)
    html = un.view(compared)
    assert [panel["kind"] for panel in data_of(html)["panels"]] == ["picture", "table"]
    steps = [row["seconds"] for row in json.loads(compared.read_text())["rows"]]
    rows = panel(html, "table")["rows"]
    assert [row[1] for row in rows] == machines
    assert [row[4] for row in rows] == [None if step is None else 1e3 * step for step in steps]
    sent.write_text(call("traffic", "permutation", "--machine", "dgx-h100", "--bytes", "64KiB", "--json").out)
    assert data_of(un.view(sent))["facts"]["pattern"] == "permutation"


@pytest.mark.parametrize("width", [700, 1280])
def test_a_browser_shows_a_large_network_and_units_after_numbers(open_page: Any, width: int) -> None:
    page = open_page(un.view(un.machine("fattree-large")), viewport={"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.wait_for_function("document.querySelector('.picture img').naturalWidth > 100")
    facts = page.locator(".facts div").all_text_contents()
    assert {"link400 Gb/s", "link latency40 ns", "packet8 KiB", "prices switch14,280 $"} <= set(facts)
    rows = page.locator("section.table tbody tr").all_text_contents()
    assert rows == ["AOCswitch - switch400 Gb/s40 ns32,768", "DACaccelerator - switch400 Gb/s40 ns16,384"]


def test_pages_of_probes_diagnoses_and_expectations(tmp_path: Path) -> None:
    probe = tmp_path / "probe.json"
    probe.write_text(json.dumps(un.probe("dgx-h100", simulate=True, slow={"3-8": 0.2}).report()))
    links = panel(un.view(probe), "map")["links"]
    ends = zip(links["source"], links["target"], strict=True)
    slow = [sorted(pair) for pair, state in zip(ends, links["state"], strict=True) if state == "slow"]
    assert slow == [[3, 8]]
    at = links["state"].index("slow")
    assert links["reached"][at] / links["expected"][at] == pytest.approx(0.2, rel=0.05)
    assert panel(un.view(probe), "table")["rows"][0][:2] == ["3-8", "slow"]

    log = tmp_path / "log.csv"
    log.write_text("op,gpus,bytes,time_us\nallreduce,4,64,20\nallreduce,4,1024,500\nbroadcast,2,64,9\n")
    ran = call("diagnose", str(log), "--machine", "dgx-h100", "--json")
    (tmp_path / "d.json").write_text(ran.out)
    pictures = panel(un.view(tmp_path / "d.json"), "curves")["pictures"]
    assert [of["name"] for of in pictures] == ["allreduce, 4 ranks", "broadcast, 2 ranks"]
    lines = {line["name"]: line["points"] for line in pictures[0]["lines"]}
    assert lines["log.csv"] == [[64, pytest.approx(20e-6)], [1024, pytest.approx(500e-6)]]
    assert all(low[1] < high[1] for low, high in zip(lines["ceiling"], lines["expected"], strict=True))

    call("expect", "allreduce", "--machine", "dgx-h100", "--sizes", "8,1KiB", "-o", str(tmp_path / "e.json"))
    (picture,) = panel(un.view(tmp_path / "e.json"), "curves")["pictures"]
    rows = un.expect("allreduce", "dgx-h100", sizes=[8, 1024])["rows"]
    assert dict(picture["lines"][0]["points"]) == {row["bytes"]: row["plan"] for row in rows}

    draw = random.Random(9)
    for name in ("probe.json", "d.json", "e.json"):
        whole = (tmp_path / name).read_text()
        # Each value by which the pages divide is 0 once.
        divisors = [match.span(1) for match in re.finditer(r'"(?:expected|bytes|ceiling)": ([0-9.e+-]+)', whole)][:8]
        numbers = [match.span() for match in re.finditer(r"[0-9]+(\.[0-9]+)?|\"[a-zA-Z_]+\"", whole)]
        others = ["NaN", "null", "0", "-1", "1e999", '"x"', "[]", "{}", "18446744073709551616"]
        drawn = [(draw.choice(numbers), draw.choice(others)) for _ in range(40)]
        for (low, high), other in [*drawn, *((span, "0") for span in divisors)]:
            (tmp_path / "bad.json").write_text(whole[:low] + other + whole[high:])
            ran = call("view", str(tmp_path / "bad.json"), "-o", str(tmp_path / "page.html"))
            assert ran.code in (0, 2), ran.err
            assert ran.code == 0 or re.fullmatch(r"error: [^\n]*\n", ran.err), ran.err


@pytest.mark.parametrize("width", [700, 1280])
def test_a_browser_colours_slow_cables_and_draws_times(open_page: Any, tmp_path: Path, width: int) -> None:
    edges = "".join(f"{host} 8 gbps=100 ns=150\n" for host in range(8))
    star = un._core.import_network(edges, "cables", "edges", "star", 1, 8)
    file = written(tmp_path / "probe.json", json.dumps(un.probe(star, simulate=True, slow={"3-8": 0.2}).report()))
    page = open_page(un.view(file), viewport={"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator(".below .key").all_text_contents() == ["accelerator", "switch", "slow", "in time"]
    # The colour of slow cables is nowhere else on the canvas.
    count = """canvas => {
        const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
        let found = 0;
        for (let k = 0; k < data.length; k += 4) found += data[k] === 0xb3 && data[k + 1] === 0x47 && data[k + 2] === 0;
        return found;
    }"""
    page.wait_for_function(f"({count})(document.querySelector('canvas.map')) > 200")
    call("expect", "allreduce", "--machine", "dgx-h100", "--sizes", "8,1KiB,1MiB", "-o", str(tmp_path / "e.json"))
    page = open_page(un.view(tmp_path / "e.json"), viewport={"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("svg.curves path[stroke-dasharray]").count() == 2
    assert page.locator(".below .key").all_text_contents() == ["plan", "no schedule takes less"]


@pytest.fixture
def open_page(browser: Browser, tmp_path: Path) -> Iterator[Any]:
    """Returns a function that opens a page; the test fails if the page logs an error or loads another file."""
    faults: list[str] = []
    pages: list[Page] = []

    def opened(html: str, **options: Any) -> Page:
        file = written(tmp_path / "page.html", html)
        page = browser.new_page(**options)
        page.set_default_timeout(1000 * PATIENCE)
        pages.append(page)
        page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("request", lambda request: faults.append(request.url) if request.url != file.as_uri() else None)
        page.goto(file.as_uri())
        return page

    yield opened
    for page in pages:
        page.close()
    assert not faults


def test_a_browser_plays_a_schedule(open_page: Any) -> None:
    schedule = un.plan("reduce", un.machine("wse2", (4, 4)), elements=16).schedule
    run = un.simulate(schedule)
    page = open_page(un.view(schedule))
    seen = panel(un.view(schedule), "map")
    count = len(seen["moves"]["start"])
    assert page.locator(".moment").first.text_content() == f"0 cycles of {run.cycles} cycles"
    page.locator("body").press("ArrowRight")
    assert page.locator(".moment").first.text_content().startswith("1 cycles")
    page.locator("body").press("End")
    assert page.locator(".counts").text_content() == f"0 under way, {count} of {count} done"
    assert run.cycles is not None
    half = run.cycles // 2
    page.locator("body").press("Home")
    for _ in range(half):
        page.locator("body").press("ArrowRight")
    now = sum(start <= half < end for start, end in zip(seen["moves"]["start"], seen["moves"]["end"], strict=True))
    done = sum(end <= half for end in seen["moves"]["end"])
    assert page.locator(".counts").text_content() == f"{now} under way, {done} of {count} done"
    # At the normal speed the rest of the run takes four seconds, in which a busy computer may not look at the page.
    page.get_by_label("speed").select_option("0.1")
    page.get_by_role("button", name="Play").click()
    page.wait_for_function("document.querySelector('.play').textContent === 'Pause'")
    page.wait_for_function(f"!document.querySelector('.moment').textContent.startsWith('{half} ')")
    page.get_by_role("button", name="Pause").click()


@pytest.mark.soak
def test_a_browser_shows_the_candidates_of_each_size(open_page: Any) -> None:
    where = un.machine("archer", 16)
    plans = [un.plan("allreduce", where, elements=n) for n in (16, 4096)]
    page = open_page(un.view(plans[0], sizes=[plans[1]]))
    slider = page.get_by_label("size", exact=True)
    for at, plan in enumerate(plans):
        slider.fill(str(at))
        assert page.locator(".size").text_content().startswith(f"{plan.schedule.elements:,} elements")
        names = page.locator(".bar.candidate .name").all_text_contents()
        assert [name.split()[0] for name in names] == [c["algorithm"] for c in plan.candidates][: len(names)]
        best = page.locator(".bar.candidate .value").first.text_content()
        assert best.startswith(f"{1e6 * plan.candidates[0]['seconds']:.4g} µs")


@pytest.mark.soak
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_fits_a_phone_in_both_themes(open_page: Any, scheme: str) -> None:
    plan = un.plan("allreduce", un.machine("hx2mesh-small", (4, 4)), elements=4096)
    page = open_page(un.view(plan), viewport={"width": 375, "height": 720}, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.locator(".theme").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != background


@pytest.mark.soak
def test_a_heat_map_zooms_to_single_parts(open_page: Any) -> None:
    plan = un.plan("broadcast", un.machine("wse2", (300, 300)), elements=4)
    page = open_page(un.view(plan), viewport={"width": 700, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= 700
    assert page.locator(".counts").text_content() == "the largest value of each 4 x 4 PEs; zoom in for single ones"
    for _ in range(3):
        page.get_by_role("button", name="Zoom in").click()
    assert page.locator(".counts").text_content() == "each cell is one PE"
    page.locator("canvas.map").hover()
    assert re.match(r"PE \d+,\d+\n", page.locator(".tip").text_content())
    tracks = page.locator(".bar .track").evaluate_all("found => found.map(track => track.offsetWidth)")
    assert len(set(tracks)) == 1, "bars of one length have one scale"


@pytest.mark.soak
def test_bars_of_a_timeline_are_found_by_the_pointer(open_page: Any) -> None:
    schedule = un.plan("reduce", un.machine("wse2", (2, 2)), elements=16).schedule
    page = open_page(un.view(schedule))
    seen = panel(un.view(schedule), "timeline")
    box = page.locator("canvas.timeline").bounding_box()
    first = seen["spans"]
    middle = (first["start"][0] + first["end"][0]) / 2 / seen["last"]
    at = {"x": 92 + middle * (box["width"] - 100), "y": 24 + 18 * first["track"][0] + 9}
    page.locator("canvas.timeline").hover(position=at)
    tip = page.locator("section.timeline .tip")
    assert first["name"][0] in tip.text_content()


@pytest.mark.soak
def test_tracks_are_shown_in_pages_that_a_browser_can_draw(open_page: Any) -> None:
    schedule = un.plan("reduce", un.machine("wse2", (16, 16)), elements=16, algorithm="kd-tree").schedule
    html = un.view(schedule)
    count = len(panel(html, "timeline")["tracks"])
    assert count > 256
    page = open_page(html)
    shown = page.locator("section.timeline .tracks")
    assert f"1 to 256 of {count:,}" in shown.text_content()
    # The first and the last page of tracks are not empty.
    drawn = (
        "canvas => { const d = canvas.getContext('2d').getImageData(92, 24, canvas.width - 92, 900).data;"
        " return new Set(new Uint32Array(d.buffer)).size }"
    )
    canvas = page.locator("canvas.timeline")
    assert canvas.bounding_box()["height"] < 8192
    assert canvas.evaluate(drawn) > 3
    page.get_by_role("button", name="Last tracks").click()
    assert f"to {count:,} of {count:,}" in shown.text_content()
    assert canvas.evaluate(drawn) > 3


@pytest.mark.soak
def test_the_root_and_the_speeds_of_cables_are_told(open_page: Any, tmp_path: Path) -> None:
    plan = un.plan("reduce", un.machine("wse2", (4, 4)), elements=16, root=5)
    seen = panel(un.view(plan.schedule), "map")
    assert seen["nodes"]["root"] == 5
    assert "root" in open_page(un.view(plan.schedule)).locator("section.map .below").text_content()
    own = tmp_path / "star.toml"
    # A box's accelerators and its switch are in one row, so straight cables would overlap like a chain.
    own.write_text(un.machine("dgx-a100-x4").to_toml())
    network = panel(un.view(own), "map")
    assert "1920 Gb/s" in network["note"]
    page = open_page(un.view(own))
    at = page.locator("section.map canvas").bounding_box()
    # The first column of accelerators is at the left margin.
    tip = page.locator("section.map .tip")
    for y in range(100, int(at["height"]), 10):
        page.locator("section.map canvas").hover(position={"x": 28, "y": y})
        if "accelerator 0" in (tip.text_content() or ""):
            break
    assert "to switch 32: 1920 Gb/s, 350 ns" in tip.text_content()


@pytest.mark.soak
def test_the_page_of_the_documentation(open_page: Any) -> None:
    """The page in docs/images/view.png shows the middle of a reduce, and candidates."""
    where = un.machine("wse2", (8, 8))
    plans = [un.plan("reduce", where, elements=n) for n in (4, 64, 1024)]
    page = open_page(un.view(plans[1], sizes=[plans[0], plans[2]]), viewport={"width": 1000, "height": 1000})
    cycles = un.simulate(plans[1].schedule).cycles or 0
    page.locator("section.map input[type=range]").fill("500")
    assert page.locator(".moment").first.text_content() == f"{cycles / 2:g} cycles of {cycles} cycles"
    if os.environ.get("UNISONO_RECORD"):
        page.screenshot(path=ROOT / "docs" / "images" / "view.png")


@pytest.mark.parametrize(("name", "shape"), [("wse2", (4, 4)), ("archer", (4,)), ("hx2mesh-small", (2, 2))])
def test_notebooks_show_tables(name: str, shape: tuple[int, ...]) -> None:
    plan = un.plan("allreduce", un.machine(name, shape), elements=16)
    shown = plan._repr_html_()
    assert all(row["algorithm"] in shown for row in plan.candidates[:12])
    run = un.simulate(plan.schedule)
    for subject in (plan, plan.schedule, plan.schedule.verify(), plan.schedule.machine, run):
        text = subject._repr_html_()  # type: ignore[union-attr]
        assert text.startswith("<table>")
        assert text.count("<tr>") == text.count("</tr>") > 2


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 ns"), (7.8448e-7, "784.5 ns"), (1e-6, "1 µs"), (0.0123456, "12.35 ms"), (12345.6, "12,350 s")],
)
def test_facts_of_pages_have_times_like_their_players(seconds: float, text: str) -> None:
    """Python formats times as `web/src/numbers.ts` does: four digits, without trailing zeros."""
    assert time_text(seconds) == text


def test_rows_of_a_plan_and_clocks_of_a_trace_are_in_words(tmp_path: Path) -> None:
    plan = tmp_path / "own.plan"
    un.save_plans(
        [(("allreduce", 4), 0, 63), (un.plan("allreduce", un.machine("archer", 4), elements=8), 64, None)], plan
    )
    found = data_of(un.view(plan))
    assert found["facts"]["size"].endswith(" bytes")
    (table,) = found["panels"]
    rows = [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]
    assert [(row["algorithm"] == "the library's own", row["last_bytes"]) for row in rows] == [
        (True, 63),
        (False, "any"),
    ]
    assert "expression_class" not in table["columns"]
    names = [{"name": "process_name", "ph": "M", "pid": n, "args": {"name": f"rank {n - 1}"}} for n in (1, 2)]
    spans = [{"name": "push", "ph": "X", "pid": n, "tid": 1, "ts": 0, "dur": 1} for n in (1, 2)]
    trace = tmp_path / "run.json"
    trace.write_text(json.dumps({"otherData": {"clock_error_ns": [0.0, 12740.0]}, "traceEvents": [*names, *spans]}))
    found = data_of(un.view(trace))
    assert found["facts"]["clock_error"] == "at most 12.7 µs"
    assert found["panels"][0]["tracks"] == ["rank 0 track 1", "rank 1 track 1"]


@pytest.mark.parametrize(
    ("preset", "words"),
    [
        ("hx2mesh-small", "1,024 accelerators, 64 parts of 32 switches, "),
        ("hx2mesh-large", "'unisono topology hx2mesh-large --plot FILE.png' writes this picture"),
        ("dgx-h100", "8 accelerators, 1 switch,"),
    ],
)
def test_a_preset_is_drawn_by_its_name(preset: str, words: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert call("view", preset, "-o", str(page)).code == 0
    assert words in page.read_text().replace("\\u0027", "'").replace("&#x27;", "'")
