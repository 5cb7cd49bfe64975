"""Under mpiexec: runs files and prints their `result`, or random programs. Rank 0 prints digests.

Usage: tasks.py [both] example FILE... | random|mixed FIRST LAST | wrong HOW | floats|rounded|ways|memory|dropped With
`both`, the command runs twice: with collectives, then with messages between pairs of ranks alone.
"""

import gc
import hashlib
import os
import runpy
import sys
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
from mpi4py import MPI
from unisono import InputError, _core
from unisono.tasks import Program, View, _transport, all_, neighborhood, one_to_one, shift
from unisono.tasks._schedule import carry_out

from tests.mpi.random_tasks import RandomProgram, digest
from tests.mpi.standin import install

RANK = MPI.COMM_WORLD.Get_rank()
DEVICES = 3


def say(line: str) -> None:
    """Prints a line on rank 0, which must be the same on all ranks."""
    said = MPI.COMM_WORLD.allgather(line)
    assert len(set(said)) == 1, said
    if RANK == 0:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


class Mixed(Program):
    """A program with about half of its kernels on (simulated) devices, and the others on the host."""

    def __init__(self, *given: Any, **options: Any) -> None:
        """Gives ranks one, two or three devices by turns."""
        super().__init__(*given, devices=1 + RANK % DEVICES, **options)

    def task(self, kernel: Callable[..., Any], *given: Any, **options: Any) -> None:
        """Submits a task with its kernel on a device or on the host."""
        # Each rank chooses differently, since the exchanged data must not depend on where a kernel runs.
        if hashlib.sha256(f"{len(self.tasks)} {RANK}".encode()).digest()[0] % 2:
            super().task(_on_device(kernel), *given, on="cupy", offsets=True, **options)
        else:
            super().task(kernel, *given, **options)


def _on_device(kernel: Callable[..., Any]) -> Callable[..., Any]:
    def run(*given: Any) -> None:
        *arrays, offsets = given
        kernel(*(View.of(a.get(), at, writable=True) for a, at in zip(arrays, offsets, strict=True)))

    return run


def wrong(how: str) -> None:
    """Runs programs that differ by rank, which gives an error on all ranks."""
    program = Program()
    a = program.zeros(8, name="a")
    b = program.zeros(8, name="b")

    def one(x: View) -> None:
        if how == "kernel" and RANK == 1:
            x[100] = 1
        if how == "exit" and RANK == 1:
            sys.exit(3)
        x += 1

    for k in range(5):
        mine = b if how == "task" and RANK == 1 and k == 3 else a
        program.task(one, range=8, updates=[mine[one_to_one]], name=f"step{k}{'x' if mine is b else ''}")
    if how == "proof":
        program.task(one, range=8, reads=[a[neighborhood(1)]], updates=[b[one_to_one]], name="near")
        program._discovery.flush()
        if RANK == 1:
            # A limit of one step stops the proof at its beginning.
            _core.set_limits(None, 1, follow=False)
        program.run()
    if how == "contents":
        program.array(4, init=np.full(4, float(RANK == 1)), name="drawn")
    if how == "fewer" and RANK == 1:
        program.task(one, range=8, updates=[a[shift(0)]], name="more")
    if how == "end" and RANK == 1:
        raise SystemExit(0)
    if how == "order" and RANK == 1:
        program.fetch(b)
    program.fetch(a)


def floats() -> None:
    """Computes rounded sums, which must have the same bits on all ranks, without and with planned collectives."""
    for machine in (None, "archer"):
        program = Program(machine=machine)
        a = program.array(1003, init=np.random.default_rng(0).normal(size=1003), name="a")
        total, seen = program.array(501, name="total"), program.zeros(1003, name="seen")

        def add(a: View, total: View) -> None:
            total += np.resize(a, 501) * (np.pi + a.offset[0])

        def use(total: View, seen: View) -> None:
            seen += total.sum()

        for _ in range(3):
            program.task(add, range=1003, reads=[a[one_to_one]], reduces=[total[all_]])
            program.task(use, range=1003, reads=[total[all_]], updates=[seen[one_to_one]])
        program.fence()
        say(digest(program.fetch(total), program.fetch(seen)))
        # Neighbors get overlapping parts of a sum; common elements have the same bits.
        program.task(add, range=1003, reads=[a[one_to_one]], reduces=[total[all_]])

        def copy(total: View, left: View, right: View) -> None:
            low, high = left.offset[0], left.offset[0] + len(left)
            for out, step in ((left, -1), (right, 1)):
                for k in range(low, high):
                    at = min(max(k + step, 0), 500)
                    out[k - low] = total[at - total.offset[0]]

        left, right = program.array(501, name="left"), program.array(501, name="right")
        writes = [left[one_to_one], right[one_to_one]]
        program.task(copy, range=501, reads=[total[neighborhood(1)]], writes=writes)
        one, other = program.fetch(left), program.fetch(right)
        assert (one[2:] == other[:-2]).all()
        say(digest(one, other))


