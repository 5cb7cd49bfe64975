"""Compares `unisono-check` with `unisono verify` and with the checker in Python, and proved families with Unisono's.

Both checkers must accept the certificate of each schedule that is right, and refuse the best certificate of any other:
of every algorithm at 1 to 17 ranks, of the file tests, of the files of the judge, and of random and mutated schedules.
"""

import argparse
import random
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import unisono as un
from unisono import certificate_checker

from proofs.mutations import CHECK, Checker, Judged, Pair, loosened, random_pairs, right
from proofs.random_schedules import schedules
from proofs.tricks import tricks
from tests.python import test_certificates as tests

JUDGE = Path(__file__).parents[1] / "crates" / "schedule" / "tests" / "all" / "judge" / "schedules"
MACHINES: list[tuple[str, list[tuple[int, ...]]]] = [
    ("archer", [(p,) for p in range(1, 18)]),
    ("wse2", [*((p,) for p in range(1, 18)), (2, 2), (2, 3), (3, 3), (2, 4), (4, 4)]),
    ("piuma", [(p,) for p in range(1, 18)]),
    ("dgx-a100", [(p,) for p in range(1, 9)]),
    ("dgx-h100", [(p,) for p in range(1, 9)]),
]


class Family(NamedTuple):
    """A schedule that is proved for every number of ranks."""

    algorithm: str
    collective: str
    ranks: int
    elements: int
    # Further arguments of the proved definition. Broadcast, reduce: the root, the elements of a segment and, for a
    # reduce, 1 if the order of operands matters. Recursive multiplying: the factors.
    more: Sequence[int] = ()
    root: int = 0
    op: str = "sum"
    params: dict[str, str] | None = None

    def made(self) -> list[str]:
        """Returns the streams and instructions of the schedule that Unisono makes."""
        dtype = "i64" if self.op == "ordered" else "f32"
        plan = un.plan(
            self.collective,
            un.machine("archer", (self.ranks,)),
            elements=self.elements,
            dtype=dtype,
            op=self.op,
            root=self.root,
            algorithm=self.algorithm,
            params=self.params,
        )
        lines = [re.sub(r"^(  i\d+) p\d+:", r"\1:", line) for line in plan.schedule.to_text().split("\n")]
        return [line for line in lines if line.startswith(("stream ", "node ", "  i"))]

    def defined(self) -> list[str]:
        """Returns the streams and instructions of the schedule that the proofs define."""
        numbers = [self.ranks, self.elements, *self.more]
        command = [str(CHECK.with_name("generate")), self.algorithm, self.collective, *map(str, numbers)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def trees(ranks: int, root: int, segment: int) -> Iterator[Family]:
    """Yields broadcasts and reductions of 7 elements along binomial trees and chains."""
    for name, params in (("binomial", {"radix": "2"}), ("pipelined-chain", {})):
        found = params | {"segment": str(4 * segment)}
        yield Family(name, "broadcast", ranks, 7, (root, segment), root, params=found)
        yield Family(name, "reduce", ranks, 7, (root, segment, 0), root, params=found)
        found = params | {"segment": str(8 * segment)}
        yield Family(name, "reduce", ranks, 7, (root, segment, 1), root, "ordered", found)


def families(most: int) -> Iterator[Family]:
    """Yields the schedules to compare."""
    for ranks in range(2, most + 1):
        for elements in (1, 3):
            yield Family("ring", "allgather", ranks, elements)
            yield Family("ring", "reduce-scatter", ranks, elements)
            yield Family("bruck", "allgather", ranks, elements)
        for elements in sorted({1, 3, ranks - 1, 2 * ranks + 1}):
            yield Family("ring", "allreduce", ranks, elements)
        for root in sorted({0, ranks // 2, ranks - 1}):
            for segment in (2, 7):
                yield from trees(ranks, root, segment)
            yield from broadcasts(ranks, root)
        yield Family("recursive-doubling", "allreduce", ranks, 3)
        for factors in factorings(ranks):
            schedule = {"schedule": ",".join(f"a{factor}" for factor in factors)}
            yield Family("recursive-multiplying", "allreduce", ranks, 3, factors, params=schedule)


def broadcasts(ranks: int, root: int) -> Iterator[Family]:
    """Yields circulant broadcasts of 19 elements."""
    for blocks, length in ((1, 19), (4, 5), (19, 1)):
        yield Family("circulant", "broadcast", ranks, 19, (root, length), root, params={"blocks": str(blocks)})


def factorings(number: int) -> list[list[int]]:
    """Returns all ways to write a number as a product of factors from 2 on, in every order."""
    found = [[number]] if number > 1 else []
    for factor in range(2, number // 2 + 1):
        if number % factor == 0:
            found += [[factor, *rest] for rest in factorings(number // factor)]
    return found


def generated(most: int) -> int:
    """Compares the families proved for all numbers of ranks with Unisono's schedules; returns how many differ."""
    cases = different = 0
    for family in families(most):
        cases += 1
        if family.made() != family.defined():
            different += 1
            print(f"differs: {family}")
    print(f"{cases} schedules of 2 to {most} ranks compared with the definitions, {different} differ", flush=True)
    command = [str(CHECK.with_name("generate")), "tables", str(8 * most)]
    wrong = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    print(f"tables of circulant broadcasts of 2 to {8 * most} ranks, {len(wrong)} wrong", *wrong, sep="\n", flush=True)
    return different + len(wrong)


class Comparison(Judged):
    """The verdicts of both checkers on schedules, each with the certificate most likely to be accepted."""

    def __init__(self) -> None:
        super().__init__(Checker())
        self.pairs = list[Pair]()

    def schedule(self, name: str, text: str) -> None:
        """Judges a schedule: if it is right, both checkers must accept its certificate, or else refuse a forged one."""
        text = text.partition("\nmachine")[0].partition("\nplacement")[0] + "\n"
        holds = right(text)
        try:
            certificate = un.Schedule.parse(text).certificate(text=text) if holds else tests.forged(text)
        except certificate_checker.Refused:
            self.verdicts[f"{name}: no schedule"] += 1
            return
        pair = Pair(text, certificate)
        before = self.verdicts.copy()
        self.judge([(name, pair)])
        if holds:
            self.pairs.append(pair)
            if not any("accepted" in words for words in self.verdicts - before):
                self.wrong += 1
                print("REFUSED, and the schedule is right", *pair, sep="\n", flush=True)

    def small(self) -> list[Pair]:
        """Returns the right schedules of under 4000 characters that have instructions, with their certificates."""
        return [pair for pair in self.pairs if len(pair.schedule) < 4000 and "\n  i0" in pair.schedule]

    def print_verdicts(self, began: float) -> None:
        """Prints the verdicts since the last call of this function."""
        for words, times in sorted(self.verdicts.items()):
            print(f"{times:9} {words}")
        print(f"{'':9} {time.perf_counter() - began:.0f} s, {self.wrong} wrong verdicts so far", flush=True)
        self.verdicts = Counter()


def algorithms(found: Comparison, most: int) -> None:
    """Judges every algorithm on `MACHINES` with up to `most` ranks, and reductions with the operator `ordered`."""
    for algorithm in un.algorithms():
        name = algorithm["name"]
        for collective in algorithm["collectives"]:
            cases = [(machine, shape, "sum") for machine, shapes in MACHINES for shape in shapes if shape[0] <= most]
            if collective in ("allreduce", "reduce", "reduce-scatter", "scan"):
                cases.append(("archer", (5,), "ordered"))
            for machine, shape, operator in cases:
                text = tests.planned(name, collective, machine, shape, operator)
                if text is not None:
                    found.schedule("algorithms", text)


def files(found: Comparison) -> None:
    """Judges the schedules of the file tests, of the folders `WRONG` and `JUDGE`, and the tricks."""
    for path in (*tests.FILETESTS, *sorted(tests.WRONG.glob("*.sched")), *sorted(JUDGE.glob("*.sched"))):
        found.schedule("files", path.read_text())
    found.schedule("files", tests.RELAY)
    found.judge([("tricks", pair) for pair in tricks(found.pairs[-1])])


def drawn(found: Comparison, count: int, mutated: int) -> None:
    """Judges random schedules, and mutations of all right schedules that were judged so far."""
    r = random.Random(7)
    for text in islice(schedules(r), count):
        found.schedule("random schedules", text)
    small = found.small()
    for _ in range(mutated):
        found.schedule("mutated schedules", tests.mutated(r.choice(small).schedule, r))
        found.schedule("schedules with less order", loosened(r.choice(small), r).schedule)


def main() -> int:
    """Runs the comparison and prints the verdicts; returns 1 if two programs ever disagree."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--certificates", type=int, default=20000, help="pairs of mutated files")
    options.add_argument("--random", type=int, default=5000, help="random schedules")
    options.add_argument("--schedules", type=int, default=3000, help="mutated schedules")
    options.add_argument("--most", type=int, default=17, help="ranks of the algorithms")
    options.add_argument("--generated", type=int, default=64, help="ranks of the families proved for every number")
    chosen = options.parse_args()
    different, found, began = generated(chosen.generated), Comparison(), time.perf_counter()
    algorithms(found, chosen.most)
    found.print_verdicts(began)
    files(found)
    drawn(found, chosen.random, chosen.schedules)
    found.print_verdicts(began)
    found.mutations(found.small() + random_pairs(random.Random(8), 2000), chosen.certificates, 9)
    found.print_verdicts(began)
    return int(found.wrong + different > 0)


if __name__ == "__main__":
    sys.exit(main())
