"""Small HTML tables for notebooks, and times as the pages of ``unisono view`` show them."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

__all__ = ["TableOfRows", "facts_table", "table", "time_text"]

_Row = TypeVar("_Row", bound=Mapping[str, Any])
#: The largest number of rows of a list that a notebook shows.
_SHOWN = 50


def facts_table(facts: Mapping[str, Any]) -> str:
    """Returns an HTML table with a row for each fact whose value is not None."""
    return table((), [(name, value) for name, value in facts.items() if value is not None])


def table(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Returns an HTML table, with a header row if there are ``heads``; all text is escaped."""
    # Imported late, because only notebooks need it.
    from html import escape

    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join(f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table>{f'<thead><tr>{head}</tr></thead>' if heads else ''}<tbody>{body}</tbody></table>"


def time_text(seconds: float) -> str:
    """Formats a time with at most four digits, with a unit: ``784.5 ns``.

    The unit is the largest unit in which the number is at least 1; nanoseconds if the number is below 1 in every unit.
    """
    units = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
    unit, name = next((unit for unit in units if seconds >= unit[0]), units[-1])
    value = seconds / unit
    digits = 3 - math.floor(math.log10(value)) if value > 0 else 0
    return f"{round(value, digits):,.15g} {name}"


class TableOfRows(list[_Row]):
    """A list of rows that a notebook shows as a table."""

    def __init__(self, rows: Iterable[_Row], heads: Sequence[str], cells: Callable[[_Row], Sequence[Any]]) -> None:
        """Stores the rows, the header of the table, and the function that returns the cells of a row."""
        super().__init__(rows)
        self._heads, self._cells = heads, cells

    def __reduce__(self) -> tuple[Any, ...]:
        """Returns the class and the arguments for pickle; ``cells`` must be a function of a module, not a lambda."""
        return type(self), (list(self), self._heads, self._cells)

    def _repr_html_(self) -> str:
        more = len(self) - _SHOWN
        shown = table(self._heads, map(self._cells, self[:_SHOWN]))
        return shown + (f"<p>and {more:,} more</p>" if more > 0 else "")
