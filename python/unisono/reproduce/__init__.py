"""Reproduction of papers: each claim has the reported value, the value computed here, and a tolerance set beforehand.

A paper is a list of claims (`papers/NAME/claims.toml`, data only) and a module of this folder that computes. A claim
that the computation refutes has the derivation in its row, with the value that follows from it. A row that is ``apart``
decides no claim, for one of these reasons: it checks a bound of this project (``own``); a constant was fitted to it
(``calibrated``); its threshold or both of its values are this project's (``self``); the paper's number is known from
memory only (``recalled``); or the paper measured on hardware and ours is simulated (``simulated``). So six verdicts are
possible:

* ``holds``: the claim is kept within its tolerance.
* ``consistent``: a row apart is kept within its tolerance, which does not prove a claim.
* ``refuted``: the claim is not kept, and ours is the value that the derivation of the row gives.
* ``differs``: a row apart is not kept, and ours is the value that the row states with the reason; this refutes nothing.
* ``missed``: the row is not kept, and has neither derivation nor reason, or ours is another value than these give.
* ``contradicted``: the row has a derivation that refutes the claim, or a reason to differ, but the claim is kept.

``missed`` and ``contradicted`` are faults, of this software or of the row.
"""

import math
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unisono._core import paper_claims
from unisono.base.studies import KeptPoints, results
from unisono.reproduce.once import RowPool

if TYPE_CHECKING:
    from concurrent.futures import Executor

__all__ = [
    "APART",
    "FAULTS",
    "PAPERS",
    "VERDICTS",
    "Claim",
    "Finding",
    "Listed",
    "check",
    "checks_of",
    "draw_paper",
    "each",
    "judge",
    "listed_claims",
    "listed_sections",
    "listed_statements",
    "reproduce_papers",
]

#: A row of the list of claims.
Listed = dict[str, Any]
#: The papers that can be reproduced, by name.
PAPERS = ("discovery", "hammingmesh", "multiplying", "piuma", "wafer")
#: The verdicts of the judge on a claim, and those that are faults.
VERDICTS = ("holds", "refuted", "consistent", "differs", "missed", "contradicted")
FAULTS = ("missed", "contradicted")
#: The reasons why a row decides no claim.
APART = {
    "own": "a bound of this project",
    "calibrated": "a constant was fitted to it",
    "self": "its threshold or both values are this project's",
    "recalled": "the paper's number is known from memory only",
    "simulated": "the paper measured on hardware, and ours is simulated",
}


@dataclass(frozen=True)
class Claim:
    """A claim with its verdict."""

    paper: str
    id: str
    section: str
    text: str
    reported: Any
    ours: Any
    unit: str
    compare: str
    #: For a list of values, one tolerance for all items or a list of tolerances.
    tolerance: Any
    holds: bool
    note: str
    #: The origin of the reported number, if not the paper's text.
    provenance: str = ""
    #: One of ``VERDICTS``.
    verdict: str = "holds"
    #: The derivation that refutes the claim, if the row has one.
    refuted: str = ""
    #: A key of ``APART``, if the row decides no claim.
    apart: str = ""
    #: The reason why the reported value and ours differ, if the row decides no claim and they disagree.
    differs: str = ""

    def report(self) -> dict[str, Any]:
        """Returns the claim as a dictionary for JSON."""
        return dict(vars(self))


@dataclass(frozen=True)
class Finding:
    """The result of a computation: the paper's value and ours, numbers, texts or lists of them."""

    reported: Any
    ours: Any
    remark: str = ""


def checks_of(module: Mapping[str, Any]) -> dict[str, Callable[[Listed], Finding]]:
    """Returns the functions from a row to a finding in the globals of a module, by the names of checks.

    The function ``_less_data`` computes rows with ``check = "less-data"``.
    """
    form = {"listed": Listed, "return": Finding}
    own = (of for of in module.values() if getattr(of, "__module__", "") == module["__name__"])
    return {of.__name__[1:].replace("_", "-"): of for of in own if getattr(of, "__annotations__", None) == form}


def each(key: str, remark: str = "", between: str = "; ") -> Callable[[Callable[[Any, Listed], Any]], Any]:
    """Makes a check of a function that computes the value of an item, which is called for the items of the row's list.

    With a ``remark``, in which ``{}`` stands for the joined texts, the function returns a value and a text.
    """

    def made(value: Callable[[Any, Listed], Any]) -> Callable[[Listed], Finding]:
        @wraps(value, assigned=("__module__", "__name__", "__doc__"))
        def check(listed: Listed) -> Finding:
            found = [value(item, listed) for item in listed[key]]
            if not remark:
                return Finding(listed["reported"], found)
            texts = between.join(text for _, text in found)
            return Finding(listed["reported"], [ours for ours, _ in found], remark.format(texts))

        return check

    return made


def listed_claims(paper: str) -> list[dict[str, Any]]:
    """Returns the claims of a paper as its file lists them."""
    claims: list[dict[str, Any]] = tomllib.loads(paper_claims(paper))["claims"]
    return claims


