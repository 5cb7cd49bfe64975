"""`unisono export`: writes a decision table as the file of another library."""

import click

from unisono import UnsupportedError
from unisono.base import names
from unisono.base.files import check_writable, write
from unisono.cli._completion import of_names
from unisono.cli._failures import NO, say
from unisono.cli._options import json_option, limit_options
from unisono.cli._output import counted, one_of, print_json, print_lines, working
from unisono.cli._types import KnownName
from unisono.mpi.exports import FORMATS, export_table, loading, shown
from unisono.planning.decision_tables import read_table

__all__ = ["export"]


@click.command()
@click.argument("table", metavar="TABLE")
@click.option(
    "--format",
    "target",
    type=KnownName("FORMAT", of_names(FORMATS), names.format_of),
    required=True,
    metavar="FORMAT",
    help=f"{one_of(FORMATS)}; openmpi, mpich, nccl and ncclx stand for the formats of these libraries.",
)
@click.option("-o", "--output", metavar="FILE", required=True, help="The file to write.")
@click.option(
    "--library",
    metavar="FILE",
    help="For mpich-json: the libmpi.so.12 that will read the file, or the table of that library in JSON.",
)
@click.option(
    "--check/--no-check",
    default=True,
    help="Test the file by a run of the library, if it is installed.",
)
@json_option
@limit_options
def export(table: str, target: str, output: str, library: str | None, check: bool, as_json: bool) -> int:
    """Writes the decision TABLE (a .plan, or its JSON form) as a tuning file of another library."""
    check_writable(output)
    try:
        made = export_table(table, target, library)
    except UnsupportedError as refused:
        if as_json:
            print_json({"file": None, "checked": None, "refused": str(refused)})
        way = f"'unisono plan COLLECTIVE ... --for {target}' chooses among the algorithms that it can express"
        return say(f"{refused}; {way}", NO)
    write(output, made["text"])
    with working(f"running {target}"):
        # Only rows that the file contains are checked.
        rows = read_table(table)
        written = [rows[at] for at in made["written"]]
        checked = shown(written, target, made["load"], output, library) if check else "names, ranges and completeness"
    load = loading(made["load"], output)
    if as_json:
        report = {key: made[key] for key in ("rows", "left", "notes")}
        print_json({"file": output, "format": target, "checked": checked, "load": load, "refused": None, **report})
        return 0
    print_lines(
        f"wrote {output}: {counted(made['rows'], 'row')} of the table",
        f"load it with: {' '.join(load)}",
        f"checked: {checked}",
        *(f"left to the library: {reason}" for reason in made["left"]),
        *(f"note: {note}" for note in made["notes"]),
    )
    return 0
