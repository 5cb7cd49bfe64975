"""Makes decision tables by measurement: the model proposes schedules, and interleaved rounds compare them with MPI."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from unisono import _core
from unisono._core import Error, Machine, Plan
from unisono.mpi.collectives import Collectives
from unisono.mpi.exports import row_of
from unisono.mpi.forcing import Variables, forced
from unisono.mpi.groups import members, nodes, wait_for
from unisono.mpi.library import together
from unisono.planning.plan_files import encoded_plans
from unisono.tuning.kept import Asked, Contests
from unisono.tuning.measuring import Contestant, is_idle
from unisono.tuning.pieces import in_other_pieces

__all__ = [
    "LIBRARY",
    "MOSTLY",
    "SHORT",
    "Cell",
    "Contender",
    "Family",
    "FileFor",
    "Row",
    "check_served",
    "contestants",
    "described",
    "families_of",
    "groups",
    "offers",
    "rows_of",
    "tune",
    "unserved",
]

#: The contender that is the MPI library's own algorithms.
LIBRARY = "library"
#: The size in bytes below which a call takes about a microsecond, partly for its interception. Below it a schedule must
#: be faster than the library's fastest round, in most rounds and on an idle machine.
SHORT = 2048
#: The least fraction of rounds that a schedule must win.
MOSTLY = 5 / 6


class FileFor(NamedTuple):
    """The file of a library for which a table is measured."""

    #: The name of its format, as of ``unisono export --format``.
    format: str
    #: A function from a row of a decision table to the text that states it in the file; None if the file cannot state
    #: it.
    says: Callable[[dict[str, Any]], str | None]
    #: A function from a row to variables of the library with the same effect as the file, so that the library's own
    #: algorithm is timed; None to time Unisono's schedule of that name.
    variables: Callable[[dict[str, Any]], Variables] | None


@dataclass
class Contender:
    """A contender at one size: a plan, or the library (``plan`` is None)."""

    plan: Plan | None
    seconds: float
    #: The number of rounds in which the contender was faster than the library; below :data:`SHORT`, than the library's
    #: fastest round.
    won: int
    #: True if the contender's calls ran as planned; see :func:`check_served`.
    effective: bool = True
    #: True if the contender did not clearly win at a short size, and so must not serve this size.
    left: bool = False
    #: True if the contender was measured; else its time and won rounds are expected values from other measurements.
    measured: bool = True

    @property
    def name(self) -> str:
        """Returns the algorithm; several contenders may have the same with different numbers of pieces."""
        return LIBRARY if self.plan is None else self.plan.algorithm

    @property
    def counts(self) -> bool:
        """Returns whether the contender may be chosen at this size."""
        return self.effective and not self.left


@dataclass
class Cell:
    """One size of one collective on a number of ranks: its contenders, the library first, and the choice."""

    collective: str
    ranks: int
    per_node: int
    elements: int
    rounds: int
    contenders: list[Contender]
    chosen: str = LIBRARY

    @property
    def bytes(self) -> int:
        """Returns the size in bytes as MPI counts it."""
        return 4 * self.elements

    @property
    def fastest(self) -> list[Contender]:
        """Returns the contenders among which a table chooses: each algorithm with its fastest parameters."""
        return list(self._fastest().values())

    def is_chosen(self, contender: Contender) -> bool:
        """Returns whether a contender serves the cell."""
        return self._fastest().get(self.chosen) is contender

    def _fastest(self) -> dict[str, Contender]:
        """Returns the fastest contender of each algorithm.

        A contender that is ``left`` is returned only if all contenders of its algorithm are ``left``.
        """
        found: dict[str, Contender] = {}
        for contender in self.contenders:
            best = found.get(contender.name)
            if best is None or (best.left, best.seconds) > (contender.left, contender.seconds):
                found[contender.name] = contender
        return found

    def report(self) -> dict[str, Any]:
        """Returns the cell for JSON."""
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
                    "measured": contender.measured,
                }
                for contender in self.contenders
            ],
        }


@dataclass
class Row:
    """A row of the table: a range of sizes in bytes of one collective on one number of ranks."""

    collective: str
    ranks: int
    per_node: int
    first_bytes: int
    last_bytes: int | None
    plan: Plan | None
    #: True if this number of ranks was measured; else its choice is interpolated.
    measured: bool
    #: The conditions under which the row was confirmed; see :mod:`unisono.tuning.confirming`.
    tuned: str | None = None

    @property
    def serves(self) -> Plan | tuple[str, int]:
        """Returns the source of the row for a plan file."""
        return self.plan or (self.collective, self.ranks)

    @property
    def name(self) -> str:
        """Returns the name of the row's algorithm."""
        return LIBRARY if self.plan is None else self.plan.algorithm

    def covers(self, collective: str, ranks: int, per_node: int, size: int) -> bool:
        """Returns whether the row is for calls of this size in bytes."""
        last = size if self.last_bytes is None else self.last_bytes
        asked = (collective, ranks, per_node)
        return asked == (self.collective, self.ranks, self.per_node) and self.first_bytes <= size <= last

    def ends_before(self, other: "Row") -> bool:
        """Returns whether the other row begins where this row ends."""
        alike = (self.collective, self.ranks, self.per_node) == (other.collective, other.ranks, other.per_node)
        return alike and self.last_bytes is not None and self.last_bytes + 1 == other.first_bytes

    def report(self) -> dict[str, Any]:
        """Returns the row for JSON."""
        return {
            "collective": self.collective,
            "ranks": self.ranks,
            "per_node": self.per_node,
            "first_bytes": self.first_bytes,
            "last_bytes": self.last_bytes,
            "algorithm": self.name,
            "params": {} if self.plan is None else self.plan.params,
            "measured": self.measured,
            "tuned": self.tuned,
        }


