"""Reads the contents of any file that Unisono writes or reads; see :func:`contents`.

:mod:`unisono.base.file_types` recognizes the form of a file, and :data:`_READERS` has its reader.
"""

import csv
import math
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unisono._core import InputError
from unisono.base.facts import has_root
from unisono.base.file_types import (
    BOUND,
    CERTIFICATE,
    DIAGNOSIS,
    EXPECTATION,
    GPU_PLAN,
    HEAD,
    MACHINE,
    PROBE,
    PROGRAM,
    REPORTED,
    SCHEDULE,
    form_of,
    is_task_program,
    rules_of,
)
from unisono.base.files import (
    MOST_DESCRIPTION_BYTES,
    exists,
    file_name,
    is_file,
    load,
    read_bytes,
    read_json,
    read_text,
    title,
)
from unisono.base.json_streams import members
from unisono.base.messages import counted, shown
from unisono.machines.descriptions import machine
from unisono.planning.decision_tables import read_table
from unisono.planning.gpu_plans import check_gpu_plan
from unisono.planning.plan_files import load_plans
from unisono.planning.programs import read_workload

__all__ = ["Contents", "contents"]

#: The columns of the table of findings in logs.
_OF_FINDINGS = ("kind", "collective", "ranks", "log", "bytes")
#: The keys of a report whose lists may be shown as its table; the first list that has rows is shown.
_TABLES = ("candidates", "collectives", "rows", "points", "bounds", "beside", "diagnostics")
#: The exceptions that may be raised when values of another program are read as values of Unisono.
FAULTS_OF_VALUES = (AttributeError, LookupError, TypeError, ValueError, ArithmeticError, csv.Error)
#: The number of columns of points that are shown.
_COLUMNS = 8
#: The columns of the table of communication between tasks.
_OF_FORWARDS = ("after_task", "before_task", "buffer", "collective", "group")
#: The number of keys of an unknown file that a message names.
_KEYS = 4
#: The default number of lines of a text that are kept.
_LINES = 12


@dataclass(frozen=True)
class Contents:
    """The contents of one file."""

    file: str
    #: The name of the file's form, such as ``schedule``.
    form: str
    #: Facts by name, with the types of JSON.
    facts: dict[str, Any]
    #: Rows of a table by column, if the file has one.
    rows: list[dict[str, Any]]
    #: The text, or its first lines.
    text: str = ""

    def report(self) -> dict[str, Any]:
        """Returns the contents as one object of JSON."""
        return {"file": self.file, "form": self.form, **self.facts, "rows": self.rows}


#: The result of a reader: the facts, the rows of the table, and the text.
_Read = tuple[dict[str, Any], list[dict[str, Any]], str]


def contents(path: str | os.PathLike[str], *, lines: int | None = _LINES) -> Contents:
    """Reads any file: a schedule, a plan, a machine, a certificate, a report, a sweep, a trace, a program.

    ``lines`` is the largest number of lines of a text (None: all). The schedules of a ``.plan`` are proved; a
    ``.sched`` is only read.

    Raises:
        InputError: the file does not exist, is damaged, or has an unknown form.
        OSError: the file cannot be read.

    """
    name = file_name(path)
    if not exists(name):
        raise InputError(f"there is no file '{title(path)}'")
    if is_file(name) and Path(name).stat().st_size == 0:
        raise InputError(f"'{title(path)}' is empty")
    form = form_of(name)
    if form is None:
        known = ", ".join(_READERS)
        step = (
            "'unisono discover' reads programs of tasks in Python"
            if name.endswith(".py")
            else "'unisono diagnose' and 'unisono calibrate --from' read logs of benchmarks"
        )
        raise InputError(f"'{title(path)}' is of no form that is known; {step}; known are {known}")
    try:
        facts, rows, text = _READERS[form](name)
        columns = list(dict.fromkeys(column for row in rows for column in row))
        rows = [{column: row.get(column) for column in columns} for row in rows]
    except FAULTS_OF_VALUES:
        # The error names both possibilities, because JSON and CSV files of other programs may begin like those of
        # Unisono.
        raise InputError(f"'{title(path)}' begins like a {form}, and is damaged or something else") from None
    if lines is not None:
        kept = text.split("\n", lines)
        text = "\n".join([*kept[:lines], "..."]) if len(kept) > lines and kept[lines].strip() else text
    return Contents(title(path), form, facts, rows, text)


#: The attributes of schedules that are facts of their files.
_OF_SCHEDULES = (
    "collective", "ranks", "elements", "dtype", "operator", "root", "origin", "phases", "nodes", "streams",
    "instructions",
)  # fmt: skip


def _schedule(name: str) -> _Read:
    schedule = load(name)
    where = schedule.machine
    facts = {
        **{name: getattr(schedule, name) for name in _OF_SCHEDULES},
        "machine": None if where is None else where.name,
        **({"notes": schedule.notes} if schedule.notes else {}),
    }
    return facts, [], schedule.to_text()


