"""`unisono compare`: workloads on several machines."""

import click

import unisono
from unisono import Machine
from unisono.base.files import check_files, write
from unisono.base.pictures import form_of
from unisono.base.reports import ComparisonRow
from unisono.cli._completion import complete, machines, workloads
from unisono.cli._failures import NO
from unisono.cli._jobs import points_option, study, study_options
from unisono.cli._options import (
    explain_option,
    fail_option,
    fill_option,
    json_option,
    level_options,
    limit_options,
    rate_options,
    shard_option,
)
from unisono.cli._output import number, print_json, print_lines, print_notes, print_table, progress
from unisono.cli._pictures import check_picture
from unisono.cli._types import INT, Names
from unisono.planning.comparison import failed_names, product_of

__all__ = ["compare"]


@click.command()
@click.argument(
    "workloads", type=Names(), metavar="WORKLOAD[,WORKLOAD...]", shell_complete=complete(workloads, several=True)
)
@click.option(
    "--machines",
    type=Names(),
    required=True,
    shell_complete=complete(machines, several=True),
    metavar="A,B,...",
    help="Presets or TOML files.",
)
@click.option("--nodes", type=INT, metavar="N", help="Number of nodes or boxes of each machine that is made of them.")
@fail_option
@fill_option
@level_options
@rate_options
@points_option
@study_options
@shard_option
@click.option("--plot", metavar="FILE.png|svg|pdf", help="Draw times, and times multiplied by prices.")
@explain_option
@json_option
@limit_options
def compare(
    workloads: list[str],
    machines: list[str],
    nodes: int | None,
    fail: tuple[str, ...],
    fill: bool,
    level: str,
    no_overlap: bool,
    tflops: float | None,
    memory_gb_per_second: float | None,
    jobs: int,
    executor: str | None,
    resume: str | None,
    shard: tuple[int, int] | None,
    plot: str | None,
    as_json: bool,
) -> int:
    """Compares WORKLOADs on several machines: time, exposed communication, price of the used part, and time x price.

    A WORKLOAD is a name that `unisono workload` lists, a TOML file, or a program of another tool. The exit code is 1
    if a workload does not fit a machine.
    """
    check_picture(plot)
    check_files(plot, resume)
    sized = [nodes is not None and _has_nodes(unisono.machine(name)) for name in machines]
    places = [
        # A list without such a machine is refused by its first machine.
        unisono.machine(name, nodes=nodes if takes or not any(sized) else None, failed=fail)
        for name, takes in zip(machines, sized, strict=True)
    ]
    notes = list(dict.fromkeys(note for place in places for note in place.notes()))
    with progress("comparing") as on_row, study(jobs, executor, resume, shard) as (by, kept):
        rows = unisono.compare(
            workloads,
            places,
            level=level,
            fill=fill,
            overlap=not no_overlap,
            tflops=tflops,
            memory_gb_per_second=memory_gb_per_second,
            executor=by,
            kept=kept,
            progress=on_row,
        )
    labels = _labels(machines, [place.name for place in places])
    for at, row in enumerate(rows):
        row["machine"] = labels[at % len(labels)]
    if plot is not None:
        # Imported late, because matplotlib takes long to import.
        from unisono.pictures.plots import comparisons

        write(plot, comparisons.draw(rows, form_of(plot), fill=fill))
    code = NO if any(row["reason"] for row in rows) else 0
    if as_json:
        files = [plot] if plot else []
        asked = {"level": level, "overlap": not no_overlap, "fill": fill}
        print_json({**asked, "rows": rows, "notes": notes, "files": files})
        return code
    product = "s x $ a copy" if fill else "ms x M$"
    columns = ["workload", "machine", "accelerators", "step, ms", "exposed, ms", "price, M$", product]
    print_table(columns, [_cells(row, fill=fill) for row in rows], right=columns[2:])
    print_lines(
        *dict.fromkeys(f"{row['workload']} on {row['machine']}: {row['reason']}" for row in rows if row["reason"])
    )
    failures = zip(labels, map(failed_names, places), strict=True)
    legend = [f"failed on {label}: {'; '.join(names)}" for label, names in failures if names]
    if any(row["best"] for row in rows):
        legend.append("* the least of the machines for the workload" + (", by copy of the model" if fill else ""))
    if any(row["used_cost_usd"] is not None and row["utilization"] != 1 for row in rows):
        legend.append("prices are the shares of the accelerators in use; --json has those of whole networks too")
    if legend:
        print_lines("", *legend)
    own = [f"{row['workload']} on {row['machine']}: {note}" for row in rows for note in row["notes"]]
    print_notes([*notes, *dict.fromkeys(own)])
    if plot is not None:
        print_lines("", f"wrote {plot}")
    return code


def _has_nodes(machine: Machine) -> bool:
    """Returns whether a machine is made of nodes or boxes, whose number can be chosen."""
    is_of_boxes = (machine.topology or {}).get("family") == "boxes" or "cluster" in machine.describe()
    return machine.kind == "in-network" or is_of_boxes


def _labels(given: list[str], found: list[str]) -> list[str]:
    """Returns the names of machines, or the words of the user for machines with equal names."""
    return [name if found.count(name) == 1 else words for words, name in zip(given, found, strict=True)]


def _cells(row: ComparisonRow, *, fill: bool) -> list[str]:
    seconds, exposed, cost = row["seconds"], row["exposed_seconds"], row["used_cost_usd"]
    product = product_of(row, fill=fill)
    return [
        row["workload"],
        row["machine"] + (f", {len(row['failed'])} failed" if row["failed"] else ""),
        "-" if row["accelerators"] is None else _used(row, fill=fill),
        _marked("-" if seconds is None else number(seconds * 1e3, 3), row, "seconds"),
        "-" if exposed is None else number(exposed * 1e3, 3),
        "-" if cost is None else number(cost * 1e-6, 3),
        _marked(
            "-" if product is None else f"{product:,.0f}" if fill else number(product * 1e-3, 3),
            row,
            "time_x_used_cost",
        ),
    ]


def _marked(cell: str, row: ComparisonRow, name: str) -> str:
    """Returns a table cell, marked if no other machine has a smaller value."""
    return f"* {cell}" if name in row["best"] else cell


def _used(row: ComparisonRow, *, fill: bool) -> str:
    of = f"{row['accelerators']:,} of {row['machine_accelerators'] or 0:,}"
    return f"{of}, {row['copies']:,} {'copy' if row['copies'] == 1 else 'copies'}" if fill and row["copies"] else of
