"""Commands on several cores: the same output on one thread and on two."""

import random
import threading
from concurrent.futures import Future
from pathlib import Path

import pytest
import unisono as un
from unisono.base.limits import set_cores
from unisono.reproduce.once import RowPool, begin, once

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


@pytest.mark.parametrize("seed", range(6))
def test_rows_that_wait_let_others_begin(seed: int) -> None:
    drawn = random.Random(seed)
    needs = {n: drawn.sample(range(n), min(n, drawn.randrange(4))) for n in range(40)}
    jobs, lock, computing, most = 1 + seed % 3, threading.Lock(), 0, 0
    calls: list[int] = []

    @once
    def value(number: int) -> int:
        nonlocal computing, most
        below = sum(value(other) for other in needs[number])
        with lock:
            calls.append(number)
            computing += 1
            most = max(most, computing)
        total = below + sum(range(10_000)) % 7 + 1
        with lock:
            computing -= 1
        return total

    with RowPool(jobs) as pool:
        with pool.turn():
            rows = [pool.submit(value, number) for number in drawn.choices(range(40), k=60)]
            begin(value, ((number,) for number in range(40)))
            found = [value(number) for number in range(40)]
        assert sum(row.result() for row in rows) > 0
    assert sorted(calls) == list(range(40))
    assert most <= jobs
    assert found == [sum(found[other] for other in needs[n]) + sum(range(10_000)) % 7 + 1 for n in range(40)]


def test_a_row_begins_while_all_others_wait() -> None:
    begun, awaited = threading.Event(), Future[int]()

    @once
    def value() -> int:
        begun.set()
        return awaited.result()

    with RowPool(2) as pool:
        first = pool.submit(value)
        begun.wait()
        second = pool.submit(value)
        pool.submit(awaited.set_result, 5)
        assert (first.result(), second.result()) == (5, 5)
