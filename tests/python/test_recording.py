"""Recordings of Python programs: fetched contents, and loops that depend on them."""

from pathlib import Path

import pytest
import unisono as un
from unisono.tasks.recording import record

START = """
import sys
import numpy as np
from unisono.tasks import Program, all_, one_to_one

TOL = 1e-3
program = Program()
a, b = program.array(3, init=[5, 6, 7], dtype={dtype}, name="A"), program.zeros(1, dtype={dtype}, name="b")

def step(a): a += 1
def total(a, b): b += a.sum()

def sweep():
    program.task(step, range=3, updates=[a[one_to_one]])
    program.task(total, range=3, reads=[a[one_to_one]], reduces=[b[all_]])
    return program.fetch(b)[0]
"""

#: Loops: the type of their numbers, the code, and the rounds that are recorded with a limit of four.
LOOPS = {
    "break": ("float", "for k in range(1000):\n    if sweep() < TOL: break", 4),
    "while": ("float", "r = 1.0\nwhile np.sqrt(r) > TOL: r = sweep()", 4),
    "single": ("'float32'", "while sweep() > TOL: pass", 4),
    "relative": ("float", "first = sweep()\nwhile sweep() / first > TOL: pass", 4),
    "divides": ("float", "for k in range(1000):\n    if 1 / float(sweep()) > 1 / TOL: break", 4),
    "changed": ("int", "while sweep() > 0: pass", 4),
    "complex": ("complex", "while abs(sweep()) > TOL: pass", 4),
    "flag": ("bool", "while sweep(): pass", 4),
    "grows": ("float", "while sweep() < 10: pass", 4),
    "time": ("float", "t = 0\nwhile t < 1: t += sweep()", 4),
    "same": ("float", "old, new = np.inf, 0\nwhile abs(new - old) > TOL: old, new = new, sweep()", 5),
    "decides nothing": ("float", "for k in range(9): sweep()\nif sweep() < TOL: sweep()", 4),
}


def recorded(folder: Path, text: str, dtype: str = "float", rounds: int = 4) -> tuple[list[str], list[str]]:
    """Returns the names of the tasks that a file submits, with its fetches, and the notes."""
    file = folder / "loop.py"
    file.write_text(START.format(dtype=dtype) + text)
    found = record(str(file), rounds=rounds)
    return [step.name for step in found.program._steps], found.notes


@pytest.mark.parametrize("name", LOOPS)
def test_loops_that_wait_are_recorded_for_a_number_of_rounds(tmp_path: Path, name: str) -> None:
    dtype, loop, rounds = LOOPS[name]
    steps, (note,) = recorded(tmp_path, loop, dtype)
    assert steps == ["step", "total", "b"] * rounds
    assert "--rounds" in note


def test_what_follows_a_loop_is_recorded(tmp_path: Path) -> None:
    text = "while sweep() > TOL: pass\nprint(program.fetch(a))\nprogram.task(step, range=3, updates=[a[one_to_one]])"
    for rounds in (1, 4, 100):
        steps, (note,) = recorded(tmp_path, text, rounds=rounds)
        assert steps == [*["step", "total", "b"] * rounds, "A", "step"]
        assert f"fall to almost 0 in {rounds} round{'s' if rounds > 1 else ''}, so" in note
        assert "program.explain after a run" in note


def test_contents_that_no_task_wrote_are_known(tmp_path: Path) -> None:
    text = "assert program.fetch(a).tolist() == [5, 6, 7]\nprogram.fetch(a)[:] = 8\n"
    steps, notes = recorded(tmp_path, text + "program.task(step, range=1, reads=[a[all_]], writes=[b[one_to_one]])")
    assert (steps, notes) == (["A", "A", "step"], [])


def test_contents_that_tasks_write_are_zeros_or_made_up(tmp_path: Path) -> None:
    out = tmp_path / "out"
    text = f"sweep()\nwith open({str(out)!r}, 'a') as f: print(program.fetch(a), sweep(), file=f)"
    _, (note,) = recorded(tmp_path, text)
    assert note.startswith("contents were fetched at 2 places and are zeros here")
    # The second recording submits no further tasks, so the first one is kept.
    assert out.read_text() == "[0. 0. 0.] 0.0\n[3. 3. 3.] 2.0\n"


def test_a_failure_with_zeros_alone_is_none(tmp_path: Path) -> None:
    steps, (note,) = recorded(tmp_path, "for k in range(2): 1 / float(sweep())")
    assert steps == ["step", "total", "b"] * 2
    assert "made up here" in note


def test_an_error_of_the_library_names_its_line(tmp_path: Path) -> None:
    script = tmp_path / "wrong.py"
    script.write_text('import unisono as un\n\nun.plan("foo", "archer", shape=8)\n')
    with pytest.raises(un.InputError, match=r"wrong.py', line 3 \(`un.plan\(.*\)`\): 'foo' is not a collective"):
        record(str(script))
