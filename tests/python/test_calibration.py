"""Fits to measured times, without running ranks, and the initialization of MPI for measurements."""

import random
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import unisono as un
from hypothesis import given, settings
from hypothesis import strategies as st
from unisono import InputError
from unisono.mpi import groups
from unisono.tuning.calibration import LIMITS, Calibration, calibrate, disturbances
from unisono.tuning.lines import line, outliers
from unisono.tuning.network_calibration import message_costs

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
    machine = found.machine("m", by_length=False)
    assert machine["beta_ns_per_byte"] == pytest.approx(0.03)
    (long,) = found.machine("m")["protocols"]
    assert (long["from_bytes"], long["beta_ns_per_byte"]) == (SIZES[0], pytest.approx(0.03))
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


def test_a_fit_of_disturbed_rounds_takes_the_fastest_rounds_and_states_it() -> None:
    """Medians fall with the bytes, as on four ranks on two busy cores; the fastest rounds are sane."""
    floors = [7000 + 0.035 * size for size in SIZES]
    found = measured([8e6, 8e6, 7.9e6, 7.5e6], floors).machine("m", by_length=False)
    assert found["beta_ns_per_byte"] == pytest.approx(0.035)
    # All values are of the same rounds.
    assert (found["alpha_ns"], found["alpha_r_ns"]) == pytest.approx((285, 50))
    assert found["fit"]["values"] == "minima"
    assert found["fit"]["poor"] == ["beta"]
    (note,) = disturbances(found)
    assert "by medians beta_ns_per_byte is -" in note
    waiting = measured(floors, floors)
    waiting.ping_pong[:2] = [(size, 4e6, 280.0) for size in (0, 8)]
    waiting.multicast["non-blocking"] = [(k, 4e6 + 7000 * k, 380.0 + 50 * k) for k in range(1, 5)]
    (note,) = disturbances(waiting.machine("m"))
    assert note.startswith("a message took 4e+06 ns by the median and 280 ns in the fastest rounds")
    # On cores that are always busy, the fastest rounds are as slow as the others.
    for share in (0.5, 0.7, 1.0):
        slow = measured(floors, floors)
        slow.preempted = share
        (note,) = disturbances(slow.machine("m"))
        assert note.startswith(f"a message took 305 ns, and a rank lost its core in {share:.0%} of the rounds: ranks")
    usual = measured(floors, floors).machine("m")
    assert (usual["fit"]["values"], usual["fit"]["refused"], disturbances(usual)) == ("medians", {}, [])


@pytest.mark.parametrize("wrong", [key for key in LIMITS if key != "alpha_p_ns"])
@pytest.mark.parametrize("far", [False, True])
def test_a_fit_outside_of_the_limits_is_refused_by_name(wrong: str, far: bool) -> None:
    """One parameter is below its limit, or above, in all rounds."""
    found = measured([1000 + 0.03 * size for size in SIZES], [900 + 0.03 * size for size in SIZES])
    value = LIMITS[wrong][far] * (2 if far else 0.5)
    match wrong:
        case "alpha_ns":
            found.ping_pong[:2] = [(size, value, value) for size in (0, 8)]
        case "alpha_r_ns":
            # The latency is long enough for the time of a send, or as short as it.
            found.ping_pong[:2] = [(size, max(value, 1.0), max(value, 1.0)) for size in (0, 8)]
            found.multicast["non-blocking"] = [(k, 1.0 + value * k, 1.0 + value * k) for k in range(1, 5)]
        case "beta_ns_per_byte":
            found.ping_pong[3:] = [(size, 1000 + value * size, 1000 + value * size) for size in SIZES]
        case _:
            found.reductions = [(size, 100 + value * size, 100 + value * size) for size in SIZES]
    with pytest.raises(InputError, match=f"by medians .*{wrong} is .* by the fastest rounds .*{wrong} is") as refused:
        found.machine("m")
    assert "no file is written" in str(refused.value)


