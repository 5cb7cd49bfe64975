"""`unisono allocate`: jobs on the boards of a network, around failures."""

import math

import click

import unisono
from unisono import InputError
from unisono.base.files import check_files, write
from unisono.base.pictures import form_of
from unisono.base.reports import AllocationReport, Job
from unisono.cli._jobs import study, study_options
from unisono.cli._options import json_option, limit_options, machine_option, shard_option
from unisono.cli._output import print_fields, print_json, print_lines, print_table, progress
from unisono.cli._pictures import check_picture
from unisono.cli._types import INT, FailedBoards
from unisono.machines.allocation import TRACE

__all__ = ["allocate"]

#: The largest number of listed jobs of the first sample.
_SHOWN = 10


#: The largest number of runs of boards that a line lists.
_RUNS = 8
_RULES = {"any": "any boards", "aligned": "boards of one leaf, router, group or box, if it fits into one"}


def _line(numbers: list[int] | None) -> str:
    return "refused" if numbers is None else ", ".join(map(str, numbers))


def _runs(numbers: list[int]) -> str:
    """Formats ascending numbers as runs: ``0-3, 7``."""
    firsts = [at for at, number in enumerate(numbers) if at == 0 or number != numbers[at - 1] + 1]
    ends = [*firsts[1:], len(numbers)]
    runs = [
        str(numbers[at]) if end == at + 1 else f"{numbers[at]}-{numbers[end - 1]}"
        for at, end in zip(firsts, ends, strict=True)
    ]
    return ", ".join(runs[:_RUNS]) + (f" and {len(runs) - _RUNS} more" if len(runs) > _RUNS else "")


def _taken(job: Job) -> str:
    """Returns the number of boards that a job occupies, the product of its positions in each dimension."""
    return "-" if job["positions"] is None else str(math.prod(map(len, job["positions"])))


def _placed(job: Job, dimensions: int) -> list[str]:
    """Returns the table cells of a job: in two dimensions its rows and columns, else all positions."""
    taken = [str(job["boards"]), _taken(job)]
    if dimensions == 2:
        return [*taken, _line(job["rows"]), _line(job["columns"])]
    return [*taken, "refused" if job["positions"] is None else " x ".join(map(_runs, job["positions"]))]


def _boards(report: AllocationReport) -> str:
    """Formats the grid of boards, with the accelerators of a board if the user chose their number."""
    of_each = f" of {report['board'][0]} accelerators" if report["rule"] in _RULES and report["board"] != [1] else ""
    return f"{' x '.join(map(str, report['boards']))} boards{of_each}"


@click.command()
@machine_option
@click.option(
    "--jobs",
    default=TRACE,
    show_default=True,
    metavar="FILE|alibaba",
    help="A file with one job a line, as a number of boards or RxC; or alibaba, jobs with sizes from Alibaba's trace "
    "until all healthy boards are taken.",
)
@click.option(
    "--fail",
    multiple=True,
    type=FailedBoards(),
    metavar="N|ROW,COL|NAME",
    help="Failed boards: a number of boards, drawn at random; one board by its row and column from 0 on; or all boards "
    "of a part, such as 'group 2'; repeatable.",
)
@click.option(
    "--board",
    type=INT,
    metavar="N",
    help="On machines without boards: the number of adjacent accelerators that form a board. [default: 1]",
)
@click.option("--aligned", is_flag=True, help="Place a job inside one leaf, router, group or box, if it fits.")
@click.option(
    "--heuristic",
    default="sort",
    show_default=True,
    metavar="NAME",
    help="The placement: greedy, transpose, aspect, sort or locality; each includes those before it.",
)
@click.option(
    "--samples",
    type=INT,
    default=1000,
    show_default=True,
    metavar="N",
    help="Number of random samples of failures and jobs.",
)
@click.option("--seed", type=INT, default=0, show_default=True, metavar="S", help="Seed of the samples.")
@study_options
@shard_option
@click.option("--plot", metavar="FILE.png|svg|pdf", help="Draw the boards of each job of the first sample.")
@json_option
@limit_options
def allocate(
    machine: str,
    jobs: str,
    fail: tuple[int | tuple[int, ...] | str, ...],
    board: int | None,
    aligned: bool,
    heuristic: str,
    samples: int,
    seed: int,
    executor: str | None,
    resume: str | None,
    shard: tuple[int, int] | None,
    plot: str | None,
    as_json: bool,
) -> None:
    """Places jobs on boards of a network, around failed boards, and reports the share of healthy boards in use."""
    check_picture(plot)
    check_files(plot, resume)
    counts = [one for one in fail if isinstance(one, int)]
    if len(counts) > 1:
        raise InputError(f"--fail has {len(counts)} numbers of boards to draw; give one, beside boards as ROW,COL")
    named = [one for one in fail if not isinstance(one, int)]
    drawn = sum(counts)
    with progress("allocating") as on_samples, study(1, executor, resume, shard) as (by, kept):
        report = unisono.allocate(
            machine,
            jobs,
            fail=drawn,
            failed=named,
            heuristic=heuristic,
            samples=samples,
            seed=seed,
            board=board,
            aligned=aligned,
            executor=by,
            kept=kept,
            progress=on_samples,
        )
    if plot is not None:
        # Imported late, because matplotlib takes long to import.
        from unisono.pictures.plots import allocations

        write(plot, allocations.mapping(report, f"{jobs} jobs on {report['machine']}, {heuristic}", form_of(plot)))
    if as_json:
        print_json({**report, "jobs": jobs, "files": [plot] if plot is not None else []})
        return
    upper = report["upper_level"]
    words = [one if isinstance(one, str) else ",".join(map(str, one)) for one in named]
    more = f" and {len(named) - _SHOWN} more" if len(named) > _SHOWN else ""
    of_named = f" ({'; '.join(words[:_SHOWN])}{more}{f'; {drawn} drawn' if drawn else ''})" if named else ""
    failed = f"{report['fail']} failed{of_named}"
    print_lines(f"{jobs} jobs on {_boards(report)} of {report['machine']}, {failed}, {samples} samples")
    family = (unisono.machine(machine).topology or {}).get("family")
    print_fields(
        [
            ("heuristic", heuristic),
            *([("a job takes", _RULES[report["rule"]])] if report["rule"] in _RULES else []),
            ("utilization", f"{report['utilization_mean']:.2%} mean, {report['utilization_p1']:.2%} in the worst 1 %"),
            ("jobs", f"{report['placed']:.1f} placed, {report['refused']:.1f} refused in a sample"),
            ("upper level", f"{upper['alltoall']:.2%} of alltoall traffic, {upper['allreduce']:.2%} of allreduce")
            if report["rule"] != "sub-box"
            else ("upper level", f"none: a {family} has no switches"),
        ]
    )
    placed = report["first"]["jobs"]
    dimensions = len(report["boards"])
    print_lines("", "the first sample, largest jobs first:")
    head = ["boards", "taken", *(["rows", "columns"] if dimensions == 2 else ["positions"])]
    print_table(head, [_placed(job, dimensions) for job in placed[:_SHOWN]], right=["boards", "taken"])
    if any(_taken(job) not in (str(job["boards"]), "-") for job in placed[:_SHOWN]):
        near = "a square" if dimensions == 2 else "a cube"
        print_lines(f"a job of a size without factors near {near} takes the boards of the next size that has them")
    if len(placed) > _SHOWN:
        print_lines(f"and {len(placed) - _SHOWN} more: --json lists all, --plot draws them")
    if plot is not None:
        print_lines("", f"wrote {plot}")
