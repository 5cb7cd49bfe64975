"""One collective asked in every way that has a time, ten random problems a kind.

The figures are the number of times that were compared, and the largest difference. `plan` is compared with a plan that
names the algorithm and its parameters, with a sweep of one point, with the row of `expect`, with the simulation of its
schedule where the plan was simulated, and with a workload of that collective alone by `workload` and `compare`; among
ranks with the best proposal of `tune`, and a plan for a library with that of `tune --for`; on a machine of GPUs a plan
for a format with the simulation of the file that it writes. The last figure is the largest difference between the time
of the plan and the simulation of its schedule, which is the error of the model where the plan does not simulate.
"""

import argparse
import math
import random
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import unisono as un
from common.figures import Figures, Of, parsed
from unisono.mpi.exports import says
from unisono.tuning.tables import FileFor, offers

ROOTED_AND_SUMS = ("broadcast", "reduce", "allreduce")
ALL = (*ROOTED_AND_SUMS, "reduce-scatter", "allgather", "gather", "scatter", "alltoall")
#: Presets of each kind of machine, and the collectives that every part of these supports.
KINDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "endpoint": (("archer", "archer-median", "paper-sim"), ALL),
    "network": (("hx2mesh-small", "torus2d-small", "fattree-small", "dragonfly-small", "hyperx2d-small"), ALL),
    "GPUs": (("a100x4", "dgx-a100", "dgx-h100", "dgx2", "gh200x4", "mi300x", "ndv2"), ALL),
    "wafer": (("wse2",), ROOTED_AND_SUMS),
    "in-network": (("piuma",), ROOTED_AND_SUMS),
}
#: The format for `tune --for` and `plan --for`, and a limit on candidates that exceeds their number.
_RULES, _ALL = "openmpi-rules", 1 << 20


class Problem(NamedTuple):
    """A collective on a part of a machine."""

    collective: str
    machine: str
    shape: tuple[int, ...]
    elements: int


class Times(NamedTuple):
    """Times divided by the planned time: of the same problem by other commands (`alike`), and of the simulation."""

    alike: dict[str, float]
    simulated: float


def drawn(kind: str, seed: int) -> Problem:
    """Draws a problem on a machine of the given kind: a collective, a machine with a shape, and a length."""
    draw = random.Random(f"{kind} {seed}")
    names, collectives = KINDS[kind]
    name, collective = draw.choice(names), draw.choice(collectives)
    elements = int(2 ** draw.uniform(0, 12 if kind == "wafer" else 20))
    match kind:
        case "GPUs":
            shape = tuple(un.machine(name).extents or ())
        case "in-network":
            shape = (draw.choice([8, 16, 64, 128]),)
        case _:
            shapes: list[tuple[int, ...]] = [(draw.randint(2, 16),)]
            if len(un.machine(name).extents or ()) == 2 or kind == "wafer":
                shapes.append((draw.randint(2, 6), draw.randint(2, 6)))
            shape = draw.choice(shapes)
    return Problem(collective, name, shape, elements)


def program(problem: Problem, folder: Path) -> str:
    """Writes a workload file of the collective alone, and returns its path."""
    rows, columns = problem.shape if len(problem.shape) == 2 else (1, *problem.shape)
    (folder / "alone.toml").write_text(f"""
name = "alone"
[[dimensions]]
name = "d"
size = {rows * columns}
shape = [{rows}, {columns}]
[[steps]]
name = "only"
compute_us = 0
[[steps.communication]]
collective = "{problem.collective}"
elements = {problem.elements}
""")
    return str(folder / "alone.toml")


def emitted(problem: Problem, machine: un.Machine, folder: Path) -> dict[str, float]:
    """Returns by format the simulated time of the written file, divided by the planned time for that format."""
    found = {}
    for target in ("mscclpp", "msccl-xml"):
        try:
            plan = un.plan(problem.collective, machine, elements=problem.elements, target=target)
            [file] = un.emit(plan.schedule, target, folder / target)
        except un.UnsupportedError:
            continue
        found[target] = un.simulate(un.load(folder / target / file), machine).seconds / plan.predicted["seconds"]
    return found


