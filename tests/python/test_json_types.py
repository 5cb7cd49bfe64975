"""Wrong types in JSON: readers refuse a valid file in which one value is replaced by a value of another type."""

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import unisono as un
from unisono.base.files import read_json
from unisono.planning.decision_tables import read_table
from unisono.planning.gpu_plans import check_gpu_plan
from unisono.planning.programs import read_workload
from unisono.planning.shards import merge_parts, signed

from .test_gpu_plans import allgather

Place = tuple[str | int, ...]


@dataclass(frozen=True)
class Reader:
    """A function that reads a JSON file, and one that makes a valid document."""

    read: Callable[[Path], object]
    document: Callable[[], Any]
    #: Paths and types of wrong values that are accepted, such as ``points.*.cycles null``; stars are indices.
    accepts: frozenset[str] = frozenset()


def _schedule(machine: str, **part: Any) -> Any:
    return json.loads(un.plan("allreduce", machine, elements=2, **part).schedule.to_json())


def _gpu_plan() -> Any:
    plan = allgather("signal", "wait")
    plan |= {"min_message_size": 0, "max_message_size": 1 << 20, "buffer_alignment": 16, "reuse_resources": False}
    plan["gpus"][0]["semaphores"] = [{"init_value": 0}]
    return plan


def _check(path: Path) -> None:
    if found := check_gpu_plan(path)["diagnostics"]:
        raise un.InputError(found[0]["message"])


def _check_bound(path: Path) -> None:
    if reason := un.check_bound(path, "dgx-a100")["reason"]:
        raise un.InputError(reason)


def _tasks() -> Any:
    one = {"buffer": "P", "mode": "read", "mapper": {"kind": "neighborhood", "halo": [1]}}
    accesses = [one, {"buffer": "V", "mode": "write", "mapper": {"kind": "one_to_one"}}]
    buffers = [{"name": name, "shape": [64], "element_bytes": 8, "host_initialized": True} for name in "PV"]
    task = {
        "name": "t",
        "range": [64],
        "offset": [0],
        "granularity": [1],
        "split": "1d",
        "op": "sum",
        "operations": 2.5,
    }
    return {"buffers": buffers, "tasks": [{**task, "on": "host", "accesses": accesses}]}


def _chakra(rank: int = 0) -> Any:
    ring = {"comm_tag": 1, "comm_size": 64, "data_deps": [2]}
    return {
        "workload_graph": [
            {"Id": 1, "Name": "fwd", "NodeType": 4, "data_deps": [], "ctrl_deps": [], "runtime": 20},
            {"Id": 2, "NodeType": 7, "data_deps": [1], "comm_type": 0, "comm_size": 4096, "pg_name": "row"},
            {"Id": 3, "NodeType": 5, "is_cpu_op": False, "comm_src": rank, "comm_dst": 1 - rank, **ring},
            {"Id": 4, "NodeType": 6, "comm_src": 1 - rank, "comm_dst": rank, **ring},
        ]
    }


def _traces(path: Path) -> object:
    """Reads a file as one of the two traces or the file of groups of a program, with valid other files."""
    files = {"t.0.json": _chakra(0), "t.1.json": _chakra(1), "groups.json": _groups()}
    for name, document in files.items():
        if name != path.name:
            (path.parent / name).write_text(json.dumps(document))
    return read_workload(path.parent, strict=True)


def _groups() -> Any:
    return {"row": [0, 1], "column": [0]}


def _kineto() -> Any:
    of_nccl = {
        "Collective name": "allreduce",
        "In msg nelems": 64,
        "Out msg nelems": 64,
        "dtype": "Float",
        "Group size": 1,
        "Process Group Name": "0",
        "Process Group Ranks": [0],
    }
    kernel = {"cat": "kernel", "name": "ncclKernel_AllReduce", "ts": 10.5, "dur": 5, "args": of_nccl}
    group = {"pg_name": "0", "ranks": [0]}
    return {
        "distributedInfo": {"rank": 0, "world_size": 1, "pg_config": [group]},
        "traceEvents": [{"cat": "kernel", "name": "gemm", "ts": 1, "dur": 2}, kernel],
    }


def _part() -> Any:
    point: dict[str, Any] = {
        "shape": [4],
        "elements": 1,
        "model": "links",
        "best": "ring",
        "params": {"a": "b"},
        "cycles": 1.0,
        "seconds": 1.0,
        "seconds_by_algorithm": {"ring": 1.0},
        "source": "terms",
        "baseline_source": "terms",
        "source_by_algorithm": {"ring": "terms"},
        "cycles_by_algorithm": {"ring": 1.0},
        "baseline": "ring",
        "baseline_cycles": 1.0,
        "baseline_seconds": 1.0,
        "baseline_ratio": 1.0,
    }
    names = {"collective": "allreduce", "machine": "archer", "asked": "x"}
    return {"unisono_sweep": 2, **names, "lengths": 1, "total": 1, "notes": ["n"], "shard": [1, 1], "points": [point]}


def _merge(path: Path) -> object:
    """Merges a part with a valid checksum."""
    part = read_json(path)
    path.write_text(json.dumps(signed(part) if isinstance(part, dict) else part))
    return merge_parts([path])


def _table() -> Any:
    row = {
        "collective": "allreduce",
        "ranks": 4,
        "per_node": 2,
        "class": "commutative",
        "first_bytes": 0,
        "last_bytes": 8,
        "algorithm": "ring",
        "params": {"a": "b"},
    }
    return {"unisono_table": 1, "rows": [row]}


def _accepts(*lines: str) -> frozenset[str]:
    """Returns each path with each of the types that follow it; a null character in a path stands for a blank."""
    parts = [(line.split(" ")[0].replace("\0", " "), line.split(" ")[1:]) for line in lines]
    return frozenset(f"{place} {kind}" for place, kinds in parts for kind in kinds)


