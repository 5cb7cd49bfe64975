"""Writes decision tables as files of other libraries, and shows that a library uses them."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from unisono import _core
from unisono._core import InputError, Plan, UnsupportedError
from unisono.base.facts import reduces
from unisono.base.files import MOST_LIBRARY_BYTES, read_bytes, write
from unisono.mpi import installations
from unisono.mpi.equal_schedules import other_names
from unisono.planning.decision_tables import read_table
from unisono.planning.libraries import OF_NCCL

__all__ = ["FORMATS", "export", "export_rows", "export_table", "loading", "other_library", "row_of", "says", "shown"]

#: The names of all formats.
FORMATS = tuple(row["name"] for row in _core.tunings())
#: The installed library that is run to show that a file of this format is in effect.
_RUNS_WITH = {"openmpi-rules": "Open MPI", "mpich-json": "MPICH"}
#: The library that reads a format, by its name in conditions.
_OF_FORMAT = {
    "openmpi-rules": "openmpi",
    "openmpi-han": "openmpi",
    "openmpi-json": "openmpi",
    "mpich-json": "mpich",
}
#: The algorithms that NCCL uses on several nodes only if the network reduces.
_BY_NETWORK = ("nvls", "collnet_direct", "collnet_chain")
_STATIC = "names, ranges and completeness checked"


def export_table(
    table: str | os.PathLike[str], target: str, library: str | os.PathLike[str] | None = None
) -> dict[str, Any]:
    """Returns a decision table as the file of a library: ``{text, load, notes, left, rows, written}``.

    A row whose algorithm the library lacks is written with an algorithm that makes the same schedule, if there is one,
    and a note. Rows of NCCL's ``nvls`` and ``collnet_*`` on several nodes are left out, because a table does not state
    whether the network reduces. ``written`` lists the indices of the table's rows that the file has.

    ``library`` is the ``libmpi.so`` of the MPICH that is to read the file, or its table in JSON; without it an
    installed MPICH is searched.

    Raises:
        InputError: the format or the table does not exist, or the library's table cannot be read.
        UnsupportedError: no row of the table can be expressed.

    """
    return export_rows(read_table(table), target, library, network_reduces=False)


def export_rows(
    rows: list[dict[str, Any]],
    target: str,
    library: str | os.PathLike[str] | None = None,
    *,
    network_reduces: bool = True,
) -> dict[str, Any]:
    """Returns rows of a decision table as the file of a library, like :func:`export_table`.

    With ``network_reduces``, rows of NCCL's ``nvls`` and ``collnet_*`` on several nodes are written too; plans have
    such rows only on networks that reduce.
    """
    image = _image(target, library)
    said, notes, written, skipped = [], [], [], []
    for at, row in enumerate(rows):
        row = {key: value for key, value in row.items() if key != "tuned"}
        own = _said_as(row, target, image)
        if own is not None and not network_reduces and (reason := _skips(own, target)):
            last = "any" if row["last_bytes"] is None else row["last_bytes"]
            sizes = f"{row['first_bytes']} to {last} bytes"
            skipped.append(f"{row['collective']} on {row['ranks']} ranks, {sizes}, {_algorithm(row)}: {reason}")
            row = {**row, "algorithm": "library", "params": {}}
        elif own is not None:
            written.append(at)
            if own["algorithm"] != row["algorithm"]:
                notes.append(f"on {row['ranks']} ranks {_algorithm(row)} makes the schedule of {own['algorithm']}")
            row = own
        said.append(row)
    if skipped and not written:
        raise UnsupportedError(f"{target} cannot express this table: no row can be expressed; {'; '.join(skipped)}")
    made = _core.export_table(said, target, image)
    notes += _of_conditions({rows[at].get("tuned") for at in written}, target)
    left = [*made["left"], *skipped]
    return {**made, "notes": [*dict.fromkeys(notes), *made["notes"]], "left": left, "written": written}


def _skips(row: dict[str, Any], target: str) -> str | None:
    """Returns the reason why NCCL skips a row's algorithm unless the network reduces; None if NCCL runs it."""
    nodes = 1 if row["per_node"] is None else row["ranks"] // row["per_node"]
    if target not in OF_NCCL or nodes == 1:
        return None
    text = _core.export_table([row], target, None)["text"]
    name = next((name for name in _BY_NETWORK if f",{name}," in text), None)
    return name and (
        f"NCCL skips {name} on {nodes} nodes unless the network reduces (CollNet), which a table does not state; a row "
        "without per_node is written"
    )


