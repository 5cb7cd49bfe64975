"""`unisono algorithms`: the registry."""

from typing import Any

import click

import unisono
from unisono.cli._options import json_option
from unisono.cli._output import print_json, print_table
from unisono.cli._types import COLLECTIVE

__all__ = ["algorithms", "param_names"]


@click.command()
@click.option("--collective", type=COLLECTIVE, metavar="NAME", help="Only those for this collective.")
@json_option
def algorithms(collective: str | None, as_json: bool) -> None:
    """Lists the algorithms: their collectives, parameters and sources."""
    listed = unisono.algorithms(collective)
    if as_json:
        print_json({"algorithms": listed})
        return
    rows = [
        [
            a["name"],
            ", ".join(a["collectives"]),
            ", ".join(a["machines"]),
            param_names(a["params"]),
            a["summary"],
            a["reference"],
        ]
        for a in listed
    ]
    print_table(["algorithm", "collectives", "machines", "parameters", "summary", "reference"], rows)


def param_names(params: Any) -> str:
    """The names of an algorithm's parameters, with what each takes."""
    return "; ".join(p if isinstance(p, str) else ": ".join(filter(None, (p["name"], p.get("values")))) for p in params)