def listed_statements(paper: str, kind: str) -> list[dict[str, Any]]:
    """Returns a paper's statements that have no rows, of kind ``tested``, ``undecidable`` or ``open``."""
    statements: list[dict[str, Any]] = tomllib.loads(paper_claims(paper)).get(kind, [])
    return statements


def listed_sections(paper: str) -> list[str]:
    """Returns the sections of a paper, in their order."""
    sections: list[str] = tomllib.loads(paper_claims(paper))["sections"]
    return sections


def judge(paper: str, listed: dict[str, Any], found: Finding) -> Claim:
    """Returns the claim with its verdict. Lists are compared item by item, texts for equality."""
    holds = _agree(listed["compare"], found.reported, found.ours, listed["tolerance"])
    refuted, apart, remark = listed.get("refuted", ""), listed.get("apart", ""), found.remark
    differs = listed.get("differs", "")
    verdict = "missed" if not holds else "consistent" if apart else "holds"
    if (refuted or differs) and holds:
        verdict = "contradicted"
    elif refuted or differs:
        derived = listed.get("derived", found.ours)
        if _agree("equal", derived, found.ours, listed.get("derived_tolerance", 0)):
            verdict = "refuted" if refuted else "differs"
        else:
            remark = " ".join(filter(None, [remark, f"The derivation gives {derived}."]))
    return Claim(
        paper=paper,
        id=listed["id"],
        section=listed["section"],
        text=listed["text"],
        reported=found.reported,
        ours=found.ours,
        unit=listed["unit"],
        compare=listed["compare"],
        tolerance=listed["tolerance"],
        holds=holds,
        note=" ".join(filter(None, [listed.get("note", ""), remark])),
        provenance=listed.get("provenance", ""),
        verdict=verdict,
        refuted=refuted,
        apart=apart,
        differs=differs,
    )


def _agree(compare: str, reported: Any, ours: Any, tolerance: Any) -> bool:
    if isinstance(reported, list):
        if isinstance(ours, (int, float)):
            return False
        each = tolerance if isinstance(tolerance, list) else [tolerance] * len(reported)
        return all(_agree(compare, *of_one) for of_one in zip(reported, ours, each, strict=True))
    if isinstance(reported, str):
        return bool(reported == ours)
    if not math.isfinite(ours):
        return False
    # The margin allows for rounding errors of floating-point numbers.
    margin = tolerance + 1e-12 * abs(reported)
    match compare:
        case "equal":
            return bool(abs(ours - reported) <= margin)
        case "at-most":
            return bool(ours <= reported + margin)
        case "at-least":
            return bool(ours >= reported - margin)
        case _:
            raise ValueError(f"'{compare}' is no way to compare numbers")


def reproduce_papers(
    papers: Iterable[str],
    *,
    quick: bool,
    full: bool = False,
    executor: "Executor | None" = None,
    kept: KeptPoints | None = None,
    progress: Callable[[int, int], None] | None = None,
    meanwhile: Callable[[], None] = lambda: None,
) -> list[Claim]:
    """Judges the claims of some papers, in the order of their files. The first error of a claim is raised.

    ``quick`` leaves out the rows with ``quick = false``, and only ``full`` includes those with ``full = true``. An
    ``executor`` computes claims in parallel, and ``kept`` stores computed values, as in :func:`unisono.sweep`. This
    thread calls ``meanwhile`` when the executor has all claims, or without an executor after the last one.
    """
    listed = [
        (paper, claim)
        for paper in papers
        for claim in listed_claims(paper)
        if (claim.get("quick", True) or not quick) and (full or not claim.get("full", False))
    ]
    # Rows that take long begin first, so that none computes alone at the end.
    order = sorted(range(len(listed)), key=lambda at: listed[at][1].get("quick", True))

    def calls() -> Iterator[tuple[str, dict[str, Any]]]:
        # This thread takes its turn before the rows begin, so that no row keeps it waiting.
        with executor.turn() if isinstance(executor, RowPool) else nullcontext():
            yield from (listed[at] for at in order)
            meanwhile()

    claims: dict[int, Claim] = {}
    for at, found in zip(order, results(_found, calls(), executor, kept), strict=True):
        paper, claim = listed[at]
        claims[at] = judge(paper, claim, Finding(*found))
        if progress is not None:
            progress(len(claims), len(listed))
    return [claims[at] for at in range(len(listed))]


def check(paper: str, claim: dict[str, Any]) -> Finding:
    """Computes the value of a claim."""
    found: Finding = import_module(f"unisono.reproduce.{paper}").CHECKS[claim["check"]](claim)
    return found


def _found(call: tuple[str, dict[str, Any]]) -> tuple[Any, Any, str]:
    """Returns the fields of a finding as plain values, which executors can pass between processes."""
    found = check(*call)
    return _plain(found.reported), _plain(found.ours), found.remark


def _plain(value: Any) -> Any:
    """Returns a value for JSON: numbers of NumPy become numbers of Python."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value.item() if hasattr(value, "item") else value


def draw_paper(paper: str, folder: Path, *, full: bool = False) -> list[str]:
    """Draws the figures of a paper into a folder, and returns the paths of the files."""
    files: list[str] = import_module(f"unisono.reproduce.{paper}").draw(folder, full)
    return files
