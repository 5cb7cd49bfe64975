"""The runs of section 6 of "Generalisation of recursive doubling for AllReduce" (2017), and their timelines.

Runs that check equations of section 3 use machines of that section's models.
"""

import json
import re
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from unisono import Run, plan, simulate
from unisono._core import Machine, Schedule, emit
from unisono.base.files import write
from unisono.reproduce import Finding, Listed, checks_of
from unisono.reproduce.once import once

__all__ = ["CHECKS", "MACHINES", "doubling", "draw", "finish", "goal", "machine", "program", "rounds", "run", "time"]


#: The runs of Figs. 18 to 23: processes, algorithm, its parameters.
FIGURES: dict[int, tuple[int, str, dict[str, str]]] = {
    18: (8, "recursive-multiplying", {"schedule": "a2,a2,a2"}),
    19: (8, "recursive-multiplying", {"schedule": "a8"}),
    20: (7, "recursive-multiplying", {"schedule": "c6m2,a2,a2,e6m2"}),
    21: (7, "recursive-multiplying", {"schedule": "m1g2a3,n1g3a2"}),
    22: (7, "recursive-multiplying", {"schedule": "m3g2a2,n3g2a2"}),
    23: (6, "elimination", {"protocol": "non-overlapping"}),
}


#: The runs of Figs. 17 and 23, which the paper shows as programs: processes, algorithm, its parameters.
PROGRAMS: dict[int, tuple[int, str, dict[str, str]]] = {
    17: (6, "recursive-multiplying", {"schedule": "a3,a2"}),
    23: FIGURES[23],
}
#: The machines of the models of section 3 and of LogfP, in ns.
MACHINES: dict[str, dict[str, Any]] = {
    "postal": {"model": "postal", "alpha_ns": 1000.0},
    "pipelining": {"model": "pipelining-postal", "alpha_p_ns": 1000.0, "alpha_r_ns": 250.0},
    "pipelining-10": {"model": "pipelining-postal", "alpha_p_ns": 10_000.0, "alpha_r_ns": 2500.0},
    "ratio-1": {"model": "pipelining-postal", "alpha_p_ns": 500.0, "alpha_r_ns": 500.0},
    "logfp": {"model": "logfp", "L_ns": 500.0, "o_ns": 50.0, "g_ns": 100.0, "f_messages": 4},
}
#: Presets of the paper's simulated machine, and further costs that are set to 0.
_PAPER = {"paper-sim": (), "paper-sim-no-compute": ("compute_ns",)}
#: The costs of bytes on ``MACHINES``, for runs with a number of bytes.
_BYTES = {"beta_ns_per_byte": 0.5, "gamma_ns_per_byte": 0.25}
#: The time of a round of messages on the machine of :func:`rounds`, in ns.
_ROUND_NS = 500


@once
def machine() -> Machine:
    """Returns the paper's simulated machine, with bytes that take no time."""
    return _paper_sim("beta_ns_per_byte")


def _paper_sim(*free: str) -> Machine:
    """Returns the paper's simulated machine, with some costs set to 0."""
    text = Machine.preset("paper-sim").to_toml()
    for name in free:
        text, found = re.subn(rf"^{name} = .*$", f"{name} = 0.0", text, flags=re.MULTILINE)
        assert found == 1, f"paper-sim has the price {name}"
    return Machine.from_toml(text, "paper-sim")


def doubling(ranks: int) -> str:
    """Returns MPICH's recursive doubling as a schedule."""
    whole = 1 << (ranks.bit_length() - 1)
    stages = ["a2"] * (whole.bit_length() - 1)
    pairs = 2 * (ranks - whole)
    return ",".join([f"c{pairs}m2", *stages, f"e{pairs}m2"] if pairs else stages)


def time(
    on: str, ranks: int, schedule: str, bytes: int | None = None, *, noise_ns: float | None = None, seed: int = 0
) -> float:
    """Returns the simulated ns of an allreduce on a preset or one of ``MACHINES``; without ``bytes``, bytes are free.

    ``noise_ns`` is the largest time that uniform noise adds to a time of a CPU.
    """
    described: Machine | str | dict[str, Any] = on
    if on in MACHINES:
        priced = _BYTES if bytes is not None else dict.fromkeys(_BYTES, 0.0)
        if MACHINES[on]["model"] == "logfp":
            priced = {}
        described = {"name": on, "kind": "endpoint", **MACHINES[on], **priced}
    elif on in _PAPER:
        described = _paper_sim("beta_ns_per_byte", *_PAPER[on])
    size: dict[str, Any] = {"elements": 1} if bytes is None else {"bytes": bytes}
    params = {"schedule": schedule}
    made = plan("allreduce", described, shape=ranks, **size, algorithm="recursive-multiplying", params=params)
    noise = None if noise_ns is None else ("uniform", noise_ns)
    return simulate(made.schedule, described, noise=noise, seed=seed).nanoseconds


