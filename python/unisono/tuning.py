"""Decision tables by measurement: the model proposes, interleaved rounds decide, the library stays where it is good."""

import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unisono import Machine, Plan, plan, save_plans
from unisono._collectives import Collectives
from unisono.measuring import Contestant, contest

#: A schedule takes the library's place where it is faster by this factor of the median ...
CLEARLY = 1.05
#: ... and in this share of the rounds.
MOSTLY = 5 / 6


@dataclass
class Contender:
    """What was timed at a size: a plan, or the library (None)."""

    plan: Plan | None
    seconds: float
    #: Rounds in which it was faster than the library.
    won: int

    def name(self) -> tuple[str, str]:
        """What distinguishes it from others."""
        return ("library", "") if self.plan is None else (self.plan.algorithm, str(sorted(self.plan.params.items())))


@dataclass
class Cell:
    """One size of one collective: contenders, the library first, and which was chosen."""

    collective: str
    ranks: int
    elements: int
    rounds: int
    contenders: list[Contender]
    chosen: int = 0

    @property
    def bytes(self) -> int:
        """The size as MPI counts it."""
        return 4 * self.elements

    def report(self) -> dict[str, Any]:
        """The cell for JSON."""
        return {
            "collective": self.collective,
            "ranks": self.ranks,
            "bytes": self.bytes,
            "chosen": self.contenders[self.chosen].name()[0],
            "contenders": [
                {
                    "algorithm": contender.name()[0],
                    "params": {} if contender.plan is None else contender.plan.params,
                    "seconds": contender.seconds,
                    "rounds_won": contender.won,
                }
                for contender in self.contenders
            ],
        }


@dataclass
class Row:
    """A region of the table."""

    serves: Any
    first_bytes: int
    last_bytes: int | None
    algorithm: str
    params: dict[str, Any]

    def report(self) -> dict[str, Any]:
        """The row for JSON."""
        return {
            "first_bytes": self.first_bytes,
            "last_bytes": self.last_bytes,
            "algorithm": self.algorithm,
            "params": self.params,
        }


def tune_collective(
    mpi: Any,
    collective: str,
    machine: Machine,
    counts: Sequence[int],
    candidates: int,
    rounds: int,
) -> list[Cell]:
    """Measures one collective at every count on all ranks of MPI's world; all of them call it.

    One process reads one plan file, which holds one schedule a size; so contender number k of a size is called with k
    elements more, and the plan file has a row for each of these sizes.
    """
    world = mpi.COMM_WORLD
    proposals = [_proposals(collective, machine, count, candidates) for count in counts]
    folder = Path(world.bcast(tempfile.mkdtemp(prefix="unisono-") if world.rank == 0 else None))
    path = folder / f"{collective}.plan"
    if world.rank == 0:
        save_plans(
            [
                (proposed, 4 * (count + at), 4 * (count + at))
                for count, plans in zip(counts, proposals, strict=True)
                for at, proposed in enumerate(plans)
            ],
            path,
        )
    world.Barrier()
    # Each collective has its own library of plans, whose file is read at its first call.
    collectives = Collectives(mpi, world, path, fresh=True)
    cells = []
    for count, plans in zip(counts, proposals, strict=True):
        contestants: list[Contestant] = [(False, 0), *((True, at) for at in range(len(plans)))]
        result = contest(mpi, world, collectives, collective, count, contestants, rounds)
        contenders = [Contender(None, result.timings[0].seconds, 0)]
        for at, proposed in enumerate(plans):
            contenders.append(Contender(proposed, result.timings[at + 1].seconds, result.won(at + 1)))
        cells.append(Cell(collective, world.size, count, rounds, contenders, _choice(contenders, rounds)))
    world.Barrier()
    if world.rank == 0:
        path.unlink()
        folder.rmdir()
    _smooth(cells)
    return cells


def _proposals(collective: str, machine: Machine, count: int, most: int) -> list[Plan]:
    """The best few algorithms by the model, each once at its best parameters."""
    ranked = plan(collective, machine, elements=count)
    chosen: dict[str, dict[str, Any]] = {}
    for candidate in ranked.candidates:
        chosen.setdefault(candidate["algorithm"], candidate["params"])
    # So short that the contenders' sizes would meet those of the next count, fewer are told apart.
    names = list(chosen)[: min(most, max(count, 2))]
    return [plan(collective, machine, elements=count, algorithm=name, params=chosen[name] or None) for name in names]


def _choice(contenders: Sequence[Contender], rounds: int) -> int:
    """The fastest that is clearly and mostly faster than the library; else the library."""
    library = contenders[0].seconds
    best = 0
    for at, contender in enumerate(contenders[1:], start=1):
        clear = contender.seconds * CLEARLY < library and contender.won >= math.ceil(MOSTLY * rounds)
        if clear and (best == 0 or contender.seconds < contenders[best].seconds):
            best = at
    return best


def _smooth(cells: Sequence[Cell]) -> None:
    """A size whose neighbours agree joins them where that costs little: one choice a region, no islands of noise."""
    for before, cell, after in zip(cells, cells[1:], cells[2:], strict=False):
        around = before.contenders[before.chosen].name()
        if around != after.contenders[after.chosen].name() or around == cell.contenders[cell.chosen].name():
            continue
        same = [at for at, contender in enumerate(cell.contenders) if contender.name() == around]
        if same and cell.contenders[same[0]].seconds <= CLEARLY * cell.contenders[cell.chosen].seconds:
            cell.chosen = same[0]


def rows_of(cells: Sequence[Cell]) -> list[Row]:
    """Regions of equal choice; between two sizes that differ they meet at the geometric mean."""
    rows: list[Row] = []
    first = 0
    for at, cell in enumerate(cells):
        contender = cell.contenders[cell.chosen]
        last = None
        if at + 1 < len(cells):
            other = cells[at + 1]
            if other.contenders[other.chosen].name() == contender.name():
                continue
            last = math.isqrt(cell.bytes * other.bytes)
        if contender.plan is None:
            rows.append(Row((cell.collective, cell.ranks), first, last, "library", {}))
        else:
            rows.append(Row(contender.plan, first, last, contender.plan.algorithm, contender.plan.params))
        first = 0 if last is None else last + 1
    return rows
