"""Numbers of about 200 requests on every kind of machine, compared with those recorded in `tests/contract`.

A report may gain keys, but no recorded key may be lost or change its value. To record all again on purpose:
`UNISONO_RECORD=1 pytest tests/python/test_recorded.py`; CHANGELOG.md must name the changed numbers.
"""

import hashlib
import json
import os
from typing import Any

import pytest

from .conftest import ROOT, SOAK, call

FOLDER = ROOT / "tests" / "contract"
#: Longer lists are recorded by their length, first element, last element and a digest.
LONGEST = 32
COLLECTIVES = ("allreduce", "reduce", "broadcast", "allgather", "reduce-scatter", "alltoall", "barrier")
ON_WAFERS = ("allreduce", "reduce", "broadcast")

#: By machine: the collectives, its parts (the first one for all commands), and other requests.
MACHINES: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "wse2": (
        ON_WAFERS,
        ("--shape 6x5", "--shape 17", "--shape 512"),
        (
            "plan reduce --shape 512 --elements 256 --algorithm star",
            "plan reduce --shape 64x64 --elements 256 --model paper",
            "plan reduce --shape 12x12 --elements 64 --root 5,5",
            "plan allreduce --shape 16 --elements 1024 --algorithm chain --param root=middle",
            "bound message --shape 16 --elements 64",
            "simulate reduce --shape 8x8 --elements 128 --algorithm snake",
            "simulate allreduce --shape 12 --elements 300 --algorithm ring",
        ),
    ),
    "archer": (
        COLLECTIVES,
        ("--ranks 12", "--ranks 64"),
        (
            "plan gather --ranks 9 --elements 40 --root 3",
            "plan scatter --ranks 9 --elements 40 --root 3",
            "plan scan --ranks 9 --elements 40",
            "plan allreduce --ranks 96 --bytes 8",
            "plan allreduce --ranks 4096 --bytes 1KiB --algorithm ring",
            "plan allreduce --ranks 32 --bytes 1MiB --dtype f64 --model postal",
            "simulate allreduce --ranks 32 --bytes 64KiB --algorithm rabenseifner",
        ),
    ),
    "archer-median": (("allreduce",), ("--ranks 24",), ()),
    "paper-sim": (("allreduce", "broadcast"), ("--ranks 16",), ()),
    "hx2mesh-small": (
        ("allreduce", "reduce", "broadcast", "allgather", "alltoall"),
        ("--shape 4x4", "--ranks 20", "--shape 8x16"),
        (
            "plan allreduce --bytes 16MiB",
            "plan allreduce --shape 16x16 --bytes 16KiB --algorithm bucket",
            "simulate allreduce --shape 16x16 --bytes 16KiB --algorithm bucket",
            "bound alltoall --bytes 1MiB",
            "simulate alltoall --shape 4x4 --bytes 4KiB",
        ),
    ),
    "torus2d-small": (("allreduce",), ("--shape 4x4",), ()),
    "fattree-small": (("allreduce", "alltoall"), ("--ranks 16",), ()),
    "dragonfly-small": (("allreduce",), ("--ranks 24",), ()),
    "piuma": (
        ("allreduce", "broadcast", "scan", "barrier"),
        ("--nodes 1", "--nodes 2"),
        (
            "plan allreduce --nodes 16 --bytes 1MiB",
            "plan allreduce --nodes 256 --bytes 8",
            "simulate allreduce --nodes 16 --bytes 1MiB",
            "plan allreduce --nodes 4 --bytes 128KiB --algorithm rabenseifner",
            "plan allreduce --nodes 4 --bytes 128KiB --param embeddings=2",
        ),
    ),
}
#: Requests of over half a second of CPU time, which only `make soak` compares; others plan the same in smaller sizes.
DEAR = {
    "hx2mesh-small": {
        "plan allreduce --bytes 16MiB",
        "plan broadcast --shape 8x16 --elements 100",
        "plan reduce --shape 8x16 --elements 100",
        "plan allgather --shape 8x16 --elements 100",
        "sweep broadcast --shapes 4x4,8x8 --elements 1,100",
        "sweep reduce --shapes 4x4,8x8 --elements 1,100",
        "sweep allgather --shapes 4x4,8x8 --elements 1,100",
    },
    "torus2d-small": {"sweep allreduce --shapes 4x4,8x8 --elements 1,100"},
    "dragonfly-small": {"plan allreduce --ranks 24 --bytes 2KiB", "plan allreduce --ranks 24 --bytes 64KiB"},
    "piuma": {"simulate allreduce --nodes 16 --bytes 1MiB"},
}


