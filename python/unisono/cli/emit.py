"""`unisono emit`: writes a schedule as code for a target."""

from typing import Any

import click

from unisono import NotExpressibleError, emit_files
from unisono.base import names
from unisono.base.files import check_writable, is_file
from unisono.cli._completion import of_names
from unisono.cli._failures import NO, say
from unisono.cli._options import file_or_plan_options, json_option, limit_options, schedule_of
from unisono.cli._output import one_of, print_json, print_lines, print_notes, working
from unisono.cli._sources import NOT_FOR_GPUS, refuse_unused
from unisono.planning.emission import (
    FORMATS,
    PLANNED_FORMATS,
    check_emission,
    check_target,
    emission_notes,
    write_target,
)

__all__ = ["emit"]

#: The largest number of listed files.
_SHOWN = 5


@click.command()
@file_or_plan_options
@click.option(
    "--format",
    "form",
    required=True,
    metavar="FORMAT",
    shell_complete=of_names(FORMATS),
    help=f"The target: {one_of(FORMATS)}.",
)
@click.option(
    "-o",
    "--output",
    metavar="FOLDER|FILE",
    required=True,
    help="The folder to write, created if it is missing; or the file, for a target that is one file.",
)
@click.option(
    "--in-place/--not-in-place",
    "in_place",
    default=None,
    help="For mscclpp: calls pass one buffer as input and output, or two [as torch.distributed calls the collective].",
)
@click.option(
    "--gpus-per-box",
    type=click.IntRange(1, 65536),
    metavar="N",
    help="For mscclpp: number of GPUs in a box; these share memory, and port channels connect boxes [the machine's "
    "boxes, or all GPUs in one].",
)
@click.option(
    "--thread-blocks",
    type=click.IntRange(1, 65536),
    metavar="N",
    help="For mscclpp: the number of thread blocks that share the work of a GPU [by the size of chunks].",
)
@json_option
@limit_options
def emit(
    file_or_collective: str,
    machine: str | None,
    form: str,
    output: str,
    in_place: bool | None,
    gpus_per_box: int | None,
    thread_blocks: int | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Writes the schedule in FILE, or the one planned for COLLECTIVE, as code."""
    form = names.format_of(form)
    refuse_unused(() if form == "mscclpp" else NOT_FOR_GPUS)
    check_target(output)
    if is_file(output):
        check_writable(output)
    target = form if form in PLANNED_FORMATS else None
    try:
        schedule = schedule_of(file_or_collective, machine, options, "emit", target=target)
        with working("emitting"):
            files = emit_files(
                schedule, form, in_place=in_place, gpus_per_box=gpus_per_box, thread_blocks=thread_blocks
            )
    except NotExpressibleError as refused:
        if as_json:
            print_json({"files": [], "target": form, "refused": str(refused)})
        return say(str(refused), NO)
    replaced = check_emission(output, files)
    written = write_target(output, files)
    notes = emission_notes(schedule, form, files)
    if as_json:
        of = {"algorithm": schedule.origin, "replaced": replaced, "notes": notes}
        print_json({"files": written, "target": form, "refused": None, **of})
        return 0
    if schedule.origin:
        print_lines(f"algorithm {schedule.origin}")
    files_written = "1 file" if len(written) == 1 else f"{len(written)} files"
    print_lines(f"wrote {files_written} for {form} to {output}:", *(f"  {name}" for name in written[:_SHOWN]))
    if len(written) > _SHOWN:
        print_lines(f"  and {len(written) - _SHOWN} more: --json lists all")
    print_notes(notes)
    if replaced:
        print_lines(f"replaced {len(replaced)} of them that had other contents, such as {replaced[0]}")
    return 0
