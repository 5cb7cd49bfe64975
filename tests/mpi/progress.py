"""Under mpiexec: exchanges while kernels run. Rank 0 prints.

Usage: progress.py steady ARGUMENTS OF tasks.py | overlap FILE | mpi | fail | prepare | patterns N FILE [MACHINE]
"""

import hashlib
import itertools
import os
import runpy
import sys
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from mpi4py import MPI
from unisono import InputError, mpi
from unisono._core import TaskSchedule
from unisono.tasks import Program, View, _transport, all_, neighborhood, one_to_one, transposed

WORLD = MPI.COMM_WORLD
RANK = WORLD.Get_rank()
# Programs with the same machine share a transport. Only a new transport decides whether it has a thread.
_transport._shared.clear()


def say(line: str) -> None:
    if RANK == 0:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def steady(arguments: list[str]) -> None:
    """Runs the programs of tasks.py with slow kernels, which check that their arguments do not change meanwhile."""
    submit, numbers = Program.task, itertools.count()

    def task(self: Program, kernel: Any, *positional: Any, **named: Any) -> None:
        seed, reads = next(numbers), len(named.get("reads", ()))
        accesses = [access for mode in ("reads", "writes", "updates", "reduces") for access in named.get(mode, ())]
        # A mapper written as a function may return several boxes; other ranks may change elements between these.
        boxes = [k for k, access in enumerate(accesses) if not access.mapper.name.startswith("_")]

        def slow(*views: View) -> None:
            before = [np.array(view) for view in views]
            draw = np.random.default_rng((seed, RANK))
            # Until the kernel writes, no element of its boxes may change.
            time.sleep(draw.uniform(0, 5e-4))
            for k in boxes:
                assert (np.asarray(views[k]) == before[k]).all()
            kernel(*views)
            after = [np.array(view) for view in views]
            time.sleep(draw.uniform(0, 5e-4))
            for k in boxes:
                assert (np.asarray(views[k]) == after[k]).all()
                assert k >= reads or (before[k] == after[k]).all()

        submit(self, slow, *positional, **{"name": kernel.__name__, **named})

    file = str(Path(__file__).with_name("tasks.py"))
    with patch.object(Program, "task", task), patch.object(sys, "argv", [file, *arguments]):
        runpy.run_path(file, run_name="__main__")


def overlap(file: str) -> None:
    """Runs all-gathers of six arrays, more than a world has channels, during a kernel that uses none of the arrays."""
    program = Program(trace=file)
    arrays = [program.zeros(8 * WORLD.size, name=f"a{k}") for k in range(6)]
    other, total = program.zeros(WORLD.size, name="other"), program.zeros(WORLD.size, name="total")

    def write(*views: View) -> None:
        if RANK:
            # Rank 0 sends this message from its kernel `long`.
            WORLD.recv(source=0)
        for k, view in enumerate(views):
            view[...] = RANK + k

    def long(view: View) -> None:
        if RANK == 0:
            for rank in range(1, WORLD.size):
                WORLD.isend(None, rank).wait()
        # With a progress thread, the loop ends when the exchanges are done; without it, no exchange advances.
        for _ in range(10_000) if os.environ["UNISONO_PROGRESS"] == "off" else itertools.count():
            if over():
                break
            np.sin(view)
        view += 1

    def over() -> bool:
        """Returns whether no exchange is under way, and only that of the fetch has not begun."""
        assert program._transport
        schedule = program._transport.progress_thread._schedule
        return isinstance(schedule, TaskSchedule) and schedule.waiting == 1 and schedule.idle

    def add(*views: View) -> None:
        views[-1][...] = sum(view.sum() for view in views[:-1])

    program.task(write, range=8 * WORLD.size, writes=[array[one_to_one] for array in arrays])
    program.task(long, range=WORLD.size, updates=[other[one_to_one]])
    program.task(add, range=WORLD.size, reads=[array[all_] for array in arrays], writes=[total[one_to_one]])
    found = program.fetch(total)
    assert (found == sum(8 * (rank + k) for rank in range(WORLD.size) for k in range(6))).all()
    assert (program.fetch(other) == 1).all()
    program.write_trace()


def user_mpi() -> None:
    """Sends messages on MPI_COMM_WORLD in kernels and around them, with the tags that programs of tasks use."""
    ranks, n = WORLD.size, 12 * WORLD.size
    program = Program()
    x, y = program.array(n, init=np.arange(n), name="x"), program.zeros(n, dtype=int, name="y")
    to, source = (RANK + 1) % ranks, (RANK - 1) % ranks

    def ring(mark: int) -> None:
        for tag in (0, 1):
            sent, got = np.full(50, 1000 * mark + 10 * RANK + tag), np.empty(50, int)
            requests = [WORLD.Irecv(got, source, tag), WORLD.Isend(sent, to, tag)]
            MPI.Request.Waitall(requests)
            assert (got == 1000 * mark + 10 * source + tag).all()

    def gather(x: View, y: View) -> None:
        ring(1)
        y[...] = x.sum() % 1000
        assert WORLD.allreduce(RANK) == ranks * (ranks - 1) // 2

    def near(y: View, x: View) -> None:
        x[...] = y.max() + np.arange(len(x)) + x.offset[0]
        ring(2)

    started = [WORLD.Irecv(np.empty(1, int), source, tag) for tag in (0, 1)]
    for _ in range(20):
        program.task(gather, range=n, reads=[x[all_]], writes=[y[one_to_one]])
        program.task(near, range=n, reads=[y[neighborhood(1)]], writes=[x[one_to_one]])
        # The receives in `started` were posted first, so they match this message and not those of the ring.
        for request, tag in zip(started, (0, 1), strict=True):
            WORLD.Send(np.full(1, 7), to, tag)
            request.Wait()
        program.run()
        ring(3)
        started = [WORLD.Irecv(np.empty(1, int), source, tag) for tag in (0, 1)]
    for tag in (0, 1):
        WORLD.Send(np.full(1, 7), to, tag)
    MPI.Request.Waitall(started)
    say(hashlib.sha256(program.fetch(x).tobytes() + program.fetch(y).tobytes()).hexdigest()[:16])


