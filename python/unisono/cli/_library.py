"""Prints the algorithms that a library chooses by its own rules or model."""

from unisono.base.reports import LibraryBits, LibraryReport
from unisono.cli._bits import SAME_BITS
from unisono.cli._output import (
    microseconds,
    note_fields,
    print_fields,
    print_lines,
    print_notes,
    print_table,
    rate,
)

OWN_ROWS = (
    "lines are the best of NCCL's own algorithms by the times of --as nccl, which are NCCL's own estimates until "
    "'unisono calibrate --from' fits them to logs"
)


def print_choice(library: LibraryReport) -> None:
    """Prints the library's choice with its predicted time and bandwidth."""
    busbw = "" if library["busbw"] is None else f", busbw {rate(library['busbw'], 1)}"
    protocol = "" if library["protocol"] is None else f" {library['protocol']}"
    channels = ""
    if library["channel_gb_per_second"] is not None:
        channels = f", {library['channels']} channels of {library['channel_gb_per_second']:.4g} GB/s"
    time = "no time" if library["seconds"] is None else f"{microseconds(library['seconds'])} µs{busbw}"
    chosen = f"{library['algorithm']}{protocol}{channels}: {time}"
    print_fields([(f"as {library['name']}", chosen), *note_fields(library["notes"])])


def print_bits(name: str, found: LibraryBits) -> None:
    """Prints the settings that give a property of the bits, with their time, and the algorithms that lose it."""
    said = SAME_BITS[found["bits"]]
    print_lines("")
    rows = [
        [f"{one['algorithm']} {one['protocol']}", microseconds(one["seconds"]), " ".join(one["settings"]) or "any"]
        for one in found["gives"]
    ]
    if rows:
        print_table([f"{name}, {said}", "own estimate µs", "with"], rows, right=["own estimate µs"])
    else:
        print_lines(f"{name}: no settings are known that give the {said}")
    print_lines(*(f"{one['algorithm']} loses them: {one['reason']}" for one in found["loses"]))
    print_notes(found["notes"])


def print_enabled(library: LibraryReport) -> None:
    """Prints a table of all choices that the library's model compares; nothing for a library that uses rules."""
    if not library["choices"]:
        return
    print_lines("")
    # On a calibrated machine, fitted times must not be compared with NCCL's own estimates.
    is_fitted = any(one["calibrated"] for one in library["choices"])
    rows = [
        [
            f"{one['algorithm']} {one['protocol']}",
            "" if one["channels"] is None else str(one["channels"]),
            "" if one["channel_gb_per_second"] is None else f"{one['channel_gb_per_second']:.4g}",
            f"{one['latency_us']:.1f}",
            f"{one['gb_per_second']:.1f}",
            microseconds(one["cost_seconds"]),
            "" if library["seconds"] is None else microseconds(one["seconds"]),
            *(["logs" if one["calibrated"] else "own estimate"] if is_fitted else []),
        ]
        for one in library["choices"]
    ]
    right = ["channels", "GB/s each", "latency µs", "GB/s", "own estimate µs", "predicted µs"]
    by = ["predicted by"] if is_fitted else []
    print_table([f"{library['name']} enables", *right, *by], rows, right=right)
