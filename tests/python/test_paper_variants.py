"""Machines and schedules that the code of the papers' rows builds, on random instances."""

import random

import numpy as np
import pytest
import unisono as un
from unisono._core import emit
from unisono.reproduce import multiplying_topology, piuma_links, piuma_messages, wafer_star_of_two


@pytest.mark.parametrize("seed", range(3))
def test_links_between_nodes_grow_with_distance(seed: int) -> None:
    draws = random.Random(seed)
    dims = [draws.randint(2, 4) for _ in range(draws.randint(1, 2))]
    step = draws.choice([7.0, 50.0])
    small = {"cores_per_socket": 4, "mesh": [2, 2], "sockets_per_node": 2, "socket_ports": [0, 1], "node_ports": [3]}
    on = un.machine(un.machine("piuma").describe() | small | {"node_dims": dims, "node_step_ns": step})
    root = draws.randrange(8 * int(np.prod(dims)))
    made = un.plan("broadcast", on, elements=1, root=root, algorithm="in-network")
    latency = un.simulate(made.schedule).metrics["latency"].value
    # No broadcast is faster than the shortest path to the farthest core, by the bound and by a separate graph.
    farthest = max(piuma_links.distances(on, root)[0])
    (bound,) = (each for each in un.bounds("broadcast", on, elements=1, root=root) if each["name"] == "path")
    assert bound["seconds"] * 1e9 == pytest.approx(farthest)
    assert latency >= farthest - 1e-6
    assert made.predicted["seconds"] * 1e9 >= latency - 1e-6


@pytest.mark.parametrize(("step_ns", "root"), [(0.0, 3), (10.0, 2)])
def test_the_root_is_in_the_middle_of_the_nodes_that_take_part(step_ns: float, root: int) -> None:
    """The root of three nodes in a line of eight is the middle node only if steps between nodes cost time."""
    on = un.machine(un.machine("piuma").describe() | {"node_step_ns": step_ns}, nodes=8)
    made = un.plan("allreduce", un.machine(on, subset=[0, 2, 3]), elements=4, algorithm="in-network")
    (registers,) = emit(made.schedule, "registers").values()
    (top,) = (line for line in str(registers).splitlines() if "response engine" in line)
    assert int(top.split()[1]) // 128 == root


def test_messages_between_nodes_take_longer_with_their_distance() -> None:
    """On 4 x 8 nodes, rounds go 1, 2 and 4 steps in one dimension, 1 and 2 in the other: 5 more steps than rounds."""
    times = [
        un.plan(
            "allreduce",
            un.machine(un.machine("piuma").describe() | {"node_dims": [4, 8], "node_step_ns": step}),
            elements=1,
            algorithm="recursive-doubling",
        ).predicted["seconds"]
        for step in (0.0, 10.0)
    ]
    assert (times[1] - times[0]) * 1e9 == pytest.approx(5.2 * 50)


def test_a_step_is_no_negative_time() -> None:
    with pytest.raises(un.InputError, match="node_step_ns"):
        un.machine(un.machine("piuma").describe() | {"node_step_ns": -1.0})


def test_messages_without_sharing_take_their_bytes() -> None:
    """A broadcast of 128 KiB takes its bytes at 51.2 Gbit/s, and a latency."""
    for rate in (64.0, 64_000.0):
        on = piuma_messages.network(1, rate)
        made = un.plan("broadcast", on, shape=2, bytes=1 << 17, algorithm="binomial")
        taken = un.simulate(made.schedule).nanoseconds
        assert 8 * 2**17 / 51.2 <= taken <= 8 * 2**17 / 51.2 * 1.05 + 100


@pytest.mark.parametrize("seed", range(4))
def test_the_star_of_two_sums_on_any_grid(seed: int) -> None:
    draws = random.Random(seed)
    rows, columns, length = draws.randint(2, 8), draws.randint(2, 8), draws.randint(1, 40)
    assert wafer_star_of_two.cycles(rows, columns, length) > 0


def test_a_dragonfly_shortens_fewer_stages() -> None:
    assert multiplying_topology.gain(8, "a2,a2,a2", "a2,a2,a2") == 0
    assert multiplying_topology.gain(8, "a2,a2,a2", "a2,a4") > 0
