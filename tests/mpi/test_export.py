"""Exported files in their libraries: the bits of float sums show which algorithm ran.

The bits with a file are compared with those of the same algorithm forced by a variable of the library and, if the
library adds in the order of our schedule, with those of the interpreter. Calls that the table lacks must not change.
"""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import unisono as un
from unisono.mpi import installations
from unisono.mpi._bits import given
from unisono.mpi.installations import Library

from ..python.conftest import ROOT, SOAK, call, json_of
from ..python.test_mpi import PATIENCE, Compile, compiled

__all__ = ["compiled"]

SHORT, LONG = 4096, 65536
CALLS = 8


def library(name: str) -> Library:
    found = installations.find(name)
    if found is None:
        pytest.skip(f"there is no {name}: neither in .venv nor in .venv-mpich, nor on the path")
    return found


def row(collective: str, ranks: int, first: int, last: int | None, algorithm: str, **params: str) -> dict[str, Any]:
    return {
        "collective": collective,
        "ranks": ranks,
        "first_bytes": first,
        "last_bytes": last,
        "algorithm": algorithm,
        "params": params,
    }


def table(folder: Path, *rows: dict[str, Any]) -> str:
    path = folder / "table.json"
    path.write_text(json.dumps({"unisono_table": 1, "rows": rows}))
    return str(path)


def allreduce(folder: Path) -> str:
    """Writes a table for four ranks: recursive doubling below 32 KiB, and a ring from 32 KiB on."""
    return table(
        folder,
        row("allreduce", 4, 0, 32767, "recursive-doubling"),
        row("allreduce", 4, 32768, None, "ring"),
    )


