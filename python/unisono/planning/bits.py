"""Plans tables whose results have the same bits on all ranks, at all places, at all sizes or numbers of ranks."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from typing import SupportsIndex

from unisono import _core
from unisono._core import Error, InputError, NotExpressibleError, Plan, dtypes
from unisono.base import names
from unisono.base.files import write
from unisono.base.inputs import MachineLike, Root, checked_root, whole
from unisono.base.reports import BitsPrice, BitsTableReport
from unisono.machines.descriptions import Shape, with_shape
from unisono.planning.plan_files import Row, encoded_plans
from unisono.planning.ranges import planned_sizes, spans

__all__ = ["BITS", "PlanTable", "plan_table", "plan_tables", "save_table"]

#: The properties of the bits of results; each implies the properties before it.
BITS = ("ranks", "place", "size", "ranks-count")
#: Candidates slower than this multiple of the fastest candidate's time are not considered.
_SLOWEST = 16
#: A candidate: its algorithm and its parameters.
_Key = tuple[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True)
class PlanTable:
    """Rows of a ``.plan`` that together have a property of the bits."""

    bits: str
    #: Plans, and the first and last size in bytes that each serves (None: no limit).
    rows: Sequence[tuple[Plan, int, int | None]]
    #: The times with and without the property at each size that was planned.
    prices: list[BitsPrice]
    #: The number of distinct expressions from which a table could be made.
    expressions: int
    #: The number of logical contributors of ``ranks-count``.
    contributors: int | None = None

    @property
    def cost(self) -> float:
        """Returns the largest value, for all sizes, of the table's time divided by the fastest plan's."""
        return max(ratio(price) for price in self.prices)

    @property
    def mean_cost(self) -> float:
        """Returns the geometric mean for all sizes of the table's time divided by the fastest plan's."""
        return exp(sum(log(ratio(price)) for price in self.prices) / len(self.prices))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the table as a ``.plan``, after its programs are proved to have the property.

        Raises:
            Error: the programs lack the property.

        """
        save_table(self.rows, self.bits, path, self.contributors)

    def report(self) -> BitsTableReport:
        """Returns the table as a report, with its rows and the cost of the property."""
        return {
            "bits": self.bits,
            "cost": self.cost,
            "mean_cost": self.mean_cost,
            "expressions": self.expressions,
            "rows": [
                {
                    "first_bytes": first,
                    "last_bytes": last,
                    "algorithm": plan.algorithm,
                    "params": plan.params,
                    "predicted_seconds": plan.predicted["seconds"],
                }
                for plan, first, last in self.rows
            ],
            "prices": self.prices,
        }


def _key(algorithm: str, params: Mapping[str, str]) -> _Key:
    return algorithm, tuple(sorted(params.items()))


def save_table(rows: Iterable[Row], bits: str, path: str | os.PathLike[str], contributors: int | None = None) -> None:
    """Writes rows as a ``.plan``, after its programs are proved to have a property of the bits.

    Raises:
        Error: the programs lack the property.

    """
    raw = encoded_plans(rows)
    _, refused, tables = _core.check_plan_file(raw, contributors)
    if refused is not None:
        raise Error(refused)
    for found in tables:
        if bits not in found["bits"]:
            why = found["unlike_elements"] or found["unlike_contributors"]
            raise Error(f"the programs of the table lack '{bits}': {why}")
    write(path, raw)


def ratio(price: BitsPrice) -> float:
    """Returns the time with the property divided by the time without it; 1 if the time without it is 0."""
    return price["seconds"] / price["fastest_seconds"] if price["fastest_seconds"] > 0 else 1.0


