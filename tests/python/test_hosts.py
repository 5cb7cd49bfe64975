"""Ranks that share the card of a host: machine files, and their calibration from measured levels."""

import random
from pathlib import Path

import pytest
import unisono as un
from unisono._core import simulate_messages
from unisono.lab.scaling import scaled
from unisono.machines.hosts import per_host, with_ranks, without_ranks
from unisono.tuning.calibration import Calibration, Levels
from unisono.tuning.levels import Level
from unisono.tuning.network_calibration import check_network, ranks_costs

#: The gigabits a second of a host's cable, and its latency in ns.
CARD, WIRE = 25.0, 300.0


def network(folder: Path, hosts: int) -> un.Machine:
    """Returns two leaves, among which hosts are dealt in turn, under one switch."""
    leaves, top = (hosts, hosts + 1), hosts + 2
    lines = [f"{host} {leaves[host % 2]}" for host in range(hosts)] + [f"{leaf} {top}" for leaf in leaves]
    path = folder / "tree.txt"
    path.write_text("".join(f"{line} gbps={CARD} ns={WIRE}\n" for line in lines))
    return un.import_machine(path, "edges", accelerators=hosts)


def accelerators(machine: un.Machine) -> int:
    assert machine.topology is not None
    return int(machine.topology["accelerators"])


def straight(ranks: int, alpha: float, issue: float, beta: float) -> Calibration:
    """Returns measurements without noise, of messages that take ``alpha + beta * bytes`` ns."""
    sizes = (0, 8, 64, 512, 4096, 32768, 262144, 1 << 20, 4 << 20)
    peers = [(k, alpha + issue * k, alpha + issue * k) for k in range(1, 5)]
    both = {"non-blocking": peers, "blocking": peers}
    return Calibration(
        "a library",
        ranks,
        10,
        [(size, alpha + beta * size, alpha + beta * size) for size in sizes],
        both,
        [(size, 0.1 * size, 0.1 * size) for size in sizes if size],
        False,
    )


@pytest.mark.parametrize("seed", range(4))
def test_ranks_of_a_host_share_its_card(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    hosts, ranks = draw.randint(2, 6), draw.randint(2, 5)
    bare = network(tmp_path, hosts)
    # Messages inside a host are faster than those between hosts, in latency and rate.
    inner, outer = draw.uniform(200, 900), draw.uniform(1000, 5000)
    measured = Levels(
        [Level("node", ranks, tuple(range(ranks))), Level("network", hosts, tuple(range(0, hosts * ranks, ranks)))],
        [straight(ranks, inner, 50.0, 0.05), straight(hosts, outer + 3 * WIRE, 100.0, 8 / (0.9 * CARD))],
        "block",
    )
    scale = draw.choice([1.0, 7.0])
    slow = Levels(
        measured.found,
        [straight(ranks, scale * inner, scale * 50.0, scale * 0.05),
         straight(hosts, scale * (outer + 3 * WIRE), scale * 100.0, scale * 8 / (0.9 * CARD))],
        "block",
    )  # fmt: skip
    costs = ranks_costs(bare, slow, scale)
    made = costs.machine
    assert (per_host(made), accelerators(made)) == (ranks, hosts * ranks)
    # The machine takes the measured times between hosts and inside one.
    assert all(abs(error) < 0.02 for size, error in costs.residuals.items() if int(size) >= 8), costs.residuals
    for size in (8, 1 << 20):
        own = simulate_messages(made, [(0, 1, size)]).seconds * 1e9
        assert own == pytest.approx(inner + 0.05 * size, rel=0.02), size
    # All ranks of host 0 send to host 1 at once: the card takes their bytes one after the other.
    size = 1 << 20
    one = simulate_messages(made, [(0, ranks, size)]).seconds
    all_at_once = simulate_messages(made, [(rank, ranks + rank, size) for rank in range(ranks)]).seconds
    assert all_at_once == pytest.approx(ranks * one, rel=0.05)
    # The hosts are those of the network that was given, and a lab has a host for each.
    assert accelerators(without_ranks(made)) == hosts
    assert len(scaled(made).hosts) == hosts
    path = tmp_path / "filled.toml"
    path.write_text(made.to_toml())
    assert un.machine(str(path)).describe() == made.describe()
    report = un.plan("allreduce", made, bytes="1MiB").report()
    assert (report["ranks"], report["ratio"] is not None and report["ratio"] >= 1) == (hosts * ranks, True)


def test_a_host_with_ranks_is_a_graph() -> None:
    with pytest.raises(un.InputError, match="only a graph, a list of cables between hosts"):
        with_ranks(un.machine("torus2d-small"), 2, 100.0, 100.0)


def test_nodes_that_are_no_hosts_are_refused(tmp_path: Path) -> None:
    machine = network(tmp_path, 3)
    check_network(machine, [[0], [1], [2]])
    check_network(machine, [[0, 1], [2, 3]])
    for nodes, said in (
        ([[0, 1, 2, 3]], "all 4 ranks share one node"),
        ([[0, 1], [2]], "the nodes have 1 to 2 ranks"),
        ([[0, 2], [1, 3]], "follow each other"),
        ([[0, 1], [2, 3], [4, 5], [6, 7]], "4 hosts are more than the 3 accelerators"),
        ([[0], [1], [2], [3]], "4 ranks are more than the 3 accelerators"),
    ):
        with pytest.raises(un.InputError, match=said):
            check_network(machine, nodes)
    with pytest.raises(un.InputError, match="is of kind endpoint"):
        check_network(un.machine("archer"), [[0], [1]])


@pytest.mark.parametrize("seed", range(3))
def test_hierarchical_schedules_know_the_ranks_of_a_host(tmp_path: Path, seed: int) -> None:
    draw = random.Random(f"levels {seed}")
    ranks = draw.randint(2, 5)
    made = with_ranks(network(tmp_path, draw.randint(2, 6)), ranks, 400.0, 100.0)
    size = 4 << draw.randrange(14)
    best = un.plan("allreduce", made, bytes=size)
    own = un.plan("allreduce", made, bytes=size, algorithm="hierarchical")
    assert best.predicted["seconds"] <= own.predicted["seconds"]
    stated = un.plan("allreduce", made, bytes=size, algorithm="hierarchical", params={**own.params, "node": str(ranks)})
    assert stated.predicted["seconds"] == own.predicted["seconds"]
    # A part with other ranks has no nodes that fill hosts in order.
    with pytest.raises(un.UnsupportedError, match="give the number of ranks of a node"):
        un.plan("allreduce", un.machine("torus2d-small", 8), bytes=size, algorithm="hierarchical")


def test_a_host_fails_with_its_ranks(tmp_path: Path) -> None:
    made = with_ranks(network(tmp_path, 4), 3, 400.0, 100.0)
    assert accelerators(un.machine(made.describe(), failed=["c1"])) == 9
    with pytest.raises(un.InputError, match="c1"):
        un.machine(made.describe(), failed=["c1-s5"])
