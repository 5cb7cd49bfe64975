"""`unisono import`: reads another tool's schedule."""

from typing import Any

import click

from unisono.base.files import check_writable, save
from unisono.cli._completion import of_names
from unisono.cli._endings import SCHEDULE_FILES, check_ending
from unisono.cli._gpu_plans import stated_values
from unisono.cli._options import json_option, limit_options
from unisono.cli._output import counted, one_of, print_json, print_lines, working
from unisono.cli._sources import note_unused
from unisono.cli._types import INT
from unisono.planning.emission import IMPORTED_FORMATS, import_schedule

__all__ = ["import_"]


@click.command("import")
@click.argument("file", metavar="FILE")
@click.option(
    "--format",
    "source",
    required=True,
    metavar="FORMAT",
    shell_complete=of_names(IMPORTED_FORMATS),
    help=f"The format of FILE: {one_of(IMPORTED_FORMATS)}.",
)
@click.option("-o", "--output", metavar="FILE", required=True, help="The schedule file: text (.sched) or JSON (.json).")
@click.option(
    "--elements",
    type=INT,
    metavar="N",
    help="Number of elements, in whole chunks [the file's, or one element a chunk].",
)
@click.option("--bytes", metavar="SIZE", help="Size of these elements in bytes, as in 64KiB.")
@click.option("--dtype", metavar="NAME", help="The datatype [the file's, or f32].")
@click.option("--op", metavar="NAME", help="The operator [the file's, or sum].")
@click.option("--root", type=INT, metavar="INDEX", help="The root [the file's, or 0].")
@json_option
@limit_options
def import_(
    file: str,
    source: str,
    output: str,
    as_json: bool,
    **_: Any,
) -> None:
    """Converts the schedule in FILE to a schedule file, which `unisono verify` can prove."""
    check_ending(output, SCHEDULE_FILES)
    check_writable(output)
    with working("reading"):
        schedule = import_schedule(file, source, **stated_values(file, source, "import"))
    note_unused(schedule.collective)
    notes = list(schedule.notes)
    if schedule.has_thread_blocks:
        notes.append(
            f"a schedule file keeps no thread blocks: times of {output} count links only; simulate {file} for times "
            "that count its thread blocks too"
        )
    for note in notes:
        click.echo(f"note: {note}", err=True)
    save(schedule, output)
    if as_json:
        print_json(
            {
                "file": output,
                "format": source,
                "collective": schedule.collective,
                "elements": schedule.elements,
                "dtype": schedule.dtype,
                "op": schedule.operator,
                "instructions": schedule.instructions,
                "nodes": schedule.nodes,
                "notes": notes,
            }
        )
        return
    print_lines(
        f"wrote {output}: {schedule.collective} of {schedule.elements} elements on {counted(schedule.ranks, 'rank')}, "
        f"{schedule.instructions} instructions"
    )
