"""The panel of a trace in Chrome's format of trace events: a row per track, a bar per event."""

from collections.abc import Mapping, Sequence
from typing import Any

from unisono._core import InputError

__all__ = ["panel"]

#: The largest number of events in a page.
_MOST_EVENTS = 400_000


def panel(trace: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the timeline of a trace: in cycles for a wafer, else in ns.

    Raises:
        InputError: the trace has more events than a page holds.

    """
    events: Sequence[Mapping[str, Any]] = trace["traceEvents"]
    if len(events) > _MOST_EVENTS:
        raise InputError(f"the trace has {len(events)} events; at most {_MOST_EVENTS} are drawn: trace fewer nodes")
    named = {(e.get("pid"), e.get("tid")): e["args"]["name"] for e in events if e.get("name") == "thread_name"}
    processes = {e.get("pid"): e["args"]["name"] for e in events if e.get("name") == "process_name"}
    spans = [event for event in events if event.get("ph") == "X"]
    keys = dict.fromkeys((event.get("pid"), event.get("tid")) for event in spans)
    order = sorted(keys, key=lambda key: (str(key[0]), key[1] if isinstance(key[1], int) else 0, str(key[1])))
    track = {key: at for at, key in enumerate(order)}
    by_cycle = "cycles" in trace.get("otherData", {})
    # A microsecond of a wafer's trace is a cycle; other traces are shown in ns.
    scale, unit = (1.0, "cycles") if by_cycle else (1e3, "ns")
    rows = sorted(
        (track[e.get("pid"), e.get("tid")], scale * e["ts"], scale * (e["ts"] + e["dur"]), e["name"]) for e in spans
    )
    return {
        "kind": "timeline",
        "title": "Trace",
        "unit": unit,
        "last": max((end for _, _, end, _ in rows), default=0.0),
        "tracks": [_track(key, named, processes if len({pid for pid, _ in order}) > 1 else {}) for key in order],
        "spans": {
            "track": [row[0] for row in rows],
            "start": [row[1] for row in rows],
            "end": [row[2] for row in rows],
            "name": [str(row[3]) for row in rows],
        },
    }


def _track(key: tuple[Any, Any], named: Mapping[Any, str], processes: Mapping[Any, str]) -> str:
    """Returns the name of a track, after the name of its process, if the process has a name."""
    own = str(named.get(key, f"track {key[1]}"))
    return f"{processes[key[0]]} {own}" if key[0] in processes else own
