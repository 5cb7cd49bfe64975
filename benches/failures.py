"""All-gathers around each single failure: rows of benches/results/forests.csv.

Links and nodes that a symmetry of the network maps to each other are one class, and one member stands for it; `--check`
compares the bound of every member. The throughput is that of all blocks of the remaining ranks: their number times the
bytes of a block, over the time. `by the cut` has the time of the bound `cut`, which is exact where ranks times links
are at most 65,536 and counts only the sets around one rank beyond that; `simulated` is that of the plan, packet by
packet. CPU seconds count the machine with its failure, the plan with its candidates, and the building of the schedule.
"""

import argparse
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import unisono as un
from common.figures import Figures, Of, parsed

HERE = Path(__file__).parent
KIB = 1024
MIB = KIB * KIB


@dataclass(frozen=True)
class Failed:
    """A class of symmetric links or nodes; `members` lists them as values of `--fail`, and the first one is tested."""

    label: str
    members: tuple[str, ...]
    #: The number of members, if not all are listed.
    of: int | None = None

    @property
    def count(self) -> int:
        """The number of equal links or nodes."""
        return self.of or len(self.members)


@dataclass(frozen=True)
class Case:
    """A machine, the bytes that each rank contributes to its all-gather, and its classes of failures."""

    title: str
    machine: str
    block_bytes: int
    classes: tuple[Failed, ...]
    simulate: bool = True


def pairs(ends: Iterable[tuple[int, int]]) -> tuple[str, ...]:
    return tuple(f"{a}-{b}" for a, b in ends)


def nodes(numbers: Iterable[int]) -> tuple[str, ...]:
    return tuple(str(node) for node in numbers)


def dgx_a100() -> tuple[Failed, ...]:
    """Returns the failures of four boxes; nodes are 32 GPUs, a switch and 8 interfaces a box, 2 InfiniBand switches."""
    gpus = [(box, k) for box in range(4) for k in range(8)]
    switch = range(32, 68, 9)
    return (
        Failed("GPU to NVSwitch", pairs((8 * box + k, switch[box]) for box, k in gpus)),
        Failed("GPU to its interface", pairs((8 * box + k, switch[box] + 1 + k) for box, k in gpus)),
        Failed("interface to InfiniBand switch", pairs((switch[box] + 1 + k, 68 + k % 2) for box, k in gpus)),
        Failed("GPU", nodes(range(32))),
        Failed("NVSwitch of a box", nodes(switch)),
        Failed("interface", nodes(switch[box] + 1 + k for box, k in gpus)),
        Failed("InfiniBand switch", nodes((68, 69))),
    )


def dgx_h100() -> tuple[Failed, ...]:
    """Returns the failures of eight boxes of 8 GPUs, with rails to 8 leaves (nodes 136 to 143) and 4 spines."""
    gpus = [(box, k) for box in range(8) for k in range(8)]
    switch = range(64, 136, 9)
    trunks = tuple(f"{leaf}-{spine}:1" for leaf in range(136, 144) for spine in range(144, 148))
    return (
        Failed("GPU to NVSwitch", pairs((8 * box + k, switch[box]) for box, k in gpus)),
        Failed("GPU to its interface", pairs((8 * box + k, switch[box] + 1 + k) for box, k in gpus)),
        Failed("interface to leaf", pairs((switch[box] + 1 + k, 136 + k) for box, k in gpus)),
        Failed("cable from leaf to spine", trunks, of=2 * len(trunks)),
        Failed("GPU", nodes(range(64))),
        Failed("NVSwitch of a box", nodes(switch)),
        Failed("interface", nodes(switch[box] + 1 + k for box, k in gpus)),
        Failed("leaf", nodes(range(136, 144))),
        Failed("spine", nodes(range(144, 148))),
    )


def hxmesh(side: int) -> tuple[Failed, ...]:
    """Returns the failures of `side` x `side` accelerators on 2 x 2 boards; column switches precede row switches."""
    at = [(row, column) for row in range(side) for column in range(side)]
    columns, rows = side * side, side * side + side
    return (
        Failed("trace of a board in a row", pairs((r * side + c, r * side + c + 1) for r, c in at if c % 2 == 0)),
        Failed("trace of a board in a column", pairs((r * side + c, r * side + c + side) for r, c in at if r % 2 == 0)),
        Failed("cable to the switch of a row", pairs((r * side + c, rows + r) for r, c in at)),
        Failed("cable to the switch of a column", pairs((r * side + c, columns + c) for r, c in at)),
        Failed("accelerator", nodes(range(side * side))),
        Failed("switch of a row", nodes(range(rows, rows + side))),
        Failed("switch of a column", nodes(range(columns, columns + side))),
    )


