"""`unisono reproduce`: the claims of a paper beside what comes out here."""

from pathlib import Path
from typing import Any

import click

from unisono import InputError
from unisono.cli._failures import NO
from unisono.cli._options import json_option
from unisono.cli._output import number, print_json, print_lines, print_table, progress
from unisono.reproduce import PAPERS, Claim, reproduce_paper


@click.command()
@click.argument("paper", required=False)
@click.option("--quick", is_flag=True, help="Fewer points and no figures.")
@click.option("--full", is_flag=True, help="The largest simulations too (512 x 512 PEs), which take minutes.")
@click.option("-o", "--output", metavar="DIR", help="Where the figures go [default: out/PAPER].")
@json_option
def reproduce(paper: str | None, quick: bool, full: bool, output: str | None, as_json: bool) -> int:
    """Checks every numeric claim of PAPER (all papers by default) that needs no hardware."""
    if paper is not None and paper not in PAPERS:
        raise InputError(f"'{paper}' is not a paper; accepted are {', '.join(PAPERS)}")
    if quick and full:
        raise InputError("--quick and --full exclude each other")
    claims: list[Claim] = []
    files: list[str] = []
    for name in PAPERS if paper is None else [paper]:
        folder = None if quick else Path(output or f"out/{name}")
        with progress(f"reproducing {name}") as on_step:
            found, written = reproduce_paper(name, quick=quick, folder=folder, full=full, progress=on_step)
        claims += found
        files += written
    if as_json:
        print_json({"claims": [claim.report() for claim in claims], "files": files})
    else:
        _print(claims, files)
    return 0 if all(claim.holds for claim in claims) else NO


def _print(claims: list[Claim], files: list[str]) -> None:
    rows = [
        [
            "holds" if claim.holds else "MISSED",
            claim.id,
            _value(claim.reported),
            _value(claim.ours),
            f"{claim.compare} {number(claim.tolerance, 9)}" if claim.tolerance else claim.compare,
            claim.text,
        ]
        for claim in claims
    ]
    print_table(["", "claim", "reported", "ours", "tolerance", "text"], rows)
    print_lines("")
    for claim in claims:
        if claim.note:
            print_lines(f"{claim.id}: {claim.note}")
    print_lines("", f"{sum(claim.holds for claim in claims)} of {len(claims)} claims hold")
    for path in files:
        print_lines(f"wrote {path}")


def _value(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(_value, value))
    return value if isinstance(value, str) else number(value, 3)