_PLACED = _accepts("machine null", "placement null")
#: Keys of a point that a machine may lack.
_OPTIONAL = ("cycles", "cycles_by_algorithm", "baseline_cycles", "baseline_ratio")
_GROUP = "traceEvents.*.args.Process\0Group\0Ranks"
#: Values that may be wrong, since a reader takes a group's ranks from the first of several keys that has them.
_KINETO = _accepts(
    "distributedInfo.pg_config null",
    "distributedInfo.pg_config.*.pg_name null true number list object",
    "distributedInfo.pg_config.*.ranks null",
    "distributedInfo.world_size null",
    "traceEvents.*.args.Group\0size null",
    "traceEvents.*.args.Out\0msg\0nelems null",
    "traceEvents.*.args.Process\0Group\0Name null number",
    f"{_GROUP} null true number text object",
    f"{_GROUP}.* null true text list object",
)
#: The readers, by the name of their format.
READERS = {
    "gpu-plan": Reader(_check, _gpu_plan),
    "schedule": Reader(un.load, lambda: _schedule("archer", shape=(2,)), _accepts("machine null")),
    "schedule-on-a-network": Reader(un.load, lambda: _schedule("dgx-a100", shape=(2,)), _PLACED),
    "schedule-on-a-wafer": Reader(un.load, lambda: _schedule("wse2", shape=(2, 1)), _PLACED),
    "schedule-on-switches": Reader(un.load, lambda: _schedule("piuma", shape=(4,)), _PLACED),
    "bound": Reader(_check_bound, lambda: json.loads(un.plan("allgather", "dgx-a100", bytes=64).certificate())),
    "tasks": Reader(
        lambda path: un.discover(path, 2),
        _tasks,
        _accepts(*(f"tasks.*.{key} null" for key in ("granularity", "name", "offset", "operations"))),
    ),
    "t.0": Reader(
        _traces, _chakra, _accepts(*(f"workload_graph.*.{key} null" for key in ("comm_dst", "is_cpu_op", "pg_name")))
    ),
    # A file without a group that the traces name is taken for a file of another program.
    "groups": Reader(_traces, _groups, _accepts(" list null number text true")),
    "kineto": Reader(lambda path: read_workload(path, strict=True), _kineto, _KINETO),
    "part": Reader(_merge, _part, _accepts(*(f"points.*.{key} null" for key in _OPTIONAL))),
    "table": Reader(
        read_table,
        _table,
        _accepts(
            *(f"rows.*.{key} null" for key in ("class", "last_bytes", "params", "per_node")), "rows.*.params.a number"
        ),
    ),
}
KINDS: dict[str, Any] = {"null": None, "true": True, "number": 5.5, "text": "x", "list": [], "object": {}}


def _kind(value: object) -> str:
    return next(k for k, like in KINDS.items() if type(like) is type(value) or (k == "number" and type(value) is int))


def _places(value: Any, place: Place = ()) -> Iterator[Place]:
    yield place
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from _places(item, (*place, key))


def _name(place: Place) -> str:
    return ".".join("*" if isinstance(key, int) else key for key in place)


def _at(document: Any, place: Place) -> Any:
    for key in place:
        document = document[key]
    return document


def _others(value: Any) -> Iterator[tuple[str, Any]]:
    """Yields values of all other types with their names, also the value's own contents as another type."""
    yield from ((kind, other) for kind, other in KINDS.items() if kind != _kind(value))
    if isinstance(value, dict):
        yield "list", list(value.values())
    elif isinstance(value, list):
        yield "object", {str(at): item for at, item in enumerate(value)}
    else:
        yield "list", [value]


def _refusal(reader: Reader, path: Path) -> str | None:
    try:
        reader.read(path)
    except un.InputError as error:
        return str(error)
    return None


@pytest.mark.parametrize("name", READERS)
def test_values_of_other_types_are_refused(name: str, tmp_path: Path) -> None:
    reader, path = READERS[name], tmp_path / f"{name}.json"
    document = reader.document()
    path.write_text(json.dumps(document))
    reader.read(path)
    found = set()
    # Only one of the paths that differ only in indices is tested.
    alike = {_name(place): place for place in _places(document)}
    for named, place in alike.items():
        for kind, other in _others(_at(document, place)):
            changed = copy.deepcopy(document)
            if place:
                _at(changed, place[:-1])[place[-1]] = other
            path.write_text(json.dumps(changed if place else other))
            said = _refusal(reader, path)
            if said is None:
                found.add(f"{named} {kind}")
            else:
                assert "\n" not in said, (place, other)
                assert len(said) < 900, (place, other)
    assert found == reader.accepts


def _twice(value: Any, place: Place) -> str:
    """Returns a text of JSON in which the key at ``place`` is there twice."""
    marked = copy.deepcopy(value)
    inner = _at(marked, place[:-1])
    items = list(inner.items())
    inner.clear()
    for key, item in items:
        if key == place[-1]:
            inner["twice"] = item
        inner[key] = item
    return json.dumps(marked).replace('"twice":', f"{json.dumps(place[-1])}:", 1)


#: Logs of other programs, which may repeat keys.
TRACES = {"t.0", "groups", "kineto"}


@pytest.mark.parametrize("name", sorted(READERS.keys() - TRACES))
def test_keys_that_are_there_twice_are_refused(name: str, tmp_path: Path) -> None:
    reader, path = READERS[name], tmp_path / f"{name}.json"
    document = reader.document()
    taken = []
    for named, place in {_name(place): place for place in _places(document)}.items():
        if place and isinstance(place[-1], str):
            path.write_text(_twice(document, place))
            if _refusal(reader, path) is None:
                taken.append(named)
    assert taken == []
