"""A rank's copy of an array, exchanges under way, and routes that begin exchanges."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unisono._core import LibraryCollective, PairMessages
from unisono.tasks._device import Mirrors
from unisono.tasks._operators import NAMES
from unisono.tasks._regions import Boxes, Data

Poll = Callable[[], bool]
#: The fields of a command of `Discovery.commands`; the first are its kind, number, task and the commands it waits for.
Command = tuple[Any, ...]


@dataclass
class LocalArray:
    """A rank's copy of an array: of full size, but memory pages that no task touches are not allocated."""

    data: Data
    #: The operator that combines its partial results.
    operator: str | None = None
    #: The code of the last operator of each element, if tasks have several operators.
    codes: npt.NDArray[np.uint8] | None = None
    #: The copies on devices, if kernels there access the array; one of them may be the only one with the latest
    #: contents.
    mirror: Mirrors | None = None
    #: The devices of the process; None for CuPy's current one.
    devices: int | None = None

    def to_host(self, region: Boxes) -> None:
        """Copies the latest contents of a region to ``data``."""
        if self.mirror:
            self.mirror.to_host(region)

    def host_wrote(self, region: Boxes) -> None:
        """Marks a region of ``data`` that gets new contents."""
        if self.mirror:
            self.mirror.host_wrote(region)

    def to_host_for(self, command: Command) -> None:
        """Copies the region that an exchange reads to ``data``."""
        self.to_host(_given(command))

    def host_wrote_by(self, command: Command) -> None:
        """Marks the region that an exchange wrote."""
        self.host_wrote(_received(command))

    def combine_by(self, operator: str) -> None:
        """Sets the operator of a task that reduces the array."""
        if self.operator not in (None, operator) and self.codes is None:
            self.codes = np.full(self.data.shape, NAMES.index(self.operator or operator), np.uint8)
        self.operator = self.operator or operator


def _given(command: Command) -> Boxes:
    """Returns the region of the array that an exchange reads."""
    at = {"push": 6, "collective": 7}.get(command[0])
    given: Boxes = () if at is None else command[at]
    return given


def _received(command: Command) -> Boxes:
    """Returns the region of the array that an exchange writes."""
    if command[0] == "await":
        return tuple(box for _, region in command[5] for box in region)
    received: Boxes = command[8]
    return received


def nothing() -> None:
    """Does nothing, as the `finish` of an exchange."""


@dataclass
class Pending:
    """An exchange under way: `poll` returns whether it is over, and `finish` then completes it."""

    poll: Poll
    finish: Callable[[], None] = nothing
    #: The name of the way that carries it out.
    served: str = "messages"
    #: Objects kept alive until then.
    kept: tuple[Any, ...] = ()


class Route:
    """A way to carry out one collective on one array."""

    #: Carries out the collective without Python; None if a `PythonRoute` begins it.
    here: LibraryCollective | PairMessages | None = None
    #: True if it uses one of the channels of the world communicator.
    by_world = False
    #: True if it can use the array's memory while nothing else accesses the array.
    in_place = False
    #: The bytes that ranks receive from others.
    bytes = 0
    #: The name of the schedule of messages that it executes, as in predictions.
    schedule: str | None = None

    def prepare(self) -> None:
        """Does the collective part of the preparation, before any exchange is under way; nothing by default."""
        return


class PythonRoute(Route, ABC):
    """A route that Python begins if `here` is None."""

    @abstractmethod
    def begin(self, local: LocalArray) -> Pending:
        """Begins the rank's part, which reads the given region and writes the received region until it is over."""

    def begin_in_place(self, local: LocalArray) -> Pending:
        """Begins the rank's part in the array's own memory."""
        return self.begin(local)
