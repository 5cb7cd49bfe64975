"""Decision tables by measurement: the model proposes, interleaved rounds decide, the library stays where it is good."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unisono._core import Machine, Plan
from unisono.machines.descriptions import with_shape
from unisono.measuring import contest
from unisono.mpi.collectives import Collectives
from unisono.mpi.groups import members, nodes, wait_for
from unisono.planning import save_plans
from unisono.planning.decisions import LIBRARY, Times, between, boundary, choose, deciding
from unisono.planning.proposals import proposals, propose

__all__ = ["Cell", "Contender", "Family", "Row", "groups", "rows_of", "tune"]


@dataclass
class Contender:
    """A contender at a size: a plan, or the library (None)."""

    plan: Plan | None
    seconds: float
    #: Rounds in which it was faster than the library.
    won: int
    #: Whether its calls ran as planned; a schedule that does not serve a count leaves it to the library.
    effective: bool = True

    @property
    def name(self) -> str:
        """The algorithm; at one size each has one set of parameters."""
        return LIBRARY if self.plan is None else self.plan.algorithm


@dataclass
class Cell:
    """One size of one collective on a number of ranks: contenders, the library first, and which was chosen."""

    collective: str
    ranks: int
    per_node: int
    elements: int
    rounds: int
    contenders: list[Contender]
    chosen: str = LIBRARY

    @property
    def bytes(self) -> int:
        """The size as MPI counts it."""
        return 4 * self.elements

    def deciding(self, name: str) -> float | None:
        """The time that a contender is judged by."""
        found = next((c for c in self.contenders if c.name == name and c.effective), None)
        if found is None or found.plan is None:
            return None if found is None else found.seconds
        return deciding(found.seconds, found.won, self.rounds, self.contenders[0].seconds)

    def report(self) -> dict[str, Any]:
        """The cell for JSON."""
        return {
            "collective": self.collective,
            "ranks": self.ranks,
            "per_node": self.per_node,
            "bytes": self.bytes,
            "chosen": self.chosen,
            "contenders": [
                {
                    "algorithm": contender.name,
                    "params": {} if contender.plan is None else contender.plan.params,
                    "seconds": contender.seconds,
                    "rounds_won": contender.won,
                    "effective": contender.effective,
                }
                for contender in self.contenders
            ],
        }


@dataclass
class Row:
    """A region of the table."""

    collective: str
    ranks: int
    per_node: int
    first_bytes: int
    last_bytes: int | None
    plan: Plan | None
    #: Whether this number of ranks was measured; else its times were interpolated.
    measured: bool

    @property
    def serves(self) -> Plan | tuple[str, int]:
        """The source that serves the row, as a plan file takes it."""
        return self.plan or (self.collective, self.ranks)

    def report(self) -> dict[str, Any]:
        """The row for JSON."""
        return {
            "collective": self.collective,
            "ranks": self.ranks,
            "per_node": self.per_node,
            "first_bytes": self.first_bytes,
            "last_bytes": self.last_bytes,
            "algorithm": LIBRARY if self.plan is None else self.plan.algorithm,
            "params": {} if self.plan is None else self.plan.params,
            "measured": self.measured,
        }


@dataclass
class Family:
    """Cells of one collective whose nodes are filled alike, up to a number of ranks a node."""

    collective: str
    per_node: int
    counts: list[int]
    #: By ranks, ascending, a cell for each of the counts.
    cells: dict[int, list[Cell]] = field(default_factory=dict)


def groups(
    mpi: Any, world: Any, ranks: Sequence[int], per_node: Sequence[int] | None
) -> tuple[dict[tuple[int, int], list[int]], list[int], list[str]]:
    """Members by ``(ranks, ranks per node)``, the limits of ranks per node, and what cannot be had on these nodes."""
    machine = nodes(mpi, world)
    limits = sorted(per_node) if per_node else [max(map(len, machine))]
    found: dict[tuple[int, int], list[int]] = {}
    missing = []
    for limit in limits:
        for count in ranks:
            placed = min(count, limit)
            chosen = members(machine, count, placed)
            if chosen is None:
                missing.append(f"{count} ranks, {placed} a node")
            else:
                found[count, placed] = chosen
    return found, limits, missing


def tune(
    mpi: Any,
    world: Any,
    collectives: Sequence[str],
    machine: Machine,
    counts: Sequence[int],
    where: tuple[dict[tuple[int, int], list[int]], list[int]],
    candidates: int,
    rounds: int,
    progress: Callable[[int, int], None],
) -> list[Family]:
    """Measures collectives at every count on every group of ranks; all ranks of MPI's world call it.

    The families have their cells on rank 0 only.
    """
    placed, limits = where
    families = [Family(name, limit, list(counts)) for name in collectives for limit in limits]
    measured: dict[tuple[str, int, int], list[Cell]] = {}
    done, total = 0, len(collectives) * len(placed) * len(counts)
    for name in collectives:
        names = None
        if world.rank == 0:
            names = _worthwhile(name, machine, counts, sorted({ranks for ranks, _ in placed}), candidates)
        for (ranks, per_node), chosen in placed.items():
            plans = None if names is None else _plans(name, with_shape(machine, ranks), counts, names)
            cells = measured[name, ranks, per_node] = []
            group = world.Create_group(world.group.Incl(chosen)) if world.rank in chosen else None
            for cell in _measure(mpi, group, name, per_node, counts, plans, rounds):
                cells.append(cell)
                done += 1
                progress(done, total)
            if group is not None:
                group.Free()
            wait_for(world)
    for family in families if world.rank == 0 else []:
        for (name, ranks, per_node), cells in sorted(measured.items(), key=lambda item: item[0][1]):
            if name == family.collective and per_node == min(ranks, family.per_node):
                family.cells[ranks] = cells
                for cell, choice in zip(cells, choose(_times(cells)), strict=True):
                    cell.chosen = choice
    return families


def _worthwhile(
    collective: str, machine: Machine, counts: Sequence[int], ranks: Sequence[int], most: int
) -> dict[int, list[str]]:
    """For each count the best few algorithms on any of the numbers of ranks, so that all are timed on all."""
    found: dict[int, list[str]] = {}
    for count in counts:
        names: dict[str, None] = {}
        for n in ranks:
            names |= dict.fromkeys(
                plan.algorithm for plan in proposals(collective, with_shape(machine, n), count, most)
            )
        found[count] = sorted(names)
    return found


def _plans(collective: str, machine: Machine, counts: Sequence[int], names: dict[int, list[str]]) -> list[list[Plan]]:
    """For each count the algorithms that serve it."""
    made = [[propose(collective, machine, count, name, None) for name in names[count]] for count in counts]
    return [[plan for plan in plans if plan is not None] for plans in made]


def _measure(
    mpi: Any,
    group: Any | None,
    collective: str,
    per_node: int,
    counts: Sequence[int],
    plans: list[list[Plan]] | None,
    rounds: int,
) -> Iterator[Cell]:
    """Times all contenders on a group, at all counts; on other ranks nothing.

    Contender number k of all counts shares a plan file, each of which a library of its own serves.
    """
    if group is None:
        return
    with tempfile.TemporaryDirectory(prefix="unisono-") as own:
        folder = Path(group.bcast(own))
        lanes = group.bcast(None if plans is None else max(map(len, plans)))
        if plans is not None:
            for lane in range(lanes):
                rows = [
                    (here[lane], 4 * count, 4 * count)
                    for count, here in zip(counts, plans, strict=True)
                    if lane < len(here)
                ]
                save_plans(rows, folder / f"{lane}.plan")
        group.Barrier()
        library = Collectives(mpi, group)
        served = [Collectives(mpi, group, folder / f"{lane}.plan") for lane in range(lanes)]
        for at, count in enumerate(counts):
            number = group.bcast(None if plans is None else len(plans[at]))
            result = contest(mpi, group, [library, *served[:number]], collective, count, rounds)
            contenders = [Contender(None, result.timings[0].seconds, 0)]
            for lane, timing in enumerate(result.timings[1:], start=1):
                plan = None if plans is None else plans[at][lane - 1]
                effective = timing.served == timing.calls
                contenders.append(Contender(plan, timing.seconds, result.won(lane), effective))
            yield Cell(collective, group.size, per_node, count, rounds, contenders)
        group.Barrier()


def _times(cells: Sequence[Cell]) -> Times:
    names = {contender.name for cell in cells for contender in cell.contenders} | {LIBRARY}
    return {name: [cell.deciding(name) for cell in cells] for name in sorted(names)}


def rows_of(family: Family, machine: Machine) -> list[Row]:
    """The regions of a family: of each number of ranks from the first measured to the last."""
    rows: list[Row] = []
    ends = sorted(family.cells)
    for low, high in zip(ends, [*ends[1:], ends[-1]], strict=True):
        lows, highs = _times(family.cells[low]), _times(family.cells[high])
        rows += _regions(family, low, lows, _measured(family.cells[low]), True)
        for ranks in range(low + 1, high):
            plans = {
                n: _proposed(family, with_shape(machine, n), sorted(set(lows) & set(highs) - {LIBRARY}))
                for n in (low, high, ranks)
            }
            models: dict[int, Times] = {
                n: {name: [None if p is None else p.predicted["seconds"] for p in of] for name, of in here.items()}
                for n, here in plans.items()
            }
            times = between(ranks, (low, lows), (high, highs), models)
            rows += _regions(family, ranks, times, plans[ranks], False)
    return rows


def _measured(cells: Sequence[Cell]) -> dict[str, list[Plan | None]]:
    names = {contender.name for cell in cells for contender in cell.contenders}
    of = [{contender.name: contender.plan for contender in cell.contenders} for cell in cells]
    return {name: [here.get(name) for here in of] for name in names}


def _proposed(family: Family, machine: Machine, names: Sequence[str]) -> dict[str, list[Plan | None]]:
    return {name: [propose(family.collective, machine, count, name, None) for count in family.counts] for name in names}


def _regions(
    family: Family, ranks: int, times: Times, plans: dict[str, list[Plan | None]], measured: bool
) -> list[Row]:
    """Regions of equal choice; between two sizes that differ they meet where both take equally long."""
    chosen = choose(times)
    rows: list[Row] = []
    first = 0
    for at, name in enumerate(chosen):
        last = None
        plan = None if name == LIBRARY else plans[name][at]
        if at + 1 < len(chosen):
            following = chosen[at + 1]
            other = None if following == LIBRARY else plans[following][at + 1]
            if name == following and (plan is None or (other is not None and plan.params == other.params)):
                continue
            sizes = 4 * family.counts[at], 4 * family.counts[at + 1]
            ends = [(times[name][at], times[name][at + 1]), (times[following][at], times[following][at + 1])]
            known = [(a, b) for a, b in ends if a is not None and b is not None]
            # Where one was not timed at both, they meet in the middle.
            last = boundary(sizes, *known) if len(known) == 2 else boundary(sizes, (1.0, 1.0), (1.0, 1.0))
        placed = min(ranks, family.per_node)
        rows.append(Row(family.collective, ranks, placed, first, last, plan, measured))
        first = 0 if last is None else last + 1
    return rows
