"""Boxes of GPUs of one kind: more of them never take less time for an allreduce."""

import random

import pytest
import unisono as un

from .conftest import SOAK

#: Forests are heuristic; more ranks may have a better one by this share.
SLACK = 0.005


@pytest.mark.parametrize("seed", range(40 if SOAK else 6))
def test_more_boxes_never_take_less_time(seed: int) -> None:
    draw = random.Random(f"boxes {seed}")
    # One box of A100 has no interfaces, which carry a tenth of what its NVLinks do; nothing sums on the way there.
    name, fewer = [("dgx-h100", 1), ("dgx-h100", 2), ("dgx-a100", 2)][seed % 3]
    size = 4 * int(2 ** draw.uniform(1, 28 if SOAK else 26))
    plans = [un.plan("allreduce", un.machine(name, nodes=boxes), bytes=size) for boxes in (fewer, fewer + 1)]
    less, more = (plan.predicted["seconds"] for plan in plans)
    assert more >= less * (1 - SLACK), (name, fewer, size)
    if size <= 1 << 16:
        less, more = (un.simulate(plan.schedule).seconds for plan in plans)
        assert more >= less * (1 - SLACK), (name, fewer, size)


def test_a_gpu_that_requests_a_sum_sends_its_own_operand_too() -> None:
    """Of n GPUs on switches that pull, 1 + 1/n of a long vector crosses each link, on one box and on two."""
    size = 256 << 20
    one, two = (
        un.plan("allreduce", machine, bytes=size, algorithm="in-network", model="data-sheet")
        for machine in (un.machine("dgx-h100", nodes=boxes) for boxes in (1, 2))
    )
    least = size / 450e9 * (1 + 1 / 8)
    assert least <= one.predicted["seconds"] <= two.predicted["seconds"] < 1.2 * least


def test_scratch_memory_beyond_its_numbers_leaves_a_candidate_out() -> None:
    """Blocks of all ranks have more elements than an index, and other algorithms hold fewer."""
    planned = un.plan("reduce-scatter", un.machine("dgx-h100", nodes=2), bytes="700MiB")
    assert "circulant" not in {candidate["algorithm"] for candidate in planned.candidates}
