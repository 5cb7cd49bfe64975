"""A thread that advances exchanges while a kernel runs.

Only the thread that holds the lock may use the schedule. The program's thread holds the lock, except while a kernel
runs. The progress thread polls the number of the running kernel once a millisecond, and takes the lock if the number
has not changed since the last poll. Short kernels are therefore never disturbed, and in long kernels exchanges advance
from the second millisecond on. At its start and end a kernel only sets a number, which costs almost nothing.

Kernels may call MPI, so the progress thread needs ``MPI_THREAD_MULTIPLE``, which mpi4py requests. Without it, exchanges
advance between kernels only.
"""

import os
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Protocol

from unisono.base.switches import is_on

#: The variable that controls the thread: ``off``, no thread; ``always``, for tests, every kernel waits until the thread
#: has advanced exchanges once.
SWITCH = "UNISONO_PROGRESS"
#: Seconds between two polls: of the running kernel; of exchanges that advance; and the maximum for exchanges that do
#: not advance.
_LOOK, _BUSY, _QUIET = 1e-3, 2e-4, 2e-3
#: The seconds without a kernel after which the thread sleeps until it is woken.
_DOZE = 0.1


class PolledExchanges(Protocol):
    """Exchanges that progress while a kernel runs."""

    @property
    def idle(self) -> bool:
        """Returns whether no exchange can advance while a kernel runs."""

    def advance(self) -> bool:
        """Advances exchanges without waiting; returns whether any did."""


class ProgressThread:
    """The progress thread, and the context manager around each kernel."""

    def __init__(self, several_threads: bool, fail: Callable[[], None]) -> None:
        """Creates the thread's state; the thread calls ``fail``, which ends all ranks, if an exchange fails."""
        is_used = is_always = os.environ.get(SWITCH) == "always"
        if not is_always:
            is_used = SWITCH not in os.environ or os.environ[SWITCH] == "" or is_on(SWITCH)
        self._used, self._always = several_threads and is_used, is_always
        self._fail = fail
        # The lock is reentrant, because a kernel may itself run a program, with or without the lock.
        self._lock = threading.RLock()
        self._awake = threading.Event()
        self._thread: threading.Thread | None = None
        self._schedule: PolledExchanges | None = None
        #: The number of the running kernel, 0 between kernels; ``_kernels`` is the number of kernels so far.
        self._kernel, self._kernels = 0, 0
        #: The number of times that the thread has advanced exchanges.
        self.turns = 0

    def of(self, schedule: PolledExchanges) -> "_ProgressContext":
        """Returns a context in which the thread advances this schedule."""
        return _ProgressContext(self, schedule)

    def __enter__(self) -> None:
        """Begins a kernel."""
        if not self._used or self._schedule is None or self._schedule.idle:
            return
        self._kernels += 1
        turns, self._kernel = self.turns, self._kernels
        if not self._awake.is_set():
            self._wake()
        self._lock.release()
        while self._always and self.turns == turns:
            time.sleep(0)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Ends a kernel."""
        if self._kernel:
            self._lock.acquire()
            self._kernel = 0

    def _wake(self) -> None:
        self._awake.set()
        if self._thread is None:
            # The thread is a daemon, so it ends with the process.
            self._thread = threading.Thread(target=self._attend, name="unisono exchanges", daemon=True)
            self._thread.start()

    def _attend(self) -> None:
        seen, pause, unused = 0, _LOOK, 0.0
        while True:
            time.sleep(0 if self._always else pause)
            kernel = self._kernel
            if not kernel:
                pause, unused = _LOOK, unused + _LOOK
                if unused > _DOZE:
                    unused = 0.0
                    self._awake.clear()
                    # `__enter__` sets the number before it checks the event, so that no wake-up is lost.
                    if not self._kernel:
                        self._awake.wait()
                continue
            unused = 0.0
            if kernel != seen and not self._always:
                seen, pause = kernel, _LOOK
                continue
            pause = _BUSY if self._turn(kernel) else min(2 * pause, _QUIET)

    def _turn(self, kernel: int) -> bool:
        """Advances exchanges unless the kernel has ended; returns whether any did."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            if self._kernel != kernel or self._schedule is None:
                return False
            self.turns += 1
            return self._schedule.advance()
        except BaseException:
            # After any failure all ranks must end, because other ranks would wait for ever.
            self._fail()
            return False
        finally:
            self._lock.release()


class _ProgressContext:
    def __init__(self, thread: ProgressThread, schedule: PolledExchanges) -> None:
        self._progress_thread, self._schedule = thread, schedule

    def __enter__(self) -> None:
        thread = self._progress_thread
        thread._lock.acquire()
        self._around = thread._schedule, thread._kernel
        thread._schedule, thread._kernel = self._schedule, 0

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        thread = self._progress_thread
        thread._schedule, thread._kernel = self._around
        thread._lock.release()
