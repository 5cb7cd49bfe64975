"""The program's parser, its loader of files and the independent checker read the same grammar."""

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
import unisono as un
from unisono import certificate_checker as checker

from .conftest import ROOT

ECHO = """unisono-schedule 1
collective allreduce ranks=2 elements=1 root=0 operator=sum dtype=f32
phases x
stream s0: 0 -> 1
stream s1: 1 -> 0
node 0:
  i0: in[0..1] -> s0
  i1: s1 + in[0..1] -> out[0..1]
node 1:
  i2: in[0..1] -> s1
  i3: s0 + in[0..1] -> out[0..1] ; rank 1 adds
"""
SEEDS = [ECHO] + [
    text
    for file in sorted((ROOT / "tests/filetests").glob("*.sched"))
    if len(text := file.read_bytes().decode()) < 4000 and "unisono-schedule" in text
]
#: Texts that mutations insert.
BITS = [
    *[" ", "\t", "\r", "\r\n", "\v", "\f", "\0", "\x1c", "\x7f", "\u00a0", "\u2028", "\x85", ";", "; ", "0", "00", "+"],
    *["-", "->", ",", ", ", ":", "i0", "s0", "lane\n", "  lane\n", "after=i0", "len=1", " len=0", " len=2", "\u2003"],
    *["capacity=1", "p0", " p", "barrier", "nodes 2\n", "phases\n", "phases \u2003\n", " origin \u00e9\n"],
    *[
        "nodes 4\n",
        "phases a b\n",
        "in[0..1]",
        "out[0..1]",
        "tmp[0..1]",
        "machine",
        "\nmachine\n",
        "placement",
        "tmp=4",
    ],
    *["\nnode 0:\n", "origin x\n", "\ufeff", "\n\n", "=", ".."],
]
NUMBERS = ["0", "1", "2", "3", "01", "00000000001", "4294967295", "4294967296", "99999999999"]
SECTION = re.compile(r"^(machine|placement)", re.M)
#: Control characters other than a tab and a line end of either kind.
CONTROL = re.compile(r"[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\n)")


def mutated(text: str, draw: random.Random) -> str:
    for _ in range(draw.choice([1, 1, 2, 3])):
        at, lines = draw.randrange(len(text) + 1), text.split("\n")
        match draw.randrange(5):
            case 0 | 1:
                text = text[:at] + draw.choice(BITS) + text[at:]
            case 2:
                text = text[:at] + text[at + draw.choice([1, 1, 2, 5]) :]
            case 3:
                lines[draw.randrange(len(lines))] = draw.choice(lines)
                text = "\n".join(lines)
            case _:
                found = draw.choice([*re.finditer(r"\d+", text)] or [re.match("", text)])
                assert found is not None
                text = text[: found.start()] + draw.choice(NUMBERS) + text[found.end() :]
    return text


def view(text: str) -> Any:
    """Returns the schedule as the checker reads it; capacities that hold all elements of a stream become None."""
    read = checker.Schedule(text)
    pushed: dict[int, int] = {}
    for _, length, _, sinks, _ in read.rows:
        for buffer, stream, _ in sinks:
            if buffer == checker.STREAM:
                pushed[stream] = pushed.get(stream, 0) + length
    streams = [(a, sorted(b), None if k == pushed.get(n, 0) else k) for n, (a, b, k) in enumerate(read.streams)]
    whole = vars(read.collective)
    return whole, read.nodes, read.rows, streams, read.lanes


@pytest.mark.parametrize("seed", range(3))
def test_three_readers_read_one_schedule(seed: int, tmp_path: Path) -> None:
    draw, file, both = random.Random(seed), tmp_path / "a.sched", 0
    for _ in range(200):
        text = mutated(draw.choice(SEEDS), draw)
        file.write_bytes(text.encode())
        read: list[str | None] = []
        for reader, source in ((un.Schedule.parse, text), (un.load, str(file))):
            try:
                read.append(reader(source).to_text())
            except un.Error:
                read.append(None)
        assert read[0] == read[1], text
        try:
            ours = view(text)
        except checker.WrongInput:
            assert read[0] is None, text
            continue
        except checker.Refused:
            assert read[0] is None or not un.Schedule.parse(text).verify().holds, text
            continue
        # The checker does not read the sections after a schedule.
        assert read[0] is not None or SECTION.search(text), text
        assert not CONTROL.search(text), text
        if read[0] is not None:
            both += 1
            assert ours == view(read[0]), text
    assert both > 3