def rounded() -> None:
    """Prints a rounded sum and a rounded product as hexadecimal floats."""
    program = Program()
    drawn = np.random.default_rng(0).normal(size=10_007)
    x, near = program.array(drawn.size, init=drawn, name="x"), program.array(drawn.size, init=1 + drawn / 100)
    total, product = program.array(1, name="total"), program.array(1, name="product")

    def add(x: View, total: View) -> None:
        total += x.sum()

    def multiply(near: View, product: View) -> None:
        product *= near.prod()

    program.task(add, range=drawn.size, reads=[x[one_to_one]], reduces=[total[all_]])
    program.task(multiply, range=drawn.size, reads=[near[one_to_one]], reduces=[product[all_]], op="prod")
    found = program.fetch(total)[0], program.fetch(product)[0]
    say(" ".join(float(value).hex() for value in found))


def ways() -> None:
    """Computes sums of whole arrays over all ranks, and sums to whose elements only neighbors contribute."""
    program = Program()
    ones = program.array(64, init=np.ones(64, int), name="ones")
    sums, seen = program.zeros(64, dtype=int, name="sums"), program.zeros(64, dtype=int, name="seen")

    def add(ones: View, sums: View) -> None:
        sums += 1

    def use(sums: View, seen: View) -> None:
        seen += sums.sum()

    for mapper in (all_, neighborhood(1)):
        for width, reads in ((64, all_), (1, all_), (64, one_to_one)):
            program.task(add, range=64, reads=[ones[one_to_one]], reduces=[sums[mapper]])
            program.task(use, range=width, reads=[sums[reads]], updates=[seen[one_to_one]])
        program.run()
    assert program._exchanges
    say(" ".join(program._exchanges.memory.routes()))


def memory() -> None:
    """Checks that `TaskMemory` refuses arrays that MPI cannot use directly, or whose sizes do not match."""
    handle = MPI._handleof(MPI.COMM_WORLD)
    held, data = _core.TaskMemory(handle, 1 << 30, False), np.zeros(64, np.uint8)
    read_only = data[:]
    read_only.setflags(write=False)
    reasons = []

    def refused(call: Callable[..., Any], *given: Any, **options: Any) -> None:
        try:
            call(*given, **options)
        except InputError as error:
            reasons.append(str(error))
        else:
            raise AssertionError((given, options))

    for wrong, shape in (
        (data, (9,)),
        (data[::2], (4,)),
        (read_only, (8,)),
        (data, (2, 2, 2, 1)),
        (data, (1 << 62, 4)),
    ):
        refused(held.hold, wrong, shape, 8)
    held.hold(data, (8,), 8)
    refused(_core.TaskMemory, handle, 0, False)
    assert len(reasons) == 6, reasons
    say(" | ".join(sorted(set(reasons))))


def dropped() -> None:
    """Checks that data for a dropped exchange arrives in memory that is never used again."""
    size = 1 << 15
    program = Program()
    a, b = program.zeros((2, size), name="a"), program.zeros(1, name="b")

    def fill(a: View) -> None:
        a[...] = 1 + RANK

    program.task(fill, range=2, writes=[a[one_to_one]])
    program.task(fill, range=1, reads=[a[all_]], writes=[b[all_]], name="look")
    program._discovery.flush()
    exchanges, transport = program._exchanges, program._transport
    assert exchanges
    assert transport
    schedule = _core.TaskSchedule(program._discovery, exchanges.memory, exchanges, program._local_arrays, None, False)
    schedule.prepare(program._discovery)
    fresh: list[Any] = []
    if RANK == 0:
        assert (schedule.waiting, schedule.idle) == (1, True)
        assert schedule.advance()
        assert (schedule.waiting, schedule.idle) == (0, False)
        del schedule, program, exchanges, a, b
        gc.collect()
        fresh = [np.zeros(size) for _ in range(64)]
    MPI.COMM_WORLD.Barrier()
    if RANK == 1:
        carry_out(schedule, program._execute_or_end, transport.progress_thread)
    MPI.COMM_WORLD.Barrier()
    assert not any(array.any() for array in fresh)
    say("dropped")


def random(first: str, last: str, largest: str | None = None) -> None:
    """Runs random programs; with `largest`, messages have at most this number of bytes."""
    with patch.object(_transport, "LARGEST", int(largest) if largest else _transport.LARGEST):
        for number in range(int(first), int(last)):
            say(f"{number} {digest(*RandomProgram(number).results())}")


def mixed(first: str, last: str) -> None:
    """Runs random programs with kernels on devices."""
    with patch.dict(sys.modules):
        copied = install(DEVICES)
        for number in range(int(first), int(last)):
            say(f"{number} {digest(*RandomProgram(number, make=Mixed).results())}")
    assert copied.up
    assert copied.down


def example(*files: str) -> None:
    """Runs each file, and prints a digest of its `result`."""
    for file in files:
        say(digest(runpy.run_path(file)["result"]))


COMMANDS: dict[str, Callable[..., None]] = {
    command.__name__: command for command in (example, random, mixed, wrong, floats, rounded, ways, memory, dropped)
}


def main(words: list[str]) -> None:
    """Runs the command that the words name."""
    name, *given = words
    if name == "both":
        # One start of the ranks runs both: the start takes most of a short program's time.
        for switch in "01":
            with patch.dict(os.environ, {"UNISONO_POINT_TO_POINT": switch}):
                main(given)
    else:
        COMMANDS[name](*given)


main(sys.argv[1:])
