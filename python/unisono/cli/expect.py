"""`unisono expect`: the bus bandwidth to expect of a collective, by its size."""

from typing import Any

import click

import unisono
from unisono import InputError, Machine
from unisono.base.files import check_files, write
from unisono.base.pictures import form_of
from unisono.base.reports import Expectation, ExpectationRow
from unisono.cli._jobs import points_option, study, study_options
from unisono.cli._options import (
    Request,
    algorithm_options,
    data_options,
    json_option,
    limit_options,
    machine_option,
    parameters_of,
    root_option,
    shape_options,
    shard_option,
)
from unisono.cli._output import (
    json_text,
    microseconds,
    params_text,
    print_fields,
    print_json,
    print_lines,
    print_notes,
    print_table,
    progress,
    subject,
    without,
)
from unisono.cli._pictures import check_picture
from unisono.cli._sources import note_unused
from unisono.cli._types import COLLECTIVE, Names
from unisono.planning.expectations import has_busbw, prometheus_text

__all__ = ["expect"]

_FILES = (".json", ".prom")
#: The words for sources of times that are not models.
_SIMULATED = {"simulated": "simulation", "estimated": "estimate"}


@click.command()
@click.argument("collective", type=COLLECTIVE)
@machine_option
@shape_options
@click.option(
    "--bytes",
    "--sizes",
    "sizes",
    type=Names("sizes", "8,64KiB,1GiB"),
    help="Bytes, as in 8,64KiB,1GiB, counted as --bytes of 'unisono plan' [8 B and the powers of 4 from 64 B to 1 GiB, "
    "of all blocks together].",
)
@data_options
@root_option
@algorithm_options
@click.option(
    "--as",
    "behaves_as",
    metavar="LIBRARY",
    help="Add the time of this library's own choice: nccl, rccl, openmpi or mpich.",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Write the report (.json), or gauges for Prometheus (.prom).",
)
@click.option("--plot", metavar="FILE.png|svg|pdf", help="Draw the bus bandwidths by size.")
@points_option
@study_options
@shard_option
@json_option
@limit_options
def expect(
    sizes: list[str] | None,
    output: str | None,
    plot: str | None,
    jobs: int,
    executor: str | None,
    resume: str | None,
    shard: tuple[int, int] | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Lists the expected time and bus bandwidth of COLLECTIVE by size.

    The ceiling is the lower bound of `unisono plan`; on a network it uses the data sheet. The plan is that of `unisono
    plan`.
    """
    request = Request(elements=None, bytes=None, **options)
    if output is not None and not output.endswith(_FILES):
        raise InputError(f"'{output}' ends in neither .json (the report) nor .prom (gauges for Prometheus)")
    check_picture(plot)
    if plot is not None and not has_busbw(request.collective):
        raise InputError(f"--plot draws bus bandwidths, and nccl-tests define none of a {request.collective}; drop it")
    check_files(output, plot, resume)
    note_unused(request.collective)
    if sizes is not None and request.collective == "barrier":
        click.echo("note: a collective of kind barrier has no data; --sizes is not used", err=True)
    machine = request.sized_machine()
    with progress(f"expecting {request.collective}") as on_size, study(jobs, executor, resume, shard) as (by, kept):
        expected = unisono.expect(
            request.collective,
            machine,
            sizes=sizes,
            dtype=request.dtype,
            op=request.op,
            root=request.root,
            algorithm=request.algorithm,
            params=parameters_of(request.param),
            model=request.model,
            as_library=request.behaves_as,
            executor=by,
            kept=kept,
            progress=on_size,
        )
    if plot is not None and not any(row["busbw"]["plan"] for row in expected["rows"]):
        raise InputError("--plot draws bus bandwidths, and there is none, as nothing is sent at these sizes; drop it")
    if output is not None:
        write(output, json_text(expected) if output.endswith(".json") else prometheus_text(expected))
    if plot is not None:
        # Imported late, because matplotlib takes long to import.
        from unisono.pictures.plots import expectations

        write(plot, expectations.draw(expected, form_of(plot)))
    files = [file for file in (output, plot) if file is not None]
    if as_json:
        print_json({**expected, "files": files})
        return
    _print(expected, machine)
    print_notes(expected["notes"])
    print_lines(*(f"wrote {file}" for file in files))


def _print(expected: Expectation, machine: Machine) -> None:
    last, busbw = expected["rows"][-1], has_busbw(expected["collective"])
    print_lines(subject({**expected, **last}, "grid" in machine.offers) + without(machine))
    name = f"as {expected['library']}" if expected["library"] else ""
    choice, plan = _choice(last), f"{last['algorithm']} {params_text(last['params'])}".rstrip()
    parts = (("ceiling", "ceiling", f"bound {last['bound']}"), ("library", name, choice), ("plan", "plan", plan))
    print_fields([(label, _value(last, part, why)) for part, label, why in parts])
    print_lines("")
    kinds = ["ceiling", *(["library"] if expected["library"] else []), "plan"]
    labels = [expected["library"] or kind if kind == "library" else kind for kind in kinds]
    columns = ["bytes", *(f"{label}, µs" for label in labels), *(f"{label}, GB/s" for label in labels if busbw)]
    chooses = [f"{expected['library']} chooses"] if expected["library"] else []
    # Sources are printed if they differ: the best candidates may be simulated for short vectors but not for long ones.
    sources = [_SIMULATED.get(row["source"], "model") for row in expected["rows"]]
    by = ["plan by"] if len(set(sources)) > 1 else []
    rows = [
        [
            str(row["bytes"]),
            *(_microseconds(row[kind]) for kind in kinds),  # type: ignore[literal-required]
            *(_gbps(row["busbw"][kind]) for kind in kinds if busbw),  # type: ignore[literal-required]
            *(source for _ in by),
            *(_choice(row) for _ in chooses),
            row["algorithm"],
        ]
        for row, source in zip(expected["rows"], sources, strict=True)
    ]
    print_table([*columns, *by, *chooses, "plan chooses"], rows, right=columns)
    if by:
        print_lines("", "times by the model and by simulation are not one curve: the rows differ in 'plan by'")
    if busbw:
        print_lines("", "GB/s are the busbw of nccl-tests")


def _value(row: ExpectationRow, part: str, why: str) -> str:
    """Formats bandwidth, time and their source ``why``; empty without a time."""
    seconds, busbw = row[part], row["busbw"][part]  # type: ignore[literal-required]
    if seconds is None:
        return ""
    rate = "" if busbw is None else f"{_gbps(busbw)} GB/s, "
    return f"{rate}{microseconds(seconds)} µs ({why})"


def _choice(row: ExpectationRow) -> str:
    choice = row["choice"]
    if choice is None:
        return ""
    protocol = "" if choice["protocol"] is None else f" {choice['protocol']}"
    channels = "" if choice["channels"] is None else f", {choice['channels']} channels"
    return choice["algorithm"] + protocol + channels


def _microseconds(seconds: float | None) -> str:
    return "-" if seconds is None else microseconds(seconds)


def _gbps(busbw: float | None) -> str:
    return "-" if busbw is None else f"{busbw:.2f}"
