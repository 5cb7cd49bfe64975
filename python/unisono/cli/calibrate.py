"""`unisono calibrate`: measures the machine that runs it, under mpiexec, or fits one to logs."""

from typing import Any

import click
import tomli_w

from unisono import InputError
from unisono.base.files import check_writable, write
from unisono.cli._calibrate_logs import calibrate_from
from unisono.cli._measurements import import_alike, note_shared_cores
from unisono.cli._options import json_option
from unisono.cli._output import number, print_fields, print_json, print_lines, print_table, progress
from unisono.cli._sources import OF_LOGS, refuse_unused
from unisono.cli._types import MACHINE
from unisono.mpi.library import check_several, together
from unisono.tuning.calibration import POOR, Calibration, Levels, calibrate_levels
from unisono.tuning.calibration import calibrate as measure

__all__ = ["calibrate"]


@click.command()
@click.option("-o", "--output", metavar="MACHINE.toml", required=True, help="The machine file to write.")
@click.option("--name", metavar="NAME", help="The machine's name in the file [calibrated, or that of --machine].")
@click.option(
    "--rounds", type=int, default=200, show_default=True, metavar="N", help="Repetitions of each short measurement."
)
@click.option("--levels", is_flag=True, help="Measure sockets, nodes and the network apart.")
@click.option(
    "--from",
    "logs",
    multiple=True,
    metavar="LOG",
    help="Measure nothing: fit the times of NCCL to the output of nccl-tests, or rates of links to that of "
    "ib_write_bw, p2pBandwidthLatencyTest or nvbandwidth, or either to a table in CSV; repeatable.",
)
@click.option("--machine", type=MACHINE, metavar="NAME|FILE", help="Of --from: the machine that was measured.")
@click.option(
    "--points",
    type=int,
    metavar="N",
    help="Of --from: fit to N sizes of each collective and number of GPUs, and predict the others [all].",
)
@json_option
def calibrate(
    output: str,
    name: str | None,
    rounds: int,
    levels: bool,
    logs: tuple[str, ...],
    machine: str | None,
    points: int | None,
    as_json: bool,
) -> int:
    """Measures latency, overhead, bandwidth and reduction of this machine: mpiexec -n 4 unisono calibrate -o M.toml.

    With --from, reads logs of GPUs and needs no MPI: unisono calibrate --from nccl.log --machine dgx-a100 -o M.toml.
    """
    if logs:
        refuse_unused(OF_LOGS)
        calibrate_from(logs, machine, output, name, points, as_json)
        return 0
    if machine is not None or points is not None:
        raise click.UsageError("--machine and --points go with --from LOG; without it this machine is measured")
    name = name or "calibrated"
    mpi = import_alike()

    def check() -> None:
        if not output.endswith(".toml"):
            raise InputError(f"'{output}' does not end in .toml, and a machine file does")
        if rounds < 10:
            raise InputError(f"--rounds is {rounds}, and a median needs at least 10")
        check_several(mpi.COMM_WORLD, "a calibration", "calibrate -o machine.toml")
        # The nodes of other ranks need not have its folder.
        if mpi.COMM_WORLD.rank == 0:
            check_writable(output)

    together(mpi.COMM_WORLD, check)
    note_shared_cores(mpi, mpi.COMM_WORLD)
    with progress("calibrating") as on_step:
        measured = calibrate_levels(rounds, on_step) if levels else measure(rounds, on_step)
    made = {} if measured is None else measured.machine(name)
    comment = (
        "# Measured by `unisono calibrate`; times are medians over rounds, nanoseconds. [fit] holds what they rest\n"
        "# on: minima, the largest relative distance of a measurement from its line, and the measurements\n"
        "# themselves as [bytes or peers, median, minimum].\n"
    )
    # Ranks end alike where the file cannot be written.
    together(mpi.COMM_WORLD, lambda: None if measured is None else write(output, comment + tomli_w.dumps(made)))
    if measured is None:
        return 0
    if as_json:
        print_json({**made, "residuals": made["fit"]["residuals"], "file": output})
    else:
        if isinstance(measured, Calibration):
            _print(measured, made)
        else:
            _print_levels(measured, made)
        print_lines("", f"wrote {output}")
    return 0


def _print_levels(measured: Levels, machine: dict[str, Any]) -> None:
    keys = ("alpha_ns", "alpha_p_ns", "alpha_r_ns", "beta_ns_per_byte")
    described = [*machine["levels"], machine]
    rows = [
        [level.name, str(level.size), str(len(level.members)), *(f"{of[key]:g}" for key in keys)]
        for level, of in zip(measured.found, described, strict=True)
    ]
    columns = ["level", "size", "ranks measured", *keys]
    print_table(columns, rows, right=columns[1:])
    if len(rows) == 1:
        print_lines("all ranks share one level, whose prices are those of the machine; the file has no [[levels]]")
    poor = [
        level.name for level, of in zip(measured.found, measured.measured, strict=True) if of.machine("")["fit"]["poor"]
    ]
    if poor:
        print_lines(f"poor fit: {', '.join(poor)}; measure on a quiet machine, or with more rounds")


def _print(measured: Calibration, machine: dict[str, object]) -> None:
    print_lines(f"{measured.ranks} ranks, {measured.library}, {measured.rounds} rounds")
    keys = ("alpha_p_ns", "alpha_r_ns", "beta_ns_per_byte", "gamma_ns_per_byte", "alpha_ns")
    print_fields([(key, f"{machine[key]:g}") for key in keys])
    print_lines("")
    fits = measured.fits()
    rows = [[name, number(fit.base), f"{fit.slope:.4g}", f"{fit.residual:.1%}"] for name, fit in fits.items()]
    print_table(
        ["line", "base ns", "slope ns", "largest residual"], rows, right=["base ns", "slope ns", "largest residual"]
    )
    poor = [name for name, fit in fits.items() if fit.poor]
    if poor:
        print_lines(
            f"poor fit: {', '.join(poor)} (more than {POOR:.0%} off a line, or a negative part); "
            "measure on a quiet machine, with more rounds, or treat predictions from it with care"
        )
    for name, sizes in measured.set_aside().items():
        some = ", ".join(map(str, sizes))
        what = "peers" if name.startswith("multicast") else "bytes"
        print_lines(f"{name} is fitted without {some} {what}, whose rounds other work disturbed; measure again")
    if measured.one_peer:
        print_lines(
            "with two ranks, a multicast sends several times to one rank; use four or more ranks for better prices"
        )
