"""Explanations of programs: their communication, printed as a table."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from unisono.base.reports import DeviceReport, DiscoveryReport, Forward, MessageCounts, PricedOperation
from unisono.discovery.devices import device_lines, device_table
from unisono.discovery.prediction import Prediction, as_report, sum_line, total_lines


class Explanation:
    """The communication of a program on a number of nodes, and its time on a machine; printed as a table."""

    def __init__(
        self,
        found: Mapping[str, Any],
        predicted: Prediction | None = None,
        by_messages: Prediction | None = None,
        devices: DeviceReport | None = None,
    ) -> None:
        """Creates an explanation from the report of a discovery and both predictions, or neither."""
        self.nodes: int = found["nodes"]
        self.forwards: list[Forward] = found["forwards"]
        self.messages: MessageCounts = found["messages"]
        #: The prediction for the program with its collectives; ``by_messages`` is that with only messages between
        #: pairs.
        self.prediction, self.by_messages = predicted, by_messages
        #: The copies between the memories of one process; None without devices.
        self.devices = devices

    @property
    def predicted(self) -> float | None:
        """Returns the seconds of communication, one operation after the other; None without a machine."""
        return None if self.prediction is None else self.prediction.seconds

    @property
    def operations(self) -> list[PricedOperation]:
        """Returns each distinct operation on the machine: its count, participants, algorithm and time."""
        return [] if self.prediction is None else self.prediction.operations

    def report(self) -> DiscoveryReport:
        """Returns the explanation as a dictionary."""
        found: DiscoveryReport = {"nodes": self.nodes, "forwards": self.forwards, "messages": self.messages}
        if self.devices is not None:
            found["devices"] = self.devices
        if self.prediction is None or self.by_messages is None:
            return found
        return {**found, **as_report(self.prediction, self.by_messages)}

    def __str__(self) -> str:
        """Returns a line for each kind of forward or each predicted operation, the messages, and the device copies."""
        return "\n".join([*self._communication(), *self._copies()])

    def _copies(self) -> list[str]:
        if self.devices is None:
            return []
        titles, rows = device_table(self.devices)
        return ["", *_aligned([titles, *rows]), *device_lines(self.devices)]

    def _communication(self) -> list[str]:
        if self.prediction is not None and self.by_messages is not None:
            titles, rows = self.prediction.table()
            table = _aligned([titles, *rows]) if rows else []
            return [*table, *total_lines(self.prediction, self.by_messages), self._sum()]
        kinds = Counter(
            f"{f['after_task']} -> {f['before_task']}: {f['buffer']} {f['collective'] or 'point-to-point'}"
            for f in self.forwards
        )
        width = len(str(max(kinds.values(), default=0)))
        lines = [f"{count:>{width}} x {kind}" for kind, count in kinds.items()]
        return [*lines, self._sum()]

    def _sum(self) -> str:
        return sum_line(self.nodes, self.messages)

    __repr__ = __str__


def _aligned(rows: list[list[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
