"""Several nodes, which MPICH emulates on one computer: ranks with different host names share no memory."""

import json
import tomllib
from pathlib import Path

import pytest
import unisono as un

from ..python.conftest import json_of
from ..python.test_mpi import MPICH, Compile, compiled, report, run
from .launching import REFUSED_FIT, launch

__all__ = ["compiled"]

#: A launcher that emulates two nodes with two ranks each.
LAUNCHER = f"{MPICH / 'bin' / 'mpiexec'} -launcher fork -hosts node0,node1 -ppn 2"


def test_levels_are_measured_apart(tmp_path: Path) -> None:
    machine = tmp_path / "m.toml"
    words = ("calibrate", "--levels", "--rounds", "10", "-o", machine, "--json")
    done = launch(MPICH, 4, "-m", "unisono", *words, MPIR_CVAR_NUM_CLIQUES="2")
    if REFUSED_FIT.removeprefix("error: ") in done.stderr:
        assert (done.returncode, machine.exists()) == (2, False)
        return
    assert done.returncode == 0, done.stdout + done.stderr
    written = tomllib.loads(machine.read_text())
    assert json.loads(done.stdout)["levels"] == written["levels"]
    # MPICH deals the ranks to nodes in turn if the variable MPIR_CVAR_NUM_CLIQUES is set.
    assert written["placement"] == "cyclic"
    assert [(level["name"], level["size"]) for level in written["levels"]] == [("node", 2)]
    for key in ("alpha_ns", "alpha_p_ns", "alpha_r_ns", "beta_ns_per_byte"):
        assert written[key] > 0
        assert written["levels"][0][key] > 0
    assert written["fit"]["levels"]["node"]["members"] == [0, 2]
    assert (
        json_of("plan", "allreduce", "--machine", str(machine), "--ranks", "4", "--bytes", "4KiB")["predicted"][
            "seconds"
        ]
        > 0
    )


@pytest.mark.parametrize("program", ["random", "pieces", "persistent", "faults"])
def test_hierarchical_schedules_run_on_two_nodes(compiled: Compile, tmp_path: Path, program: str) -> None:
    path, said = tmp_path / "t.plan", tmp_path / "report"
    rows = []
    for kind in ("allreduce", "broadcast", "reduce"):
        made = un.plan(kind, un.machine("archer", 4), elements=32, algorithm="hierarchical", params={"node": "2"})
        rows.append((made, 0, None, 2))
    un.save_plans(rows, path)
    words = {"random": ("5", "12"), "pieces": ("6",), "persistent": ("2",), "faults": ("planned",)}[program]
    expected = {"random": "ok 4 12\n"}.get(program, "ok 4\n")
    options = ("--launcher", LAUNCHER, "--plan", str(path), "--report", str(said), "--nonblocking")
    done = run(4, compiled(program, "mpich"), *words, options=options)
    assert (done.code, done.out) == (0, expected), done.out + done.err
    assert any(algorithm == "hierarchical" for _, algorithm in report(said))


def test_counts_that_differ_little_are_served_on_two_nodes(compiled: Compile, tmp_path: Path) -> None:
    """Rows for two ranks a node serve slightly different counts, as rows for any number of ranks do on one node."""
    path, said = tmp_path / "t.plan", tmp_path / "report"
    made = [un.plan(kind, "archer", shape=4, elements=32) for kind in ("allreduce", "allgather", "reduce-scatter")]
    un.save_plans([(plan, 0, None, 2) for plan in made], path)
    options = ("--launcher", LAUNCHER, "--plan", str(path), "--report", str(said))
    done = run(4, compiled("vectors", "mpich"), "8", options=options)
    assert (done.code, done.out) == (0, "ok 4\n"), done.out + done.err
    served = {kind: n for (kind, algorithm), n in report(said).items() if algorithm != "library"}
    # In one of the eight rounds the counts differ so much that the library makes the calls.
    assert served["reduce-scatter"] == 7
    assert served["allgather"] > 7


def test_lengths_that_differ_across_nodes_are_reported(compiled: Compile, tmp_path: Path) -> None:
    """Messages reveal lengths that differ within a row of the plan, also between nodes."""
    path = tmp_path / "t.plan"
    un.save_plans([(un.plan("allreduce", "archer", shape=4, elements=16, algorithm="ring"), 0, None)], path)
    options = ("--launcher", LAUNCHER, "--plan", str(path))
    told = tmp_path / "told"
    done = run(4, compiled("faults", "mpich"), "lengths", "allreduce", told, options=options)
    assert done.code != 0
    assert "truncated, 1 calls of the handler" in told.read_text()
