"""The earliest step of each instruction of a schedule, if each instruction takes one step."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Transfer", "instructions", "steps_of", "transfers"]

Document = Mapping[str, Any]


@dataclass(frozen=True)
class Transfer:
    """The elements of a stream that an instruction sends to a node.

    For a message of a simulated run among ranks, ``instruction`` is -1, and ``elements`` is the number of its bytes.
    """

    instruction: int
    source: int
    target: int
    elements: int
    phase: int


def instructions(document: Document) -> Iterator[tuple[int, int, int, Mapping[str, Any]]]:
    """Yields the number, node, lane and contents of each instruction of a schedule in JSON."""
    number = lane = 0
    for program in document["programs"]:
        for steps in program["lanes"]:
            for instruction in steps:
                yield number, program["node"], lane, instruction
                number += 1
            lane += 1


def transfers(document: Document) -> list[Transfer]:
    """Returns the transfers of each instruction, in the order of the instructions."""
    streams = document["streams"]
    return [
        Transfer(number, node, target, instruction["length"], instruction["phase"])
        for number, node, _, instruction in instructions(document)
        for sink in instruction["sinks"]
        if "stream" in sink
        for target in streams[sink["stream"]]["sinks"]
    ]


def steps_of(document: Document) -> list[int]:
    """Returns each instruction's step: 0, or one more than the last step of instructions that it waits for.

    An instruction waits for the instruction before it in its lane, for instructions that it names, and for the senders
    of elements that it takes from streams. The schedule must be proven: in a deadlock instructions have no step.
    """
    listed = list(instructions(document))
    waits: list[list[int]] = [list(instruction.get("after", [])) for _, _, _, instruction in listed]
    last_of_lane: dict[int, int] = {}
    senders: dict[int, list[tuple[int, int]]] = {}
    for number, _, lane, instruction in listed:
        if lane in last_of_lane:
            waits[number].append(last_of_lane[lane])
        last_of_lane[lane] = number
        for sink in instruction["sinks"]:
            if "stream" in sink:
                sent = senders.setdefault(sink["stream"], [])
                sent.append((number, (sent[-1][1] if sent else 0) + instruction["length"]))
    taken: dict[tuple[int, int], tuple[int, int]] = {}
    for number, node, _, instruction in listed:
        for source in instruction["sources"]:
            if "stream" not in source:
                continue
            key = source["stream"], node
            at, begin = taken.get(key, (0, 0))
            sent, end = senders.get(key[0], []), begin + instruction["length"]
            while at < len(sent) and sent[at][1] <= begin:
                at += 1
            needed = at
            while needed < len(sent) and (needed == at or sent[needed - 1][1] < end):
                waits[number].append(sent[needed][0])
                needed += 1
            taken[key] = at, end
    return _longest(waits)


def _longest(waits: Sequence[Sequence[int]]) -> list[int]:
    """Returns for each instruction the length of the longest chain of instructions that it waits for."""
    left = [len(found) for found in waits]
    followers: list[list[int]] = [[] for _ in waits]
    for number, found in enumerate(waits):
        for before in found:
            followers[before].append(number)
    steps = [0] * len(waits)
    ready = [number for number, count in enumerate(left) if count == 0]
    for number in ready:
        for after in followers[number]:
            steps[after] = max(steps[after], steps[number] + 1)
            left[after] -= 1
            if left[after] == 0:
                ready.append(after)
    return steps
