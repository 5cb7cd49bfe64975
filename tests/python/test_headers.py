"""The headers of messages: each message takes as long as one with as many further bytes and without a header."""

import random

import pytest
import unisono as un
from unisono import _core

#: Algorithms in which every message is one block.
OF_BLOCKS = [("allgather", "ring"), ("alltoall", "pairwise"), ("scatter", "linear"), ("gather", "linear")]


def drawn(draw: random.Random) -> un.Machine:
    """Returns a random tree of leaves, or a preset that is planned in closed form."""
    if draw.random() < 0.3:
        return un.machine(draw.choice(["torus2d-small", "fattree-small"]))
    hosts, leaves = draw.randint(3, 9), draw.randint(1, 3)
    cables = [f"{host} {hosts + host % leaves} gbps=10 ns={draw.randint(50, 500)}" for host in range(hosts)]
    cables += [f"{hosts + leaf} {hosts + leaves} gbps=25 ns=100" for leaf in range(leaves)]
    found = _core.import_network("\n".join(cables), "edges", "edges", "drawn", 1, hosts)
    return un.machine(found.describe() | {"planes": draw.randint(1, 3)})


@pytest.mark.parametrize("seed", range(12))
def test_a_header_takes_the_time_of_its_bytes(seed: int) -> None:
    draw = random.Random(seed)
    bare, size, words = drawn(draw), draw.randint(1, 5000), draw.randint(1, 150)
    headed = un.machine(bare.describe() | {"header_bytes": 2 * words})
    longer = size + words * bare.describe()["planes"]
    for collective, algorithm in OF_BLOCKS:
        with_header, without = (
            un.plan(collective, on, elements=of, dtype="i16", algorithm=algorithm)
            for on, of in ((headed, size), (bare, longer))
        )
        assert with_header.predicted["seconds"] == pytest.approx(without.predicted["seconds"], rel=1e-9)
    if bare.describe()["topology"]["name"] == "graph":
        collective, algorithm = draw.choice(OF_BLOCKS)
        times = [
            un.simulate(un.plan(collective, on, elements=of, dtype="i16", algorithm=algorithm).schedule).seconds
            for on, of in ((headed, size), (bare, longer))
        ]
        assert times[0] == pytest.approx(times[1], rel=1e-9)


def test_many_chunks_have_many_headers() -> None:
    """On slow cables with long headers, a plan divides short vectors into fewer chunks."""
    cables = "\n".join(f"{host} 6 gbps=1 ns=100" for host in range(6))
    bare = _core.import_network(cables, "edges", "edges", "star", 1, 6)
    headed = un.machine(bare.describe() | {"header_bytes": 4000})
    plans = [un.plan("broadcast", on, bytes=1 << 16, algorithm="pipelined-chain") for on in (bare, headed)]
    segments = [int(plan.params.get("segment", 1 << 16)) for plan in plans]
    assert segments[0] < segments[1]


@pytest.mark.parametrize("value", [-1, 1 << 16, 0.5, "many"])
def test_wrong_headers_are_refused(value: object) -> None:
    found = un.machine("fattree-small").describe() | {"header_bytes": value}
    with pytest.raises(un.InputError, match="header_bytes"):
        un.machine(found)
