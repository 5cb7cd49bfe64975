"""Under mpiexec: what a file's program leaves in `result`, or random programs. Rank 0 prints digests.

Usage: tasks.py example FILE | tasks.py random FIRST LAST | tasks.py wrong HOW | tasks.py floats
"""

import hashlib
import runpy
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI
from unisono.tasks import Program, View, _transport, all_, fixed, neighborhood, one_to_one, shift, slice_, transposed

RANK = MPI.COMM_WORLD.Get_rank()


def digest(*arrays: Any) -> str:
    text = hashlib.sha256()
    for array in arrays:
        text.update(np.ascontiguousarray(array).tobytes())
    return text.hexdigest()[:16]


def say(line: str) -> None:
    """Rank 0 prints, once all ranks have the same to say."""
    said = MPI.COMM_WORLD.allgather(line)
    assert len(set(said)) == 1, said
    if RANK == 0:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def kernel(source: str, seed: int, size: int) -> Callable[..., None]:
    """What it writes to a place depends on the place and on what all divisions see alike of what it reads."""

    def run(read: View, out: View, *partial: View) -> None:
        at = np.arange(out.offset[0], out.offset[0] + len(out)) * (3 + seed)
        match source:
            case "same":
                found = np.asarray(read)
            case "near":
                found = _near(read, out, size)
            case _:
                found = read.sum() % 1009
        out[...] = (at + found) % 100_003
        values = np.asarray(out)
        for view in partial:
            match seed % 3:
                case 0:
                    view += values.sum()
                case 1:
                    view[...] = np.maximum(view, values.max())
                case _:
                    view[...] = np.minimum(view, values.min())

    return run


def _near(read: View, out: View, size: int) -> Any:
    """The sums of three neighbors."""
    first = read.offset[0]
    rows = range(out.offset[0], out.offset[0] + len(out))
    return np.array([sum(read[k - first] for k in (i - 1, i, i + 1) if 0 <= k < size) for i in rows])


def random_program(seed: int) -> str:
    """A program by its seed, and what all its arrays hold in the end."""
    draw = np.random.default_rng(seed)
    program = Program()
    n = int(draw.integers(5, 14))
    flat = [program.array(n, init=draw.integers(0, 100, n), name=f"f{k}") for k in range(3)]
    square = [program.array((n, n), init=draw.integers(0, 100, (n, n)), name=f"s{k}") for k in range(2)]
    total = program.array(2, init=[1, 2], dtype=np.int64, name="total")
    for t in range(int(draw.integers(4, 22))):
        kind = int(draw.integers(0, 7))
        a, b = draw.choice(3, 2, replace=False)
        c, d = draw.choice(2, 2, replace=False)
        op = ("sum", "max", "min")[t % 3]
        granularity = int(draw.integers(1, 4))
        sources = [("all", all_), ("same", one_to_one), ("near", neighborhood(1)), ("all", fixed(0, n))]
        how, source = sources[int(draw.integers(0, 4))]
        if kind <= 2:
            run = kernel(how, t, n)
            reads, writes = [flat[a][source]], [flat[b][one_to_one]]
            program.task(run, range=n, reads=reads, writes=writes, granularity=granularity, name=f"t{t}")
        elif kind == 3:
            run = kernel(how, t, n)
            reads, writes = [flat[a][source]], [flat[b][one_to_one]]
            reduces = [total[all_]]
            program.task(run, range=n, reads=reads, writes=writes, reduces=reduces, op=op, name=f"t{t}")
        elif kind == 4:

            def add(total: View, out: View) -> None:
                out[...] = (np.asarray(out) + total.sum()) % 100_003

            alone = 1 if draw.integers(0, 3) == 0 else n
            program.task(add, range=alone, reads=[total[all_]], updates=[flat[a][one_to_one]], name=f"t{t}")
        elif kind == 5:

            def turn(x: View, y: View) -> None:
                y[...] = np.asarray(x).T + 1

            split = ("1d", "2d")[int(draw.integers(0, 2))]
            reads, writes = [square[c][transposed()]], [square[d][one_to_one]]
            program.task(turn, range=(n, n), reads=reads, writes=writes, split=split, name=f"t{t}")
        else:

            def add_columns(x: View, y: View, z: View) -> None:
                z[...] = (np.asarray(z) + np.asarray(x).sum() + np.asarray(y)[..., : z.shape[1]].sum() * 0) % 100_003

            reads = [square[c][all_], square[c][slice_(1)]]
            program.task(add_columns, range=(n, n), reads=reads, updates=[square[d][one_to_one]], name=f"t{t}")
        if draw.integers(0, 6) == 0:
            program.run()
    return digest(*(program.fetch(array) for array in (*flat, *square, total)))


def wrong(how: str) -> None:
    """Programs that differ by rank: an error on all ranks."""
    program = Program()
    a = program.zeros(8, name="a")
    b = program.zeros(8, name="b")

    def one(x: View) -> None:
        if how == "kernel" and RANK == 1:
            x[100] = 1
        x += 1

    for k in range(5):
        mine = b if how == "task" and RANK == 1 and k == 3 else a
        program.task(one, range=8, updates=[mine[one_to_one]], name=f"step{k}{'x' if mine is b else ''}")
    if how == "fewer" and RANK == 1:
        program.task(one, range=8, updates=[a[shift(0)]], name="more")
    if how == "end" and RANK == 1:
        raise SystemExit(0)
    if how == "order" and RANK == 1:
        program.fetch(b)
    program.fetch(a)


def floats() -> None:
    """Sums that are rounded: by a plan's machine too, all ranks have the same bits."""
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
        # Neighbors get parts of a sum that overlap: what they share has the same bits.
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


if sys.argv[1] == "example":
    say(digest(runpy.run_path(sys.argv[2])["result"]))
elif sys.argv[1] == "random":
    if len(sys.argv) > 4:
        _transport.LARGEST = int(sys.argv[4])
    for number in range(int(sys.argv[2]), int(sys.argv[3])):
        say(f"{number} {random_program(number)}")
elif sys.argv[1] == "floats":
    floats()
else:
    wrong(sys.argv[2])
