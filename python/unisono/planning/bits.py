"""Tables of plans whose results have the same bits on all ranks, at all places or at all sizes."""

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import SupportsIndex

from unisono import _core
from unisono._core import Error, Plan, dtypes
from unisono.base import names
from unisono.base.files import write
from unisono.base.inputs import MachineLike, Root, checked_root, whole
from unisono.base.reports import BitsPrice, BitsTableReport
from unisono.machines.descriptions import Shape, with_shape
from unisono.planning.plan_files import Row, encoded_plans

__all__ = ["PlanTable", "plan_table", "plan_tables", "save_table"]

#: The sizes at which a table without a last size is planned are powers of this number up to this size.
_STEP, _MOST_PLANNED = 4, 512 * 1024 * 1024


@dataclass(frozen=True)
class PlanTable:
    """Rows of a ``.plan`` that have a property of the bits together."""

    bits: str
    #: Plans, and the first and last size in bytes that each serves (None: no limit).
    rows: Sequence[tuple[Plan, int, int | None]]
    #: The price of the property at each size that was planned.
    prices: list[BitsPrice]
    #: The number of expressions that have a table.
    expressions: int

    @property
    def cost(self) -> float:
        """Returns the largest ratio of the table's time to that of the fastest plan."""
        return max(ratio(price) for price in self.prices)

    @property
    def mean_cost(self) -> float:
        """Returns the geometric mean of the ratios."""
        return math.exp(sum(math.log(ratio(price)) for price in self.prices) / len(self.prices))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the table as a ``.plan``, after its programs are proved to have the property.

        Raises:
            Error: the programs lack the property.

        """
        save_table(self.rows, self.bits, path)

    def report(self) -> BitsTableReport:
        """Returns the rows and the price of the property."""
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


def save_table(rows: Iterable[Row], bits: str, path: str | os.PathLike[str]) -> None:
    """Writes rows as a ``.plan``, after its programs are proved to have a property of the bits.

    Raises:
        Error: the programs lack the property.

    """
    raw = encoded_plans(rows)
    for found in _core.plan_bits(raw):
        if bits not in found["bits"]:
            raise Error(f"the programs of the table lack '{bits}': {found['unlike_elements']}")
    write(path, raw)


def ratio(price: BitsPrice) -> float:
    """Returns the time with the property divided by the time without it."""
    return price["seconds"] / price["fastest_seconds"] if price["fastest_seconds"] > 0 else 1.0


def plan_table(
    collective: str,
    machine: MachineLike,
    *,
    bits: str = "size",
    shape: Shape | None = None,
    first_bytes: SupportsIndex = 0,
    last_bytes: SupportsIndex | None = None,
    dtype: str = "f32",
    op: str = "sum",
    root: Root = 0,
    model: str | None = None,
) -> PlanTable:
    """Plans a ``.plan`` for all sizes of a range whose results have the same bits.

    With ``bits="size"`` each element of each result has one expression, whatever the size and the place. Candidates of
    all sizes are grouped by their expression, and the table is the fastest group over the sizes. With ``"place"`` the
    expression may change from row to row, and with ``"ranks"`` from element to element.

    >>> import unisono as un
    >>> table = un.plan_table("allreduce", "archer", shape=4, last_bytes=4096)
    >>> table.save("/dev/null")

    Raises:
        InputError: a name, size, shape or root that does not exist.
        NotExpressibleError: no expression has candidates at all sizes.

    """
    sizes = whole("first_bytes", first_bytes), None if last_bytes is None else whole("last_bytes", last_bytes)
    return plan_tables(collective, machine, bits, 1, shape, sizes, dtype=dtype, op=op, root=root, model=model)[0]


def plan_tables(
    collective: str,
    machine: MachineLike,
    bits: str,
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
    """Returns at most ``most`` tables, each of another expression, the one with the least price first.

    They are planned at the numbers of ``elements``, or of :func:`planned_sizes`.

    Raises:
        InputError: a name, size, shape or root that does not exist.
        NotExpressibleError: no expression has candidates at all sizes.

    """
    kind, of, how = names.collective(collective), names.datatype(dtype), names.operator(op)
    counts = planned_sizes(*served, dtypes()[of]) if elements is None else [*elements]
    on, at = with_shape(machine, shape), checked_root(root)
    found = _core.bits_tables(kind, on, counts, served, bits, most, of, how, at, model)
    return [PlanTable(bits, *table) for table in found]


def planned_sizes(first: int, last: int | None, element_bytes: int) -> list[int]:
    """Returns the numbers of elements at which a range of sizes is planned: its ends, and powers of four between."""
    low = max(first, element_bytes)
    high = max(low, _MOST_PLANNED if last is None else last)
    sizes, size = {low, high}, element_bytes
    while size < high:
        sizes.add(max(size, low))
        size *= _STEP
    return sorted({size // element_bytes for size in sizes})
