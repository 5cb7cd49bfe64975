"""`unisono probe`: slow cables in the packet simulator are named, and healthy networks are not accused."""

import contextlib
import os
import random
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import unisono as un
from unisono.probing import MessageSets, Simulated, probe_sets
from unisono.probing.design import classes
from unisono.probing.networks import Floats, Links, Pairs, Routes

from .conftest import SOAK, call, json_of, refusal
from .test_mpi import COMPILERS, OPEN_MPI, PATIENCE, YIELD

#: Cables of a star of eight hosts, and of a tree of two leaves with four hosts and one uplink each.
FAST = "gbps=100 ns=150"
STAR = "".join(f"{host} 8 {FAST}\n" for host in range(8))
TREE = "".join(f"{host} {8 + host % 2} {FAST}\n" for host in range(8)) + "8 10 gbps=50 ns=150\n9 10 gbps=50 ns=150\n"
#: Cables of 16 hosts on 4 leaves, which one switch joins.
WIDE = "".join(f"{host} {16 + host % 4} {FAST}\n" for host in range(16)) + "".join(
    f"{leaf} 20 {FAST}\n" for leaf in range(16, 20)
)
#: A ring of five, in which there is only one shortest path between two accelerators.
RING = "".join(f"{host} {(host + 1) % 5} {FAST}\n" for host in range(5))
SMALL = {"star": (STAR, 8), "tree": (TREE, 8), "wide": (WIDE, 16), "ring": (RING, 5)}
DRAWS = 100 if SOAK else 1


@cache
def network(edges: str, accelerators: int) -> un.Machine:
    return un._core.import_network(edges, "cables", "edges", "small", 1, accelerators)


@cache
def sets_of(name: str) -> MessageSets:
    return MessageSets(network(*SMALL[name]) if name in SMALL else un.machine(name))


def found(sets: MessageSets, slow: dict[str, float], seed: int = 0, rounds: int = 3) -> list[list[str]]:
    """Returns the groups of accused cables, from simulated times with random noise of about 1 %."""
    result = probe_sets(sets, Simulated(sets.links, slow, noise=0.01, seed=seed), rounds)
    return sorted(of.cables for of in result.accused)


def cables_by_class(sets: MessageSets) -> list[list[str]]:
    """Returns the cables, grouped by the kinds and ports of their ends and by rate."""
    links = sets.links
    kinds: dict[tuple[object, ...], list[str]] = {}
    for cable in links.cables.tolist():
        link = links.of_cable(cable)[0]
        ends = [(bool(end < links.accelerators), int((links.ends[:, 0] == end).sum())) for end in links.ends[link]]
        kinds.setdefault((tuple(sorted(ends)), float(links.gbps[link])), []).append(links.name(cable))
    return list(kinds.values())


