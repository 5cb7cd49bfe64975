"""Bisections and bills of networks of random sizes, compared with flows of networkx and with the list of cables."""

import random
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
import unisono as un
from unisono.machines import plane

from .conftest import call, json_of, network_text, written

HEAD = network_text("", more="[prices]\nswitch_usd = 1000\ndac_usd = 10\naoc_usd = 100\n")


def of_family(family: str, draw: random.Random) -> str:
    """Returns the table of a network with random sizes."""
    r = draw.randint
    keys = {
        "dragonfly": lambda: f"p = {r(1, 2)}\na = {r(2, 4)}\nh = {r(1, 4)}\ng = {r(2, 5)}",
        "fattree": lambda: (
            f"accelerators = {r(17, 24)}\nlevels = 2\ndown = {r(2, 5)}\nup = {r(1, 5)}\ntop = {r(12, 16)}"
        ),
        "hxmesh": lambda: f"board = [{r(1, 3)}, {r(2, 3)}]\nboards = [{r(1, 3)}, {r(2, 3)}]",
        "hyperx": lambda: f"dims = [{r(2, 4)}, {r(2, 3)}]\nterminals = {r(2, 3)}\ncables = [{r(1, 3)}, {r(1, 2)}]",
        "mesh": lambda: f"dims = [{r(3, 5)}, {r(4, 6)}]",
        "torus": lambda: f"dims = [{r(2, 3)}, 3, {r(2, 3)}]",
    }
    return f'name = "{family}"\n{keys[family]()}'


def networks(family: str, count: int) -> list[un.Machine]:
    draw, found = random.Random(f"{family} {count}"), list[un.Machine]()
    while len(found) < count:
        try:
            machine = un.Machine.from_toml(HEAD + of_family(family, draw), "mine")
        except un.InputError:
            continue  # such as groups that could not be reached
        facts = machine.topology
        assert facts is not None
        if 4 <= facts["accelerators"] <= 30:
            found.append(machine)
    return found


def least_of(machine: un.Machine, tries: int) -> float:
    """Returns the least flow between halves in the order of numbers or columns, and random halves that are improved."""
    facts, cables = machine.topology, plane(machine)
    assert facts is not None
    n, graph = facts["accelerators"], nx.Graph()
    for a, b, gbps in zip(cables["a"].tolist(), cables["b"].tolist(), cables["gbps"].tolist(), strict=True):
        known = graph.get_edge_data(a, b, {"capacity": 0.0})["capacity"]
        graph.add_edge(a, b, capacity=known + gbps / 400)

    def flow(half: set[int]) -> float:
        joined: Any = graph.copy()
        for node in range(n):
            joined.add_edge("from" if node in half else "to", node)
        return float(nx.maximum_flow_value(joined, "from", "to"))

    last = facts["extents"][-1]
    orders = [list(range(n)), sorted(range(n), key=lambda node: (node % last, node))]
    draw = random.Random(n)
    orders += [draw.sample(range(n), n) for _ in range(tries)]
    least = min(flow(set(order[: n // 2])) for order in orders)
    half = set(orders[0][: n // 2])
    for _ in range(tries):
        other = half - {draw.choice(sorted(half))} | {draw.choice(sorted(set(range(n)) - half))}
        if flow(other) <= flow(half):
            half = other
    return min(least, flow(half))


@pytest.mark.parametrize("family", ["dragonfly", "fattree", "hxmesh", "hyperx", "mesh", "torus"])
def test_no_halves_are_joined_by_less_than_the_bisection(family: str) -> None:
    for machine in networks(family, 4):
        facts = machine.topology
        assert facts is not None
        stated = facts["narrowest_cut_share"] * facts["injection_gbps"] / 400 * (facts["accelerators"] // 2)
        assert stated <= least_of(machine, 8) * (1 + 1e-9), machine.describe()["topology"]


def test_an_uneven_tree_states_the_narrow_cut(tmp_path: Path) -> None:
    """18 leaves have 32 cables each to 9 top switches: 268 cables, not 288, join nine leaves to the others."""
    file = written(tmp_path / "ft.toml", HEAD + 'name = "fattree"\naccelerators = 576\nlevels = 2\ndown = 32\nup = 32')
    report = json_of("topology", str(file))
    assert report["bisection_is_least"] is False
    assert 0.8 < report["bisection_share"] <= 268 / 288
    assert "at most 93." in call("topology", str(file)).out


@pytest.mark.parametrize("family", ["dragonfly", "fattree", "hxmesh", "hyperx", "mesh", "torus"])
def test_the_bill_counts_the_cables_of_the_plane(family: str) -> None:
    for machine in networks(family, 6):
        facts, kinds = machine.topology, plane(machine)["kind"].tolist()
        assert facts is not None
        assert facts["cables"] == {"dac": kinds.count(1), "aoc": kinds.count(2)}, machine.describe()["topology"]
        price = 1000 * facts["switches"] + 10 * kinds.count(1) + 100 * kinds.count(2)
        assert facts["cost_usd"] == price


def test_a_hammingmesh_states_the_published_and_the_narrowest_cut() -> None:
    """Halves of all lines are 1/(2a) of the injection, and other halves have fewer cables."""
    report = json_of("topology", "hx2mesh-small")
    assert (report["bisection_share"], report["bisection_is_least"]) == (0.25, False)
    assert report["narrowest_cut_share"] < 0.25
    assert "25.00 % of injection by halves of all lines; the narrowest" in call("topology", "hx2mesh-small").out


def test_ports_without_a_cable_are_paid_only_on_request(tmp_path: Path) -> None:
    """A group has 4 global ports for 3 other groups: each of 6 pairs has a cable, and each group a free port."""
    file, table = tmp_path / "df.toml", 'name = "dragonfly"\np = 1\na = 2\nh = 2\ng = 4'
    file.write_text(HEAD + table)
    own = json_of("topology", str(file))
    assert own["cables"]["aoc"] == 6
    assert own["plane"]["spare_cables"] == {"dac": 0, "aoc": 2}
    assert "2 optical cables a plane would fill them, and are not counted" in call("topology", str(file)).out
    file.write_text(HEAD.replace("[topology]", "spare_ports = true\n[topology]") + table)
    paid = json_of("topology", str(file))
    assert paid["cables"]["aoc"] == 8
    assert paid["cost_usd"] - own["cost_usd"] == 200


def test_a_failed_board_keeps_its_name_and_grid(tmp_path: Path) -> None:
    file = written(tmp_path / "hx.toml", HEAD + 'name = "hxmesh"\nboard = [3, 3]\nboards = [3, 4]')
    report = json_of("topology", str(file), "--fail", "board 2,1")
    assert report["whole"] == {"family": "hxmesh", "accelerators": 108, "extents": [9, 12]}
    assert report["failed_names"] == ["board 2,1"]
    assert report["bisection_is_least"] is False
    assert 0 < report["narrowest_cut_share"] <= report["bisection_share"]
    printed = call("topology", str(file), "--fail", "board 2,1", "--fail", "accelerator 0,0").out
    assert "99 of 108" not in printed
    assert "98 of 108 (9 x 12)" in printed
    assert "board 2,1, accelerator 0,0" in printed
