"""An executor of MSCCL XML files, written from the public sources and not from Unisono's reader.

It implements the rules of the parser (Azure/msccl-executor-nccl, ``src/misc/msccl/msccl_parser.cc``), the flags and
pieces of the kernel (``src/device/msccl_kernel.cu``) and the slots of connections (``msccl_setup.cc``, also of
ROCm/rccl). Chunks are random numbers, so that a sum identifies its terms.
"""

import random
import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

#: By protocol, the slots of a connection and the data bytes of a slot; of the two executors, the smaller numbers.
ROOM = {"LL": (8, 16384), "LL128": (8, 50176), "Simple": (2, 2 << 20)}
MOST = 71
STEPS = 64
RECEIVES = ("r", "rcs", "rrs", "rrc", "rrcs")
SENDS = ("s", "rcs", "rrs", "rrcs")
MODULUS = (1 << 61) - 1


#: The attributes that the executor reads, by element; those in `TEXTS` are texts, the others numbers.
KEYS = {
    "algo": ["nchunksperloop", "nchannels", "ngpus", "proto", "coll", "minBytes", "maxBytes", "inplace", "outofplace"],
    "gpu": ["id", "i_chunks", "o_chunks", "s_chunks"],
    "tb": ["id", "send", "recv", "chan"],
    "step": ["s", "srcoff", "srcbuf", "dstoff", "dstbuf", "cnt", "type", "depid", "deps", "hasdep"],
}
TEXTS = {"proto", "coll", "type", "srcbuf", "dstbuf"}
#: The number of passes through a file after which the flags of waits overflow.
TURNS = 1 << 16


class RefusedError(Exception):
    """The executor does not load the file."""


@dataclass
class Step:
    kind: str
    source: tuple[str, int]
    sink: tuple[str, int]
    count: int
    waits: list[tuple[int, int]]
    #: The first source chunks of fused reductions.
    reductions: list[int] = field(default_factory=list)
    flagged: bool = False


@dataclass
class Block:
    send: int
    receive: int
    channel: int
    steps: list[Step]
    at: int = 0
    piece: int = 0
    counter: int = 0
    flag: int = -1


