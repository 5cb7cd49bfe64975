"""`unisono reproduce`: compares the claims of a paper with values computed here."""

from pathlib import Path
from typing import Any

import click

from unisono import InputError
from unisono.base.files import check_files
from unisono.cli._completion import of_names
from unisono.cli._failures import NO
from unisono.cli._jobs import rows_option, study, study_options
from unisono.cli._options import json_option, limit_options, shard_option
from unisono.cli._output import number, print_json, print_lines, print_table, progress, working
from unisono.cli._sources import QUICK, refuse_unused
from unisono.reproduce import APART, FAULTS, PAPERS, VERDICTS, Claim, draw_paper, multiplying_measured, reproduce_papers
from unisono.reproduce.once import RowPool
from unisono.reproduce.statements import Inventory, inventory

__all__ = ["reproduce"]


@click.command()
@click.argument("paper", required=False, shell_complete=of_names(PAPERS))
@click.option("--quick", is_flag=True, help="Compute fewer points and draw no figures.")
@click.option("--full", is_flag=True, help="Also run the largest simulations (512 x 512 PEs), which take minutes.")
@click.option("-o", "--output", metavar="DIR", help="Folder of the figures [default: out/PAPER].")
@rows_option
@study_options
@shard_option
@json_option
@limit_options
def reproduce(
    paper: str | None,
    quick: bool,
    full: bool,
    output: str | None,
    jobs: int,
    executor: str | None,
    resume: str | None,
    shard: tuple[int, int] | None,
    as_json: bool,
) -> int:
    """Checks every numeric claim of PAPER (all papers by default) that needs no hardware."""
    if paper is not None and paper not in PAPERS:
        raise InputError(f"'{paper}' is not a paper; accepted are {', '.join(PAPERS)}")
    refuse_unused(QUICK if quick else ())
    if quick and full:
        raise InputError("--quick and --full exclude each other")
    check_files(resume)
    papers = PAPERS if paper is None else (paper,)
    files: list[str] = []

    def draw() -> None:
        # A job with a shard computes a share of the claims and ends.
        for name in () if quick or shard else papers:
            files.extend(draw_paper(name, Path(output or f"out/{name}"), full=full))

    with progress("reproducing") as on_claim, study(jobs, executor, resume, shard, RowPool) as (by, kept):
        claims = reproduce_papers(
            papers, quick=quick, full=full, executor=by, kept=kept, progress=on_claim, meanwhile=draw
        )
    measured: dict[str, Any] = {"rows": [], "note": "not measured: --quick leaves it out"}
    if not quick and paper in (None, "multiplying"):
        with working("measuring on this machine's MPI"):
            measured["rows"], measured["note"] = multiplying_measured.measure()
    statements = [inventory(name) for name in papers]
    if as_json:
        print_json(
            {
                "claims": [claim.report() for claim in claims],
                "verdicts": _verdicts(claims),
                "statements": [each.report() for each in statements],
                "measured": measured,
                "files": files,
            }
        )
    else:
        _print(claims, statements, files)
        if paper in (None, "multiplying"):
            _print_measured(measured)
    return NO if any(claim.verdict in FAULTS for claim in claims) else 0


def _verdicts(claims: list[Claim]) -> dict[str, int]:
    return {verdict: sum(claim.verdict == verdict for claim in claims) for verdict in VERDICTS}


def _print(claims: list[Claim], statements: list[Inventory], files: list[str]) -> None:
    decide = [claim for claim in claims if not claim.apart]
    apart = [claim for claim in claims if claim.apart]
    columns = ["", "claim", "reported", "ours", "tolerance", "text"]
    print_table(columns, [_row(claim) for claim in decide])
    print_lines("", "rows that decide no claim:")
    print_table(["because", *columns], [[APART[claim.apart], *_row(claim)] for claim in apart])
    print_lines("")
    for claim in claims:
        source = f"[{claim.provenance}]" if claim.provenance else ""
        if claim.note or source:
            print_lines(f"{claim.id}: {' '.join(filter(None, [source, claim.note]))}")
        if claim.refuted:
            print_lines(f"{claim.id}: {'refuted' if claim.verdict == 'refuted' else 'to be refuted'}: {claim.refuted}")
        if claim.differs:
            print_lines(f"{claim.id}: differs: {claim.differs}")
    counts = _verdicts(claims)
    others = [f"{counts[verdict]} {verdict}" for verdict in VERDICTS[1:] if counts[verdict]]
    print_lines("", ", ".join([f"{counts['holds']} of {len(decide)} rows that decide claims hold", *others]))
    for each in statements:
        print_lines(str(each))
    for path in files:
        print_lines(f"wrote {path}")


def _row(claim: Claim) -> list[str]:
    tolerance = _value(claim.tolerance) if isinstance(claim.tolerance, list) else number(claim.tolerance, 9)
    return [
        claim.verdict.upper() if claim.verdict in FAULTS else claim.verdict,
        claim.id,
        _value(claim.reported),
        _value(claim.ours),
        f"{claim.compare} {tolerance}" if claim.tolerance else claim.compare,
        claim.text,
    ]


def _print_measured(measured: dict[str, Any]) -> None:
    """Prints times measured on this machine, by which no claim is judged."""
    print_lines("", f"multiplying, measured here: {measured['note']}")
    if not measured["rows"]:
        return
    rows = []
    for row in measured["rows"]:
        times = [row[f"{who}_seconds"] for who in ("doubling", "multiplying", "library")]
        decrease = row["decrease_percent"]
        rows.append(
            [
                str(row["ranks"]),
                f"{row['doubling']} : {row['multiplying']}",
                *(f"{time['minimum'] * 1e6:.2f} ({time['median'] * 1e6:.2f})" for time in times),
                f"{decrease['minimum']:.1f} ({decrease['median']:.1f})",
                f"{row['rounds_won']}/{row['rounds']}",
            ]
        )
    times = ["doubling µs", "multiplying µs", "library µs"]
    columns = ["ranks", "schedules", *times, "decrease %", "rounds won"]
    print_table(columns, rows, ["ranks", *times, "decrease %", "rounds won"])
    print_lines("minima over rounds, medians in brackets")


def _value(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(_value, value))
    return value if isinstance(value, str) else number(value, 3)
