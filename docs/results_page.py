"""The site's page of measured figures, from the tables in benches/results; `python docs/results_page.py` prints it."""

import csv
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PAGE = "results.md"
FOLDER = ROOT / "benches" / "results"
#: Titles of the tables' files, in the order of the page.
TITLES = {
    "mpi": "MPI programs",
    "tasks": "Programs of tasks",
    "gpus": "GPUs",
    "networks": "Networks",
    "forests": "Forests, failures and all-to-alls on networks",
    "choices": "Choices of plans",
    "workloads": "Workloads",
    "wafer": "Wafers",
    "ranks": "Plans and simulations among ranks",
    "proofs": "Proofs, certificates and guidelines",
    "program": "The program, its pages and its tests",
}
#: Topics for developers, which only the tables have, not the page.
_OF_DEVELOPMENT = (
    "Budgets of commands",
    "Builds and tests",
    "Commands on all cores",
    "Endpoint simulator with smaller tasks",
    "Events in a window of concurrent simulation",
    "How work grows among ranks",
    "Packet simulator, later",
    "Plans on all cores",
)
#: A topic with more cases has a row for each group of cases, if there are at most half as many groups.
_MOST = 8
#: A topic with more cases always has a row for each group.
_MOST_UNGROUPED = 20
#: Units of times, whose larger figure is slower, and parts of the column names of rates, whose smaller figure is.
_TIMES = ("s", "CPU s", "ms", "µs", "ns")
_RATES = ("GB/s", " second")
#: Figures that became slower by more than this factor are listed.
_SLOWER = 1.05
_HEAD = """# Measured figures

To repeat a figure, run the command above its table. The machine has 2 shared x86-64 cores, 24 GB and Linux, unless a
topic names another; builds are release builds. Times on shared cores vary by tens of per cent. `make site` makes this
page from the tables in `benches/results`, which hold every figure with its date, machine and command. Figures of GPU
machines that are older than 2026-11-27 have the rates of the data sheet.

In brackets: the figure of the peer that the head of the column names, and the ratio of the two. Beside a bound or a
measurement the ratio is ours over theirs; beside another program or a requirement it is how many times better ours is.
If a topic has many cases, a row is the range of a group of cases; the tables have each, and topics for developers.
"""
_CHANGES = """
## Slower than before
Table: `benches/results/before.csv`

Of {all} times and rates that replaced others, {faster} are faster by 5 % or more, {alike} are alike, and {slower} are
slower. Predicted and simulated times are among these:
"""


class Figure(NamedTuple):
    """One row of a table: a figure of a case, beside that of a peer."""

    topic: str
    case: str
    measure: str
    figure: str
    unit: str
    peer: str
    peer_figure: str
    ratio: str
    date: str
    machine: str
    commit: str
    command: str
    note: str


