"""Programs of tasks in Python files, which commands execute without their kernels."""

import click

from unisono.tasks.recording import ROUNDS

rounds_option = click.option(
    "--rounds",
    type=click.IntRange(min=1),
    default=ROUNDS,
    show_default=True,
    metavar="N",
    help="For a Python file: record at most N rounds of each loop that waits for fetched contents.",
)