def _of_conditions(tuned: set[str | None], target: str) -> list[str]:
    """Returns notes on the conditions under which rows were measured, which files of libraries cannot state."""
    conditions = sorted(one for one in tuned if one is not None)
    other = [one for one in conditions if other_library(one, target)]
    notes = []
    if other:
        name = _OF_FORMAT[target]
        notes.append(
            f"rows were measured under {' and '.join(other)}, and the file is for {name}, where algorithms take other "
            f"times: measure under {name} ('unisono tune' under its mpiexec) before you trust the file"
        )
    if alike := [one for one in conditions if one not in other]:
        notes.append(f"rows were measured under {' and '.join(alike)}; the file serves them under all conditions")
    return notes


def other_library(conditions: str, target: str) -> str | None:
    """Returns the MPI library that reads a format's files; None if there is none, or if it has the conditions."""
    name = _OF_FORMAT.get(target)
    return None if name == conditions.split()[0] else name


def _image(target: str, library: str | os.PathLike[str] | None) -> bytes | None:
    """Returns the bytes of the library whose table the file must contain; None for formats without a table."""
    if target != "mpich-json":
        if library is not None:
            raise InputError(f"--library is for mpich-json, whose file holds the library's table; not for {target}")
        return None
    found = Path(library) if library is not None else installations.mpich_image()
    if found is None:
        raise InputError("no MPICH was found, whose table the file must hold; name its libmpi.so.12 with --library")
    return read_bytes(found, MOST_LIBRARY_BYTES)


def says(target: str, library: str | os.PathLike[str] | None = None) -> Callable[[dict[str, Any]], str | None]:
    """Returns a function that maps a row of a decision table to the algorithm, with parameters, that a file states.

    The function returns None if such a file cannot state the row. ``library`` is as for :func:`export_table`.

    Raises:
        InputError: the format does not exist, or the library whose table it needs was not found.

    """
    if target not in FORMATS:
        raise InputError(f"'{target}' is not a format of tuning files; accepted are {', '.join(FORMATS)}")
    image = _image(target, library)

    def of(row: dict[str, Any]) -> str | None:
        said = _said_as(row, target, image)
        return None if said is None else _algorithm(said)

    return of


def row_of(plan: Plan, first_bytes: int, last_bytes: int | None) -> dict[str, Any]:
    """Returns the row of a decision table by which a plan serves a range of sizes in bytes."""
    about = plan.report()
    row: dict[str, Any] = {"per_node": None, "class": None, "first_bytes": first_bytes, "last_bytes": last_bytes}
    if about["operator"] == "ordered" and reduces(about["collective"]):
        row["class"] = "ordered"
    row |= {"collective": about["collective"], "ranks": about["ranks"]}
    return row | {"algorithm": about["algorithm"], "params": about["params"]}


def _said_as(row: dict[str, Any], target: str, image: bytes | None) -> dict[str, Any] | None:
    """Returns the row with an equivalent algorithm that the format can state; None if there is none.

    An equivalent algorithm makes the same schedule.
    """
    if row["algorithm"] == "library":
        return None
    for own in (row, *({**row, "algorithm": name, "params": {}} for name in other_names(row))):
        try:
            _core.export_table([own], target, image)
        except UnsupportedError:
            continue
        return own
    return None


def _algorithm(row: dict[str, Any]) -> str:
    return " ".join([row["algorithm"], *(f"{name}={value}" for name, value in row["params"].items())])


