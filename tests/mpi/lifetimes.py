"""Under mpiexec: calls that the program drops, interrupts or leaves unfinished. Usage: lifetimes.py CASE PLAN FOLDER.

Rank 0 begins a call and abandons it; the other ranks make the same call later. In all cases, no other array of rank 0
changes, and the other ranks get their result.
"""

import gc
import os
import signal
import sys
import threading
import time
from pathlib import Path

import mpi4py
import numpy as np

case, plan, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
if case.startswith("level-"):
    mpi4py.rc.thread_level = case.removeprefix("level-")

from mpi4py import MPI  # noqa: E402
from unisono import Error, mpi  # noqa: E402

from tests.mpi.raising import raises  # noqa: E402

#: Elements of the vectors: so many that no message is delivered before its receiver waits for it.
COUNT = 1 << 18
comm = MPI.COMM_WORLD
rank = comm.rank
world = mpi.world(plan=plan) if plan != "-" else mpi.world()
other = mpi.world(plan=plan) if plan != "-" else mpi.world()
operation: mpi.Operation | None = None


def vector() -> np.ndarray:
    return np.full(COUNT, 1000.0 if rank else 1.0, np.float32)


def begin() -> mpi.Operation:
    begun = world.start("allreduce", vector())
    assert world.last is not None
    assert world.last.planned == (plan != "-")
    return begun


