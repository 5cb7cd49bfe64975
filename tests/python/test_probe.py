"""`unisono probe`: slow cables in the packet simulator are named, and healthy networks are not accused."""

import random
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import unisono as un
from unisono.probing import Sets, Simulated, probe
from unisono.probing.design import classes
from unisono.probing.networks import Floats, Links, Pairs, Routes

from .conftest import SOAK, call, json_of

#: Two leaves with eight hosts and one uplink each, behind one switch; and a star.
FAST = "gbps=100 ns=150"
STAR = "".join(f"{host} 8 {FAST}\n" for host in range(8))
TREE = "".join(f"{host} {8 + host % 2} {FAST}\n" for host in range(8)) + "8 10 gbps=50 ns=150\n9 10 gbps=50 ns=150\n"
#: Leaves of unlike hosts: 16 hosts of 4 leaves.
WIDE = "".join(f"{host} {16 + host % 4} {FAST}\n" for host in range(16)) + "".join(
    f"{leaf} 20 {FAST}\n" for leaf in range(16, 20)
)
#: Neighbors have one way, and no accelerator is in the middle of two ways of one length.
RING = "".join(f"{host} {(host + 1) % 5} {FAST}\n" for host in range(5))
SMALL = {"star": (STAR, 8), "tree": (TREE, 8), "wide": (WIDE, 16), "ring": (RING, 5)}
DRAWS = 100 if SOAK else 1


@cache
def network(edges: str, accelerators: int) -> un.Machine:
    return un._core.import_network(edges, "cables", "edges", "small", 1, accelerators)


@cache
def sets_of(name: str) -> Sets:
    return Sets(network(*SMALL[name]) if name in SMALL else un.machine(name))


def found(sets: Sets, slow: dict[str, float], seed: int = 0, rounds: int = 3) -> list[list[str]]:
    """The accused cables; each time is up to some hundredths longer at random."""
    result = probe(sets, Simulated(sets.links, slow, noise=0.01, seed=seed), rounds)
    return sorted(of.cables for of in result.accused)


def cables_by_class(sets: Sets) -> list[list[str]]:
    """Cables by the kinds of their ends, their rates, and the ports of their nodes."""
    links = sets.links
    kinds: dict[tuple[object, ...], list[str]] = {}
    for cable in links.cables.tolist():
        link = links.of_cable(cable)[0]
        ends = [(bool(end < links.accelerators), int((links.ends[:, 0] == end).sum())) for end in links.ends[link]]
        kinds.setdefault((tuple(sorted(ends)), float(links.gbps[link])), []).append(links.name(cable))
    return list(kinds.values())