@dataclass
class Family:
    """The cells of one collective on groups that fill nodes with up to ``per_node`` ranks."""

    collective: str
    per_node: int
    counts: list[int]
    #: True if rows between measured numbers of ranks use the algorithm's best parameters there, which files for other
    #: libraries cannot always state.
    best: bool = True
    #: The cells of each number of ranks, ascending; one cell for each of the counts.
    cells: dict[int, list[Cell]] = field(default_factory=dict)


def groups(
    mpi: Any, world: Any, ranks: Sequence[int], per_node: Sequence[int] | None
) -> tuple[dict[tuple[int, int], list[int]], list[int], list[str]]:
    """Returns members by ``(ranks, ranks per node)``, limits of ranks per node, and impossible groups."""
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
    file: FileFor | None = None,
    contests: Contests | None = None,
) -> list[Family]:
    """Measures collectives at every count on every group of ranks. All ranks of MPI's world call this.

    With ``file``, candidates are only plans that the file can state. ``contests`` keeps measurements.

    Only on rank 0 the families have cells.
    """
    placed, limits = where
    contests = contests or Contests()
    idle = is_idle(mpi, world)
    measured: dict[tuple[str, int, int], list[Cell]] = {}
    done, total = 0, len(collectives) * len(placed) * len(counts)
    for name in collectives:
        offered = offers(world, name, machine, counts, placed, candidates, file)
        for (ranks, per_node), chosen in placed.items():
            cells = measured[name, ranks, per_node] = []
            group = world.Create_group(world.group.Incl(chosen)) if world.rank in chosen else None
            plans = offered(ranks)
            if plans is not None and file is None:
                for of, count in zip(plans, counts, strict=True):
                    of += in_other_pieces(of, machine, ranks, count)
            for cell in _measure(mpi, group, name, per_node, counts, plans, rounds, idle, file, contests):
                cells.append(cell)
                done += 1
                progress(done, total)
            if group is not None:
                group.Free()
            wait_for(world)
            together(world, partial(check_served, cells))
    return families_of(collectives, limits, counts, measured, best=file is None) if world.rank == 0 else []


def check_served(cells: Iterable[Cell]) -> None:
    """Refuses measurements in which a schedule did not run, because its times would be those of the library.

    Raises:
        Error: a contender did not serve its calls.

    """
    for cell in cells:
        for contender in cell.contenders:
            if not contender.effective:
                raise unserved(cell.collective, cell.ranks, cell.bytes, contender.name)


def unserved(collective: str, ranks: int, size: int, name: str) -> Error:
    """Returns the error for a schedule that did not run."""
    return Error(
        f"{name} did not run where it was measured: calls of {collective} of {size} bytes on {ranks} ranks went to the "
        "MPI library, so nothing was tuned and no file was written; 'unisono doctor' on each node names what is missing"
    )


def families_of(
    collectives: Sequence[str],
    limits: Sequence[int],
    counts: Sequence[int],
    measured: Mapping[tuple[str, int, int], list[Cell]],
    *,
    best: bool = True,
) -> list[Family]:
    """Groups cells into families, and makes the choice in each cell."""
    families = [Family(name, limit, list(counts), best) for name in collectives for limit in limits]
    for family in families:
        for (name, ranks, per_node), cells in sorted(measured.items(), key=lambda item: item[0][1]):
            if name == family.collective and per_node == min(ranks, family.per_node):
                family.cells[ranks] = cells
                found = _core.chosen([c.fastest for c in cells], cells[0].rounds)
                for cell, choice in zip(cells, found, strict=True):
                    cell.chosen = choice
    return families


def offers(
    world: Any,
    collective: str,
    machine: Machine,
    counts: Sequence[int],
    placed: Iterable[tuple[int, int]],
    candidates: int,
    file: FileFor | None,
) -> Callable[[int], list[list[Plan]] | None]:
    """Returns a function from a number of ranks to the plans for each count; on ranks other than 0 it returns None."""
    if world.rank != 0:
        return lambda _: None
    if file is not None:
        return lambda ranks: [_stated(collective, machine, ranks, count, candidates, file) for count in counts]
    names = _core.worthwhile(collective, machine, counts, sorted({ranks for ranks, _ in placed}), candidates)
    return lambda ranks: [
        [plan for name in of if (plan := _core.propose(collective, machine, ranks, count, name, None)) is not None]
        for count, of in zip(counts, names, strict=True)
    ]


