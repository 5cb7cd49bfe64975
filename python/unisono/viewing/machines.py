"""The panels of a network: one plane with its accelerators, switches and cables."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from unisono._core import Machine, plane
from unisono.viewing import drawn, places

__all__ = ["MANY_NODES", "MOST_NODES", "cable_classes", "cables", "panel", "panels", "probed"]

#: The largest number of nodes in a map.
MOST_NODES = 4096
#: The largest number of nodes whose cables can be distinguished in a map.
MANY_NODES = 256
#: The largest number of speeds of cables in the note.
_SPEEDS = 4
_HINT = "; zoom in for single cables"
_CABLES = ("board", "DAC", "AOC")


def panel(machine: Machine) -> dict[str, Any] | None:
    """Returns the panel of a network's plane; None for other machines and networks with too many nodes."""
    if "links" not in machine.offers:
        return None
    found = plane(machine)
    if found["nodes"] > MOST_NODES:
        return None
    count, a, b = found["accelerators"], found["a"].tolist(), found["b"].tolist()
    kinds = ", ".join(f"{name}: {int((found['kind'] == k).sum()):,}" for k, name in enumerate(_CABLES))
    gbps, ns = found["gbps"].tolist(), found["latency_ns"].tolist()
    speeds = Counter(zip(gbps, ns, strict=True)).most_common()
    listed = ", ".join(f"{n:,} of {rate:g} Gb/s and {late:g} ns" for (rate, late), n in speeds[:_SPEEDS])
    listed += f" and {len(speeds) - _SPEEDS} other speeds" if len(speeds) > _SPEEDS else ""
    switches = _switches(machine, found["nodes"] - count)
    hint = _HINT if found["nodes"] > MANY_NODES else ""
    at = places.network(machine, count, found["nodes"], list(zip(a, b, strict=True)))
    return {
        "kind": "map",
        "title": _title(machine),
        "note": f"{count:,} accelerators, {switches}, {len(a):,} cables ({kinds}); cables: {listed}{hint}",
        "unit": "steps",
        "last": 0.0,
        "amount": "elements",
        "nodes": {
            "label": [f"accelerator {k}" if k < count else f"switch {k}" for k in range(found["nodes"])],
            "type": ["rank" if k < count else "switch" for k in range(found["nodes"])],
            "x": [x for x, _ in at],
            "y": [y for _, y in at],
        },
        "links": {"source": a, "target": b, "load": None, "unit": "packets", "gbps": gbps, "ns": ns},
        "phases": [],
        "moves": {"source": [], "target": [], "amount": [], "phase": [], "start": [], "end": []},
    }


def panels(machine: Machine) -> list[dict[str, Any]]:
    """Returns the map of a small network; of a large one a picture of a part, its cables by class, and then the map.

    A map is left out if the network has more than :data:`MOST_NODES` nodes in a plane.
    """
    found = None if "links" not in machine.offers else plane(machine)
    every = [] if (one := panel(machine)) is None else [one]
    if found is None or found["nodes"] <= MANY_NODES:
        return every
    classes, counts = np.unique(cable_classes(found, latency=True), return_counts=True)
    rows = [[*name.split("|"), count] for name, count in zip(classes.tolist(), counts.tolist(), strict=True)]
    columns = ["kind", "between", "rate", "latency", "cables"]
    table = {"kind": "table", "title": "Cables by class", "columns": columns, "rows": rows}
    return [_picture(machine), table, *({**other, "title": "Every cable"} for other in every)]


def _picture(machine: Machine) -> dict[str, Any]:
    # Imported here, since matplotlib takes longer than the rest of a page.
    from unisono.pictures.networks import draw

    note = f"A part that repeats; 'unisono topology {machine.name} --plot FILE.png' writes this picture."
    return drawn.panel(_title(machine), note, draw(machine, "svg"))


