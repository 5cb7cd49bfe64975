"""The pages of the papers, docs/papers/NAME.md, from their lists of claims (papers/NAME/claims.toml)."""

import tomllib
from pathlib import Path
from typing import Any

from unisono._core import paper_claims
from unisono.reproduce import PAPERS
from unisono.reproduce.statements import Inventory, inventory

FOLDER = Path(__file__).with_name("papers")
_HEAD = """# {title}

{source}.

`python docs/generate.py` generates this page from `papers/{paper}/claims.toml`, and a test compares the two.
`unisono reproduce {paper}` computes every row. A row is one computation, and several rows may decide one statement of
the paper. Rows apart decide none: they keep a bound of this project (own), a constant was fitted to them (calibrated),
or both of their values are this project's (self). The tests fail if a row misses without a derivation, or if a row with
a derivation holds.

## Rows
| row | section | statement | reported | comparison | verdict |
|---|---|---|---|---|---|
"""
_APART = """
## Rows apart
| row | kind | section | statement | reported | comparison | verdict |
|---|---|---|---|---|---|---|
"""
_COUNTS = """
## Result
| statements found | decided by rows | held | refuted | agreed with, not decided | needs hardware | rows | rows apart |
|---|---|---|---|---|---|---|---|
| {found} | {decided} | {held} | {refuted} | {consistent} | {needs_hardware} | {rows} | {apart_rows} |
"""


def pages() -> dict[Path, str]:
    """Returns the text of every page, by its path."""
    return {FOLDER / f"{paper}.md": page(paper) for paper in PAPERS}


def page(paper: str) -> str:
    """Returns the text of the page of a paper."""
    head = tomllib.loads(paper_claims(paper))
    found = inventory(paper)
    parts = [
        _HEAD.format(title=head["title"], source=head["source"], paper=paper),
        *(_row(row) for row in found.rows if "apart" not in row),
        *([_APART, *map(_row, found.apart)] if found.apart else []),
        _COUNTS.format(**found.report()),
        *_refuted(found),
        *_undecidable(found),
    ]
    return "".join(parts)


def _refuted(found: Inventory) -> list[str]:
    if not found.refuted:
        return []
    head = "\n### Refuted\n| row | statement | derivation |\n|---|---|---|\n"
    return [head, *(f"| `{row['id']}` | {_cell(row['text'])} | {_cell(row['refuted'])} |\n" for row in found.refuted)]


def _undecidable(found: Inventory) -> list[str]:
    if not found.undecidable:
        return []
    head = "\n### Not decidable without hardware\n| section | statement | reason |\n|---|---|---|\n"
    return [
        head,
        *(f"| {_cell(s['section'])} | {_cell(s['text'])} | {_cell(s['reason'])} |\n" for s in found.undecidable),
    ]


def _row(row: dict[str, Any]) -> str:
    verdict = "refuted" if "refuted" in row else "consistent" if "apart" in row else "holds"
    name = f"`{row['id']}`" + (f" | {row['apart']}" if "apart" in row else "")
    reported = _value(row["reported"]) if "reported" in row else f"`{row['formula']}`"
    margin = f" ± {_value(row['tolerance'])}" if row["tolerance"] else ""
    compared = f"{row['compare']}{margin}, {row['unit']}"
    return f"| {name} | {row['section']} | {_cell(row['text'])} | {_cell(reported)} | {_cell(compared)} | {verdict} |\n"


def _value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_value, value))
    return value or "none" if isinstance(value, str) else f"{value:.10g}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
