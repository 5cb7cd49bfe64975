"""A Dask cluster on this computer, and studies on it that are killed."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from common.commands import PROGRAM

#: The time for which Dask tries to reach a lost worker, by default 30 s.
PATIENCE = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "1s"}


def sweep(points: int) -> list[str]:
    """Returns the words of a sweep with about `points` points: 20 lengths on rising numbers of ranks."""
    lengths, ranks = (1 << power for power in range(20)), range(2, 2 + points // 20)
    asked = ["--ranks", ",".join(map(str, ranks)), "--elements", ",".join(map(str, lengths))]
    return ["sweep", "allreduce", "--machine", "archer", "--algorithms", "ring,recursive-doubling", *asked]


@contextmanager
def cluster(folder: Path, workers: int = 2) -> "Iterator[tuple[Path, list[subprocess.Popen[bytes]]]]":
    """Starts a scheduler and single-threaded workers; yields the scheduler's file, and all processes, in this order."""
    file = folder / "scheduler.json"
    processes: list[subprocess.Popen[bytes]] = []

    def start(*words: str) -> None:
        command = [sys.executable, "-m", "dask", *words, "--scheduler-file", str(file), "--no-dashboard"]
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
        processes.append(subprocess.Popen(command, env={**os.environ, **PATIENCE}, **quiet))

    try:
        start("scheduler", "--host", "127.0.0.1", "--port", "0")
        while not file.exists():
            if processes[0].poll() is not None:
                raise SystemExit("the scheduler of Dask did not start")
            time.sleep(0.05)
        for _ in range(workers):
            start("worker", "--nthreads", "1", "--no-nanny")
        yield file, processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


def begin(command: list[str], folder: Path, *options: str) -> "subprocess.Popen[bytes]":
    """Starts a study, which writes `made.csv`, `points` and `errors` in a folder."""
    given = [str(PROGRAM), *command, *options, "--resume", "points", "-o", "made.csv"]
    with (folder / "errors").open("wb") as errors:
        return subprocess.Popen(given, stdout=subprocess.DEVNULL, stderr=errors, cwd=folder)


def kept(folder: Path) -> int:
    """Counts the points that a study in a folder kept."""
    file = folder / "points"
    return max(file.read_bytes().count(b"\n") - 1, 0) if file.exists() else 0


def wait_for_points(folder: Path, count: int, study: "subprocess.Popen[bytes]") -> int:
    """Waits until a study has kept `count` points, or has ended, and returns the number of kept points."""
    while study.poll() is None and kept(folder) < count:
        time.sleep(0.01)
    return kept(folder)


def same(folder: Path, other: Path) -> bool:
    """Returns whether studies in two folders wrote the same bytes."""
    return (folder / "made.csv").read_bytes() == (other / "made.csv").read_bytes()


def errors(folder: Path) -> str:
    """Returns the standard error of the last study in a folder."""
    return (folder / "errors").read_text()
