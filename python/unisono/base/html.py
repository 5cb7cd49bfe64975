"""Small HTML tables for notebooks."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

__all__ = ["facts_table", "table"]


def facts_table(facts: Mapping[str, Any]) -> str:
    """Returns a table with a row for each fact that is not None."""
    return table((), [(name, value) for name, value in facts.items() if value is not None])


def table(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Returns a table with a line of heads, if there are any; all text is escaped."""
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join(f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table>{f'<thead><tr>{head}</tr></thead>' if heads else ''}<tbody>{body}</tbody></table>"
