"""`unisono diagnose`: the slow sizes in logs of collectives, their likely causes and remedies."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

import unisono
from unisono import InputError
from unisono.base.files import read_bytes, title
from unisono.base.messages import size_text
from unisono.cli._options import json_option, log_ranks_option, tolerance_option
from unisono.cli._output import (
    counted,
    microseconds,
    print_json,
    print_lines,
    print_notes,
    print_table,
    progress,
)
from unisono.cli._types import MACHINE
from unisono.logs.benchmarks import Log, read_logs
from unisono.logs.collectives import Measured
from unisono.logs.expectations import Expected, Key, expected_times, key_of, library_of
from unisono.logs.findings import TOLERANCE, Finding, findings, sentences
from unisono.logs.hangs import Hang, hangs, is_dump, read_dump
from unisono.logs.library_calibration import preset_of
from unisono.logs.ras import is_ras, ras_hangs, read_ras
from unisono.logs.rows import MOST_BYTES

__all__ = ["diagnose"]

_SHOWN = 30
_SENTENCES = 3


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="LOG...")
@click.option(
    "--machine",
    type=MACHINE,
    metavar="NAME|FILE",
    help="The machine of the logs [the preset of the GPUs, if all logs are of one box and name them; else none, and "
    "times are compared only with each other].",
)
@click.option(
    "--as",
    "behaves_as",
    metavar="LIBRARY",
    help="Compare with the times of this library: nccl, rccl, openmpi or mpich [nccl or rccl by the machine's GPUs; "
    "without GPUs, the times of the best plan].",
)
@log_ranks_option(1)
@click.option(
    "--nodes",
    type=click.IntRange(1),
    metavar="N",
    help="Number of nodes, for logs that do not state their ranks [1].",
)
@tolerance_option(TOLERANCE)
@json_option
def diagnose(
    files: tuple[str, ...],
    machine: str | None,
    behaves_as: str | None,
    ranks: int | None,
    nodes: int | None,
    tolerance: float,
    as_json: bool,
) -> int:
    """Lists the times in logs that are too long, with causes and remedies, or the calls of a hang.

    A LOG is the output of nccl-tests, rccl-tests, the OSU benchmarks, IMB-MPI1, ReproMPI, the inspector of NCCL or
    RCCL, or `unisono tune --json`, or a table in CSV. Several logs are compared with each other. Dumps of PyTorch's
    flight recorder, one of each rank, show which ranks wait for which, and so do reports of NCCL's RAS, in the order of
    time. Exit code 1: there are findings or hangs.
    """
    contents = [(path, read_bytes(path, MOST_BYTES)) for path in files]
    for recognizes, shows in ((is_dump, _hangs), (is_ras, _of_ras)):
        if any(recognizes(data) for _, data in contents):
            _refuse_with_dumps(machine=machine, as_=behaves_as, ranks=ranks, nodes=nodes)
            return shows(contents, as_json)
    if nodes is not None and ranks is None:
        raise InputError(f"--nodes {nodes} is for logs that do not state their ranks; give --ranks too, or drop it")
    if nodes is not None and ranks is not None and nodes > ranks:
        raise InputError(f"--nodes is {nodes}, and --ranks {ranks} are on at most as many nodes")
    logs = _labelled(read_logs(files, ranks, nodes))
    points = [point for log in logs for point in log.points]
    notes = [one for log in logs for one in log.left_out]
    if machine is None and behaves_as is not None:
        raise InputError("--as names a library, whose times depend on the machine; name that with --machine")
    if machine is None and {point.nodes for point in points} == {1}:
        try:
            machine = preset_of([point for point in points if point.ranks > 1])
            notes.append(f"the GPUs are those of {machine}; name another machine with --machine")
        except (InputError, ValueError):
            machine = None
    expected: dict[Key, Expected] = {}
    library = None
    if machine is not None:
        on = unisono.machine(machine)
        library = library_of(on, behaves_as)
        with progress("expecting") as on_time:
            expected, left_out = expected_times(on, points, library, on_time)
        notes += left_out
    else:
        notes.append("without --machine, times are compared with each other only")
    found = findings(logs, tolerance, expected)
    remarks = [(log.label, remark) for log in logs for remark in log.remarks if not remark.is_apart]
    if as_json:
        print_json(
            {
                "diagnosis_of": len(logs),
                "machine": machine,
                "library": library,
                "logs": [{"log": log.label, "times": len(log.points)} for log in logs],
                "findings": [of.report() for of in found],
                "remarks": [{"log": log, "words": of.words, "advice": of.advice} for log, of in remarks],
                "sentences": sentences(logs, found, _SENTENCES),
                "notes": notes,
                "times": [_time(log, point, expected.get(key_of(point))) for log in logs for point in log.points],
            }
        )
        return 1 if found else 0
    beside = f", beside {machine}{f' as {library}' if library else ''}" if machine is not None else ""
    print_lines(
        f"{counted(len(points), 'time')} of {counted(len(logs), 'log')}{beside}: {counted(len(found), 'finding')}"
    )
    print_notes(notes)
    if found:
        _print(found, len(logs))
    if remarks:
        print_lines("", "the logs show:", *(f"  {log}: {of.words}; {of.advice}" for log, of in remarks))
    if found:
        print_lines("", *(f"{at}. {text}" for at, text in enumerate(sentences(logs, found, _SENTENCES), 1)))
    return 1 if found else 0


def _time(log: Log, point: Measured, expected: Expected | None) -> dict[str, Any]:
    """Returns a measured and an expected time in seconds, for JSON."""
    return {
        "log": log.label,
        "collective": point.collective,
        "ranks": point.ranks,
        "nodes": point.nodes,
        "bytes": point.bytes,
        "measured": point.seconds,
        "expected": None if expected is None else expected.seconds,
        "ceiling": None if expected is None else expected.ceiling,
    }


def _refuse_with_dumps(**options: object) -> None:
    for name, value in options.items():
        if value is not None:
            raise InputError(f"--{name.rstrip('_')} is for logs of times, and these are dumps of calls; drop it")


def _hangs(contents: list[tuple[str, bytes]], as_json: bool) -> int:
    """Prints the calls in dumps that can never complete."""
    dumps = [(path, read_dump(data, title(path))) for path, data in contents]
    of_files = [{"log": path, "rank": dump.rank} for path, dump in dumps]
    return _print_hangs(hangs([dump for _, dump in dumps]), [], of_files, counted(len(dumps), "dump"), as_json)


def _of_ras(contents: list[tuple[str, bytes]], as_json: bool) -> int:
    """Prints the communicators in reports of RAS whose ranks differ; reports must be in the order of time."""
    reports = [read_ras(data, title(path)) for path, data in contents]
    found, notes = ras_hangs(reports)
    of_files = [{"log": path, "rank": None} for path, _ in contents]
    head = f"{counted(len(reports), 'report')} of {counted(reports[-1].communicators, 'communicator')}"
    return _print_hangs(found, notes, of_files, head, as_json)


def _print_hangs(found: list[Hang], notes: list[str], of_files: list[dict[str, Any]], head: str, as_json: bool) -> int:
    if as_json:
        reports = [{name: value for name, value in vars(hang).items() if name != "noun"} for hang in found]
        sentences_of = [of.words for of in found]
        print_json({"dumps": of_files, "hangs": reports, "findings": [], "sentences": sentences_of, "notes": notes})
        return 1 if found else 0
    print_lines(f"{head}: {counted(len(found), 'hang')}")
    print_notes(notes)
    if found:
        print_lines("", *(f"{at}. {hang.words}" for at, hang in enumerate(found[:_SHOWN], 1)))
    return 1 if found else 0


def _labelled(logs: list[Log]) -> list[Log]:
    """Returns the logs with file names as labels, or with paths if two file names are equal."""
    names = [Path(log.label).name for log in logs]
    if len({*names}) < len(names):
        return logs
    return [replace(log, label=name) for name, log in zip(names, logs, strict=True)]


def _print(found: list[Finding], logs: int) -> None:
    print_lines("")
    columns = ["finding", "collective", "ranks", "at", "sizes", "µs", "expected, µs", "ceiling, µs", "ratio"]
    rows: list[list[Any]] = [
        [
            of.kind,
            of.collective,
            str(of.ranks),
            size_text(of.bytes),
            str(of.sizes),
            microseconds(of.measured),
            microseconds(of.expected),
            "-" if of.ceiling is None else microseconds(of.ceiling),
            f"{of.ratio:.2f}",
            *([of.log] if logs > 1 else []),
        ]
        for of in found[:_SHOWN]
    ]
    print_table([*columns, *(["log"] if logs > 1 else [])], rows, right=columns[2:])
    if len(found) > _SHOWN:
        print_lines(f"and {len(found) - _SHOWN} more: --json")
