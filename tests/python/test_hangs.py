"""Hangs that `unisono diagnose` finds in dumps of PyTorch's flight recorder, and its reader of pickles."""

import contextlib
import json
import pickle
import random
from pathlib import Path
from typing import Any

import pytest
import unisono as un
from unisono.logs import pickles as plain_pickles
from unisono.logs.hangs import hangs, read_dump

from .conftest import call, refusal

NAMES = ("all_reduce", "_all_gather_base", "_reduce_scatter_base", "broadcast")
#: A call of a program: group, name of the collective, elements.
Step = tuple[str, str, int]


def program(draw: random.Random, groups: dict[str, list[int]], length: int) -> list[Step]:
    return [(draw.choice(sorted(groups)), draw.choice(NAMES), draw.randrange(1, 999)) for _ in range(length)]


def dumped(steps: list[Step], groups: dict[str, list[int]], unfinished: int | None, **changes: Any) -> dict[str, Any]:
    """Returns the dump of a rank that made these calls. Calls from index ``unfinished`` on did not end."""
    counts: dict[str, int] = {}
    entries = []
    for at, (group, name, elements) in enumerate(steps):
        counts[group] = counts.get(group, 0) + 1
        done = unfinished is None or at < unfinished
        entries.append(
            {
                "record_id": at,
                "process_group": (group, f"desc_{group}"),
                "collective_seq_id": counts[group],
                "profiling_name": f"nccl:{name}",
                "input_sizes": [[elements]],
                "output_sizes": [[elements]],
                "input_dtypes": ["Float"],
                "state": "completed" if done else "started",
                "is_p2p": False,
                **changes,
            }
        )
    config = {name: {"name": name, "desc": f"desc_{name}", "ranks": str(ranks)} for name, ranks in groups.items()}
    return {"version": "2.10", "pg_config": config, "entries": entries}


def found(dumps: dict[int, dict[str, Any]], kind: str = "json") -> list[Any]:
    """Returns the hangs found in the dumps of several ranks."""

    def written(dump: dict[str, Any]) -> bytes:
        return pickle.dumps(dump) if kind == "pickle" else json.dumps(dump).encode()

    return hangs([read_dump(written(dump), f"trace_rank_{rank}") for rank, dump in dumps.items()])


WORLD = {"0": [0, 1, 2, 3]}


@pytest.mark.parametrize("kind", ["pickle", "json"])
def test_a_rank_that_stops_is_missing_in_the_first_call_that_it_has_not_made(kind: str) -> None:
    draw = random.Random(1)
    for _ in range(25):
        steps = program(draw, WORLD, draw.randrange(2, 12))
        stop, slow = draw.randrange(len(steps)), draw.randrange(4)
        dumps = {rank: dumped(steps[: stop if rank == slow else stop + 1], WORLD, stop) for rank in range(4)}
        [hang] = found(dumps, kind)
        assert (hang.kind, hang.call, hang.waits_for) == ("missing", stop + 1, (slow,))
        assert hang.ranks == tuple(rank for rank in range(4) if rank != slow)
        # Without the slow rank's dump, others still wait for this rank.
        del dumps[slow]
        [hang] = found(dumps, kind)
        assert hang.waits_for == (slow,)
        assert f"rank {slow} left no dump" in hang.words


def test_a_program_without_a_fault_has_no_hang_and_an_end_that_all_wait_in_is_the_network() -> None:
    draw = random.Random(2)
    for _ in range(25):
        groups = {"a": [0, 1], "b": [1, 2, 3], "0": [0, 1, 2, 3]}
        steps = program(draw, groups, 9)
        own = {rank: [step for step in steps if rank in groups[step[0]]] for rank in range(4)}
        assert not found({rank: dumped(own[rank], groups, None) for rank in range(4)})
        last = draw.choice(sorted(groups))
        ended = {rank: [*own[rank], (last, "broadcast", 5)] if rank in groups[last] else own[rank] for rank in range(4)}
        [hang] = found({rank: dumped(ended[rank], groups, len(own[rank])) for rank in range(4)})
        assert (hang.kind, hang.group, list(hang.ranks)) == ("stuck", last, groups[last])


