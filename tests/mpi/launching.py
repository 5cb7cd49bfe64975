"""Launches of Python programs under an environment's mpiexec: one, or several in one start of the ranks."""

import json
import os
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest

from ..python.conftest import ROOT, Ran, Shared
from ..python.test_mpi import OPEN_MPI, PATIENCE, YIELD

__all__ = ["REFUSED_FIT", "Case", "Started", "launch", "started_once", "together"]

#: A function from a number of ranks to the runs of each case, in rank order.
Started = Callable[[int], dict[str, list[Ran]]]

#: The beginning of the error of a calibration whose times other work disturbed, so that no machine fits them.
REFUSED_FIT = "error: no file is written, because by medians"
_RUNNER = ROOT / "tests" / "mpi" / "together.py"
_COUNT = count()


def launch(environment: Path, ranks: int, *arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs a Python program under an environment's mpiexec."""
    shared = ["--oversubscribe"] if environment == OPEN_MPI else []
    command = [str(environment / "bin" / "mpiexec"), *shared, "-n", str(ranks), str(environment / "bin" / "python")]
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    # PYTHONPATH provides the package and the tests' modules: the environment of MPICH has only MPI and NumPy.
    path = {"PYTHONPATH": f"{ROOT / 'python'}{os.pathsep}{ROOT}"}
    # With colorama installed, Numba writes color codes to standard output when a program ends.
    plain = {"NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING": "1"}
    done = subprocess.run(
        [*command, *map(str, arguments)],
        env={**os.environ, **YIELD, **root, **path, **plain, **variables},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    done.stdout, done.stderr = done.stdout.replace("\0", ""), done.stderr.replace("\0", "")
    return done


@dataclass(frozen=True)
class Case:
    """A script with its arguments, or a command after the word ``unisono``, for :func:`together`."""

    words: Sequence[str | Path]
    env: dict[str, str] = field(default_factory=dict)
    #: The only rank that runs the case; None for all ranks.
    on: int | None = None
    #: True if the case may end with an error; an error of any other case ends all ranks.
    fails: bool = False


def together(environment: Path, ranks: int, cases: Iterable[Case], folder: Path, **variables: str) -> list[list[Ran]]:
    """Runs cases one after the other in one start of the ranks, and returns the runs of each case, in rank order.

    One start serves all cases because it takes longer than most programs.
    """
    file = folder / f"cases{next(_COUNT)}.json"
    listed = [
        {"words": list(map(str, case.words)), "env": case.env, "on": case.on, "fails": case.fails} for case in cases
    ]
    file.write_text(json.dumps(listed))
    done = launch(environment, ranks, _RUNNER, file, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return [[Ran(*one) for one in runs] for runs in json.loads(file.with_suffix(".done").read_text())]


def started_once(
    name: str, cases: Callable[[int, Path], dict[str, Case]], shared: Shared, folders: pytest.TempPathFactory
) -> Started:
    """Returns a function that runs all cases in one start for all workers; ``name`` distinguishes files."""

    def of(ranks: int) -> dict[str, list[Ran]]:
        def compute() -> dict[str, list[Ran]]:
            folder = folders.mktemp(name)
            named = cases(ranks, folder)
            return dict(zip(named, together(OPEN_MPI, ranks, named.values(), folder), strict=True))

        found: dict[str, list[Ran]] = shared(f"{name}-{ranks}", compute)
        return found

    return of
