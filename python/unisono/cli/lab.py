"""`unisono lab`: a network machine as an emulated cluster on this computer, with real MPI over TCP."""

import os
import sys
import time
from pathlib import Path
from typing import Any

import click

import unisono
from unisono import InputError
from unisono.base.files import check_writable, is_file
from unisono.base.names import did_you_mean
from unisono.cli._options import json_option, slow_option
from unisono.cli._output import number, print_fields, print_json, print_lines, print_table, working
from unisono.cli._sources import UnusedOptions, refuse_unused
from unisono.cli._types import INT
from unisono.cli.run import note_unserved, passing_signals
from unisono.lab import ranks as ranks_of_lab
from unisono.lab import session
from unisono.machines.hosts import per_host
from unisono.planning.plan_files import is_plan_file

__all__ = ["lab"]

#: The actions, each with the form of its arguments.
_ACTIONS = {
    "up": "MACHINE",
    "run": "-- PROGRAM",
    "fail": "A-B",
    "restore": "A-B",
    "stats": "",
    "down": "",
}
_OF_UP = UnusedOptions(("places", "mpi", "slow", "scale"), "is for 'unisono lab up'; drop it")
_OF_RUN = UnusedOptions(("ranks", "plan", "report", "both"), "is for 'unisono lab run'; drop it")
_NOT_OF_RUN = UnusedOptions(
    ("as_json",), "is for the state of the lab, and a run prints what its program does; drop it"
)


@click.command()
@click.argument("action", metavar="up|run|fail|restore|stats|down")
@click.argument("words", nargs=-1, metavar="[MACHINE | A-B | -- PROGRAM [ARGS]...]")
@click.option(
    "--per-host",
    "places",
    type=INT,
    metavar="K",
    help="With up: the number of places for ranks on each host [the machine's number, or 1].",
)
@click.option(
    "--mpi",
    type=click.Choice(["openmpi", "mpich"]),
    help="With up: the MPI whose mpiexec starts programs [the MPI of the program].",
)
@slow_option("With up")
@click.option(
    "--scale",
    type=float,
    metavar="S",
    help="With up: divide rates and multiply latencies by S [the least factor that this computer can emulate].",
)
@click.option("-n", "--ranks", type=INT, metavar="N", help="With run: the number of ranks.")
@click.option("--plan", metavar="FILE.plan", help="With run: the plan that serves the program's collectives.")
@click.option(
    "--report", metavar="FILE|stderr", help="With run and --plan: write a report of the calls when the program ends."
)
@click.option(
    "--both", is_flag=True, help="With run: run first without the plan and then with it, and print both times."
)
@json_option
def lab(
    action: str,
    words: tuple[str, ...],
    places: int | None,
    mpi: str | None,
    slow: tuple[tuple[str, float], ...],
    scale: float | None,
    as_json: bool,
    **of_run: Any,
) -> int | None:
    """Emulates a cluster on this computer: real MPI over TCP between hosts joined by the network of MACHINE.

    `up MACHINE.toml` starts the lab with a host for each accelerator, and prints the factor that divides rates and
    multiplies latencies. `run -n N -- PROGRAM` runs an MPI program in the lab. `fail A-B` takes a cable down, and
    `restore A-B` brings it up. `stats` prints the traffic of each cable. `down` ends the lab.
    """
    if action not in _ACTIONS:
        raise InputError(
            f"'{action}' is not an action of a lab{did_you_mean(action, _ACTIONS)}; accepted are {', '.join(_ACTIONS)}"
        )
    takes = _ACTIONS[action]
    if (not words and takes) or (len(words) > 1 and action != "run") or (words and not takes):
        raise click.UsageError(f"write 'unisono lab {action}{' ' if takes else ''}{takes}'")
    refuse_unused(*(() if action == "up" else ((_OF_UP,),)), (_NOT_OF_RUN,) if action == "run" else (_OF_RUN,))
    if action == "run":
        return _run(words, **of_run)
    if action == "up":
        _print(_up(words[0], places, mpi, dict(slow), scale), as_json, counts=False)
        return None
    found = session.current()
    if action == "stats":
        _print(found.report(), as_json)
    elif action == "down":
        found.end()
        report = {"machine": found.network.machine, "hosts": len(found.network.hosts), "scale": found.network.scale}
        print_json({**report, "ports": []}) if as_json else print_lines("the lab has ended")
    else:
        name = found.set_cable(words[0], action == "restore")
        state = "down" if action == "fail" else "up"
        _warn(found, len(found.network.hosts) * found.per_host)
        print_json({"cable": name, **found.report()}) if as_json else print_lines(f"cable {name} is {state}")
    return None


