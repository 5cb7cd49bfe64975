"""Tuning on hosts that share only a network: each command on a lab, judged by counts and by ratios of times.

The latency of the cables is far longer than the delay that other work on this computer adds to a message.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import unisono as un
from unisono.lab import session
from unisono.lab.session import Lab
from unisono.mpi import _bits

from ..python.conftest import SOAK, Ran, call, json_of
from ..python.test_mpi import MPICH, OPEN_MPI
from .launching import REFUSED_FIT
from .test_lab import HOSTS, carried, folder, lab, network, run

__all__ = ["folder", "lab"]

#: A star: one switch joins all hosts.
STAR = "".join(f"{host} {HOSTS}\n" for host in range(HOSTS))
#: Each cable has 100 Mbit/s and 2.5 ms. `HOP` is the latency between two hosts, `BYTE` the time of a byte, in seconds.
SPEED, HOP, BYTE = "gbps=0.1 ns=2500000", 0.005, 8 / 0.1e9
UNISONO = ("--", str(OPEN_MPI / "bin" / "python"), "-m", "unisono")


@pytest.fixture
def star(folder: Path) -> Iterator[Lab]:
    """Starts a lab of the star, with one rank on each host."""
    ran = call("lab", "up", network(folder, STAR, SPEED))
    if ran.code == 2 and "a lab needs" in ran.err:
        pytest.skip(ran.err.strip())
    assert ran.code == 0, ran.err
    yield session.current()
    call("lab", "down")


def on_hosts(*words: str, ranks: int = HOSTS, variables: dict[str, str] | None = None) -> Ran:
    # PYTHONPATH provides the package, because the environment of MPICH has only MPI and NumPy.
    return run("-n", str(ranks), *words, **{"PYTHONPATH": str(Path(un.__file__).parents[1]), **(variables or {})})


def printed(*words: str, ranks: int = HOSTS, variables: dict[str, str] | None = None) -> str:
    ran = on_hosts(*words, ranks=ranks, variables=variables)
    assert ran.code == 0, ran.err
    return ran.out


def saved(folder: Path, collective: str, algorithm: str, size: int, name: str = "t.plan") -> str:
    """Writes a plan of one algorithm for one size in bytes on all hosts, and returns its path."""
    plan = un.plan(collective, "archer", shape=HOSTS, elements=size // 4, algorithm=algorithm)
    un.save_plans([(plan, size, size)], folder / name)
    return str(folder / name)


@pytest.mark.parametrize("collective", ["broadcast", "reduce"])
def test_a_rooted_call_takes_its_whole_latency(star: Lab, folder: Path, collective: str) -> None:
    """A chain of 8 bytes takes a hop for each host except the root, although single ranks could start the next call."""
    plan = saved(folder, collective, "pipelined-chain", 8)
    out = printed(*UNISONO, "bench", collective, "--plan", plan, "--sizes", "8", "--rounds", "2", "--json")
    (row,) = json.loads(out)["rows"]
    assert row["seconds"] > 0.9 * (HOSTS - 1) * HOP
    # The library's tree of four ranks has two levels. The assertion requires the time of one level.
    assert row["default_seconds"] > 0.9 * HOP


@pytest.mark.parametrize(
    "environment", [OPEN_MPI, pytest.param(MPICH, marks=pytest.mark.soak)], ids=["openmpi", "mpich"]
)
def test_a_machine_is_calibrated_and_its_plan_is_tuned_and_served(star: Lab, folder: Path, environment: Path) -> None:
    python = str(environment / "bin" / "python")
    unisono = ("--", python, "-m", "unisono")
    machine, plan, report = folder / "cal.toml", folder / "tuned.plan", folder / "report"
    ranks = HOSTS if SOAK else 3
    # The file of a calibration that is refused, as other work disturbs the times of local sums.
    machine.write_text(un.preset_toml("archer"))
    ran = on_hosts(*unisono, "calibrate", "-o", str(machine), "--rounds", "10", "--json", ranks=ranks)
    if REFUSED_FIT not in ran.err:
        assert ran.code == 0, ran.err
        found = json.loads(ran.out)
        # Headers add to the time of a byte on the wire, and software to the latency of the cables; on busy cores,
        # software may take any time.
        byte, hop = found["beta_ns_per_byte"] / (1e9 * BYTE), found["alpha_ns"] / (1e9 * HOP)
        assert min(byte, hop) > 0.95
        assert not SOAK or (byte < 1.5 and hop < 4)
    words = ("--machine", str(machine), "--candidates", "1", "--rounds", "2", "-o", str(plan), "--json")
    size = 1 << 16
    collectives = "allreduce,broadcast" if SOAK else "broadcast"
    tuned = json.loads(printed(*unisono, "tune", collectives, "--sizes", str(size), *words, ranks=ranks))
    cells = tuned["cells"]
    assert [(cell["ranks"], cell["per_node"], cell["bytes"]) for cell in cells] == [(ranks, 1, size)] * len(cells)
    assert all(contender["effective"] for cell in cells for contender in cell["contenders"])
    # Ranks on different hosts can communicate only by the network.
    arrived = {to: sent for (_, to), sent in carried(star).items() if to in star.network.hosts}
    assert [host for host, sent in arrived.items() if sent > size] == list(star.network.hosts[:ranks])
    program = "import numpy as np; from mpi4py import MPI; x = np.ones(1 << 14, np.float32); MPI.COMM_WORLD.Bcast(x)"
    printed("--plan", str(plan), "--report", str(report), "--", python, "-c", program, ranks=ranks)
    served = [line.split() for line in report.read_text().splitlines() if line.startswith("broadcast")]
    assert [(line[2], line[3]) for line in served] == [(str(ranks), "1")]
    chosen = next(cell["chosen"] for cell in cells if cell["collective"] == "broadcast")
    kept = [row for row in tuned["table"] if row["collective"] == "broadcast" and row["algorithm"] == chosen]
    assert chosen == "library" or not kept or served[0][5] == chosen


@pytest.mark.soak
def test_a_network_is_calibrated_in_its_own_time(star: Lab, folder: Path) -> None:
    """On a lab that is twice as slow as the machine, calibration gives the unscaled costs of the machine's messages."""
    call("lab", "down")
    bare, filled = folder / "small.toml", folder / "filled.toml"
    assert call("lab", "up", str(bare), "--scale", "2").code == 0
    words = ("calibrate", "--machine", str(bare), "-o", str(filled), "--rounds", "10", "--json")
    found = json.loads(printed(*UNISONO, *words, ranks=2))
    assert "times of the lab are divided by its factor 2" in found["notes"]
    # Headers and windows of TCP reduce the rate; the latency is that of the cables.
    rates = [float(rate) for rate in re.findall(r"measured=(\S+)", found["topology"]["edges"])]
    assert len(rates) == HOSTS
    assert all(0.07 < rate <= 0.1 for rate in rates)
    assert found["host_overhead_ns"] + found.get("signal_ns", 0.0) < 1e9 * HOP
    # Messages of sizes between these wait for their receivers, which takes another round trip.
    assert all(abs(found["residuals"][size]) < 0.15 for size in ("8", "4194304")), found["residuals"]