@pytest.mark.parametrize("name", ["star", "tree", "wide"])
def test_loads_are_those_that_the_simulator_counts(name: str) -> None:
    """Every message has one path, so the simulated packets of a link are those of the messages assigned to it."""
    sets = sets_of(name)
    packet = int(sets.links.machine.describe()["packet_bytes"])
    for routes in sets.sets:
        assert routes.is_single.all()
        _, packets = sets.healthy.run(routes.pairs, sets.bytes)
        assert packets.tolist() == (-(-sets.bytes // packet) * routes.of_link(routes.share)).tolist()


@pytest.mark.parametrize("name", ["star", "tree", "wide", "dgx-h100-x8"])
def test_sets_hold_no_more_than_the_links_carry(name: str) -> None:
    """No accelerator sends or receives twice in a set; sets overload no link, and distinguish links if possible."""
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
    # On larger networks, each class takes seconds.
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
    result = probe_sets(sets, Simulated(sets.links, {"9-10": 0.2}))
    assert result.accused[0].confidence == pytest.approx(0.5, abs=0.01)
    assert any("8-10 or 9-10" in note for note in result.notes)


def test_two_slow_cables_are_both_named() -> None:
    for seed in range(5):
        slow = random.Random(seed).sample([f"{host}-8" for host in range(8)], 2)
        assert found(sets_of("star"), dict.fromkeys(slow, 0.2), seed) == sorted([cable] for cable in slow)


def test_the_rate_of_a_slow_cable_is_measured() -> None:
    for share in (0.5, 0.2, 0.05):
        accused = probe_sets(sets_of("star"), Simulated(sets_of("star").links, {"3-8": share}), 1).accused
        assert accused[0].expected == pytest.approx(100, rel=0.01)
        # The rate is lower by the latency of messages.
        assert accused[0].rate == pytest.approx(100 * share, rel=0.06)


def test_all_cables_of_a_slow_node_accuse_the_node() -> None:
    sets = sets_of("ring")
    result = probe_sets(sets, Simulated(sets.links, {"1-2": 0.2, "2-3": 0.2}))
    assert sorted(of.cables for of in result.accused) == [["1-2"], ["2-3"]]
    assert result.nodes == [2]


def test_the_number_of_sets_grows_with_the_logarithm_of_links() -> None:
    counts = []
    for hosts in (8, 16, 32, 64):
        star = network("".join(f"{host} {hosts} {FAST}\n" for host in range(hosts)), hosts)
        counts.append(len(MessageSets(star).sets))
    assert counts[-1] <= counts[0] + 3, counts


def test_a_slow_start_of_all_messages_accuses_nothing() -> None:
    """If all messages are slower by a factor, as in a lab, only cables slower than the others are accused."""

    class Slower(Simulated):
        def measure(self, sets: Sequence[Pairs], bytes: int, rounds: int) -> list[Floats]:
            return [1000 * times for times in super().measure(sets, bytes, rounds)]

    sets = sets_of("wide")
    result = probe_sets(sets, Slower(sets.links, {"3-19": 0.2}))
    assert [of.cables for of in result.accused] == [["3-19"]]
    assert (result.factor, result.accused[0].expected) == pytest.approx((1000, 0.1), rel=0.01)
    assert any("1e+03 times" in note for note in result.notes)


def test_one_slow_message_beside_fast_ones_accuses_nothing() -> None:
    """If other messages through the same cables are in time, a slow message has another cause."""

    class Disturbed(Simulated):
        def measure(self, sets: Sequence[Pairs], bytes: int, rounds: int) -> list[Floats]:
            found = super().measure(sets, bytes, rounds)
            for pairs, times in zip(sets, found, strict=True):
                times[:, 0] *= 3 if pairs == disturbed else 1
            return found

    sets = sets_of("star")
    disturbed = sets.sets[0].pairs
    result = probe_sets(sets, Disturbed(sets.links))
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


def results_of(sets: MessageSets, slow: dict[str, float], messages: str, seed: int = 0) -> str:
    """Returns output as of the program that `--emit` writes, with times of the packet simulator."""
    head, *lines = messages.splitlines()
    rounds = int(head.split()[head.split().index("rounds") + 1])
    simulated = Simulated(sets.links, slow, noise=0.01, seed=seed)
    times = simulated.measure([routes.pairs for routes in sets.sets], sets.bytes, rounds)
    seconds = np.concatenate([of.T for of in times])
    written = [f"{line} {' '.join(f'{one:.9g}' for one in own)}" for line, own in zip(lines, seconds, strict=True)]
    return "\n".join([head, *written, "probe end", ""])


def test_results_of_the_emitted_program_accuse_as_the_probe_does(tmp_path: Path) -> None:
    for seed in range(6):
        name = ("star", "tree", "wide")[seed % 3]
        sets = sets_of(name)
        cable = sets.links.name(random.Random(seed).choice(sets.links.cables.tolist()))
        program, messages = un.emit_probe(sets.links.machine, tmp_path / "out")
        assert "MPI_Isend" in Path(program).read_text()
        file = tmp_path / "results.txt"
        # A launcher may label lines, and print further ones.
        text = results_of(sets, {cable: 0.2}, Path(messages).read_text(), seed)
        file.write_text("a host says hello\n" + text.replace("probe ", "[1,0]<stdout>:probe "))
        result = un.probe(sets.links.machine, results=file)
        assert [cable in of.cables for of in result.accused] == [True]
        (own,) = un.probe(sets.links.machine, simulate=True, slow={cable: 0.2}).accused
        assert own.cables == result.accused[0].cables
        assert own.rate == pytest.approx(result.accused[0].rate, rel=0.05)


def test_damaged_results_are_one_sentence(tmp_path: Path) -> None:
    sets = sets_of("star")
    _, messages = un.emit_probe(sets.links.machine, tmp_path / "out")
    whole = results_of(sets, {}, Path(messages).read_text())
    file = tmp_path / "results.txt"
    lines = whole.splitlines()
    for text, message in (
        ("", "has 0 heads"),
        (whole + whole, "has 2 heads"),
        (whole.removesuffix("probe end\n"), "it is cut or damaged"),
        ("\n".join(lines[:9]), "it is cut or damaged"),
        (whole.replace("machine small", "machine other"), "has times of machine other, and not of small"),
        (whole.replace("ranks 8", "ranks 9"), "accepted are 2 to 8"),
        (whole.replace("rounds 6", "rounds 0"), "it is damaged"),
        (whole.replace("sets 3", "sets 99999"), "it is damaged"),
        (whole.replace(f"bytes {sets.bytes}", "bytes 2000000000"), "it is damaged"),
        ("\n".join([*lines[:-2], lines[1], "probe end"]), "sends or receives twice"),
        ("\n".join([lines[0], lines[1] + " 1", *lines[2:]]), "accepted are 6 times in seconds"),
        (whole.replace(lines[1], " ".join([*lines[1].split()[:-1], "nan"])), "accepted are 6 times in seconds"),
        (whole.replace(lines[1], " ".join([*lines[1].split()[:-1], "-1"])), "accepted are 6 times in seconds"),
        (whole.replace(lines[1], " ".join([*lines[1].split()[:-1], "1e308"])), "accepted are 6 times in seconds"),
        (whole.replace(lines[1], "probe 0 5 5" + " 1" * 6), "a message from 5 to 5"),
    ):
        file.write_text(text)
        with pytest.raises(un.InputError) as refused:
            un.probe(sets.links.machine, results=file)
        assert message in str(refused.value), (message, str(refused.value))
        assert "\n" not in str(refused.value)


def test_changed_results_are_read_or_refused(tmp_path: Path) -> None:
    draw = random.Random(8)
    sets = sets_of("star")
    _, messages = un.emit_probe(sets.links.machine, tmp_path / "out")
    whole = results_of(sets, {"1-8": 0.3}, Path(messages).read_text()).encode()
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(draw.randint(1, 3)):
            at = draw.randrange(len(data) if draw.random() < 0.5 else 90)
            data[at : at + draw.randint(0, 3)] = draw.choice([b"9" * draw.randint(1, 12), bytes([draw.randrange(256)])])
        (tmp_path / "r").write_bytes(data)
        with contextlib.suppress(un.InputError):
            un.probe(sets.links.machine, results=tmp_path / "r")


def test_the_emitted_program_runs_under_mpi(tmp_path: Path) -> None:
    machine = network("0 2 gbps=1\n1 2 gbps=1\n", 2)
    program, messages = un.emit_probe(machine, tmp_path / "out", bytes=4096, rounds=1)
    binary = str(tmp_path / "probe")
    subprocess.run([COMPILERS["openmpi"], "-Wall", "-Wextra", "-Werror", program, "-o", binary], check=True)

    def ran(ranks: int, *words: str) -> subprocess.CompletedProcess[str]:
        root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        launcher = [str(OPEN_MPI / "bin" / "mpiexec"), "--oversubscribe", "-n", str(ranks), binary, *words]
        variables = {**os.environ, **YIELD, **root}
        return subprocess.run(launcher, env=variables, capture_output=True, text=True, check=False, timeout=PATIENCE)

    (tmp_path / "r.txt").write_text(ran(2, messages).stdout)
    result = un.probe(machine, results=tmp_path / "r.txt")
    assert (result.ranks, result.bytes, result.messages) == (
        2,
        4096,
        sum(len(of.pairs) for of in MessageSets(machine).sets),
    )
    assert "start as many ranks as the file states" in ran(1, messages).stderr


def test_the_report_has_all_cables() -> None:
    result = un.probe(network(*SMALL["star"]), simulate=True, slow={"3-8": 0.2})
    report = result.report()
    rates = {row["link"]: row["reached"] / row["expected"] for row in report["cables"]}
    assert sorted(rates) == sorted(f"{host}-8" for host in range(8))
    assert rates.pop("3-8") == pytest.approx(report["links"][0]["rate"] / report["links"][0]["expected"])
    assert min(rates.values()) > 0.9
    assert un.machine(report["description"]).describe() == report["description"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--machine", "dgx-h100", "--simulate", "--from", "r"], "exclude each other"),
        (["--machine", "dgx-h100", "--simulate", "--ranks", "4"], "--ranks is for --emit"),
        (["--machine", "dgx-h100", "--emit", "d", "--ranks", "99"], "accepted are 2 to 8"),
        (["--machine", "dgx-h100", "--emit", "d", "--rounds", "0"], "the number of rounds is 0"),
        (["--machine", "dgx-h100", "--emit", "d", "--bytes", "80MiB"], "accepted are at most 67108864"),
        (["--machine", "dgx-h100", "--from", "r", "--bytes", "8"], "--from has sent its own"),
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
    assert message in refusal("probe", *words)


def test_names_of_cables() -> None:
    links = Links(network(STAR, 8))
    assert links.named("8-3").tolist() == links.named("3-8").tolist()
    assert sorted(map(tuple, links.ends[links.named("3-8")].tolist())) == [(3, 8), (8, 3)]
