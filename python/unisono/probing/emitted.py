"""The messages of a probe for a program in C (`probe.c`), and its results.

Messages and results are lines of text. The program copies the head from the file of messages, so that results name
their machine:

```text
probe 1 machine tree ranks 8 bytes 262144 rounds 6 sets 8 messages 61
probe 0 3 5 0.00131 0.00129
probe end
```

A line has the set, the sender and the receiver of a message, and in results the seconds of each round. A launcher may
put labels before lines.
"""

import os
import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np

from unisono._core import InputError, Machine
from unisono.base.files import read_text, title, write_folder
from unisono.base.messages import shown
from unisono.probing.networks import Floats, Pairs
from unisono.probing.probes import MessageSets, check_rounds

__all__ = ["Recorded", "read_results", "write_program"]

_PROGRAM, _MESSAGES = "probe.c", "messages.txt"
_HEAD = re.compile(
    r"\bprobe 1 machine (\S{1,256}) ranks (\d{1,8}) bytes (\d{1,10}) rounds (\d{1,4}) sets (\d{1,5}) "
    r"messages (\d{1,9})$"
)
_LINE = re.compile(r"\bprobe (\d{1,5}) (\d{1,8}) (\d{1,8})((?: [-+.\w]{1,32})+)$")
_END = re.compile(r"\bprobe end$")
#: Limits of a file of results; a design has some tens of sets.
_MOST_SETS, _MOST_MESSAGES = 1 << 10, 1 << 22
#: The maximum number of bytes of a message. Longer messages give no further evidence, and take long to simulate.
_MOST_BYTES = 1 << 26
#: The least and the greatest accepted time of a message, in seconds.
_LEAST, _MOST = 1e-9, 1e6


class Recorded:
    """Times that a program in C recorded. The second half of the rounds is used for sets that are measured again."""

    def __init__(self, pairs: list[Pairs], seconds: list[Floats]) -> None:
        self._of = {tuple(of): times for of, times in zip(pairs, seconds, strict=True)}
        rounds = len(seconds[0])
        self.first_rounds = (rounds + 1) // 2
        self._is_first = True

    def measure(self, sets: Sequence[Pairs], bytes: int, rounds: int) -> list[Floats]:  # noqa: ARG002
        """Returns the seconds of the first half of the rounds; from the second call on, of the second half."""
        half = slice(self.first_rounds) if self._is_first else slice(self.first_rounds, None)
        self._is_first = False
        return [self._of[tuple(pairs)][half] for pairs in sets]


def write_program(sets: MessageSets, rounds: int, folder: str | os.PathLike[str]) -> list[str]:
    """Writes the messages and the program, and returns their paths.

    Raises:
        InputError: the number of rounds is wrong, a message is too large, or the folder cannot be made.

    """
    check_rounds(rounds)
    if sets.bytes > _MOST_BYTES:
        raise InputError(f"a message of a program has {sets.bytes} bytes; accepted are at most {_MOST_BYTES}")
    messages = [(at, *pair) for at, routes in enumerate(sets.sets) for pair in routes.pairs]
    # Sets with slow messages need two measurements. The program cannot know these sets, so all sets get twice the
    # number of rounds.
    head = (
        f"probe 1 machine {_word(sets.links.machine)} ranks {sets.ranks} bytes {sets.bytes} rounds {2 * rounds} sets "
        f"{len(sets.sets)} messages {len(messages)}"
    )
    lines = [head, *(f"probe {at} {a} {b}" for at, a, b in messages)]
    program = files("unisono.probing").joinpath(_PROGRAM).read_text(encoding="utf-8")
    names = write_folder(folder, {_PROGRAM: program, _MESSAGES: "".join(f"{line}\n" for line in lines)})
    return [str(Path(folder) / name) for name in names]


def read_results(path: str | os.PathLike[str], machine: Machine) -> tuple[MessageSets, Recorded]:
    """Returns the sets of messages that a program sent, and their times.

    Raises:
        InputError: the results are cut, damaged or of another machine.

    """
    name = title(Path(path).name)
    lines = read_text(path).splitlines()
    heads = [(at, head) for at, line in enumerate(lines) if (head := _HEAD.search(line.rstrip()))]
    if len(heads) != 1:
        raise InputError(
            f"{name} has {len(heads)} heads of a probe, as 'probe 1 machine NAME ranks P ...'; accepted is the output "
            "of one run of the program that 'unisono probe --emit DIR' writes"
        )
    begin, head = heads[0]
    if head[1] != _word(machine):
        raise InputError(f"{name} has times of machine {head[1]}, and not of {machine.name}; name that machine")
    ranks, size, rounds, sets, count = (int(head[k]) for k in range(2, 7))
    is_sane = rounds >= 1 and 1 <= sets <= _MOST_SETS and sets <= count <= min(_MOST_MESSAGES, sets * ranks)
    if not (is_sane and 1 <= size <= _MOST_BYTES):
        raise InputError(
            f"{name}: its head states {rounds} rounds of {count} messages of {size} bytes in {sets} sets; it is damaged"
        )
    pairs: list[Pairs] = [[] for _ in range(sets)]
    seconds: list[list[list[float]]] = [[] for _ in range(sets)]
    for at, line in enumerate(lines[begin + 1 :], begin + 2):
        if (match := _LINE.search(line.rstrip())) is not None:
            where = f"{name}, line {at}"
            own, a, b = (int(match[k]) for k in (1, 2, 3))
            if own >= sets or a == b or max(a, b) >= ranks:
                raise InputError(f"{where}: a message from {a} to {b} in set {own}; its head has {sets} sets")
            pairs[own].append((a, b))
            seconds[own].append(_times(match[4].split(), rounds, where))
    found = sum(map(len, pairs))
    if found != count or not all(pairs) or not any(_END.search(line.rstrip()) for line in lines[begin:]):
        raise InputError(f"{name} has {found} of the {count} messages that its head states; it is cut or damaged")
    for own, of in enumerate(pairs):
        if len({a for a, _ in of}) < len(of) or len({b for _, b in of}) < len(of):
            raise InputError(f"{name}: a rank sends or receives twice in set {own}, which no probe does")
    times = [np.array(of, dtype=np.float64).T for of in seconds]
    return MessageSets(machine, ranks, size, pairs=pairs), Recorded(pairs, times)


def _times(words: list[str], rounds: int, where: str) -> list[float]:
    try:
        found = [float(word) for word in words]
    except ValueError:
        found = []
    if len(found) != rounds or not all(_LEAST <= one <= _MOST for one in found):
        raise InputError(
            f"{where}: {shown(' '.join(words))}; accepted are {rounds} times in seconds, {_LEAST:g} to {_MOST:g}"
        )
    return found


def _word(machine: Machine) -> str:
    """Returns the name of a machine without spaces."""
    return re.sub(r"\s", "_", machine.name) or "_"
