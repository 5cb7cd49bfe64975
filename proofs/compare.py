"""Compares `unisono-check` with `unisono verify` and with the checker in Python.

Every algorithm at 1 to 17 ranks is accepted, and so are the proved file tests. No mutated certificate or schedule is
accepted that the checker in Python refuses.
"""

import argparse
import hashlib
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import unisono as un
from unisono import certificate_checker

from tests.python import test_certificates as tests

CHECK = Path(__file__).parent / "build" / "unisono-check"
MACHINES: list[tuple[str, list[tuple[int, ...]]]] = [
    ("archer", [(p,) for p in range(1, 18)]),
    ("wse2", [*((p,) for p in range(1, 18)), (2, 2), (2, 3), (3, 3), (2, 4), (4, 4)]),
    ("piuma", [(p,) for p in range(1, 18)]),
    ("dgx-a100", [(p,) for p in range(1, 9)]),
    ("dgx-h100", [(p,) for p in range(1, 9)]),
]


class Checker:
    """A running `unisono-check`."""

    def __init__(self, folder: str) -> None:
        self._files = [Path(folder) / "s", Path(folder) / "c"]
        self._run = subprocess.Popen([CHECK, "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def accepts(self, schedule: str, certificate: str) -> bool:
        """Returns whether the proved checker accepts."""
        for path, text in zip(self._files, (schedule, certificate), strict=True):
            path.write_text(text, encoding="utf-8", errors="surrogateescape", newline="")
        assert self._run.stdin is not None
        assert self._run.stdout is not None
        print("\t".join(map(str, self._files)), file=self._run.stdin, flush=True)
        return self._run.stdout.readline() == "0\n"


def damaged(certificate: str, r: random.Random) -> str:
    """Returns the certificate with a word of its order changed, dropped, repeated or moved."""
    head, _, rest = certificate.partition("order\n")
    words = rest.removesuffix("\nend\n").split()
    for _ in range(r.choice([1, 1, 2, 3])):
        at, kind = r.randrange(len(words)), r.randrange(5)
        if kind == 0 and len(words) > 1:
            del words[at]
        elif kind == 1:
            words.insert(at, r.choice(words))
        elif kind == 2:
            other = r.randrange(len(words))
            words[at], words[other] = words[other], words[at]
        elif kind == 3:
            words[at] = words[at].rpartition("<")[0] or words[at]
        else:
            digits = [i for i, c in enumerate(words[at]) if c.isdigit()]
            place = r.choice(digits)
            words[at] = words[at][:place] + r.choice("0123456789") + words[at][place + 1 :]
    lines = head.split("\n")
    facts = sum(word.count("<") for word in words)
    lines = [f"facts {facts}" if line.startswith("facts ") else line for line in lines]
    return "\n".join(lines) + "order\n" + " ".join(words) + "\nend\n"


class Family(NamedTuple):
    """A schedule that is proved for every number of ranks."""

    algorithm: str
    collective: str
    ranks: int
    elements: int
    # Further numbers of the definition: the root, the elements of a segment and, of a reduce, 1 if the order matters;
    # or the factors.
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
        """Returns those that the proofs define."""
        numbers = [self.ranks, self.elements, *self.more]
        command = [str(CHECK.with_name("generate")), self.algorithm, self.collective, *map(str, numbers)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def trees(ranks: int, root: int, segment: int) -> Iterator[Family]:
    """Yields broadcasts and reductions of 7 elements."""
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
        yield Family("recursive-doubling", "allreduce", ranks, 3)
        for factors in factorings(ranks):
            schedule = {"schedule": ",".join(f"a{factor}" for factor in factors)}
            yield Family("recursive-multiplying", "allreduce", ranks, 3, factors, params=schedule)


def factorings(number: int) -> list[list[int]]:
    """Returns all ways to write a number as a product of factors from 2 on, in every order."""
    found = [[number]] if number > 1 else []
    for factor in range(2, number // 2 + 1):
        if number % factor == 0:
            found += [[factor, *rest] for rest in factorings(number // factor)]
    return found


def generated(most: int) -> int:
    """Compares the families proved for every number of ranks with what Unisono makes; returns the differences."""
    cases = different = 0
    for family in families(most):
        cases += 1
        if family.made() != family.defined():
            different += 1
            print(f"differs: {family}")
    print(f"{cases} schedules of 2 to {most} ranks compared with the definitions, {different} differ", flush=True)
    return different


class Comparison:
    """The verdicts of `unisono-check` beside those of the checker in Python."""

    def __init__(self, checker: Checker) -> None:
        self.checker, self.wrong, self.pairs = checker, 0, list[tuple[str, str]]()

    def must_accept(self, case: str, text: str, certificate: str) -> None:
        """Gives both files of a proved schedule to the checker."""
        self.pairs.append((text, certificate))
        if not self.checker.accepts(text, certificate):
            self.wrong += 1
            print(f"refused: {case}")

    def must_agree(self, text: str, certificate: str) -> str:
        """Returns the verdict of both checkers on any two files."""
        words = {True: "accepted", False: "refused"}
        ours, other = self.checker.accepts(text, certificate), tests.accepted(text, certificate)
        if ours == other:
            return words[ours]
        self.wrong += 1
        print(f"{words[ours]} by unisono-check, {words[other]} by the checker in Python:", text, certificate, sep="\n")
        return "disagreed"

    def must_agree_on(self, text: str) -> str:
        """Returns the verdict of both on a text with the best certificate that it can have."""
        try:
            return self.must_agree(text, tests.forged(text))
        except certificate_checker.Refused:
            return "no schedule"


def algorithms(found: Comparison, most: int) -> None:
    """Compares certificates of every algorithm, and of reductions with an operator that does not commute."""
    began = time.perf_counter()
    for algorithm in un.algorithms():
        name = algorithm["name"]
        for collective in algorithm["collectives"]:
            cases = [(machine, shape, "sum") for machine, shapes in MACHINES for shape in shapes if shape[0] <= most]
            if collective in ("allreduce", "reduce", "reduce-scatter", "scan"):
                cases.append(("archer", (5,), "ordered"))
            for machine, shape, operator in cases:
                text = tests.planned(name, collective, machine, shape, operator)
                if text is not None:
                    case = f"{name} {collective} {machine} {shape} {operator}"
                    found.must_accept(case, text, un.Schedule.parse(text).certificate())
    seconds = time.perf_counter() - began
    print(f"{len(found.pairs)} schedules of algorithms, {found.wrong} of them refused; {seconds:.0f} s", flush=True)


def files(found: Comparison) -> None:
    """Compares the verdicts on all schedules of the file tests."""
    verdicts = Counter[str]()
    for path in tests.FILETESTS:
        text = path.read_text()
        if tests.proved(text):
            found.must_accept(path.name, text, un.Schedule.parse(text).certificate(text=text))
        verdicts[found.must_agree_on(text)] += 1
    found.must_accept("relay", tests.RELAY, un.Schedule.parse(tests.RELAY).certificate(text=tests.RELAY))
    print(f"file tests: {dict(verdicts)}", flush=True)


def mutations(found: Comparison, certificates: int, schedules: int) -> None:
    """Compares the verdicts on mutated certificates, and on mutated schedules with the best certificates."""
    r, relay = random.Random(7), found.pairs[-1]
    small = [pair for pair in found.pairs if len(pair[0]) < 4000 and "\n  i0" in pair[0]]
    # Few schedules need facts, and these are the hardest to judge.
    small += [relay] * (len(small) // 5)
    verdicts = Counter[str]()
    for _ in range(certificates):
        text, certificate = r.choice(small)
        verdicts[found.must_agree(text, damaged(certificate, r))] += 1
    print(f"mutated certificates: {dict(verdicts)}", flush=True)
    verdicts.clear()
    for _ in range(schedules):
        text, certificate = r.choice(small)
        text = tests.mutated(text.partition("\nmachine")[0].partition("\nplacement")[0] + "\n", r)
        verdicts[found.must_agree_on(text)] += 1
        # The reader of `unisono-check` may be stricter than the other one, but not laxer.
        certificate = re.sub(r"sha256=\w+", f"sha256={hashlib.sha256(text.encode()).hexdigest()}", certificate)
        if found.checker.accepts(text, certificate) and not tests.accepted(text, certificate):
            found.wrong += 1
            print("accepted by unisono-check alone:", text, certificate, sep="\n")
    print(f"mutated schedules: {dict(verdicts)}", flush=True)


def main() -> int:
    """Runs the comparison and prints what was compared; returns 1 if two programs ever disagree."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--certificates", type=int, default=20000, help="mutated certificates")
    options.add_argument("--schedules", type=int, default=3000, help="mutated schedules")
    options.add_argument("--most", type=int, default=17, help="ranks of the algorithms")
    options.add_argument("--generated", type=int, default=64, help="ranks of the families proved for every number")
    chosen = options.parse_args()
    different = generated(chosen.generated)
    with tempfile.TemporaryDirectory() as folder:
        found = Comparison(Checker(folder))
        algorithms(found, chosen.most)
        files(found)
        mutations(found, chosen.certificates, chosen.schedules)
    return int(found.wrong + different > 0)


if __name__ == "__main__":
    sys.exit(main())
