"""Machines from values of Python: dictionaries with the keys of a file, and graphs of networkx."""

import copy
import pickle
from typing import Any

import networkx as nx
import pytest
import unisono as un


@pytest.mark.parametrize("preset", ["archer", "hx2mesh-small", "wse2", "piuma", "dgx-h100"])
def test_what_a_machine_describes_is_the_machine(preset: str) -> None:
    shape = {"wse2": (4, 4), "archer": (4,), "hx2mesh-small": (4, 4)}.get(preset)
    where = un.machine(preset, shape)
    again = un.machine(where.describe(), shape)
    assert again.describe() == where.describe()
    plans = [un.plan("allreduce", machine, elements=8).predicted for machine in (where, again)]
    assert plans[0] == plans[1]


def test_sums_and_copies_of_gpus_take_the_rate_of_their_memory() -> None:
    """A sum reads two operands and writes one; a copy reads and writes."""
    machines = [un.machine(preset["name"]).describe() for preset in un.machine_presets() if preset["kind"] == "network"]
    of_gpus = [one for one in machines if "gpu" in one]
    assert len(of_gpus) > 10
    for one in of_gpus:
        copy = one.get("copy_ns_per_byte") or 2 / one["accelerator"]["memory_gb_per_second"]
        assert one["gamma_ns_per_byte"] == pytest.approx(1.5 * copy, rel=0.01), one["name"]


def test_a_dictionary_is_a_machine_where_a_name_is() -> None:
    keys = {"name": "pair", "kind": "endpoint", "model": "hockney", "alpha_ns": 1000, "beta_ns_per_byte": 1.0}
    plan = un.plan("broadcast", keys, shape=2, elements=25)
    assert plan.predicted["seconds"] == pytest.approx(1.1e-6)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({}, "kind"),
        ({"kind": "endpoint", "model": object()}, "no machine file has"),
        ({"kind": "endpoint", "model": "hockney", "alpha_ns": "much"}, "alpha_ns"),
        (
            un.machine("torus2d-small").describe()
            | {"topology": {"name": "graph", "accelerators": 2, "edges": [[0, 1, 900]]}},
            "edges must be pairs of nodes",
        ),
    ],
)
def test_wrong_dictionaries_are_one_sentence(keys: dict[str, Any], words: str) -> None:
    with pytest.raises(un.InputError, match=words) as error:
        un.machine(keys)
    assert "\n" not in str(error.value)
    assert "untagged" not in str(error.value)


def star() -> Any:
    """Returns a graph of two fast accelerators and a slow one around a switch, which is added first."""
    graph = nx.Graph(name="star")
    graph.add_node("hub", switch=True)
    for name, gbps in (("a", 800), ("b", 800), ("c", 400)):
        graph.add_edge("hub", name, gbps=gbps, ns=100)
    return graph


def test_a_graph_is_a_network() -> None:
    where = un.machine(star())
    assert (where.name, where.kind, where.shape) == ("star", "network", (3,))
    facts = where.topology
    assert facts is not None
    assert (facts["accelerators"], facts["plane"]["switches"]) == (3, 1)
    plan = un.plan("allgather", star(), bytes="8MiB")
    # The slow accelerator receives two blocks at 50 GB/s.
    assert plan.bound["seconds"] >= 2 * 8 * 2**20 / 50e9
    assert un.simulate(plan.schedule).seconds >= plan.bound["seconds"]


@pytest.mark.parametrize("seed", range(8))
def test_words_of_a_graph_are_the_names_of_nodes(seed: int) -> None:
    graph = nx.relabel_nodes(nx.random_labeled_tree(9, seed=seed), lambda node: f"{'zéA'[node % 3]}{node}-x")
    ends = {node for node in graph if graph.degree(node) == 1}
    for node in set(graph) - ends:
        graph.nodes[node]["switch"] = True
    graph.add_node("unused", switch=True)
    topology = un.machine(graph).describe()["topology"]
    names = topology["names"]
    assert set(names) == set(graph) - {"unused"}
    assert set(names[: topology["accelerators"]]) == ends
    cables = [line.split() for line in topology["edges"].splitlines()]
    assert {frozenset(names[int(end)] for end in cable[:2]) for cable in cables} == set(map(frozenset, graph.edges))
    # One node that is no word leaves all nodes without names.
    odd = ("3", 3, "a b", "#", "")[seed % 5]
    other = un.machine(nx.relabel_nodes(graph, {min(ends): odd})).describe()["topology"]
    assert "names" not in other
    assert other["edges"] == topology["edges"]


@pytest.mark.parametrize("graph", [nx.cycle_graph(5), nx.hypercube_graph(3), nx.complete_graph(4)])
def test_graphs_of_networkx_have_their_diameter(graph: Any) -> None:
    where = un.machine(graph)
    assert where.topology is not None
    assert where.topology["diameter"] == nx.diameter(graph)


def test_wrong_graphs_are_one_sentence() -> None:
    only = nx.Graph()
    only.add_node("s", switch=True)
    slow = nx.Graph()
    slow.add_edge(0, 1, gbps="fast")
    cases = ((only, "no accelerator"), (slow, "'fast', which is no number"), (nx.DiGraph([(0, 1)]), "directed"))
    for graph, words in cases:
        with pytest.raises(un.InputError, match=words):
            un.machine(graph)
    apart = nx.Graph([(0, 1), (2, 3)])
    with pytest.raises(un.InputError):
        un.plan("allreduce", apart, elements=4)


def test_machines_are_equal_by_value() -> None:
    eight = un.machine("archer", shape=8)
    assert eight == un.machine("archer", shape=8) == copy.copy(eight) == pickle.loads(pickle.dumps(eight))
    others = [un.machine("archer"), un.machine("archer", shape=9), un.machine("hx2mesh-small"), "archer"]
    assert eight not in others
    assert len({eight, un.machine("archer", shape=8), *others}) == 1 + len(others)
    failed = un.machine("hx2mesh-small", failed=["5"])
    assert failed == un.machine("hx2mesh-small", failed=["5"]) != un.machine("hx2mesh-small")
