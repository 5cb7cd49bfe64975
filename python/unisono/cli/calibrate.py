"""`unisono calibrate`: measures this machine, under mpiexec, or fits a machine to logs."""

from typing import Any

import click
import tomli_w

import unisono
from unisono import InputError
from unisono.base.files import check_writable, write
from unisono.cli._calibrate_logs import LogOptions, calibrate_from
from unisono.cli._measurements import import_alike, note_shared_cores
from unisono.cli._options import json_option
from unisono.cli._output import (
    microseconds,
    number,
    print_fields,
    print_json,
    print_lines,
    print_notes,
    print_table,
    progress,
)
from unisono.cli._sources import MEASURED_RANKS, OF_LOGS, refuse_unused
from unisono.cli._types import INT, MACHINE, Lengths
from unisono.lab.session import time_scale
from unisono.mpi.groups import nodes
from unisono.mpi.library import check_several, together
from unisono.tuning.calibration import Calibration, Levels, calibrate_levels, disturbances
from unisono.tuning.calibration import calibrate as measure
from unisono.tuning.lines import POOR
from unisono.tuning.network_calibration import MessageCosts, check_network, message_costs, ranks_costs

__all__ = ["calibrate"]


@click.command()
@click.option("-o", "--output", metavar="MACHINE.toml", required=True, help="The machine file to write.")
@click.option("--name", metavar="NAME", help="The machine's name in the file [calibrated, or that of --machine].")
@click.option(
    "--rounds",
    type=INT,
    default=200,
    show_default=True,
    metavar="N",
    help="Number of repetitions of each short measurement.",
)
@click.option(
    "--levels", is_flag=True, help="Measure messages within sockets, within nodes and between nodes separately."
)
@click.option(
    "--from",
    "logs",
    multiple=True,
    metavar="LOG",
    help="Measure nothing: fit the times of NCCL to the output of nccl-tests, the rates of links to the output of "
    "ib_write_bw, p2pBandwidthLatencyTest or nvbandwidth, or the prices of messages to the output of the OSU "
    "benchmarks, IMB-MPI1 or ReproMPI; tables in CSV may replace them; repeatable.",
)
@click.option(
    "--machine",
    type=MACHINE,
    metavar="NAME|FILE",
    help="The network to measure; the written file has this network with the measured costs of messages. With --from: "
    "the machine of the logs; logs of MPI replace the prices that they determine.",
)
@click.option(
    "--points",
    type=INT,
    metavar="N",
    help="With --from: fit to N sizes of each collective and number of ranks, and predict the others [all].",
)
@click.option(
    "--as", "behaves_as", metavar="LIBRARY", help="With --from: the library of logs of MPI, openmpi or mpich."
)
@click.option(
    "--ranks",
    type=Lengths(),
    default=(),
    metavar="P[,P...]",
    help="With --from: number of ranks of logs that do not state it, such as those of OSU; one for all logs, or one "
    "for each.",
)
@click.option(
    "--per-node",
    type=Lengths(),
    default=(),
    metavar="N[,N...]",
    help="With --from: number of ranks on a node, in logs of MPI; one for all logs, or one for each [all ranks alike].",
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
    behaves_as: str | None,
    ranks: list[int],
    per_node: list[int],
    as_json: bool,
) -> int:
    """Measures the costs of messages and reductions on this machine: mpiexec -n 4 unisono calibrate -o M.toml.

    With --machine, measures the costs of messages of that network; rank i is on accelerator i. If several ranks share
    each node, an accelerator is a host, and the ranks of a node share the cables of their host.
    With --from, reads logs and needs no MPI: unisono calibrate --from nccl.log --machine dgx-a100 -o M.toml, or, of
    MPI, --from osu_latency.log --from osu_allreduce.log --as openmpi --ranks 64 --per-node 8.
    """
    if logs:
        refuse_unused(OF_LOGS)
        given = LogOptions(logs, machine, output, name, points, behaves_as, list(ranks), list(per_node), as_json)
        calibrate_from(given)
        return 0
    refuse_unused(MEASURED_RANKS)
    if machine is not None and levels:
        raise click.UsageError("--levels measures a machine of nodes, and --machine names a network; drop one of them")
    mpi = import_alike()
    of_nodes = [] if machine is None else nodes(mpi, mpi.COMM_WORLD)
    levels = levels or any(len(ranks) > 1 for ranks in of_nodes)

    def check() -> None:
        if not output.endswith(".toml"):
            raise InputError(f"'{output}' does not end in .toml, and a machine file does")
        if rounds < 10:
            raise InputError(f"--rounds is {rounds}, and a median needs at least 10")
        check_several(mpi.COMM_WORLD, "a calibration", "calibrate -o machine.toml")
        # Only rank 0 checks, because the nodes of other ranks need not have the folder.
        if mpi.COMM_WORLD.rank == 0:
            check_writable(output)
            if machine is not None:
                check_network(unisono.machine(machine), of_nodes)

    together(mpi.COMM_WORLD, check)
    note_shared_cores(mpi, mpi.COMM_WORLD)
    with progress("calibrating") as on_step:
        measured = calibrate_levels(rounds, on_step) if levels else measure(rounds, on_step)
    if machine is not None:
        _write_network(mpi, measured, machine, name, output, as_json)
        return 0
    comment = (
        "# Measured by `unisono calibrate`; nanoseconds, the [fit].values of the times of all rounds. [fit] has their\n"
        "# sources: minima, the largest relative distance of a measurement from its line, and the measurements\n"
        "# themselves as [bytes or peers, median, minimum].\n"
    )

    def written() -> dict[str, Any]:
        if measured is None:
            return {}
        found = measured.machine(name or "calibrated")
        write(output, comment + tomli_w.dumps(found))
        return found

    # All ranks end with the same error if no machine was made or the file cannot be written.
    made = together(mpi.COMM_WORLD, written)
    if measured is None:
        return 0
    machines = {"": made}
    if isinstance(measured, Levels):
        machines = {f"{of.name}: ": one.machine("") for of, one in zip(measured.found, measured.measured, strict=True)}
    for level, text in ((level, text) for level, one in machines.items() for text in disturbances(one)):
        click.echo(f"warning: {level}{text}", err=True)
    if as_json:
        print_json({**made, "residuals": made["fit"]["residuals"], "file": output})
    else:
        if isinstance(measured, Calibration):
            _print(measured, made)
        else:
            _print_levels(measured, made)
        print_lines("", f"wrote {output}")
    return 0


