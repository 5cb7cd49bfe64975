"""Under mpiexec: compares every collective of a world, planned or not, with plain arithmetic.

Usage: world.py machine|plan|nothing FILE. Rank 0 prints "ok RANKS PLANNED CALLS"; PLANNED calls were planned.
"""

import os
import sys

import numpy as np
from mpi4py.MPI import SUM
from unisono import InputError, mpi

from tests.mpi.raising import raises

how, file = sys.argv[1], sys.argv[2]
world = mpi.world(file if how == "machine" else None, plan=file if how == "plan" else None, channels=3)
rank, ranks = world.rank, world.ranks
planned = calls = 0


def given(of: int, *shape: int, dtype: type = np.float64) -> np.ndarray:
    """Returns the contribution of rank `of`: whole numbers, so that sums are exact in any order."""
    size = int(np.prod(shape))
    return (np.arange(size).reshape(shape) * 7 + of * of + 1).astype(dtype)


def check(name: str, found: np.ndarray, expected: np.ndarray) -> None:
    global planned, calls
    if not np.array_equal(found, expected):
        sys.stdout.write(f"WRONG {name} of {expected.size} on rank {rank}: {world.last}\n")
        sys.stdout.flush()
        from mpi4py import MPI

        MPI.COMM_WORLD.Abort(1)
    last = world.last
    assert last is not None
    assert last.ranks == ranks
    assert last.per_node == ranks
    planned += last.planned
    calls += 1


def total(*shape: int) -> np.ndarray:
    return np.asarray(np.sum([given(r, *shape) for r in range(ranks)], axis=0))


for count in (0, 1, 2, 5, 64, 1000, 4096, 20_001) if os.environ.get("UNISONO_SOAK") == "1" else (0, 1, 5, 1000, 20_001):
    for root in sorted({0, ranks - 1}):
        x = given(rank, count)
        check("allreduce", world.allreduce(x), total(count))
        assert np.array_equal(x, total(count)), "in place"
        x = given(rank, count)
        world.reduce(x, root=root)
        check("reduce", x, total(count) if rank == root else given(rank, count))
        x = given(root, count) if rank == root else np.zeros(count)
        world.bcast(x, root)
        check("bcast", x, given(root, count))
        x = given(rank, count)
        check("scan", world.scan(x), np.sum([given(r, count) for r in range(rank + 1)], axis=0))
        assert np.array_equal(x, np.sum([given(r, count) for r in range(rank + 1)], axis=0)), "in place"
        everyone = np.array([given(r, count) for r in range(ranks)])
        gathered = world.gather(given(rank, count), root)
        assert (gathered is not None) == (rank == root)
        check("gather", everyone if gathered is None else gathered, everyone)
        items = given(root, ranks, count)
        got = world.scatter(items, root) if rank == root else world.scatter(root=root, out=np.empty(count))
        check("scatter", got, items[rank])
        check("allgather", world.allgather(given(rank, count)), everyone)
        check("reduce_scatter", world.reduce_scatter(given(rank, ranks, count)), total(ranks, count)[rank])
        out = np.empty((ranks, count))
        assert world.alltoall(given(rank, ranks, count), out=out) is out
        check("alltoall", out, np.array([given(r, ranks, count)[rank] for r in range(ranks)]))
        world.barrier()
    for op, fold in (("max", np.maximum), ("min", np.minimum), ("prod", np.multiply)):
        few = [given(r, count, dtype=np.int64) % 11 for r in range(ranks)]
        check(op, world.allreduce(few[rank].copy(), op=op), fold.reduce(few))

# Several calls of equal and of different sizes are begun at once, and completed in another order.
for repeat in range(20):
    xs = [given(rank, n) for n in (3000, 3000, 17)]
    begun = [world.start("allreduce", x) for x in xs]
    assert [op.ran.collective for op in begun] == ["allreduce"] * 3
    for at in (2, 0, 1) if repeat % 2 else (1, 2, 0):
        result = begun[at].wait()
        assert result is xs[at]
        check("allreduce begun", xs[at], total(xs[at].size))
# With more calls than channels, each new call waits for the oldest.
more = [world.start("allgather", given(rank, 10 + n)) for n in range(8)]
for n, operation in enumerate(more):
    result = operation.wait()
    assert result is not None
    check("allgather begun", result, np.array([given(r, 10 + n) for r in range(ranks)]))

begun = [world.start("scan", given(rank, 5)), world.start("gather", given(rank, 5), root=ranks - 1)]
begun.append(world.start("scatter", given(rank, ranks, 5), out=np.empty(5)))
item, gathered, running = (operation.wait() for operation in reversed(begun))
assert item is not None
assert running is not None
check("scatter begun", item, given(0, ranks, 5)[rank])
check("scan begun", running, np.sum([given(r, 5) for r in range(rank + 1)], axis=0))
assert (gathered is None) == (rank != ranks - 1)
# Arrays of no axes are single elements.
check("allreduce of one", world.allreduce(np.array(rank + 1.0)), np.array(sum(range(ranks + 1))))
check("allgather of one", world.allgather(np.array(rank)), np.arange(ranks))
check("reduce_scatter of one", world.reduce_scatter(np.full(ranks, 2)), np.array(2 * ranks))
flags = np.array([True, False])
for name, spelled in (
    ("max", ("MAX", "MPI_MAX", "maximum", "Max")),
    ("sum", ("SUM", "add")),
    ("min", ("MIN", "minimum")),
):
    for spelling in spelled:
        check(spelling, world.allreduce(given(rank, 3), op=spelling), world.allreduce(given(rank, 3), op=name))
check("lor", world.allreduce(flags if rank == 0 else ~flags, op="lor"), np.array([True, ranks > 1]))

for wrong, why in (
    (lambda: world.allreduce(np.zeros(4)[::2]), "not contiguous"),
    (lambda: world.allreduce([1.0]), "arrays of NumPy"),  # type: ignore[arg-type]
    (
        lambda: world.allreduce(np.zeros(3), op="sums"),
        "'sums' is not an operator.*did you mean sum.*and operators of mpi4py$",
    ),
    (lambda: world.allreduce(np.ma.masked_less(np.ones(3), 2)), r"masked, .*\.filled"),
    (lambda: world.allgather(np.ones(3), np.ma.ones((ranks, 3))), r"masked, .*\.filled"),
    (lambda: world.bcast(np.zeros(3), root=ranks), f"root is {ranks}"),
    (lambda: world.alltoall(np.zeros((ranks + 1, 2))), "first axis"),
    (lambda: world.allreduce(np.array(["a"])), "cannot be reduced"),
    (lambda: world.allreduce(np.ones(3, bool)), r"for bool; accepted are land, lor, lxor; .* astype\(np.int64\)"),
    (lambda: world.allreduce(np.ones(3), op="bor"), "for float64; accepted are sum, prod, min, max$"),
    (lambda: world.allreduce(np.ones(3, complex), op="max"), "for complex128; accepted are sum, prod$"),
    (lambda: world.start("reduce", np.ones(3, bool), op=SUM), "does not define for bool"),
    (lambda: world.allgather(np.zeros(2), out=np.zeros(3)), "out is"),
    (lambda: world.start("scatterv"), "is no collective"),
    (lambda: world.scatter(None, (rank + 1) % ranks if ranks > 1 else 0), "out is missing|needs an array"),
):
    with raises(InputError, match=why):
        wrong()
# Refused calls do not change the world.
check("sum", world.allreduce(np.ones(3)), np.full(3, float(ranks)))
world.close()
if rank == 0:
    print(f"ok {ranks} {planned} {calls}")
