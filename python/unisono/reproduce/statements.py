"""Counts the statements of a paper: those that rows decide, those that rows refute, and those that need hardware.

Everything is in the list of claims. A row decides a statement of its own unless it has ``of`` (the id of the first row
of the same statement) or ``own`` (a bound of this project, of which the paper says nothing).
"""

from dataclasses import dataclass
from typing import Any

from unisono.reproduce import listed_claims, listed_undecidable

__all__ = ["Inventory", "inventory"]

Listed = dict[str, Any]


@dataclass(frozen=True)
class Inventory:
    """The statements of a paper and the rows that decide them."""

    paper: str
    rows: list[Listed]
    #: Statements that nothing without the paper's hardware decides.
    undecidable: list[Listed]

    @property
    def decided(self) -> dict[str, list[Listed]]:
        """The rows of each statement that has some, by the id of its first row."""
        found: dict[str, list[Listed]] = {}
        for row in self.rows:
            if not row.get("own", False):
                found.setdefault(row["of"] if "of" in row else row["id"], []).append(row)
        return found

    @property
    def own(self) -> int:
        """Rows that keep a bound of this project."""
        return sum(row.get("own", False) for row in self.rows)

    @property
    def refuted(self) -> list[Listed]:
        """The rows with a derivation that refutes them."""
        return [row for row in self.rows if "refuted" in row]

    def report(self) -> dict[str, Any]:
        """The counts, for JSON."""
        refuted = sum(any("refuted" in row for row in rows) for rows in self.decided.values())
        return {
            "paper": self.paper,
            "found": len(self.decided) + len(self.undecidable),
            "decided": len(self.decided),
            "held": len(self.decided) - refuted,
            "refuted": refuted,
            "needs_hardware": len(self.undecidable),
            "rows": len(self.rows),
            "own_rows": self.own,
        }

    def __str__(self) -> str:
        counts = self.report()
        return (
            f"{self.paper}: {counts['found']} statements found, {counts['decided']} decided by {counts['rows']} rows "
            f"({counts['held']} held, {counts['refuted']} refuted), "
            f"{counts['needs_hardware']} not decidable without hardware"
        )


def inventory(paper: str) -> Inventory:
    """The statements of a paper, from its list of claims."""
    return Inventory(paper, listed_claims(paper), listed_undecidable(paper))
