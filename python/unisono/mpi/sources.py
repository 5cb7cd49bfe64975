"""The sources of a world's schedules: a machine's model, a plan file, or none."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy.typing as npt

from unisono import _core
from unisono._core import Error, InputError, Machine
from unisono.base.reports import PlanRow
from unisono.base.switches import is_on
from unisono.machines.descriptions import of_ranks
from unisono.planning.plan_files import read_proven

__all__ = ["BOTH", "Array", "Call", "CallFacts", "Group", "LibraryOnly", "Model", "Source", "Table", "check"]

Array = npt.NDArray[Any]


_PURPOSE = "a world takes its schedules from"
BOTH = "a world goes by a machine or by a plan, and both were given; leave one out"


@dataclass
class Call:
    """A call of a collective; fields are equal on all ranks, except this rank's ``given``, ``got`` and ``in_place``."""

    collective: str
    #: The number of elements as MPI counts them; ``unit`` is the bytes of an element, 1 if data only moves.
    elements: int
    unit: int
    root: int = 0
    #: MPI's handles of the datatype and of the operator; ``op`` is None if the collective does not reduce.
    datatype: int = 0
    op: int | None = None
    #: The reason why no plan can serve the operator; None if plans can. ``commutes`` is true if operands may be
    #: swapped.
    refused: str | None = None
    commutes: bool = True
    #: True if the operator is predefined in MPI. The handle of another operator may be reused for a later operator.
    predefined: bool = True
    given: Array | None = None
    got: Array | None = None
    in_place: bool = False

    @property
    def bytes(self) -> int:
        """Returns the size in bytes as MPI counts it; 0 for a barrier."""
        return 0 if self.collective == "barrier" else self.elements * self.unit


@dataclass(frozen=True)
class CallFacts:
    """The algorithm that a call used, and the reason."""

    collective: str
    #: The bytes as MPI counts them: the whole vector, or one rank's piece if ranks have pieces.
    bytes: int
    ranks: int
    #: The largest number of ranks that share a node.
    per_node: int
    #: The name of the algorithm; ``library`` if the MPI library made the call, ``unnamed`` for a schedule without a
    #: name.
    algorithm: str
    why: str
    params: dict[str, str] = field(default_factory=dict)
    #: The time in seconds that the machine's model predicts at the middle of the call's size class, if the model made
    #: the choice.
    predicted_seconds: float | None = None

    @property
    def planned(self) -> bool:
        """Returns whether a proven schedule ran."""
        return self.algorithm != "library"

    def __str__(self) -> str:
        """Formats the facts on one line."""
        name = " ".join([self.algorithm, *(f"{key}={value}" for key, value in self.params.items())])
        return f"{self.collective} of {self.bytes} bytes on {self.ranks} ranks: {name}, {self.why}"


class Source(Protocol):
    """Chooses a schedule for a call; all ranks call this together, with the same result."""

    def choose(self, call: Call) -> tuple[int | None, CallFacts]:
        """Returns the number of the plan that serves the call (None: the library does), and the facts of the call."""
        ...


class Group:
    """The ranks that a source serves."""

    def __init__(self, comm: Any, channels: list[_core.Channel]) -> None:
        self.comm, self._channels = comm, channels
        self.ranks: int = comm.size
        self.rank: int = comm.rank
        self.per_node = channels[0].per_node

    def add(self, plan: bytes, *, anywhere: bool = False) -> int:
        """Adds a plan to all channels, and returns its index, which is the same in all.

        A row that was measured under other conditions serves only with ``anywhere``.
        """
        numbers = [channel.add(plan, anywhere) for channel in self._channels]
        return numbers[0]

    def find(self, number: int, call: Call) -> int | str:
        """Returns the index of the plan's row that serves a call, or a word for the reason why no row does."""
        channel = self._channels[0]
        return channel.find(number, call.collective, call.root, call.elements, call.unit, call.datatype, call.op)

    def ran(self, call: Call, algorithm: str, why: str, **more: Any) -> CallFacts:
        """Returns the facts of a call."""
        return CallFacts(call.collective, call.bytes, self.ranks, self.per_node, algorithm, why, **more)

    def from_first(self, make: Any) -> Any:
        """Returns on all ranks the value that rank 0 makes; an error of rank 0 is raised on all.

        Raises:
            Error: ``make`` failed on rank 0.
            OSError: ``make`` failed, in a world of one rank.

        """
        if self.ranks == 1:
            return make()
        made: tuple[Any, Error | None] = (None, None)
        if self.rank == 0:
            try:
                made = make(), None
            except Error as error:
                made = None, error
            except OSError as error:
                made = None, InputError(f"'{error.filename}': {error.strerror}")
        made = self.comm.bcast(made)
        if made[1] is not None:
            raise made[1]
        return made[0]


class LibraryOnly:
    """The source of a world without machine and plan, which leaves all calls to the MPI library."""

    def __init__(self, group: Group) -> None:
        self._group = group

    def choose(self, call: Call) -> tuple[int | None, CallFacts]:
        """Leaves the call to the library."""
        return None, self._group.ran(call, "library", "because the world has neither a machine nor a plan")


