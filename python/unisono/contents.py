"""What is in a file that Unisono writes or reads; see :func:`contents`.

A form of file is one entry of :data:`FORMS`: how its beginning is recognised, and how its contents are described.
"""

import csv
import math
import os
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unisono._core import InputError
from unisono.base.facts import has_root
from unisono.base.files import (
    MOST_DESCRIPTION_BYTES,
    check_regular,
    exists,
    file_name,
    load,
    read_bytes,
    read_json,
    read_text,
    title,
)
from unisono.base.json_streams import members
from unisono.machines.descriptions import machine
from unisono.planning.gpu_plans import check_gpu_plan, is_gpu_plan
from unisono.planning.plan_files import load_plans
from unisono.planning.programs import read_workload

__all__ = ["BOUND", "FORMS", "SCHEDULE", "Contents", "Form", "contents", "form_of"]

#: The names of the forms of certificates.
BOUND = "certificate of a bound"
SCHEDULE = "certificate of a schedule"

#: Bytes of a file by which its form is recognised.
_HEAD = 4096
#: Lines of a text that are shown where no more is asked for.
_LINES = 12


@dataclass(frozen=True)
class Contents:
    """The contents of one file."""

    file: str
    #: The name of its form, as in ``schedule``.
    form: str
    #: Facts by name, with the types of JSON.
    facts: dict[str, Any]
    #: Rows of a table by column, where the file has one.
    rows: list[dict[str, Any]]
    #: The text itself, or the first lines of it.
    text: str = ""

    def report(self) -> dict[str, Any]:
        """The contents as one object of JSON."""
        return {"file": self.file, "form": self.form, **self.facts, "rows": self.rows}


@dataclass(frozen=True)
class Form:
    """A form of file."""

    name: str
    #: Whether a file is of the form, by its name and its first bytes.
    recognises: Callable[[str, bytes], bool]
    #: The facts, the rows of the table, and the text.
    read: Callable[[str], tuple[dict[str, Any], list[dict[str, Any]], str]]


_Read = tuple[dict[str, Any], list[dict[str, Any]], str]


def contents(path: str | os.PathLike[str], *, lines: int | None = _LINES) -> Contents:
    """What is in a file: a schedule, a plan, a machine, a certificate, a report, a sweep, a trace, a program.

    ``lines`` are the most lines of a text that are kept (None: all). The contents of a ``.plan`` are proved as they are
    before use; a schedule is only read.

    Raises:
        InputError: no such file, a form that is not known, or a damaged file.
        OSError: it cannot be read.

    """
    name = file_name(path)
    if not exists(name):
        raise InputError(f"there is no file '{title(path)}'")
    head = b"" if Path(name).is_dir() else _beginning(name)
    form = next((form for form in FORMS if form.recognises(name, head)), None)
    if form is None:
        known = ", ".join(dict.fromkeys(form.name for form in FORMS))
        raise InputError(f"'{title(path)}' is of no form that is known; known are {known}")
    try:
        facts, rows, text = form.read(name)
        columns = list(dict.fromkeys(column for row in rows for column in row))
        rows = [{column: row.get(column) for column in columns} for row in rows]
    except (AttributeError, KeyError, IndexError, TypeError, ValueError, OverflowError, csv.Error):
        # JSON and CSV of other makers may begin like ours, and hold something else.
        raise InputError(f"'{title(path)}' begins like a {form.name}, and is damaged or something else") from None
    if lines is not None:
        kept = text.split("\n", lines)
        text = "\n".join([*kept[:lines], "..."]) if len(kept) > lines and kept[lines].strip() else text
    return Contents(title(path), form.name, facts, rows, text)


def form_of(path: str | os.PathLike[str]) -> str | None:
    """The name of a file's form by its name and its first bytes; None where it has none that is known."""
    name = file_name(path)
    head = b"" if Path(name).is_dir() else _beginning(name)
    return next((form.name for form in FORMS if form.recognises(name, head)), None)


def _beginning(name: str) -> bytes:
    check_regular(name)
    with Path(name).open("rb") as file:
        return file.read(_HEAD)


