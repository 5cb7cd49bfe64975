"""The runs of section 6 of "Generalisation of recursive doubling for AllReduce" (2017), and their timelines."""

from functools import cache
from pathlib import Path

from unisono import Run, plan, simulate
from unisono._core import Machine

__all__ = ["draw", "finish", "machine", "run"]

#: Figs. 18 to 23: processes, algorithm, its parameters.
FIGURES: dict[int, tuple[int, str, dict[str, str]]] = {
    18: (8, "recursive-multiplying", {"schedule": "a2,a2,a2"}),
    19: (8, "recursive-multiplying", {"schedule": "a8"}),
    20: (7, "recursive-multiplying", {"schedule": "c6m2,a2,a2,e6m2"}),
    21: (7, "recursive-multiplying", {"schedule": "m1g2a3,n1g3a2"}),
    22: (7, "recursive-multiplying", {"schedule": "m3g2a2,n3g2a2"}),
    23: (6, "elimination", {"protocol": "non-overlapping"}),
}


@cache
def machine() -> Machine:
    """The paper's simulated machine with free bytes: its messages have none, a schedule's have an element at least."""
    text = Machine.preset("paper-sim").to_toml()
    return Machine.from_toml(text.replace("beta_ns_per_byte = 0.4", "beta_ns_per_byte = 0.0"), "paper-sim")


def run(ranks: int, algorithm: str, params: dict[str, str]) -> Run:
    """An allreduce of one element."""
    made = plan("allreduce", machine(), shape=ranks, elements=1, algorithm=algorithm, params=params)
    return simulate(made.schedule)


def finish(ranks: int, schedule: str) -> list[float]:
    """When each rank is done with a schedule of recursive multiplying, in ns."""
    ends = run(ranks, "recursive-multiplying", {"schedule": schedule}).finish_ns
    assert ends is not None, "machines of ranks count nanoseconds"
    return [float(end) for end in ends]


def draw(folder: Path) -> list[str]:
    """Draws Figs. 18 to 23 as PNG; returns their paths."""
    paths = []
    for number, (ranks, algorithm, params) in FIGURES.items():
        path = folder / f"fig{number}.png"
        run(ranks, algorithm, params).timeline(path)
        paths.append(str(path))
    return paths
