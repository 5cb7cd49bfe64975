"""`unisono view`: writes a page that shows a file or a plan in a browser."""

import tempfile
import webbrowser
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

import unisono
from unisono import InputError, Plan, UnsupportedError, workload_presets
from unisono.base.files import check_writable, is_file
from unisono.base.names import did_you_mean
from unisono.cli._completion import machines as presets
from unisono.cli._options import Request, json_option, limit_options, maybe_file_or_plan_options, schedule_of
from unisono.cli._output import print_json, print_lines, working
from unisono.cli._sources import VIEWED_FILE, refuse_unused

__all__ = ["view"]

#: The further sizes at which candidates are planned, as multiples of the requested size.
_FACTORS = (1 / 256, 1 / 64, 1 / 16, 1 / 4, 4, 16, 64, 256)
#: The largest number of ranks for which further sizes are planned, because each size takes as long as the plan.
_MOST_RANKS = 1024


@click.command()
@maybe_file_or_plan_options
@click.option(
    "-o", "--output", metavar="FILE.html", help="Write the page to this file, and open no browser [a temporary file]."
)
@json_option
@limit_options
def view(
    file_or_collective: str | None, machine: str | None, output: str | None, as_json: bool, **options: Any
) -> None:
    """Shows FILE, a machine preset or the schedule planned for COLLECTIVE as a page in the browser.

    FILE is any file that `unisono show` prints. A schedule is played over time on its machine, with the load of links;
    a plan shows its candidates at several sizes; a trace is a timeline; a preset, such as hx2mesh-small, shows its
    network. The page is one file that needs no network.
    """
    if file_or_collective is None:
        raise click.UsageError("name a file, or a collective with --machine and a size")
    if output is not None:
        if not output.lower().endswith((".html", ".htm")):
            raise InputError(f"'{output}' is no name of a page; accepted are names that end in .html")
        check_writable(output)
    path = output or str(Path(tempfile.mkdtemp(prefix="unisono-")) / "view.html")
    if is_file(file_or_collective) and machine is None:
        refuse_unused(VIEWED_FILE)
        with working("drawing"):
            unisono.view(Path(file_or_collective), path)
    elif machine is None and file_or_collective in presets():
        refuse_unused(VIEWED_FILE)
        unisono.view(unisono.machine(file_or_collective), path)
    elif is_file(file_or_collective):
        unisono.view(schedule_of(file_or_collective, machine, options, "draw"), path)
    else:
        request = _request(file_or_collective, machine, options)
        plan = request.plan()
        unisono.view(plan, path, sizes=_others(request, plan))
    opened = output is None and webbrowser.open(Path(path).as_uri())
    if as_json:
        print_json({"file": path, "bytes": Path(path).stat().st_size, "opened": opened})
        return
    print_lines(f"wrote {path}" + ("" if opened or output else ": no browser was found here; open the file in one"))


def _request(collective: str, machine: str | None, options: dict[str, Any]) -> Request:
    if machine is None and collective in [preset["name"] for preset in workload_presets()]:
        raise InputError(
            f"'{collective}' is a workload, which has no page: 'unisono workload {collective}' times it, and 'unisono "
            "compare' draws its times on several machines; accepted are a file, a machine preset, and a collective"
        )
    if machine is None:
        raise InputError(
            f"there is no file or preset '{collective}'{did_you_mean(collective, presets())}; to draw a collective as "
            "planned, --machine must name one"
        )
    return Request(collective=collective, machine=machine, **options)


def _others(request: Request, plan: Plan) -> list[Plan]:
    """Returns plans of the same request at other sizes, if they exist; none for more than :data:`_MOST_RANKS` ranks."""
    elements = plan.schedule.elements
    if plan.schedule.ranks > _MOST_RANKS or elements == 0:
        return []
    found = []
    for count in sorted({round(request.count() * factor) for factor in _FACTORS} - {request.count(), 0}):
        try:
            found.append(replace(request, elements=count, bytes=None).plan())
        except (InputError, UnsupportedError):
            continue
    return found
