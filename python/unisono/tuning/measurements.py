"""Reads measurements of collectives in the format of the benchmark suite PICO (github.com/HLC-Lab/pico).

A folder has, for each system, a file ``<system>_metadata.csv`` with a row for each test, and the tests in folders
``<system>/<timestamp>/<test_id>``. A test has a file ``<elements>_<algorithm>_<dtype>.csv`` for each point, whose
column ``highest`` has the time of the slowest rank in nanoseconds, one line for each iteration. Warm-up iterations, if
recorded, are the first fifth.
"""

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from statistics import median

from unisono._core import InputError
from unisono.base.messages import shown

__all__ = ["Point", "read_pico"]

_FILE = re.compile(r"(\d{1,15})_(.+)_(int8|char|int16|int32|int|int64|float|double)")
_BYTES = {"int8": 1, "char": 1, "int16": 2, "int32": 4, "int": 4, "int64": 8, "float": 4, "double": 8}
_COLUMNS = ("timestamp", "test_id", "nnodes", "tasks_per_node", "collective_type", "mpi_lib", "gpu_awareness")
#: Libraries whose files have no warm-up iterations.
_WARM = ("FJMPI",)


@dataclass(frozen=True)
class Point:
    """The time of one algorithm at one size in one test."""

    system: str
    #: The properties that tests with comparable times share: the MPI library, ranks on a node, memory of GPUs.
    setting: tuple[str, ...]
    #: The name of a test: one run of the benchmark on one set of nodes.
    test: str
    collective: str
    ranks: int
    bytes: int
    algorithm: str
    #: The median time of the even iterations, for the choice; ``again`` is that of the odd iterations, to judge the
    #: choice.
    seconds: float
    again: float


def read_pico(folder: str | Path) -> tuple[list[Point], int]:
    """Returns the points of a folder of results, and the number of skipped files in other formats."""
    root = Path(folder)
    tables = sorted(root.glob("*_metadata.csv")) if root.is_dir() else []
    if not tables:
        raise InputError(f"{shown(str(root))} has no file '<system>_metadata.csv', as a folder of PICO's results has")
    points, passed = [], 0
    for table in tables:
        system = table.name.removesuffix("_metadata.csv")
        for row in _rows(table):
            test = root / system / row["timestamp"] / row["test_id"]
            for path in sorted(test.glob("*.csv")):
                point = _point(path, system, row)
                passed += point is None
                points += [point] if point else []
    if not points:
        raise InputError(
            f"{shown(str(root))} has no '<system>/<timestamp>/<test_id>/<elements>_<algorithm>_<dtype>.csv' of the"
            " tests in its metadata; archives (.tar.gz) have to be unpacked there"
        )
    return points, passed


def _rows(table: Path) -> Iterator[dict[str, str]]:
    with table.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        missing = [name for name in _COLUMNS if name not in (reader.fieldnames or [])]
        if missing:
            raise InputError(f"{shown(str(table))}: column '{missing[0]}' is missing")
        for row in reader:
            if None in row.values() or not all(map(_is_folder, (row["timestamp"], row["test_id"]))):
                raise InputError(f"{shown(str(table))}, line {reader.line_num}: the row is not that of a test")
            yield row


def _is_folder(name: str) -> bool:
    return re.fullmatch(r"[\w-]+", name, re.ASCII) is not None


def _point(path: Path, system: str, row: dict[str, str]) -> Point | None:
    """Returns the point of a file; None if its name or contents have another format, or under two times are left."""
    name = _FILE.fullmatch(path.stem)
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    if name is None or not lines or lines[0].split(",")[0].strip() != "highest":
        return None
    try:
        # Fugaku's files end with a line of text.
        body = lines[1:-1] if lines[-1].startswith("Average") else lines[1:]
        times = [int(line.split(",")[0]) * 1e-9 for line in body]
        sides = [int(side) for side in (*row["nnodes"].split("x"), row["tasks_per_node"])]
    except ValueError:
        return None
    if row["mpi_lib"] not in _WARM:
        times = times[len(times) // 5 :]
    if len(times) < 2 or min(times) <= 0 or min(sides) < 1:
        return None
    elements, algorithm, dtype = name.groups()
    return Point(
        system,
        (row["mpi_lib"], row["tasks_per_node"], row["gpu_awareness"]),
        f"{system}/{row['timestamp']}/{row['test_id']}",
        row["collective_type"].lower(),
        prod(sides),
        int(elements) * _BYTES[dtype],
        algorithm,
        median(times[::2]),
        median(times[1::2]),
    )
