"""Programs of `unisono.tasks` as workloads, from Python files and in Python."""

import json
from pathlib import Path
from typing import Any

import pytest
import unisono as un
from unisono.tasks import Program, all_, one_to_one

from .conftest import ROOT, call, json_of

RATES: dict[str, Any] = {"tflops": 1.0, "memory_gb_per_second": 1000.0}
OPTIONS = ("--tflops", "1", "--memory-gb-per-second", "1000")

#: Bodies as in examples/programs/nbody.json, with their number as an argument.
BODIES = """
import sys
from unisono.tasks import Program, all_, one_to_one

n = int(sys.argv[1])
program = Program()
P, V = program.zeros(n, name="P"), program.zeros(n, name="V")
E = program.array(1, name="E")
for _ in range(2):
    program.task(print, n, [P[all_]], updates=[V[one_to_one]], name="forces", operations=20 * n)
    program.task(print, n, [V[one_to_one]], updates=[P[one_to_one]], name="move", operations=6)
program.task(print, n, [V[one_to_one]], reduces=[E[all_]], name="energy", operations=8)
program.task(print, 64, [E[all_]], name="check")
"""


def bodies(n: int) -> dict[str, Any]:
    """Returns the program of `BODIES` with ``n`` bodies in JSON."""

    def access(buffer: str, mode: str, mapper: str) -> dict[str, Any]:
        return {"buffer": buffer, "mode": mode, "mapper": {"kind": mapper}}

    step: list[dict[str, Any]] = [
        {
            "name": "forces",
            "range": n,
            "operations": 20 * n,
            "accesses": [access("P", "read", "all"), access("V", "read_write", "one_to_one")],
        },
        {
            "name": "move",
            "range": n,
            "operations": 6,
            "accesses": [access("V", "read", "one_to_one"), access("P", "read_write", "one_to_one")],
        },
    ]
    energy = [access("V", "read", "one_to_one"), access("E", "reduce", "all")]
    last: list[dict[str, Any]] = [
        {"name": "energy", "range": n, "operations": 8, "accesses": energy},
        {"name": "check", "range": 64, "accesses": [access("E", "read", "all")]},
    ]
    buffers = [{"name": name, "shape": [n], "host_initialized": True} for name in "PV"]
    return {"buffers": [*buffers, {"name": "E", "shape": [1]}], "tasks": [*step, *step, *last]}


@pytest.fixture
def both(tmp_path: Path) -> tuple[str, str]:
    script, listed = tmp_path / "bodies.py", tmp_path / "bodies.json"
    script.write_text(BODIES)
    listed.write_text(json.dumps(bodies(4096)))
    return str(script), str(listed)


@pytest.mark.parametrize("level", ["model", "packet"])
def test_a_python_file_is_timed_like_the_same_tasks_in_json(both: tuple[str, str], level: str) -> None:
    words = ("--ranks", "16", "--machine", "torus2d-small", "--level", level, *OPTIONS)
    found, expected = (
        json_of("workload", "--from", program, *words, *more)
        for program, more in zip(both, [("4096",), ()], strict=True)
    )
    assert found == expected
    assert found["unknown"] == {"check": 16}
    assert [row["kind"] for row in found["collectives"]] == ["allgather", "allreduce"]


def test_the_command_says_what_it_recorded(both: tuple[str, str]) -> None:
    jacobi = str(ROOT / "examples" / "tasks" / "jacobi.py")
    ran = call("workload", "--from", jacobi, "--ranks", "8", "--machine", "fattree-small", *OPTIONS)
    assert ran.code == 0
    assert ran.out.startswith("jacobi on 8 accelerators of fattree-small, by the model\n")
    assert ran.err.startswith("note: contents were fetched at ")
    fewer = call(
        "workload",
        "--from",
        jacobi,
        "--ranks",
        "8",
        "--machine",
        "fattree-small",
        "--rounds",
        "1",
        "--explain",
        *OPTIONS,
    )
    assert "--rounds records more" in fewer.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "bodies.py is a program of tasks, for any number of ranks; state it with --ranks N"),
        (("--ranks", "0", "64"), "ranks is 0; accepted are numbers from 1 on"),
        (("--ranks", "2"), "failed: IndexError"),
        (("--ranks", "2", "--strict", "64"), "task 'check' states no operations"),
        (("--ranks", "2000", "64"), "error: "),
    ],
)
def test_wrong_programs_are_refused(both: tuple[str, str], words: tuple[str, ...], message: str) -> None:
    ran = call("workload", "--from", both[0], "--machine", "torus2d-small", *OPTIONS, *words)
    assert ran.code != 0
    assert message in ran.err
    assert len(ran.err.splitlines()) == 1


def test_strict_changes_nothing_where_all_times_are_known() -> None:
    words = (
        "workload",
        "--from",
        str(ROOT / "examples" / "tasks" / "nbody.py"),
        "--ranks",
        "2",
        "--machine",
        "dgx-a100",
    )
    assert call(*words, "--strict").out == call(*words).out != ""