@pytest.mark.parametrize(
    ("found", "written"),
    [
        ("i0: in", "i0:in"), ("in[0..1] -> s0", "in[0..1]-> s0"), ("in[0..1] -> s0", "in[0..1] ->s0"),
        ("[0..1]", "[ 0..1]"), ("s1 + in", "s1+ in"), ("s1 + in", "s01 + in"), ("s0: 0", "s0:0"), ("0 -> 1", "0-> 1"),
        ("node 0:", "node0:"), ("node 0:", "node 0 :"), ("phases x", "phases"), ("phases x", "phases x\noriginx"),
        ("ranks=2 ", "ranks=2"), ("=2", " = 2"), ("schedule 1", "schedule 01"), ("i0: in", "i0: \u00a0in"),
        ("in[0..1] -> s0", "in[0..1] -> s0 len=0"), ("0 -> 1\n", "0 -> 1 capacity=00000000001\n"),
        ("phases x", "phases x\nnodes 3\nnodes 3"), ("0 -> 1\n", "0 -> 1 1\n"), ("node 1", "node 1:0"),
        ("i1: s1", "i1 p: s1"),
        ("i3: s0 + in[0..1] -> out[0..1]", "i3: in[0..1] -> s1\n  i4 p: in[0..1] -> s1"),
    ],
)  # fmt: skip
def test_all_readers_refuse_what_one_refuses(found: str, written: str) -> None:
    """The program and the checker refuse the same texts."""
    for reader in (un.Schedule.parse, checker.Schedule):
        reader(ECHO)
        with pytest.raises((un.Error, checker.Refused)):
            reader(ECHO.replace(found, written, 1))


@pytest.mark.parametrize("character", ["\r", "\0", "\v", "\f", "\x1b", "\x1c", "\x7f", "\x85"])
@pytest.mark.parametrize("where", ["; rank 1 adds", "machine\n", "phases x"])
def test_control_characters_are_refused_by_all_readers(character: str, where: str, tmp_path: Path) -> None:
    """Comments may not have them either: a reader may end a line at the character, and read another schedule."""
    text = (ECHO + "machine\n").replace(
        where, f"{where.rstrip()}{character}  i4: in[0..1] -> out[0..1]\n".rstrip(" "), 1
    )
    (tmp_path / "a.sched").write_bytes(text.encode())
    for reader in (un.Schedule.parse, checker.Schedule):
        with pytest.raises((un.Error, checker.WrongInput), match="control character"):
            reader(text)
    with pytest.raises(un.Error, match=rf"line \d+: the line has the control character U\+{ord(character):04X}"):
        un.load(tmp_path / "a.sched")


def test_every_origin_and_phase_has_a_text_that_all_readers_read() -> None:
    """Origins may have any characters, because they are names of files."""
    draw, document = random.Random(7), json.loads(un.Schedule.parse(ECHO).to_json())

    def drawn() -> str:
        ranges = [(1, 0x180), (0x2000, 0x2100), (0xFE00, 0xFF00), (0xE0000, 0xE0080), (0x1F600, 0x1F650)]
        return "".join(draw.choice([chr(draw.randrange(*draw.choice(ranges))), *" ;:x"]) for _ in range(5))

    for _ in range(100):
        document["origin"], document["phases"] = drawn(), [drawn()]
        made = un.Schedule.parse_json(json.dumps(document))
        text = made.to_text()
        assert un.Schedule.parse(text).to_text() == text
        assert checker.check(text, made.certificate())[3]


def test_line_ends_of_both_kinds_are_accepted(tmp_path: Path) -> None:
    text = ECHO.replace("\n", "\r\n")
    (tmp_path / "a.sched").write_bytes(text.encode())
    assert (
        un.load(tmp_path / "a.sched").to_text()
        == un.Schedule.parse(text).to_text()
        == un.Schedule.parse(ECHO).to_text()
    )
    assert view(text) == view(ECHO)