class Text:
    """The text of a file, read by characters like ``mscclXmlGetNode`` and ``mscclXmlGetToken``."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def next(self) -> str:
        if self.at == len(self.text):
            raise RefusedError("the file ends")
        self.at += 1
        return self.text[self.at - 1]

    def token(self) -> tuple[str, str | None, str]:
        """Returns a name, its value if it has one, and the character that follows."""
        name = ""
        while (c := self.next()) not in " >/\n\r":
            if c == "=":
                if self.next() not in "\"'":
                    raise RefusedError("a quote is expected")
                end = self.text.index('"', self.at)
                value, self.at = self.text[self.at : end], end + 1
                return name, value, self.next()
            name += c
        return name, None, c

    def nodes(self) -> list[tuple[str, dict[str, str]]]:
        """Returns the tags, each with its first 16 attributes; an attribute with an empty name counts."""
        found = []
        while self.text[self.at :].strip(" \n\r"):
            while (c := self.next()) in " \n\r":
                pass
            if c != "<":
                raise RefusedError("no element")
            name, value, c = self.token()
            if value is not None:
                raise RefusedError("a value of no attribute")
            if name.startswith("!--"):
                self.at = self.text.index("-->", self.at - 1 - len(name) + 3) + 3
                continue
            if name == "" and c == "/":
                name, _, c = self.token()
            attributes = []
            while c == " ":
                key, value, c = self.token()
                attributes.append((key, value or ""))
            if c == "/":
                _, _, c = self.token()
            if c != ">":
                raise RefusedError("no end of a tag")
            found.append((name, dict(reversed(attributes[:16]))))
        return found


def number(text: str) -> int:
    """Reads a number like C: a leading 0 means base 8, and a character that is not a digit ends it."""
    found = re.match(r"[ \t\n\v\f\r]*([+-]?)([0-9]*)", text)
    assert found
    return int(found[1] + "0" + found[2], 8 if found[2].startswith("0") else 10)


def same_text(text: str) -> bool:
    """Returns whether the executor reads the same attributes and numbers as a standard XML parser."""
    try:
        nodes = [node for node in Text(text).nodes() if node[1]]
        elements = list(ElementTree.fromstring(text).iter())
    except (RefusedError, ValueError, ElementTree.ParseError):
        return False
    wanted = [(e.tag, {key: e.attrib[key] for key in KEYS[e.tag]}) for e in elements]
    if [name for name, _ in nodes] != [name for name, _ in wanted]:
        return False
    for (_, has), (_, wants) in zip(nodes, wanted, strict=True):
        for key, value in wants.items():
            if has.get(key) != value or (key not in TEXTS and number(value) != int(value)):
                return False
    return True


def parse_block(element: ElementTree.Element) -> Block:
    """Returns the steps of a thread block as the executor's parser builds them, with reductions fused."""
    steps: list[Step] = []
    waits: list[tuple[int, int]] = []
    begun = 0
    old: tuple[Any, Any, Any] = (None, None, None)
    reductions = 0
    for raw in element.findall("step"):
        kind, count = raw.attrib["type"], int(raw.attrib["cnt"])
        source = raw.attrib["srcbuf"], int(raw.attrib["srcoff"])
        sink = raw.attrib["dstbuf"], int(raw.attrib["dstoff"])
        block, flagged = int(raw.attrib["depid"]), raw.attrib["hasdep"] == "1"
        if not 0 <= int(raw.attrib["s"]) < STEPS:
            raise RefusedError("the number of a step")
        if block >= 0:
            waits.append((block, int(raw.attrib["deps"])))
        goes_on = False
        if kind == "re":
            goes_on = old == (*sink, source[0]) and block == -1
            if not goes_on:
                old = (None, None, old[2])
        if kind == "nop":
            continue
        if not 0 <= count <= MOST:
            raise RefusedError("count")
        if goes_on:
            step = steps[-1]
            step.count = count
        else:
            mine = waits[begun:]
            if mine and block < 0:
                raise RefusedError("a chain of waits ends in no step")
            step = Step(kind, source, sink, count, mine)
            steps.append(step)
            begun = len(waits)
        step.flagged = flagged
        if kind != "re":
            old = (None, None, None)
            continue
        step.reductions.append(source[1])
        if len(step.reductions) > MOST:
            raise RefusedError("reductions")
        reductions += 1
        old = (None, None, old[2]) if flagged or reductions == 16 else (*sink, source[0])
    where = element.attrib
    return Block(int(where["send"]), int(where["recv"]), int(where["chan"]), steps)


def by_number(gpu: ElementTree.Element) -> list[ElementTree.Element]:
    """Returns the thread blocks of a GPU by id; the file may have them in any order."""
    blocks = sorted(gpu.findall("tb"), key=lambda tb: int(tb.attrib["id"]))
    if [int(tb.attrib["id"]) for tb in blocks] != list(range(len(blocks))):
        raise RefusedError("a thread block is missing, or there twice")
    return blocks


def windows(coll: str, gpu: int, chunks: int, gpus: int) -> tuple[int, int, int, int]:
    """Returns first chunk and length of the input, and of the output, in the buffer of a call in place."""
    part = chunks // gpus
    if coll == "allgather":
        return gpu * part, part, 0, chunks
    if coll == "reducescatter":
        return 0, chunks, gpu * part, part
    return 0, chunks, 0, chunks


