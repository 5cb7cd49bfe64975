"""The predicted time of a program's communication on a machine: its table and report."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import SupportsIndex

from unisono import _core
from unisono._core import InputError, Moved
from unisono.base.inputs import MachineLike
from unisono.base.messages import counted
from unisono.base.reports import (
    DiscoveryReport,
    MessageCounts,
    PredictedReports,
    PredictionReport,
    PricedOperation,
    TaskTime,
)
from unisono.machines.descriptions import with_shape

__all__ = ["Prediction", "as_report", "predictions", "sum_line", "total_lines", "without_machine"]


#: Messages without collectives are reported as faster only if their time is below this fraction of the time with
#: collectives.
_LESS = 0.999


def sum_line(nodes: int, messages: MessageCounts) -> str:
    """Returns the line with the numbers of collectives and messages of all ranks."""
    if not messages["collective"] and not messages["p2p"]:
        return f"{counted(nodes, 'node')}: no communication (0 collectives, 0 messages)"
    collectives = f"{counted(messages['collective'], 'collective')} ({counted(messages['collective_bytes'], 'byte')})"
    alone = f"{counted(messages['p2p'], 'message')} between pairs ({counted(messages['p2p_bytes'], 'byte')})"
    return f"{counted(nodes, 'node')}: {collectives}, {alone}"


@dataclass(frozen=True)
class Prediction:
    """The predicted time of a program's communication, and of each distinct operation."""

    machine: str
    model: str
    seconds: float
    #: The seconds by the simulator of the machine, if requested.
    simulated_seconds: float | None
    tasks: list[TaskTime]
    operations: list[PricedOperation]
    #: Statements on costs that `seconds` omits.
    notes: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, machine: str, report: PredictionReport) -> "Prediction":
        """Makes a prediction from its :meth:`report`."""
        simulated = report.get("simulated_seconds")
        rows = report["tasks"], report["operations"]
        return cls(machine, report["model"], report["seconds"], simulated, *rows, report["notes"])

    def report(self) -> PredictionReport:
        """Returns the prediction as a dictionary."""
        report: PredictionReport = {
            "seconds": self.seconds,
            "model": self.model,
            "tasks": self.tasks,
            "operations": self.operations,
            "notes": self.notes,
        }
        if self.simulated_seconds is not None:
            report["simulated_seconds"] = self.simulated_seconds
        return report

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Returns the column titles and the rows of the printed table."""
        simulated = self.simulated_seconds is not None
        titles = ["times", "for task", "buffer", "pattern", "ranks", "bytes", "algorithm", "µs each", "ratio"]
        rows = []
        for row in self.operations:
            cells = [
                str(row["count"]),
                row["task"],
                row["buffer"],
                row["pattern"],
                str(row["ranks"]),
                _span(_moved(row)) if _is_by_messages(row) else str(row["part_bytes"]),
                row["algorithm"] + ("" if row["counts"] != "largest" else " (equal parts of the largest)"),
                f"{row['seconds'] * 1e6:.3f}",
                "-" if row["ratio"] is None else f"{row['ratio']:.3f}",
            ]
            rows.append(cells + ([f"{row['simulated_seconds'] * 1e6:.3f}"] if simulated else []))
        return titles + (["µs simulated"] if simulated else []), rows


def predictions(
    found: Callable[[str], tuple[DiscoveryReport, Sequence[Moved]]],
    machine: MachineLike,
    nodes: SupportsIndex,
    rules: str,
    model: str | None,
    simulate: bool,
) -> tuple[DiscoveryReport, Prediction, Prediction]:
    """Returns a program's report, its prediction, and its prediction by messages between pairs of ranks alone.

    ``found`` returns report and operations for a set of rules.
    """
    on = with_shape(machine, None)
    pricing = _core.pricing(on, nodes, model, simulate)
    report, moved = found(rules)
    direct = rules == "off"
    predicted = Prediction.of(on.name, pricing.predict(moved, direct))
    alone = predicted if direct else Prediction.of(on.name, pricing.predict(found("off")[1], True))
    return report, predicted, alone


def without_machine(model: str | None, simulate: bool) -> None:
    """Raises an error if an option needs a machine, because no machine is given.

    Raises:
        InputError: a model or a simulation is requested.

    """
    if model is not None or simulate:
        raise InputError("a model or a simulation needs a machine; name one")


def as_report(predicted: Prediction, alone: Prediction) -> PredictedReports:
    """Returns both predictions as a dictionary: ``machine``, ``predicted`` and ``point_to_point``."""
    ratio = alone.seconds / predicted.seconds if predicted.seconds > 0 else None
    return {
        "machine": predicted.machine,
        "predicted": predicted.report(),
        "point_to_point": {**alone.report(), "ratio": ratio},
    }


def total_lines(predicted: Prediction, alone: Prediction) -> list[str]:
    """Returns the lines below the printed table."""

    def time(one: Prediction) -> str:
        simulated = "" if one.simulated_seconds is None else f", simulated {one.simulated_seconds * 1e6:.3f} µs"
        return f"{one.seconds * 1e6:.3f} µs{simulated}"

    gain = f" ({alone.seconds / predicted.seconds:.3f} times as long)" if predicted.seconds > 0 else ""
    how = f"by {predicted.model}, one operation after the other"
    lines = [
        f"communication alone on {predicted.machine} {how}: {time(predicted)}",
        f"by messages between pairs alone: {time(alone)}{gain}",
    ]
    if any(row["places"] == "first" for row in predicted.operations):
        lines.append("operations among some of the ranks are priced as if these were the first ranks of the machine")
    by_messages = {_is_by_messages(row) for row in predicted.operations}
    meanings = [
        "of a collective as --bytes of 'unisono plan', the vector or one rank's block" if False in by_messages else "",
        "of messages the least and the most that one rank gives, or gets where that is more"
        if True in by_messages
        else "",
    ]
    if predicted.operations:
        lines.append(f"bytes: {'; '.join(filter(None, meanings))}")
    if alone.seconds < predicted.seconds * _LESS:
        lines.append(
            "messages between pairs are faster here: they are all sent at once, where the steps of a collective wait "
            "for each other; --rules off explains the program with messages alone, UNISONO_POINT_TO_POINT=1 runs it so"
        )
    return [*lines, *(f"note: {note}" for note in predicted.notes)]


def _is_by_messages(row: PricedOperation) -> bool:
    return row["algorithm"] == "messages"


def _moved(row: PricedOperation) -> list[int]:
    """Returns the least and the greatest number of bytes that a rank sends.

    If the greatest number of bytes that a rank receives is larger, returns the numbers for receiving instead.
    """
    return row["gives"] if max(row["gives"]) >= max(row["gets"]) else row["gets"]


def _span(bytes: list[int]) -> str:
    least, most = bytes
    return str(most) if least == most else f"{least} to {most}"
