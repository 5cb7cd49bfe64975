"""Lists of cables whose nodes have names: they are the networks of the same lists with numbers."""

import random
import subprocess
from pathlib import Path

import networkx as nx
import pytest
import unisono as un
from unisono import InputError, _core
from unisono.lab.scaling import Cable, Network, scaled
from unisono.lab.session import Lab
from unisono.machines.named_cables import named_nodes

from .conftest import call, refusal, written

#: Two leaves with two hosts each; names have dashes and numbers of several digits.
NAMED = """
host2 leaf-a gbps=10 ns=500   # rack 1
host10 leaf-b gbps=10
host1 leaf-b gbps=10
host9 leaf-a
leaf-a leaf-b gbps=5 count=2
"""
NAMES = ["host1", "host2", "host9", "host10", "leaf-a", "leaf-b"]


def machine(folder: Path, text: str = NAMED, accelerators: str = "host*") -> un.Machine:
    file = written(folder / "cables.txt", text)
    return un.import_machine(file, accelerators=accelerators)


def test_a_list_with_names_is_the_network_of_its_numbers(tmp_path: Path) -> None:
    """Random networks have the same cables with names as with numbers, and the machine file keeps the names."""
    draw = random.Random(7)
    for _ in range(30):
        hosts, switches = draw.randint(2, 12), draw.randint(1, 4)
        cables = [(node, draw.randrange(hosts, hosts + switches)) for node in range(hosts)]
        cables += [(node, node + 1) for node in range(hosts, hosts + switches - 1)]
        cables += [(draw.randrange(hosts), draw.randrange(hosts, hosts + switches)) for _ in range(3)]
        draw.shuffle(cables)
        rates = [draw.choice(["", " gbps=25", " ns=700 gbps=50", " aoc count=2"]) for _ in cables]
        names = [f"n{node}x" for node in range(hosts)] + [f"sw{node}" for node in range(switches)]
        numbered = "".join(f"{a} {b}{rate}\n" for (a, b), rate in zip(cables, rates, strict=True))
        named = "".join(f"{names[a]} {names[b]}{rate}\n" for (a, b), rate in zip(cables, rates, strict=True))
        found = machine(tmp_path, named, "n*x,none")
        other = _core.import_network(numbered, "cables", "edges", "cables", 1, hosts)
        first, second = _core.plane(found), _core.plane(other)
        for key in ("a", "b", "kind", "gbps", "latency_ns"):
            assert first[key].tolist() == second[key].tolist(), key
        assert _core.part_names(found) == names
        again = un.Machine.from_toml(found.to_toml(), "again")
        assert _core.part_names(again) == names
        assert again.to_toml() == found.to_toml()


def test_accelerators_come_first_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    assert _core.part_names(machine(tmp_path)) == NAMES
    every = named_nodes(NAMED, "*")
    assert every is not None
    assert (every.names, every.accelerators) == (NAMES, 6)
    assert named_nodes("0 1\n1 2 gbps=5\n", None) is None


def test_failures_and_messages_name_nodes(tmp_path: Path) -> None:
    file = written(tmp_path / "m.toml", machine(tmp_path).to_toml())
    plan = ("plan", "allreduce", "--machine", str(file), "--bytes", "64KiB", "--fail")
    assert call(*plan, "leaf-a-leaf-b:1").code == call(*plan, "leaf-b to leaf-a:1").code == 0
    assert call(*plan, "host9").out == call(*plan, "2").out
    for failed, said in [
        ("host9-leaf-a", "without what failed (host9 to leaf-a) the accelerator is cut off: host9; fail it too"),
        ("leaf-a", "without what failed (leaf-a) the accelerators are cut off: host2, host9; fail them too"),
        ("host9-leaf-b", "no cable joins host9-leaf-b"),
        ("2-5", "no cable joins host9 and leaf-b"),
    ]:
        assert said in refusal(*plan, failed)