class Run:
    """One run of a file in random order; a step moves ``pieces`` chunks at a time."""

    def __init__(self, text: str, *, in_place: bool, pieces: int, order: random.Random) -> None:
        algo = ElementTree.fromstring(text)
        self.coll, self.chunks = algo.attrib["coll"], int(algo.attrib["nchunksperloop"])
        self.slots = ROOM[algo.attrib["proto"]][0]
        self.pieces, self.order = pieces, order
        self.values = random.Random(7)
        elements = sorted(algo.findall("gpu"), key=lambda g: int(g.attrib["id"]))
        self.gpus = [[parse_block(tb) for tb in by_number(gpu)] for gpu in elements]
        self.memory: list[dict[str, list[int | None]]] = []
        self.shift: list[tuple[int, int]] = []
        self.inputs: list[list[int]] = []
        for n, gpu in enumerate(elements):
            first, length, out, out_length = windows(self.coll, n, self.chunks, len(elements))
            own = [self.values.randrange(MODULUS) for _ in range(length)]
            self.inputs.append(own)
            both: list[int | None] = [None] * self.chunks
            both[first : first + length] = own
            scratch: list[int | None] = [None] * int(gpu.attrib["s_chunks"])
            apart: list[int | None] = [*own]
            output: list[int | None] = [None] * out_length
            buffers = {"i": both, "o": both} if in_place else {"i": apart, "o": output}
            self.memory.append({**buffers, "s": scratch})
            self.shift.append((first, out) if in_place else (0, 0))
        self.wires: dict[tuple[int, int, int], list[list[int]]] = {}

    def place(self, gpu: int, buffer: str, chunk: int) -> tuple[list[int | None], int]:
        """Returns a buffer and the index of a chunk in it."""
        shift = {"i": self.shift[gpu][0], "o": self.shift[gpu][1], "s": 0}[buffer]
        return self.memory[gpu][buffer], chunk + shift

    def load(self, gpu: int, buffer: str, chunk: int, count: int) -> list[int]:
        """Returns chunks of a buffer; the values of unwritten chunks are random."""
        cells, start = self.place(gpu, buffer, chunk)
        return [self.values.randrange(MODULUS) if v is None else v for v in cells[start : start + count]]

    def store(self, gpu: int, buffer: str, chunk: int, values: list[int]) -> None:
        """Writes chunks of a buffer."""
        cells, start = self.place(gpu, buffer, chunk)
        cells[start : start + len(values)] = values

    def move(self, gpu: int, block: Block) -> bool:
        """Executes one piece of a thread block's next step; returns False if the step has to wait."""
        step = block.steps[block.at]
        others = self.gpus[gpu]
        # Flags of earlier calls never end a wait.
        if block.piece == 0 and any(others[b].flag < max(goal, 0) for b, goal in step.waits):
            return False
        into = block.receive, gpu, block.channel
        out = gpu, block.send, block.channel
        if step.count:
            if step.kind in RECEIVES and not self.wires.get(into):
                return False
            if step.kind in SENDS and len(self.wires.get(out, [])) >= self.slots:
                return False
            self.piece(gpu, step, block.piece * self.pieces, into, out)
        if block.piece == 0:
            block.counter += max(len(step.waits) - 1, 0)
            block.counter += max(len(step.reductions) - 1, 0) if step.count else 0
        block.piece += 1
        if block.piece * self.pieces >= step.count:
            if step.flagged:
                block.flag = block.counter
            block.counter, block.at, block.piece = block.counter + 1, block.at + 1, 0
        return True

    def piece(self, gpu: int, step: Step, first: int, into: tuple[int, int, int], out: tuple[int, int, int]) -> None:
        """Moves one piece of a step, from chunk ``first`` on."""
        count = min(self.pieces, step.count - first)
        (source, at), (sink, to) = step.source, step.sink
        if step.kind == "re":
            values = self.load(gpu, sink, to + first, count)
            for start in step.reductions:
                values = add(values, self.load(gpu, source, start + first, count))
        elif step.kind in ("s", "cpy"):
            values = self.load(gpu, source, at + first, count)
        else:
            values = self.wires[into].pop(0)
            if step.kind not in ("r", "rcs"):
                values = add(values, self.load(gpu, source, at + first, count))
        if step.kind in SENDS:
            self.wires.setdefault(out, []).append(values)
        if step.kind not in ("s", "rrs"):
            self.store(gpu, sink, to + first, values)

    def run(self) -> str:
        """Returns ``right``, ``wrong`` or ``hangs``."""
        ready = [(g, block) for g, gpu in enumerate(self.gpus) for block in gpu]
        while ready:
            moved = False
            self.order.shuffle(ready)
            for gpu, block in ready:
                for _ in range(self.order.randrange(1, 9)):
                    if block.at == len(block.steps) or not self.move(gpu, block):
                        break
                    moved = True
            ready = [(g, block) for g, block in ready if block.at < len(block.steps)]
            if ready and not moved:
                return "hangs"
        return "right" if all(self.holds(gpu) for gpu in range(len(self.gpus))) else "wrong"

    def holds(self, gpu: int) -> bool:
        """Returns whether a GPU has the output that the collective requires."""
        part = self.chunks // len(self.gpus)
        if self.coll == "allgather":
            wanted = [value for own in self.inputs for value in own]
        elif self.coll == "alltoall":
            wanted = [value for own in self.inputs for value in own[gpu * part : (gpu + 1) * part]]
        else:
            wanted = [sum(column) % MODULUS for column in zip(*self.inputs, strict=True)]
        first, length = 0, self.chunks
        if self.coll == "reducescatter":
            wanted, length = wanted[gpu * part : (gpu + 1) * part], part
        cells, start = self.place(gpu, "o", first)
        return cells[start : start + length] == wanted


