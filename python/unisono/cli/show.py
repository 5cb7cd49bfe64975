"""`unisono show`: prints the contents of a file."""

import contextlib

import click

from unisono.base.messages import cut
from unisono.cli._options import json_option, limit_options
from unisono.cli._output import (
    digits_text,
    fields_of,
    print_fields,
    print_json,
    print_lines,
    print_table,
    value_text,
)
from unisono.planning.contents import contents

__all__ = ["show"]

#: The number of rows and lines that are printed by default.
_SHOWN = 20
#: The number of characters of a line that are printed by default.
_WIDEST = 200


@click.command()
@click.argument("file", type=click.Path(), metavar="FILE")
@click.option("--all", "show_all", is_flag=True, help=f"Print all rows and lines instead of the first {_SHOWN}.")
@json_option
@limit_options
def show(file: str, show_all: bool, as_json: bool) -> None:
    """Prints the contents of FILE: a schedule, plan, machine, report, trace, table or program.

    FILE has a schedule (.sched, .json, .xml, .registers), plan for MPI programs (.plan) or GPUs, machine or workload
    (.toml), certificate, report, sweep (.csv), trace, rules for libraries, or program of another tool. The contents
    decide the form.
    """
    found = contents(file, lines=None if show_all else _SHOWN)
    if as_json:
        print_json(found.report())
        return
    print_lines(f"{found.file}: {found.form}", "")
    shortened = {key: digits_text(of) if isinstance(of, float) else of for key, of in found.facts.items()}
    print_fields(fields_of(shortened))
    rows = found.rows if show_all else found.rows[:_SHOWN]
    if rows:
        print_lines("")
        columns = [name for name in rows[0] if any(row[name] is not None for row in rows)]
        right = [name for name in columns if all(_is_number(row[name]) for row in rows)]
        heads = {name: name.replace("_", " ") for name in columns}
        cells = [[_cell(found.form, name, row[name]) for name in columns] for row in rows]
        print_table(list(heads.values()), cells, right=[heads[name] for name in right], whole=["algorithm"])
    if len(rows) < len(found.rows):
        print_lines(f"and {len(found.rows) - len(rows)} more: --all")
    if found.text:
        lines = found.text.rstrip("\n").split("\n")
        print_lines("", *(line if show_all else cut(line, _WIDEST) for line in lines))


def _cell(form: str, name: str, value: object) -> str:
    # If a row of a plan has no algorithm, the MPI library makes its calls.
    if form == "plan for MPI programs" and name == "algorithm" and value is None:
        return "the library"
    if form == "sweep" and isinstance(value, str) and "." in value:
        # The reader of CSV does not convert numbers.
        with contextlib.suppress(ValueError):
            return digits_text(float(value))
    # Text output shows 8 characters of a long value; JSON has all characters.
    if isinstance(value, float):
        return digits_text(value)
    return value_text(value)[:8] if name == "expression_class" else value_text(value)


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))
