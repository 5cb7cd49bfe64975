"""Files of MSCCL: the verdict of `verify` is that of an independent executor, for each kind and size of call."""

import random
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import unisono as un
from unisono import InputError
from unisono.planning.gpu_plans import check_msccl

from . import msccl_executor as executor
from .conftest import call, json_of, written

Step = tuple[str, str, int, str, int, int, int, int, int]


def algo(coll: str, chunks: int, gpus: list[str], **keys: object) -> str:
    """Returns the text of an MSCCL file."""
    stated = {"proto": "Simple", "inplace": 0, "outofplace": 1, "minBytes": 0, "maxBytes": 0, "nchannels": 1, **keys}
    attributes = " ".join(f'{key}="{value}"' for key, value in stated.items())
    head = f'<algo name="x" nchunksperloop="{chunks}" ngpus="{len(gpus)}" coll="{coll}" {attributes}>\n'
    return head + "".join(gpus) + "</algo>\n"


def gpu(n: int, chunks: tuple[int, int, int], blocks: list[str]) -> str:
    """Returns the element of a GPU; ``chunks`` are those of its input, output and scratch memory."""
    i, o, s = chunks
    return f'<gpu id="{n}" i_chunks="{i}" o_chunks="{o}" s_chunks="{s}">\n' + "".join(blocks) + "</gpu>\n"


def block(n: int, peers: tuple[int, int], steps: list[Step]) -> str:
    """Returns a thread block that sends to one peer and receives from another, with its steps."""
    keys = ("type", "srcbuf", "srcoff", "dstbuf", "dstoff", "cnt", "depid", "deps", "hasdep")
    rows = [" ".join(f'{key}="{value}"' for key, value in zip(keys, step, strict=True)) for step in steps]
    text = "".join(f'<step s="{s}" {row}/>\n' for s, row in enumerate(rows))
    return f'<tb id="{n}" send="{peers[0]}" recv="{peers[1]}" chan="0">\n{text}</tb>\n'


def all_pairs(n: int, count: int, proto: str, **keys: object) -> str:
    """Returns an in-place allreduce by two exchanges among all pairs, in steps of ``count`` chunks, as in libraries.

    GPU g reduces part g. Each GPU has a thread block for each peer; the first thread block of the GPU reduces.
    """
    gpus = []
    for g in range(n):
        peers = [p for p in range(n) if p != g]
        blocks = []
        for b, p in enumerate(peers):
            steps: list[Step] = [
                ("s", "i", p * count, "s", 0, count, -1, -1, 0),
                ("r", "i", 0, "s", b * count, count, -1, -1, int(b > 0)),
            ]
            if b == 0:
                for other in range(n - 1):
                    wait = (other, 1) if other else (-1, -1)
                    # The executor fuses consecutive reductions without waits.
                    steps.append(("re", "s", other * count, "i", g * count, count, *wait, int(other == n - 2)))
            done = len(steps) - 1 if b == 0 else n
            steps.append(("s", "i", g * count, "i", g * count, count, *((-1, -1) if b == 0 else (0, done)), 0))
            steps.append(("r", "i", p * count, "i", p * count, count, -1, -1, 0))
            blocks.append(block(b, (p, p), steps))
        gpus.append(gpu(g, (n * count, 0, (n - 1) * count), blocks))
    return algo("allreduce", n * count, gpus, proto=proto, inplace=1, outofplace=0, **keys)


def gather(steps: Callable[[int], list[Step]], wait: int, **keys: object) -> str:
    """Returns an allgather of two GPUs: thread block 0 exchanges, block 1 waits for step ``wait`` of block 0."""
    gpus = []
    for g in range(2):
        p = 1 - g
        copies: list[Step] = [("cpy", "i", 0, "o", g, 1, -1, -1, 0), ("cpy", "s", 0, "o", p, 1, 0, wait, 0)]
        gpus.append(gpu(g, (1, 2, 1), [block(0, (p, p), steps(p)), block(1, (-1, -1), copies)]))
    return algo("allgather", 2, gpus, **keys)