def test_an_unlike_call_is_found_where_it_begins() -> None:
    draw = random.Random(3)
    for _ in range(25):
        steps = program(draw, WORLD, 8)
        at, odd = draw.randrange(8), draw.randrange(4)
        other = ("0", "barrier", steps[at][2]) if draw.random() < 0.5 else (*steps[at][:2], 1000)
        dumps = {rank: dumped([*steps[:at], other] if rank == odd else steps[: at + 1], WORLD, at) for rank in range(4)}
        [hang] = found(dumps)
        assert (hang.kind, hang.call) == ("order", at + 1)
        assert f"and rank {odd} call" in hang.words


def test_ranks_that_enter_groups_in_another_order_wait_for_each_other() -> None:
    """Ranks wait in a circle if each rank first calls in the group that it shares with the next rank."""
    draw = random.Random(4)
    for _ in range(30):
        count = draw.randrange(2, 7)
        groups = (
            {f"g{at}": sorted((at, (at + 1) % count)) for at in range(count)}
            if count > 2
            else {"a": [0, 1], "b": [0, 1]}
        )
        names = sorted(groups)
        dumps = {
            rank: dumped([(names[rank], "all_reduce", 7)], groups, 0, collective_seq_id=1) for rank in range(count)
        }
        [circle, *rest] = found(dumps)
        assert (circle.kind, sorted(circle.ranks)) == ("circle", list(range(count)))
        assert "wait for each other and never go on" in circle.words
        assert {hang.kind for hang in rest} == {"missing"}


def messages(rank: int, *names: str) -> dict[str, Any]:
    """Returns the dump of a rank with these unfinished messages."""
    dump = dumped([("0", "all_reduce", 8), *(("0", name, 8) for name in names)], WORLD, 1)
    for at, entry in enumerate(dump["entries"][1:], 1):
        entry.update(is_p2p=True, p2p_seq_id=at, profiling_name=f"nccl:{names[at - 1]}")
    return dump


def test_messages_without_the_other_side_are_found() -> None:
    """Two ranks that both send first wait in a circle; a send and the matching receive do not."""
    both = {0: messages(0, "send 0->1", "recv 0<-1"), 1: messages(1, "recv 1<-0", "send 1->0")}
    assert not found(both)
    [circle, *rest] = found({0: messages(0, "send 0->1"), 1: messages(1, "send 1->0"), 2: messages(2), 3: messages(3)})
    assert (circle.kind, circle.ranks) == ("circle", (0, 1))
    assert "rank 0 waits in message 1 of group 0 for rank 1" in circle.words
    assert [hang.waits_for for hang in rest] == [(1,), (0,)]
    [alone] = found({0: messages(0), 2: messages(2, "recv 2<-3")})
    assert "which is in no send: rank 3 left no dump" in alone.words
    with pytest.raises(un.InputError, match="beyond the 4 members"):
        found({0: messages(0, "send 0->9")})


def test_calls_before_the_buffer_of_a_rank_are_not_missing() -> None:
    steps = [("0", "all_reduce", 8)] * 9
    dumps = {rank: dumped(steps, WORLD, None) for rank in range(4)}
    dumps[2]["entries"] = dumps[2]["entries"][5:]
    dumps[1]["entries"][2]["state"] = "started"
    assert not found(dumps)


def test_a_rank_whose_gpu_has_not_started_is_named() -> None:
    dumps = {rank: dumped([("0", "all_reduce", 8)], WORLD, 0) for rank in range(4)}
    dumps[3]["entries"][0]["state"] = "scheduled"
    [hang] = found(dumps)
    assert (hang.kind, hang.waits_for) == ("stuck", (3,))