def figures(name: str) -> list[Figure]:
    """Returns the rows of a table in `benches/results`."""
    with (FOLDER / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    if tuple(head) != Figure._fields:
        raise ValueError(f"{name}.csv has the columns {', '.join(head)}; the page needs {', '.join(Figure._fields)}")
    return [Figure(*row) for row in rows]


def ends(text: str) -> list[float]:
    """Returns the numbers of ``1.5`` or of ``1.5 to 2``."""
    return [float(part) for part in text.split(" to ")]


def page() -> str:
    """Returns the text of the page."""
    parts = [_HEAD, _changes()]
    for name, title in TITLES.items():
        rows = figures(name)
        parts.append(f"\n## {title}\nTable: `benches/results/{name}.csv`\n")
        topics = [topic for topic in _distinct(rows, "topic") if topic not in _OF_DEVELOPMENT]
        parts += [_topic(topic, [row for row in rows if row.topic == topic]) for topic in topics]
    return "".join(parts)


def _changes() -> str:
    """Returns the section that lists all figures that are slower than the figures that they replaced."""
    before = {figure[:3] + figure[4:6]: figure for figure in figures("before")}
    pairs = [
        (before[key], figure, slower)
        for name in TITLES
        for figure in figures(name)
        if (key := figure[:3] + figure[4:6]) in before and (slower := _slower(before[key], figure)) is not None
    ]
    worse = [pair for pair in pairs if pair[2] > _SLOWER]
    faster = sum(slower < 1 / _SLOWER for _, _, slower in pairs)
    alike = len(pairs) - len(worse) - faster
    head = ["topic", "case", "measure", "before", "now", "times slower"]
    lines = [_CHANGES.format(all=len(pairs), faster=faster, alike=alike, slower=len(worse))]
    lines += [_row(head), "|" + "---|" * len(head)]
    lines += [
        _row(
            [
                new.topic,
                new.case,
                _column(new),
                *(f"{_span([one.figure])} ({one.date})" for one in (old, new)),
                f"{slower:.2f}",
            ]
        )
        for old, new, slower in sorted(worse, key=lambda pair: -pair[2])
    ]
    return "\n".join(lines) + "\n"


def _slower(before: Figure, now: Figure) -> float | None:
    """Returns how many times slower a figure is than the replaced one; None if it is a range, or no time or rate."""
    is_time = now.unit in _TIMES
    if not is_time and not any(word in _column(now) for word in _RATES):
        return None
    try:
        old, new = float(before.figure), float(now.figure)
    except ValueError:
        return None
    return (new / old if is_time else old / new) if old and new else None


def _distinct(rows: list[Figure], field: str) -> list[str]:
    return list(dict.fromkeys(getattr(row, field) for row in rows))


def _topic(topic: str, rows: list[Figure]) -> str:
    cases = _distinct(rows, "case")
    groups = _groups(cases)
    columns = list(dict.fromkeys(_column(row) for row in rows))
    is_grouped = len(set(groups.values())) < len(cases)
    shared = [part for part in rows[0].note.split("; ") if part and all(part in row.note.split("; ") for row in rows)]
    listed = any(_own_note([row], shared) for row in rows) and not is_grouped
    about = [f"`{_distinct(rows, 'command')[0]}`", _range(_distinct(rows, "date"))]
    about += [machine for machine in _distinct(rows, "machine")[:1] if machine != "2 shared x86-64 cores"]
    about += shared if len(_distinct(rows, "note")) == 1 or not is_grouped else []
    about += [f"{len(cases)} cases"] if is_grouped else []
    peers = {column: _peers(rows, column) for column in columns}
    heads = [f"{column} ({names[0]})" if len(names) == 1 else column for column, names in peers.items()]
    head = ["case", *heads, *(["note"] if listed else [])]
    lines = [
        f"\n### {topic}",
        textwrap.fill("; ".join(about), 118, break_on_hyphens=False),
        "",
        _row(head),
        "|" + "---|" * len(head),
    ]
    before = ""
    for group in dict.fromkeys(groups.values()):
        own = [row for row in rows if groups[row.case] == group]
        cells = [_cell([row for row in own if _column(row) == column], len(peers[column]) > 1) for column in columns]
        note = _own_note(own, shared)
        # Only the first of consecutive rows with the same note shows the note.
        lines.append(_row([group, *cells, *(["" if note == before else note] if listed else [])]))
        before = note
    return "\n".join(lines) + "\n"


def _groups(cases: list[str]) -> dict[str, str]:
    """Returns the row's name by case: the case itself or, of many cases, its group (the text before the semicolon)."""
    groups = {case: case.partition("; ")[0] if "; " in case else "all" for case in cases}
    if len(cases) > _MOST_UNGROUPED or (len(cases) > _MOST and 1 < len(set(groups.values())) <= len(cases) / 2):
        return groups
    return {case: case for case in cases}


def _own_note(rows: list[Figure], shared: list[str]) -> str:
    """Returns the parts of notes that not all rows of the topic have."""
    parts = dict.fromkeys(part for row in rows for part in row.note.split("; ") if part and part not in shared)
    return "; ".join(parts)


def _row(cells: list[str]) -> str:
    return "|" + "|".join(cell.replace("|", "\\|") for cell in cells) + "|"


def _column(row: Figure) -> str:
    return f"{row.measure}, {row.unit}" if row.unit else row.measure


def _peers(rows: list[Figure], column: str) -> list[str]:
    """Returns the peers of a column. The head of the column names a single peer, the cells name several."""
    return [peer for peer in _distinct([row for row in rows if _column(row) == column], "peer") if peer]


def _cell(rows: list[Figure], named: bool) -> str:
    """Returns the text of one cell, in which figures with the same peer are together."""
    return "; ".join(
        _beside(peer, [row for row in rows if row.peer == peer], named) for peer in _distinct(rows, "peer")
    )


def _beside(peer: str, rows: list[Figure], named: bool) -> str:
    theirs = f"{peer} " * (named and bool(peer)) + _span([row.peer_figure for row in rows])
    inside = "; ".join(text for text in (theirs, _span([row.ratio for row in rows])) if text)
    return _span([row.figure for row in rows]) + (f" ({inside})" if inside else "")


def _span(texts: list[str]) -> str:
    """Returns the least and the greatest number in texts such as ``1.5`` or ``1.5 to 2``, with the same digits."""
    numbers = [part for text in texts if text for part in text.split(" to ")]
    if not numbers:
        return ""
    least, most = min(numbers, key=float), max(numbers, key=float)
    return _thousands(least) if float(least) == float(most) else f"{_thousands(least)} to {_thousands(most)}"


def _thousands(number: str) -> str:
    whole, point, rest = number.partition(".")
    return f"{int(whole):,}{point}{rest}" if len(whole) > 4 else number


def _range(dates: list[str]) -> str:
    return dates[0] if len(dates) == 1 else f"{min(dates)} to {max(dates)}"


if __name__ == "__main__":
    sys.stdout.write(page())
