"""`unisono allocate`: jobs on the boards of a network, around failures."""

import click

import unisono
from unisono import InputError
from unisono.base.files import write
from unisono.base.pictures import form_of
from unisono.base.reports import Job
from unisono.cli._options import json_option, limit_options, machine_option
from unisono.cli._output import print_fields, print_json, print_lines, print_table, working
from unisono.cli._pictures import check_picture
from unisono.cli._types import FailedBoards

__all__ = ["allocate"]

#: The largest number of listed jobs of the first sample.
_SHOWN = 10


def _line(numbers: list[int] | None) -> str:
    return "refused" if numbers is None else ", ".join(map(str, numbers))


def _taken(job: Job) -> str:
    """Returns the number of boards that a job has in fact, which make whole rows and columns."""
    return "-" if job["rows"] is None or job["columns"] is None else str(len(job["rows"]) * len(job["columns"]))


@click.command()
@machine_option
@click.option(
    "--jobs",
    default="alibaba",
    show_default=True,
    metavar="FILE|alibaba",
    help="One job a line, a number of boards or RxC; or that trace's sizes until all healthy boards are taken.",
)
@click.option(
    "--fail",
    multiple=True,
    type=FailedBoards(),
    metavar="N|ROW,COL",
    help="A number of boards that fail, drawn at random; or a board that failed, by row and column from 0 on; "
    "repeatable.",
)
@click.option(
    "--heuristic",
    default="sort",
    show_default=True,
    metavar="NAME",
    help="greedy, transpose, aspect, sort or locality, each with those before it.",
)
@click.option("--samples", type=int, default=1000, show_default=True, metavar="N", help="Samples of failures and jobs.")
@click.option("--seed", type=int, default=0, show_default=True, metavar="S", help="Of the samples.")
@click.option("--plot", metavar="FILE.png|svg|pdf", help="Draw which board each job of the first sample has.")
@json_option
@limit_options
def allocate(
    machine: str,
    jobs: str,
    fail: tuple[int | tuple[int, int], ...],
    heuristic: str,
    samples: int,
    seed: int,
    plot: str | None,
    as_json: bool,
) -> None:
    """Places jobs on boards, around failed boards, and reports the share of the machine in use."""
    check_picture(plot)
    counts = [one for one in fail if isinstance(one, int)]
    if len(counts) > 1:
        raise InputError(f"--fail has {len(counts)} numbers of boards to draw; give one, beside boards as ROW,COL")
    named = [one for one in fail if not isinstance(one, int)]
    drawn = sum(counts)
    with working("allocating"):
        report = unisono.allocate(
            machine, jobs, fail=drawn, failed=named, heuristic=heuristic, samples=samples, seed=seed
        )
    if plot is not None:
        # Drawing takes long to import.
        from unisono.pictures.plots import allocations

        write(plot, allocations.mapping(report, f"{jobs} jobs on {report['machine']}, {heuristic}", form_of(plot)))
    if as_json:
        print_json({**report, "jobs": jobs, "files": [plot] if plot is not None else []})
        return
    rows, columns = report["boards"]
    upper = report["upper_level"]
    listed = "; ".join(f"{row},{column}" for row, column in named[:_SHOWN])
    more = f" and {len(named) - _SHOWN} more" if len(named) > _SHOWN else ""
    of_named = f" ({listed}{more}{f'; {drawn} drawn' if drawn else ''})" if named else ""
    failed = f"{report['fail']} failed{of_named}"
    print_lines(f"{jobs} jobs on {rows} x {columns} boards of {report['machine']}, {failed}, {samples} samples")
    print_fields(
        [
            ("heuristic", heuristic),
            ("utilization", f"{report['utilization_mean']:.2%} mean, {report['utilization_p1']:.2%} in the worst 1 %"),
            ("jobs", f"{report['placed']:.1f} placed, {report['refused']:.1f} refused in a sample"),
            ("upper level", f"{upper['alltoall']:.2%} of alltoall traffic, {upper['allreduce']:.2%} of allreduce")
            if (unisono.machine(machine).topology or {}).get("family") != "torus"
            else ("upper level", "none: a torus has no switches"),
        ]
    )
    placed = report["first"]["jobs"]
    rows_of_jobs = [
        [str(job["boards"]), _taken(job), _line(job["rows"]), _line(job["columns"])] for job in placed[:_SHOWN]
    ]
    print_lines("", "the first sample, largest jobs first:")
    print_table(["boards", "taken", "rows", "columns"], rows_of_jobs, right=["boards", "taken"])
    if any(_taken(job) not in (str(job["boards"]), "-") for job in placed[:_SHOWN]):
        print_lines("a job of a size without factors near a square takes the boards of the next size that has them")
    if len(placed) > _SHOWN:
        print_lines(f"and {len(placed) - _SHOWN} more: --json lists all, --plot draws them")
    if plot is not None:
        print_lines("", f"wrote {plot}")
