"""What tests of the program share: running it, in this process or as a process of its own."""

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from unisono.cli import main

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(sys.executable).with_name("unisono")

# Open MPI's transport over libfabric looks for network adapters for a second at every start of a program. The ranks of
# the tests are on one machine and send through shared memory with or without it.
os.environ.setdefault("OMPI_MCA_btl", "^ofi")


@dataclass(frozen=True)
class Ran:
    """What a run of the program left."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as the one JSON object that it must be."""
        return json.loads(self.out, parse_constant=_no_constant)


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")


def call(*arguments: str) -> Ran:
    """Runs the program in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(arguments)
    return Ran(code, out.getvalue(), err.getvalue())


def json_of(*arguments: str) -> Any:
    """The JSON object that a command prints; it must end with 0."""
    ran = call(*arguments, "--json")
    assert ran.code == 0, ran.err
    return ran.json


Spawn = Callable[..., Ran]


@pytest.fixture
def spawn(tmp_path: Path) -> Spawn:
    """Runs the program as a process, in an empty folder."""

    def run(*arguments: str) -> Ran:
        done = subprocess.run(
            [str(PROGRAM), *arguments],
            cwd=tmp_path,
            env={**os.environ, "COLUMNS": "80"},
            capture_output=True,
            text=True,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    return run
