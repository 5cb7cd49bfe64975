"""Schedules run in switches that reduce."""

import os
from collections.abc import Sequence

from unisono import _core
from unisono._core import EngineSimulation, Schedule, UnsupportedError
from unisono._simulation import TimedRun


class EngineRun(TimedRun):
    """One run of a collective in switches that reduce, data included."""

    def __init__(self, schedule: Schedule) -> None:
        self._result: EngineSimulation = _core.simulate_switches(schedule)

    @property
    def latency_ns(self) -> float:
        """When the first element had come to the last memory: the alpha of T(m) = alpha + beta m."""
        return self._result.latency_ns

    @property
    def embeddings(self) -> int:
        """Trees that reduce a part of the vector each, at the same time."""
        return self._result.embeddings

    @property
    def packets(self) -> int:
        """Packets of all embeddings."""
        return self._result.packets

    @property
    def events(self) -> int:
        """Packets that left the engine of a switch, or were copied there."""
        return self._result.events

    @property
    def computed(self) -> int:
        """How many of the events were computed one by one; the others repeat what went before."""
        return self._result.computed

    @property
    def hops(self) -> int:
        """The same as :attr:`events`."""
        return self._result.events

    @property
    def stalls(self) -> int:
        """Not counted here: 0."""
        return 0

    @property
    def link_loads(self) -> list[int]:
        """Directed links with one logical edge on them, with two, and so on."""
        return self._result.link_loads

    @property
    def result_correct(self) -> bool:
        """Whether the data that came out is what plain arithmetic gives."""
        return self._result.result_correct

    @property
    def mismatch(self) -> str | None:
        """The first element that differs from plain arithmetic."""
        return self._result.mismatch

    @property
    def elements_flowed(self) -> int:
        """Elements of the vector that flowed, from the first on: all, unless the machine is very large."""
        return self._result.elements_flowed

    @property
    def digest(self) -> str:
        """Of the bits of all outputs: equal for equal runs."""
        return self._result.digest

    def trace(self, _path: str | os.PathLike[str], _pes: Sequence[int] | None = None) -> None:
        """There is no trace of these runs.

        Raises:
            UnsupportedError: always.

        """
        raise UnsupportedError("runs in switches are not traced")

    def __repr__(self) -> str:
        correct = "correct" if self.result_correct else "wrong"
        return f"<unisono.EngineRun {self.nanoseconds / 1e3:.3f} us, result {correct}>"