class Table:
    """The source that serves calls from a plan file."""

    def __init__(self, group: Group, path: str | os.PathLike[str]) -> None:
        self._group, self._name = group, Path(path).name
        raw: bytes
        # Rank 0 also reads the environment for all ranks, because ranks that choose different rows would deadlock.
        raw, anywhere = group.from_first(lambda: (read_proven(path, group.ranks), is_on("UNISONO_ANYWHERE")))
        self._rows = _core.decode_plan(raw)
        self._number = group.add(raw, anywhere=anywhere)

    def choose(self, call: Call) -> tuple[int | None, CallFacts]:
        """Returns the plan file's number if one of its rows serves the call, else None, and the facts of the call."""
        group = self._group
        if call.refused:
            return None, group.ran(call, "library", f"because {call.refused}")
        row = group.find(self._number, call)
        if isinstance(row, str):
            return None, group.ran(call, "library", f"because {self._why_not(call, row)}")
        found = self._rows[row]
        reason = f"by {self._name}, {_range(found)}"
        return self._number, group.ran(call, found["algorithm"] or "unnamed", reason, params=found["params"])

    def _why_not(self, call: Call, reason: str) -> str:
        """Returns a sentence for a reason of :meth:`Group.find`."""
        if reason == "collective":
            ranks = self._group.ranks
            placed = any((r["collective"], r["ranks"]) == (call.collective, ranks) for r in self._rows)
            where = f", {self._group.per_node} a node" if placed else ""
            return f"{self._name} has no row for {call.collective} on {ranks} ranks{where}"
        return _REASONS[reason].format(self._name)


#: Messages by the reason of :meth:`Group.find`, with the name of the plan.
_REASONS = {
    "size": "{} has no row for these bytes",
    "operator": "no row of {} for these bytes fits the operator",
    "library": "{} leaves these bytes to it",
    "too-long": "no row of {} serves more than 2147483647 bytes of a rank",
    "root": "the row of {} serves another root",
    "count": "the schedule of {} does not divide this count",
    "elsewhere": "its row of {} was measured under other conditions",
    "unreadable": "a program of {} cannot be read",
}


def _range(row: PlanRow) -> str:
    last = "any" if row["last_bytes"] is None else row["last_bytes"]
    return f"{row['first_bytes']} to {last} bytes"


class _Question(NamedTuple):
    """The arguments of a call that determine the model's plan."""

    collective: str
    #: The smallest and the largest number of bytes in the size class.
    sizes: tuple[int, int]
    commutes: bool
    #: The root of the plan; 0 if a plan for one root serves all roots.
    root: int


class Model:
    """The source that plans by a machine's model, at the first call of each size class."""

    def __init__(self, group: Group, machine: Machine | str | os.PathLike[str]) -> None:
        self._group = group
        # Only rank 0 plans; if it fails, its error is raised on all ranks.
        self._machine: Machine | None = None
        group.from_first(lambda: self._read(machine))
        #: The plan's index, the reason and further facts.
        self._made: dict[_Question, tuple[int | None, str, dict[str, Any]]] = {}

    def _read(self, machine: Machine | str | os.PathLike[str]) -> None:
        self._machine = of_ranks(machine, self._group.ranks, _PURPOSE)

    def choose(self, call: Call) -> tuple[int | None, CallFacts]:
        """Returns the number of the model's best plan (None if it cannot be used), and the facts of the call."""
        group = self._group
        if call.refused:
            return None, group.ran(call, "library", f"because {call.refused}")
        serves_all_roots = call.collective == "broadcast" or (call.collective == "reduce" and call.commutes)
        root = 0 if serves_all_roots else call.root
        question = _Question(call.collective, _core.size_class(call.bytes), call.commutes, root)
        if question not in self._made:
            self._made[question] = self._make(question)
        number, why, more = self._made[question]
        if number is None:
            return None, group.ran(call, "library", why)
        if isinstance(group.find(number, call), str):
            return None, group.ran(
                call, "library", "because the schedule does not divide this count, or it is too large"
            )
        return number, group.ran(call, why=why, **more)

    def _make(self, question: "_Question") -> tuple[int | None, str, dict[str, Any]]:
        try:
            raw, why, more = self._group.from_first(lambda: self._planned(question))
        except Error as error:
            return None, f"because nothing could be planned: {error}", {}
        return self._group.add(raw), why, more

    def _planned(self, question: "_Question") -> tuple[bytes, str, dict[str, Any]]:
        assert self._machine is not None, "rank 0 has it"
        collective, (first, last), commutes, root = question
        best = _core.plan_size_class(collective, self._machine, self._group.ranks, first, commutes, root)
        if best is None:
            raise InputError(f"no algorithm for {collective} gives all ranks the same bits")
        seconds = best.predicted["seconds"]
        why = f"first by the model {best.model} of {self._machine.name}, {seconds * 1e6:.3g} µs predicted"
        more = {"algorithm": best.algorithm, "params": dict(best.params), "predicted_seconds": seconds}
        return _core.encode_plan([(best, first, last, None, None)]), why, more


def check(machine: Machine | str | os.PathLike[str] | None, plan: str | os.PathLike[str] | None) -> None:
    """Raises the errors that a world of any number of ranks would raise for these arguments.

    Raises:
        InputError: both are given, or the machine or plan cannot be used.
        OSError: the plan file cannot be read.

    """
    if machine is not None and plan is not None:
        raise InputError(BOTH)
    if machine is not None:
        of_ranks(machine, 1, _PURPOSE)
    if plan is not None:
        read_proven(plan)
