"""Arrays as a rank holds them, what is under way on them, and ways to begin it."""

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
#: The fields of a command of `Discovery.commands`; its tuple begins with kind, number, task and what it waits for.
Command = tuple[Any, ...]


@dataclass
class Held:
    """An array as this rank holds it: in full size, of which memory pages that nothing touches take no room."""

    data: Data
    #: The operator that combines its partial results.
    operator: str | None = None
    #: For each element the last operator's number, where tasks have several.
    codes: npt.NDArray[np.uint8] | None = None
    #: Its copies on devices, where kernels there touch it; one of them may have the latest contents alone.
    mirror: Mirrors | None = None
    #: The devices of the process; None for CuPy's current one.
    devices: int | None = None

    def to_host(self, region: Boxes) -> None:
        """Sees to it that ``data`` has the latest contents of a region."""
        if self.mirror:
            self.mirror.to_host(region)

    def host_wrote(self, region: Boxes) -> None:
        """A region of ``data`` gets new contents."""
        if self.mirror:
            self.mirror.host_wrote(region)

    def to_host_for(self, command: Command) -> None:
        """Sees to it that ``data`` has what an exchange reads."""
        self.to_host(_given(command))

    def host_wrote_by(self, command: Command) -> None:
        """An exchange wrote what it received."""
        self.host_wrote(_received(command))

    def combine_by(self, operator: str) -> None:
        """Another task reduces it."""
        if self.operator not in (None, operator) and self.codes is None:
            self.codes = np.full(self.data.shape, NAMES.index(self.operator or operator), np.uint8)
        self.operator = self.operator or operator


def _given(command: Command) -> Boxes:
    """The region of the array that an exchange reads."""
    at = {"push": 6, "collective": 7}.get(command[0])
    given: Boxes = () if at is None else command[at]
    return given


def _received(command: Command) -> Boxes:
    """The region of the array that an exchange writes."""
    if command[0] == "await":
        return tuple(box for _, region in command[5] for box in region)
    received: Boxes = command[8]
    return received


def nothing() -> None:
    """Where nothing remains to be done."""


@dataclass
class Pending:
    """An exchange under way: whether it is over, and what then remains to be done."""

    poll: Poll
    finish: Callable[[], None] = nothing
    #: The way that serves it, in words.
    served: str = "messages"
    #: Memory that it works on.
    kept: tuple[Any, ...] = ()


class Route:
    """A way to carry out one collective on one array."""

    #: What carries it out without Python; None where a `PythonRoute` begins it.
    here: LibraryCollective | PairMessages | None = None
    #: Whether it takes one of the channels of the world.
    by_world = False
    #: Whether it can use the array's memory, where nothing else looks at the array before it is over.
    in_place = False
    #: The messages that ranks receive from others.
    bytes = 0
    #: The name of the schedule by messages that it executes, as predictions have it.
    schedule: str | None = None

    def prepare(self) -> None:
        """Does what participants must do together, before anything is under way; nothing by default."""
        return


class PythonRoute(Route, ABC):
    """A route that Python begins wherever it has nothing for `here`."""

    @abstractmethod
    def begin(self, held: Held) -> Pending:
        """Begins the rank's part; until its end it reads the region given and writes the region got, and no other."""

    def begin_in_place(self, held: Held) -> Pending:
        """The same in the array's own memory."""
        return self.begin(held)
