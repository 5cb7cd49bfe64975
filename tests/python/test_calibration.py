"""Fits to measured times, without running ranks, and the initialization of MPI for measurements."""

import random
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from unisono.mpi import groups
from unisono.tuning.calibration import Calibration, calibrate, line, outliers

#: The tag of a peer's message that it is ready for a multicast.
READY = 3
SIZES = [32768, 262144, 1 << 20, 4 << 20]


def measured(times: list[float], floors: list[float]) -> Calibration:
    """Returns a calibration with these medians and minima of long messages, in nanoseconds."""
    short = [(0, 300.0, 280.0), (8, 310.0, 290.0), (512, 330.0, 300.0)]
    peers = [(k, 400.0 + 50 * k, 380.0 + 50 * k) for k in range(1, 5)]
    sums = [(size, 100 + size * 0.2, 90 + size * 0.2) for size in SIZES]
    long = list(zip(SIZES, times, floors, strict=True))
    return Calibration("MPI", 2, 10, short + long, {"non-blocking": peers, "blocking": peers}, sums, True)


def test_one_disturbed_measurement_does_not_bend_the_line() -> None:
    """One median is 100 times its minimum, as if the other rank had no core; the others are 1 us and 0.03 ns a byte."""
    floors = [900 + 0.03 * size for size in SIZES]
    times = [1000 + 0.03 * size for size in SIZES[:3]] + [13_069_800.0]
    found = measured(times, floors)
    assert found.fits()["beta"].slope == pytest.approx(0.03, rel=1e-6)
    assert found.fits()["beta"].residual < 1e-6
    assert found.set_aside() == {"beta": [4 << 20]}
    machine = found.machine("m")
    assert machine["beta_ns_per_byte"] == pytest.approx(0.03)
    assert (machine["fit"]["set_aside"], machine["fit"]["poor"]) == ({"beta": [4 << 20]}, [])
    # A line through all four points would not fit.
    assert line(SIZES, times).residual > 0.9


def test_a_line_that_does_not_fit_is_no_outlier() -> None:
    """No point is left out if its minimum is as slow, or if half of the times are disturbed."""
    bent = [1000 + 0.03 * size for size in SIZES[:3]] + [13_069_800.0]
    assert outliers(SIZES, bent, bent) == []
    assert measured(bent, bent).fits()["beta"].poor
    two = [1000 + 0.03 * size for size in SIZES[:2]] + [9e6, 13e6]
    assert outliers(SIZES, two, [1000 + 0.03 * size for size in SIZES]) == []
    assert outliers([1], [1.0], [1.0]) == outliers([], [], []) == []


def test_cores_are_those_on_which_ranks_may_run(monkeypatch: pytest.MonkeyPatch) -> None:
    class World:
        def __init__(self, *allowed: set[int]) -> None:
            self.allowed = [frozenset(cores) for cores in allowed]

        def allgather(self, _: object) -> list[frozenset[int]]:
            return self.allowed

    monkeypatch.setattr(groups, "nodes", lambda *_: [[0, 1], [2]])
    assert groups.shared_cores(None, World({0}, {1}, {0})) is None
    assert groups.shared_cores(None, World({0, 1}, {0, 1}, {0, 1})) is None
    # Both ranks are bound to one core, though the node has two.
    assert groups.shared_cores(None, World({0}, {0}, {0, 1})) == (2, 1)


@pytest.mark.parametrize(("measures", "level"), [(True, "FUNNELED"), (False, "MULTIPLE")])
def test_what_is_measured_runs_with_calls_of_one_thread(*, measures: bool, level: str) -> None:
    """Measurements use the thread level that most C programs request and with which MPICH is faster."""
    program = (
        "from unisono.mpi.library import import_mpi\n"
        f"MPI = import_mpi(measures={measures})\n"
        f"assert MPI.Query_thread() == MPI.THREAD_{level}, MPI.Query_thread()"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_known_prices_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls of rank 0 advance a clock by the costs of a postal model, so the calibration must have these costs."""
    latency, issue, blocking, byte, added = 900.0, 130.0, 170.0, 0.25, 0.0625
    now = [0.0]

    def spend(price: float) -> None:
        now[0] += price

    def alone(buffer: Any) -> float:
        return latency + issue + byte * int(buffer.nbytes)

    world = SimpleNamespace(
        rank=0,
        size=9,
        Barrier=lambda: None,
        Send=lambda buffer, _, tag=0: spend(blocking if tag else alone(buffer)),
        Isend=lambda _buffer, _target, tag: spend(issue),
        # The last message of a multicast arrives one latency after its issue; then its peer answers. Peers report ready
        # at different times.
        Recv=lambda buffer, source, tag=0: spend(1e6 * source if tag == READY else alone(buffer) + latency * bool(tag)),
    )
    mpi = SimpleNamespace(
        COMM_WORLD=world,
        Wtime=lambda: now[0] * 1e-9,
        Request=SimpleNamespace(Waitall=lambda _: None),
        SUM=SimpleNamespace(Reduce_local=lambda given, _: spend(100 + added * given.nbytes)),
        Get_library_version=lambda: "MPI 1, for a test",
    )
    monkeypatch.setattr("unisono.mpi.library.import_mpi", lambda: mpi)
    made = calibrate(10)
    assert made is not None
    machine = made.machine("m")
    short = latency + issue + 8 * byte
    expected = {
        "alpha_ns": short,
        "alpha_p_ns": short - issue,
        "alpha_r_ns": issue,
        "beta_ns_per_byte": byte,
        "gamma_ns_per_byte": added,
    }
    assert {key: machine[key] for key in expected} == pytest.approx(expected, rel=1e-4)
    assert machine["fit"]["alpha_r_blocking_ns"] == pytest.approx(blocking, rel=1e-4)
    assert (machine["fit"]["ranks"], machine["fit"]["library"], machine["fit"]["poor"]) == (9, "MPI 1", [])


def test_groups_fill_their_first_nodes() -> None:
    """All nodes of a group have the same number of ranks, except the last one, which has the rest."""
    draw = random.Random(5)
    for _ in range(300):
        sizes = [draw.randint(1, 4) for _ in range(draw.randint(1, 5))]
        numbers = iter(range(sum(sizes)))
        machine = [[next(numbers) for _ in range(size)] for size in sizes]
        ranks, per_node = draw.randint(1, 12), draw.randint(1, 4)
        found = groups.members(machine, ranks, per_node)
        used = -(-ranks // per_node)
        if len(sizes) < used or min(sizes[:used]) < per_node:
            assert found is None
        else:
            filled = [per_node] * (used - 1) + [ranks - per_node * (used - 1)]
            assert found == [rank for node, count in zip(machine, filled, strict=False) for rank in node[:count]]