def program(ranks: int, algorithm: str, params: dict[str, str]) -> Schedule:
    """Returns the schedule of an allreduce of one element."""
    return plan("allreduce", machine(), shape=ranks, elements=1, algorithm=algorithm, params=params).schedule


def rounds(ranks: int, algorithm: str, params: dict[str, str]) -> float:
    """Returns the rounds of messages of an allreduce, from its time on a machine where only latency takes time."""
    latency_only = _paper_sim("alpha_r_ns", "beta_ns_per_byte", "compute_ns")
    made = plan("allreduce", latency_only, shape=ranks, elements=1, algorithm=algorithm, params=params)
    return simulate(made.schedule).nanoseconds / _ROUND_NS


def goal(number: int) -> str:
    """Returns the program of a figure, in GOAL."""
    text = emit(program(*PROGRAMS[number]), "goal")["schedule.goal"]
    assert isinstance(text, str)
    return text


def run(ranks: int, algorithm: str, params: dict[str, str]) -> Run:
    """Simulates an allreduce of one element."""
    return simulate(program(ranks, algorithm, params))


def finish(ranks: int, schedule: str) -> list[float]:
    """Returns the time in ns at which each rank finishes a schedule of recursive multiplying."""
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


def _simulated_times(listed: Listed) -> Finding:
    """Computes the simulated ns of each run; with ``relative``, times of later runs divided by that of the first."""
    ours = [time(listed["machine"], ranks, schedule) for ranks, schedule in listed["runs"]]
    if listed.get("relative", False):
        ours = [later / ours[0] for later in ours[1:]]
    return Finding(listed["reported"], ours)


def _simulated_skew(listed: Listed) -> Finding:
    times = [finish(*run) for run in listed["runs"]]
    remark = "Done after, by rank: " + "; ".join(" ".join(f"{t:.0f}" for t in each) for each in times) + " ns."
    return Finding(listed["reported"], [max(each) - min(each) for each in times], remark=remark)


def _simulated_gain(listed: Listed) -> Finding:
    over = max(finish(*listed["over"]))
    return Finding(listed["reported"], [over - max(finish(*run)) for run in listed["runs"]])


def _multicast_falls(listed: Listed) -> Finding:
    """Counts, on some machines, the numbers of peers to which a multicast is faster than to one peer fewer."""
    falls = 0
    for on in listed["machines"]:
        times = [time(on, peers + 1, f"a{peers + 1}") for peers in range(1, listed["largest"] + 1)]
        falls += sum(after < before for before, after in pairwise(times))
    return Finding(listed["reported"], falls)


def _best_factor(listed: Listed) -> Finding:
    """Computes the factor of the fastest schedule with equal stages, for each machine and process count."""
    ours = []
    for on in listed["machines"]:
        for ranks in listed["ranks"]:
            stages = {2**k: (ranks.bit_length() - 1) // k for k in (1, 2, 3, 4)}
            equal = {b: ",".join([f"a{b}"] * n) for b, n in stages.items() if b**n == ranks}
            ours.append(min(equal, key=lambda b: time(on, ranks, equal[b])))
    return Finding(listed["reported"], ours)


def _internal_processes(listed: Listed) -> Finding:
    """Counts the processes outside the collapse that send before the first message of the collapse arrives."""
    ranks, schedule = listed["run"]
    with TemporaryDirectory() as folder:
        file = Path(folder) / "trace.json"
        run(ranks, "recursive-multiplying", {"schedule": schedule}).trace(file)
        events = json.loads(file.read_text())["traceEvents"]
    first = min(event["ts"] for event in events if event["name"] == "receive")
    early = {event["tid"] for event in events if event["name"] == "send" and event["ts"] < first}
    return Finding(listed["reported"], len(early) - listed["collapsing"])


def _messages(listed: Listed) -> Finding:
    """Computes the messages per process of each schedule; each message is received into a buffer."""
    made = [(ranks, program(ranks, "recursive-multiplying", {"schedule": text})) for ranks, text in listed["schedules"]]
    return Finding(listed["reported"], [schedule.streams / ranks for ranks, schedule in made])


CHECKS = checks_of(globals())
