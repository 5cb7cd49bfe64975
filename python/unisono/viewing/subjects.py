"""The facts and panels of each kind of subject: a file, a schedule, a plan or a machine; see :func:`view`."""

import csv
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from unisono._core import InputError, Machine, Plan, Schedule
from unisono.base.files import MOST_DESCRIPTION_BYTES, check_writable, load, read_json, read_text, title, write
from unisono.base.html import time_text
from unisono.base.messages import shown
from unisono.machines.descriptions import machine
from unisono.planning.contents import FAULTS_OF_VALUES, Contents, contents
from unisono.viewing import candidates, curves, drawn, machines, schedules, traces
from unisono.viewing.page import page

__all__ = ["view"]

_Seen = tuple[dict[str, Any], list[dict[str, Any]]]
#: Columns of a plan for MPI programs that only programs use, and that are not shown.
_NOT_SHOWN = ("expression_class",)


def view(
    subject: Schedule | Plan | Machine | str | os.PathLike[str],
    path: str | os.PathLike[str] | None = None,
    *,
    sizes: Sequence[Plan] = (),
) -> str:
    """Returns an HTML page that shows a schedule, a plan, a machine or a file; writes it to ``path`` if given.

    The page of a schedule shows its run on its machine, with the load of each link. The page of a plan also shows its
    candidates, and those of ``sizes``, plans of the same collective at other sizes. A file may be any file that
    :func:`unisono.planning.contents.contents` reads. The page is a single file and needs no network.

    Raises:
        InputError: no such subject or file, or a path that cannot be written.
        UnsupportedError: this installation has no program for pages.
        VerifyError: the schedule is refused.
        SimulationError: the schedule got stuck on its machine.

    """
    if path is not None:
        check_writable(path)
    match subject:
        case Schedule():
            made = _page(f"{subject.collective} by {subject.origin}", "schedule", schedules.panels(subject))
        case Plan():
            made = _page(f"{subject.collective} by {subject.algorithm}", "plan", _plan(subject, sizes))
        case Machine():
            made = _page(subject.name, "machine", _machine(subject))
        case str() | os.PathLike():
            made = _file(subject)
        case _:
            raise InputError(f"{shown(subject)} is neither a schedule, a plan, a machine nor the name of a file")
    if path is not None:
        write(path, made)
    return made


def _page(name: str, form: str, seen: _Seen) -> str:
    return page(name, form, *seen)


def _plan(plan: Plan, sizes: Sequence[Plan]) -> _Seen:
    facts, panels = schedules.panels(plan.schedule)
    facts = {"summary": _summary(plan), **facts}
    plans = sorted((plan, *sizes), key=lambda other: other.schedule.elements)
    reports, chosen = [other.report() for other in plans], plans.index(plan)
    return facts, [*panels, candidates.of_reports(reports, chosen)]


def _summary(plan: Plan) -> str:
    """Returns the predicted time, its ratio to the bound and the bandwidth of a plan as one line."""
    report = plan.report()
    words = [f"{_time(report['predicted'])} predicted"]
    if (bound := report["lower_bound"]) and report["ratio"] is not None:
        words.append(f"{report['ratio']:.2f} times the bound of {_time(bound)}")
    if report["busbw"] is not None:
        words.append(f"{report['busbw']:,.4g} GB/s on the bus (busbw of nccl-tests)")
    return ", ".join(words)


def _time(found: Mapping[str, Any]) -> str:
    return f"{found['cycles']:,g} cycles" if found["cycles"] is not None else time_text(found["seconds"])


def _machine(found: Machine) -> _Seen:
    """Returns the facts and panels of a machine, without costs of messages and thread blocks that are 0."""
    every = _flat(found.describe())
    del every["name"]
    left_out = re.compile("(prices|thread_block) ")
    facts = {name: value for name, value in every.items() if value != "" and not (value == 0 and left_out.match(name))}
    return facts, machines.panels(found)


def _file(path: str | os.PathLike[str]) -> str:
    found = contents(path)
    name = os.fspath(path)
    try:
        return _page(title(Path(name).name), found.form, _seen(found, name))
    except FAULTS_OF_VALUES:
        # JSON and CSV files of other programs may begin like files of Unisono, with other contents.
        raise InputError(f"'{title(path)}' begins like a {found.form}, and is damaged or something else") from None


def _seen(found: Contents, name: str) -> _Seen:
    match found.form:
        case "schedule":
            return schedules.panels(load(name))
        case "machine":
            return _machine(machine(Path(name)))
        case "trace":
            return _of_trace(found.facts), [traces.panel(read_json(name)), _table(found)]
        case "sweep":
            rows = list(csv.DictReader(read_text(name, MOST_DESCRIPTION_BYTES).splitlines()))
            return found.facts, [candidates.of_sweep(rows)] if rows else []
        case "probe":
            return found.facts, _probe(read_json(name))
        case "diagnosis":
            report = read_json(name)
            words = _text("Most costly first", report["sentences"])
            return found.facts, [curves.of_diagnosis(report), words, _table(found, "Findings")]
        case "expectation":
            return _flat(found.facts), [
                curves.of_expectation(read_json(name)),
                _table(found, "Times, and bus bandwidths in GB/s"),
            ]
        case "plan for MPI programs":
            facts = {**found.facts, "size": f"{found.facts['size']:,} bytes"}
            served = [_of_plan_row(row) for row in found.rows]
            return facts, [_table(replace(found, rows=served), "Rows of the plan")]
        case "plan for GPUs":
            # The unit is added, because the format states sizes without one.
            facts = {
                name: f"{size:,} bytes" if name.endswith("message_size") else size for name, size in found.facts.items()
            }
            return _flat(facts), [_table(found, "GPUs of the plan")]
        case "report":
            return _report(read_json(name), found)
        case _:
            return _plain(found)