def _schedule(name: str) -> _Read:
    schedule = load(name)
    where = schedule.machine
    facts = {
        "collective": schedule.collective,
        "ranks": schedule.ranks,
        "elements": schedule.elements,
        "dtype": schedule.dtype,
        "operator": schedule.operator,
        "root": schedule.root,
        "origin": schedule.origin,
        "phases": schedule.phases,
        "nodes": schedule.nodes,
        "streams": schedule.streams,
        "instructions": schedule.instructions,
        "machine": None if where is None else where.name,
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
    prices = stated.pop("prices", [])
    places = stated.pop("places", [])
    if not has_root(str(stated.get("collective"))):
        stated["root"] = None
    return {**stated, "ranks": len(places), "priced_links": len(prices)}, [], ""


def _certificate(name: str) -> _Read:
    text = read_text(name)
    facts = dict(line.split(" ", 1) for line in text.split("\norder\n", 1)[0].split("\n")[1:] if " " in line)
    return facts, [], ""


def _report(name: str) -> _Read:
    report = read_json(name)
    rows = report.pop("candidates", None) or report.pop("collectives", None) or []
    return (
        {key: value for key, value in report.items() if not isinstance(value, list)},
        [_flat(row) for row in rows],
        "",
    )


def _sweep(name: str) -> _Read:
    rows: list[dict[str, Any]] = list(csv.DictReader(read_text(name, MOST_DESCRIPTION_BYTES).splitlines()))
    # Cells beyond the titles have None as their title.
    return {"points": len(rows)}, [{key: row[key] for key in list(row)[:8] if key is not None} for row in rows], ""


def _trace(name: str) -> _Read:
    # Traces of many nodes are larger than memory holds as objects, so an event is counted when it is read.
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
    graph = read_workload(name)
    text = read_text(name) if name.endswith((".goal", ".hlo", ".toml")) else ""
    return {"name": graph.name, "format": graph.format, "ranks": graph.ranks, "nodes": sum(graph.nodes)}, [], text


#: Lines of rules for NCCL, for NCCLX (sizes as an interval) and for UCC, without comments.
_OF_NCCL = r"(allgather|allreduce|broadcast|reduce|reducescatter) *, *{} *, *\w+ *, *(ll|ll128|simple|\*) *,"
_RULES = (
    ("openmpi-json", r'\s*{(?s:.*)"rule_file_version"'),
    ("mpich-json", r'\s*{\s*"collective=\w+"'),
    ("ucc", r"\s*(export +)?UCC_\w+_TUNE *="),
    ("nccl-tuner-csv", r"\s*" + _OF_NCCL.format(r"\d+ *, *\d+")),
    ("ncclx-csv", r"\s*" + _OF_NCCL.format(r"(\d+|\*|[\[(]\d* *, *\d*[\])])")),
)


def _rules_of(head: bytes) -> str | None:
    """The format of a file of rules for a library, by its first bytes without comments."""
    text = head.decode("utf-8", "replace")
    whole = len(head) < _HEAD
    kept = "\n".join(line.partition("#")[0] for line in (text if whole else text.rpartition("\n")[0]).split("\n"))
    found = next((name for name, begin in _RULES if re.match(begin, kept)), None)
    return found or ("openmpi-rules" if _are_rules_of_openmpi(kept.split(), whole) else None)


def _are_rules_of_openmpi(words: list[str], whole: bool) -> bool:
    """Return whether words are classic rules of Open MPI, or where the file is longer, the beginning of such rules.

    Numbers follow counts of what follows: collectives, sizes of communicators, messages of four numbers (five in
    version 2).
    """
    version = re.fullmatch(r"rule-file-version-(\d+)", words[0]) if words else None
    numbers = words[1:] if version else words
    if not all(word.isascii() and word.isdigit() and len(word) < 20 for word in numbers):
        return False
    width = 5 if version and int(version[1]) > 1 else 4
    left = iter(map(int, numbers))
    try:
        collectives = next(left)
        for _ in range(collectives):
            next(left)
            for _ in range(next(left)):
                next(left)
                for _ in range(next(left) * width):
                    next(left)
    except StopIteration:
        return not whole and len(numbers) > _MANY
    return collectives > 0 and next(left, None) is None


#: Numbers after which cut off rules of Open MPI are taken for such rules.
_MANY = 64


def _rules(name: str) -> _Read:
    text = read_text(name, MOST_DESCRIPTION_BYTES)
    return {"format": _rules_of(text.encode()[:_HEAD])}, [], text


def _words(params: dict[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in params.items())


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    return {name: _words(value) if isinstance(value, dict) else value for name, value in row.items()}


def _begins(*marks: str) -> Callable[[str, bytes], bool]:
    return lambda _, head: head.startswith(tuple(mark.encode() for mark in marks))


def _ends(*endings: str) -> Callable[[str, bytes], bool]:
    return lambda name, _: name.endswith(endings)


def _holds(*keys: str) -> Callable[[str, bytes], bool]:
    """Whether a file is JSON whose beginning names all these keys."""
    return lambda _, head: head.lstrip()[:1] == b"{" and all(f'"{key}"'.encode() in head for key in keys)


def _is_machine(name: str, head: bytes) -> bool:
    return name.endswith(".toml") and re.search(rb"^kind *=", head, re.MULTILINE) is not None


def _is_program(name: str, head: bytes) -> bool:
    endings = (".et", ".et.gz", ".goal", ".hlo", ".toml", ".json", ".txt")
    return Path(name).is_dir() or name.endswith(endings) or head.startswith((b"num_ranks", b"HloModule"))


#: The forms, asked in this order.
FORMS = (
    Form("plan for MPI programs", _begins("UNISPLAN"), _plan_file),
    Form(SCHEDULE, _begins("unisono-certificate"), _certificate),
    # Of a large machine, the prices stand behind the part of the file that is looked at.
    Form(BOUND, lambda _, head: re.search(rb'"format" *: *"unisono-bound ', head) is not None, _bound_certificate),
    Form("plan for GPUs", lambda name, _: is_gpu_plan(name), _gpu_plan),
    Form("schedule", _begins("unisono-schedule", "unisono registers"), _schedule),
    Form("schedule", _holds("version", "phases", "nodes"), _schedule),
    Form("schedule", _ends(".xml"), _schedule),
    Form("report", _holds("collective", "machine", "algorithm"), _report),
    Form("trace", _holds("traceEvents"), _trace),
    Form("sweep", _begins("shape,elements,best"), _sweep),
    Form("rules for a library", lambda _, head: _rules_of(head) is not None, _rules),
    Form("machine", _is_machine, _machine),
    Form("program", _is_program, _program),
)
