"""A thread that carries exchanges on while a kernel runs.

One lock stands for the right to touch the schedule. The program's thread has it, except while a kernel runs. The
attendant sleeps, looks a thousand times a second which kernel runs, and takes the lock where it is still the one of the
last time: so short kernels never meet it, and long ones are attended from their second millisecond on. A kernel that
begins or ends only sets a number, which costs next to nothing.

Kernels may call MPI, so the attendant needs MPI to serve several threads at a time (``MPI_THREAD_MULTIPLE``, what
mpi4py asks for); where MPI does not, exchanges go on between kernels only.
"""

import os
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Protocol

from unisono.base.switches import is_on

#: ``off`` in the environment: no thread. ``always``, for tests: every kernel waits until the thread had its turn.
SWITCH = "UNISONO_PROGRESS"
#: Seconds between two looks at the kernel that runs, and, once it is attended, while exchanges get on and while not.
_LOOK, _BUSY, _QUIET = 1e-3, 2e-4, 2e-3
#: Seconds without a kernel after which the thread waits to be woken.
_DOZE = 0.1


class Attended(Protocol):
    """Exchanges that progress while a kernel runs."""

    @property
    def idle(self) -> bool:
        """Whether there is nothing to carry on while a kernel runs."""

    def advance(self) -> bool:
        """Carries on; whether anything was done. It does not wait."""


class Attendant:
    """The thread; a context manager around each kernel."""

    def __init__(self, several_threads: bool, fail: Callable[[], None]) -> None:
        """``fail`` ends all ranks; it is called in the thread, where an exchange failed."""
        is_used = is_always = os.environ.get(SWITCH) == "always"
        if not is_always:
            is_used = SWITCH not in os.environ or os.environ[SWITCH] == "" or is_on(SWITCH)
        self._used, self._always = several_threads and is_used, is_always
        self._fail = fail
        # A kernel may run a program of its own, with the lock or without.
        self._lock = threading.RLock()
        self._awake = threading.Event()
        self._thread: threading.Thread | None = None
        self._schedule: Attended | None = None
        #: The kernel's number; 0 while none runs.
        self._kernel, self._kernels = 0, 0
        #: Turns that the thread had.
        self.turns = 0

    def of(self, schedule: Attended) -> "_Attending":
        """While this lasts, the schedule is what is carried on."""
        return _Attending(self, schedule)

    def __enter__(self) -> None:
        """A kernel begins."""
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
        """It ended."""
        if self._kernel:
            self._lock.acquire()
            self._kernel = 0

    def _wake(self) -> None:
        self._awake.set()
        if self._thread is None:
            # It ends with the process: between kernels it does nothing.
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
                    # Who begins a kernel sets its number first, and looks then whether this sleeps.
                    if not self._kernel:
                        self._awake.wait()
                continue
            unused = 0.0
            if kernel != seen and not self._always:
                seen, pause = kernel, _LOOK
                continue
            pause = _BUSY if self._turn(kernel) else min(2 * pause, _QUIET)

    def _turn(self, kernel: int) -> bool:
        """Unless the kernel has ended meanwhile."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            if self._kernel != kernel or self._schedule is None:
                return False
            self.turns += 1
            return self._schedule.advance()
        except BaseException:
            # Whatever it was, other ranks would wait for ever.
            self._fail()
            return False
        finally:
            self._lock.release()


class _Attending:
    def __init__(self, attendant: Attendant, schedule: Attended) -> None:
        self._attendant, self._schedule = attendant, schedule

    def __enter__(self) -> None:
        attendant = self._attendant
        attendant._lock.acquire()
        self._around = attendant._schedule, attendant._kernel
        attendant._schedule, attendant._kernel = self._schedule, 0

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        attendant = self._attendant
        attendant._schedule, attendant._kernel = self._around
        attendant._lock.release()
