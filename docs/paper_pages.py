"""The pages of the papers on the site, from their lists of claims (papers/NAME/claims.toml)."""

import tomllib
from typing import Any

from unisono._core import paper_claims
from unisono.reproduce import PAPERS
from unisono.reproduce.statements import Inventory, inventory

_HEAD = """# {title}

{source}.

`unisono reproduce {paper}` computes every row. A statement is decided by rows or, if it describes a
mechanism, by tests; the others state why nothing here can decide them. This page is made from
`papers/{paper}/claims.toml`.

## Statements

| section | statement | decided by |
|---|---|---|
{statements}
## Rows
A row has its own statement where it differs from that of the table above. Words that give a threshold are quoted. The
tests fail if a row misses without a derivation, or if a row with a derivation holds. The other rows hold.

| row | statement | reported | comparison | refuted |
|---|---|---|---|---|
"""
_APART = """
## Rows apart
These decide no statement: they keep a bound of this project (own), a constant was fitted to them (calibrated), their
threshold or both of their values are this project's (self), the paper's number is known from memory only (recalled), or
the paper measured on hardware and ours is simulated (simulated).

| row | kind | statement | reported | comparison | |
|---|---|---|---|---|---|
"""
_COUNTS = """
## Result
| statements | held by rows | refuted | held by tests | agreed with | of these calibrated | undecidable | open |
|---|---|---|---|---|---|---|---|
| {found} | {held} | {refuted} | {tested} | {consistent} | {calibrated} | {undecidable} | {open} |

{rows} rows, {apart_rows} of them apart.
"""


def pages() -> dict[str, str]:
    """Returns the text of each page by the name of its paper."""
    return {paper: page(paper) for paper in PAPERS}


def page(paper: str) -> str:
    """Returns the text of the page of a paper."""
    head = tomllib.loads(paper_claims(paper))
    found = inventory(paper)
    # A row whose text is that of a statement does not repeat it.
    shown = {statement["text"] for statement, _ in found.statements}
    parts = [
        _HEAD.format(title=head["title"], source=head["source"], paper=paper, statements=_statements(found)),
        *(_row(row, shown) for row in found.rows if "apart" not in row),
        *([_APART, *(_row(row, shown) for row in found.apart)] if found.apart else []),
        _COUNTS.format(**found.report()),
        *_refuted(found),
    ]
    return "".join(parts)


def _refuted(found: Inventory) -> list[str]:
    if not found.refuted:
        return []
    head = "\n### Refuted\n| row | statement | derivation |\n|---|---|---|\n"
    return [head, *(f"| `{row['id']}` | {_cell(row['text'])} | {_cell(row['refuted'])} |\n" for row in found.refuted)]


def _statements(found: Inventory) -> str:
    lines, before = [], ""
    for statement, rows in found.statements:
        # A section is named once, at its first statement.
        section = "" if statement["section"] == before else _cell(statement["section"])
        before = statement["section"]
        lines.append(f"| {section} | {_cell(statement['text'])} | {_decided(found, statement, rows)} |\n")
    return "".join(lines)


def _decided(found: Inventory, statement: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    if rows:
        names = ", ".join(f"`{row['id']}`" for row in rows)
        apart = f" ({rows[0]['apart']})" if "apart" in rows[0] else ""
        return f"{_verdict(rows[0])}{apart}: {names}"
    if "tests" in statement:
        # The page names the files only; the list of claims has the names of the tests.
        files = dict.fromkeys(test.partition("::")[0] for test in statement["tests"])
        return f"tests: {', '.join(f'`{file}`' for file in files)}"
    return f"{'open' if statement in found.open else 'undecidable'}: {_cell(statement['reason'])}"


def _verdict(row: dict[str, Any]) -> str:
    return "refuted" if "refuted" in row else "consistent" if "apart" in row else "holds"


def _row(row: dict[str, Any], shown: set[str]) -> str:
    name = f"`{row['id']}`" + (f" | {row['apart']}" if "apart" in row else "")
    reported = _value(row["reported"]) if "reported" in row else f"`{row['formula']}`"
    margin = f" ± {_value(row['tolerance'])}" if row["tolerance"] else ""
    compared = f"{row['compare']}{margin}, {row['unit']}"
    own = "" if row["text"] in shown else row["text"]
    statement = _cell(" ".join(filter(None, (own, f'"{row["words"]}"' if "words" in row else ""))))
    refuted = "refuted" if "refuted" in row else ""
    return f"| {name} | {statement} | {_cell(reported)} | {_cell(compared)} | {refuted} |\n"


def _value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_value, value))
    return value or "none" if isinstance(value, str) else f"{value:.10g}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
