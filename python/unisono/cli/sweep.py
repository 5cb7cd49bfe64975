"""`unisono sweep`: the best algorithm at every point of a grid of shapes and lengths."""

from typing import Any

import click

import unisono
from unisono.base.files import check_files, write
from unisono.base.letters import letters
from unisono.base.pictures import form_of
from unisono.base.reports import SweepPoint
from unisono.base.tables import SWEEP_FILES, source_word, sweep_text
from unisono.cli._completion import algorithms, complete
from unisono.cli._endings import check_ending
from unisono.cli._jobs import points_option, study, study_options
from unisono.cli._options import (
    asked_shape,
    data_options,
    json_option,
    limit_options,
    machine_option,
    model_option,
    parameters_of,
    root_option,
    site_options,
)
from unisono.cli._output import (
    counted,
    json_text,
    one_of,
    params_text,
    print_json,
    print_lines,
    print_notes,
    print_table,
    progress,
    time_of,
    unit_of,
)
from unisono.cli._pictures import check_picture
from unisono.cli._sources import SUBSET, note_unused, refuse_unused
from unisono.cli._types import ALGORITHM, COLLECTIVE, Lengths, Names, Param, Shapes, Shard
from unisono.planning.shards import part_of

__all__ = ["report", "sweep"]

_WIDEST = 16


