"""Under mpiexec: programs one after the other, in one start of the ranks.

Usage: together.py FILE. FILE is a JSON list of cases: ``words``, a Python script with arguments, or ``unisono`` with a
command; ``env``, variables; ``on``, the only rank that runs the case, or null; ``fails``, true if the case may end with
an error: other errors end all ranks. FILE.done becomes a list with the exit code, standard output and standard error of
each rank in each case.
"""

import contextlib
import json
import os
import runpy
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO
from unittest.mock import patch

from mpi4py import MPI

COMM = MPI.COMM_WORLD


def run(words: list[str]) -> int:
    """Returns the exit code of a script or of a command."""
    if words[0] == "unisono":
        from unisono.cli import main

        return main(words[1:])
    try:
        with patch.object(sys, "argv", words):
            runpy.run_path(words[0], run_name="__main__")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


@contextlib.contextmanager
def caught(stream: TextIO) -> Iterator[list[str]]:
    """Yields a list, which at the end gets the text that Python or the library wrote to a stream."""
    text: list[str] = []
    stream.flush()
    kept = os.dup(stream.fileno())
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), stream.fileno())
        try:
            yield text
        finally:
            stream.flush()
            os.dup2(kept, stream.fileno())
            os.close(kept)
            file.seek(0)
            text.append(file.read().decode(errors="replace"))


def carry_out(case: dict[str, Any]) -> tuple[int, str, str]:
    """Runs a case on this rank, unless it is for another one."""
    if case["on"] not in (None, COMM.rank):
        return 0, "", ""
    with caught(sys.stdout) as out, caught(sys.stderr) as err, patch.dict(os.environ, case["env"]):
        try:
            code = run(case["words"])
        except Exception:
            code = 1
            traceback.print_exc()
    if code and not case["fails"]:
        sys.stderr.write(f"rank {COMM.rank}, {case['words']}: {code}\n{out[0]}{err[0]}\n")
        sys.stderr.flush()
        COMM.Abort(1)
    return code, out[0], err[0]


def main(file: Path) -> None:
    """Runs the cases of a file; if one of them does not end, standard error names it last."""
    done = []
    for case in json.loads(file.read_text()):
        if COMM.rank == 0:
            sys.stderr.write(f"begins {case['words']}\n")
            sys.stderr.flush()
        done.append(COMM.gather(carry_out(case)))
        # Rank 0 may write files that other ranks read in the next case.
        COMM.Barrier()
    if COMM.rank == 0:
        file.with_suffix(".done").write_text(json.dumps(done))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