def plan_table(
    collective: str,
    machine: MachineLike,
    *,
    bits: str = "size",
    shape: Shape | None = None,
    ranks: SupportsIndex | None = None,
    first_bytes: SupportsIndex = 0,
    last_bytes: SupportsIndex | None = None,
    dtype: str = "f32",
    op: str = "sum",
    root: Root = 0,
    model: str | None = None,
    contributors: SupportsIndex | None = None,
) -> PlanTable:
    """Plans a ``.plan`` for all sizes of a range whose results have the same bits.

    With ``bits="size"`` each element of each result has the same expression at all sizes and places. Candidates of all
    sizes are grouped by their expression, and the table is the group with the least ``mean_cost``. With ``"place"`` the
    expression may change from row to row, and with ``"ranks"`` from element to element.

    With ``"ranks-count"`` the expression is the tree of a number of logical ``contributors``, a multiple of the ranks.
    Each rank holds equally many contributors, in order, and adds them with :func:`add_contributors` before the call.
    Tables of other numbers of ranks then give the same bits.

    >>> import unisono as un
    >>> table = un.plan_table("allreduce", "archer", shape=4, last_bytes=4096)
    >>> table.save("/dev/null")

    Raises:
        InputError: a name, size, shape or root that does not exist.
        NotExpressibleError: no expression has candidates at all sizes.

    """
    sizes = whole("first_bytes", first_bytes), None if last_bytes is None else whole("last_bytes", last_bytes)
    asked = bits, None if contributors is None else whole("contributors", contributors)
    on = with_shape(machine, shape, ranks)
    return plan_tables(collective, on, asked, 1, None, sizes, dtype=dtype, op=op, root=root, model=model)[0]


def plan_tables(
    collective: str,
    machine: MachineLike,
    asked: tuple[str, int | None],
    most: int,
    shape: Shape | None,
    served: tuple[int, int | None],
    elements: Sequence[int] | None = None,
    *,
    dtype: str = "f32",
    op: str = "sum",
    root: Root = 0,
    model: str | None = None,
) -> list[PlanTable]:
    """Returns at most ``most`` tables with different expressions, the table with the least ``mean_cost`` first.

    ``asked`` is a property of the bits, and the number of logical contributors of ``ranks-count``. The tables are
    planned at the numbers of ``elements``, by default those of :func:`planned_sizes`.

    Raises:
        InputError: a name, size, shape or root that does not exist.
        NotExpressibleError: no expression has candidates at all sizes.

    """
    kind, of, how = names.collective(collective), names.datatype(dtype), names.operator(op)
    bits, contributors = asked
    if bits not in BITS:
        raise InputError(f"'{bits}' names no bits; accepted are {', '.join(BITS)}")
    if (contributors is None) is (bits == "ranks-count"):
        raise InputError("contributors is the number of logical contributors of bits='ranks-count'; give both or none")
    if contributors is not None and contributors < 1:
        raise InputError(f"contributors is {contributors}; accepted are multiples of the ranks")
    counts = planned_sizes(*served, dtypes()[of]) if elements is None else [*elements]
    on, at = with_shape(machine, shape), checked_root(root)

    def planned(count: int, algorithm: str | None = None, params: dict[str, str] | None = None) -> Plan:
        return _core.plan(kind, on, count, of, how, at, algorithm, params, model, target="preload")

    return _Search(planned, counts, asked).tables(most, served)


