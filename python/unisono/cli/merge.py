"""`unisono merge`: a sweep from its parts."""

import click

from unisono.base.files import check_files
from unisono.cli._options import json_option
from unisono.cli._pictures import check_picture
from unisono.cli.sweep import report
from unisono.planning.shards import merge_parts

__all__ = ["merge"]


@click.command()
@click.argument("parts", nargs=-1, required=True, metavar="PART...")
@click.option("-o", "--output", metavar="FILE.csv|tex", help="Write every point as CSV, or as a table in LaTeX.")
@click.option("--plot", metavar="FILE.png|svg|pdf", help="Draw the map of winners and speed-ups.")
@json_option
def merge(parts: tuple[str, ...], output: str | None, plot: str | None, as_json: bool) -> None:
    """Joins the PARTs of a sweep that `unisono sweep --shard I/N -o PART` wrote, as if one job had made it."""
    check_picture(plot)
    check_files({"-o": output, "--plot": plot}, *parts)
    study, points = merge_parts(parts)
    report(study["collective"], study["machine"], points, study["lengths"], output, plot, as_json, study["notes"])