CASES = (
    Case("dgx-a100-x4, 16 MiB a rank", "dgx-a100-x4", 16 * MIB, dgx_a100()),
    Case("dgx-h100-x8, 1 MiB a rank", "dgx-h100-x8", MIB, dgx_h100()),
    Case("hx2mesh-8x8, 1 MiB a rank", str(HERE / "machines" / "hx2mesh-8x8.toml"), MIB, hxmesh(8)),
    Case("hx2mesh-16x16, 1 MiB a rank", str(HERE / "machines" / "hx2mesh-16x16.toml"), MIB, hxmesh(16)),
    Case("hx2mesh-small, 1 MiB a rank", "hx2mesh-small", MIB, hxmesh(32), simulate=False),
)


def throughput(ranks: int, block_bytes: int, seconds: float) -> str:
    return f"{ranks * block_bytes / seconds / 1e9:.1f}"


def add_figures(case: Case, label: str, failed: str | None, figures: Figures) -> None:
    """Adds the throughput of a network by the cut, predicted and simulated, and the CPU seconds of the plan.

    Raises:
        InputError: the failure cuts off a rank.

    """
    start = time.process_time()
    machine = un.machine(case.machine, failed=[failed] if failed else None)
    plan = un.plan("allgather", machine, bytes=case.block_bytes)
    schedule = plan.schedule if case.simulate else None
    planned = time.process_time() - start
    ranks = int(plan.report()["ranks"])
    limits = {
        bound["name"]: float(bound["seconds"]) for bound in un.bounds("allgather", machine, bytes=case.block_bytes)
    }
    simulated: list[Of] = []
    if schedule is not None:
        seconds = un.simulate(schedule).seconds
        assert seconds is not None
        simulated = [
            Of("simulated", throughput(ranks, case.block_bytes, seconds), "GB/s"),
            Of("time over the bound", f"{seconds / max(limits.values()):.3f}"),
        ]
    name = " ".join([plan.algorithm, *(f"{key}={value}" for key, value in plan.params.items())])
    predicted = throughput(ranks, case.block_bytes, float(plan.predicted["seconds"]))
    machine_name, _, block = case.title.partition(", ")
    figures.add(
        f"{machine_name}; {label}",
        Of("predicted", predicted, "GB/s", "bound by the cut", throughput(ranks, case.block_bytes, limits["cut"])),
        *simulated,
        Of("new plan", f"{planned:.2f}", "CPU s"),
        note=f"{name}; {block}",
    )


def check(case: Case) -> None:
    """Prints the range of the bound `cut` over all members of each class."""
    for failed in case.classes:
        found = []
        start = time.process_time()
        for member in failed.members:
            machine = un.machine(case.machine, failed=[member])
            bounds = un.bounds("allgather", machine, bytes=case.block_bytes)
            found += [float(bound["seconds"]) * 1e6 for bound in bounds if bound["name"] == "cut"]
        spent = time.process_time() - start
        times = f"{min(found):.2f} to {max(found):.2f} µs"
        sys.stdout.write(f"{case.title}: {failed.label}: {len(found)} members, {times}, {spent:.1f} CPU s\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", metavar="NAME", help="only these machines")
    parser.add_argument("--check", action="store_true", help="compare the bounds of all members of a class; no plans")
    given = parsed(parser)
    with Figures("forests", "Failures", given) as figures:
        for case in CASES:
            if given.cases and case.title.split(",")[0] not in given.cases:
                continue
            if given.check:
                check(case)
                continue
            add_figures(case, "nothing", None, figures)
            for failed in case.classes:
                try:
                    add_figures(case, failed.label, failed.members[0], figures)
                except un.InputError as error:
                    # The failure cuts off a rank.
                    sys.stdout.write(f"{case.title}: {failed.label}: {error}\n")


main()
