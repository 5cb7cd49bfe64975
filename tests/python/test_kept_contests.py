"""Contests in a file of points: a stopped tuning continues with the contests that the file lacks."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import unisono as un
from unisono.base.studies import KeptPoints
from unisono.tuning import kept, measuring
from unisono.tuning.kept import Asked, Contests
from unisono.tuning.measuring import Contest, Timing
from unisono.tuning.tables import FileFor, described

MPI = SimpleNamespace(MIN=None)
COMM = SimpleNamespace(size=4, bcast=lambda value: value, allreduce=lambda value, op: value)
ASKED = [Asked("choose", 4, [None, ("ring",)]), Asked("choose", 4, [None, ("swing",)])]
ASKED += [
    Asked("confirm", 4, [None, ("ring",)]),
    Asked("choose", 2, [None, ("ring",)]),
    Asked("choose", 4, [("ring",)]),
]
#: Contests that all differ: the library beside a plan, and a plan alone.
CALLS = [(collective, count, asked) for collective in ("reduce", "allreduce") for count in (8, 9) for asked in ASKED]


class StoppedError(Exception):
    """Ends a run in the middle."""


class Run:
    """One run of a tuning, which stops before its contest number ``stop``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, stop: int | None = None, served: int = 3) -> None:
        self.made: list[tuple[str, int]] = []
        self.stop, self.served = stop, served
        contest = measuring.contest

        def timed(_: Any, __: Any, contestants: Any, collective: str, elements: int, ___: int) -> Contest:
            if len(self.made) == self.stop:
                raise StoppedError
            self.made.append((collective, elements))
            # Times that decimal digits cannot state exactly; a library serves no call by a plan.
            plans = [Timing([elements / 7, 1 / 3], "0f", 3, self.served) for _ in contestants]
            return Contest(elements, [replace(plans[0], served=0), *plans[1:]] if len(plans) > 1 else plans)

        timed.__module__, timed.__qualname__ = contest.__module__, contest.__qualname__
        monkeypatch.setattr(kept, "contest", timed)

    def over(self, path: Path, context: tuple[Any, ...] = ("openmpi",), rounds: int = 2) -> tuple[list[Contest], int]:
        with KeptPoints(path) as points:
            contests = Contests(points, context)
            found = [
                contests.time(MPI, COMM, [None] * len(asked.contestants), collective, count, rounds, asked)  # type: ignore[list-item]
                for collective, count, asked in CALLS
            ]
            return found, contests.found


@pytest.mark.parametrize("stop", [0, 1, 7, len(CALLS) - 1])
def test_a_stopped_run_continues_with_what_it_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: int) -> None:
    whole, none = Run(monkeypatch).over(tmp_path / "whole")
    assert none == 0
    monkeypatch.undo()
    with pytest.raises(StoppedError):
        Run(monkeypatch, stop).over(tmp_path / "points")
    monkeypatch.undo()
    rest = Run(monkeypatch)
    found, known = rest.over(tmp_path / "points")
    assert (found, known) == (whole, stop)
    assert rest.made == [(collective, count) for collective, count, _ in CALLS[stop:]]


@pytest.mark.parametrize("other", [{"context": ("mpich",)}, {"rounds": 3}])
def test_measurements_under_other_conditions_are_not_reused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: dict[str, Any]
) -> None:
    run = Run(monkeypatch)
    run.over(tmp_path / "points")
    assert run.over(tmp_path / "points", **other)[1] == 0
    assert len(run.made) == 2 * len(CALLS)


def test_times_of_a_plan_that_did_not_run_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Run(monkeypatch, served=2).over(tmp_path / "points")
    with KeptPoints(tmp_path / "points") as points:
        assert len(points) == 0


def test_a_contestant_is_described_by_its_algorithm_and_parameters_or_forced_variables() -> None:
    plans = [
        un.plan("broadcast", "archer", shape=8, bytes="64KiB", algorithm="pipelined-chain", params={"segment": size})
        for size in ("1024", "8192")
    ]
    assert len({described(plan, 16384, None) for plan in plans}) == 2
    file = FileFor("openmpi-rules", str, lambda row: {"b": row["first_bytes"], "a": int(row["params"]["segment"])})
    assert [described(plan, 16384, file) for plan in plans] == [
        ("forced", ("a", segment), ("b", 65536)) for segment in (1024, 8192)
    ]
