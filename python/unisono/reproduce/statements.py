"""Counts the statements of a paper: those that rows decide, refute or only agree with, and those that need hardware.

Everything is in the list of claims. A row decides a statement of its own unless it has ``of`` (the id of the first row
of the same statement) or is ``apart``. One that is calibrated, has a threshold of this project or a recalled number
agrees with its statement and does not decide it; one of this project's own bounds has no statement.
"""

from dataclasses import dataclass
from typing import Any

from unisono.reproduce import APART, listed_claims, listed_undecidable

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
        """The rows of each statement that some decide, by the id of its first row."""
        return self._by_statement("")

    @property
    def consistent(self) -> dict[str, list[Listed]]:
        """The rows of each statement that rows agree with and do not decide."""
        return self._by_statement(*(set(APART) - {"own"}))

    def _by_statement(self, *apart: str) -> dict[str, list[Listed]]:
        found: dict[str, list[Listed]] = {}
        for row in self.rows:
            if row.get("apart", "") in apart:
                found.setdefault(row["of"] if "of" in row else row["id"], []).append(row)
        return found

    @property
    def apart(self) -> list[Listed]:
        """The rows that decide nothing."""
        return [row for row in self.rows if "apart" in row]

    @property
    def refuted(self) -> list[Listed]:
        """The rows with a derivation that refutes them."""
        return [row for row in self.rows if "refuted" in row]

    def report(self) -> dict[str, Any]:
        """The counts, for JSON."""
        refuted = sum(any("refuted" in row for row in rows) for rows in self.decided.values())
        return {
            "paper": self.paper,
            "found": len(self.decided) + len(self.consistent) + len(self.undecidable),
            "decided": len(self.decided),
            "held": len(self.decided) - refuted,
            "refuted": refuted,
            "consistent": len(self.consistent),
            "needs_hardware": len(self.undecidable),
            "rows": len(self.rows),
            "apart_rows": len(self.apart),
        }

    def __str__(self) -> str:
        counts = self.report()
        return (
            f"{self.paper}: {counts['found']} statements found, {counts['decided']} decided by "
            f"{counts['rows'] - counts['apart_rows']} rows ({counts['held']} held, {counts['refuted']} refuted), "
            f"{counts['consistent']} agreed with and not decided, "
            f"{counts['needs_hardware']} not decidable without hardware"
        )


def inventory(paper: str) -> Inventory:
    """The statements of a paper, from its list of claims."""
    return Inventory(paper, listed_claims(paper), listed_undecidable(paper))
