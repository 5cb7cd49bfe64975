"""`unisono algorithms`: lists the registered algorithms."""

from collections.abc import Mapping
from typing import Any

import click

import unisono
from unisono import InputError
from unisono.cli._options import json_option
from unisono.cli._output import print_fields, print_json, print_lines, print_table
from unisono.cli._types import ALGORITHM, COLLECTIVE

__all__ = ["algorithms", "formula_text", "param_names"]

#: The names of the formulas' models for users, where they differ.
_MODELS = {"paper": "Eq. 1"}


@click.command()
@click.argument("name", type=ALGORITHM, required=False)
@click.option("--collective", type=COLLECTIVE, metavar="NAME", help="List only algorithms for this collective.")
@json_option
def algorithms(name: str | None, collective: str | None, as_json: bool) -> None:
    """Lists the algorithms, or shows one: collectives, parameters, formulas and source."""
    listed = unisono.algorithms(collective)
    if name is not None:
        listed = [entry for entry in listed if entry["name"] == name]
        if not listed:
            raise InputError(f"'{name}' is no algorithm of {collective}; leave --collective out to see it")
    if as_json:
        print_json({"algorithms": listed})
    elif name is not None:
        _show(listed[0])
    else:
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


def _show(entry: Mapping[str, Any]) -> None:
    fields = [
        ("algorithm", entry["name"]),
        ("summary", entry["summary"]),
        ("collectives", ", ".join(entry["collectives"])),
        ("machines", ", ".join(entry["machines"])),
        *(("parameter", f"{param['name']}: {param['values']}") for param in entry["params"]),
        *(("time", formula_text(form)) for form in entry["formulas"]),
        ("source", entry["reference"]),
    ]
    print_fields(fields)
    if entry["formulas"]:
        print_lines("", LEGEND)


#: The meaning of the names in formulas.
LEGEND = (
    "P ranks or PEs (M x N on a grid); n bytes, as --bytes counts them; B wavelets of 32 bits; T_R the ramp latency in "
    "cycles; alpha, beta, gamma the prices of a message, of a byte sent, and of a byte reduced. For P > 1 and n, B > 0."
)


def formula_text(form: Mapping[str, Any]) -> str:
    """Formats ``(P-1) (alpha + n beta) for an alltoall by hockney``, with the condition if there is one."""
    model = _MODELS.get(form["model"], form["model"])
    condition = f", if {form['when']}" if form["when"] else ""
    return f"{form['time']}  ({', '.join(form['collectives'])}, by {model}{condition})"


def param_names(params: Any) -> str:
    """Formats the names of an algorithm's parameters, with their accepted values."""
    return "; ".join(p if isinstance(p, str) else ": ".join(filter(None, (p["name"], p.get("values")))) for p in params)
