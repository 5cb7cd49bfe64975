"""`unisono tune`: measures candidates under mpiexec and writes a plan file."""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import click

import unisono
from unisono import InputError
from unisono.base import names
from unisono.base.files import check_files, file_name
from unisono.base.messages import shown
from unisono.base.studies import KeptPoints
from unisono.cli._bits import SAME_BITS, check_contributors, contributors_option
from unisono.cli._completion import of_names
from unisono.cli._measurements import ALIKE, fingerprint, import_alike, judge, note_shared_cores
from unisono.cli._options import json_option
from unisono.cli._output import counted, params_text, print_json, print_lines, print_table, progress
from unisono.cli._sources import JUDGED, refuse_unused
from unisono.cli._types import FORMAT, INT, MACHINE
from unisono.cli.bench import sizes_of
from unisono.machines.descriptions import of_ranks
from unisono.mpi.collectives import MEASURED, Collectives, loaded_library
from unisono.mpi.exports import FORMATS, other_library, says
from unisono.mpi.forcing import can_force, variables_of
from unisono.mpi.groups import counts as whole_numbers
from unisono.mpi.library import check_alike, check_several, together
from unisono.planning.bits import BITS, save_table
from unisono.tuning.bits import BitsChoice, tune_bits
from unisono.tuning.confirming import Trial, confirm
from unisono.tuning.kept import Contests
from unisono.tuning.sampled import tune_share
from unisono.tuning.tables import LIBRARY, MOSTLY, SHORT, Cell, FileFor, groups, rows_of
from unisono.tuning.tables import tune as measure

__all__ = ["tune"]

_FOOTER = (
    "* chosen. A schedule replaces the library if that takes over 5 % longer and lost five sixths of the rounds.",
    f"Below {SHORT // 1024} KiB a round is won only by a time below all of the library's, and the library stays where "
    "ranks share cores.",
    "Along the sizes a choice may be kept, at up to 5 % more time, where another one would serve a short range only.",
)
#: The format of plans for the preload library of Unisono, which can run every schedule.
PRELOAD = "preload"
#: The formats of tuning files for MPI libraries, whose algorithms this command can measure.
OF_MPI = [name for name in FORMATS if not name.startswith("nccl")]
_SIZES = "8,64,512,4KiB,32KiB,256KiB,1MiB,4MiB"