def guards() -> list[np.ndarray]:
    """Returns arrays that are likely to reuse the addresses of freed arrays."""
    return [np.full(size, 7.0, np.float32) for size in [COUNT] * 8 + [COUNT // 4] * 32]


def others_get_their_result() -> None:
    """Checks that the dropped call completes while rank 0 makes other calls."""
    mine = guards() if rank == 0 else []
    # The other ranks begin the call only after rank 0 has abandoned it.
    comm.Barrier()
    taken = begin() if rank else None
    while True:
        done = np.array([1.0 if taken is None or taken.test() else 0.0], np.float32)
        if other.allreduce(done)[0] == comm.size:
            break
    if taken is not None:
        assert taken.result is not None
        assert (taken.result == 1 + 1000 * (comm.size - 1)).all()
    assert all((array == 7).all() for array in mine), "an array changed under its owner"


def waits(channel: int = 0) -> None:
    """Returns once another thread is in a call on a channel."""
    while world._channels[channel].poll():
        time.sleep(0.001)


def dropped() -> None:
    global world
    if rank == 0:
        begin()
        del world
        gc.collect()
    others_get_their_result()


def dropped_in_a_thread() -> None:
    global world, operation
    if rank == 0:
        operation = begin()

        def drop() -> None:
            global world, operation
            operation = None
            del world

        thread = threading.Thread(target=drop)
        thread.start()
        thread.join()
    others_get_their_result()


def dropped_in_a_cycle() -> None:
    global world
    if rank == 0:
        cycle: list[object] = [begin(), world]
        cycle.append(cycle)
        del cycle, world
        gc.collect()
    others_get_their_result()


def dropped_by_an_error() -> None:
    global world
    if rank == 0:

        def fails(_: mpi.Operation, own: mpi.World) -> None:
            raise ValueError(own.ranks)

        with raises(ValueError, match=str(comm.size)):
            fails(begin(), world)
        del world
        gc.collect()
    others_get_their_result()


def left_behind() -> None:
    """Leaves a call unfinished, which the end of the program completes."""
    global operation
    operation = begin()
    if rank:
        result = operation.wait()
        assert result is not None
        assert (result == 1 + 1000 * (comm.size - 1)).all()


def left_and_dropped() -> None:
    global world
    if rank:
        left_behind()
    else:
        begin()
        del world


def never_met() -> None:
    """Begins a call on rank 0 that the other ranks never make."""
    global operation
    if rank == 0:
        operation = world.start("broadcast", vector(), root=1)
        assert not operation.test()


def finalized() -> None:
    """Finalizes MPI before a call has ended."""
    global operation, world
    never_met()
    comm.Barrier()
    MPI.Finalize()
    if rank == 0:
        assert operation is not None
        with raises((Error, MPI.Exception), match="MPI was finalized|MPI_ERR|MPI error|finali"):
            operation.test()
        with raises((Error, MPI.Exception)):
            other.allreduce(np.ones(4, np.float32))
        operation = None
        del world
        gc.collect()


def used_by_two_threads() -> None:
    """Checks that a second thread gets an error, and that no thread waits for another while it holds the GIL."""
    if rank:
        comm.Barrier()
        world.allreduce(vector())
        return
    found: list[np.ndarray] = []
    thread = threading.Thread(target=lambda: found.append(world.allreduce(vector())))
    thread.start()
    waits()
    with raises(Error, match="in another thread"):
        world.start("allreduce", vector())
    with raises(Error, match="in another thread"):
        world._channels[0].close()
    # A search in the plan is permitted in any thread.
    assert world._channels[0].find(0, "allreduce", 0, 8, 4, MPI._handleof(MPI.FLOAT), MPI._handleof(MPI.SUM)) == 0
    comm.Barrier()
    thread.join()
    assert (found[0] == 1 + 1000 * (comm.size - 1)).all()


def interrupted() -> None:
    """Checks that Ctrl-C ends the wait, but not the call."""
    if rank == 0:

        def interrupt() -> None:
            waits()
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        with raises(KeyboardInterrupt):
            world.allreduce(vector())
        thread.join()
        for _ in range(2):
            with raises(Error, match="was interrupted"):
                world.allreduce(vector())
    others_get_their_result()
    if rank == 0:
        with raises(Error, match="was interrupted"):
            world._channels[0].poll()


def level_serialized() -> None:
    """Checks that under MPI_THREAD_SERIALIZED a second thread gets an error while the first one waits."""
    assert MPI.Query_thread() == MPI.THREAD_SERIALIZED
    go = folder / "go"
    if rank:
        while not go.exists():
            time.sleep(0.01)
        world.allreduce(vector())
        return
    thread = threading.Thread(target=lambda: world.allreduce(vector()))
    thread.start()
    said = ""
    while not said:
        time.sleep(0.001)
        try:
            world._channels[0].poll()
        except Error as error:
            said = str(error)
    assert "MPI_THREAD_SERIALIZED" in said, said
    go.touch()
    thread.join()


def level_funneled() -> None:
    """Checks that under MPI_THREAD_FUNNELED only the thread that initialized MPI may call."""
    assert MPI.Query_thread() == MPI.THREAD_FUNNELED
    said: list[str] = []

    def call() -> None:
        try:
            world.allreduce(vector())
        except Error as error:
            said.append(str(error))

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    assert "MPI_THREAD_FUNNELED" in said[0], said
    world.allreduce(vector())


def a_daemon_waits() -> None:
    """Ends the program while a thread of rank 0 waits for a call that the other ranks never make."""
    if rank == 0:
        threading.Thread(target=lambda: world.bcast(vector(), root=1), daemon=True).start()
        waits()


def wrong_arguments() -> None:
    """Checks that a channel refuses arguments with which a call would access memory beyond its arrays."""
    channel = other._channels[0]
    double, single, total = (MPI._handleof(h) for h in (MPI.DOUBLE, MPI.FLOAT, MPI.SUM))
    x, small = np.ones(8, np.float32), np.ones(4, np.float32)
    for arguments, why in (
        ((0, "allreduce", 0, 8, 4, double, total, x, x, True, True), "datatype of 8 bytes"),
        ((0, "allreduce", 0, 8, 4, single, total, x, small, False, True), "32 bytes long"),
        ((0, "allreduce", 0, 8, 4, single, total, x, x, False, True), "share memory"),
        ((0, "allreduce", 0, 4, 4, single, total, x[4:], x, True, True), "in place"),
        ((0, "allreduce", 0, 8, 4, single, None, x, x, True, True), "takes an operator"),
        ((0, "allreduce", 0, 1 << 62, 4, single, total, x, x, True, True), "too many|bytes long"),
        ((0, "allreduce", 0, 8, 4, single, total, None, x, False, True), "is missing"),
        ((9, "allreduce", 0, 8, 4, single, total, x, x, True, True), "no row"),
        ((0, "broadcast", 99, 8, 4, 0, None, x, None, False, True), "root is 99"),
    ):
        with raises(Error, match=why):
            channel.start(*arguments)


CASES = {
    name.replace("_", "-"): value
    for name, value in list(globals().items())
    if callable(value) and getattr(value, "__module__", "") == "__main__"
}
CASES[case]()
print("ok", flush=True)
