"""Chooses tables with a property of the bits by measurement; the model proposes one table for each expression.

The choice is between whole tables, because a table has one expression. For each collective and number of ranks, the
table with the least sum, over the sizes, of the logarithms of times is chosen. The library is timed only to state the
cost: it serves no call.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Any

from unisono._core import Machine
from unisono.base.reports import BitsPrice
from unisono.mpi.collectives import Collectives
from unisono.mpi.groups import wait_for
from unisono.mpi.library import together
from unisono.planning.bits import PlanTable, plan_tables
from unisono.planning.plan_files import encoded_plans
from unisono.tuning.kept import Asked, Contests
from unisono.tuning.tables import LIBRARY, unserved

__all__ = ["BitsChoice", "tune_bits"]


@dataclass
class BitsChoice:
    """The measured tables of one collective on a number of ranks, and the choice among them."""

    collective: str
    ranks: int
    per_node: int
    tables: list[PlanTable]
    #: The seconds at each size, a list for each table; the last list is the library's.
    seconds: list[list[float]]
    sizes: list[int]

    @property
    def chosen(self) -> int:
        """Returns the index of the table with the least sum of logarithms of times."""
        return min(range(len(self.tables)), key=lambda at: sum(map(log, self.seconds[at])))

    @property
    def prices(self) -> list[BitsPrice]:
        """Returns, at each size, the measured time of the chosen table and the least of all tables and the library."""
        own, fastest = self.seconds[self.chosen], map(min, zip(*self.seconds, strict=True))
        return [
            {"bytes": size, "seconds": mine, "fastest_seconds": least}
            for size, mine, least in zip(self.sizes, own, fastest, strict=True)
        ]

    @property
    def cost(self) -> float:
        """Returns the geometric mean of the chosen table's time divided by the least time, over the sizes.

        The least time at a size is that of all tables and the library.
        """
        return exp(sum(log(p["seconds"] / p["fastest_seconds"]) for p in self.prices) / len(self.sizes))

    def report(self) -> dict[str, Any]:
        """Returns the choice for JSON."""
        names = ["; ".join(row["algorithm"] for row in table.report()["rows"]) for table in self.tables]
        times = zip([*names, LIBRARY], self.seconds, strict=True)
        return {
            "collective": self.collective,
            "ranks": self.ranks,
            "per_node": self.per_node,
            "cost": self.cost,
            "prices": self.prices,
            "rows": self.tables[self.chosen].report()["rows"],
            "contenders": [{"algorithms": name, "seconds": of} for name, of in times],
        }


def tune_bits(
    mpi: Any,
    world: Any,
    collectives: Sequence[str],
    machine: Machine,
    counts: Sequence[int],
    placed: dict[tuple[int, int], list[int]],
    asked: tuple[str, int | None],
    most: int,
    rounds: int,
    progress: Callable[[int, int], None],
    contests: Contests | None = None,
) -> list[BitsChoice]:
    """Measures at most ``most`` tables of each collective and group of ranks. All ranks of MPI's world call this.

    ``asked`` is a property of the bits, and the number of logical contributors of ``ranks-count``. Only rank 0 has the
    choices.

    Raises:
        Error: a table did not serve its calls.
        NotExpressibleError: no expression has candidates at all sizes.

    """
    found: list[BitsChoice] = []
    contests = contests or Contests()
    done, total = 0, len(collectives) * len(placed) * len(counts)
    for name in collectives:
        for (ranks, per_node), chosen in placed.items():

            def planned(name: str = name, ranks: int = ranks) -> list[PlanTable]:
                if world.rank != 0:
                    return []
                return plan_tables(name, machine, asked, most, (ranks,), (0, None), sorted({*counts} - {0}))

            tables = together(world, planned)
            group = world.Create_group(world.group.Incl(chosen)) if world.rank in chosen else None
            seconds: list[list[float]] = []
            failed = None
            if group is not None:
                files = group.bcast([encoded_plans(table.rows) for table in tables])
                contestants = [*(Collectives(mpi, group, raw) for raw in files), Collectives(mpi, group)]
                of_rows = [[(plan.algorithm, plan.params, *sizes) for plan, *sizes in table.rows] for table in tables]
                key = Asked("bits", per_node, [*of_rows, None])
                for count in counts:
                    timings = contests.time(mpi, group, contestants, name, count, rounds, key).timings
                    seconds.append([timing.seconds for timing in timings])
                    if any(timing.served != timing.calls for timing in timings[:-1]):
                        failed = 4 * count
                    done += 1
                    progress(done, total)
                group.Barrier()
                group.Free()
            wait_for(world)

            def served(name: str = name, ranks: int = ranks, failed: int | None = failed) -> None:
                if failed is not None:
                    raise unserved(name, ranks, failed, f"a table with the bits '{asked[0]}'")

            together(world, served)
            if world.rank == 0:
                by_table = [list(of) for of in zip(*seconds, strict=True)]
                sizes = [4 * count for count in counts]
                found.append(BitsChoice(name, ranks, per_node, tables, by_table, sizes))
    return found