def requests(machine: str) -> list[str]:
    """Returns the requests on one machine, as command lines."""
    collectives, parts, more = MACHINES[machine]
    made = []
    for collective in collectives:
        made += [f"plan {collective} {part} --elements 100" for part in parts]
        made += [f"{command} {collective} {parts[0]} --elements 100" for command in ("bound", "verify", "simulate")]
    if machine != "piuma":
        shapes = "4x4,8x8" if "x" in parts[0] else "4,8"
        made += [f"sweep {collective} --shapes {shapes} --elements 1,100" for collective in collectives]
    made += [f"plan {collectives[0]} {parts[0]} --bytes {size}" for size in ("8", "2KiB", "64KiB")]
    return made + list(more)


def condense(value: Any) -> Any:
    """Returns the value without keys that differ between runs, and with digests of long lists."""
    if isinstance(value, dict):
        return {k: condense(v) for k, v in value.items() if not k.startswith("wall_") and k not in ("seed", "files")}
    if isinstance(value, list):
        short = [condense(v) for v in value]
        if len(short) <= LONGEST:
            return short
        text = json.dumps(short, sort_keys=True).encode()
        return {
            "length": len(short),
            "first": short[0],
            "last": short[-1],
            "digest": hashlib.sha256(text).hexdigest()[:16],
        }
    return float(f"{value:.12g}") if isinstance(value, float) else value


def lost(recorded: Any, answer: Any, place: str = "") -> list[str]:
    """Returns the paths at which the report lacks a recorded key or has another value."""
    if isinstance(recorded, dict) and isinstance(answer, dict):
        return [
            line
            for key, value in recorded.items()
            for line in (lost(value, answer[key], f"{place}.{key}") if key in answer else [f"{place}.{key} is missing"])
        ]
    if isinstance(recorded, list) and isinstance(answer, list) and len(recorded) == len(answer):
        pairs = enumerate(zip(recorded, answer, strict=True))
        return [line for n, (one, other) in pairs for line in lost(one, other, f"{place}[{n}]")]
    return [] if recorded == answer else [f"{place} is {answer!r}, recorded is {recorded!r}"]


def answer(machine: str, request: str) -> Any:
    command, collective, *options = request.split()
    ran = call(command, collective, "--machine", machine, *options, "--json")
    assert ran.code in (0, 2), ran.err
    return condense(ran.json) if ran.code == 0 else {"refused": True}


@pytest.mark.parametrize("machine", MACHINES)
def test_numbers_are_those_recorded(machine: str) -> None:
    path = FOLDER / f"{machine}.json"
    recording = bool(os.environ.get("UNISONO_RECORD"))
    left_out = set() if SOAK or recording else DEAR.get(machine, set())
    assert left_out <= set(requests(machine))
    answers = {request: answer(machine, request) for request in requests(machine) if request not in left_out}
    if recording:
        path.write_text(json.dumps(answers, indent=1, sort_keys=True) + "\n")
    recorded = json.loads(path.read_text())
    assert set(recorded) == set(requests(machine))
    differences = [f"{request}: {line}" for request in answers for line in lost(recorded[request], answers[request])]
    assert not differences, "\n".join(differences[:40])


def test_a_change_would_be_seen() -> None:
    recorded = {"a": [1, {"b": 2.0}], "c": None}
    assert not lost(recorded, {"a": [1, {"b": 2.0, "new": 1}], "c": None, "new": 2})
    assert lost(recorded, {"a": [1, {"b": 2.5}], "c": None}) == [".a[1].b is 2.5, recorded is 2.0"]
    assert lost(recorded, {"a": [1, {"b": 2.0}]}) == [".c is missing"]
    assert lost(recorded, {"a": [1], "c": None})


def test_records_cover_every_kind_of_machine() -> None:
    assert sum(len(requests(machine)) for machine in MACHINES) >= 190