def proposed(problem: Problem, machine: un.Machine, target: str | None) -> float | None:
    """Returns the least predicted seconds of the plans that `tune` would measure for a target; None without plans."""
    collective, _, shape, elements = problem
    ranks, file = math.prod(shape), None if target is None else FileFor(target, says(target), None)
    offered = offers(SimpleNamespace(rank=0), collective, machine, [elements], [(ranks, ranks)], _ALL, file)(ranks)
    return min((plan.predicted["seconds"] for plans in offered or () for plan in plans), default=None)


def tuned(problem: Problem, machine: un.Machine, plan: un.Plan) -> dict[str, float]:
    """Returns the times of the best proposals of `tune`, alone and for a library, divided by those of the plans."""
    collective, _, _, elements = problem
    found: dict[str, tuple[float | None, float]] = {}
    # `tune` measures only allreduces that give all ranks the same bits, because programs rely on this.
    if collective != "allreduce" or plan.schedule.verify().repeatable:
        found["tune"] = proposed(problem, machine, None), plan.predicted["seconds"]
    try:
        of_library = un.plan(collective, machine, elements=elements, target=_RULES)
    except un.UnsupportedError:
        pass
    else:
        found[f"tune --for {_RULES}"] = proposed(problem, machine, _RULES), of_library.predicted["seconds"]
    return {way: math.inf if best is None else best / planned for way, (best, planned) in found.items()}


def times(kind: str, problem: Problem, *, files: bool = True) -> Times:
    """Returns the times of a problem by every command; with ``files``, also those of written plans for GPUs."""
    collective, name, shape, elements = problem
    machine = un.machine(name, shape=shape)
    plan = un.plan(collective, machine, elements=elements)
    planned = plan.predicted["seconds"]
    [point] = un.sweep(collective, name, shapes=[shape], elements=[elements])
    [row] = un.expect(collective, machine, sizes=[4 * elements])["rows"]
    named = un.plan(collective, machine, elements=elements, algorithm=plan.algorithm, params=plan.params)
    found: dict[str, float | None] = {"sweep": point["seconds"], "expect": row["plan"]}
    # On a wafer, planning simulates only its own choice; a named algorithm has the time, and the source, of the model.
    if named.predicted["source"] == plan.predicted["source"]:
        found["plan --algorithm"] = named.predicted["seconds"]
    others = tuned(problem, machine, plan) if kind == "endpoint" else {}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        if kind in ("network", "GPUs"):
            file = program(problem, folder)
            [compared] = un.compare([file], [name])
            found["workload"] = un.workload(file, name)["seconds"]
            found["compare"] = compared["seconds"]
        if kind == "GPUs" and files:
            others |= emitted(problem, machine, folder)
        un.save(plan.schedule, folder / "made.sched")
        run = un.simulate(un.load(folder / "made.sched"))
        if plan.predicted["source"] == "simulated":
            found["simulate"] = run.seconds
    # A command that reports no time counts as infinitely far from the plan.
    asked = {way: math.inf if seconds is None else seconds / planned for way, seconds in found.items()}
    return Times(asked | others, run.seconds / planned)


def main() -> None:
    """Adds the figures of each kind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=10, help="problems a kind")
    given = parsed(parser)
    with Figures("choices", "One question asked in every way", given) as figures:
        for kind in KINDS:
            found = [times(kind, drawn(kind, seed)) for seed in range(given.problems)]
            differences = [abs(ratio - 1) for one in found for ratio in one.alike.values()]
            error = max(abs(one.simulated - 1) for one in found)
            note = f"{given.problems} random problems; the largest difference is {max(differences):.2g}"
            figures.add(kind, Of("times compared", len(differences)), Of("error of the model", error), note=note)


if __name__ == "__main__":
    main()