SEND: Step = ("s", "i", 0, "i", 0, 1, -1, -1, 0)
RECEIVE: Step = ("r", "s", 0, "s", 0, 1, -1, -1, 1)


def reduced(last: list[Step], scratch: int = 4, chunks: int = 2, **keys: object) -> str:
    """Returns an allreduce of three GPUs: two thread blocks exchange inputs, the third one adds by steps ``last``."""
    gpus = []
    for g in range(3):
        a, b = (g + 1) % 3, (g + 2) % 3
        half = scratch // 2
        moves = [
            block(
                n,
                peers,
                [("s", "i", 0, "i", 0, chunks, -1, -1, 0), ("r", "s", n * half, "s", n * half, chunks, -1, -1, 1)],
            )
            for n, peers in enumerate([(a, b), (b, a)])
        ]
        gpus.append(gpu(g, (chunks, chunks, scratch), [*moves, block(2, (-1, -1), last)]))
    return algo("allreduce", chunks, gpus, **keys)


WAIT_0: Step = ("nop", "i", 0, "i", 0, 0, 0, 1, 0)
WAIT_1: Step = ("nop", "i", 0, "i", 0, 0, 1, 1, 0)


def agrees(text: str, tmp_path: Path) -> str:
    """Returns the verdict of `check_msccl`, and checks that the executor agrees at all sizes."""
    path = written(tmp_path / "x.xml", text)
    words = [executor.verdict(text, size) for size in executor.sizes(text)]
    try:
        found = check_msccl(path)
    except InputError:
        assert set(words) & {"hangs", "refused"}
        return "error"
    codes = {fault["code"] for fault in found["diagnostics"]}
    assert (words == ["right"] * len(words)) == (not codes), (words, found)
    assert ("hangs" in words) == ("deadlock" in codes) == (not found["deadlock_free"])
    return " ".join(sorted(codes)) or "proved"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (gather(lambda _: [SEND, RECEIVE], 1), "proved"),
        # A nop that waits for nothing is not counted, and its flag is dropped.
        (gather(lambda _: [("nop", "i", 0, "i", 0, 0, -1, -1, 0), SEND, RECEIVE], 2), "error"),
        (gather(lambda _: [SEND, RECEIVE, ("nop", "i", 0, "i", 0, 0, -1, -1, 1)], 2), "error"),
        # In this file the wait has the number that the executor counts.
        (gather(lambda _: [("nop", "i", 0, "i", 0, 0, -1, -1, 0), SEND, RECEIVE], 1), "proved"),
        # A chain of waits that no step ends.
        (reduced([WAIT_0, ("cpy", "i", 0, "o", 0, 2, -1, -1, 0)]), "error"),
        # The executor fuses three reductions to two: the first has the count of the second.
        (
            reduced(
                [
                    WAIT_0,
                    ("cpy", "i", 0, "o", 0, 2, 1, 1, 0),
                    ("re", "s", 0, "o", 0, 2, -1, -1, 0),
                    ("re", "s", 2, "o", 0, 1, -1, -1, 0),
                    ("re", "s", 3, "o", 1, 1, -1, -1, 0),
                ]
            ),
            "incomplete",
        ),
        # The same reductions, separated by a flag.
        (
            reduced(
                [
                    WAIT_0,
                    ("cpy", "i", 0, "o", 0, 2, 1, 1, 0),
                    ("re", "s", 0, "o", 0, 2, -1, -1, 1),
                    ("re", "s", 2, "o", 0, 1, -1, -1, 0),
                    ("re", "s", 3, "o", 1, 1, -1, -1, 0),
                ]
            ),
            "proved",
        ),
    ],
)
def test_steps_are_those_that_the_executor_runs(text: str, said: str, tmp_path: Path) -> None:
    assert agrees(text, tmp_path) == said


