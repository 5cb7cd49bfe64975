"""Lists and counts the statements of a paper, by the kind of evidence that decides each.

The paper's list of claims has the rows and the statements without rows. A row decides a statement of its own unless it
has ``of`` (the id of the first row of the same statement) or is ``apart``. A row apart does not decide its statement,
but agrees with it or differs from it; a row on a bound of this project has no statement. A statement that describes a
mechanism lists the tests of that mechanism, and a statement that nothing at hand decides has the reason. A statement
that this project could decide and does not is open.
"""

import re
from dataclasses import dataclass
from typing import Any

from unisono.reproduce import APART, Listed, listed_claims, listed_sections, listed_statements

__all__ = ["Inventory", "inventory", "section_of"]


@dataclass(frozen=True)
class Inventory:
    """The statements of a paper and the rows, tests and reasons that decide them."""

    paper: str
    #: The sections of the paper, in their order.
    sections: list[str]
    rows: list[Listed]
    #: Statements on mechanisms that tests check.
    tested: list[Listed]
    #: Statements that only the paper's hardware or its lost numbers could decide.
    undecidable: list[Listed]
    #: Statements that this project could decide, but does not.
    open: list[Listed]

    @property
    def decided(self) -> dict[str, list[Listed]]:
        """Returns the rows of each statement that rows decide, by the id of the first row."""
        return self._by_statement("")

    @property
    def consistent(self) -> dict[str, list[Listed]]:
        """Returns the rows of each statement with which all its rows apart agree, by the id of the first row."""
        return {first: rows for first, rows in self._compared().items() if not any("differs" in row for row in rows)}

    @property
    def differing(self) -> dict[str, list[Listed]]:
        """Returns the rows of each statement from which a row apart differs, by the id of the first row."""
        return {first: rows for first, rows in self._compared().items() if any("differs" in row for row in rows)}

    def _compared(self) -> dict[str, list[Listed]]:
        return self._by_statement(*(set(APART) - {"own"}))

    def _by_statement(self, *apart: str) -> dict[str, list[Listed]]:
        found: dict[str, list[Listed]] = {}
        for row in self.rows:
            if row.get("apart", "") in apart:
                found.setdefault(row["of"] if "of" in row else row["id"], []).append(row)
        return found

    @property
    def apart(self) -> list[Listed]:
        """Returns the rows that do not decide a statement."""
        return [row for row in self.rows if "apart" in row]

    @property
    def refuted(self) -> list[Listed]:
        """Returns the rows with a derivation that refutes the claim."""
        return [row for row in self.rows if "refuted" in row]

    @property
    def statements(self) -> list[tuple[Listed, list[Listed]]]:
        """Returns all statements in the order of the paper's sections, each with its rows, if it has any."""
        with_rows = [(rows[0], rows) for rows in (*self.decided.values(), *self._compared().values())]
        without: list[tuple[Listed, list[Listed]]] = [
            (statement, []) for statement in (*self.tested, *self.undecidable, *self.open)
        ]
        return sorted(with_rows + without, key=lambda found: self.sections.index(section_of(found[0])))

    def report(self) -> dict[str, Any]:
        """Returns the counts of statements, for JSON."""
        refuted = sum(any("refuted" in row for row in rows) for rows in self.decided.values())
        calibrated = sum(any(row["apart"] == "calibrated" for row in rows) for rows in self.consistent.values())
        return {
            "paper": self.paper,
            "found": len(self.statements),
            "decided": len(self.decided) + len(self.tested),
            "held": len(self.decided) - refuted,
            "refuted": refuted,
            "tested": len(self.tested),
            "consistent": len(self.consistent),
            "calibrated": calibrated,
            "differing": len(self.differing),
            "undecidable": len(self.undecidable),
            "open": len(self.open),
            "rows": len(self.rows),
            "apart_rows": len(self.apart),
        }

    def __str__(self) -> str:
        counts = self.report()
        deciding = counts["rows"] - counts["apart_rows"]
        return (
            f"{self.paper}: {counts['found']} statements; {deciding} rows decide {counts['held'] + counts['refuted']} "
            f"({counts['held']} held, {counts['refuted']} refuted with an argument), tests {counts['tested']}; "
            f"not decided: {counts['consistent']} agreed with ({counts['calibrated']} calibrated), "
            f"{counts['differing']} differ, "
            f"{counts['undecidable']} undecidable, {counts['open']} open"
        )


def section_of(statement: Listed) -> str:
    """Returns the first section that a statement names."""
    return re.split(r",| to ", statement["section"])[0]


def inventory(paper: str) -> Inventory:
    """Returns the statements of a paper, from its list of claims."""
    listed = (listed_statements(paper, kind) for kind in ("tested", "undecidable", "open"))
    return Inventory(paper, listed_sections(paper), listed_claims(paper), *listed)
