"""Commands on several cores: the same output on one thread and on two."""

import threading
from pathlib import Path

import pytest
import unisono as un
from unisono.base.limits import set_cores
from unisono.reproduce.once import once

from .conftest import call

_STEP = ["--what-if", "machine=dgx-h100-x2", "--what-if", "link_gbps=100,allreduce=ring", "--what-if", "fail=0"]


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Writes a plan file of several sizes and numbers of ranks, large enough that two threads prove it."""
    plans = [
        (un.plan(kind, "archer", shape=ranks, bytes=bytes, algorithm=name), bytes, bytes)
        for kind, name in [("allreduce", "ring"), ("allgather", "ring"), ("alltoall", "linear")]
        for ranks in (5, 48)
        for bytes in (4096, 65536)
    ]
    file = tmp_path / "table.plan"
    un.save_plans(plans, file, unlike_bits=True)
    return str(file)


@pytest.mark.parametrize(
    "command",
    [
        "plan allreduce --machine dgx-a100 --bytes 1MiB --all",
        "plan alltoall --machine hx2mesh-small --ranks 16 --bytes 4KiB",
        "verify alltoall --machine dgx-h100-x8 --bytes 64KiB --seed 1",
        "compare resnet-152 --machines hx2mesh-small,fattree-small",
        "workload cosmoflow --machine fattree-small",
        "workload --from cosmoflow --machine fattree-small --what-if link_gbps=800 --what-if machine=hx2mesh-small",
        "expect allreduce --machine dgx-a100 --sizes 1KiB,64KiB",
        "sweep allreduce --machine archer --ranks 2..8 --elements 1..1024",
        "reproduce multiplying --quick",
    ],
    ids=lambda command: command.split()[0],
)
def test_commands_print_the_same_on_any_number_of_threads(command: str) -> None:
    one, two = (call(*command.split(), "--jobs", jobs, "--json") for jobs in ("1", "2"))
    assert one == two
    assert one.code == 0, one.err


def test_plan_files_are_proved_the_same(table: str) -> None:
    one, two = (call("verify", table, "--jobs", jobs) for jobs in ("1", "2"))
    assert one == two
    assert one.out.startswith("proved: 12 schedules")


def test_samples_of_allocations_are_the_same() -> None:
    def study() -> object:
        return un.allocate("hx4mesh-small", fail=3, samples=200, seed=4)

    found = []
    for count in (1, 2, 3):
        before = set_cores(count)
        found.append(study())
        assert set_cores(before) == count
    assert found[0] == found[1] == found[2]


def test_a_shared_result_is_computed_once() -> None:
    meet, calls = threading.Barrier(3), []

    @once
    def value(number: int, *, by: int = 1) -> int:
        calls.append(number)
        if number < 0:
            raise ValueError("below 0")
        return number * by

    def both() -> None:
        meet.wait()
        assert value(3, by=2) == 6

    threads = [threading.Thread(target=both) for _ in range(2)]
    for thread in threads:
        thread.start()
    meet.wait()
    for thread in threads:
        thread.join()
    assert calls == [3]
    for _ in range(2):
        with pytest.raises(ValueError, match="below 0"):
            value(-1)
    assert calls == [3, -1, -1]
