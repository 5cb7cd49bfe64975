"""The panels of a schedule: its transfers on the machine by time, and the operations of each node."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from unisono._core import Machine, Schedule, Simulation, UnsupportedError, VerifyError, plane
from unisono.base.facts import has_root
from unisono.base.html import time_text
from unisono.planning.comparison import failed_names
from unisono.simulation.runs import Run
from unisono.simulation.schedules import simulate
from unisono.simulation.traces import SIMULATORS, operations_and_messages
from unisono.viewing import heat, machines, places
from unisono.viewing.steps import Document, Transfer, instructions, steps_of, transfers

__all__ = ["MOST_INSTRUCTIONS", "MOST_NODES", "panels"]

#: The largest number of nodes that are distinguishable in a picture; larger schedules get a heat map.
MOST_NODES = 2048
#: The largest number of instructions in a page.
MOST_INSTRUCTIONS = 200_000

Panel = dict[str, Any]


class _Timed(NamedTuple):
    """Transfers with their times, and the operations of nodes."""

    unit: str
    last: float
    moves: list[tuple[Transfer, float, float]]
    #: Node, lane, start, end and name of each operation; None if the simulator records no operations.
    spans: list[tuple[int, int, float, float, str]] | None
    note: str


def panels(schedule: Schedule) -> tuple[dict[str, Any], list[Panel]]:
    """Returns facts of a schedule and of its run, and its panels.

    Raises:
        VerifyError: the schedule is refused.
        SimulationError: the schedule got stuck on its machine.

    """
    facts: dict[str, Any] = {
        "collective": schedule.collective,
        "algorithm": schedule.origin,
        "ranks": schedule.ranks,
        "elements": f"{schedule.elements:,} of {schedule.dtype}",
        "machine": None if schedule.machine is None else schedule.machine.name,
        "failed": (schedule.machine and "; ".join(failed_names(schedule.machine))) or None,
        "instructions": schedule.instructions,
    }
    if schedule.nodes > _most_nodes(schedule.machine) or schedule.instructions > MOST_INSTRUCTIONS:
        made, run = heat.panels(schedule)
        if run is not None:
            _add_run(facts, run)
        if not made:
            note = (
                f"The schedule has {schedule.nodes:,} nodes and {schedule.instructions:,} instructions. At most "
                f"{MOST_NODES:,} nodes and {MOST_INSTRUCTIONS:,} instructions are drawn; choose a smaller part of the "
                "machine."
            )
            made = [{"kind": "text", "title": "Schedule", "text": note}]
        return facts, made
    proof = schedule.verify()
    if not proof.holds:
        raise VerifyError(f"the schedule is refused: {proof.diagnostics[0]['message']}", proof.diagnostics)
    document = json.loads(schedule.to_json())
    run = _run(schedule)
    timed = _timed(document, run)
    if run is not None:
        _add_run(facts, run)
    made = [_map(schedule, document, timed, run)]
    if timed.spans is not None:
        made.append(_timeline(schedule, timed))
    return facts, made


def _most_nodes(machine: Machine | None) -> int:
    """Returns the largest number of nodes of a map: on a network, whose cables cross, fewer than on a wafer."""
    network = machine is not None and "links" in machine.offers
    return min(MOST_NODES, machines.MANY_NODES) if network else MOST_NODES


def _add_run(facts: dict[str, Any], run: Run) -> None:
    facts["simulated"] = f"{run.cycles:,} cycles" if run.cycles is not None else time_text(run.seconds)
    if run.result_correct is not None:
        facts["data"] = "the run's results are right" if run.result_correct else "wrong results"


def _run(schedule: Schedule) -> Run | None:
    """Runs the schedule on its machine and records every node; returns None without a machine that can run it."""
    if schedule.machine is None:
        return None
    recorded = SIMULATORS[schedule.machine.simulator].records in ("pes", "ranks")
    try:
        return simulate(schedule, trace_pes=range(schedule.nodes) if recorded else None)
    except UnsupportedError:
        return None


def _timed(document: Document, run: Run | None) -> _Timed:
    moved = transfers(document)
    records = "" if run is None else SIMULATORS[run.simulator].records
    if run is not None and records == "pes":
        return _cycles(run.simulation, document, moved)
    if run is not None and records == "ranks":
        return _nanoseconds(run.simulation, moved)
    steps = steps_of(document)
    moves = [(move, float(steps[move.instruction]), steps[move.instruction] + 1.0) for move in moved]
    note = "One step is one instruction of the longest chain of instructions that wait for each other"
    note += (
        ": no times, because there is no machine." if run is None else "; this machine's simulator records no times."
    )
    return _Timed("steps", max((end for _, _, end in moves), default=0.0), moves, None, note)


def _cycles(simulation: Simulation, document: Document, moved: Sequence[Transfer]) -> _Timed:
    events = simulation.trace_events
    during = {event["instr"]: (float(event["start"]), float(event["end"])) for event in events}
    moves = [(move, *during[move.instruction]) for move in moved if move.instruction in during]
    phases, names = document["phases"], {}
    for number, _, _, instruction in instructions(document):
        names[number] = f"{phases[instruction['phase']]} i{number}: {instruction['length']} elements"
    spans = [
        (event["pe"], event["thread"], float(event["start"]), float(event["end"]), names.get(event["instr"], ""))
        for event in events
    ]
    note = "A transfer is drawn while its sender's instruction runs."
    return _Timed("cycles", float(simulation.cycles or 0), moves, spans, note)


def _nanoseconds(simulation: Simulation, moved: Sequence[Transfer]) -> _Timed:
    operations, messages = operations_and_messages(simulation)
    elements = Counter((move.source, move.target) for move in moved)
    moves = [
        (Transfer(-1, m["source"], m["target"], m["bytes"], 0), m["issued_ns"], m["arrived_ns"])
        for m in messages
        if (m["source"], m["target"]) in elements
    ]
    spans = [(o["rank"], 0, o["start_ns"], o["end_ns"], f"{o['kind']}: {o['bytes']} bytes") for o in operations]
    note = "A transfer is drawn from the issue of its message to its arrival."
    return _Timed("ns", simulation.nanoseconds, moves, spans, note)


def _map(schedule: Schedule, document: Document, timed: _Timed, run: Run | None) -> Panel:
    nodes, links = _drawn(schedule, document, run)
    moves = sorted(timed.moves, key=lambda move: (move[1], move[2], move[0].source, move[0].target))
    where = _places_of_nodes(schedule, document, nodes)
    nodes["root"] = where[schedule.root] if has_root(schedule.collective) else None
    return {
        "kind": "map",
        "title": "Transfers",
        "note": timed.note,
        "unit": timed.unit,
        "last": timed.last,
        "amount": "bytes" if timed.unit == "ns" else "elements",
        "nodes": nodes,
        "links": links,
        "phases": list(document["phases"]),
        "moves": {
            "source": [where[move.source] for move, _, _ in moves],
            "target": [where[move.target] for move, _, _ in moves],
            "amount": [move.elements for move, _, _ in moves],
            "phase": [move.phase for move, _, _ in moves],
            "start": [start for _, start, _ in moves],
            "end": [end for _, _, end in moves],
        },
    }


def _drawn(schedule: Schedule, document: Document, run: Run | None) -> tuple[Panel, Panel | None]:
    """Returns the panel of the nodes, and the panel of links with their loads, None if the machine has no links."""
    machine, count = schedule.machine, schedule.nodes
    offers = [] if machine is None else machine.offers
    if machine is not None and "grid" in offers and machine.shape is not None:
        rows, columns = machine.shape if len(machine.shape) == 2 else (1, machine.shape[0])
        labels = [f"PE {row},{column}" for row in range(rows) for column in range(columns)]
        found = schedule.link_loads()
        links = found and _links(found["source"], found["target"], found["elements"].tolist(), "elements")
        return _nodes(labels, ["pe"] * len(labels), places.grid(rows, columns)), links
    if machine is not None and "links" in offers:
        cables = plane(machine)
        if cables["nodes"] <= MOST_NODES:
            load = None if run is None or "link_packets" not in run.metrics else run.metrics["link_packets"].value
            return _of_network(schedule, document, cables, load)
    ranks = schedule.ranks
    shape = None if machine is None else machine.shape
    at = (
        places.grid(*shape)
        if shape and len(shape) == 2 and shape[0] * shape[1] == ranks
        else places.circle_or_grid(ranks)
    )
    labels = [f"rank {k}" if k < ranks else f"switch {k}" for k in range(count)]
    kinds = ["rank" if k < ranks else "switch" for k in range(count)]
    if count > ranks:
        right = max(x for x, _ in at) + 2
        at = at + [(right + x, y) for x, y in places.circle_or_grid(count - ranks)]
    return _nodes(labels, kinds, at), None


def _of_network(schedule: Schedule, document: Document, cables: Mapping[str, Any], load: Any) -> tuple[Panel, Panel]:
    machine = schedule.machine
    assert machine is not None
    a, b = cables["a"].tolist(), cables["b"].tolist()
    at = places.network(machine, cables["accelerators"], cables["nodes"], list(zip(a, b, strict=True)))
    rank_of = {place: node for node, place in enumerate(_placement(document))}
    shown = sorted(set(rank_of) | _between(rank_of, a, b, cables["accelerators"]))
    number = {node: k for k, node in enumerate(shown)}
    labels = [_label(node, rank_of, cables["accelerators"]) for node in shown]
    kinds = ["switch" if node >= cables["accelerators"] else "rank" if node in rank_of else "idle" for node in shown]
    nodes = _nodes(labels, kinds, places.closed_up([at[node] for node in shown])) | {"number": number}
    kept = [k for k in range(len(a)) if a[k] in number and b[k] in number]
    both = kept and [(a[k], b[k], cables["there"][k]) for k in kept] + [(b[k], a[k], cables["back"][k]) for k in kept]
    packets = None if load is None else [int(load[link]) for _, _, link in both or []]
    links = _links([number[x] for x, _, _ in both or []], [number[y] for _, y, _ in both or []], packets, "packets")
    return nodes, links


def _between(ranks: Mapping[int, int], a: Sequence[int], b: Sequence[int], accelerators: int) -> set[int]:
    """Returns the switches of a plane that are at most two cables away from a rank."""
    found: set[int] = set()
    for _ in range(2):
        reached = found | set(ranks)
        near = [(x, y) for x, y in zip(a, b, strict=True) if x in reached or y in reached]
        found |= {node for pair in near for node in pair if node >= accelerators}
    return found


def _label(node: int, rank_of: Mapping[int, int], accelerators: int) -> str:
    name = f"switch {node}" if node >= accelerators else f"accelerator {node}"
    return f"rank {rank_of[node]} on {name}" if node in rank_of and node < accelerators else name


def _placement(document: Document) -> list[int]:
    """Returns for each node its accelerator or switch; the file lists runs of these: a first one and a count."""
    runs = (document.get("placement") or {}).get("nodes", [[0, document["nodes"]]])
    return [place for first, count in runs for place in range(first, first + count)]


def _places_of_nodes(schedule: Schedule, document: Document, nodes: Panel) -> list[int]:
    """Returns for each node of the schedule its index in the picture."""
    number = nodes.pop("number", None)
    if number is None:
        return list(range(schedule.nodes))
    return [number[place] for place in _placement(document)]


def _nodes(labels: Sequence[str], kinds: Sequence[str], at: Sequence[places.Place]) -> Panel:
    return {"label": list(labels), "type": list(kinds), "x": [x for x, _ in at], "y": [y for _, y in at]}


def _links(source: Iterable[int], target: Iterable[int], load: list[int] | None, unit: str) -> Panel:
    return {"source": [int(x) for x in source], "target": [int(x) for x in target], "load": load, "unit": unit}


def _timeline(schedule: Schedule, timed: _Timed) -> Panel:
    spans = sorted(timed.spans or [])
    label = "PE" if timed.unit == "cycles" else "rank"
    shape = schedule.machine.shape if schedule.machine is not None else None
    wide = shape[1] if label == "PE" and shape is not None and len(shape) == 2 else 0
    used = sorted({(node, lane) for node, lane, _, _, _ in spans})
    track = {key: k for k, key in enumerate(used)}

    def name(node: int) -> str:
        if label == "rank" and node >= schedule.ranks:
            return f"switch {node}"
        return f"{label} {node // wide},{node % wide}" if wide else f"{label} {node}"

    names = [name(node) + (f" lane {lane}" if lane else "") for node, lane in used]
    return {
        "kind": "timeline",
        "title": "Operations of each node",
        "unit": timed.unit,
        "last": timed.last,
        "tracks": names,
        "spans": {
            "track": [track[node, lane] for node, lane, _, _, _ in spans],
            "start": [start for _, _, start, _, _ in spans],
            "end": [end for _, _, _, end, _ in spans],
            "name": [name for _, _, _, _, name in spans],
        },
    }
