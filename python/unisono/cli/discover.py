"""`unisono discover`: the collectives in a program of tasks."""

from pathlib import Path
from typing import Any

import click

import unisono
from unisono.base.files import read_json
from unisono.base.reports import DiscoveryReport, Forward
from unisono.cli._completion import MODELS, of_names
from unisono.cli._options import json_option, limit_options
from unisono.cli._output import print_json, print_lines, print_notes, print_table, working
from unisono.cli._recording import rounds_option
from unisono.cli._sources import (
    NO_DEVICES,
    NO_DISCOVERED_MACHINE,
    NO_GRAPH,
    NO_MACHINE,
    NOT_A_SCRIPT,
    refuse_unused,
)
from unisono.cli._types import INT, MACHINE
from unisono.discovery.devices import device_lines, device_table
from unisono.discovery.prediction import Prediction, sum_line, total_lines
from unisono.pictures.graphs import KINDS, Source, check_graph, of_json, write_graph
from unisono.tasks.recording import record

__all__ = ["discover"]


@click.command()
@click.argument("program", metavar="PROGRAM.json|PROGRAM.py")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- ARGS]...")
@click.option("--nodes", type=INT, required=True, metavar="M", help="Number of ranks that share the work.")
@click.option(
    "--rules",
    metavar="NAME",
    shell_complete=of_names(("full", "paper", "off")),
    default="full",
    help="The rules by which collectives are found: full, paper (the published rules) or off [full].",
)
@click.option(
    "--machine", type=MACHINE, metavar="NAME|FILE", help="Also predict the time of the communication on this machine."
)
@click.option(
    "--model",
    metavar="NAME",
    shell_complete=of_names(MODELS),
    help="With --machine: the model of the prediction [the machine's].",
)
@click.option("--simulate", is_flag=True, help="With --machine: also run every operation on the machine's simulator.")
@click.option("--devices", type=INT, metavar="D", help="Each rank drives D devices; list the copies of one rank.")
@click.option("--rank", type=INT, metavar="R", default=0, help="With --devices: the rank whose copies are listed [0].")
@click.option(
    "--device-machine",
    type=MACHINE,
    metavar="NAME|FILE",
    help="With --devices: predict the time of the copies on this machine.",
)
@click.option(
    "--graph", metavar="FILE.dot|png|svg|pdf", help="Write the program's graph, as text for Graphviz or as a picture."
)
@click.option(
    "--graph-kind",
    type=click.Choice(KINDS),
    default=KINDS[0],
    help="The nodes of the graph: the commands of the ranks, or the tasks [commands].",
)
@rounds_option
@json_option
@limit_options
def discover(
    program: str,
    arguments: tuple[str, ...],
    nodes: int,
    rules: str,
    machine: str | None,
    model: str | None,
    simulate: bool,
    devices: int | None,
    rank: int,
    device_machine: str | None,
    graph: str | None,
    graph_kind: str,
    rounds: int,
    as_json: bool,
) -> None:
    """Finds the data that the tasks of a program exchange, and the collectives among the exchanges.

    A Python file is executed with ARGS; its program of unisono.tasks is recorded without running kernels, so
    fetched contents are invented.
    """
    notes: list[str] = []
    is_script = program.endswith(".py")
    no_machine = () if machine else NO_DISCOVERED_MACHINE if device_machine else NO_MACHINE
    refuse_unused(
        no_machine, NO_DEVICES if devices is None else (), () if graph else NO_GRAPH, () if is_script else NOT_A_SCRIPT
    )
    if arguments and not is_script:
        raise click.UsageError(f"'{arguments[0]}' is an argument of a program in Python, and a .json has none; drop it")
    if graph:
        check_graph(graph, graph_kind)
    on_devices: dict[str, Any] = {"devices": devices, "rank": rank, "device_machine": device_machine}
    with working(f"discovering {program}"):
        if is_script:
            script = record(program, arguments, rounds)
            recorded, notes = script.program, script.notes
            found = recorded.explain(
                nodes, rules, machine=machine, model=model, simulate=simulate, **on_devices
            ).report()
        else:
            found = unisono.discover(
                program, nodes, rules, machine=machine, model=model, simulate=simulate, **on_devices
            )
    if graph:
        name = Path(program).name
        if is_script:
            recorded.graph(nodes, graph, graph_kind, rules, name)
        else:
            text = read_json(program, kind="a program of tasks, in Python (.py) or JSON")
            write_graph(
                Source(of_json(text), nodes, rules),
                graph,
                graph_kind,
                name,
            )
    print_notes(notes, err=True)
    if as_json:
        print_json({"program": program, "rules": rules, **found, "notes": notes, **({"graph": graph} if graph else {})})
        return
    if machine is not None:
        both = [Prediction.of(found["machine"], found[key]) for key in ("predicted", "point_to_point")]
        titles, rows = both[0].table()
        if rows:
            print_table(titles, rows, right=["times", "ranks", "bytes", "µs each", "ratio", "µs simulated"])
            print_lines("")
        print_lines(*total_lines(*both), sum_line(found["nodes"], found["messages"]))
    else:
        _print_forwards(found)
    if "devices" in found:
        titles, rows = device_table(found["devices"])
        print_lines("")
        print_table(titles, rows, right=["times", "copies", "bytes", "µs each"])
        print_lines("", *device_lines(found["devices"]))
    if graph:
        print_lines(f"wrote {graph}")


def _print_forwards(found: DiscoveryReport) -> None:
    if not found["forwards"] and not found["messages"]["p2p"]:
        print_lines(sum_line(found["nodes"], found["messages"]))
        return
    folded = _folded(found["forwards"])
    rows = [
        [
            str(times),
            f"{forward['after_task']} ({forward['after_index']})",
            f"{forward['before_task']} ({forward['before_index']})",
            forward["buffer"],
            _region(forward["region"]),
            forward["collective"] or "-",
            "" if forward["group"] is None else str(forward["group"]),
        ]
        for forward, times in folded
    ]
    titles = ["times", "after task", "before task", "buffer", "region", "collective", "group"]
    print_table(titles, rows, right=["times", "group"])
    print_lines("", sum_line(found["nodes"], found["messages"]))


def _folded(forwards: list[Forward]) -> list[tuple[Forward, int]]:
    """Groups forwards that differ only in task numbers and group.

    Returns the first forward of each group, with the number of forwards in the group.

    A loop repeats its forwards with other task numbers in each iteration.
    """
    times: dict[str, int] = {}
    first: dict[str, Forward] = {}
    for forward in forwards:
        names = (forward["after_task"], forward["before_task"], forward["buffer"])
        key = repr((names, forward["region"], forward["collective"]))
        first.setdefault(key, forward)
        times[key] = times.get(key, 0) + 1
    return [(forward, times[key]) for key, forward in first.items()]


def _region(boxes: list[Any]) -> str:
    """Formats a region's first box, ``[0, 8) x [0, 4)``, and the number of further boxes."""
    if not boxes:
        return "nothing"
    low, high = boxes[0]
    first = " x ".join(f"[{a}, {b})" for a, b in zip(low, high, strict=True))
    return first if len(boxes) == 1 else f"{first} and {len(boxes) - 1} more"