def _plain(found: Contents) -> _Seen:
    """Returns the facts, the table and the text of contents that have no drawing."""
    text = [{"kind": "text", "title": "Contents", "text": found.text}] if found.text else []
    return _flat(found.facts), [*([_table(found)] if found.rows else []), *text]


def _report(report: Mapping[str, Any], found: Contents) -> _Seen:
    if report.get("candidates"):
        return _flat(found.facts), [candidates.of_reports([report])]
    if report.get("rows") and "overlap" in report:
        return _comparison(report)
    return _workload(report, found) if report.get("phases") and "workload" in report else _plain(found)


def _comparison(report: Mapping[str, Any]) -> _Seen:
    """Returns the facts and panels of a report of `unisono compare`: its picture, and the rows as a table."""
    # Imported here, since matplotlib takes longer than the rest of a page.
    from unisono.pictures.plots import comparisons

    fill = bool(report["fill"])
    picture = drawn.panel("Workloads on networks", "", comparisons.draw(report["rows"], "svg", fill=fill))
    heads = {
        "workload": "workload",
        "machine": "machine",
        "accelerators": "accelerators",
        "copies": "copies",
        "seconds": "step, ms",
        "exposed_seconds": "exposed, ms",
        "used_cost_usd": "price in use, $",
    }
    rows = [
        [None if row[key] is None else 1e3 * row[key] if key.endswith("seconds") else row[key] for key in heads]
        for row in report["rows"]
    ]
    table = {"kind": "table", "title": "Rows", "columns": list(heads.values()), "rows": rows}
    return {"level": report["level"], "overlap": report["overlap"], "fill": fill}, [picture, table]


def _workload(report: Mapping[str, Any], found: Contents) -> _Seen:
    """Returns the facts and panels of a report of `unisono workload`: a step over time, and its communication."""
    # Imported here, since matplotlib takes longer than the rest of a page.
    from unisono.pictures.plots import workloads

    facts = {name: value for name, value in _flat(found.facts).items() if name != "rates" and value is not None}
    step = drawn.panel("A step", "Compute above, communication below.", workloads.draw(report, "svg"))  # type: ignore[arg-type]
    rows = [
        [phase["name"], c["collective"], c["ranks"], c["bytes"], c["algorithm"], 1e3 * c["begin"], 1e3 * c["end"]]
        for phase in report["phases"]
        for c in phase["communication"]
    ]
    columns = ["phase", "collective", "ranks", "bytes", "algorithm", "begin, ms", "end, ms"]
    return facts, [step, {"kind": "table", "title": "Communication", "columns": columns, "rows": rows}]


def _of_plan_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a row of a plan for MPI programs in words; a row without an algorithm is the library's choice."""
    shown_row = {key: value for key, value in row.items() if key not in _NOT_SHOWN}
    last = "any" if row["last_bytes"] is None else row["last_bytes"]
    return {**shown_row, "algorithm": row["algorithm"] or "the library's own", "last_bytes": last}


def _of_trace(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the facts of a trace, with the largest clock error in place of the list of all ranks' errors."""
    errors = facts.get("clock_error_ns")
    if not (isinstance(errors, list) and errors):
        return dict(facts)
    rest = {key: value for key, value in facts.items() if key != "clock_error_ns"}
    return {**rest, "clock_error": f"at most {max(map(float, errors)) / 1e3:,.1f} µs"}


def _probe(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the panels of a probe: its network, unless too large for a picture, its cables and notes."""
    on = machine(report["description"])
    plain = machines.panel(on)
    network = [] if plain is None else [machines.probed(plain, on, report)]
    return [*network, machines.cables(report), _text("Notes", report["notes"])]


def _text(title: str, lines: Sequence[str]) -> dict[str, Any]:
    return {"kind": "text", "title": title, "text": "\n".join(lines) or "none", "wraps": True}


def _table(found: Contents, title: str = "Contents") -> dict[str, Any]:
    # Columns without values are omitted; for example, the times of a library are in all rows or in none.
    columns = [column for column in found.rows[0] if any(row[column] is not None for row in found.rows)]
    rows = [[row[column] for column in columns] for row in found.rows]
    heads = [re.sub("_us$", ", µs", column) for column in columns]
    return {"kind": "table", "title": title, "columns": heads, "rows": rows}


def _flat(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Returns facts of one line each; the name of a nested table is put before the names in it.

    Texts with line breaks, lists of more than 8 items, and lists with nested lists or tables are omitted.
    """
    flat: dict[str, Any] = {}
    for name, value in facts.items():
        if isinstance(value, Mapping):
            flat |= {f"{name} {inner}": found for inner, found in _flat(value).items()}
        elif isinstance(value, list | tuple):
            if len(value) <= 8 and not any(isinstance(item, Mapping | list) for item in value):
                flat[name] = ", ".join(map(str, value))
        elif not (isinstance(value, str) and "\n" in value):
            flat[name] = value
    return flat
