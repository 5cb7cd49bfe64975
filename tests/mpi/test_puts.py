"""Unchanged schedules of recursive multiplying can be run by one-sided puts."""

import json
from pathlib import Path

import pytest
import unisono as un

from ..python.test_mpi import MPICH, OPEN_MPI, SOURCES
from .launching import launch


@pytest.mark.parametrize(("environment", "ranks"), [(OPEN_MPI, 6), (MPICH, 4)])
def test_puts_run_the_schedules_of_recursive_multiplying(tmp_path: Path, environment: Path, ranks: int) -> None:
    schedules = {6: ["a6", "a3,a2", "a2,a3", "c4m2,a4,e4m2"], 4: ["a4", "a2,a2"]}[ranks]
    files, messages = [], []
    for at, text in enumerate(schedules):
        made = un.plan(
            "allreduce", "archer", shape=ranks, elements=4, algorithm="recursive-multiplying", params={"schedule": text}
        ).schedule
        files.append(tmp_path / f"{at}.sched")
        files[-1].write_text(made.to_json())
        messages.append(len(json.loads(made.to_json())["streams"]))
    done = launch(environment, ranks, SOURCES / "puts.py", *files)
    assert (done.returncode, done.stdout.splitlines()) == (0, [f"ok {n}" for n in messages]), done.stdout + done.stderr