def _write_network(
    mpi: Any, measured: Calibration | Levels | None, base: str, name: str | None, output: str, as_json: bool
) -> None:
    """Writes a network with the message costs of a calibration, and prints these costs.

    All ranks call this; ``measured`` is None on all ranks except 0.
    """

    def made() -> tuple[MessageCosts, float] | None:
        if measured is None:
            return None
        scale = time_scale()
        bare = unisono.machine(base)
        if isinstance(measured, Levels):
            found, between, what = ranks_costs(bare, measured, scale), measured.measured[-1], "hosts"
        else:
            found, between, what = message_costs(bare, measured, scale), measured, "ranks"
        table = found.machine.describe()
        comment = (
            f"# Costs of messages by `unisono calibrate` on {between.ranks} {what}, {between.library}, "
            f"{between.rounds} rounds: measured\n"
            "# rates, host_overhead_ns, header_bytes, signal_ns and gamma_ns_per_byte.\n"
        )
        write(output, comment + tomli_w.dumps({**table, "name": name or table["name"]}))
        return found, scale

    result = together(mpi.COMM_WORLD, made)
    if result is None:
        return
    found, scale = result
    table = found.machine.describe()
    of_lab = [f"times of the lab are divided by its factor {scale:g}"] if scale != 1 else []
    notes = [*of_lab, *found.notes]
    if as_json:
        values = {**table, "name": name or table["name"], "file": output, "notes": notes}
        print_json({**values, "residuals": found.residuals})
        return
    keys = ("host_overhead_ns", "header_bytes", "signal_ns", "gamma_ns_per_byte")
    print_fields([("share of rates", f"{found.share:.3f}"), *((key, f"{table.get(key, 0.0):g}") for key in keys)])
    print_notes(notes)
    rows = [
        [str(size), microseconds(ns * 1e-9), microseconds(by * 1e-9), f"{by / ns - 1:+.1%}"]
        for size, ns, by in found.messages
    ]
    columns = ["bytes", "measured µs", "predicted µs", "error"]
    print_lines("")
    print_table(columns, rows, right=columns)
    print_lines("", f"wrote {output}")


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
    machines = [(level.name, of.machine("")) for level, of in zip(measured.found, measured.measured, strict=True)]
    poor = [level for level, of in machines if of["fit"]["poor"]]
    if poor:
        print_lines(f"poor fit: {', '.join(poor)}; measure on a quiet machine, or with more rounds")


def _print(measured: Calibration, machine: dict[str, Any]) -> None:
    print_lines(f"{measured.ranks} ranks, {measured.library}, {measured.rounds} rounds")
    keys = ("alpha_p_ns", "alpha_r_ns", "beta_ns_per_byte", "gamma_ns_per_byte", "alpha_ns")
    print_fields([(key, f"{machine[key]:g}") for key in keys])
    for protocol in machine.get("protocols", []):
        values = ", ".join(f"{key} {value:g}" for key, value in protocol.items() if key != "from_bytes")
        print_lines(f"messages of {protocol['from_bytes']} bytes or more: {values}")
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