def cable_classes(found: Mapping[str, Any], *, latency: bool = False) -> npt.NDArray[np.str_]:
    """Returns the class of each cable of a plane: its kind, what it joins, its rate, and on request its latency.

    A class is one text, with vertical bars between these parts.
    """
    count = found["accelerators"]
    ends = [
        " - ".join(sorted("accelerator" if end < count else "switch" for end in pair))
        for pair in zip(found["a"].tolist(), found["b"].tolist(), strict=True)
    ]
    rows = zip(found["kind"].tolist(), ends, found["gbps"].tolist(), found["latency_ns"].tolist(), strict=True)
    return np.array(
        [
            f"{_CABLES[kind]}|{pair}|{rate:,g} Gb/s" + (f"|{late:,g} ns" if latency else "")
            for kind, pair, rate, late in rows
        ]
    )


def _title(machine: Machine) -> str:
    facts = machine.topology
    return "The network" if facts is None or facts["planes"] == 1 else f"One of {facts['planes']} planes"


def _switches(machine: Machine, drawn: int) -> str:
    """Returns the number of switches; a switch of many ports may be several nodes, such as one for each row."""
    facts = machine.topology
    real = drawn if facts is None or facts["plane"] is None else facts["plane"]["switches"]
    if real == drawn:
        return _counted(drawn, "switch", "switches")
    return f"{drawn:,} parts of {_counted(real, 'switch', 'switches')}"


def _counted(number: int, one: str, several: str) -> str:
    return f"{number:,} {one if number == 1 else several}"


def probed(plain: dict[str, Any], machine: Machine, report: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the panel of a network with the state of each cable, as a probe found it."""
    found = plane(machine)
    rows = {row["link"]: row for row in report["cables"]}
    states = _states(report)
    names = ["-".join(map(str, sorted(ends))) for ends in zip(found["a"].tolist(), found["b"].tolist(), strict=True)]
    reached = [rows[name]["reached"] for name in names]
    expected = [rows[name]["expected"] for name in names]
    links = {**plain["links"], "state": [states.get(name, "fast") for name in names]}
    links |= {"reached": reached, "expected": expected}
    slow = report["accused"]
    note = "no cable is slow" if slow == 0 else f"{slow} slow cable{'' if slow == 1 else 's'}"
    return {**plain, "title": "Cables", "note": note, "links": links}


def cables(report: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the table of at most `_MOST_ROWS` cables: by state, slow ones first, then by rising ``share``."""
    states = _states(report)
    words = {"slow": "slow", "doubted": "it or another one is slow", "fast": "in time", "untested": "not tested"}
    confidence = {of["link"]: of["confidence"] for of in report["links"]}

    def share(row: Mapping[str, Any]) -> float | None:
        return None if row["reached"] is None else row["reached"] / row["expected"]

    order = sorted(
        report["cables"],
        key=lambda row: (list(words).index(states.get(row["link"], "fast")), share(row) or 0.0, row["link"]),
    )
    rows = [
        [
            row["link"],
            words[states.get(row["link"], "fast")],
            _rounded(row["reached"]),
            _rounded(row["expected"]),
            _rounded(share(row)),
            _rounded(confidence.get(row["link"])),
        ]
        for row in order[:_MOST_ROWS]
    ]
    columns = ["cable", "state", "reached Gb/s", "expected Gb/s", "share", "confidence"]
    title = "Cables by share" if len(order) <= _MOST_ROWS else f"The {_MOST_ROWS} of {len(order)} cables of least share"
    return {"kind": "table", "title": title, "columns": columns, "rows": rows}


#: The largest number of cables in a table.
_MOST_ROWS = 100


def _states(report: Mapping[str, Any]) -> dict[str, str]:
    """Returns the states of slow, doubted and untested cables, by name."""
    states = dict.fromkeys(report["untested"], "untested")
    for of in report["links"]:
        states |= dict.fromkeys([of["link"], *of["or"]], "doubted" if of["or"] else "slow")
    return states


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")