def test_a_send_costs_at_least_the_time_in_which_it_begins() -> None:
    """On a slow network one more peer changes the time less than other messages do, and may seem to shorten it."""
    found = measured([1000 + 0.03 * size for size in SIZES], [900 + 0.03 * size for size in SIZES])
    found.multicast["non-blocking"] = [(k, 400.0 - 3 * k, 380.0 - 3 * k) for k in range(1, 5)]
    with pytest.raises(InputError, match="alpha_r_ns is 0 "):
        found.machine("m")
    found.issue = (12.0, 10.0)
    machine = found.machine("m")
    assert (machine["alpha_r_ns"], machine["fit"]["values"]) == (12.0, "medians")
    found.multicast["non-blocking"] = [(k, 400.0 + 50 * k, 380.0 + 50 * k) for k in range(1, 5)]
    assert found.machine("m")["alpha_r_ns"] == pytest.approx(50)


_times = st.floats(1.0, 1e8)
_rows = st.lists(_times, min_size=4, max_size=4)


@settings(max_examples=60, deadline=None)
@given(_rows, _rows, _rows, _rows)
def test_a_file_has_only_values_within_the_limits(
    long: list[float], peers: list[float], sums: list[float], floors: list[float]
) -> None:
    """Random times give a machine whose parameters are all within the limits, or an error that names a parameter."""
    found = measured(long, [min(pair) for pair in zip(long, floors, strict=True)])
    found.multicast["non-blocking"] = [(k, time, time) for k, time in enumerate(peers, 1)]
    found.reductions = [(size, time, time) for size, time in zip(SIZES, sums, strict=True)]
    by_rounds = [found.parameters(1), found.parameters(2)]
    outside = [{key for key in LIMITS if not LIMITS[key][0] <= of[key] <= LIMITS[key][1]} for of in by_rounds]
    if all(outside):
        for make in (found.machine, lambda _: message_costs(un.machine("torus2d-small"), found)):
            with pytest.raises(InputError, match=rf"by medians .*{min(outside[0])} is .*{min(outside[1])} is"):
                make("m")
        return
    machine = found.machine("m")
    for key, (least, most) in LIMITS.items():
        assert least <= machine[key] <= most, key
    of_medians = not outside[0]
    # A message to one peer takes the latency.
    parts = machine["alpha_p_ns"] + machine["alpha_r_ns"]
    assert parts == pytest.approx(machine["alpha_ns"], rel=1e-4, abs=LIMITS["alpha_p_ns"][0])
    assert machine["fit"]["values"] == ("medians" if of_medians else "minima")
    machine["beta_ns_per_byte"] = found.machine("m", by_length=False)["beta_ns_per_byte"]
    assert {key: machine[key] for key in LIMITS} == pytest.approx(by_rounds[0 if of_medians else 1], rel=1e-5)


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
        allreduce=lambda share, op: share,
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
        MAX=None,
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
    assert machine["fit"]["issue_ns"] == pytest.approx([issue, issue], rel=1e-6)
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


@given(
    st.lists(st.floats(1.5, 6), min_size=0, max_size=2),
    st.lists(st.integers(3, 11), min_size=2, max_size=2, unique=True).filter(lambda at: abs(at[0] - at[1]) > 2),
    st.floats(1e-2, 10),
    st.integers(0, 1 << 30),
)
@settings(max_examples=60, deadline=None)
def test_protocols_are_found_and_predict_the_ping_pong(
    jumps: list[float], at: list[int], byte: float, seed: int
) -> None:
    """Each protocol is slower to start by a factor; times have noise of 3 %. A library with one protocol gets none."""
    sizes = [0, 8, 64, *(1 << power for power in range(9, 19)), 1 << 20, 4 << 20]
    limits = sorted(at)[: len(jumps)]
    draw = random.Random(seed)

    def time(size: int) -> float:
        base = 1000.0
        for jump, limit in zip(jumps, limits, strict=True):
            # The jump is seen beside the bytes of the length, too.
            base += (jump - 1) * (base + byte * sizes[limit]) if size >= sizes[limit] else 0
        return base + byte * size

    rows = [(size, took := time(size) * draw.uniform(0.97, 1.03), took) for size in sizes]
    made = measured([1.0] * 4, [1.0] * 4)
    made.ping_pong = rows
    machine = made.machine("m")
    found = [protocol["from_bytes"] for protocol in machine.get("protocols", [])]
    if not jumps:
        assert found == []
    assert len(found) <= len(jumps)
    described = un.machine(machine)
    for size, took, _ in rows[1:]:
        plan = un.plan("gather", described, ranks=2, bytes=size, dtype="f16")
        assert plan.predicted["seconds"] == pytest.approx(took * 1e-9, rel=0.25)