#: Sizes of sums in bytes, and the program that prints their hashes.
SHORT, LONG = 1 << 12, 1 << 16
BITS = (
    "--", str(OPEN_MPI / "bin" / "python"), _bits.__file__, f"allreduce:{SHORT}", f"allreduce:{LONG}",
)  # fmt: skip


def bits(variables: dict[str, str]) -> list[str]:
    """Returns the hashes of a short and of a long sum on four ranks."""
    return [line.split()[1] for line in printed(*BITS, variables=variables).splitlines()]


def exported(folder: Path, *formats: str) -> list[dict[str, str]]:
    """Exports a table with a ring for long sums, and returns by format the variables with which Open MPI loads it."""
    plan, found = saved(folder, "allreduce", "ring", LONG), []
    for name in formats:
        report = json_of("export", plan, "--format", name, "--no-check", "-o", str(folder / name))
        assert report["rows"] == 1
        words = (word.removeprefix("--mca ").split() for word in report["load"])
        found.append({f"OMPI_MCA_{variable}": value for variable, value in words})
    return found


#: Variables that disable `coll/han` (`TUNED`), and that also force the ring (`RING`).
TUNED = {"OMPI_MCA_coll_han_priority": "0"}
RING = TUNED | {"OMPI_MCA_coll_tuned_use_dynamic_rules": "1", "OMPI_MCA_coll_tuned_allreduce_algorithm": "4"}


def test_exported_rules_are_in_effect_on_hosts(star: Lab, folder: Path) -> None:
    """On hosts, the bits of long sums are those of the algorithm that Open MPI's own variable forces."""
    (rules,) = exported(folder, "openmpi-rules")
    (short, own), (_, ring) = bits(TUNED), bits(RING)
    assert bits(TUNED | rules) == [short, ring]
    assert own != ring


def test_rules_for_han_leave_calls_to_tuned(lab: Lab, folder: Path) -> None:
    """On hosts with several ranks, the rules of `tuned` have no effect without the rules for `han`."""
    rules, han = exported(folder, "openmpi-rules", "openmpi-han")
    (short, own), (_, ring) = bits({}), bits(RING)
    assert own != ring
    assert bits(rules) == [short, own]
    assert bits(rules | han) == [short, ring]