@pytest.mark.parametrize("name", ["star", "tree", "wide"])
def test_loads_are_those_that_the_simulator_counts(name: str) -> None:
    """Every message has one way, so the packets over a link are those of the messages that are said to use it."""
    sets = sets_of(name)
    packet = int(sets.links.machine.describe()["packet_bytes"])
    for routes in sets.sets:
        assert routes.is_single.all()
        _, packets = sets.healthy.run(routes.pairs, sets.bytes)
        assert packets.tolist() == (-(-sets.bytes // packet) * routes.of_link(routes.share)).tolist()


@pytest.mark.parametrize("name", ["star", "tree", "wide", "dgx-h100-x8"])
def test_sets_hold_no_more_than_the_links_carry(name: str) -> None:
    """No accelerator sends or receives twice in a set, no link is overloaded, and links are told apart if they can."""
    sets = sets_of(name)
    for routes in sets.sets:
        assert len({a for a, _ in routes.pairs}) == len({b for _, b in routes.pairs}) == len(routes.pairs)
        assert routes.of_link(routes.load).max() <= 1 + 1e-6
    every = Routes.candidates(sets.links, sets.ranks)
    chosen = Routes.of(sets.links, [pair for routes in sets.sets for pair in routes.pairs])
    assert len(np.unique(classes(chosen))) == len(np.unique(classes(every)))


@pytest.mark.parametrize("name", ["star", "tree", "wide", "dgx-h100-x8", "hx2mesh-small", "fattree-small"])
def test_one_slow_cable_is_named_and_none_else(name: str) -> None:
    sets = sets_of(name)
    assert found(sets, {}, seed=1) == []
    # The larger networks take seconds for each class.
    for cables in cables_by_class(sets)[0 if SOAK or name in SMALL else -1 :]:
        draw = random.Random(f"{name} {cables[0]}")
        right = 0
        for at in range(DRAWS):
            cable = draw.choice(cables)
            accused = found(sets, {cable: 0.2}, seed=at)
            right += len(accused) == 1 and cable in accused[0]
        assert right >= 0.95 * DRAWS, (name, cables[0])


def test_series_of_cables_are_named_together() -> None:
    """Every message between the two leaves crosses both uplinks."""
    sets = sets_of("tree")
    assert found(sets, {"9-10": 0.2}) == [["8-10", "9-10"]]
    result = probe(sets, Simulated(sets.links, {"9-10": 0.2}))
    assert result.accused[0].confidence == pytest.approx(0.5, abs=0.01)
    assert any("8-10 or 9-10" in note for note in result.notes)


def test_two_slow_cables_are_both_named() -> None:
    for seed in range(5):
        slow = random.Random(seed).sample([f"{host}-8" for host in range(8)], 2)
        assert found(sets_of("star"), dict.fromkeys(slow, 0.2), seed) == sorted([cable] for cable in slow)


def test_the_rate_of_a_slow_cable_is_measured() -> None:
    for share in (0.5, 0.2, 0.05):
        accused = probe(sets_of("star"), Simulated(sets_of("star").links, {"3-8": share}), 1).accused
        assert accused[0].expected == pytest.approx(100, rel=0.01)
        # Messages have latencies beside their bytes.
        assert accused[0].rate == pytest.approx(100 * share, rel=0.06)


def test_all_cables_of_a_slow_node_accuse_the_node() -> None:
    sets = sets_of("ring")
    result = probe(sets, Simulated(sets.links, {"1-2": 0.2, "2-3": 0.2}))
    assert sorted(of.cables for of in result.accused) == [["1-2"], ["2-3"]]
    assert result.nodes == [2]


def test_the_number_of_sets_grows_with_the_logarithm_of_links() -> None:
    counts = []
    for hosts in (8, 16, 32, 64):
        star = network("".join(f"{host} {hosts} {FAST}\n" for host in range(hosts)), hosts)
        counts.append(len(Sets(star).sets))
    assert counts[-1] <= counts[0] + 3, counts


def test_a_slow_start_of_all_messages_accuses_nothing() -> None:
    """A network of another scale than the machine, as a lab, is compared with itself."""

    class Slower(Simulated):
        def measure(self, sets: Sequence[Pairs], bytes: int, rounds: int) -> list[Floats]:
            return [1000 * times for times in super().measure(sets, bytes, rounds)]

    sets = sets_of("wide")
    result = probe(sets, Slower(sets.links, {"3-19": 0.2}))
    assert [of.cables for of in result.accused] == [["3-19"]]
    assert (result.factor, result.accused[0].expected) == pytest.approx((1000, 0.1), rel=0.01)
    assert any("1e+03 times" in note for note in result.notes)


def test_one_slow_message_beside_fast_ones_accuses_nothing() -> None:
    """Other messages over the same cables are in time, so another cause made it slow."""

    class Disturbed(Simulated):
        def measure(self, sets: Sequence[Pairs], bytes: int, rounds: int) -> list[Floats]:
            found = super().measure(sets, bytes, rounds)
            for pairs, times in zip(sets, found, strict=True):
                times[:, 0] *= 3 if pairs == disturbed else 1
            return found

    sets = sets_of("star")
    disturbed = sets.sets[0].pairs
    result = probe(sets, Disturbed(sets.links))
    assert result.accused == []
    assert any(note.startswith("slow messages that no cable explains") and ": 1;" in note for note in result.notes)


def test_command(tmp_path: Path) -> None:
    edges, machine = tmp_path / "star.txt", str(tmp_path / "star.toml")
    edges.write_text(STAR)
    assert call("machines", "import", str(edges), "--from", "edges", "--accelerators", "8", "-o", machine).code == 0
    ran = call("probe", "--machine", machine, "--simulate", "--slow", "3-8=0.2")
    assert (ran.code, "1 slow cable" in ran.out, "3-8" in ran.out) == (1, True, True), ran.err
    report = json_of("probe", "--machine", machine, "--simulate")
    assert (report["links"], report["untested"], report["ranks"]) == ([], [], 8)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--machine", "wse2", "--simulate"], "a probe needs the cables of a network"),
        (["--machine", "archer", "--simulate"], "a probe needs the cables of a network"),
        (["--machine", "dgx-h100", "--slow", "0-8=0.2"], "--slow is for --simulate"),
        (["--machine", "dgx-h100", "--simulate", "--slow", "0-99=0.2"], "'0-99' is no cable of dgx-h100"),
        (["--machine", "dgx-h100", "--simulate", "--slow", "0-8"], "accepted is A-B=SHARE"),
        (["--machine", "dgx-h100", "--simulate", "--slow", "0-8=0"], "above 0 and at most 1"),
        (["--machine", "dgx-h100", "--simulate", "--slow", "0-8=7"], "above 0 and at most 1"),
        (["--machine", "dgx-h100", "--simulate", "--rounds", "0"], "the number of rounds is 0"),
        (["--machine", "dgx-h100", "--simulate", "--bytes", "0"], "a message has 0 bytes"),
        (["--machine", "dgx-h100"], "a probe needs at least two ranks"),
    ],
)
def test_wrong_input_is_one_sentence(words: list[str], message: str) -> None:
    ran = call("probe", *words)
    assert ran.code == 2
    assert message in ran.err
    assert ran.out == ""


def test_names_of_cables() -> None:
    links = Links(network(STAR, 8))
    assert links.named("8-3").tolist() == links.named("3-8").tolist()
    assert sorted(map(tuple, links.ends[links.named("3-8")].tolist())) == [(3, 8), (8, 3)]
