"""`Program.check`: kernels whose results depend on the number of ranks are found in one process."""

import runpy

import numpy as np
import pytest
import unisono as un
from unisono.tasks import Program, View, all_, halo, one_to_one, shift

from .conftest import ROOT
from .test_tasks import count, smooth


def padded(u: View, new: View) -> None:
    """Treats the edge of the view as the edge of the array."""
    wide = np.pad(u, 1, mode="edge")
    new[...] = (wide[:-2] + wide[1:-1] + wide[2:]) / 3


def double(u: View) -> None:
    u *= 2


def mean(u: View, total: View) -> None:
    total += u.mean()


def test_edges_of_views_are_found() -> None:
    p = Program()
    u, new = p.array(20, init=np.arange(20.0) ** 2, name="u"), p.zeros(20, name="new")
    p.task(double, range=20, updates=[u[one_to_one]])
    p.task(smooth, range=20, reads=[u[halo(1)]], writes=[new[one_to_one]])
    p.check(3)
    p.task(padded, range=20, reads=[u[one_to_one]], writes=[new[one_to_one]])
    # Rank 0 has 7 of 20 points, at which u is 0, 2, ..., 72; the next value is 98.
    said = (
        r"task 'padded' .*: new\[6\] is 73\.3\d* on one rank and 64\.6\d* on 3 ranks, by rank 0 with the part \[0, 7\)"
    )
    with pytest.raises(un.InputError, match=said):
        p.check(3)
    # The check works on copies, and runs nothing of the program.
    assert np.array_equal(p.fetch(u), 2 * np.arange(20.0) ** 2)


def test_reductions_of_parts_are_found() -> None:
    p = Program()
    u, total = p.array(20, init=np.arange(20.0), name="u"), p.zeros(1, name="total")
    p.task(count, range=20, reads=[total[all_], u[one_to_one]], reduces=[total[all_]])
    p.check(4)
    p.task(mean, range=20, reads=[u[one_to_one]], reduces=[total[all_]])
    with pytest.raises(un.InputError, match=r"total\[0\] is 9\.5 on one rank and 38\.0 on 4 ranks; its kernel may"):
        p.check(4)


def test_old_contents_are_read_in_all_parts() -> None:
    p = Program()
    u = p.array((30, 4), init=np.arange(120.0).reshape(30, 4), name="u")

    def roll(old: View, new: View) -> None:
        for k in range(len(new)):
            new[k] = old[k]

    p.task(roll, range=29, reads=[u[shift(1)]], updates=[u[one_to_one]])
    p.task(double, range=(30, 4), updates=[u[one_to_one]], split="2d")
    for ranks in (2, 3, 4, 64):
        p.check(ranks)


@pytest.mark.parametrize("name", ["wave", "matmul", "power", "jacobi", "fft2d"])
def test_examples_do_not_depend_on_ranks(name: str) -> None:
    program = runpy.run_path(str(ROOT / "examples" / "tasks" / f"{name}.py"))["program"]
    for ranks in (2, 5):
        program.check(ranks)


def test_what_is_not_checked_is_refused() -> None:
    p = Program()
    u = p.zeros(8, name="u")
    said: list[View] = []
    p.host_task(said.append, reads=[u])
    p.check(2)
    assert said == []
    for ranks in (1, 0, -1):
        with pytest.raises(un.InputError, match=f"ranks is {ranks}; accepted are numbers from 2 on"):
            p.check(ranks)
    p.task(double, range=8, updates=[u[one_to_one]], on="cupy")
    with pytest.raises(un.UnsupportedError, match="task 'double' runs on a device"):
        p.check(2)