@pytest.mark.parametrize(
    ("text", "accelerators", "said"),
    [
        (NAMED, None, "have names, such as 'host2'; state which are accelerators by patterns"),
        (NAMED, 4, "have names, such as 'host2'; state which are accelerators by patterns"),
        (NAMED, "node*", "no node has a name as 'node*'; the list has 'host2', 'leaf-a', 'host10', 'leaf-b', ..."),
        (
            NAMED + "7 leaf-a\n",
            "host*",
            "line 7 of the cables has node '7', and other lines have names such as 'host2'",
        ),
        ("0 1\n", "host*", "the nodes of the list have numbers; accepted is a number"),
        (NAMED + "host3 leaf-a us=1\n", "host*", "is 'host3 leaf-a us=1': 'us=1' is not accepted"),
        (NAMED + "host3 leaf-a gbps=25Gb/s\n", "host*", "'gbps=25Gb/s' is not accepted"),
        (NAMED + "host3\n", "host*", "is 'host3': it has one node"),
        (NAMED + "host3 host3\n", "host*", "the cable host3 host3 has both ends at one node"),
        (NAMED + "host3 leaf-c\n", "host*", "node host3 is not connected with node host1"),
    ],
)
def test_wrong_lists_name_what_is_wrong(tmp_path: Path, text: str, accelerators: str | int | None, said: str) -> None:
    file = written(tmp_path / "cables.txt", text)
    with pytest.raises(InputError) as refused:
        un.import_machine(file, accelerators=accelerators)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["a", "b"], "there are 2 names for 3 nodes; accepted is one for each node"),
        (["a", "b", "a"], "two nodes have the name 'a'"),
        (["a", "b", "3"], "'3' is not a node's name; accepted are words that begin with a letter, without '#'"),
        (["a", "b", "c d"], "'c d' is not a node's name"),
        (["a", "b", "c#"], "'c#' is not a node's name"),
    ],
)
def test_names_in_a_machine_file_are_one_word_for_each_node(names: list[str], said: str) -> None:
    table = _core.import_network("0 2\n1 2\n", "cables", "edges", "cables", 1, 2).describe()
    table["topology"]["names"] = names
    with pytest.raises(InputError) as refused:
        un.machine(table)
    assert said in str(refused.value)


def test_a_lab_has_the_names_of_its_machine(tmp_path: Path) -> None:
    network = scaled(machine(tmp_path))
    assert (network.hosts, network.switches) == (tuple(NAMES[:4]), tuple(NAMES[4:]))
    for name in ("host9-leaf-a", "leaf-a-host9", "c2-s4", "s4-c2", "2-4", "4-2"):
        assert network.cable(name).name == "host9-leaf-a"
    with pytest.raises(InputError, match="'host9-leaf-b' is no cable of cables"):
        network.cable("host9-leaf-b")
    # No host may have an underscore in its name, or the name of this computer, or a name equal to another but for case.
    for wrong in ("host_9", "localhost", "HOST1"):
        other = scaled(machine(tmp_path, NAMED.replace("host9", wrong), "host*,HOST*,localhost"))
        assert other.hosts == ("c0", "c1", "c2", "c3")
    swapped = scaled(machine(tmp_path, "c1 s2\nc0x s2\n", "c*"))
    assert swapped.hosts == ("c0x", "c1")
    assert swapped.cable("c1-s2").a == "c1"