def test_a_wait_before_a_fused_reduction_is_attached_to_nothing(tmp_path: Path) -> None:
    first: list[Step] = [("cpy", "i", 0, "o", 0, 1, -1, -1, 0), ("re", "s", 0, "o", 0, 1, 0, 1, 0)]
    text = reduced([*first, WAIT_1, ("re", "s", 1, "o", 0, 1, -1, -1, 0)], 2, 1)
    assert "race" in agrees(text, tmp_path)
    assert agrees(
        text.replace('hasdep="0"/>\n<step s="2" type="nop"', 'hasdep="1"/>\n<step s="2" type="nop"'), tmp_path
    )


def test_both_ways_that_a_file_claims_are_proved(tmp_path: Path) -> None:
    add: Step = ("rrc", "i", 0, "o", 0, 1, -1, -1, 0)
    gpus = [gpu(g, (1, 1, 0), [block(0, (1 - g,) * 2, steps)]) for g, steps in enumerate([[SEND, add], [add, SEND]])]
    assert agrees(algo("allreduce", 1, gpus), tmp_path) == "proved"
    assert agrees(algo("allreduce", 1, gpus, inplace=1), tmp_path) == "twice"
    assert "in place: " in call("verify", str(tmp_path / "x.xml")).out
    assert agrees(algo("allreduce", 1, gpus, inplace=1, outofplace=0), tmp_path) == "twice"


