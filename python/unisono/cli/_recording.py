"""Programs of tasks in Python files, which commands execute without their kernels."""

from collections.abc import Iterable

import click

from unisono.tasks.recording import ROUNDS

__all__ = ["print_notes", "rounds_option"]

rounds_option = click.option(
    "--rounds",
    type=click.IntRange(min=1),
    default=ROUNDS,
    show_default=True,
    metavar="N",
    help="Of a Python file: record loops that wait for fetched contents for N rounds.",
)


def print_notes(notes: Iterable[str]) -> None:
    """Prints the notes of a recording to standard error."""
    for note in notes:
        click.echo(f"note: {note}", err=True)
