"""Printed choices of a library by its own rules."""

from unisono.base.reports import LibraryReport
from unisono.cli._output import microseconds, number, print_fields, print_lines, print_table

__all__ = ["OWN_ROWS", "print_choice", "print_enabled"]

OWN_ROWS = (
    "lines are the best of NCCL's own algorithms by the times of --as nccl, which are NCCL's own estimates until "
    "'unisono calibrate --from' fits them to logs"
)


def print_choice(library: LibraryReport) -> None:
    """Prints the choice with its time."""
    busbw = "" if library["busbw"] is None else f", busbw {number(library['busbw'], 1)} GB/s"
    channels = ""
    if library["channel_gb_per_second"] is not None:
        channels = (
            f" {library['protocol']}, {library['channels']} channels of {library['channel_gb_per_second']:.4g} GB/s"
        )
    time = "no time" if library["seconds"] is None else f"{microseconds(library['seconds'])} µs{busbw}"
    chosen = f"{library['algorithm']}{channels}: {time}"
    print_fields([(f"as {library['name']}", chosen), *(("note", note) for note in library["notes"])])


def print_enabled(library: LibraryReport) -> None:
    """Prints a table of all choices that the library's model compares; nothing for rules."""
    if not library["choices"]:
        return
    print_lines("")
    rows = [
        [
            f"{one['algorithm']} {one['protocol']}",
            str(one["channels"]),
            f"{one['channel_gb_per_second']:.4g}",
            f"{one['latency_us']:.1f}",
            f"{one['gb_per_second']:.1f}",
            microseconds(one["cost_seconds"]),
            microseconds(one["seconds"]),
        ]
        for one in library["choices"]
    ]
    right = ["channels", "GB/s each", "latency µs", "GB/s", "own estimate µs", "predicted µs"]
    print_table([f"{library['name']} enables", *right], rows, right=right)