@pytest.mark.parametrize("proto", ["LL", "LL128", "Simple"])
@pytest.mark.parametrize("count", [2, 8, 9])
def test_all_pairs_hang_from_the_size_at_which_the_executor_does(proto: str, count: int, tmp_path: Path) -> None:
    slots, slot = executor.ROOM[proto]
    said = agrees(all_pairs(2, count, proto), tmp_path)
    assert (said == "proved") == (count <= slots)
    if said == "proved":
        return
    # The fewest chunks of a piece so that `slots` pieces suffice, and the largest chunk sent in such pieces.
    fewest = -(-count // slots)
    last = slot // fewest
    found = check_msccl(tmp_path / "x.xml")
    assert found["sizes"].startswith("safe up to ")
    assert f"from {last + 1} bytes a chunk" in found["diagnostics"][0]["message"]
    whole = 2 * count
    for chunk, word in ((last, "proved"), (last + 1, "deadlock")):
        assert agrees(all_pairs(2, count, proto, maxBytes=whole * chunk), tmp_path) == word
    # The elements are f32, so the chunk is a multiple of four bytes.
    fits = call("verify", str(tmp_path / "x.xml"), "--bytes", str(last // 4 * 4 * whole))
    hangs = call("verify", str(tmp_path / "x.xml"), "--bytes", str((last // 4 + 1) * 4 * whole))
    assert (fits.code, hangs.code) == (0, 1)
    assert "thread block 0 of gpu 0 waits in step 0 for gpu 1 to free a slot" in hangs.out


def test_a_chunk_of_a_mebibyte_hangs_in_eight_steps_and_one_of_half_does_not(tmp_path: Path) -> None:
    """On eight MI300X (rouge3877/ns3-msccl-data), chunks of 512 KiB ran and of 1 MiB hung; LL ran to 4 GiB."""
    for size, word in ((512 << 10, "proved"), (1 << 20, "deadlock")):
        bounds = {"minBytes": 16 * size, "maxBytes": 16 * size}
        assert agrees(all_pairs(2, 8, "Simple", **bounds), tmp_path) == word
        assert agrees(all_pairs(2, 8, "LL", **bounds), tmp_path) == "proved"
    # The proof of the loaded schedule finds the same deadlock.
    (tmp_path / "x.xml").write_text(all_pairs(2, 8, "Simple"))
    assert not un.load(tmp_path / "x.xml").verify().deadlock_free


def idle(nodes: int) -> str:
    """Returns an allgather of two GPUs; the first GPU has ``nodes`` XML elements, mostly steps without work."""
    text = gather(lambda _: [SEND, RECEIVE], 1)
    kept = 3 + 2 + 4
    blocks: list[str] = []
    while kept < nodes:
        steps = min(64, nodes - kept - 1)
        blocks.append(block(2 + len(blocks), (-1, -1), [("nop", "i", 0, "o", 0, 0, -1, -1, 0)] * steps))
        kept += 1 + steps
    return text.replace("</gpu>", "".join(blocks) + "</gpu>", 1)


@pytest.mark.parametrize(
    ("least", "most", "size", "served"),
    [
        (1024, 4096, None, True),
        (1024, 4096, 4096, True),
        (1024, 4096, 8192, False),
        (1024, 4096, 512, False),
        (1024, 0, 1 << 30, True),
        (4097, 4097, None, False),
        (4096, 1024, None, False),
        (0, 1, None, False),
    ],
)
def test_a_file_that_no_call_runs_says_so(
    least: int, most: int, size: int | None, served: bool, tmp_path: Path
) -> None:
    path = written(tmp_path / "x.xml", gather(lambda _: [SEND, RECEIVE], 1, minBytes=least, maxBytes=most))
    # `--bytes` is the number of bytes of one rank, half of the whole.
    ran = call("verify", str(path), *(() if size is None else ("--bytes", str(size // 2))))
    assert ran.code == 0
    assert ("note: the executor does not run " in ran.err) is not served
    if size is None:
        return
    # Every command that reads the file has the note.
    asked = str(path), "--bytes", str(size // 2)
    notes = [
        json_of("simulate", *asked, "--machine", "dgx-a100")["notes"],
        call("import", *asked, "--format", "msccl-xml", "-o", str(tmp_path / "x.sched")).err.splitlines(),
        call("emit", *asked, "--format", "goal", "-o", str(tmp_path / "x.goal")).err.splitlines(),
        un.load(path, elements=size // 8).notes,
    ]
    for said in notes:
        assert any("the executor does not run a call of" in note for note in said) is not served


def test_limits_of_the_executor_are_findings(tmp_path: Path) -> None:
    path = tmp_path / "x.xml"
    text = gather(lambda _: [SEND, *[RECEIVE][:1]], 1)
    path.write_text(idle(4095))
    assert call("verify", str(path)).code == 0
    many = gather(lambda _: [("cpy", "i", 0, "s", 0, 1, -1, -1, 0)] * 64 + [SEND, RECEIVE], 65)
    for wrong, said in (
        (many, "at most 64 are held"),
        (text.replace('proto="Simple"', 'proto="Fast"'), "accepted are LL, LL128, Simple"),
        (text.replace('outofplace="1" ', ""), "does not load a file without outofplace"),
        (text.replace('nchannels="1"', 'nchannels="0"'), 'nchannels="0" connects fewer'),
        (re.sub("(<step [^>]*)/>", "\\1><x/></step>", text, count=1), "line 4: <x> is inside of a <step>"),
        (idle(4096), "would keep 4096 nodes of the file; at most 4095 are held"),
    ):
        path.write_text(wrong)
        ran = call("verify", str(path))
        assert ran.code == 1
        assert said in ran.out


def reordered(text: str, draw: random.Random) -> str:
    """Returns the file with the thread blocks of each GPU in another order."""
    head, *gpus = re.split("(?=<gpu)", text)
    for n, one in enumerate(gpus):
        first, *blocks = re.split("(?=<tb)", one.replace("</gpu>", "<tb></gpu>"))
        last = blocks.pop()
        gpus[n] = "".join([first, *draw.sample(blocks, len(blocks)), last]).replace("<tb></gpu>", "</gpu>")
    return head + "".join(gpus)


@pytest.mark.parametrize("seed", range(4))
def test_thread_blocks_may_stand_in_any_order(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    size = {"minBytes": 4096, "maxBytes": 4096}
    shapes = [all_pairs(3, 2, "Simple", **size), all_pairs(3, 9, "LL", **size), gather(lambda _: [SEND, RECEIVE], 1)]
    text = draw.choice(shapes)
    said = agrees(text, tmp_path)
    other = reordered(text, draw)
    assert agrees(other, tmp_path) == said
    # The id of block 1 is now missing, or appears twice.
    for number in ("5", "0"):
        wrong = other.replace('<tb id="1"', f'<tb id="{number}"', 1)
        assert agrees(wrong, tmp_path) == "error"


def test_steps_run_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = gather(lambda _: [SEND, RECEIVE], 1)
    turned = text.replace('s="0" type="s"', 's="9" type="s"')
    assert agrees(turned, tmp_path) == "proved"
    ran = call("verify", str(tmp_path / "x.xml"))
    assert 'note: line 4: the step has s="9" and is number 0 of its thread block; the executor runs steps in' in ran.err
    assert agrees(text.replace('s="0" type="s"', 's="64" type="s"'), tmp_path) == "error"


@pytest.mark.parametrize("shape", [all_pairs(3, 2, "Simple"), gather(lambda _: [SEND, RECEIVE], 1, inplace=1)])
def test_sizes_up_to_those_that_buffers_hold_are_checked_or_refused(shape: str, tmp_path: Path) -> None:
    (tmp_path / "x.xml").write_text(shape)
    holds = check_msccl(tmp_path / "x.xml", 6, "i32")["complete"]
    for chunk in (1 << 28, (1 << 32) // 12, 1 << 29, (1 << 32) // 6 - 1, 1 << 40):
        with suppress(un.InputError, un.UnsupportedError):
            found = check_msccl(tmp_path / "x.xml", 6 * chunk, "i32")
            of_size = any("a buffer holds at most" in fault["message"] for fault in found["diagnostics"])
            assert found["complete"] is (holds and not of_size)


def noted(line: str, count: int) -> str:
    """Returns a tag with ``count`` further attributes before its own."""
    return line.replace(" ", "".join(f' note{n}="1"' for n in range(count)) + " ", 1)


SPELLINGS: list[Callable[[str], str]] = [
    lambda line: "  " + line,
    lambda line: "\t" + line,
    lambda line: line.replace(" ", "  ", 1),
    lambda line: line.replace(" ", "   "),
    lambda line: line.replace(" ", "\n", 1),
    lambda line: line.replace('="', ' ="', 1),
    lambda line: re.sub('="([^"]*)"', "='\\1'", line, count=1),
    lambda line: line.replace("/>", " />"),
    lambda line: re.sub('="([0-9])"', '="0\\1"', line, count=1),
    lambda line: re.sub('(cnt|deps|srcoff)="([0-9])"', '\\1="01\\2"', line, count=1),
    lambda line: re.sub('="([1-9])"', '="\u00a0\\1"', line, count=1),
    lambda line: re.sub('="([0-9])"', '=" \\1"', line, count=1),
    lambda line: noted(line, 4),
    lambda line: noted(line, 8),
    lambda line: line + "<!-- a=b -->",
    lambda line: line + "<!--a=b -->",
    lambda line: line.replace("</gpu>", "</gpu >"),
    lambda line: line + "\r",
]


def respelled(text: str, draw: random.Random) -> str:
    """Returns the file as equivalent XML in which some characters are written differently."""
    lines = text.splitlines()
    for _ in range(draw.randrange(1, 4)):
        at = draw.randrange(len(lines))
        lines[at] = draw.choice(SPELLINGS)(lines[at])
    return draw.choice(["", "", "", "\ufeff", '<?xml version="1.0"?>\n']) + "\n".join(lines)


def test_the_text_of_a_file_is_what_the_parser_of_the_executor_takes(tmp_path: Path) -> None:
    draw = random.Random(5)
    path = tmp_path / "x.xml"
    found: list[bool] = []
    for _ in range(200):
        text = respelled(gather(lambda _: [SEND, RECEIVE], 1), draw)
        path.write_text(text, newline="")
        try:
            faults = check_msccl(path)["diagnostics"]
        except InputError:
            assert executor.verdict(text.lstrip("\ufeff"), 64) != "right"
            continue
        found.append(not faults)
        assert found[-1] == (executor.verdict(text, 64) == "right"), (faults, text)
    assert 40 < sum(found) < 150


@pytest.mark.parametrize(("name", "fits"), [(253, True), (254, True), (255, False)])
def test_names_of_attributes_have_up_to_254_characters(name: int, fits: bool, tmp_path: Path) -> None:
    """The parser reads the `=` behind a name without storing it, and stores any other character that ends a name."""
    path = tmp_path / "x.xml"
    text = gather(lambda _: [SEND, RECEIVE], 1)
    path.write_text(text.replace("<algo ", f'<algo {"x" * name}="1" ', 1))
    assert (check_msccl(path)["diagnostics"] == []) is fits
    path.write_text(text.replace("</algo>", f"</{'x' * (name - 1)}>", 1))
    with suppress(InputError):
        assert check_msccl(path)["diagnostics"]


def test_waits_count_so_many_turns(tmp_path: Path) -> None:
    path = tmp_path / "x.xml"
    for proto, said in (("LL", "all up to 1 GiB a chunk (2 GiB)"), ("Simple", "all")):
        text = gather(lambda _: [SEND, RECEIVE], 1, proto=proto)
        path.write_text(text)
        assert (check_msccl(path)["diagnostics"], check_msccl(path)["sizes"]) == ([], said)
        most = 2 * executor.ROOM[proto][1] * executor.TURNS
        for size, word in ((most, "proved"), (2 * most, "limit" if proto == "LL" else "proved")):
            path.write_text(gather(lambda _: [SEND, RECEIVE], 1, proto=proto, maxBytes=size))
            assert ({f["code"] for f in check_msccl(path)["diagnostics"]} or {"proved"}) == {word}
            assert proto == "Simple" or (executor.verdict(text, size // 2) == "right") == (word == "proved")


@pytest.mark.parametrize("copies", ["own", "late"])
def test_a_copy_onto_itself_is_no_race_with_readers(copies: str, tmp_path: Path) -> None:
    """In an in-place allgather, copying the own part onto itself while it is sent is no race."""
    late = copies == "late"
    gpus = []
    for g in range(2):
        p = 1 - g
        exchange: list[Step] = [SEND, ("r", "o", p, "o", p, 1, -1, -1, 1)]
        # The late copy moves the arriving part onto itself, and may restore old contents.
        own: Step = ("cpy", "o", p, "o", p, 1, -1, -1, 0) if late else ("cpy", "i", 0, "o", g, 1, -1, -1, 0)
        gpus.append(gpu(g, (1, 2, 0), [block(0, (p, p), exchange), block(1, (-1, -1), [own])]))
    (tmp_path / "x.xml").write_text(algo("allgather", 2, gpus, inplace=1, outofplace=int(not late)))
    found = check_msccl(tmp_path / "x.xml")
    assert {fault["code"] for fault in found["diagnostics"]} == ({"race", "undefined"} if late else set())
    assert found["race_free"] is not late


IDLE = 's="0" type="nop" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="0" depid="-1" deps="-1" hasdep="0"'


def mutated(text: str, draw: random.Random) -> str:
    """Returns the file with some attributes of steps or of the head changed, or a step repeated or dropped."""
    lines = text.splitlines()
    for _ in range(draw.randrange(1, 3)):
        steps = [n for n, line in enumerate(lines) if line.startswith("<step")]
        at = draw.choice(steps)
        what = draw.randrange(10)
        if what == 0:
            lines[at] = re.sub(
                'type="[a-z]*"', f'type="{draw.choice(["re", "cpy", "nop", "rrc", "r", "s"])}"', lines[at]
            )
        elif what == 1:
            lines.insert(at, f"<step {IDLE}/>")
        elif what == 2:
            del lines[at]
        elif what == 3:
            lines[0] = re.sub('place="[01]"', lambda _: f'place="{draw.randrange(2)}"', lines[0])
        elif what == 4:
            lines[at] = re.sub('hasdep="(.)"', lambda m: f'hasdep="{1 - int(m[1])}"', lines[at])
        else:
            key = draw.choice(["srcoff", "dstoff", "cnt", "deps", "depid"])
            lines[at] = re.sub(f'{key}="[-0-9]*"', f'{key}="{draw.randrange(4)}"', lines[at])
        # Steps are numbered again.
        number = 0
        for n, line in enumerate(lines):
            number = 0 if line.startswith("<tb") else number
            if line.startswith("<step"):
                lines[n] = re.sub('s="[0-9]+"', f's="{number}"', line, count=1)
                number += 1
    return "\n".join(lines)


@pytest.mark.parametrize("seed", [0, 1, pytest.param(2, marks=pytest.mark.soak)])
def test_damaged_files_that_are_proved_are_right(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    shapes = [
        all_pairs(3, 2, "Simple"),
        all_pairs(2, 3, "LL"),
        gather(lambda _: [SEND, RECEIVE], 1, inplace=1),
        reduced(
            [WAIT_0, ("cpy", "i", 0, "o", 0, 2, 1, 1, 0)] + [("re", "s", n * 2, "o", 0, 2, -1, -1, 0) for n in (0, 1)]
        ),
    ]
    path = tmp_path / "x.xml"
    proved = 0
    for _ in range(60):
        text = mutated(draw.choice(shapes), draw)
        path.write_text(text)
        try:
            found = check_msccl(path)
        except InputError:
            continue
        ends = executor.sizes(text)
        words = {executor.verdict(text, size, 2, seed) for size in (ends[0], ends[-1])}
        codes = {fault["code"] for fault in found["diagnostics"]}
        assert ("hangs" in words) == ("deadlock" in codes), (words, found, text)
        if not codes:
            proved += 1
            assert words == {"right"}, (words, text)
    assert proved > 3


@pytest.mark.parametrize(
    ("blocks", "processors", "code", "note"),
    [
        (64, None, None, False),
        (65, None, None, True),
        (108, None, None, True),
        (109, None, "109 thread blocks that have to run at once, and 108 processors", True),
        (109, 132, None, True),
        (81, 80, "and 80 processors; use fewer, or state the processors of your GPU", True),
        (128, 4096, "takes 128 thread blocks; at most 127 are held", True),
    ],
)
def test_thread_blocks_need_a_processor_each(
    blocks: int, processors: int | None, code: str | None, note: bool, tmp_path: Path
) -> None:
    gpus = []
    for g in range(2):
        p = 1 - g
        exchange: list[Step] = [SEND, ("r", "o", p, "o", p, 1, -1, -1, 1)]
        own: list[Step] = [("cpy", "i", 0, "o", g, 1, -1, -1, 0)]
        more = [block(n, (-1, -1), [("cpy", "i", 0, "s", n, 1, -1, -1, 0)]) for n in range(2, blocks)]
        gpus.append(gpu(g, (1, 2, blocks), [block(0, (p, p), exchange), block(1, (-1, -1), own), *more]))
    path = written(tmp_path / "x.xml", algo("allgather", 2, gpus))
    ran = call("verify", str(path), *(() if processors is None else ("--processors", str(processors))))
    assert (ran.code == 0) is (code is None), ran
    assert code is None or code in ran.out
    said = f"note: gpu 0 has {blocks} thread blocks, and RCCL refuses a file with more than 64\n"
    assert (said in ran.err) is note


@pytest.mark.parametrize("fused", [15, 16])
def test_a_fused_sum_has_at_most_fifteen_terms_beside_the_destination(fused: int, tmp_path: Path) -> None:
    text = reduced([("re", "s", k, "o", 0, 1, -1, -1, 0) for k in range(fused)], scratch=32)
    (tmp_path / "x.xml").write_text(text)
    if fused == 15:
        assert check_msccl(tmp_path / "x.xml")["diagnostics"], "nothing waits for what the sum reads"
        return
    with pytest.raises(InputError, match="takes 16 reductions as one, and holds 15"):
        check_msccl(tmp_path / "x.xml")


def test_a_file_falls_back_to_instances_with_the_same_sums(tmp_path: Path) -> None:
    """Instances divide chunks; this forest adds its chunks in different orders."""
    forest = ("--algorithm", "forest", "--param", "chunks=4", "--param", "depth=2")
    words = ("emit", "reduce", "--machine", "dgx-a100", "--elements", "4096", *forest)
    assert call(*words, "--format", "msccl-xml", "-o", str(tmp_path / "a.xml")).code == 0