@click.command()
@click.argument(
    "collectives", metavar="COLLECTIVE[,COLLECTIVE...]", required=False, shell_complete=of_names(MEASURED, several=True)
)
@click.option(
    "--machine",
    type=MACHINE,
    metavar="M.toml",
    help="The machine whose model proposes candidates, such as a file of 'unisono calibrate'.",
)
@click.option("--ranks", metavar="LIST", help="Numbers of ranks to measure, as in 2,4,8 [all ranks of this run].")
@click.option(
    "--per-node", metavar="LIST", help="Numbers of ranks on a node to measure, as in 1,48 [all ranks of a node]."
)
@click.option("--sizes", default=_SIZES, show_default=True, metavar="LIST", help="Sizes to measure, in bytes.")
@click.option(
    "--candidates", type=INT, default=3, show_default=True, metavar="N", help="Number of candidates at each size."
)
@click.option(
    "--rounds",
    type=INT,
    default=6,
    show_default=True,
    metavar="N",
    help="Number of interleaved rounds at each size.",
)
@click.option(
    "--for",
    "target",
    type=FORMAT,
    metavar="FORMAT",
    default=PRELOAD,
    show_default=True,
    help="Measure only algorithms that a file of this format of 'unisono export' can state. For openmpi-rules (or "
    "openmpi) and openmpi-json under Open MPI, and mpich-json (or mpich) under MPICH, these are the library's "
    "own; else they are Unisono's schedules. preload can state all schedules.",
)
@click.option(
    "--bits",
    type=click.Choice(BITS),
    help="Measure only tables whose results have the same bits on all ranks (ranks), also at each place of a vector "
    "(place), also at each size (size), or also on each number of ranks (ranks-count). No row leaves calls to the "
    "library.",
)
@contributors_option
@click.option("--library", metavar="FILE", help="With --for mpich-json: the libmpi.so.12 that will read the file.")
@click.option("-o", "--output", metavar="T.plan", help="The plan file to write.")
@click.option(
    "--resume",
    metavar="FILE",
    help="Store each finished measurement in FILE, and do not repeat those that FILE already has [T.plan.points, which "
    "is removed after T.plan is written].",
)
@click.option(
    "--from",
    "results",
    metavar="FOLDER",
    help="Measure nothing: evaluate the choices from a share of the measurements of PICO in this folder.",
)
@click.option(
    "--share",
    type=float,
    metavar="S",
    help="Measure at most this share of the points, as in 0.25, and estimate the others from them [all; with --from "
    "0.25].",
)
@json_option
def tune(
    collectives: str | None,
    machine: str | None,
    ranks: str | None,
    per_node: str | None,
    sizes: str,
    candidates: int,
    rounds: int,
    target: str,
    bits: str | None,
    contributors: int | None,
    library: str | None,
    output: str | None,
    resume: str | None,
    results: str | None,
    share: float | None,
    as_json: bool,
) -> int:
    """Times schedules that the machine's model proposes beside the MPI library, and writes a plan with the fastest."""
    refuse_unused(() if results is None else JUDGED)
    if target not in (PRELOAD, *OF_MPI):
        _refuse_target(target)
    if share is not None and not 0 < share <= 1:
        raise InputError(f"--share is {share:g}; accepted are numbers above 0, at most 1")
    if results is not None:
        if collectives or machine or output or resume:
            raise InputError(
                "--from judges all collectives of the measurements, without COLLECTIVE, --machine, -o and --resume"
            )
        return judge(results, 0.25 if share is None else share, as_json)
    mpi = import_alike()
    world = mpi.COMM_WORLD
    wished, model, file = together(world, lambda: _needed(collectives, machine, output))

    def checked() -> tuple[list[str], unisono.Machine, list[int], list[int], list[int] | None, FileFor | None]:
        asked = list(dict.fromkeys(map(names.collective, wished.split(","))))
        wrong = next((name for name in asked if name not in MEASURED), None)
        if wrong is not None:
            raise InputError(f"'{wrong}' cannot be tuned; accepted are {', '.join(MEASURED)}")
        if library is not None and target != "mpich-json":
            raise InputError(f"--library is for --for mpich-json, and not for {target}")
        check_contributors("--bits", bits, contributors)
        if bits is not None and (target != PRELOAD or share is not None):
            raise InputError("--bits chooses whole tables of schedules; drop --for and --share")
        if candidates < 1 or rounds < 2:
            raise InputError("--candidates is at least 1, and --rounds at least 2")
        if not file.endswith(".plan"):
            raise InputError(f"'{file}' does not end in .plan, and a plan file does")
        # Only rank 0 checks, because the nodes of other ranks need not have the folder.
        if world.rank == 0:
            check_files(file, resume)
        check_several(world, "tuning", "tune allreduce --machine M.toml -o T.plan")
        wanted = whole_numbers(ranks, "--ranks", world.size) if ranks else [world.size]
        if wanted[0] < 2:
            raise InputError("--ranks has 1; one rank has nothing to tune")
        limits = whole_numbers(per_node, "--per-node", world.size) if per_node else None
        where = of_ranks(model, world.size, "tuning is for")
        of_file = None
        if target != PRELOAD:
            is_forced = can_force(mpi, target)
            # The variables name the algorithms of the library that runs here.
            image = loaded_library() if is_forced and target == "mpich-json" and library is None else library
            variables = partial(variables_of, target=target, library=image) if is_forced else None
            of_file = FileFor(target, says(target, image), variables)
        return asked, where, sorted({size // 4 for size in sizes_of(sizes)}), wanted, limits, of_file

    kinds, where, counts, wanted, limits, of_file = together(world, checked)
    described = fingerprint(json.dumps(where.describe(), default=str).encode())
    check_alike(world, {f"the description of '{model}'": described}, ALIKE)
    note_shared_cores(mpi, world)
    here = Collectives(mpi, world).conditions()
    if world.rank == 0 and (reader := other_library(here, target)) is not None:
        click.echo(
            f"note: --for {target} is for {reader}, where algorithms take other times than under '{here}', which is "
            f"measured here; start 'unisono tune' by the mpiexec of {reader}",
            err=True,
        )
    if world.rank == 0 and of_file is not None and of_file.variables is not None:
        click.echo(
            f"note: the library's own algorithms are timed, which its variables force; 'unisono export {file} --format "
            f"{target}' writes the file that chooses them",
            err=True,
        )
    placed, limits, missing = groups(mpi, world, wanted, limits)
    if not placed:
        together(world, lambda: _refuse(missing))
    key = (mpi.Get_library_version(), here, target, where)
    with _contests(world, file, resume, key) as contests:
        if bits is not None:
            with progress("tuning") as on_cell:
                sized = [count for count in counts if count > 0]
                asked_bits = bits, contributors
                of_bits = (mpi, world, kinds, where, sized, placed, asked_bits, candidates, rounds)
                choices = tune_bits(*of_bits, on_cell, contests)
            return _write_bits(world, choices, asked_bits, (file, contests.found), missing, as_json)
        asked = (mpi, world, kinds, where, counts, (placed, limits), candidates, rounds)
        spent = None
        with progress("tuning") as on_cell:
            if share is None:
                families = measure(*asked, on_cell, of_file, contests)
            else:
                families, spent = tune_share(*asked, share, on_cell, of_file, contests)
        measured = [family for family in families if family.cells]
        found = {
            (row.collective, row.ranks, row.per_node, row.first_bytes): row
            for f in measured
            for row in rows_of(f, where)
        }
        with progress("confirming") as on_trial:
            rows, trials = confirm(mpi, world, list(found.values()), counts, rounds, on_trial, of_file, contests)
        table = [(row.serves, row.first_bytes, row.last_bytes, row.per_node, row.tuned) for row in rows]
        together(world, lambda: unisono.save_plans(table, file) if world.rank == 0 else None)
    if world.rank != 0:
        return 0
    cells = list({id(cell): cell for family in measured for of in family.cells.values() for cell in of}.values())
    for cell in cells:
        cell.chosen = next(
            row.name for row in rows if row.covers(cell.collective, cell.ranks, cell.per_node, cell.bytes)
        )
    if as_json:
        points = len([contender for cell in cells for contender in cell.contenders])
        amounts = {"measured": points, "points": points} if spent is None else spent._asdict()
        print_json(
            {
                "table": [row.report() for row in rows],
                "cells": [c.report() for c in cells],
                "missing": missing,
                "file": file,
            }
            | amounts
            | {"confirmed": [trial.report() for trial in trials], "resumed": contests.found}
        )
        return 0
    _print(cells)
    print_lines(*(f"not to be had on these nodes: {text}" for text in missing))
    _print_trials(trials)
    between = len({(row.ranks, row.per_node) for row in rows if not row.measured})
    note = f"; those for {counted(between, 'more rank count')} were interpolated" if between else ""
    if spent is not None:
        print_lines(f"measured {spent.measured} of {spent.points} points; ~ : expected from these")
    print_lines("", f"wrote {file}: {counted(len(rows), 'row')}{note}")
    return 0


@contextmanager
def _contests(world: Any, file: str, resume: str | None, key: tuple[object, ...]) -> Iterator[Contests]:
    """Yields an object that keeps measurements in a file on rank 0; a file of its own is removed after success."""
    path = resume or f"{file}.points"

    def opened() -> KeptPoints | None:
        return KeptPoints(path) if world.rank == 0 else None

    kept, ended = together(world, opened), False
    try:
        if kept is not None and len(kept):
            click.echo(
                f"note: '{path}' has {counted(len(kept), 'measurement')} of a run that ended early or had --resume; "
                "those of this command are not repeated, and without the file all are",
                err=True,
            )
        yield Contests(kept, key)
        ended = True
    finally:
        if kept is not None:
            kept.__exit__(None)
            if not ended and len(kept):
                click.echo(f"note: '{path}' keeps the measurements; the same command repeats none of them", err=True)
            if resume is None and (ended or not len(kept)):
                with suppress(OSError):
                    Path(file_name(path)).unlink()


def _write_bits(
    world: Any,
    choices: list[BitsChoice],
    asked: tuple[str, int | None],
    written: tuple[str, int],
    missing: list[str],
    as_json: bool,
) -> int:
    """Writes the chosen tables to one file, and prints their rows and the cost of the property of the bits.

    ``written`` has the file's name and the number of measurements of an earlier run.
    """
    file, resumed = written
    rows = [
        (plan, first, last, choice.per_node)
        for choice in choices
        for plan, first, last in choice.tables[choice.chosen].rows
    ]
    bits, contributors = asked
    together(world, lambda: save_table(rows, bits, file, contributors) if world.rank == 0 else None)
    if world.rank != 0:
        return 0
    if as_json:
        found = {"bits": bits, "choices": [choice.report() for choice in choices], "missing": missing, "file": file}
        print_json(found | {"resumed": resumed})
        return 0
    for choice in choices:
        of = f"{choice.collective} on {counted(choice.ranks, 'rank')}, {choice.per_node} a node"
        table = choice.tables[choice.chosen]
        shown = [
            [f"{first} to {'any' if last is None else last}", f"{plan.algorithm} {params_text(plan.params)}".rstrip()]
            for plan, first, last in table.rows
        ]
        print_lines(f"{of}: table {choice.chosen + 1} of {len(choice.tables)}")
        print_table(["bytes", "schedule"], shown, [])
        prices = [
            [str(p["bytes"]), f"{p['seconds'] * 1e6:.2f}", f"{p['fastest_seconds'] * 1e6:.2f}"] for p in choice.prices
        ]
        print_table(["bytes", "µs", "fastest µs"], prices, ["bytes", "µs", "fastest µs"])
        print_lines(f"{SAME_BITS[bits]}: {choice.cost - 1:+.1%} beside the fastest of tables and library", "")
    print_lines(*(f"not to be had on these nodes: {text}" for text in missing))
    print_lines(f"wrote {file}: {counted(len(rows), 'row')}")
    return 0


def _print_trials(trials: list[Trial]) -> None:
    """Prints how many choices were confirmed, and which sizes are left to the library."""
    kept = sum(trial.kept for trial in trials)
    if trials:
        print_lines(f"{kept} of {counted(len(trials), 'size')} confirmed in pairs with the library")
    for trial in trials:
        if not trial.kept:
            ratio = f"{trial.ratio:.2f} times the library's time; {trial.why}"
            print_lines(f"left to the library: {trial.name} of {trial.bytes} bytes on {trial.ranks} ranks, {ratio}")


def _needed(collectives: str | None, machine: str | None, output: str | None) -> tuple[str, str, str]:
    if collectives is not None and machine is not None and output is not None:
        return collectives, machine, output
    named = {"a COLLECTIVE": collectives, "--machine M.toml": machine, "-o T.plan": output}
    missing = " and ".join(name for name, value in named.items() if value is None)
    raise InputError(f"tune lacks {missing}: mpiexec -n 4 unisono tune allreduce --machine M.toml -o T.plan")


def _refuse_target(target: str) -> NoReturn:
    if target in FORMATS:
        raise InputError(
            f"--for {target} is for GPUs, and tune measures ranks of MPI; "
            f"'unisono plan COLLECTIVE --machine M --for {target} -o FILE.csv' writes such a file by the model"
        )
    accepted = ", ".join([PRELOAD, *OF_MPI])
    raise InputError(f"--for is {shown(target)}; accepted are {accepted}, and openmpi and mpich for their formats")


def _refuse(missing: list[str]) -> None:
    raise InputError(f"these nodes do not have {', or '.join(missing)}; ask for fewer with --ranks or --per-node")


def _print(cells: list[Cell]) -> None:
    rows: list[list[str]] = []
    for cell in cells:
        for at, contender in enumerate(cell.contenders):
            mark = "*" if cell.is_chosen(contender) else ""
            name = "the library" if contender.name == LIBRARY else contender.name
            params: dict[str, Any] = {} if contender.plan is None else contender.plan.params
            unused = "" if contender.effective else "(did not serve)"
            if contender.left and contender.won >= MOSTLY * cell.rounds:
                unused = "(short, on shared cores)"
            rows.append(
                [
                    *((cell.collective, str(cell.ranks), str(cell.bytes)) if at == 0 else ("", "", "")),
                    " ".join(filter(None, [name, params_text(params), unused, mark])),
                    f"{'' if contender.measured else '~'}{contender.seconds * 1e6:.2f}",
                    "" if contender.plan is None else f"{contender.won}/{cell.rounds}",
                ]
            )
    right = ["ranks", "bytes", "µs", "rounds won"]
    print_table(["collective", "ranks", "bytes", "contender", "µs", "rounds won"], rows, right)
    print_lines(*_FOOTER)