def _stated(collective: str, machine: Machine, ranks: int, count: int, most: int, file: FileFor) -> list[Plan]:
    """Returns the model's first ``most`` plans that the file states by different texts, or that differ in variables."""

    def found() -> Iterator[Plan]:
        known: set[object] = {None}
        row = {"collective": collective, "ranks": ranks, "per_node": None, "class": None}
        row |= {"first_bytes": 4 * count, "last_bytes": 4 * count}
        for algorithm, params in _core.settings(collective, machine, ranks, count, file.format):
            asked = {**row, "algorithm": algorithm, "params": params}
            text: object = file.says(asked)
            if text is not None and file.variables is not None:
                # Parameters that state defaults force the same algorithm as none.
                text = tuple(sorted(file.variables(asked).items()))
            if text in known:
                continue
            plan = _core.propose(collective, machine, ranks, count, algorithm, params)
            if plan is not None:
                known.add(text)
                yield plan

    return list(islice(found(), most))


def _measure(
    mpi: Any,
    group: Any | None,
    collective: str,
    per_node: int,
    counts: Sequence[int],
    plans: list[list[Plan]] | None,
    rounds: int,
    idle: bool,
    file: FileFor | None,
    contests: Contests,
) -> Iterator[Cell]:
    """Times all contenders on a group, at all counts; yields nothing on ranks outside the group.

    Without ``idle``, no schedule wins at a short size.
    """
    if group is None:
        return
    with contestants(mpi, group, counts, plans, file) as (library, *served):
        for at, count in enumerate(counts):
            number = group.bcast(None if plans is None else len(plans[at]))
            asked = None
            if plans is not None:
                asked = Asked("choose", per_node, [None, *(described(plan, count, file) for plan in plans[at])])
            result = contests.time(mpi, group, [library, *served[:number]], collective, count, rounds, asked)
            contenders = [Contender(None, result.timings[0].seconds, 0)]
            for lane, timing in enumerate(result.timings[1:], start=1):
                plan = None if plans is None else plans[at][lane - 1]
                effective = timing.served == timing.calls
                short = 4 * count < SHORT
                won = result.won_all(lane) if short else result.won(lane)
                left = short and not (idle and won >= MOSTLY * rounds)
                contenders.append(Contender(plan, timing.seconds, won, effective, left))
            yield Cell(collective, group.size, per_node, count, rounds, contenders)


def described(plan: Plan, elements: int, file: FileFor | None) -> tuple[object, ...]:
    """Returns the properties that decide what the contestant of a plan runs at a size."""
    if file is not None and file.variables is not None:
        return "forced", *sorted(file.variables(row_of(plan, 4 * elements, 4 * elements)).items())
    return plan.algorithm, *sorted(plan.params.items())


@contextmanager
def contestants(
    mpi: Any, group: Any, counts: Sequence[int], plans: list[list[Plan]] | None, file: FileFor | None
) -> Iterator[list[Contestant]]:
    """Yields the library, then one contestant for each contender index, with the plans of that index at all counts."""
    lanes: list[list[tuple[Plan, int]]] = [
        [(here[lane], count) for count, here in zip(counts, plans or (), strict=True) if lane < len(here)]
        for lane in range(0 if plans is None else max(map(len, plans)))
    ]
    if file is not None and (variables := file.variables) is not None:
        sizes = [{count: variables(row_of(plan, 4 * count, 4 * count)) for plan, count in lane} for lane in lanes]
        # The library's own choice needs no variables.
        with forced(mpi, group, [{count: {} for count in counts}, *group.bcast(sizes)]) as all_of_them:
            yield [*all_of_them]
            group.Barrier()
        return
    # The plans are broadcast, because ranks on other nodes may share no folder with rank 0.
    tables = group.bcast([encoded_plans([(plan, 4 * count, 4 * count) for plan, count in lane]) for lane in lanes])
    yield [Collectives(mpi, group), *(Collectives(mpi, group, table) for table in tables)]
    group.Barrier()


def rows_of(family: Family, machine: Machine) -> list[Row]:
    """Returns the rows of a family, for each number of ranks from the smallest to the largest measured."""
    measured = {ranks: [cell.fastest for cell in cells] for ranks, cells in family.cells.items()}
    rounds = next((cell.rounds for cells in family.cells.values() for cell in cells), 0)
    asked = (family.collective, machine, family.per_node, family.counts, measured, rounds, family.best)
    found = _core.tuned_regions(*asked)
    return [Row(family.collective, **region) for region in found]