def _up(name: str, asked: int | None, mpi: str | None, slow: dict[str, float], scale: float | None) -> dict[str, Any]:
    machine = unisono.machine(name)
    places = per_host(machine) if asked is None else asked
    if not 1 <= places <= session.MOST_PLACES:
        raise InputError(f"--per-host is {places}; accepted is a whole number from 1 to {session.MOST_PLACES}")
    with working(f"starting the hosts of {machine.name}"):
        return session.start(machine, places, mpi, slow, scale).report()


def _run(program: tuple[str, ...], ranks: int | None, plan: str | None, report: str | None, both: bool) -> int:
    if ranks is None:
        raise click.UsageError("-n is missing: the number of ranks, as in 'unisono lab run -n 8 -- ./program'")
    if plan is None and (both or report is not None):
        raise click.UsageError(f"{'--both' if both else '--report'} goes with a plan; name it with --plan")
    if report is not None and report != "stderr":
        check_writable(report)
    if plan is not None:
        if not (is_file(plan) and is_plan_file(plan)):
            raise InputError(
                f"'{plan}' is not a plan file; 'unisono plan ... -o FILE.plan' and 'unisono tune' write them"
            )
        note_unserved(plan, ranks, off=False)
    found = session.current()
    starter = ranks_of_lab.launcher(found, ranks, program[0])
    _warn(found, ranks)
    variables = ranks_of_lab.variables(found, starter)
    times: list[tuple[float, float | None]] = []
    for used in [None, plan] if both else [plan]:
        own = found.folder / f"seconds-{os.getpid()}" if both else None
        used_report = report if used is not None else None
        sys.stdout.flush()
        with ranks_of_lab.beginning(found) as begun:
            command = ranks_of_lab.command(found, starter, ranks, program, used, used_report, begun, own)
            begin = time.monotonic()
            stuck = ranks_of_lab.StuckLauncher(ranks_of_lab.launcher_process)
            code = passing_signals(command, variables, ranks_of_lab.launcher_process, stuck)
            if stuck.is_found:
                click.echo(
                    f"error: the ranks have ended, and their launcher had to be killed ({starter.path})", err=True
                )
        times.append((time.monotonic() - begin, _slowest(own)))
        if code:
            # For a process ended by a signal, shells report 128 plus the signal's number.
            return code if code >= 0 else 128 - code
    if both:
        _print_times(*times)
    return 0


def _warn(found: session.Lab, ranks: int) -> None:
    """Prints a warning if cables that are down separate the hosts of the first ranks."""
    if text := found.cut_off(ranks):
        click.echo(f"warning: {text}", err=True)


def _slowest(times: Path | None) -> float | None:
    """Returns the longest time in seconds that a rank appended to a file, and removes the file; None without times."""
    if times is None:
        return None
    try:
        seconds = [float(line) for line in times.read_text().split()]
        times.unlink()
    except (OSError, ValueError):
        return None
    return max(seconds, default=None)


def _print_times(before: tuple[float, float | None], after: tuple[float, float | None]) -> None:
    """Prints the times of a run without and with a plan: (whole command, program alone) in seconds."""
    (all_before, own_before), (all_after, own_after) = before, after
    if not own_before or own_after is None:
        print_fields(
            [
                ("without the plan", f"{all_before:.2f} s, start of the ranks included"),
                ("with the plan", f"{all_after:.2f} s, {all_after / all_before:.2f} of it"),
            ]
        )
        return
    rest = [max(whole - own, 0.0) for whole, own in ((all_before, own_before), (all_after, own_after))]
    print_fields(
        [
            ("without the plan", f"{own_before:.2f} s from MPI_Init to MPI_Finalize"),
            ("with the plan", f"{own_after:.2f} s, {own_after / own_before:.2f} of it"),
            ("start and end", f"{rest[0]:.2f} s without the plan, {rest[1]:.2f} s with it, not included"),
        ]
    )


def _print(report: dict[str, Any], as_json: bool, counts: bool = True) -> None:
    if as_json:
        print_json(report)
        return
    print_fields(
        [
            ("machine", report["machine"]),
            ("hosts", f"{report['hosts']}, {report['per_host']} rank{'s' * (report['per_host'] != 1)} a host"),
            ("scale", f"{report['scale']:g}: rates are divided and latencies multiplied by it"),
        ]
    )
    columns = ["from", "to", "Mbit/s", "µs"]
    of_port = [[p["from"], p["to"], number(p["mbit"], 3), number(p["latency_us"], 1)] for p in report["ports"]]
    if counts:
        columns += ["", "bytes", "packets", "drops", "most waiting", "busy s"]
        for row, p in zip(of_port, report["ports"], strict=True):
            row += ["up" if p["up"] else "DOWN", f"{p['bytes']:,}", f"{p['packets']:,}", f"{p['drops']:,}"]
            row += [f"{p['peak_bytes']:,}", number(p["busy_seconds"], 3)]
    print_lines("")
    print_table(columns, of_port, right=columns[2:4] + columns[5:])
