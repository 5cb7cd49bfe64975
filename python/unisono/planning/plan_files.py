"""Writes, reads and proves `.plan` files, which MPI programs under `unisono run` load."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import SupportsIndex

from unisono import _core
from unisono._core import InputError, Plan, Schedule
from unisono.base.files import is_file, read_bytes, title, write
from unisono.base.inputs import items, whole
from unisono.base.messages import shown
from unisono.base.names import named
from unisono.base.reports import PlanBits, PlanRow

__all__ = [
    "BEGINNING",
    "check_plan_file",
    "encoded_plans",
    "is_plan_file",
    "load_plans",
    "ranks_of_rows",
    "read_proven",
    "save_plans",
]

#: The first bytes of every plan file.
BEGINNING = b"UNISPLAN"

#: The source of a row: a plan, a user's schedule, or ``(collective, ranks)`` to leave calls to the MPI library.
Serves = Plan | Schedule | tuple[str, int]
#: A row: its source, and the first and the last size in bytes that it serves (None: no limit). A fourth item is the
#: number of ranks that the fullest node must have (None: any number). A fifth item is the conditions under which the
#: row was measured, by :meth:`unisono.mpi.collectives.Collectives.conditions` (None: the row serves under any
#: conditions).
Row = (
    tuple[Serves, int, int | None]
    | tuple[Serves, int, int | None, int | None]
    | tuple[Serves, int, int | None, int | None, str | None]
)


def save_plans(rows: Iterable[Row], path: str | os.PathLike[str], *, unlike_bits: bool = False) -> None:
    """Writes a table of schedules for MPI programs.

    Sizes count as in MPI: the whole vector of a broadcast, reduce or allreduce, one rank's piece of the others. Each
    schedule is proved and stored in blocks. It serves every count in its range if its row has ``any_count``, else those
    that its number of blocks divides. The MPI library carries out all other calls.

    Some schedules leave different bits of a rounded allreduce on different ranks. They serve only allreduces of
    integers, unless ``unlike_bits`` is true here and ``UNISONO_UNLIKE_BITS=1`` is in the environment of the program.

    >>> import unisono as un
    >>> short = un.plan("allreduce", "archer", shape=4, elements=2)
    >>> long = un.plan("allreduce", "archer", shape=4, bytes="1MiB", algorithm="ring")
    >>> un.save_plans([(short, 0, 4095), (long, 65536, None)], "/dev/null")

    Raises:
        InputError: rows that overlap, or a path that cannot be written.
        UnsupportedError: a plan for a wafer, or a schedule that message passing cannot run.

    """
    write(path, encoded_plans(rows, unlike_bits=unlike_bits))


def encoded_plans(rows: Iterable[Row], *, unlike_bits: bool = False) -> bytes:
    """Returns the bytes of the file that :func:`save_plans` writes.

    Raises:
        InputError: rows that overlap.
        UnsupportedError: as for :func:`save_plans`.

    """
    listed = []
    for row in items(rows, f"rows is {shown(rows)}, and must be a list of rows"):
        if not isinstance(row, tuple | list) or len(row) not in (3, 4, 5):
            raise InputError(
                f"{shown(row)} is not a row; accepted is (serves, first, last[, ranks per node[, conditions]])"
            )
        listed.append(_checked(*row))
    return _core.encode_plan(listed, unlike_bits)


def _checked(
    serves: Serves,
    first: SupportsIndex,
    last: SupportsIndex | None,
    ranks_a_node: SupportsIndex | None = None,
    tuned: str | None = None,
) -> tuple[Serves, int, int | None, int | None, str | None]:
    """Returns a checked row in the form that the extension module accepts.

    Raises:
        InputError: the source, a size or the conditions have a wrong type or value.

    """
    if isinstance(serves, tuple | list) and len(serves) == 2:
        collective, ranks = serves
        serves = named("the collective of a row", collective), _within("the ranks of a row", ranks, 1, 2**32 - 1)
    elif not isinstance(serves, Plan | Schedule):
        raise InputError(f"a row is served by {shown(serves)}; accepted are a plan, a schedule and (collective, ranks)")
    if not (tuned is None or isinstance(tuned, str)):
        raise InputError(f"the conditions of a row are {shown(tuned)}; accepted is a text")
    return (
        serves,
        _within("the first size of a row", first, 0, 2**64 - 1),
        None if last is None else _within("the last size of a row", last, 0, 2**64 - 1),
        None if ranks_a_node is None else _within("the ranks per node of a row", ranks_a_node, 1, 2**32 - 1),
        tuned,
    )


def _within(what: str, value: object, least: int, most: int) -> int:
    number = whole(what, value)
    if not least <= number <= most:
        raise InputError(f"{what} is {number}; accepted are {least} to {most}")
    return number


def load_plans(path: str | os.PathLike[str]) -> list[PlanRow]:
    """Reads and proves the rows of a ``.plan`` file.

    A row has a collective, ranks, sizes, and an algorithm (None: the MPI library's choice).

    Raises:
        InputError: the file is damaged, cut short, newer than this program, or not a plan, or its proof fails.

    """
    return _core.decode_plan(read_proven(path))


def is_plan_file(path: str | os.PathLike[str]) -> bool:
    """Returns whether a regular file begins like a plan file; the rest is not checked."""
    if not is_file(path):
        return False
    with Path(path).open("rb") as file:
        return file.read(len(BEGINNING)) == BEGINNING


def check_plan_file(
    path: str | os.PathLike[str], contributors: int | None = None
) -> tuple[list[PlanRow], str | None, list[PlanBits]]:
    """Returns the rows of a ``.plan`` file, the error of a failed proof or None, and the proved properties of the bits.

    The property ``ranks-count`` is checked for ``contributors`` logical contributors.

    Raises:
        InputError: the file is damaged, cut short, newer than this program, or not a plan.

    """
    raw = read_bytes(path, as_stored=True)
    try:
        return _core.check_plan_file(raw, contributors)
    except InputError as error:
        raise InputError(f"'{title(path)}': {error}") from None


def ranks_of_rows(path: str | os.PathLike[str]) -> list[int]:
    """Returns the numbers of ranks for which a ``.plan`` file has rows, ascending, without a proof.

    Raises:
        InputError: the file is damaged, cut short, newer than this program, or not a plan.

    """
    return sorted({row["ranks"] for row in _core.decode_plan(read_bytes(path, as_stored=True))})


def read_proven(path: str | os.PathLike[str], ranks: int | None = None) -> bytes:
    """Returns the bytes of a plan file after a proof of its rows, or of its rows for this number of ranks.

    A proof is needed because a checksum shows only that the file is complete.

    Raises:
        InputError: the file cannot be read, or its proof fails.

    """
    raw = read_bytes(path, as_stored=True)
    try:
        _core.prove_plan(raw, ranks)
    except InputError as error:
        raise InputError(f"'{title(path)}': {error}") from None
    return raw
