"""Damaged and mixed-up traces of several ranks are read, or refused in one sentence that names a file."""

import json
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import unisono as un
from unisono.planning.programs import read_workload

from .conftest import ROOT, SOAK

FOLDER = ROOT / "examples" / "programs"
Files = dict[str, bytes]


def _chakra() -> Files:
    """Returns Chakra traces of four ranks with collectives of rows and columns, and a ring of messages at the end."""

    def nodes(rank: int) -> list[dict[str, object]]:
        ring = {"comm_tag": 1, "comm_size": 64, "data_deps": [5]}
        return [
            {"Id": 1, "Name": "fwd", "NodeType": 4, "data_deps": [], "runtime": 20 + rank},
            {"Id": 2, "NodeType": 7, "data_deps": [1], "comm_type": 0, "comm_size": 4096, "pg_name": f"row{rank // 2}"},
            {"Id": 3, "Name": "bwd", "NodeType": 4, "data_deps": [1], "runtime": 30},
            {"Id": 4, "NodeType": 7, "data_deps": [2, 3], "comm_type": 2, "comm_size": 64, "pg_name": f"col{rank % 2}"},
            {"Id": 5, "NodeType": 7, "data_deps": [4], "comm_type": 6, "comm_size": 4096},
            {"Id": 6, "NodeType": 5, "comm_src": rank, "comm_dst": (rank + 1) % 4, **ring},
            {"Id": 7, "NodeType": 6, "comm_src": (rank + 3) % 4, "comm_dst": rank, **ring},
        ]

    return {f"t.{rank}.json": json.dumps({"workload_graph": nodes(rank)}).encode() for rank in range(4)}


def _kineto() -> Files:
    return {path.name: path.read_bytes() for path in sorted((FOLDER / "ddp").iterdir())}


def _cut(r: random.Random, data: bytes) -> bytes:
    return data[: r.randrange(len(data) + 1)]


def _without_a_part(r: random.Random, data: bytes) -> bytes:
    at = r.randrange(len(data) + 1)
    return data[:at] + data[at + r.randrange(200) :]


def _with_other_bytes(r: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(r.randint(1, 4)):
        if changed:
            changed[r.randrange(len(changed))] = r.randrange(256)
    return bytes(changed)


def _with_another_number(r: random.Random, data: bytes) -> bytes:
    numbers = list(re.finditer(rb"\d+", data))
    if not numbers:
        return data
    found, other = r.choice(numbers), r.choice([b"0", b"2", b"7", b"-1", b"1e308", b"18446744073709551615"])
    return data[: found.start()] + other + data[found.end() :]


def _in_another_order(r: random.Random, data: bytes) -> bytes:
    parts = data.split(b"}, {")
    r.shuffle(parts)
    return b"}, {".join(parts)


DAMAGES: list[Callable[[random.Random, bytes], bytes]] = [
    _cut,
    _without_a_part,
    _with_other_bytes,
    _with_another_number,
    _with_another_number,
    _in_another_order,
]


def _damaged(r: random.Random, files: Files) -> Files:
    files = dict(files)
    for _ in range(r.randint(1, 2)):
        name, other = r.choice(list(files)), r.choice(list(files))
        match r.randrange(8):
            case 0:
                files[name], files[other] = files[other], files[name]
            case 1 if len(files) > 1:
                del files[name]
            case _:
                files[name] = r.choice(DAMAGES)(r, files[name])
    return files


@pytest.mark.parametrize("whole", [_chakra, _kineto])
def test_damaged_traces_are_read_or_refused(whole: Callable[[], Files], tmp_path: Path) -> None:
    refused = read = 0
    for seed in range(1200 if SOAK else 300):
        files, folder = _damaged(random.Random(seed), whole()), tmp_path / str(seed)
        folder.mkdir()
        for name, data in files.items():
            (folder / name).write_bytes(data)
        for strict in (False, True):
            try:
                read_workload(folder, strict=strict)
                read += 1
            except un.InputError as error:
                refused += 1
                message = str(error)
                assert "\n" not in message, seed
                assert len(message) < 900, seed
                assert any(str(folder / name) in message for name in files), f"seed {seed}: {message}"
    assert min(refused, read) > 40, (refused, read)