def _plan_file(name: str) -> _Read:
    rows = [{**row, "params": _words(row["params"])} for row in load_plans(name)]
    return {"size": len(read_bytes(name)), "schedules": sum(row["algorithm"] is not None for row in rows)}, rows, ""


def _gpu_plan(name: str) -> _Read:
    plan = read_json(name)
    found = check_gpu_plan(name)
    rows = [
        {
            "gpu": gpu["id"],
            "thread_blocks": len(gpu["threadblocks"]),
            "operations": sum(len(block["ops"]) for block in gpu["threadblocks"]),
            "channels": sum(len(channel.get("connected_to", [0])) for channel in gpu.get("channels", [])),
            "input_chunks": gpu.get("input_chunks"),
            "output_chunks": gpu.get("output_chunks"),
            "scratch_chunks": gpu.get("scratch_chunks"),
        }
        for gpu in plan["gpus"]
    ]
    operations = Counter(op["name"] for gpu in plan["gpus"] for block in gpu["threadblocks"] for op in block["ops"])
    wanted = (
        "name",
        "collective",
        "protocol",
        "inplace",
        "num_threads_per_block",
        "min_message_size",
        "max_message_size",
    )
    facts = {key: plan.get(key) for key in wanted} | {
        "operations": [f"{name} {count}" for name, count in sorted(operations.items())],
        "proved": not found["diagnostics"],
    }
    return facts, rows, ""


def _machine(name: str) -> _Read:
    return machine(Path(name)).describe(), [], ""


def _bound_certificate(name: str) -> _Read:
    stated = read_json(name)
    prices, places = stated.pop("prices"), stated.pop("places")
    numbers = [*places, stated["root"], stated["bytes"], *(number for price in prices for number in price)]
    texts = [stated[key] for key in ("format", "machine", "collective", "bound")]
    are_numbers = all(type(number) is int and number >= 0 for number in numbers) and stated["seconds"] >= 0
    are_lists = isinstance(places, list) and isinstance(prices, list) and places != []
    if texts[0] != "unisono-bound 1" or not (are_numbers and are_lists and all(isinstance(one, str) for one in texts)):
        raise ValueError("no certificate of a bound has these values")
    if not has_root(stated["collective"]):
        stated["root"] = None
    return {**stated, "ranks": len(places), "priced_links": len(prices)}, [], ""


def _certificate(name: str) -> _Read:
    lines = read_text(name).split("\n")
    keys = ("schedule", "instructions", "facts", "claims")
    facts = dict(line.split(" ", 1) for line in lines[1:5] if " " in line)
    # A certificate ends with a fixed line, by which a certificate that was cut off is recognized.
    if lines[0] != "unisono-certificate 1" or tuple(facts) != keys or lines[5:6] + lines[-2:] != ["order", "end", ""]:
        raise ValueError("no certificate has these lines")
    return facts, [], ""


def _table(name: str) -> _Read:
    return {}, [_flat(row) for row in read_table(name)], ""


def _report(name: str) -> _Read:
    report = read_json(name)
    rows: list[dict[str, Any]] = next((report[key] for key in _TABLES if report.get(key)), [])
    if "forwards" in report:
        rows = [{key: row[key] for key in _OF_FORWARDS} for row in report["forwards"]]
        for part in (value for value in report.values() if isinstance(value, dict)):
            part.update({key: len(of) for key, of in part.items() if isinstance(of, list)})
    if points := report.get("points"):
        # Values that all points share are facts, other values are columns.
        alike = {key for key in points[0] if key in report and all(point[key] == report[key] for point in points)}
        rows = [{key: point[key] for key in [key for key in point if key not in alike][:_COLUMNS]} for point in points]
        report = {key: value for key, value in report.items() if key in alike or key not in points[0]}
    return (
        {key: value for key, value in report.items() if not isinstance(value, list)},
        [_flat(row) for row in rows],
        "",
    )


def _probe(name: str) -> _Read:
    report = read_json(name)
    rows = [{**row, "or": " ".join(row["or"])} for row in report["links"]]
    kept = {key: value for key, value in report.items() if not isinstance(value, list | dict)}
    return kept | {"untested": len(report["untested"])}, rows, ""


def _diagnosis(name: str) -> _Read:
    report = read_json(name)
    rows = [
        {key: row[key] for key in _OF_FINDINGS}
        | {f"{key}_us": _microseconds(row[key]) for key in ("measured", "expected", "ceiling")}
        for row in report["findings"]
    ]
    facts = {"machine": report["machine"], "library": report["library"], "times": len(report["times"])}
    return facts, rows, "\n".join(report["sentences"])


def _expectation(name: str) -> _Read:
    report = read_json(name)
    rows = [
        {"bytes": row["bytes"]}
        | {f"{key}_us": _microseconds(row[key]) for key in ("ceiling", "library", "plan")}
        | {f"{key}_busbw": row["busbw"][key] for key in ("ceiling", "library", "plan")}
        | {"algorithm": row["algorithm"]}
        for row in report["rows"]
    ]
    return {key: value for key, value in report.items() if not isinstance(value, list)}, rows, ""