def fail() -> None:
    """Makes an exchange fail while a kernel runs."""

    class Broken:
        """A trace that raises an error at the end of an exchange that a rank waits for."""

        def begin(self, command: Any) -> str:
            return str(command[0])

        def end(self, event: str, *_: Any) -> None:
            if event == "await":
                raise RuntimeError("it broke")

        def now(self) -> int:
            return 0

        def kernel(self, *_: Any) -> None:
            pass

    program = Program()
    if RANK == 1:
        program._trace = Broken()  # type: ignore[assignment]
    a, b, c = (program.zeros(WORLD.size, name=name) for name in "abc")

    def set_to_one(x: View) -> None:
        x[...] = 1

    def wait(x: View) -> None:
        time.sleep(0.3)
        x += 1

    def use(near: View, out: View) -> None:
        out[...] = near.sum()

    program.task(set_to_one, range=WORLD.size, writes=[a[one_to_one]])
    program.task(wait, range=WORLD.size, updates=[b[one_to_one]])
    program.task(use, range=WORLD.size, reads=[a[neighborhood(1)]], writes=[c[one_to_one]])
    program.fetch(c)


def patterns(n: int, file: str, machine: str | None) -> None:
    """Runs every pattern with integers, and with fractions whose sums are exact."""
    program = Program(machine=machine, trace=file)
    kinds = {"whole": np.arange(n) * 7 % 11, "real": (np.arange(n) * 37 % 101 - 50) / 1024}
    results = []
    for kind, given in kinds.items():
        x = program.array(n, init=given, name=f"{kind} x")
        y = program.zeros(n, dtype=given.dtype, name=f"{kind} y")
        total = program.zeros(n, dtype=given.dtype, name=f"{kind} total")
        square = program.array((n, n), init=given[:, None] * given, name=f"{kind} square")
        turned = program.zeros((n, n), dtype=given.dtype, name=f"{kind} turned")

        def add(x: View, total: View) -> None:
            places = np.arange(x.offset[0], x.offset[0] + len(x))
            total += np.asarray(x) @ (places[:, None] % 5 + np.arange(len(total)) % 3)

        def copy(x: View, y: View) -> None:
            y[...] = x[y.offset[0] - x.offset[0] :][: len(y)] + 1

        def turn(x: View, y: View) -> None:
            y[...] = x.T + 1

        for reads in (all_, one_to_one):
            for range_ in (1, n):
                program.task(add, range=n, reads=[x[one_to_one]], reduces=[total[all_]])
                writes = y[all_ if range_ == 1 else one_to_one]
                program.task(copy, range=range_, reads=[total[all_ if range_ == 1 else reads]], writes=[writes])
                program.task(copy, range=n, reads=[y[reads]], writes=[x[one_to_one]])
                program.task(copy, range=1, reads=[x[all_]], writes=[y[all_]])
                program.task(copy, range=n, reads=[y[one_to_one]], writes=[x[one_to_one]])
        program.task(turn, range=(n, n), reads=[square[transposed()]], writes=[turned[one_to_one]])
        program.task(turn, range=(n, n), reads=[turned[transposed()]], writes=[square[one_to_one]])
        results += [program.fetch(array) for array in (x, y, square)]
    program.write_trace()
    say(hashlib.sha256(b"".join(result.tobytes() for result in results)).hexdigest()[:16])


def prepare() -> None:
    """Checks that a prepared call names the algorithm that later calls run."""
    ranks = WORLD.size
    for machine in ("archer", None):
        world = mpi.world(machine=machine, channels=1)
        x, rows = np.zeros(60), np.zeros((ranks, 5), np.int32)
        calls: list[tuple[str, int, Any, dict[str, Any]]] = [
            ("allreduce", 60, x, {"op": "max"}),
            ("reduce", 60, x, {"root": ranks - 1}),
            ("broadcast", 480, x, {"root": 1 % ranks}),
            ("allgather", 480, x, {}),
            ("reduce-scatter", 5, rows, {}),
            ("alltoall", 20, rows, {}),
        ]
        for collective, count, array, options in calls:
            dtype = array.dtype if "reduce" in collective else np.dtype(np.uint8)
            said = world.prepare(collective, count, dtype, **options)
            free = world.is_free()
            started = world.start(collective, array, **options)
            assert free
            assert started.ran is said, (started.ran, said)
            assert said.planned == (machine is not None)
            started.wait()
            assert world.is_free()
    try:
        world.prepare("barrier", 1)
    except InputError as error:
        say(str(error))


match sys.argv[1]:
    case "prepare":
        prepare()
    case "steady":
        steady(sys.argv[2:])
    case "overlap":
        overlap(sys.argv[2])
    case "mpi":
        user_mpi()
    case "fail":
        fail()
    case _:
        patterns(int(sys.argv[2]), sys.argv[3], sys.argv[4] if len(sys.argv) > 4 else None)
