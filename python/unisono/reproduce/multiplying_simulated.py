"""The runs of section 6 of "Generalisation of recursive doubling for AllReduce" (2017), and their timelines."""

import re
from pathlib import Path

from unisono import Run, plan, simulate
from unisono._core import Machine, Schedule, emit
from unisono.base.files import write
from unisono.reproduce.once import once

__all__ = ["draw", "finish", "goal", "machine", "program", "rounds", "run"]

#: Figs. 18 to 23: processes, algorithm, its parameters.
FIGURES: dict[int, tuple[int, str, dict[str, str]]] = {
    18: (8, "recursive-multiplying", {"schedule": "a2,a2,a2"}),
    19: (8, "recursive-multiplying", {"schedule": "a8"}),
    20: (7, "recursive-multiplying", {"schedule": "c6m2,a2,a2,e6m2"}),
    21: (7, "recursive-multiplying", {"schedule": "m1g2a3,n1g3a2"}),
    22: (7, "recursive-multiplying", {"schedule": "m3g2a2,n3g2a2"}),
    23: (6, "elimination", {"protocol": "non-overlapping"}),
}


#: Figs. 17 and 23, which are written as programs: processes, algorithm, its parameters.
PROGRAMS: dict[int, tuple[int, str, dict[str, str]]] = {
    17: (6, "recursive-multiplying", {"schedule": "a3,a2"}),
    23: FIGURES[23],
}
#: One round of messages on :func:`rounds`' machine, in ns.
_ROUND_NS = 500


@once
def machine() -> Machine:
    """The paper's simulated machine with free bytes: its messages have none, a schedule's have an element at least."""
    return _paper_sim("beta_ns_per_byte")


def _paper_sim(*free: str) -> Machine:
    """The paper's simulated machine without some of its prices."""
    text = Machine.preset("paper-sim").to_toml()
    for name in free:
        text, found = re.subn(rf"^{name} = .*$", f"{name} = 0.0", text, flags=re.MULTILINE)
        assert found == 1, f"paper-sim has the price {name}"
    return Machine.from_toml(text, "paper-sim")


def program(ranks: int, algorithm: str, params: dict[str, str]) -> Schedule:
    """The schedule of an allreduce of one element."""
    return plan("allreduce", machine(), shape=ranks, elements=1, algorithm=algorithm, params=params).schedule


def rounds(ranks: int, algorithm: str, params: dict[str, str]) -> float:
    """The rounds of messages of an allreduce: its time where only the latency is not free."""
    latency_only = _paper_sim("alpha_r_ns", "beta_ns_per_byte", "compute_ns")
    made = plan("allreduce", latency_only, shape=ranks, elements=1, algorithm=algorithm, params=params)
    return simulate(made.schedule).nanoseconds / _ROUND_NS


def goal(number: int) -> str:
    """The program of a figure, in GOAL."""
    text = emit(program(*PROGRAMS[number]), "goal")["schedule.goal"]
    assert isinstance(text, str)
    return text


def run(ranks: int, algorithm: str, params: dict[str, str]) -> Run:
    """An allreduce of one element."""
    made = plan("allreduce", machine(), shape=ranks, elements=1, algorithm=algorithm, params=params)
    return simulate(made.schedule)


def finish(ranks: int, schedule: str) -> list[float]:
    """Returns the time in ns at which each rank is done with a schedule of recursive multiplying."""
    ends = run(ranks, "recursive-multiplying", {"schedule": schedule}).finish_ns
    assert ends is not None, "machines of ranks count nanoseconds"
    return [float(end) for end in ends]


def draw(folder: Path) -> list[str]:
    """Draws Figs. 18 to 23 as PNG and writes the programs of Figs. 17 and 23; returns their paths."""
    paths = []
    for number, (ranks, algorithm, params) in FIGURES.items():
        path = folder / f"fig{number}.png"
        run(ranks, algorithm, params).timeline(path)
        paths.append(str(path))
    for number in PROGRAMS:
        path = folder / f"fig{number}.goal"
        write(path, goal(number))
        paths.append(str(path))
    return paths
