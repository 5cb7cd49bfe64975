"""Seconds of tests and of crates: a plugin of pytest, and a program that prints cargo's report.

``pytest -p tools.timings`` lists at its end the tests and the files by processor time, including child processes;
``python -m tools.timings`` prints the crates of the newest ``cargo build --timings``.
"""

import json
import re
import resource
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROWS = 60


def _used() -> float:
    """Returns the processor seconds of this process and of its ended child processes."""
    found = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in found)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Starts the clocks of a test before its fixtures run."""
    item.stash[_BEGUN] = (_used(), time.perf_counter())
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Adds the seconds to the report of the teardown, which the worker sends to the main process."""
    report: Any = yield
    if report.when == "teardown":
        cpu, wall = item.stash[_BEGUN]
        report.user_properties.append(("seconds", [_used() - cpu, time.perf_counter() - wall]))
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Prints the tests and the files by processor seconds."""
    tests: dict[str, list[float]] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, seconds in getattr(report, "user_properties", []):
                if name == "seconds" and report.when == "teardown":
                    tests[report.nodeid] = seconds
    for of, key in (("test", str), ("file", lambda node: node.split("::")[0])):
        cpu: dict[str, float] = defaultdict(float)
        wall: dict[str, float] = defaultdict(float)
        for node, seconds in tests.items():
            cpu[key(node)] += seconds[0]
            wall[key(node)] += seconds[1]
        terminalreporter.write_line(f"{'processor s':>12} {'wall s':>8}  {of}")
        for name, spent in sorted(cpu.items(), key=lambda row: -row[1])[:ROWS]:
            terminalreporter.write_line(f"{spent:12.1f} {wall[name]:8.1f}  {name}")
    terminalreporter.write_line(f"{sum(cpu.values()):12.1f} {sum(wall.values()):8.1f}  all")


_BEGUN = pytest.StashKey[tuple[float, float]]()


def main() -> None:
    """Prints the crates of the newest report of cargo by seconds."""
    reports = sorted(Path("target/cargo-timings").glob("cargo-timing-*.html"))
    if not reports:
        print("no report of a build: run cargo build --release --timings after cargo clean")
        return
    found = re.search(r"UNIT_DATA = (\[.*?\]);", reports[-1].read_text(), re.DOTALL)
    units = json.loads(found[1]) if found else []
    crates = Counter[str]()
    for unit in units:
        crates[unit["name"]] += unit["duration"]
    for name, seconds in crates.most_common(ROWS):
        print(f"{seconds:12.1f}  {name}")


if __name__ == "__main__":
    main()