@pytest.mark.parametrize("seed", range(20))
def test_cut_cables_are_named_if_they_separate_hosts(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(seed)
    tree = nx.random_labeled_tree(8, seed=seed)
    hosts, switches = ("c0", "c1", "c2", "c3"), ("s4", "s5", "s6", "s7")
    names = dict(enumerate(hosts + switches))
    cables = tuple(Cable(names[a], names[b], 1, 1) for a, b in [*tree.edges, (0, 7), (2, 5)])
    down = draw.sample(cables, draw.randint(0, 3))
    lab = Lab(Path(), Network("m", hosts, switches, 1, cables), 2, None, user=False)
    ways = [(end, other, c not in down) for c in cables for end, other in ((c.a, c.b), (c.b, c.a))]
    ports = [{"from": a, "to": b, "up": up} for a, b, up in ways]
    monkeypatch.setattr(Lab, "report", lambda _: {"ports": ports})
    left = nx.Graph([(c.a, c.b) for c in cables if c not in down])
    left.add_nodes_from(hosts)
    for ranks in range(1, 9):
        used = hosts[: (ranks + 1) // 2]
        apart = [host for host in used if not nx.has_path(left, "c0", host)]
        said = lab.cut_off(ranks)
        assert bool(said) == bool(apart)
        if apart:
            names_of_down = ", ".join(cable.name for cable in cables if cable in down)
            assert said.startswith(f"no way leads from c0 to {', '.join(apart)}, since {names_of_down} ")


def test_the_output_of_ibnetdiscover_is_named_and_its_command_writes_the_cables(tmp_path: Path) -> None:
    """The advised command prints each cable of a random tree of switches and cards once, also parallel ones."""
    some = random.Random(41)
    switches, cards = [f"S-{at:016x}" for at in range(1, 4)], [f"H-{at:016x}" for at in range(16, 22)]
    cables = [("S-0000000000000001", of) for of in switches[1:] for _ in range(some.randint(1, 2))]
    cables += [(some.choice(switches), card) for card in cards]
    lines = ["#", "# Topology file: generated on Mon Jan  1 00:00:00 2024", "#"]
    for node in some.sample(switches + cards, len(switches + cards)):
        kind, words = ("Switch", "switchguid=0x1(1)") if node in switches else ("Ca", "caguid=0x11")
        ends = [other for cable in cables if node in cable for other in cable if other != node]
        lines += ["vendid=0x2c9", words, f'{kind}\t{len(ends)} "{node}"\t\t# "name of S-1" enhanced port 0 lid 1 lmc 0']
        lines += [f'[{at}]\t"{other}"[1](11) \t\t# "node1 HCA-1" lid 2 4xHDR' for at, other in enumerate(ends, 1)]
        lines += [""]
    (tmp_path / "ib.txt").write_text("\n".join(lines))
    with pytest.raises(un.InputError, match="is the output of ibnetdiscover, and accepted is a line") as refused:
        un.import_machine(tmp_path / "ib.txt", "edges")
    subprocess.run(str(refused.value).split("`")[1], shell=True, cwd=tmp_path, check=True)
    printed = (tmp_path / "cables.txt").read_text().splitlines()
    assert sorted(sorted(line.split()) for line in printed) == sorted(map(sorted, cables))
    assert un.import_machine(tmp_path / "cables.txt", accelerators="H-*").describe()["topology"]["accelerators"] == 6


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "\tGPU0\tGPU1\tNIC0\tCPUs\nGPU0\t X \tNV12\tPXB\t0-31\nGPU1\tNV12\t X \tPXB\t0-31\n",
            "matrix of GPUs",
        ),
        (
            "=== Weight between two GPUs ===\n       GPU0   GPU1\nGPU0   0      15\nGPU1   15     0\n",
            "matrix of GPUs",
        ),
        ("\n\tGPU0\tNIC0\nGPU0\t X \tPXB\n", "NCCL_TOPO_DUMP_FILE"),
        ("# Slurm\nSwitchName=s0 Nodes=tux[0-3]\nSwitchName=s1 Switches=s0\n", "a topology.conf of Slurm"),
    ],
)
def test_files_without_rates_of_cables_are_named(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "it.txt").write_text(text)
    for patterns in (None, "*"):
        with pytest.raises(un.InputError, match=said):
            un.import_machine(tmp_path / "it.txt", "edges", accelerators=patterns)


def test_a_list_of_cables_may_name_gpus(tmp_path: Path) -> None:
    (tmp_path / "it.txt").write_text("GPU0 nvs gbps=400\nGPU1 nvs gbps=400\n")
    found = un.import_machine(tmp_path / "it.txt", "edges", accelerators="GPU*").describe()
    assert found["topology"]["names"] == ["GPU0", "GPU1", "nvs"]


def test_cables_without_a_rate_are_counted(tmp_path: Path) -> None:
    (tmp_path / "it.txt").write_text("0 3\n1 3 gbps=400\n2 3 ns=5\n")
    notes = un.import_machine(tmp_path / "it.txt", accelerators=3).describe()["notes"]
    assert any("2 of the 3 lines of cables state no rate and have 100 Gb/s" in note for note in notes)