@click.command()
@click.argument("collective", type=COLLECTIVE)
@machine_option
@site_options
@click.option(
    "--shapes",
    type=Shapes(),
    help="Parts of the machine, as in 4,8,16 or 4x4,8x8; 4..512 is 4, its doublings, and 512.",
)
@click.option(
    "--ranks",
    type=Lengths(),
    help="In place of --shapes: numbers of ranks (on a wafer, of PEs in a row); 3..13 is 3,6,12,13.",
)
@click.option(
    "--elements",
    type=Lengths(),
    required=True,
    help="Numbers of elements, as in 1,2,4; 1..32768 is 1, its doublings, and 32768.",
)
@click.option(
    "--algorithms",
    "listed",
    type=Names(),
    shell_complete=complete(algorithms, several=True),
    help="Compare only these algorithms, as in star,chain,tree.",
)
@click.option(
    "--algorithm",
    "named",
    type=ALGORITHM,
    multiple=True,
    metavar="NAME",
    help="Compare only this algorithm; repeatable.",
)
@click.option(
    "--baseline",
    metavar="NAME",
    shell_complete=complete(algorithms),
    help="The algorithm that the speed-up compares with [on a wafer: chain, or flood for a broadcast; among ranks: "
    "recursive-doubling, pairwise, dissemination or binomial, by the collective; on machines of kind in-network: "
    "recursive-doubling for an allreduce, else in-network].",
)
@click.option(
    "--param", type=Param(), multiple=True, help="A parameter of the algorithms, as in root=middle; repeatable."
)
@data_options
@root_option
@model_option
@click.option(
    "-o",
    "--output",
    metavar="FILE.csv|tex",
    help="Write every point as CSV, or as a table in LaTeX; with --shard, a part for 'unisono merge'.",
)
@click.option(
    "--shard", type=Shard(), help="Compute only every Nth point, from the Ith on, for jobs that share a sweep."
)
@points_option
@study_options
@click.option("--plot", metavar="FILE.png|svg|pdf", help="Draw the map of best algorithms and speed-ups.")
@json_option
@limit_options
def sweep(
    collective: str,
    machine: str,
    nodes: int | None,
    subset: list[int] | None,
    fail: tuple[str, ...],
    shapes: list[tuple[int, ...]] | None,
    ranks: list[int] | None,
    listed: list[str] | None,
    named: tuple[str, ...],
    output: str | None,
    plot: str | None,
    shard: tuple[int, int] | None,
    jobs: int,
    executor: str | None,
    resume: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Finds the best algorithm for COLLECTIVE at every shape and length, and its speed-up over a baseline.

    The best algorithm is that of `unisono plan`, with its parameters; named algorithms are those of `plan --algorithm`,
    on a wafer with default parameters.
    """
    if shard is not None and (output is None or plot is not None):
        raise click.UsageError("--shard writes a part for 'unisono merge': name it with -o, and draw what is merged")
    if ranks is not None:
        if shapes is not None:
            raise click.UsageError("--shapes and --ranks both choose the parts of the machine to sweep; give one")
        shapes = [asked_shape(None, count) or () for count in ranks]
    if subset is not None:
        refuse_unused(SUBSET)
    elif shapes is None:
        raise click.UsageError(
            "no part of the machine is named to sweep; give --shapes, as 4..64 or 8x8,16x16, or --ranks, as 4,8,16, or "
            "one --subset of its nodes"
        )
    check_picture(plot)
    check_files(output, plot, resume)
    if shard is None:
        check_ending(output, SWEEP_FILES)
    note_unused(collective)
    params = parameters_of(options.pop("param"))
    where = unisono.machine(machine, nodes=nodes, subset=subset, failed=fail)
    with progress(f"sweep of {collective}") as on_point, study(jobs, executor, resume) as (by, kept):
        points = unisono.sweep(
            collective,
            where,
            shapes=shapes,
            algorithms=[*(listed or []), *named] or None,
            params=params,
            shard=shard,
            executor=by,
            kept=kept,
            progress=on_point,
            **options,
        )
    most = max(options["elements"], default=0) * unisono.dtypes()[options["dtype"]]
    notes = where.notes(most, options["model"])
    if shard is not None:
        assert output is not None
        lengths = len(options["elements"])
        total = lengths * (1 if shapes is None else len(shapes))
        facts = {"collective": collective, "machine": machine, "lengths": lengths, "total": total, "notes": notes}
        # All inputs of the points, whose text distinguishes the parts of different sweeps.
        inputs = (where.to_toml(), nodes, subset, fail, shapes, listed, named, params, sorted(options.items()))
        part = part_of({**facts, "asked": repr(inputs)}, shard, points)
        write(output, json_text(part))
        if as_json:
            print_json({**facts, "asked": part["asked"], "shard": list(shard), "points": points, "files": [output]})
        else:
            print_lines(f"wrote {output}: {len(points)} points, shard {shard[0]} of {shard[1]}")
        return
    report(collective, machine, points, len(options["elements"]), output, plot, as_json, notes)


def report(
    collective: str,
    machine: str,
    points: list[SweepPoint],
    lengths: int,
    output: str | None,
    plot: str | None,
    as_json: bool,
    notes: list[str],
) -> None:
    """Writes the files of a complete sweep and prints its points."""
    if output is not None:
        write(output, sweep_text(points, output))
    if plot is not None:
        # Imported late, because matplotlib takes long to import.
        from unisono.pictures import plots

        nodes = "ranks" if points[0]["cycles"] is None else "PEs"
        write(plot, plots.speedup_map(points, f"{collective} on {machine}", form=form_of(plot), nodes=nodes))
    if as_json:
        files = _written(output, plot)
        print_json({"collective": collective, "machine": machine, "points": points, "notes": notes, "files": files})
        return
    _print(points, lengths)
    print_notes(notes)
    for path in _written(output, plot):
        print_lines(f"wrote {path}")


def _written(*paths: str | None) -> list[str]:
    return [path for path in paths if path is not None]


def _print(points: list[SweepPoint], lengths: int) -> None:
    """Prints a map with one row for each shape.

    If there are too many lengths for a map, prints one row for each point.
    """
    sources = {source_word(point["source"]) for point in points}
    is_mixed = len(sources) > 1
    if lengths > _WIDEST:
        rows = [
            [
                _shape(point),
                str(point["elements"]),
                point["best"],
                params_text(point["params"]),
                time_of(point),
                *([source_word(point["source"])] if is_mixed else []),
                _gain(point),
            ]
            for point in points
        ]
        unit = unit_of(points[0])
        right = ["elements", unit, "speed-up"]
        by = ["time by"] if is_mixed else []
        print_table(["shape", "elements", "best", "parameters", unit, *by, "speed-up"], rows, right=right)
        _print_sources(points, sources)
        return
    letter = letters(point["best"] for point in points)
    rows = []
    for start in range(0, len(points), lengths):
        row = points[start : start + lengths]
        marks = ["*" if is_mixed and source_word(point["source"]) == "simulated" else "" for point in row]
        cells = [f"{letter[p['best']]} {_gain(p)}{mark}" for p, mark in zip(row, marks, strict=True)]
        rows.append([_shape(row[0]), *cells])
    columns = [str(point["elements"]) for point in points[:lengths]]
    print_table(["shape", *columns], rows, right=columns)
    print_lines("", "  ".join(f"{mark} {name}" for name, mark in letter.items()))
    print_lines(f"beside each: how many times faster than {points[0]['baseline']}")
    _print_sources(points, sources)


def _print_sources(points: list[SweepPoint], sources: set[str]) -> None:
    """Prints the model of the times, the mark of simulated ones, and the speed-ups that compare the two kinds."""
    model = one_of(list(dict.fromkeys(point["model"] for point in points)))
    if sources == {"simulated"}:
        print_lines(f"times simulated by the model {model}, as in 'unisono plan'")
    elif "simulated" in sources:
        print_lines(f"times by the model {model}, those marked * or 'simulated' simulated, as in 'unisono plan'")
    else:
        print_lines(f"times by the model {model}, as in 'unisono plan'")
    unlike = sum(source_word(point["source"]) != source_word(point["baseline_source"]) for point in points)
    if unlike:
        print_lines(f"{counted(unlike, 'speed-up')} of {len(points)} compare a simulated time with one of the model")


def _shape(point: SweepPoint) -> str:
    return "x".join(map(str, point["shape"]))


def _gain(point: SweepPoint) -> str:
    ratio = point["baseline_ratio"]
    return "-" if ratio is None else f"{ratio:.2f}"
