"""`unisono merge`: joins the parts of a study."""

import click

from unisono.base.files import check_files
from unisono.base.studies import is_file_of_points, merge_points
from unisono.base.tables import SWEEP_FILES
from unisono.cli._endings import check_ending
from unisono.cli._options import json_option
from unisono.cli._output import print_json, print_lines
from unisono.cli._pictures import check_picture
from unisono.cli.sweep import report
from unisono.planning.shards import merge_parts

__all__ = ["merge"]


@click.command()
@click.argument("parts", nargs=-1, required=True, metavar="PART...")
@click.option(
    "-o",
    "--output",
    metavar="FILE.csv|tex|FILE",
    help="Write every point as CSV (.csv) or as a table in LaTeX (.tex); for files of --resume: the joined file.",
)
@click.option("--plot", metavar="FILE.png|svg|pdf", help="Draw the map of best algorithms and speed-ups.")
@json_option
def merge(parts: tuple[str, ...], output: str | None, plot: str | None, as_json: bool) -> None:
    """Joins PARTs, the files of `unisono sweep --shard I/N -o PART`, to the result of one sweep.

    The PARTs of other studies (`--shard I/N --resume PART`) become one file for `--resume` of the whole study.
    """
    check_picture(plot)
    check_files(output, plot)
    if is_file_of_points(parts[0]):
        if output is None or plot is not None:
            raise click.UsageError("files of points become one file: name it with -o, and draw by the study's command")
        count = merge_points(parts, output)
        if as_json:
            print_json({"points": count, "files": [output]})
        else:
            print_lines(f"wrote {output}: {count} points")
        return
    check_ending(output, SWEEP_FILES)
    study, points = merge_parts(parts)
    report(study["collective"], study["machine"], points, study["lengths"], output, plot, as_json, study["notes"])