def _microseconds(seconds: float | None) -> float | None:
    return None if seconds is None else float(f"{seconds * 1e6:.4g}")


def _part(name: str) -> _Read:
    part = read_json(name)
    points = part.pop("points")
    # The text of the request is not shown, because it only distinguishes parts of different sweeps.
    part.pop("asked", None)
    return part, [{key: _flat(row)[key] for key in list(row)[:_COLUMNS]} for row in points], ""


def _sweep(name: str) -> _Read:
    rows: list[dict[str, Any]] = list(csv.DictReader(read_text(name, MOST_DESCRIPTION_BYTES).splitlines()))
    # The CSV reader gives None as the title of cells beyond the titles.
    few = [{key: row[key] for key in list(row)[:_COLUMNS] if key is not None} for row in rows]
    return {"points": len(rows)}, few, ""


def _trace(name: str) -> _Read:
    # Traces of many nodes do not fit into memory, so events are counted one by one while they are read.
    names: list[str] = []
    kinds: Counter[str] = Counter()
    events, first, last = 0, math.inf, -math.inf
    others: dict[str, Any] = {}
    for key, value in members(name, "traceEvents"):
        if key == "otherData":
            others = value
        if key != "traceEvents":
            continue
        events += 1
        if value.get("name") == "process_name":
            names.append(value["args"]["name"])
        if value.get("ph") == "X":
            kinds[value["name"]] += 1
            begin, end = float(value["ts"]), float(value["ts"]) + float(value["dur"])
            if not (math.isfinite(begin) and math.isfinite(end)):
                times = f"event {events} begins at {begin} and ends at {end}"
                raise InputError(f"'{title(name)}': {times}; accepted are finite numbers")
            first, last = min(first, begin), max(last, end)
    rows = [{"event": kind, "count": count} for kind, count in kinds.most_common()]
    facts = {
        "subject": "; ".join(names),
        "events": events,
        "begins_microseconds": round(first, 6) if kinds else 0.0,
        "microseconds": round(last, 6) if kinds else 0.0,
        **others,
    }
    return facts, rows, ""


def _program(name: str) -> _Read:
    if is_task_program(name):
        return _tasks(read_json(name))
    try:
        graph = read_workload(name)
    except InputError:
        _refuse_other_json(name)
        raise
    text = read_text(name) if name.endswith((".goal", ".hlo", ".toml")) else ""
    return {"name": graph.name, "format": graph.format, "ranks": graph.ranks, "nodes": sum(graph.nodes)}, [], text


def _refuse_other_json(name: str) -> None:
    """Names the keys of a JSON file that is no program, with the commands whose JSON is accepted."""
    if not name.endswith(".json") or not read_bytes(name).lstrip().startswith(b"{"):
        return
    keys = list(dict.fromkeys(key for key, _ in members(name, "traceEvents")))
    if not {"traceEvents", "workload_graph"} & set(keys):
        listed = ", ".join([*map(shown, keys[:_KEYS]), *(["..."] if len(keys) > _KEYS else [])])
        raise InputError(
            f"'{title(name)}' is an object of JSON with {counted(len(keys), 'key')} ({listed}); accepted are "
            "schedules, plans for GPUs, decision tables, traces, programs, rules for libraries, and the output of "
            f"{', '.join(REPORTED)} with --json"
        ) from None


def _tasks(program: dict[str, Any]) -> _Read:
    rows = [
        {
            "task": task.get("name"),
            "range": task["range"],
            "accesses": ", ".join(f"{a['mode']} {a['buffer']} {a['mapper']['kind']}" for a in task.get("accesses", [])),
        }
        for task in program["tasks"]
    ]
    return {"format": "tasks", "buffers": len(program["buffers"]), "tasks": len(rows)}, rows, ""


def _rules(name: str) -> _Read:
    text = read_text(name, MOST_DESCRIPTION_BYTES)
    return {"format": rules_of(text.encode()[:HEAD])}, [], text


def _words(params: dict[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in params.items())


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    return {name: _words(value) if isinstance(value, dict) else value for name, value in row.items()}


#: The reader of each form.
_READERS: dict[str, Callable[[str], _Read]] = {
    "plan for MPI programs": _plan_file,
    CERTIFICATE: _certificate,
    BOUND: _bound_certificate,
    GPU_PLAN: _gpu_plan,
    SCHEDULE: _schedule,
    PROBE: _probe,
    DIAGNOSIS: _diagnosis,
    EXPECTATION: _expectation,
    "decision table": _table,
    "report": _report,
    "trace": _trace,
    "part of a sweep": _part,
    "sweep": _sweep,
    "rules for a library": _rules,
    MACHINE: _machine,
    PROGRAM: _program,
}
