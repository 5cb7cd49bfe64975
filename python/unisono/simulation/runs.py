"""The result of a simulated run, with the same interface for every kind of machine."""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from unisono._core import InputError, Simulation, UnsupportedError
from unisono.base.files import check_writable, file_name, title, write
from unisono.base.html import facts_table, time_text
from unisono.base.pictures import FORMS, form_of
from unisono.simulation.traces import TIMELINES, TRACES, Traced, checked_pes, operations_and_messages, sample

__all__ = ["SAMPLED", "Metric", "Run", "check_outputs"]

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

#: The largest number of PEs or ranks in a trace by default.
SAMPLED = 256


class Metric(NamedTuple):
    """A count or measure of a simulator."""

    #: A number, text, or an array of counts.
    value: Any
    unit: str


class Run:
    """A run on a simulated machine. A value that the machine's simulator does not compute is None."""

    def __init__(
        self, traced: Traced, simulation: Simulation, repeat: Callable[[list[int]], Simulation] | None
    ) -> None:
        """``repeat`` is a function that runs the simulation again and records other PEs or ranks."""
        self._traced = traced
        self._simulation = simulation
        self._repeat = repeat

    @property
    def simulation(self) -> Simulation:
        """Returns the simulator's result, with recorded operations."""
        return self._simulation

    @property
    def simulator(self) -> str:
        """Returns the simulator's name, which ``--sim`` accepts."""
        return self._simulation.simulator

    @property
    def cycles(self) -> int | None:
        """Returns the cycles until the last operation ended, if the machine has cycles."""
        return self._simulation.cycles

    @property
    def seconds(self) -> float:
        """Returns the seconds until the last operation ended."""
        return self._simulation.seconds

    @property
    def nanoseconds(self) -> float:
        """Returns the nanoseconds until the last operation ended, exact if the simulator counts them."""
        return self._simulation.nanoseconds

    @property
    def finish(self) -> "npt.NDArray[Any]":
        """Returns each node's end: on a wafer in cycles (0 for a PE without operations), else in seconds."""
        return self._simulation.finish

    @property
    def finish_ns(self) -> "npt.NDArray[np.float64] | None":
        """Returns each node's end in nanoseconds; None on machines with cycles."""
        return self._simulation.finish_ns

    @property
    def events(self) -> int:
        """Returns the number of events of the simulator: moves, tasks and messages, or packets."""
        return self._simulation.events

    @property
    def stalls(self) -> int | None:
        """Returns the total cycles that wavelets waited at routers; None on machines that are not wafers."""
        return self._simulation.stalls

    @property
    def result_correct(self) -> bool | None:
        """Returns whether the outputs equal plain arithmetic; None if no data flowed."""
        return self._simulation.result_correct

    @property
    def elements_checked(self) -> int | None:
        """Returns the number of first elements of the vector that were checked; None if none was."""
        return self._simulation.elements_checked

    @property
    def mismatch(self) -> str | None:
        """Returns the first element that differs from plain arithmetic, as text; None if none does."""
        return self._simulation.mismatch

    @cached_property
    def metrics(self) -> Mapping[str, Metric]:
        """Returns further counts and measures of the simulator, by name."""
        return MappingProxyType({name: Metric(*pair) for name, pair in self._simulation.metrics.items()})

    @property
    def wall_seconds(self) -> float:
        """Returns the seconds that the simulator took."""
        return self._simulation.wall_seconds

    def trace(self, path: str | os.PathLike[str], pes: Sequence[int] | None = None) -> None:
        """Writes the run as trace events for Perfetto or ``chrome://tracing``.

        On a wafer there is a track for each thread of a PE, and a microsecond of the file stands for a cycle. For ranks
        there is a track for each rank, and an arrow for each message. ``pes`` chooses PEs or ranks, and repeats the run
        if it did not record these; the default is those that it recorded, or else an even sample of at most 256.

        Raises:
            InputError: a PE does not exist, ``pes`` has more than 4096, or the path cannot be a file.
            UnsupportedError: the machine's simulator records no traces.
            OSError: the file cannot be written; no half-written file remains.

        """
        check_outputs(self.simulator, trace=path)
        self._record(pes)
        write(path, TRACES[self.simulator](self._traced, self._simulation))

    def timeline(self, path: str | os.PathLike[str]) -> None:
        """Draws the run as PNG, SVG or PDF, by the path's suffix: a row per rank, with bars while its CPU is busy.

        Raises:
            InputError: a picture has no room for that many ranks, or the path has another suffix.
            UnsupportedError: the machine is not one of ranks that exchange messages.
            OSError: the file cannot be written.

        """
        check_outputs(self.simulator, timeline=path)
        # Imported late, because matplotlib takes long to import.
        from unisono.simulation import timelines

        finish = self._simulation.finish_ns
        assert finish is not None, "simulators with a timeline count nanoseconds"
        if len(finish) > timelines.MOST_RANKS:
            raise InputError(
                f"a timeline of {len(finish)} ranks was asked for, and a picture has room for {timelines.MOST_RANKS}: "
                "write a trace instead, which Perfetto opens"
            )
        self._record(range(len(finish)))
        operations, messages = operations_and_messages(self._simulation)
        form = form_of(file_name(path))
        write(path, timelines.draw(operations, messages, list(finish), self._traced.title, form))

    def _record(self, pes: Sequence[int] | None) -> None:
        count = self._traced.nodes
        chosen = list(pes) if pes is not None else self._traced.recorded or sample(count, SAMPLED)
        if chosen != self._traced.recorded and self._repeat is not None:
            self._simulation = self._repeat(checked_pes(chosen, count))
            self._traced.recorded = chosen

    def _repr_html_(self) -> str:
        """Returns the table for notebooks."""
        right = {True: "right", False: "wrong", None: "not checked: no data flowed"}
        time = f"{self.cycles} cycles" if self.cycles is not None else time_text(self.seconds)
        facts = {"simulator": self.simulator, "time": time, "result": right[self.result_correct], "events": self.events}
        return facts_table(facts)

    def __repr__(self) -> str:
        time = f"{self.seconds * 1e6:.3f} us" if self.cycles is None else f"{self.cycles} cycles"
        correct = {True: ", result correct", False: ", result wrong", None: ""}[self.result_correct]
        return f"<unisono.Run {time}{correct}>"


def check_outputs(
    simulator: str, *, trace: str | os.PathLike[str] | None = None, timeline: str | os.PathLike[str] | None = None
) -> None:
    """Raises the errors about paths and simulators that :meth:`Run.trace` or :meth:`Run.timeline` would raise later.

    Raises:
        InputError: the path cannot be a file, or has the wrong suffix.
        UnsupportedError: the simulator has no trace or no timeline.

    """
    if trace is not None:
        if simulator not in TRACES:
            raise UnsupportedError(f"runs of the simulator {simulator} are not traced; those of {_listed(TRACES)} are")
        check_writable(trace)
    if timeline is not None:
        if simulator not in TIMELINES:
            raise UnsupportedError(
                f"runs of the simulator {simulator} have no timeline; those of {_listed(TIMELINES)} have one"
            )
        if not file_name(timeline).lower().endswith(tuple(f".{form}" for form in FORMS)):
            raise InputError(f"'{title(timeline)}' ends in none of .png, .svg and .pdf, and a timeline is one of these")
        check_writable(timeline)


def _listed(names: Sequence[str] | Mapping[str, object]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last
