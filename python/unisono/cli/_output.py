"""Prints results: one JSON object, or text and tables."""

import json
import math
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import click

from unisono import Machine
from unisono.base import interrupts
from unisono.base.facts import reduces
from unisono.base.messages import counted as counted
from unisono.base.messages import printable
from unisono.base.reports import Bound, MemoryReport

#: The collectives whose stated size is the size of one block, each with words for the block: a rank's input, its output
#: (reduce-scatter, scatter), or its data for each rank (alltoall).
_OF_BLOCKS = {
    "allgather": "of each rank",
    "alltoall": "between every two ranks",
    "gather": "of each rank",
    "reduce-scatter": "for each rank",
    "scatter": "for each rank",
}
#: The width of a table in characters without a terminal, so that pipes get the same text.
_PIPE_WIDTH = 160
#: The largest number of characters in a line of a cell.
_WIDEST = 200
#: The key of a context's entry that is True if notes are printed in full.
EXPLAIN = "unisono.explain"
#: The largest number of characters of a note on one line.
_NOTE = 130
#: The minimum time between two lines of progress, in seconds.
_BETWEEN_LINES = 15.0
#: The number of characters between two columns of a table.
_GAP = 3


def _plain(value: Any) -> Any:
    """Returns the value with types of JSON only; numbers that JSON lacks (infinity, NaN) become null."""
    match value:
        case Mapping():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case _ if hasattr(value, "tolist"):
            # The value is an array or a number of NumPy, which is recognised without importing NumPy.
            return _plain(value.tolist())
        case float():
            return value if math.isfinite(value) else None
        case _:
            return value