class _Search:
    """Groups the candidates of several sizes by the expression of their programs, and makes a table from each group.

    The class of a candidate's expression is determined at the largest size with the candidate. Its programs may have
    another class at another size: for example, a vector of one element uses only one tree of a forest. So the choices
    of a table are proved at their own sizes, and a table with a choice of another class is made again.
    """

    def __init__(self, planned: Callable[..., Plan], counts: Sequence[int], asked: tuple[str, int | None]) -> None:
        self._planned, self._counts, (self._bits, self._contributors) = planned, counts, asked
        self._plans: dict[tuple[int, _Key], Plan] = {}
        self._first: dict[_Key, str | None] = {}
        self._exact: dict[tuple[int, _Key], str | None] = {}
        best = [planned(count) for count in counts]
        self._bytes = [plan.report()["bytes"] for plan in best]
        self._fastest = [plan.predicted["seconds"] for plan in best]
        #: For each size, the times in seconds of the candidates that the format can express and that take at most
        #: `_SLOWEST` times as long as the fastest plan.
        self._timed: list[dict[_Key, float]] = []
        for plan, fastest in zip(best, self._fastest, strict=True):
            usable = (one for one in plan.candidates if one["expressible"] and one["seconds"] <= _SLOWEST * fastest)
            self._timed.append({_key(one["algorithm"], one["params"]): one["seconds"] for one in usable})
        for at in reversed(range(len(counts))):
            for key in self._timed[at]:
                if key not in self._first:
                    self._first[key] = self._class(at, key)

    def _plan(self, at: int, key: _Key) -> Plan:
        if (at, key) not in self._plans:
            self._plans[at, key] = self._planned(self._counts[at], key[0], dict(key[1]))
        return self._plans[at, key]

    def _class(self, at: int, key: _Key) -> str | None:
        """Returns the class of the expression of a candidate's programs at a size; None if they lack the property.

        The class is empty if the property permits different expressions.
        """
        if (at, key) not in self._exact:
            self._exact[at, key] = self._found(at, key)
        return self._exact[at, key]

    def _found(self, at: int, key: _Key) -> str | None:
        try:
            plan = self._plan(at, key)
            if _key(plan.algorithm, plan.params) != key:
                # The algorithm and its parameters match several candidates, of which a plan uses the best. This
                # candidate is another one.
                return None
            if self._bits != "ranks":
                found = plan.size_class(self._contributors)
                return "" if self._bits == "place" and found is not None else found
            [row] = _core.decode_plan(encoded_plans([(plan, 0, None)]))
        except Error:
            # A candidate whose programs cannot be stored cannot be in a ``.plan``.
            return None
        return "" if row["repeatable"] and row["any_count"] else None

    def _groups(self) -> list[list[_Key]]:
        """Returns groups of choices, sorted by mean cost.

        For each class that all sizes have, a group has the fastest candidate at each size.
        """
        found: list[dict[str, _Key]] = []
        for at, timed in enumerate(self._timed):
            found.append({})
            for key in sorted(timed, key=timed.__getitem__):
                name = self._exact.get((at, key), self._first[key])
                if name is not None:
                    found[-1].setdefault(name, key)
        groups = [[of[name] for of in found] for name in found[0] if all(name in of for of in found)]
        return sorted(groups, key=lambda keys: sum(log(ratio(price)) for price in self._prices(keys)))

    def _prices(self, keys: Sequence[_Key]) -> list[BitsPrice]:
        times = zip(self._bytes, keys, self._timed, self._fastest, strict=True)
        return [{"bytes": of, "seconds": timed[key], "fastest_seconds": least} for of, key, timed, least in times]

    def tables(self, most: int, served: tuple[int, int | None]) -> list[PlanTable]:
        """Returns the tables of the first ``most`` groups, for the sizes ``served`` in bytes.

        Raises:
            NotExpressibleError: no class has candidates at all sizes.

        """
        while True:
            groups = self._groups()
            chosen = [(at, key) for keys in groups[:most] for at, key in enumerate(keys)]
            new = [one for one in chosen if one not in self._exact]
            if not any(self._class(at, key) != self._first[key] for at, key in new):
                break
        if not groups:
            of = "" if self._contributors is None else f" over {self._contributors} contributors"
            raise NotExpressibleError(f"no expression has candidates with the bits '{self._bits}'{of} at all sizes")
        tables = []
        for keys in groups[:most]:
            rows = self._rows(keys, served)
            tables.append(PlanTable(self._bits, rows, self._prices(keys), len(groups), self._contributors))
        return tables

    def _rows(self, keys: Sequence[_Key], served: tuple[int, int | None]) -> list[tuple[Plan, int, int | None]]:
        """Returns rows. Adjacent sizes with equal candidates share a row.

        A program has a fixed number of blocks, but a segment has a fixed length in bytes. A candidate with segments
        therefore gets a row for each size.
        """

        def same(at: int, after: int) -> bool:
            return keys[at] == keys[after] and "segment" not in dict(keys[at][1])

        return [(self._plan(at, keys[at]), first, last) for at, first, last in spans(self._bytes, served, same)]
