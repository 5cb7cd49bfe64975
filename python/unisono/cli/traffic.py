"""`unisono traffic`: simulates the bandwidth of a network under an alltoall, a permutation or an allreduce."""

from typing import Any

import click

import unisono
from unisono import Traffic
from unisono.base.files import write
from unisono.base.inputs import parse_bytes
from unisono.base.pictures import form_of
from unisono.cli._completion import of_names
from unisono.cli._options import fail_option, json_option, limit_options, machine_option, nodes_option, parameters_of
from unisono.cli._output import (
    microseconds,
    params_text,
    print_fields,
    print_json,
    print_lines,
    print_notes,
    print_table,
    progress,
    without,
)
from unisono.cli._pictures import check_picture
from unisono.cli._sources import IN_ONE_THREAD, NO_PERMUTATION, refuse_unused
from unisono.cli._types import ALGORITHM, INT, Names, Param
from unisono.simulation.network_traffic import LEVELS, MOST_BY_PACKETS, MOST_JOBS, PATTERNS

__all__ = ["traffic"]


@click.command()
@click.argument("pattern", metavar="|".join(PATTERNS), shell_complete=of_names(PATTERNS))
@machine_option
@nodes_option
@fail_option
@click.option(
    "--bytes",
    "sizes",
    type=Names("sizes", "4KiB,64KiB"),
    required=True,
    help="Size of the block of each pair (alltoall), of the message of each accelerator (permutation) or of the "
    "vector (allreduce); several sizes make a sweep, as in 4KiB,64KiB,1MiB.",
)
@click.option(
    "--algorithm",
    type=ALGORITHM,
    metavar="NAME",
    help="The algorithm of an allreduce [the best by the model of networks].",
)
@click.option("--param", type=Param(), multiple=True, help="A parameter of the algorithm; repeatable.")
@click.option(
    "--level",
    type=click.Choice(LEVELS),
    help=f"packet simulates every packet; flow shares links fairly [packet up to {MOST_BY_PACKETS} accelerators].",
)
@click.option("--seed", type=INT, default=0, show_default=True, metavar="N", help="Seed of the permutation.")
@click.option(
    "--jobs",
    type=click.IntRange(1, MOST_JOBS),
    default=1,
    show_default=True,
    metavar="N",
    help="Number of threads that simulate packets, without effect on the result.",
)
@click.option("--plot", metavar="FILE.png|svg|pdf", help="Draw the bandwidth of the accelerators at each size.")
@json_option
@limit_options
def traffic(
    pattern: str,
    machine: str,
    nodes: int | None,
    fail: tuple[str, ...],
    sizes: list[str],
    algorithm: str | None,
    param: tuple[tuple[str, str], ...],
    level: str | None,
    seed: int,
    jobs: int,
    plot: str | None,
    as_json: bool,
) -> None:
    """Simulates PATTERN among all accelerators of a network and reports their bandwidth.

    An alltoall sends message k of accelerator r to (r + k) mod N, posted at once. --seed draws a
    permutation, whose accelerators send two messages each. Planes are alike: one plane is simulated, with its part of
    every message.
    """
    is_threaded = pattern != "allreduce" and level != "flow"
    refuse_unused(() if pattern == "permutation" else NO_PERMUTATION, () if is_threaded else IN_ONE_THREAD)
    check_picture(plot)
    network = unisono.machine(machine, nodes=nodes, failed=fail)
    lengths = [parse_bytes(size) for size in sizes]
    points: list[Traffic] = []
    with progress(f"{pattern} on {network.name}") as on_point:
        for size in lengths:
            on_point(len(points), len(lengths))
            points.append(
                unisono.traffic(
                    pattern,
                    network,
                    bytes=size,
                    algorithm=algorithm,
                    params=parameters_of(param),
                    level=level,
                    seed=seed,
                    jobs=jobs,
                )
            )
    if plot is not None:
        # Imported late, because matplotlib takes long to import.
        from unisono.pictures.plots.bandwidths import bandwidths

        write(plot, bandwidths(points, form_of(plot)))
    files, notes = [] if plot is None else [plot], network.notes(max(lengths, default=0))
    if as_json:
        reports = [point.report() for point in points]
        several = {"points": reports} if len(reports) > 1 else {}
        print_json({**reports[-1], **several, "notes": notes, "files": files})
        return
    _print(points, network)
    print_notes(notes)
    print_lines(*(f"wrote {file}" for file in files))


def _injection(point: Traffic, network: unisono.Machine) -> str:
    """Formats the injection rate of an accelerator, or the lowest and the highest if they differ."""
    most = f"{_gbps(point.injection)} Gb/s an accelerator"
    topology = network.topology or {}
    least, highest = topology.get("injection_gbps_least"), topology.get("injection_gbps")
    if least is None or least == highest:
        return most
    return f"{least:.1f} to {most}; shares are of the highest"


def _planes(planes: int) -> str:
    return f", {planes} planes together" if planes > 1 else ""


def _print(points: list[Traffic], network: unisono.Machine) -> None:
    first = points[0]
    where = f"{first.accelerators} accelerators of {first.machine}{without(network)}"
    print_lines(f"{first.pattern} among {where}, by {first.level}s")
    print_fields(
        [
            ("algorithm", f"{first.algorithm} {params_text(first.params)}".rstrip() if first.algorithm else ""),
            ("injection", f"{_injection(first, network)}{_planes(first.planes)}"),
            ("planes", "alike; one was simulated" if first.planes > 1 else ""),
        ]
    )
    print_lines("")
    columns = ["bytes", "time, µs", "of injection", "of peak", "slowest, Gb/s", "mean", "fastest", "packets", "took, s"]
    rows: list[list[Any]] = []
    for point in points:
        report = point.report()
        rows.append(
            [
                str(point.bytes),
                microseconds(point.seconds),
                f"{100 * point.share_of_injection:.2f} %",
                f"{100 * point.share_of_peak:.2f} %",
                _gbps(report["bytes_per_second_min"]),
                _gbps(report["bytes_per_second_mean"]),
                _gbps(report["bytes_per_second_max"]),
                "-" if point.packets is None else str(point.packets),
                f"{point.wall_seconds:.2f}",
            ]
        )
    print_table(columns, rows, right=columns)


def _gbps(bytes_per_second: float) -> str:
    return f"{bytes_per_second * 8e-9:.1f}"