def print_json(value: Mapping[str, Any]) -> None:
    """Prints exactly one JSON object on standard output."""
    sys.stdout.write(json.dumps(_plain(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def json_text(value: Mapping[str, Any]) -> str:
    """Returns one JSON object as the text of a file."""
    return json.dumps(_plain(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def print_lines(*lines: str) -> None:
    """Prints text; characters that control a terminal, as names from files may contain, are escaped."""
    _print_raw(printable(part) for line in lines for part in line.split("\n"))


def _print_raw(lines: Iterable[str]) -> None:
    for line in lines:
        sys.stdout.write(line.rstrip() + "\n")


def print_fields(fields: Sequence[tuple[str, str]]) -> None:
    """Prints names and values, aligned, without fields that have no value."""
    width = max((len(name) for name, value in fields if value), default=0)
    print_lines(*(f"{name:<{width}}  {value}" for name, value in fields if value))


def fields_of(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Returns names and values for :func:`print_fields`; keys of a nested table get its name: ``prices.dac_usd``."""
    fields = []
    for key, value in values.items():
        if isinstance(value, Mapping):
            fields += fields_of(value, f"{prefix}{key}.")
        else:
            fields.append((prefix + key, value_text(value)))
    return fields


def digits_text(value: float) -> str:
    """Formats a number with six significant digits, and with all digits before the point.

    Very small and very large numbers are formatted with a power of 10.
    """
    if not math.isfinite(value) or value == 0 or not 1e-4 <= abs(value) < 1e15:
        return f"{value:.6g}"
    return number(value, max(0, 5 - math.floor(math.log10(abs(value)))))


def value_text(value: object) -> str:
    """Formats a value on one line; a text with several lines is reduced to its first line."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case Mapping():
            return ", ".join(f"{key} {value_text(of)}" for key, of in value.items())
        case list() | tuple() if any(isinstance(of, Mapping) for of in value):
            return "; ".join(map(value_text, value))
        case list() | tuple():
            return ", ".join(map(value_text, value))
    first, *more = str(value).strip().split("\n")
    return f"{first.strip()} and {len(more)} more lines" if more else first


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str] = (), whole: Sequence[str] = ()
) -> None:
    """Prints a table.

    Cells in columns of ``right`` are aligned to the right; these cells, and those in columns of ``whole``, are not
    broken.
    """
    with interrupts.importing():
        import shutil

        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    # Headings and cells break between words only. A terminal that is too narrow wraps the lines itself.
    texts = [[column, *(row[at] for row in rows)] for at, column in enumerate(columns)]
    widths = [max((len(word) for text in of for word in text.split()), default=0) for of in texts]
    for at, column in enumerate(columns):
        if column in (*right, *whole):
            widths[at] = max(widths[at], *map(len, texts[at]))
    widths = [min(width, _WIDEST) for width in widths]
    terminal = sys.stdout.isatty() and not _among_ranks()
    least = sum(widths) + _GAP * (len(columns) - 1)
    for at, column in enumerate(columns):
        table.add_column(
            column,
            justify="right" if column in right else "left",
            no_wrap=column in (*right, *whole) and widths[at] < _WIDEST,
            overflow="fold",
            min_width=widths[at],
        )
    for row in rows:
        table.add_row(*map(printable, row))
    width = max(shutil.get_terminal_size().columns if terminal else _PIPE_WIDTH, least)
    console = Console(file=sys.stdout, width=width, markup=False, highlight=False, emoji=False, force_terminal=terminal)
    with console.capture() as capture:
        console.print(table)
    _print_raw(capture.get().splitlines())


def _among_ranks() -> bool:
    """Returns whether an MPI launcher started this process. Its terminal may not show the output of all ranks."""
    return _rank() is not None


def _rank() -> str | None:
    """Returns the rank that an MPI launcher gave this process, if one started it."""
    names = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK")
    return next((os.environ[name] for name in names if name in os.environ), None)


def number(value: float | None, digits: int = 2) -> str:
    """Formats a number with at most ``digits`` decimals, without trailing zeros.

    None, infinity and NaN become ``-``.
    """
    if value is None or not math.isfinite(value):
        return "-"
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def cycles_and_time(times: Mapping[str, Any]) -> str:
    """Formats ``1162.47 cycles, 1.368 µs``, or the time alone if a machine has no cycles."""
    cycles, seconds = times.get("cycles"), times.get("seconds")
    parts = [f"{number(cycles)} cycles"] if cycles is not None else []
    parts += [f"{microseconds(seconds)} µs"] if seconds is not None else []
    return ", ".join(parts)


def microseconds(seconds: float) -> str:
    """Formats a time in microseconds with three decimals, or with an exponent from 10^18 on."""
    return f"{seconds * 1e6:.3f}" if seconds < 1e12 else f"{seconds * 1e6:.3e}"


def duration(seconds: float) -> str:
    """Formats a time in the largest unit in which the number is at least 1, as ``12.345 µs``.

    Times from 10^6 s on, and below 1 ps, are in seconds with at most four digits.
    """
    for unit, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"), (1e-12, "ps")):
        if seconds >= unit:
            return f"{seconds / unit:.3f} {name}" if seconds < 1e6 else f"{seconds:.4g} s"
    return f"{seconds:.4g} s"


def time_of(times: Mapping[str, Any]) -> str:
    """Formats the time in the machine's own unit: cycles, or microseconds if it has none."""
    return number(times["cycles"]) if times["cycles"] is not None else microseconds(times["seconds"])


def unit_of(times: Mapping[str, Any]) -> str:
    """Returns the unit of :func:`time_of`."""
    return "cycles" if times["cycles"] is not None else "µs"


def one_of(names: Sequence[str]) -> str:
    """Formats ``a, b or c``."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def memory_text(memory: MemoryReport | None) -> str:
    """Returns a sentence if a schedule needs more memory than a PE has; else empty text."""
    if memory is None or memory["needed_bytes"] <= memory["pe_bytes"]:
        return ""
    need = f"a PE needs {memory['needed_bytes']} bytes for input, output and scratch memory"
    return f"{need}, and has {memory['pe_bytes']}: the machine cannot run this"


def warn_of_memory(memory: MemoryReport | None) -> None:
    """Prints a warning before all output if a schedule needs more memory than a PE has."""
    if text := memory_text(memory):
        click.echo(f"warning: {text}", err=True)


def without(machine: Machine) -> str:
    """Formats failed links and nodes as `` without 0-1, 17``; empty without any."""
    failed = machine.describe().get("failed")
    return f" without {', '.join(failed)}" if failed else ""


def note_text(note: str) -> str:
    """Returns a note in full, or its beginning if the command's ``--explain`` is not given."""
    context = click.get_current_context(silent=True)
    if len(note) <= _NOTE or context is None or context.meta.get(EXPLAIN, True):
        return note
    clauses = [note[: at.start()] for at in re.finditer(r"[;:,] | \(", note) if at.start() <= _NOTE]
    closed = [clause for clause in clauses if clause.count("(") == clause.count(")")]
    first = closed[-1] if closed else note[:_NOTE].rpartition(" ")[0]
    return f"{first} ... (--explain)"


def note_fields(notes: Iterable[str]) -> list[tuple[str, str]]:
    """Returns notes for :func:`print_fields`."""
    return [("note", note_text(note)) for note in notes if note]


def print_notes(notes: Iterable[str], *, err: bool = False) -> None:
    """Prints notes, the omissions and assumptions of printed numbers, one a line."""
    lines = [f"note: {note_text(note)}" for note in notes]
    if err:
        for line in lines:
            click.echo(line, err=True)
    else:
        print_lines(*lines)


def assumed(bound: Bound, notes: Iterable[str]) -> str:
    """Returns the assumption of a bound, without the notes of its machine, which are printed separately."""
    text = bound["assumes"] or ""
    for note in notes:
        text = text.replace(f"; {note}", "")
    return text


def params_text(params: Mapping[str, Any]) -> str:
    """Formats ``depth=31 contention=2``."""
    return " ".join(f"{name}={value}" for name, value in params.items())


def subject(report: Mapping[str, Any], in_cycles: bool) -> str:
    """Returns a line with the collective, its size and the part of the machine, in PEs or in ranks."""
    sides = report["shape"] or (report["ranks"],)
    nodes = f"{'x'.join(map(str, sides))} {'PE' if in_cycles else 'rank'}{'' if math.prod(sides) == 1 else 's'}"
    size = f"{report['elements']} {report['dtype']} ({report['bytes']} bytes)"
    each = _OF_BLOCKS.get(report["collective"])
    op = report.get("operator", "sum")
    op = f" ({op})" if op != "sum" and reduces(report["collective"]) else ""
    what = f"{report['collective']}{op} of {size}" + (f" {each}" if each else "")
    return f"{what} on {nodes} of {report['machine']}"


def bandwidths_text(report: Mapping[str, Any]) -> str:
    """Formats the bandwidths of a report in GB/s, by the definitions of nccl-tests; empty if they have none."""
    if report["algbw"] is None:
        return ""
    return f"{rate(report['algbw'])}, on the bus {rate(report['busbw'])} (busbw of nccl-tests)"


def rate(value: float, digits: int = 2) -> str:
    """Formats a rate in GB/s with ``digits`` decimals, or a small rate with two significant digits."""
    return f"{value:.2g} GB/s" if 0 < value < 10**-digits else f"{number(value, digits)} GB/s"


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Shows the numbers of finished and of all steps on standard error.

    On a terminal this is a bar. Under MPI, rank 0 prints lines. Otherwise nothing is shown.
    """
    if _among_ranks():
        yield _lines_of(what) if _rank() == "0" else lambda *_: None
        return
    with _shown_on_terminal(what, has_total=True) as on_step:
        yield on_step


def _lines_of(what: str) -> Callable[[int, int], None]:
    """Returns a function that prints how many steps are done, at most once in :data:`_BETWEEN_LINES` seconds."""
    begun = last = time.monotonic()

    def on_step(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= _BETWEEN_LINES and done < total:
            last = now
            click.echo(f"{what}: {done} of {total} done after {now - begun:.0f} s", err=True)

    return on_step


@contextmanager
def working(what: str) -> Iterator[None]:
    """Shows activity and the elapsed time of a long step, if standard error is a terminal."""
    with _shown_on_terminal(what, has_total=False):
        yield


#: True while a bar or a spinner is on the terminal. Inner steps then show none of their own.
_is_shown = ContextVar("_is_shown", default=False)


@contextmanager
def _shown_on_terminal(what: str, *, has_total: bool) -> Iterator[Callable[[int, int], None]]:
    """Shows a step and its elapsed time on a terminal, with a bar if the number of its steps is known.

    Yields a function that takes the numbers of finished and of all steps.
    """
    if _is_shown.get() or not sys.stderr.isatty():
        yield lambda *_: None
        return
    with interrupts.importing():
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console, text = Console(stderr=True), TextColumn("{task.description}", markup=False)
    columns = (text, BarColumn(), MofNCompleteColumn()) if has_total else (SpinnerColumn(), text)
    token = _is_shown.set(True)
    try:
        with Progress(
            *columns, TimeElapsedColumn(), console=console, transient=True, disable=not console.is_terminal
        ) as bar:
            task = bar.add_task(what, total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)
    finally:
        _is_shown.reset(token)