def test_options_of_python_files_are_refused_elsewhere(both: tuple[str, str]) -> None:
    ran = call("workload", "--from", both[1], "--ranks", "4", "--machine", "torus2d-small", "--rounds", "5")
    assert (ran.code, "--rounds is for a program in Python" in ran.err) == (2, True)
    ran = call("workload", "gpt-3", "dlrm", "--machine", "torus2d-small")
    assert (ran.code, "'gpt-3' and 'dlrm' both name a workload" in ran.err) == (2, True)
    with pytest.raises(un.InputError, match=r"workload\(ranks\)"):
        un.read_workload(both[0], ranks=4)


def kernel() -> None:
    """A kernel that is never run."""


def test_a_program_waits_for_contents_that_it_fetches() -> None:
    """The second of two tasks of 1 ms hides a gather of the first task's array, unless the program fetches it."""

    def seconds(fetches: bool) -> tuple[float, float]:
        program = Program()
        a, b = program.zeros(1 << 20, name="a"), program.zeros(1 << 20, name="b")
        for array in (a, b):
            program.task(kernel, 1 << 20, updates=[array[one_to_one]], operations=4e9 / (1 << 20))
            if fetches and array is a:
                program._steps.append(_fetch_of(a))
        graph = program.workload(4, strict=True)
        report = un.step(graph, "fattree-small", **RATES)
        return report["seconds"], report["exposed_seconds"]

    alone, exposed = seconds(fetches=False)
    assert alone == pytest.approx(2e-3)
    assert exposed == 0
    fetched, exposed = seconds(fetches=True)
    gather = un.plan("allgather", un.machine("fattree-small", shape="4"), bytes="2MiB").predicted["seconds"]
    assert exposed == pytest.approx(gather, rel=0.2)
    assert fetched == pytest.approx(2e-3 + exposed)


def _fetch_of(array: Any) -> Any:
    from unisono.tasks._submitted import Fetch

    return Fetch(array.name, array.number, array.shape)


def test_operations_are_checked_where_a_task_is_submitted() -> None:
    program = Program()
    a = program.zeros(8, name="a")
    for wrong in (-1, float("nan"), float("inf"), "many"):
        with pytest.raises(un.InputError, match="operations"):
            program.task(kernel, 8, updates=[a[one_to_one]], operations=wrong)  # type: ignore[arg-type]
    # Tasks that differ only in their number of operations have their own times.
    program.task(kernel, 8, updates=[a[one_to_one]], operations=1e9)
    program.task(kernel, 8, updates=[a[one_to_one]], operations=2e9)
    report = un.step(program.workload(1), "fattree-small", **RATES)
    assert report["compute_seconds"] == pytest.approx(8 * 3e9 / 1e12)


def test_tasks_are_read_back_from_chakra_traces(tmp_path: Path) -> None:
    program = Program()
    a, b, s = program.zeros((64, 64), name="a"), program.zeros((64, 64), name="b"), program.array(4, name="s")
    from unisono.tasks import neighborhood

    program.task(kernel, (64, 64), [a[neighborhood(1, 1)]], [b[one_to_one]], operations=5)
    program.task(kernel, (64, 64), [b[one_to_one]], reduces=[s[all_]], operations=1)
    program.task(kernel, 8, [s[all_]], operations=1)
    graph = program.workload(8, name="p")
    for name, content in graph.to_chakra().items():
        (tmp_path / name).write_bytes(content)
    for level in ("model", "packet"):
        before = un.step(graph, "hx2mesh-small", level=level, **RATES)
        after = un.step(tmp_path, "hx2mesh-small", level=level, **RATES)
        assert after["seconds"] == pytest.approx(before["seconds"], rel=1e-9)


@pytest.mark.parametrize(
    ("check", "last"),
    [
        ("assert total[0] == 4", "AssertionError"),
        ('assert total[0] == 4, f"the sum is {total[0]}"', "AssertionError: the sum is 0.0"),
    ],
)
def test_an_assertion_of_the_program_is_shown_with_its_line(tmp_path: Path, check: str, last: str) -> None:
    path = tmp_path / "checked.py"
    path.write_text(
        "from unisono.tasks import Program, one_to_one\n"
        "p = Program()\n"
        "total = p.zeros((4,))\n"
        "p.task(lambda v: None, range=4, writes=[total[one_to_one]])\n"
        "p.run()\n"
        "total = p.fetch(total)\n"
        f"{check}\n"
    )
    ran = call("discover", str(path), "--nodes", "2")
    assert ran.code == 1
    fetched = "failed, after a fetch, which gives zeros where a program is only recorded"
    assert ran.err == f"error: '{path}', line 7 (`{check}`), {fetched}: {last}\n"
