"""Measured figures of a bench: a printed line a case, and with `--record` the rows of a table in `benches/results`.

A row states its date, machine, commit and command, so nothing is copied by hand. `--record` replaces rows of the same
topic, case, measure, unit and peer, drops other rows of the same case from the same bench, and leaves all others.
`before.csv` keeps the latest replaced version of each row, with which `docs/results_page.py` compares the new one.
"""

import argparse
import csv
import io
import os
import platform
import subprocess
import sys
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import NamedTuple, Self

ROOT = Path(__file__).resolve().parents[2]
#: The columns that together identify a row of a table.
KEY = ("topic", "case", "measure", "unit", "peer")


class Of(NamedTuple):
    """A figure of a case beside that of a peer; with `gain`, less is better and the ratio is peer / figure."""

    measure: str
    figure: float | str
    unit: str = ""
    peer: str = ""
    peer_figure: float | str = ""
    gain: bool = False

    @property
    def ratio(self) -> str:
        """The ratio of the figure and the peer's; empty if either is a text or missing."""
        if isinstance(self.figure, str) or isinstance(self.peer_figure, str) or not (self.figure and self.peer_figure):
            return ""
        return text(self.peer_figure / self.figure if self.gain else self.figure / self.peer_figure, 3)

    def __str__(self) -> str:
        """Formats the measure, the figure with its unit, the peer's figure, and the ratio."""
        inside = ", ".join(filter(None, (f"{self.peer} {text(self.peer_figure)}".strip(), self.ratio)))
        return " ".join(filter(None, (self.measure, text(self.figure), self.unit, inside and f"({inside})")))


class Figures:
    """The figures of one topic; recorded at the end of a `with` block that raised nothing."""

    def __init__(self, table: str, topic: str, given: argparse.Namespace, *, note: str = "") -> None:
        self._path = ROOT / "benches" / "results" / f"{table}.csv"
        self._topic, self._note = topic, note
        self._record: bool = given.record
        self._rows: list[dict[str, str]] = []

    def add(self, case: str, *figures: Of, note: str = "") -> None:
        """Prints a case, and keeps its figures."""
        notes = "; ".join(filter(None, (self._note, note)))
        sys.stdout.write(f"{case}: {', '.join(map(str, figures))}{f'; {note}' if note else ''}\n")
        sys.stdout.flush()
        self._rows += [
            {
                "topic": self._topic,
                "case": case,
                "measure": of.measure,
                "figure": text(of.figure),
                "unit": of.unit,
                "peer": of.peer if text(of.peer_figure) else "",
                "peer_figure": text(of.peer_figure),
                "ratio": of.ratio,
                "note": notes,
            }
            for of in figures
            if text(of.figure)
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, failure: object, *_: object) -> None:
        if self._record and failure is None and self._rows:
            made = {**origin(), "command": command()}
            rows, table = [{**row, **made} for row in self._rows], self._path.read_text()
            before = self._path.with_name("before.csv")
            before.write_text(merged(before.read_text(), replaced(table, rows)))
            self._path.write_text(merged(table, rows))
            sys.stdout.write(f"{len(self._rows)} rows are in {self._path.relative_to(ROOT)}\n")


def parsed(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Adds the option `--record`, and reads the command line."""
    parser.add_argument("--record", action="store_true", help="write the figures into their table in benches/results")
    return parser.parse_args()


def text(figure: float | str, digits: int = 4) -> str:
    """Formats a figure without an exponent; whole numbers keep all their digits."""
    if isinstance(figure, str):
        return figure
    if isinstance(figure, int):
        return str(figure)
    rounded = float(f"{figure:.{digits}g}")
    return f"{rounded:.0f}" if abs(rounded) >= 10 ** (digits - 1) else f"{rounded:.12f}".rstrip("0").rstrip(".")


def replaced(table: str, rows: Iterable[dict[str, str]]) -> list[dict[str, str]]:
    """Returns the rows of a table that new rows replace."""
    new, cases = {key(row) for row in rows}, {case(row) for row in rows}
    return [row for row in csv.DictReader(io.StringIO(table)) if key(row) in new or case(row) in cases]


def key(row: dict[str, str]) -> tuple[str, ...]:
    """Returns what identifies a row of a table."""
    return tuple(row[name] for name in KEY)


def case(row: dict[str, str]) -> tuple[str, str, str]:
    """Returns the topic, the case and the program of a row; each run of a program measures a case anew."""
    return row["topic"], row["case"], row["command"].split(" ", 1)[0]


def merged(table: str, rows: Iterable[dict[str, str]]) -> str:
    """Returns the text of a table in which new rows replace those of the same key, or else follow their topic."""
    reader = csv.DictReader(io.StringIO(table))
    columns = reader.fieldnames or ()
    # A measure that appears twice in a run counts once, with its last figure.
    new = {key(row): row for row in rows}
    cases = {case(row) for row in new.values()}
    kept: list[dict[str, str]] = []
    for row in reader:
        if key(row) in new or case(row) not in cases:
            kept.append(new.pop(key(row), row))
    for row in new.values():
        last = max((at for at, other in enumerate(kept) if other["topic"] == row["topic"]), default=len(kept) - 1)
        kept.insert(last + 1, row)
    written = io.StringIO()
    writer = csv.DictWriter(written, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(kept)
    return written.getvalue()


def origin() -> dict[str, str]:
    """Returns the date, the machine and the commit of figures that are measured now."""
    cores = os.cpu_count() or 1
    # A load above a tenth of the cores in the last 15 minutes means that other programs use them too.
    shared = "shared " * (os.getloadavg()[2] > cores / 10)
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--exclude=*"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    machine = f"{cores} {shared}{platform.machine().replace('_', '-')} cores"
    return {"date": date.today().isoformat(), "machine": machine, "commit": done.stdout.strip()}


def command() -> str:
    """Returns the command of this bench, without the options that do not change the figures."""
    program = Path(sys.argv[0]).resolve().relative_to(ROOT)
    return " ".join([program.as_posix(), *(word for word in sys.argv[1:] if word not in ("--record", "--inner"))])
