"""Timed commands of the program."""

import os
import resource
import shlex
import subprocess
import sys
import time
from pathlib import Path

PROGRAM = Path(sys.executable).with_name("unisono")
#: Commands without an option `--jobs` for the number of cores; `taskset` limits their cores.
BY_TASKSET = ("allocate", "discover", "emit", "topology", "traffic")


def timed(command: str, jobs: int) -> tuple[float, float, bytes]:
    """Runs a command on `jobs` cores; returns its wall seconds, its CPU seconds, and its standard output."""
    name, *_ = words = shlex.split(command)
    given = ["taskset", "-c", f"0-{jobs - 1}"] if name in BY_TASKSET else []
    given += [str(PROGRAM), *words, *([] if name in BY_TASKSET else ["--jobs", str(jobs)])]
    return run(given)


def run(words: list[str], folder: str | None = None) -> tuple[float, float, bytes]:
    """Runs a program in a folder; returns its wall seconds, its CPU seconds, and its standard output."""
    # An installation compiles the modules once; with this variable, each start of the program would compile them.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    out = subprocess.run(words, stdout=subprocess.PIPE, check=True, cwd=folder, env=env).stdout
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, out
