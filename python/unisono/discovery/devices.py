"""The copies between the memories of a process with several devices: their report, table and predicted time."""

from typing import SupportsIndex

from unisono import _core
from unisono._core import InputError, TaskList
from unisono.base.inputs import MachineLike
from unisono.base.reports import DeviceReport
from unisono.machines.descriptions import with_shape

__all__ = ["check_devices", "device_lines", "device_table", "devices_report"]


def check_devices(devices: SupportsIndex | None, rank: SupportsIndex, machine: MachineLike | None) -> None:
    """Raises an error if arguments that require devices are given without devices.

    Raises:
        InputError: a rank or a machine of devices is given, but no number of devices.

    """
    if devices is None and (machine is not None or rank != 0):
        raise InputError("a rank and a machine of devices are for processes with devices; give their number as devices")


def devices_report(
    tasks: TaskList,
    nodes: SupportsIndex,
    rules: str,
    devices: SupportsIndex,
    rank: SupportsIndex,
    machine: MachineLike | None,
    simulate: bool,
) -> DeviceReport:
    """Returns the copies of one process, and their time if a machine is given.

    Memory 0 is the host's, and rank 0 of the machine; device d has memory d + 1, and rank d + 1.

    Raises:
        InputError: a number is not accepted, or the machine does not exist or has fewer ranks than there are memories.
        UnsupportedError: the machine's ranks exchange no messages.

    """
    report, moved = tasks.devices(nodes, rules, rank, devices)
    if machine is None:
        return report
    on = with_shape(machine, None)
    predicted = _core.pricing(on, report["count"] + 1, None, simulate).predict(moved, False)
    return {**report, "machine": on.name, "predicted": predicted}


def device_table(report: DeviceReport) -> tuple[list[str], list[list[str]]]:
    """Returns the column titles and the rows of the printed table."""
    titles = ["times", "for task", "buffer", "when", "kind", "copies", "bytes"]
    rows = [
        [
            str(row["count"]), row["task"], row["buffer"], row["moment"], row["kind"], str(row["copies"]),
            str(row["bytes"]),
        ]
        for row in report["operations"]
    ]  # fmt: skip
    if "predicted" in report:
        titles += ["algorithm", "µs each"]
        for cells, priced in zip(rows, report["predicted"]["operations"], strict=True):
            cells += [priced["algorithm"], f"{priced['seconds'] * 1e6:.3f}"]
    return titles, rows


def device_lines(report: DeviceReport) -> list[str]:
    """Returns the lines below the printed table."""
    lines = [
        f"rank {report['rank']} with {report['count']} devices: {report['copies']} copies ({report['bytes']} bytes), "
        f"{report['broadcasts']} of them broadcasts; {report['updates']} if each message is copied on its own"
    ]
    if "predicted" in report:
        predicted = report["predicted"]
        simulated = predicted.get("simulated_seconds")
        more = "" if simulated is None else f", simulated {simulated * 1e6:.3f} µs"
        lines.append(
            f"copies on {report['machine']} by {predicted['model']}, one after the other: "
            f"{predicted['seconds'] * 1e6:.3f} µs{more}"
        )
    return lines
