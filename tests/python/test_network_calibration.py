"""Calibration of messages on a network: it finds known costs, and refuses or notes times that do not fit."""

import random

import pytest
import unisono as un
from unisono import _core
from unisono.logs.link_calibration import with_share
from unisono.tuning.calibration import Calibration
from unisono.tuning.network_calibration import message_costs

SIZES = (0, 8, 64, 512, 4096, 32768, 262144, 1 << 20, 4 << 20)


def drawn(draw: random.Random) -> un.Machine:
    """Returns a random tree of two leaves, or a preset."""
    return tree(draw) if draw.random() < 0.7 else un.machine(draw.choice(["torus2d-small", "fattree-small"]))


def tree(draw: random.Random) -> un.Machine:
    """Returns a random tree of two leaves with four hosts each."""
    rate, up, ns = draw.choice([10, 100, 400]), draw.choice([5, 50, 200]), draw.randint(50, 5000)
    cables = [f"{host} {8 + host % 2} gbps={rate} ns={ns}" for host in range(8)]
    cables += [f"{leaf} 10 gbps={up} ns={ns}" for leaf in (8, 9)]
    return _core.import_network("\n".join(cables), "edges", "edges", "drawn", 1, 8)


def with_costs(machine: un.Machine, share: float, host: float, signal: float, header: int = 0) -> un.Machine:
    values = {"host_overhead_ns": host, "signal_ns": signal, "header_bytes": header}
    return un.machine(with_share(machine, share).describe() | values)


def byte_ns(machine: un.Machine) -> float:
    """Returns the time of a further byte of a message from accelerator 0 to 1."""
    short, long = (_core.simulate_messages(machine, [(0, 1, size)]).seconds * 1e9 for size in (8, 1 << 20))
    return (long - short) / ((1 << 20) - 8)


def measured(truth: un.Machine, scale: float) -> Calibration:
    """Returns measurements equal to the times of a machine's model multiplied by ``scale``."""
    table = truth.describe()

    def message(size: int) -> float:
        return scale * _core.simulate_messages(truth, [(0, 1, max(size, 1))]).seconds * 1e9

    pings = [(size, message(size), message(size)) for size in SIZES]
    # No host begins messages in no time, and a calibration refuses such measurements.
    issue = scale * max(table["host_overhead_ns"], 1.0)
    gap = max(issue, (8 + table.get("header_bytes", 0) * table["planes"]) * scale * byte_ns(truth))
    peers = [(k, message(8) + (k - 1) * gap, message(8) + (k - 1) * gap) for k in range(1, 8)]
    sums = [(size, 100 + 0.25 * scale * size, 100 + 0.25 * scale * size) for size in SIZES if size]
    multicasts = {"non-blocking": peers, "blocking": peers}
    return Calibration("MPI", 8, 10, pings, multicasts, sums, False, (issue, issue))


@pytest.mark.parametrize("seed", range(6))
def test_known_costs_are_found(seed: int) -> None:
    draw = random.Random(seed)
    base, scale = drawn(draw), draw.choice([1.0, 40.0, 1000.0])
    share, host, signal = draw.uniform(0.5, 1.0), draw.uniform(10, 3000), draw.uniform(0, 3000)
    header = draw.randint(0, 120)
    truth = with_costs(base, share, host, signal, header)
    found = message_costs(base, measured(truth, scale), scale)
    table = found.machine.describe()
    assert found.share == pytest.approx(share, rel=0.02)
    # If a host takes longer than a header on a cable, the times permit several headers; the longest header is taken.
    more, byte = table.get("header_bytes", 0) - header, byte_ns(truth) * table["planes"]
    assert 0 <= more <= 128 - header
    assert more == 0 or header * byte < host
    assert table["host_overhead_ns"] == pytest.approx(host, rel=0.02)
    if more == 0:
        assert table["signal_ns"] == pytest.approx(signal, rel=0.02, abs=0.02 * host + 5)
    assert table["gamma_ns_per_byte"] == pytest.approx(0.25, rel=0.02)
    assert max(map(abs, found.residuals.values())) < 0.02
    # Bounds use the data sheet, which calibration does not change.
    bounds = [un.bounds("allreduce", machine, elements=1 << 16) for machine in (base, found.machine)]
    tight = [[bound["seconds"] for bound in one if bound["name"] == "injection"] for one in bounds]
    assert tight[0] == tight[1]


@pytest.mark.parametrize("size", [0, 8, 64])
def test_one_disturbed_short_message_changes_no_latency(size: int) -> None:
    draw = random.Random(size)
    # Hosts take longer than headers on a cable.
    base, host, signal = tree(draw), draw.uniform(300, 3000), draw.uniform(0, 3000)
    times = measured(with_costs(base, 0.9, host, signal, 128), 1.0)
    times.ping_pong[SIZES.index(size)] = (size, 5 * times.ping_pong[SIZES.index(size)][1], 0.0)
    table = message_costs(base, times).machine.describe()
    assert table["host_overhead_ns"] == pytest.approx(host, rel=0.02)
    assert table["signal_ns"] == pytest.approx(signal, abs=0.02 * (host + signal) + 64)


def test_notes_name_values_of_the_file() -> None:
    times = measured(tree(random.Random(1)), 1.0)
    times.multicast = {name: list(rows) for name, rows in times.multicast.items()}
    times.multicast["blocking"][2] = (3, 1e9, 1e9)
    assert not message_costs(tree(random.Random(1)), times).notes
    times.multicast["non-blocking"][2] = (3, 1e9, 1e9)
    (note,) = message_costs(tree(random.Random(1)), times).notes
    assert "the measurements of host_overhead_ns and header_bytes do not lie on a line" in note


def test_a_measured_machine_is_measured_again() -> None:
    """Earlier costs have no effect on a new calibration."""
    base = tree(random.Random(1))
    times = measured(with_costs(base, 0.9, 200, 100), 1.0)
    again = message_costs(with_costs(base, 0.5, 3000, 2000), times)
    assert again.machine.describe() == message_costs(base, times).machine.describe()


def test_a_network_faster_than_its_data_sheet_is_noted() -> None:
    base = with_costs(tree(random.Random(1)), 1.0, 0, 0)
    fast = un.machine(base.describe() | {"link_gbps": base.describe()["link_gbps"]})
    (note,) = [note for note in message_costs(base, measured(fast, 0.5)).notes if "rates are too low" in note]
    assert "0.50 of its time by the data sheet" in note