def test_the_command_prints_who_waits_for_whom(tmp_path: Path) -> None:
    steps = [("0", "all_reduce", 8), ("0", "broadcast", 9)]
    for rank in range(4):
        dump = dumped(steps[: 1 if rank == 2 else 2], WORLD, 1)
        (tmp_path / f"nccl_trace_rank_{rank}").write_bytes(pickle.dumps(dump, protocol=2))
    files = [str(path) for path in sorted(tmp_path.iterdir())]
    ran = call("diagnose", *files)
    assert (ran.code, ran.err) == (1, "")
    assert ran.out == (
        "4 dumps: 1 hang\n\n1. group 0 (desc_0), call 2: ranks 0-1, 3 wait in broadcast of [[9]] -> [[9]] Float for "
        "rank 2: rank 2 made its last call, 1, all_reduce of [[8]] -> [[8]] Float (completed), and no further one\n"
    )
    report = call("diagnose", *files, "--json").json
    assert report["hangs"][0]["waits_for"] == [2]
    assert call("diagnose", *files[2:3]).code == 0
    for options, message in (
        (["--machine", "dgx-h100"], "--machine is for logs of times"),
        ([str(tmp_path / "nccl_trace_rank_0")], "two dumps are of rank 0"),
    ):
        assert message in refusal("diagnose", *files, *options)


def plain(draw: random.Random, depth: int = 0) -> Any:
    """Draws nested data whose pickles call no functions."""
    if depth < 3 and draw.random() < 0.6:
        values = [plain(draw, depth + 1) for _ in range(draw.randrange(5))]
        kind = draw.randrange(3)
        return values if kind == 0 else tuple(values) if kind == 1 else {str(at): of for at, of in enumerate(values)}
    texts = ["", "é" * draw.randrange(300), b"ab"]
    return draw.choice([None, True, False, 0, -5, 1 << draw.randrange(90), -(1 << 70), 1.5, *texts])


def test_plain_pickles_are_read_as_python_reads_them() -> None:
    draw = random.Random(5)
    for _ in range(60):
        value = plain(draw)
        for protocol in range(2, 6):
            if protocol == 2 and b"ab" in repr(value).encode():
                continue
            assert plain_pickles.loads(pickle.dumps(value, protocol), "x") == value


def test_type_tags_of_torchscript_are_dropped() -> None:
    inner = pickle.dumps({"a": [1, 2]}, 2)[2:-1]
    tag = b"ctorch.jit._pickle\nrestore_type_tag\nq\x20"
    name = b"X\x0e\x00\x00\x00Dict[str, Any]"
    assert plain_pickles.loads(b"\x80\x02" + tag + inner + name + b"\x86R.", "x") == {"a": [1, 2]}


class Evil:
    """An object whose pickle calls ``open``."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (str(self.path), "w")


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_no_pickle_runs_code(protocol: int, tmp_path: Path) -> None:
    target = tmp_path / "made"
    (tmp_path / "trace_0").write_bytes(pickle.dumps({"version": "2", "entries": [Evil(target)]}, protocol))
    ran = call("diagnose", str(tmp_path / "trace_0"))
    assert (ran.code, ran.out, target.exists()) == (2, "", False)
    assert "accepted is plain data, which runs no code" in ran.err
    assert ran.err.count("\n") == 1


def test_damaged_dumps_have_one_sentence() -> None:
    """Random changes, cuts and repetitions of bytes give an error of one sentence, or are read."""
    draw = random.Random(6)
    whole = pickle.dumps(dumped(program(draw, WORLD, 6), WORLD, 4), 4)
    for _ in range(250):
        data = bytearray(whole)
        for _ in range(draw.randrange(1, 4)):
            at = draw.randrange(len(data))
            match draw.randrange(4):
                case 0:
                    data[at] = draw.randrange(256)
                case 1:
                    del data[at:]
                case 2:
                    data[at:at] = data[at : at + draw.randrange(40)]
                case _:
                    data[at : at + 8] = draw.choice([b"\xff" * 8, b"\x8e" + b"\xff" * 7, b"r\xff\xff\xff\x7f"])
            if not data:
                break
        with contextlib.suppress(un.InputError):
            hangs([read_dump(b"\x80" + bytes(data[1:]), "trace_0")])
