"""Confirms the choices of a decision table by measuring them again, paired with the library, before they are written.

A choice is the best of several noisy times, so its measured time is biased low. Each row with a schedule is timed
together with the library at the measured sizes in its range and at its first and last size, which were interpolated. If
the schedule is not faster in most rounds, as :func:`refusal` counts them, the library serves that size and all sizes up
to the next confirmed sizes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from statistics import median
from typing import Any

from unisono import _core
from unisono._core import Plan
from unisono.mpi.collectives import Collectives
from unisono.mpi.groups import members, nodes, wait_for
from unisono.mpi.library import together
from unisono.planning.plan_files import encoded_plans
from unisono.tuning.kept import Asked, Contests
from unisono.tuning.measuring import Contest, is_idle
from unisono.tuning.tables import MOSTLY, SHORT, FileFor, Row, contestants, described, unserved

__all__ = ["LEAST_FACTOR", "Trial", "confirm", "joined", "kept", "refusal", "trial_counts"]


#: The least permitted ratio of the last size of a schedule's range to its first; the library serves shorter ranges.
LEAST_FACTOR = 2


@dataclass(frozen=True)
class Trial:
    """A comparison of a schedule with the library at one size."""

    collective: str
    ranks: int
    per_node: int
    bytes: int
    algorithm: str
    #: The median over rounds of the schedule's time divided by the library's.
    ratio: float
    #: The reason why the library serves the size; empty if the schedule does.
    why: str = ""

    @property
    def kept(self) -> bool:
        """Returns whether the schedule serves the size."""
        return not self.why

    @property
    def name(self) -> str:
        """Returns the collective and its algorithm."""
        return f"{self.collective} by {self.algorithm}"

    def report(self) -> dict[str, Any]:
        """Returns the trial for JSON."""
        return self.__dict__ | {"kept": self.kept, "why": self.why or None}


def trial_counts(row: Row, counts: Sequence[int], unit: int = 1) -> list[int]:
    """Returns the numbers of elements at which a row is timed, ascending; empty if the row has no whole element.

    They are multiples of ``unit``, because a schedule with blocks of fixed length leaves other calls to the library.
    """
    first, last = -(-row.first_bytes // 4), None if row.last_bytes is None else row.last_bytes // 4
    edges = [-(-first // unit) * unit] * (row.first_bytes > 0) + ([last // unit * unit] if last is not None else [])
    wanted = {count for count in (*counts, *edges) if count >= max(first, 1) and count % unit == 0}
    return sorted(count for count in wanted if last is None or count <= last)


def _unit(plan: Plan | None) -> int:
    """Returns the number that divides every count of elements that a stored schedule serves; 1 without a plan."""
    if plan is None:
        return 1
    (stored,) = _core.decode_plan(encoded_plans([(plan, 0, None)]))
    return 1 if stored["any_count"] else stored["blocks"] or 1


def kept(row: Row, verdicts: Sequence[tuple[int, bool]]) -> list[Row]:
    """Returns the rows to write: the schedule for ranges between confirmed sizes, and the library for the rest.

    The library also serves ranges shorter than :data:`LEAST_FACTOR`. ``verdicts`` are pairs of a size in bytes,
    ascending, and whether the schedule was confirmed at this size. Rows of the library state no conditions.
    """
    held: list[tuple[int, int | None]] = []
    for at, (size, holds) in enumerate(verdicts):
        if holds and at > 0 and verdicts[at - 1][1]:
            held[-1] = (held[-1][0], size)
        elif holds:
            held.append((size, size))
    if held and verdicts[0][1]:
        held[0] = (row.first_bytes, held[0][1])
    if held and verdicts[-1][1]:
        held[-1] = (held[-1][0], row.last_bytes)
    # A single confirmed size says little about other sizes, and calls rarely have exactly this size.
    held = [(start, end) for start, end in held if end is None or end >= LEAST_FACTOR * max(start, 1) - 1]
    found, first = [], row.first_bytes
    for start, end in held:
        if start > first:
            found.append(replace(row, first_bytes=first, last_bytes=start - 1, plan=None, tuned=None))
        found.append(replace(row, first_bytes=start, last_bytes=end))
        if end is None:
            return found
        first = end + 1
    if row.last_bytes is None or first <= row.last_bytes:
        found.append(replace(row, first_bytes=first, plan=None, tuned=None))
    return found


def joined(rows: Sequence[Row]) -> list[Row]:
    """Returns the rows in the order of their sizes, with adjacent rows of the library joined."""
    found: list[Row] = []
    for row in rows:
        last = found[-1] if found else None
        if last is not None and last.plan is None and row.plan is None and last.ends_before(row):
            found[-1] = replace(last, last_bytes=row.last_bytes)
        else:
            found.append(row)
    return found


def confirm(
    mpi: Any,
    world: Any,
    rows: Sequence[Row],
    counts: Sequence[int],
    rounds: int,
    progress: Callable[[int, int], None],
    file: FileFor | None = None,
    contests: Contests | None = None,
) -> tuple[list[Row], list[Trial]]:
    """Times every schedule of a table together with the library. All ranks of MPI's world call this.

    With ``file``, the library's own algorithms are timed if :class:`FileFor` names variables for them. ``contests``
    keeps measurements.

    Only rank 0 has ``rows``; it returns the rows to write, with the conditions of their measurement.
    """
    idle = is_idle(mpi, world)
    machine = nodes(mpi, world)
    groups: dict[tuple[str, int, int], list[Row]] = {}
    for row in rows if world.rank == 0 else ():
        if row.plan is not None:
            groups.setdefault((row.collective, row.ranks, row.per_node), []).append(row)
    found = {id(row): [row] for row in rows}
    trials: list[Trial] = []
    wanted = world.bcast(
        [(group, [trial_counts(row, counts, _unit(row.plan)) for row in of]) for group, of in groups.items()]
    )
    for done, ((collective, ranks, per_node), at) in enumerate(wanted):
        own = groups.get((collective, ranks, per_node), [])
        lost: list[int] = []
        chosen = members(machine, ranks, per_node) or []
        if world.rank in chosen:
            group = world.Create_group(world.group.Incl(chosen))
            sizes = [count for of in at for count in of]
            plans = [[row.plan] for row, of in zip(own, at, strict=True) for _ in of] if world.rank == 0 else None
            tuned, results = _measured(
                mpi, group, collective, per_node, sizes, plans, rounds, file, contests or Contests()
            )
            group.Free()
            ran = {count: result.timings[1] for count, result in results.items()}
            lost = [4 * count for count, timing in ran.items() if timing.served != timing.calls]
            # Other ranks only took part in the measurement.
            for row, of in zip(own, at, strict=True) if world.rank == 0 else ():
                verdicts = [_trial(row, count, results[count], rounds, idle) for count in of]
                sized = [(trial.bytes, trial.kept) for trial in verdicts]
                parts = found[id(row)] = kept(replace(row, tuned=tuned), sized)
                trials += [_in_range(trial, parts) for trial in verdicts]
        wait_for(world)
        together(world, partial(_check_served, collective, ranks, lost))
        progress(done + 1, len(wanted))
    return joined([part for row in rows for part in found[id(row)]]), trials


def _check_served(collective: str, ranks: int, lost: Sequence[int]) -> None:
    """Raises an error if there are sizes at which the schedule did not run.

    Raises:
        Error: there is such a size.

    """
    if lost:
        raise unserved(collective, ranks, lost[0], "the chosen schedule")


def _measured(
    mpi: Any,
    group: Any,
    collective: str,
    per_node: int,
    counts: Sequence[int],
    plans: list[list[Plan | None]] | None,
    rounds: int,
    file: FileFor | None,
    contests: Contests,
) -> tuple[str, dict[int, Contest]]:
    """Returns the conditions of a group of ranks, and by elements the contest of the library and the plan."""
    given = None if plans is None else [[plan for plan in here if plan is not None] for here in plans]
    tuned = Collectives(mpi, group).conditions()
    if not counts:
        return tuned, {}
    found = {}
    with contestants(mpi, group, counts, given, file) as pair:
        for at, count in enumerate(counts):
            asked = None
            if given is not None:
                asked = Asked("confirm", per_node, [None, *(described(plan, count, file) for plan in given[at])])
            found[count] = contests.time(mpi, group, pair, collective, count, rounds, asked)
    return tuned, found


def _trial(row: Row, count: int, result: Contest, rounds: int, idle: bool) -> Trial:
    library, schedule = result.timings
    ratio = median(own / other for own, other in zip(schedule.rounds, library.rounds, strict=True))
    won = result.won_all(1) if 4 * count < SHORT else result.won(1)
    why = refusal(4 * count, won, rounds, idle=idle)
    return Trial(row.collective, row.ranks, row.per_node, 4 * count, row.name, ratio, why)


def _in_range(trial: Trial, rows: Sequence[Row]) -> Trial:
    """Returns the trial, with a reason if the schedule was confirmed but serves no row at this size."""
    where = (trial.collective, trial.ranks, trial.per_node, trial.bytes)
    if not trial.kept or any(row.plan is not None and row.covers(*where) for row in rows):
        return trial
    return replace(trial, why=f"it was confirmed for a range shorter than a factor of {LEAST_FACTOR}")


def refusal(size: int, won: int, rounds: int, *, idle: bool) -> str:
    """Returns the reason why the library serves a size again; empty if the schedule was confirmed.

    ``won`` is the number of rounds in which the schedule was faster than the library in the same round or, for short
    sizes, faster than the library's fastest round. Short calls take about a microsecond, and their times depend on
    other work of the cores, so these must be idle.
    """
    rule, than = "it needs", "the library's time"
    if size < SHORT:
        rule, than = f"below {SHORT // 1024} KiB it needs", "all times of the library"
        if not idle:
            return f"{rule} a core for each rank, and cores were shared or busy"
    least = ceil(MOSTLY * rounds)
    return "" if won >= least else f"{rule} {least} of {rounds} rounds below {than}, and won {won}"