def loading(load: list[str], file: str | os.PathLike[str]) -> list[str]:
    """Returns the words of ``load``, in which FILE at the end, after ``=`` or a blank, is replaced by ``file``."""
    return [word.removesuffix("FILE") + os.fspath(file) if word.endswith(("=FILE", " FILE")) else word for word in load]


def shown(
    rows: list[dict[str, Any]],
    target: str,
    load: list[str],
    file: str | os.PathLike[str],
    image: str | os.PathLike[str] | None = None,
) -> str:
    """Returns a sentence on whether a file is in effect, by results of the installed library with and without it.

    ``image`` is the library whose table the file contains. A run of another library would not show whether the file is
    in effect.
    """
    name = _RUNS_WITH.get(target)
    if name is None:
        return f"{_STATIC}; not run"
    library = installations.find(name)
    if library is None:
        return f"{_STATIC}; not run: there is no {name} here"
    if image is not None and not library.holds(Path(image)):
        return f"{_STATIC}; not run: '{image}' is not of the {name} of {library.python}, which has mpi4py"
    calls = _calls(rows)
    if not calls:
        return f"{_STATIC}; not run: no row of 2 to {installations.MOST_RANKS} ranks and at most 16 MiB is in the file"
    path = str(Path(file).resolve())
    load = loading(load, path)
    found = []
    for ranks, wanted in calls.items():
        try:
            before = library.results(ranks, wanted, [word for word in load if path not in word])
            after = library.results(ranks, wanted, load)
        except RuntimeError as error:
            return f"{_STATIC}; {name} failed with it on {ranks} ranks: {error}"
        for call in wanted:
            note = _compared(call[0], before[call], after[call])
            found.append(f"{call[0]} of {call[1]} bytes on {ranks} ranks: {note}")
    return f"{_STATIC}; run with {name}: " + "; ".join(found)


#: The collectives that add floats, whose bits show the order of additions.
_ADDS = ("allreduce", "reduce", "reduce-scatter", "scan")
#: The collectives whose size in bytes is that of one rank's block.
_OF_BLOCKS = ("allgather", "alltoall", "gather", "scatter", "reduce-scatter")


def _compared(collective: str, before: str, after: str) -> str:
    hashes = f"({before}, {after})"
    if collective not in _ADDS:
        same = "ran, with the same result as without the file; no sum shows which algorithm ran"
        return same if before == after else f"another result than without the file {hashes}"
    if before != after:
        return f"result bits changed {hashes}: the file has an effect"
    return f"same result bits {hashes}: both add in the same order, or the file has no effect"


def _calls(rows: list[dict[str, Any]]) -> dict[int, list[tuple[str, int]]]:
    """Returns, by each number of ranks that can be run, a call inside each row that has a schedule.

    Rows without a size of 4 bytes to 16 MiB, of all blocks together, are left out; a barrier has size 0.
    """
    calls: dict[int, list[tuple[str, int]]] = {}
    for row in rows:
        collective, ranks = row["collective"], row["ranks"]
        last = row["last_bytes"] if row["last_bytes"] is not None else 2**62
        size = min(last, max(row["first_bytes"] + 3, 64 * ranks)) // 4 * 4
        fits = max(4, row["first_bytes"]) <= size <= 2**24 // (ranks if collective in _OF_BLOCKS else 1)
        if 2 <= ranks <= installations.MOST_RANKS and row["algorithm"] != "library":
            if collective == "barrier":
                calls.setdefault(ranks, []).append((collective, 0))
            elif fits:
                calls.setdefault(ranks, []).append((collective, size))
    return {ranks: sorted(set(wanted)) for ranks, wanted in calls.items()}


def export(
    table: str | os.PathLike[str],
    target: str,
    file: str | os.PathLike[str],
    library: str | os.PathLike[str] | None = None,
) -> dict[str, Any]:
    """Writes a decision table as the file of a library; returns ``{text, load, notes, left, rows, written}``.

    Raises:
        InputError: as for :func:`export_table`, or the file cannot be written.
        UnsupportedError: no row of the table can be expressed; nothing is written.

    """
    made = export_table(table, target, library)
    write(file, made["text"])
    return made | {"load": loading(made["load"], file)}
