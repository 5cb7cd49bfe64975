"""Plans for GPUs whose sums start from +0, which changes bits, and keys whose mere presence changes the loader."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import unisono as un
from unisono import InputError

from .conftest import json_of

NOP: dict[str, Any] = {"name": "nop"}
Chunk = dict[str, Any]


def local(kind: str, index: int = 0) -> Chunk:
    """Returns a chunk of a local buffer."""
    return {"type": kind, "index": index, "size": 1}


def remote(buffer: int, index: int = 0) -> Chunk:
    """Returns a chunk of a remote buffer."""
    return {"buffer_id": buffer, "index": index, "size": 1}


def plan(ops: list[list[dict[str, Any]]], coll: str = "allreduce", switch: bool = False, **keys: Any) -> dict[str, Any]:
    """Returns a plan of one thread block a GPU; remote buffers are the scratch memories of the other GPUs."""
    gpus = []
    ranks = range(len(ops))
    for gpu, own in enumerate(ops):
        peers = [p for p in ranks if p != gpu]
        ids = list(range(len(peers)))
        channels: list[dict[str, Any]] = [{"channel_type": "memory", "connected_to": peers}]
        here = [{"channel_type": "memory", "channel_ids": ids}]
        if switch:
            group = {"size": 1, "ranks": list(ranks)}
            channels.append({"channel_type": "switch", "buffer_type": "s", "rank_groups": [group]})
            here.append({"channel_type": "switch", "channel_ids": [0]})
        refs = [{"access_channel_type": "memory", "remote_buffer_ids": ids}]
        block = {"id": 0, "ops": own, "channels": here, "remote_buffer_refs": refs}
        buffers = [{"rank": p, "type": "s", "access_channel_types": ["memory"]} for p in peers]
        whole = len(ops) if coll == "allgather" else 1
        chunks = {"input_chunks": 1, "output_chunks": whole, "scratch_chunks": 2}
        gpus.append({"id": gpu, **chunks, "threadblocks": [block], "channels": channels, "remote_buffers": buffers})
    stated = {"protocol": "LL", "inplace": False, "use_double_scratch_buffer": True, **keys}
    return {"name": "x", "collective": coll, **stated, "gpus": gpus}


SEND = {"name": "ppkt", "src_buff": [local("i")], "dst_buff": [remote(0)], "channel_type": "memory"}
#: Operations that add a packet and the own input, starting from +0 (`FROM_ZERO`) and not (`PLAIN`).
FROM_ZERO = [{"name": "repkt", "src_buff": [local("i"), local("s")], "dst_buff": [local("o")]}, NOP]
PLAIN = [
    {"name": "upkt", "src_buff": [local("s")], "dst_buff": [local("o")]},
    NOP,
    {"name": "re", "src_buff": [local("o"), local("i")], "dst_buff": [local("o")]},
    NOP,
]


def checked(path: Path, made: dict[str, Any], dtype: str = "f32") -> Any:
    path.write_text(json.dumps(made))
    return un.check_gpu_plan(path, dtype=dtype)


def test_a_sum_of_packets_starts_from_zero(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    ways = {(a, b): checked(path, plan([[NOP, SEND, *x], [NOP, SEND, *y]])) for a, x in WAYS for b, y in WAYS}
    assert all(found["diagnostics"] == [] for found in ways.values())
    assert {ab: found["repeatable"] for ab, found in ways.items()} == {ab: ab[0] == ab[1] for ab in ways}
    assert ways["zero", "zero"]["expression_class"] != ways["plain", "plain"]["expression_class"]
    # Integers have only one zero.
    assert checked(path, plan([[NOP, SEND, *FROM_ZERO], [NOP, SEND, *PLAIN]]), "i32")["repeatable"]


WAYS = [("zero", FROM_ZERO), ("plain", PLAIN)]


def test_a_copy_by_a_sum_is_no_copy(tmp_path: Path) -> None:
    gpus = []
    for gpu in range(2):
        own = {"name": "repkt", "src_buff": [local("i")], "dst_buff": [local("o", gpu)]}
        other = {"name": "upkt", "src_buff": [local("s")], "dst_buff": [local("o", 1 - gpu)]}
        gpus.append([NOP, SEND, own, other, NOP])
    found = checked(tmp_path / "x.json", plan(gpus, "allgather"))
    assert not found["complete"]
    assert "0 plus that, so -0 becomes +0" in found["diagnostics"][0]["message"]
    assert checked(tmp_path / "x.json", plan(gpus, "allgather"), "i32")["complete"]


def test_a_switch_adds_in_an_order_of_its_own(tmp_path: Path) -> None:
    def gpu(n: int, *, alone: bool) -> list[dict[str, Any]]:
        def meet(name: str) -> list[dict[str, Any]]:
            return [{"name": name, "channel_ids": [0, 1], "channel_type": "memory"}]

        own = {"name": "copy", "src_buff": [local("i")], "dst_buff": [local("s")]}
        added = {"name": "rre", "src_buff": [local("i"), remote(0), remote(1)], "dst_buff": [local("o")]}
        there = {"switch_channel_id": 0, "size": 1}
        asked = {"src_buff": [{**there, "index": 0}], "dst_buff": [{**there, "index": 1}], "channel_type": "switch"}
        ops = [NOP, own, NOP, *meet("signal"), *meet("wait"), NOP]
        ops += [{**added, "channel_type": "memory"}] if n == 0 and alone else []
        ops += [{"name": "glres", **asked}] if n == 1 else []
        ops += [NOP, *meet("signal"), *meet("wait"), NOP]
        takes = {"name": "copy", "src_buff": [local("s", 1)], "dst_buff": [local("o")]}
        return ops if n == 0 and alone else [*ops, takes, NOP]

    path = tmp_path / "x.json"
    keys: dict[str, Any] = {"protocol": "Simple", "use_double_scratch_buffer": False, "switch": True}
    for alone in (True, False):
        found = checked(path, plan([gpu(n, alone=alone) for n in range(3)], **keys))
        assert (found["complete"], found["repeatable"], found["expression_class"]) == (True, not alone, None)


@pytest.mark.parametrize("size", ["4KiB", "1MiB"])
def test_emitted_packets_have_the_class_of_their_own_sum(size: str, tmp_path: Path) -> None:
    path = str(tmp_path / "x.json")
    # Without rates of thread blocks, short vectors take packets.
    words = ["--machine", "archer", "--ranks", "2", "--bytes", size, "--algorithm", "recursive-doubling"]
    json_of("emit", "allreduce", *words, "--format", "mscclpp", "-o", path)
    schedule = un.load(path)
    found, proof = un.check_gpu_plan(path, schedule.elements), schedule.verify()
    assert (found["repeatable"], proof.repeatable) == (True, True)
    packets = json.loads(Path(path).read_text())["protocol"] == "LL"
    assert packets is (size == "4KiB")
    # With packets, sums start from +0 and have another expression class.
    assert (found["expression_class"] != proof.expression_class) is packets
    notes = json_of("plan", "allreduce", *words, "--for", "mscclpp")["notes"]
    assert any("begins with +0" in note for note in notes) is packets


def first_op(made: dict[str, Any], name: str) -> dict[str, Any]:
    ops = made["gpus"][0]["threadblocks"][0]["ops"]
    return next(op for op in ops if op["name"] == name)


#: Objects within a plan that may have certain keys.
PLACES: dict[str, tuple[Callable[[dict[str, Any]], dict[str, Any]], list[str]]] = {
    "plan": (lambda made: made, ["min_message_size", "max_message_size"]),
    "operation": (
        lambda made: first_op(made, "ppkt"),
        ["barrier_id", "num_threadblocks", "iter_context", "tbg_info", "channel_type", "semaphore_ids", "channel_ids"],
    ),
    "buffer": (lambda made: first_op(made, "ppkt")["src_buff"][0], ["buffer_id", "switch_channel_id"]),
    "block": (lambda made: made["gpus"][0]["threadblocks"][0], ["remote_buffer_refs"]),
    "channels": (lambda made: made["gpus"][0]["threadblocks"][0]["channels"][0], ["buff"]),
}


@pytest.mark.parametrize(("where", "key"), [(where, key) for where, (_, keys) in PLACES.items() for key in keys])
def test_a_null_is_refused_where_the_loader_reads_the_key(where: str, key: str, tmp_path: Path) -> None:
    made = json.loads(json.dumps(plan([[NOP, SEND, *FROM_ZERO]] * 2)))
    PLACES[where][0](made)[key] = None
    (tmp_path / "x.json").write_text(json.dumps(made))
    with pytest.raises(InputError, match=rf"{key}: (invalid type: null|expected value)"):
        un.check_gpu_plan(tmp_path / "x.json")


def test_an_empty_list_is_a_key_that_is_there(tmp_path: Path) -> None:
    made = json.loads(json.dumps(plan([[NOP, SEND, *FROM_ZERO]] * 2)))
    first_op(made, "ppkt")["semaphore_ids"] = []
    found = checked(tmp_path / "x.json", made)
    assert [(fault["code"], fault["rank"]) for fault in found["diagnostics"]] == [("limit", 0)]
    assert "has no semaphore_ids" in found["diagnostics"][0]["message"]
