"""The time of a program's communication on a machine: every distinct operation is priced once.

Operations follow each other in the order of issue: none overlaps with another one or with kernels. A collective takes
what `plan` predicts of its best algorithm; the messages of one read are one schedule, priced and simulated as such.
Ranks prove and execute the same schedule, under the same name (`unisono.tasks._messages`).
"""

import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import SupportsIndex

from unisono import _core
from unisono._core import InputError, Machine, Moved, Plan, Schedule, UnsupportedError
from unisono.base.facts import reduces
from unisono.base.inputs import whole
from unisono.base.reports import Bound, DiscoveryReport, PredictedReports, PredictionReport, PricedOperation, TaskTime
from unisono.machines.descriptions import with_shape
from unisono.simulation.schedules import simulate as simulate_schedule

__all__ = ["Prediction", "Pricing", "as_report", "predictions", "total_lines", "without_machine"]


@dataclass(frozen=True)
class Prediction:
    """The time of a program's communication, and of each distinct operation."""

    machine: str
    model: str
    seconds: float
    #: By the simulator of the machine, where that was asked for.
    simulated_seconds: float | None
    operations: list[PricedOperation]

    @classmethod
    def of(cls, machine: str, report: PredictionReport) -> "Prediction":
        """From what :meth:`report` says."""
        simulated = report.get("simulated_seconds")
        return cls(machine, report["model"], report["seconds"], simulated, report["operations"])

    def report(self) -> PredictionReport:
        """The same as a dictionary."""
        tasks: dict[str, float] = {}
        for row in self.operations:
            tasks[row["task"]] = tasks.get(row["task"], 0.0) + row["total_seconds"]
        by_task: list[TaskTime] = [{"task": name, "seconds": seconds} for name, seconds in tasks.items()]
        report: PredictionReport = {
            "seconds": self.seconds,
            "model": self.model,
            "tasks": by_task,
            "operations": self.operations,
        }
        if self.simulated_seconds is not None:
            report["simulated_seconds"] = self.simulated_seconds
        return report

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Titles and cells of a printed table."""
        simulated = self.simulated_seconds is not None
        titles = ["times", "for task", "buffer", "pattern", "ranks", "bytes a rank", "algorithm", "µs each", "ratio"]
        rows = []
        for row in self.operations:
            cells = [
                str(row["count"]),
                row["task"],
                row["buffer"],
                row["pattern"],
                str(row["ranks"]),
                _span(row["gives"] if max(row["gives"]) >= max(row["gets"]) else row["gets"]),
                row["algorithm"] + ("" if row["counts"] != "largest" else " (equal parts of the largest)"),
                f"{row['seconds'] * 1e6:.3f}",
                "-" if row["ratio"] is None else f"{row['ratio']:.3f}",
            ]
            rows.append(cells + ([f"{row['simulated_seconds'] * 1e6:.3f}"] if simulated else []))
        return titles + (["µs simulated"] if simulated else []), rows


@dataclass(frozen=True)
class _Price:
    """Of one operation."""

    seconds: float
    simulated: float | None
    algorithm: str
    params: dict[str, str]
    bound: Bound | None = None
    ratio: float | None = None


def predictions(
    found: Callable[[str], tuple[DiscoveryReport, Sequence[Moved]]],
    machine: Machine | str | os.PathLike[str],
    nodes: SupportsIndex,
    rules: str,
    model: str | None,
    simulate: bool,
    reduced: Mapping[int, int] | None = None,
) -> tuple[DiscoveryReport, Prediction, Prediction]:
    """The report of a program, its prediction, and that of the same program by messages alone.

    ``found`` discovers the program by some rules; ``reduced`` is for `Pricing`.
    """
    pricing = Pricing(machine, nodes, model, simulate, reduced)
    report, moved = found(rules)
    predicted = pricing.predict(moved, rules == "off")
    alone = predicted if rules == "off" else pricing.predict(found("off")[1], by_messages=True)
    return report, predicted, alone


def without_machine(model: str | None, simulate: bool) -> None:
    """Refuses what only a machine can answer.

    Raises:
        InputError: a model or a simulation is asked for.

    """
    if model is not None or simulate:
        raise InputError("a model or a simulation needs a machine; name one")


def as_report(predicted: Prediction, alone: Prediction) -> PredictedReports:
    """Both as a dictionary: ``machine``, ``predicted`` and ``point_to_point``."""
    ratio = alone.seconds / predicted.seconds if predicted.seconds > 0 else None
    return {
        "machine": predicted.machine,
        "predicted": predicted.report(),
        "point_to_point": {**alone.report(), "ratio": ratio},
    }


def total_lines(predicted: Prediction, alone: Prediction) -> list[str]:
    """The lines that are printed below the table."""

    def time(one: Prediction) -> str:
        simulated = "" if one.simulated_seconds is None else f", simulated {one.simulated_seconds * 1e6:.3f} µs"
        return f"{one.seconds * 1e6:.3f} µs{simulated}"

    gain = f" ({alone.seconds / predicted.seconds:.3f} times as long)" if predicted.seconds > 0 else ""
    lines = [
        f"communication on {predicted.machine} by {predicted.model}, one operation after the other: {time(predicted)}",
        f"by messages between pairs alone: {time(alone)}{gain}",
    ]
    if any(row["places"] == "first" for row in predicted.operations):
        lines.append("operations among some of the ranks are priced as if these were the first ranks of the machine")
    return lines


class Pricing:
    """Prices the operations of programs on part of a machine; equal operations are priced once."""

    def __init__(
        self,
        machine: Machine | str | os.PathLike[str],
        nodes: SupportsIndex,
        model: str | None = None,
        simulate: bool = False,
        reduced: Mapping[int, int] | None = None,
    ) -> None:
        """Takes the first ``nodes`` ranks of a machine, or the part of a network that the machine's shape names.

        ``reduced`` lists the buffers that only messages reduce, with the bytes that go with each element.

        Raises:
            InputError: no such machine or model, or it is smaller than that.
            UnsupportedError: the machine is a wafer, or its switches reduce.

        """
        count = whole("the number of nodes", nodes)
        whole_machine = with_shape(machine, None)
        self._kind = whole_machine.kind
        if self._kind not in ("endpoint", "network"):
            raise UnsupportedError(
                f"{whole_machine.name} is of kind {self._kind}; programs of tasks are predicted on machines of kind "
                "endpoint and network, see 'unisono machines'"
            )
        self._machine = _sized(whole_machine, count)
        self._nodes, self._asked, self._simulate = count, model, simulate
        if self._kind == "network" and model not in (None, "links"):
            raise InputError(f"'{model}' is not a model; accepted are links on a network")
        described = whole_machine.describe()
        self.model: str = "links" if self._kind == "network" else (model or described["model"])
        # The part is checked here, also where nothing is moved.
        self._places = _core.places(self._machine) if self._kind == "network" else list(range(count))
        self._levels = bool(described.get("levels"))
        # Checks the model and the number of ranks, also where nothing is moved.
        _core.bounds("barrier", self._machine, 0, model=model)
        self._known: dict[Hashable, _Price] = {}
        self._reduced = reduced or {}

    def predict(self, moved: Sequence[Moved], by_messages: bool = False) -> Prediction:
        """Everything that a program moves; ``by_messages``: reductions too, as where no collective is looked for."""
        operations = [self._row(one, by_messages) for one in moved]
        simulated = sum(row["simulated_seconds"] * row["count"] for row in operations) if self._simulate else None
        return Prediction(
            self._machine.name, self.model, sum(row["total_seconds"] for row in operations), simulated, operations
        )

    def _row(self, moved: Moved, by_messages: bool) -> PricedOperation:
        least, most = moved.part
        name = self._schedule_name(moved, by_messages)
        price = self._price(moved, name)
        row: PricedOperation = {
            "task": moved.task,
            "task_index": moved.task_index,
            "buffer": moved.buffer,
            "count": moved.count,
            "pattern": moved.pattern,
            "ranks": len(moved.participants),
            "participants": [list(interval) for interval in moved.intervals],
            "root": moved.root,
            "gives": list(moved.gives),
            "gets": list(moved.gets),
            "bytes": moved.bytes_moved,
            "messages": moved.messages if moved.is_messages else None,
            "schedule": name,
            # How the sizes of unlike parts are taken: as they are, or all as large as the largest.
            "counts": "exact" if name or least == most else "largest",
            "part_bytes": most,
            "places": "own" if name or self._own_places(moved) else "first",
            "algorithm": price.algorithm,
            "params": price.params,
            "seconds": price.seconds,
            "total_seconds": price.seconds * moved.count,
            "lower_bound": price.bound,
            "ratio": price.ratio,
        }
        if price.simulated is not None:
            row["simulated_seconds"] = price.simulated
        return row

    def _schedule_name(self, moved: Moved, by_messages: bool) -> str | None:
        """The name of the schedule by messages that serves it; None where a plan or a library does."""
        summed = reduces(moved.pattern) and (by_messages or moved.buffer_index in self._reduced)
        return moved.digest(self._extra(moved)) if moved.by_messages or summed else None

    def _extra(self, moved: Moved) -> int:
        return self._reduced.get(moved.buffer_index, 0) if reduces(moved.pattern) else 0

    def _own_places(self, moved: Moved) -> bool:
        """Whether the ranks that take part are priced where they are, not as the first ranks."""
        if self._kind == "network" or not self._levels:
            return True
        return moved.participants == list(range(len(moved.participants)))

    def _price(self, moved: Moved, name: str | None) -> _Price:
        ranks = tuple(moved.participants)
        key: Hashable = name or (moved.pattern, moved.elements, moved.dtype, moved.root, ranks)
        if key not in self._known:
            if len(ranks) < 2 or moved.part[1] == 0:
                self._known[key] = _Price(0.0, 0.0 if self._simulate else None, "nothing", {})
            elif name:
                self._known[key] = self._messages(moved)
            else:
                self._known[key] = self._collective(moved, ranks)
        return self._known[key]

    def _messages(self, moved: Moved) -> _Price:
        schedule = moved.schedule(self._extra(moved))
        placed = schedule.on(self._machine, self._places if self._kind == "network" else None)
        seconds = float(placed.predict(self._asked)["seconds"])
        return _Price(seconds, self._simulated(placed), "messages", {})

    def _collective(self, moved: Moved, ranks: tuple[int, ...]) -> _Price:
        every = len(ranks) == self._nodes
        machine = self._machine if every else with_shape(self._machine, len(ranks))
        places = [self._places[k] for k in ranks] if self._kind == "network" and not every else None
        if places == list(range(len(ranks))):
            # Whole rows of a network then stay rows.
            places = None
        root = 0 if moved.root is None else ranks.index(moved.root)
        plan: Plan = _core.plan(
            moved.pattern, machine, moved.elements, moved.dtype, "sum", root, model=self._asked, places=places
        )
        simulated = self._simulated(plan.schedule) if self._simulate else None
        seconds = float(plan.predicted["seconds"])
        return _Price(seconds, simulated, plan.algorithm, plan.params, plan.bound, plan.ratio)

    def _simulated(self, schedule: Schedule) -> float | None:
        if not self._simulate:
            return None
        return simulate_schedule(schedule, model=self._asked if self._kind == "endpoint" else None).seconds


def _sized(machine: Machine, nodes: int) -> Machine:
    """So many ranks of a machine; a part of a network that has as many stays as it is."""
    shape = machine.shape
    if machine.kind == "network" and shape is not None and len(shape) == 2 and shape[0] * shape[1] == nodes:
        return machine
    if nodes < 1:
        raise InputError(f"the number of nodes is {nodes}; accepted are 1 or more")
    return with_shape(machine, nodes)


def _span(bytes: list[int]) -> str:
    least, most = bytes
    return str(most) if least == most else f"{least} to {most}"