def add(a: list[int], b: list[int]) -> list[int]:
    return [(x + y) % MODULUS for x, y in zip(a, b, strict=True)]


def pieces(text: str, chunk_bytes: int) -> int:
    """Returns the number of chunks in a piece, for chunks of ``chunk_bytes`` bytes."""
    algo = ElementTree.fromstring(text).attrib
    slot = ROOM[algo["proto"]][1]
    if algo["proto"] == "Simple" and algo["coll"] in ("broadcast", "reduce"):
        slot //= 4
    return min(max(slot // chunk_bytes, 1), MOST)


def ways(text: str) -> list[bool]:
    """Returns the kinds of calls that the executor accepts for the file: two buffers (False) or in place (True)."""
    algo = ElementTree.fromstring(text).attrib
    return [way for way, key in ((False, "outofplace"), (True, "inplace")) if algo[key] == "1"]


def sizes(text: str) -> list[int]:
    """Returns chunk sizes in bytes at which a verdict may change, such as those at which pieces get fewer chunks."""
    algo = ElementTree.fromstring(text).attrib
    chunks, least, most = (int(algo[key]) for key in ("nchunksperloop", "minBytes", "maxBytes"))
    first = max(1, -(-least // chunks))
    slot = ROOM[algo["proto"]][1]
    last = max(first, most // chunks) if most else slot * TURNS
    ends = [first, last] + [slot // m + more for m in range(1, MOST + 1) for more in (0, 1)]
    found = sorted({end for end in ends if first <= end <= last})
    return [b for a, b in pairwise([0, *found]) if a == 0 or pieces(text, a) != pieces(text, b) or b == last]


def verdict(text: str, chunk_bytes: int, runs: int = 2, seed: int = 0) -> str:
    """Returns the worst result of ``runs`` runs of each kind: ``refused``, ``hangs``, ``wrong`` or ``right``."""
    found = []
    if not same_text(text):
        return "refused"
    turns = -(-chunk_bytes // ROOM[ElementTree.fromstring(text).attrib["proto"]][1])
    if turns > TURNS and re.search('depid="[0-9]', text):
        # In a flag, the number of the pass overflows into the number of the call.
        return "hangs"
    for in_place in ways(text):
        for n in range(runs):
            try:
                run = Run(text, in_place=in_place, pieces=pieces(text, chunk_bytes), order=random.Random(seed + n))
            except RefusedError:
                return "refused"
            found.append(run.run())
    return next((word for word in ("hangs", "wrong") if word in found), "right")
