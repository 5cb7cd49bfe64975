"""The operation that a route carries out, and base classes of routes by a plan and by the MPI library."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from unisono._core import Discovery, LibraryCollective, Operation
from unisono.tasks import _transport
from unisono.tasks._local_arrays import PythonRoute, Route
from unisono.tasks._regions import Boxes, Data, Part


@dataclass(frozen=True)
class About:
    """An operation on an array, from the view of this rank."""

    transport: _transport.Transport
    discovery: Discovery
    operation: Operation
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    #: The operator that combines partial results, or None.
    operator: str | None

    @cached_property
    def participants(self) -> tuple[int, ...]:
        """Returns the ranks that take part."""
        return tuple(self.operation.participants)

    @property
    def everyone(self) -> bool:
        """Returns whether all ranks take part."""
        return len(self.participants) == self.transport.ranks

    @property
    def rank(self) -> int:
        """Returns this rank."""
        return self.transport.rank

    @property
    def comm(self) -> Any:
        """Returns the participants' communicator; they must request it together."""
        return self.transport.among(self.participants)

    @cached_property
    def moved(self) -> int:
        """Returns the bytes that ranks receive."""
        return self.discovery.elements(self.operation) * self.dtype.itemsize

    def place_of(self, rank: int) -> int:
        """Returns a rank's number in the communicator."""
        return self.participants.index(rank)

    def given(self, rank: int) -> Boxes:
        """Returns the region that a rank contributes."""
        return self.discovery.given(self.operation, rank)

    def received(self, rank: int) -> Boxes:
        """Returns the region that a rank receives."""
        return self.discovery.received(self.operation, rank)

    @cached_property
    def sends(self) -> dict[int, Boxes]:
        """Returns the regions that this rank sends, by rank."""
        return dict(self.discovery.sends(self.operation, self.rank))

    @cached_property
    def receives(self) -> dict[int, Boxes]:
        """Returns the regions that this rank receives, by rank."""
        return dict(self.discovery.receives(self.operation, self.rank))


def fits(size: int) -> bool:
    """Returns whether MPI can count that number of bytes."""
    return size <= _transport.LARGEST


#: The parts of packed memory, its size in bytes, and for each rank the count and the first byte of its part.
Side = tuple[list[Part], int, list[int], list[int]]


class LibraryRoute(Route, ABC):
    """A route that calls the MPI library, among the participants."""

    def __init__(self, about: About) -> None:
        self.about, self.bytes = about, about.moved
        self.here = self.call(about)

    @abstractmethod
    def call(self, about: About) -> LibraryCollective:
        """Returns the library's function, with its memory."""


class WorldRoute(PythonRoute):
    """A route by a plan if there is one, else by the library; all ranks take part, with equal parts."""

    by_world = True

    def __init__(self, about: About, collective: str, count: int, dtype: np.dtype[Any], **options: Any) -> None:
        self.about, self.bytes, self._options = about, about.moved, options
        self._world, self._call = about.transport.world, (collective, count, dtype)
        self.prepare()

    def prepare(self) -> None:
        planned = self._world.prepare(*self._call, **self._options).planned
        if planned:
            self.here = None
        elif self.here is None:
            self.here = self.call(self.about)

    @abstractmethod
    def call(self, about: About) -> LibraryCollective:
        """Returns the library's function, for use without a plan."""

    def start(self, x: Data, out: Data | None = None) -> tuple[Any, str]:
        started = self._world.start(self._call[0], x, out=out, **self._options)
        ran = started.ran
        return started, f"plan: {ran.algorithm}" if ran.planned else "library"


def library_call(about: About, function: str, **sides: Any) -> LibraryCollective:
    """Returns a function of the library on an operation's array, among the participants."""
    handle = about.transport.mpi._handleof(about.comm)
    return LibraryCollective(function, handle, about.shape, about.dtype.itemsize, **sides)


def side(parts: list[Part], size: int) -> Side:
    """Returns memory of one part with ``size`` bytes."""
    return parts, size, [size], []
