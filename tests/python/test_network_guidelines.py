"""Guidelines between collectives on small networks with equal cables, and proofs of the compositions that hold them."""

import random
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import unisono as un

from .conftest import SOAK, network_text, written

#: A collective, and one that contains it.
CONTAINING = [
    ("broadcast", "allreduce"), ("reduce", "allreduce"), ("reduce-scatter", "allreduce"), ("scatter", "broadcast"),
    ("gather", "allgather"), ("allgather", "alltoall"),
]  # fmt: skip
VECTORS = ("broadcast", "reduce", "allreduce")


def cables(shape: str, ranks: int) -> list[tuple[int, int]]:
    """Returns the cables of a ring, of all pairs, or of a switch that joins all ranks."""
    return {
        "ring": [(rank, (rank + 1) % ranks) for rank in range(ranks)],
        "pairs": list(combinations(range(ranks), 2)),
        "switch": [(rank, ranks) for rank in range(ranks)],
    }[shape]


def network(folder: Path, shape: str, ranks: int, overhead_ns: int) -> Path:
    edges = "\n".join(f"{a} {b}" for a, b in cables(shape, ranks))
    topology = f"name = \"graph\"\naccelerators = {ranks}\nedges = '''\n{edges}\n'''\n"
    more = f"host_overhead_ns = {overhead_ns}\ngamma_ns_per_byte = 0.0025\n"
    text = network_text(topology, gbps=100, ns=(350, 0, 0), packet_bytes=4096, buffer_bytes=1 << 22, more=more)
    return written(folder / "net.toml", text)


def plan(collective: str, machine: Path, ranks: int, block: int, **options: Any) -> un.Plan:
    elements = block * ranks if collective in VECTORS else block
    return un.plan(collective, machine, elements=elements, **options)


def seconds(plan: un.Plan) -> float:
    found = plan.predicted["seconds"]
    assert found is not None
    return found


@pytest.mark.parametrize("shape", ["ring", "pairs", "switch"])
def test_no_collective_takes_much_longer_than_one_that_contains_it(shape: str, tmp_path: Path) -> None:
    draw = random.Random(shape)
    for _ in range(60 if SOAK else 12):
        ranks, overhead = draw.randint(3, 8), draw.choice([0, 0, 200, 1000])
        block = draw.choice([4, 64, 256, 1024, 8192])
        machine = network(tmp_path, shape, ranks, overhead)
        times = {name: seconds(plan(name, machine, ranks, block)) for pair in CONTAINING for name in pair}
        for part, whole in CONTAINING:
            # Of data that a switch alone joins, what remains of a collective meets in another order.
            most = MOST_ON_A_SWITCH if shape == "switch" else MOST
            assert times[part] <= most * times[whole], (part, whole, ranks, overhead, block)


#: The quotients up to which times count as equal.
MOST = 1.05
MOST_ON_A_SWITCH = 1.2


@pytest.mark.parametrize(("part", "whole"), CONTAINING)
def test_what_remains_of_a_collective_is_proved(part: str, whole: str) -> None:
    draw = random.Random(part)
    proved = 0
    for algorithm in un.algorithms(whole):
        if "endpoint" not in algorithm["machines"] or algorithm["name"] == "composition":
            continue
        ranks = draw.randint(2, 9)
        root: dict[str, Any] = (
            {"root": draw.randrange(ranks)} if part in ("broadcast", "reduce", "gather", "scatter") else {}
        )
        try:
            made = un.plan(
                part,
                "archer",
                shape=ranks,
                elements=draw.randint(1, 40),
                algorithm="composition",
                params={whole: algorithm["name"]},
                **root,
            )
        except un.UnsupportedError:
            continue
        assert made.schedule.verify().holds, (algorithm["name"], made.params, ranks, root)
        proved += 1
    assert proved > 3
