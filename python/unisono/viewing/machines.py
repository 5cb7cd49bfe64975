"""The panel of a network: one plane with its accelerators, switches and cables."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from unisono._core import Machine, plane
from unisono.viewing import places

__all__ = ["MOST_NODES", "cables", "panel", "probed"]

#: The largest number of nodes in a picture.
MOST_NODES = 4096
#: The largest number of cable rates in the note.
_SPEEDS = 4
#: The number of nodes from which on cables cover each other in a picture.
_MANY_NODES = 256
_HINT = "; zoom in for single cables, or draw a part with 'unisono topology NAME --plot FILE.png'"
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
    switches = _counted(found["nodes"] - count, "switch", "switches")
    hint = _HINT if found["nodes"] > _MANY_NODES else ""
    at = places.network(machine, count, found["nodes"], list(zip(a, b, strict=True)))
    return {
        "kind": "map",
        "title": "One plane",
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


def _counted(number: int, one: str, several: str) -> str:
    return f"{number:,} {one if number == 1 else several}"


def probed(drawn: dict[str, Any], machine: Machine, report: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a network's panel with the state of each cable that a probe found."""
    found = plane(machine)
    rows = {row["link"]: row for row in report["cables"]}
    states = _states(report)
    names = ["-".join(map(str, sorted(ends))) for ends in zip(found["a"].tolist(), found["b"].tolist(), strict=True)]
    reached = [rows[name]["reached"] for name in names]
    expected = [rows[name]["expected"] for name in names]
    links = {**drawn["links"], "state": [states.get(name, "fast") for name in names]}
    links |= {"reached": reached, "expected": expected}
    slow = report["accused"]
    note = "no cable is slow" if slow == 0 else f"{slow} slow cable{'' if slow == 1 else 's'}"
    return {**drawn, "title": "Cables", "note": note, "links": links}


def cables(report: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the table of cables: slow cables, then cables by the rising fraction of the rate that they reached."""
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
