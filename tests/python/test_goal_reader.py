"""Both the reader of GOAL and a second one find the same number of operations of each rank, or refuse a text."""

import random
import re
from pathlib import Path

import pytest
import unisono as un

SOURCE = Path(__file__).parents[1] / "goal"
KEYWORDS = {"send", "recv", "calc", "rank", "num_ranks", "requires", "irequires"}
OPERATION = re.compile(
    r"(?:(?P<label>[A-Za-z]\w*)\s*:\s*)?(?:(?P<kind>send|recv)\s+\d+\s*b\s*(?P<way>to|from)\s*(?P<peer>\d+)"
    r"(?:\s*tag\s*\d+)?|calc\s+\d+)(?:\s*cpu\s*0+)?(?:\s*nic\s*0+)?\s*",
    re.ASCII,
)
EDGE = re.compile(r"([A-Za-z]\w*)\s+(i?requires)\s+([A-Za-z]\w*)\s*", re.ASCII)


class RefusedError(Exception):
    """The text violates the grammar of GOAL, as LogGOPSim defines it."""


def read(text: str) -> list[int]:
    """Returns the number of operations of each rank in a text whose comments are whole lines."""
    words = "\n".join(line for line in text.split("\n") if not line.lstrip(" \t").startswith("//"))
    head = re.match(r"\s*num_ranks[ \t]*(\d+)", words)
    if not head or not 0 < int(head[1]) < 1 << 20:
        raise RefusedError(words)
    found: list[int] = []
    rest = words[head.end() :]
    for number in range(int(head[1])):
        body = re.match(r"\s*rank[ \t]*(\d+)[ \t]*\{((?:[^}\n]*\n)*[ \t]*)\}", rest)
        if not body or int(body[1]) != number:
            raise RefusedError(rest)
        found.append(operations(body[2], int(head[1])))
        rest = rest[body.end() :]
    if rest.strip(" \t\r\n"):
        raise RefusedError(rest)
    return found


def operations(body: str, ranks: int) -> int:
    """Returns the number of operations of a rank; its dependencies must name earlier labels."""
    labels: set[str] = set()
    count = 0
    lines = (line.strip(" \t\r") for line in body.split("\n"))
    for line in (line for line in lines if line and not line.startswith("//")):
        if found := OPERATION.fullmatch(line):
            is_turned = (found["kind"], found["way"]) in {("send", "from"), ("recv", "to")}
            if found["label"] in KEYWORDS or is_turned or int(found["peer"] or 0) >= ranks:
                raise RefusedError(line)
            labels.add(found["label"])
            count += 1
            continue
        edge = EDGE.fullmatch(line)
        if not edge or not {edge[1], edge[3]} <= labels:
            raise RefusedError(line)
    return count


BITS = [
    " ",
    "\t",
    "\n",
    "\r\n",
    "\n//\n",
    "0",
    "9",
    "8b",
    "b",
    " tag 1",
    " cpu 0",
    " nic 0",
    "{",
    "}",
    ":",
    "l1",
    "x: ",
]


def mutated(text: str, draw: random.Random) -> str:
    """Returns the text with a few characters, a line or a number changed."""
    at, way = draw.randrange(len(text)), draw.random()
    if way < 0.4:
        return text[:at] + draw.choice(BITS) + text[at:]
    if way < 0.5:
        return text[:at] + text[at + draw.choice([1, 2, 6]) :]
    if way < 0.8:
        lines = text.split("\n")
        lines.insert(draw.randrange(len(lines)), draw.choice(lines))
        return "\n".join(lines)
    numbers = list(re.finditer(r"\d+", text))
    one = draw.choice(numbers)
    return text[: one.start()] + draw.choice(["0", "1", "3", "007", "4096"]) + text[one.end() :]


@pytest.mark.parametrize("seed", range(4))
def test_two_readers_of_goal_read_the_same(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    texts = [file.read_text() for file in sorted(SOURCE.glob("*.goal")) if file.stat().st_size < 4000]
    path = tmp_path / "x.goal"
    both = 0
    for _ in range(40):
        text = mutated(draw.choice(texts), draw)
        path.write_text(text, newline="")
        try:
            wanted = read(text)
        except RefusedError:
            with pytest.raises(un.InputError):
                un.read_workload(path)
            continue
        try:
            found, refused = un.read_workload(path).nodes, ""
        except un.InputError as error:
            found, refused = wanted, str(error)
        assert found == wanted
        # Unmatched messages and circular dependencies are no faults of the grammar, and name no line.
        assert not re.search(r"line \d+|at its end", refused), (refused, text)
        both += not refused
    assert both > 2
