"""An operation as a way reads it, and the common part of ways by a plan and by the library."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from unisono._core import Discovery, Operation
from unisono.tasks import _transport
from unisono.tasks._held import Route
from unisono.tasks._regions import Boxes, Data


@dataclass(frozen=True)
class About:
    """An operation on an array, and this rank's view of it."""

    transport: _transport.Transport
    discovery: Discovery
    operation: Operation
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    #: The operator that combines partial results, where there is one.
    operator: str | None

    @cached_property
    def participants(self) -> tuple[int, ...]:
        """The ranks that take part."""
        return tuple(self.operation.participants)

    @property
    def everyone(self) -> bool:
        """Whether all ranks take part."""
        return len(self.participants) == self.transport.ranks

    @property
    def rank(self) -> int:
        """Its own number."""
        return self.transport.rank

    @property
    def comm(self) -> Any:
        """The participants' communicator; they ask for it together."""
        return self.transport.among(self.participants)

    @cached_property
    def moved(self) -> int:
        """The bytes that ranks receive."""
        return self.discovery.elements(self.operation) * self.dtype.itemsize

    def place_of(self, rank: int) -> int:
        """A rank's number in the communicator."""
        return self.participants.index(rank)

    def given(self, rank: int) -> Boxes:
        """The region that a rank gives."""
        return self.discovery.given(self.operation, rank)

    def received(self, rank: int) -> Boxes:
        """The region that a rank receives."""
        return self.discovery.received(self.operation, rank)

    @cached_property
    def sends(self) -> dict[int, Boxes]:
        """The regions that this rank sends, by rank."""
        return dict(self.discovery.sends(self.operation, self.rank))

    @cached_property
    def receives(self) -> dict[int, Boxes]:
        """The regions that this rank receives, by rank."""
        return dict(self.discovery.receives(self.operation, self.rank))


def fits(size: int) -> bool:
    """Whether MPI can count that number of bytes."""
    return size <= _transport.LARGEST


class ByWorld(Route):
    """By a plan where there is one: all ranks take part, with equal parts."""

    by_world = True

    def __init__(self, about: About, collective: str, count: int, dtype: np.dtype[Any], **options: Any) -> None:
        self.about, self.bytes, self._options = about, about.moved, options
        self._world, self._call = about.transport.world, (collective, count, dtype)
        self.prepare()

    def prepare(self) -> None:
        self._world.prepare(*self._call, **self._options)

    def start(self, x: Data, out: Data | None = None) -> tuple[Any, str]:
        started = self._world.start(self._call[0], x, out=out, **self._options)
        ran = started.ran
        return started, f"plan: {ran.algorithm}" if ran.planned else "library"


class ByLibrary(Route):
    """By the MPI library, among the participants."""

    def __init__(self, about: About) -> None:
        self.about, self.bytes, self.mpi, self.comm = about, about.moved, about.transport.mpi, about.comm