def ours(algorithm: str, ranks: int, size: int, machine: Path) -> str:
    """Returns the hash that `_bits.py` would print for our schedule of an algorithm, by the interpreter."""
    import hashlib

    machine.write_text('name = "m"\nkind = "endpoint"\nmodel = "hockney"\nalpha_ns = 1000\nbeta_ns_per_byte = 1\n')
    inputs = [np.array(given(rank, size // 4), np.float32) for rank in range(ranks)]
    plan = un.plan("allreduce", un.machine(machine, ranks), elements=size // 4, algorithm=algorithm)
    outputs = plan.schedule.interpret(inputs)
    hashes = {hashlib.sha256(output.tobytes()).hexdigest()[:8] for output in outputs}
    assert len(hashes) == 1
    return hashes.pop()


def forced_open_mpi(algorithm: int) -> list[str]:
    return ["--mca coll_tuned_use_dynamic_rules 1", f"--mca coll_tuned_allreduce_algorithm {algorithm}"]


def forced_mpich(algorithm: str) -> list[str]:
    return ["MPIR_CVAR_DEVICE_COLLECTIVES=none", f"MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM={algorithm}"]


def test_open_mpi_rules_take_effect(tmp_path: Path) -> None:
    mpi = library("Open MPI")
    out = tmp_path / "rules.conf"
    report = json_of("export", allreduce(tmp_path), "--format", "openmpi-rules", "-o", str(out))
    assert report["file"] == str(out)
    assert "run with Open MPI" in report["checked"]
    assert f"allreduce of {32768 + 3 & ~3} bytes on 4 ranks: result bits changed" in report["checked"]
    with_file, ring = mpi.bits(4, [SHORT, LONG], report["load"]), mpi.bits(4, [LONG], forced_open_mpi(4))
    doubling = {size: ours("recursive-doubling", 4, size, tmp_path / "m.toml") for size in (SHORT, LONG)}
    assert with_file == {SHORT: doubling[SHORT], LONG: ring[LONG]}
    assert ring[LONG] != doubling[LONG]


def test_open_mpi_rules_that_reorder_operands_are_named(tmp_path: Path) -> None:
    """A program with an operator that does not commute calls each algorithm by the size of its row."""
    mpi = library("Open MPI")
    kinds = {
        "allreduce": ["reduce-broadcast", "recursive-doubling", "ring", "rabenseifner"],
        "reduce": ["pipelined-chain", "binary-tree", "binomial", "reduce-scatter-gather"],
        "reduce-scatter": ["recursive-halving"],
    }
    # Every algorithm has its own sizes, because other collectives of the library call MPI_Reduce.
    order = {"binary-tree": {"order": "levels"}}
    named_kinds = [(kind, name) for kind, names in kinds.items() for name in names]
    calls = [(kind, 16 << 2 * at, name) for at, (kind, name) in enumerate(named_kinds)]
    rows = [row(kind, 4, size, 2 * size, name, **order.get(name, {})) for kind, size, name in calls]
    made = un.export(table(tmp_path, *rows), "openmpi-rules", tmp_path / "rules.conf")
    said = next(note for note in made["notes"] if "does not commute" in note)
    found = mpi.results(
        4, [(kind, size) for kind, size, _ in calls], made["load"], Path(__file__).with_name("ordered.py")
    )
    wrong = {call for call, word in found.items() if word == "wrong"}
    named = {"ring", "pipelined-chain", "binary-tree", "binomial"}
    assert wrong == {(kind, size) for kind, size, name in calls if name in named}
    assert "MPI_Allreduce under ring, MPI_Reduce under binary, MPI_Reduce under binomial, MPI_Reduce under" in said


@pytest.mark.parametrize("ranks", [pytest.param(3, marks=pytest.mark.soak), 5])
def test_open_mpi_rules_stay_with_their_rank_count(tmp_path: Path, ranks: int) -> None:
    mpi = library("Open MPI")
    # On any number of ranks the linear algorithm adds in its own order, so its bits would show that it ran.
    made = un.export(allreduce(tmp_path), "openmpi-rules", tmp_path / "rules.conf")
    default = mpi.bits(ranks, [LONG])
    if ranks == 5:
        assert default != mpi.bits(ranks, [LONG], forced_open_mpi(4))
    assert mpi.bits(ranks, [LONG], made["load"]) == default


def test_mpich_table_takes_effect(tmp_path: Path) -> None:
    mpi = library("MPICH")
    out = tmp_path / "table-mpich.json"
    report = json_of("export", allreduce(tmp_path), "--format", "mpich-json", "-o", str(out))
    assert "result bits changed" in report["checked"]
    assert len(json.loads(out.read_text())) == 44
    with_file, ring = mpi.bits(4, [SHORT, LONG], report["load"]), mpi.bits(4, [LONG], forced_mpich("ring"))
    doubling = {size: ours("recursive-doubling", 4, size, tmp_path / "m.toml") for size in (SHORT, LONG)}
    assert with_file == {SHORT: doubling[SHORT], LONG: ring[LONG]}
    assert ring[LONG] != doubling[LONG]
    without = [word for word in report["load"] if str(out) not in word]
    assert mpi.bits(3, [LONG], report["load"]) == mpi.bits(3, [LONG], without)


def test_mpich_takes_parameters(tmp_path: Path) -> None:
    mpi = library("MPICH")
    made = un.export(
        table(tmp_path, row("allreduce", 4, 0, None, "recursive-multiplying", schedule="a4")),
        "mpich-json",
        tmp_path / "t.json",
    )
    forced = forced_mpich("recursive_multiplying")
    k4 = mpi.bits(4, [LONG], [*forced, "MPIR_CVAR_ALLREDUCE_RECURSIVE_MULTIPLYING_KVAL=4"])
    k2 = mpi.bits(4, [LONG], [*forced, "MPIR_CVAR_ALLREDUCE_RECURSIVE_MULTIPLYING_KVAL=2"])
    assert k4 != k2
    assert mpi.bits(4, [LONG], made["load"]) == k4


OF_ALL = (
    row("allgather", 4, 0, 4096, "bruck"),
    row("allgather", 4, 4097, None, "ring"),
    row("allreduce", 4, 0, 4096, "recursive-doubling"),
    row("allreduce", 4, 4097, None, "rabenseifner"),
    row("alltoall", 4, 0, 256, "bruck"),
    row("alltoall", 4, 257, None, "pairwise"),
    row("barrier", 4, 0, 0, "dissemination"),
    row("broadcast", 4, 0, 4096, "binomial"),
    row("broadcast", 4, 4097, None, "scatter-allgather"),
    row("gather", 4, 0, None, "binomial"),
    row("reduce", 4, 0, 4096, "binomial"),
    row("reduce", 4, 4097, None, "reduce-scatter-gather"),
    row("reduce-scatter", 4, 0, None, "recursive-halving"),
    row("scan", 4, 0, None, "recursive-doubling"),
    row("scatter", 4, 0, None, "binomial"),
)


@pytest.mark.parametrize(("target", "name"), [("openmpi-rules", "Open MPI"), ("mpich-json", "MPICH")])
def test_every_collective_is_right_under_an_exported_file(
    compiled: Compile, tmp_path: Path, target: str, name: str
) -> None:
    """The library loads a table with rows for all collectives, and accepts the conditions of each row."""
    mpi = library(name)
    made = un.export(table(tmp_path, *OF_ALL), target, tmp_path / "file")
    known_to_both = len([r for r in OF_ALL if r["collective"] not in {"scan", "scatter"}])
    assert made["rows"] == (len(OF_ALL) if name == "MPICH" else known_to_both)
    # Other tests cover files for a single number of ranks.
    for ranks in (4, 3) if SOAK else (4,):
        # Counts of elements of 8 bytes, on both sides of the rows' limits.
        run_every_collective(compiled, mpi, made["load"], ranks, 0, 1, 3, 64, 1000, 20_000)


def run_every_collective(compiled: Compile, mpi: Library, load: list[str], ranks: int, *counts: int) -> None:
    """Compares all collectives with plain arithmetic, by `every.c`."""
    command, environment = [str(mpi.launcher), "-n", str(ranks)], dict(os.environ)
    if mpi.name == "Open MPI":
        environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        command += ["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]
        command += [word for argument in load for word in argument.split(" ", 2)]
    else:
        environment |= dict(variable.split("=", 1) for variable in load)
        environment["MPIR_CVAR_COLLECTIVE_FALLBACK"] = "error"
    command += [str(compiled("every", "openmpi" if mpi.name == "Open MPI" else "mpich")), *map(str, counts)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE, errors="replace")
    assert (ran.returncode, ran.stdout.replace("\0", "")) == (0, f"ok {ranks}\n"), ran.stdout + ran.stderr


@pytest.mark.parametrize(
    ("ranks", "algorithm", "theirs"),
    [
        (4, {"algorithm": "recursive-exchange", "radix": "3"}, "recexch_doubling"),
        (4, {"algorithm": "recursive-exchange", "radix": "2", "order": "halving"}, "recexch_halving"),
        (3, {"algorithm": "recursive-doubling"}, "recexch_doubling"),
    ],
)
def test_mpich_exchanges_recursively(
    compiled: Compile, tmp_path: Path, ranks: int, algorithm: dict[str, str], theirs: str
) -> None:
    """MPICH runs the exported allgather of any radix on any number of ranks, and its results are right."""
    mpi = library("MPICH")
    made = un.export(table(tmp_path, row("allgather", ranks, 0, None, **algorithm)), "mpich-json", tmp_path / "t.json")
    assert made["rows"] == 1
    assert f"algorithm=MPIR_Allgather_intra_{theirs}" in (tmp_path / "t.json").read_text()
    run_every_collective(compiled, mpi, made["load"], ranks, 0, 1, 64, 5000)


def test_every_collective_that_was_written_is_run(tmp_path: Path) -> None:
    library("Open MPI")
    rows = [row("broadcast", 2, 0, None, "binomial"), row("reduce", 3, 0, None, "binomial")]
    rows += [row("alltoall", 3, 0, None, "pairwise"), row("barrier", 2, 0, None, "dissemination")]
    checked = json_of("export", table(tmp_path, *rows), "--format", "openmpi-rules", "-o", str(tmp_path / "t"))[
        "checked"
    ]
    assert "broadcast of 128 bytes on 2 ranks: ran, with the same result as without the file" in checked
    assert "alltoall of 192 bytes on 3 ranks: ran, with the same result as without the file" in checked
    assert "barrier of 0 bytes on 2 ranks: ran" in checked
    assert "reduce of 192 bytes on 3 ranks: " in checked


#: The MPICH 4.0 of Debian, which lacks some algorithms of MPICH 5.
SYSTEM_MPICH = Path("/usr/lib/x86_64-linux-gnu/libmpich.so.12")


def test_an_older_mpich_takes_the_rows_that_it_can(tmp_path: Path) -> None:
    """The table of docs/export.md is exported for a library that has no ring for an allreduce."""
    launcher, compiler = shutil.which("mpiexec.mpich"), shutil.which("mpicc.mpich")
    if launcher is None or compiler is None or not SYSTEM_MPICH.exists():
        pytest.skip("there is no MPICH of the system (Debian: libmpich-dev)")
    of_page = re.search(r"```json\n(.*?)```", (ROOT / "docs" / "export.md").read_text(), re.DOTALL)
    assert of_page is not None
    (tmp_path / "page.json").write_text(of_page[1])
    out = tmp_path / "out.json"
    command = ["export", str(tmp_path / "page.json"), "--format", "mpich-json", "-o", str(out)]
    report = json_of(*command, "--library", str(SYSTEM_MPICH))
    assert report["rows"] == 1
    assert [left.split(":")[1].strip() for left in report["left"]] == [
        "this library has no algorithm MPIR_Allreduce_intra_ring",
        "it has no counterpart there",
    ]
    assert f"'{SYSTEM_MPICH}' is not of the MPICH of" in report["checked"]
    program = tmp_path / "program"
    source = ROOT / "tests" / "mpi" / "collectives.c"
    subprocess.run([compiler, str(source), "-o", str(program), "-lm"], check=True)
    variables = dict(word.split("=", 1) for word in report["load"])
    ran = subprocess.run(
        [launcher, "-n", "4", str(program), "10"],
        env={**os.environ, **variables},
        capture_output=True,
        timeout=PATIENCE,
    )
    assert (ran.returncode, ran.stdout) == (0, b"ok 4\n"), ran.stderr


def test_without_a_library_the_report_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installations, "_folders", lambda: [tmp_path])
    report = json_of("export", allreduce(tmp_path), "--format", "openmpi-rules", "-o", str(tmp_path / "out"))
    assert report["checked"].endswith("not run: there is no Open MPI here")
    ran = call("export", allreduce(tmp_path), "--format", "mpich-json", "-o", str(tmp_path / "out"))
    assert ran.code == 2
    assert "no MPICH was found" in ran.err
