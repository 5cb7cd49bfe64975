"""The panel of a network: one plane with its accelerators, switches and cables."""

from collections import Counter
from typing import Any

from unisono._core import Machine, plane
from unisono.viewing import places

__all__ = ["MOST_NODES", "panel"]

#: The largest number of nodes in a picture.
MOST_NODES = 4096
#: The largest number of speeds of cables in the note.
_SPEEDS = 4
_CABLES = ("board", "DAC", "AOC")


def panel(machine: Machine) -> dict[str, Any] | None:
    """Returns the plane of a network; None for another machine, or for a network with too many nodes for a picture."""
    if "links" not in machine.offers:
        return None
    found = plane(machine)
    if found["nodes"] > MOST_NODES:
        return None
    count, a, b = found["accelerators"], found["a"].tolist(), found["b"].tolist()
    kinds = ", ".join(f"{name}: {int((found['kind'] == k).sum())}" for k, name in enumerate(_CABLES))
    gbps, ns = found["gbps"].tolist(), found["latency_ns"].tolist()
    speeds = Counter(zip(gbps, ns, strict=True)).most_common()
    listed = ", ".join(f"{n} of {rate:g} Gb/s and {late:g} ns" for (rate, late), n in speeds[:_SPEEDS])
    listed += f" and {len(speeds) - _SPEEDS} other speeds" if len(speeds) > _SPEEDS else ""
    at = places.network(machine, count, found["nodes"], list(zip(a, b, strict=True)))
    return {
        "kind": "map",
        "title": "One plane",
        "note": f"{count} accelerators, {found['nodes'] - count} switches, {len(a)} cables ({kinds}); cables: {listed}",
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
