"""Mutated schedules and certificates, each judged by `unisono-check` and by the checker in Python.

`python -m proofs.mutations --count 1000000` judges a million pairs of files. A pair is accepted wrongly if a checker
accepts it although the proof of `unisono verify`, which sees no certificate, refuses the schedule. Acceptances of pairs
that are still right are counted apart. The two checkers must agree on every pair. Only two lines of the certificate,
which `unisono-check` does not judge, are made right for the checker in Python if it refuses: the digest of the
schedule, and the claims of the bits.
"""

import argparse
import functools
import hashlib
import itertools
import random
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import unisono as un
from unisono import certificate_checker

from proofs.random_schedules import schedules

CHECK = Path(__file__).parent / "build" / "unisono-check"
CHARACTERS = "0123456789 \t\r\n;:,.-+<=>@[]ispaet\0\x85é"
#: Numbers that a parser may misread.
NUMBERS = ["4294967295", "4294967296", "4611686018427387904", "-1", "+1", "00", "0x1", "1e1", "1_0", "", "9" * 30]
#: The number of pairs sent to `unisono-check` at once.
BATCH = 500


class Pair(NamedTuple):
    """The text of a schedule, and a certificate."""

    schedule: str
    certificate: str


class Checker:
    """A running `unisono-check`, which judges pairs one after the other."""

    def __init__(self) -> None:
        self._run = subprocess.Popen([CHECK, "--stream"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def accepts(self, pairs: list[Pair]) -> list[bool]:
        """Returns whether the proved checker accepts each pair, of at most some thousand."""
        assert self._run.stdin is not None
        assert self._run.stdout is not None
        for pair in pairs:
            schedule, certificate = (text.encode("utf-8", "surrogateescape") for text in pair)
            self._run.stdin.write(b"%d %d\n%b%b" % (len(schedule), len(certificate), schedule, certificate))
        self._run.stdin.flush()
        return [self._run.stdout.readline() == b"0\n" for _ in pairs]


def accepted(pair: Pair) -> bool:
    """Returns whether the checker in Python accepts a pair."""
    try:
        certificate_checker.check(*pair)
    except certificate_checker.Refused:
        return False
    return True


def digest(text: str) -> str:
    """Returns the line of a certificate that names its schedule."""
    return f"schedule sha256={hashlib.sha256(text.encode('utf-8', 'surrogateescape')).hexdigest()}"


@functools.lru_cache(maxsize=1 << 16)
def right(text: str) -> bool:
    """Returns whether the proof accepts a schedule, as complete and free of deadlocks and races.

    Sections of machines and placements are cut off, because certificates do not cover them.
    """
    try:
        return un.Schedule.parse(re.split(r"(?m)^(?:machine|placement)", text)[0]).verify().holds
    except un.InputError:
        return False


def random_pairs(r: random.Random, count: int) -> list[Pair]:
    """Returns random right schedules with their certificates; pairs with facts are repeated ten times."""
    found = list[Pair]()
    for text in schedules(r):
        if len(found) >= count:
            break
        if right(text):
            certificate = un.Schedule.parse(text).certificate(text=text)
            # Few schedules need facts, and they are the hardest to judge.
            found += [Pair(text, certificate)] * (10 if "<" in certificate else 1)
    return found


def changed_word(word: str, words: list[str], r: random.Random) -> list[str]:
    """Returns the words that replace one word."""
    numbers = list(re.finditer(r"\d+", word))
    kind = r.randrange(8)
    if kind < 4 and numbers:
        at = r.choice(numbers)
        near = str(max(0, int(at[0]) + r.choice([-2, -1, 1, 1, 2])))
        new = r.choice([near, near, str(r.randrange(12)), re.sub(r"\D", "", r.choice(words)), r.choice(NUMBERS)])
        return [word[: at.start()] + new + word[at.end() :]]
    if kind == 4:
        return []
    if kind == 5:
        return [word, r.choice([word, r.choice(words)])]
    if kind == 6:
        return [word.rpartition("<")[0] or r.choice(words)]
    return [r.choice(words)]


def mutated(text: str, r: random.Random, first: int) -> str:
    """Returns the text with numbers, words, lines or characters changed, from line ``first`` on."""
    for _ in range(r.choice([1, 1, 1, 2, 3])):
        lines = text.split("\n")
        if len(lines) <= first + 1:
            return text
        at, other, kind = r.randrange(first, len(lines)), r.randrange(first, len(lines)), r.randrange(12)
        if kind < 7:
            words = lines[at].split(" ")
            place = r.choice([n for n, word in enumerate(words) if word] or [0])
            words[place : place + 1] = changed_word(words[place], [w for line in lines for w in line.split(" ")], r)
            lines[at] = " ".join(words)
        elif kind == 7:
            words = lines[at].split(" ")
            one, two = r.randrange(len(words)), r.randrange(len(words))
            words[one], words[two] = words[two], words[one]
            lines[at] = " ".join(words)
        elif kind == 8:
            del lines[at]
        elif kind == 9:
            lines.insert(at, lines[other])
        elif kind == 10:
            lines[at], lines[other] = lines[other], lines[at]
        else:
            place = r.randrange(len(lines[at]) + 1)
            new = r.choice(["", r.choice(CHARACTERS)])
            lines[at] = lines[at][:place] + new + lines[at][place + r.randrange(2) :]
        text = "\n".join(lines)
    return text


def number_of(line: str) -> int:
    """Returns the number of the instruction in a line of a schedule."""
    found = re.match(r"  i(\d+)", line)
    assert found is not None, line
    return int(found[1])


def loosened(pair: Pair, r: random.Random) -> Pair:
    """Returns the pair with one dependency fewer, one lane more, or a changed capacity.

    The certificate stays the same, or has a fact that claims the removed order.
    """
    lines, words = pair.schedule.split("\n"), pair.certificate.partition("order\n")[2].split()
    waits = [n for n, line in enumerate(lines) if " after=" in line]
    inner = [n for n, line in enumerate(lines) if n and line.startswith("  i") and lines[n - 1].startswith("  i")]
    rooms = [n for n, line in enumerate(lines) if line.startswith("stream ")]
    kind = r.choice([*["wait"] * 3 * bool(waits), *["lane"] * 2 * bool(inner), *["room"] * bool(rooms), "none"])
    fact = ""
    if kind == "wait":
        at = r.choice(waits)
        head, _, named = lines[at].partition(" after=")
        left = named.split(",")
        fact = f"{number_of(lines[at])}<{left.pop(r.randrange(len(left)))[1:]}"
        lines[at] = head + (" after=" + ",".join(left) if left else "")
    elif kind == "lane":
        at = r.choice(inner)
        this = number_of(lines[at])
        fact = f"{this}<{r.choice(['', '='])}{max(0, this - r.choice([0, 1, 1, 1, 2]))}"
        lines.insert(at, "  lane")
    elif kind == "room":
        at = r.choice(rooms)
        lines[at] = lines[at].partition(" capacity=")[0] + f" capacity={r.randrange(3)}"
    order = list[str]()
    for word in words[:-1]:
        first, _, last = word.partition("<")[0].partition("-")
        each = [str(n) for n in range(int(first), int(last) + 1)] if last else [word]
        order += [
            w + fact[fact.index("<") :] if fact and w.partition("<")[0] == fact.partition("<")[0] else w for w in each
        ]
    claims = pair.certificate.partition("order\n")[0] + "order\n" + " ".join(order) + "\nend\n"
    return repaired(Pair("\n".join(lines), claims if fact and r.random() < 0.6 else pair.certificate))


def renumbered(text: str) -> str:
    """Returns the schedule with consecutive instruction numbers, so that wrong numbers do not hide other faults."""
    numbers = itertools.count()
    return re.sub(r"(?m)^  i\d+", lambda _: f"  i{next(numbers)}", text)


def repaired(pair: Pair) -> Pair:
    """Returns the pair with the right counts, digest and end, so that the order itself is judged."""
    head, mark, rest = pair.certificate.partition("order\n")
    facts, instructions = rest.count("<"), len(re.findall(r"(?m)^  i\d+", pair.schedule))
    head = re.sub(r"(?m)^facts .*$", f"facts {facts}", head)
    head = re.sub(r"(?m)^instructions .*$", f"instructions {instructions}", head)
    return Pair(pair.schedule, re.sub(r"(?m)^schedule .*$", digest(pair.schedule), head) + mark + rest)


def draw(pairs: list[Pair], r: random.Random) -> tuple[str, Pair]:
    """Returns a mutated pair, and the name of the mutated file, or "order" if the schedule has less order."""
    schedule, certificate = pair = r.choice(pairs)
    kind = r.choice(["certificate", "certificate", "schedule", "both", "order", "order"])
    if kind == "order":
        # For many such pairs, only the facts of the certificate decide.
        pair = loosened(pair, r)
        return kind, pair if r.random() < 0.5 else repaired(Pair(pair.schedule, mutated(pair.certificate, r, 5)))
    if kind != "schedule":
        # Line 5 begins the order, which is changed more often than the head because it is longer.
        certificate = mutated(certificate, r, r.choice([0, 5, 5, 5]))
        if r.random() < 0.05:
            certificate = r.choice(pairs).certificate
    if kind != "certificate":
        schedule = mutated(schedule, r, r.choice([0, 2, 2, 2]))
        if r.random() < 0.8:
            schedule = renumbered(schedule)
    changed = Pair(schedule, certificate)
    return kind, changed if changed == pair or r.random() < 0.3 else repaired(changed)


def completed(pair: Pair) -> Pair:
    """Returns the pair with corrected digest and claims of bits, the lines that `unisono-check` does not judge."""
    lines = pair.certificate.split("\n")
    if len(lines) > 4:
        lines[1] = digest(pair.schedule)
        lines[4] = re.sub(r"race-free( repeatable( place)?)?$", "race-free", lines[4])
    return Pair(pair.schedule, "\n".join(lines))


class Judged:
    """The verdicts of both checkers; `wrong` counts wrong acceptances and disagreements."""

    def __init__(self, checker: Checker) -> None:
        self._checker, self.verdicts, self.wrong = checker, Counter[str](), 0

    def judge(self, named: list[tuple[str, Pair]]) -> None:
        """Judges pairs, each with a name under which its verdict is counted."""
        for (name, pair), ours in zip(named, self._checker.accepts([p for _, p in named]), strict=True):
            words = "accepted, the schedule is right" if ours else "refused"
            other = accepted(pair)
            if ours and not other and accepted(completed(pair)):
                other, words = True, "accepted, digest or claim of the bits wrong"
            if (ours or other) and not right(pair.schedule):
                words = "ACCEPTED WRONGLY"
            if ours != other:
                words += f"; the other checker DISAGREES: {other}"
            self.verdicts[f"{name}: {words}"] += 1
            if not words.islower():
                self.wrong += 1
                print(words, pair.schedule, pair.certificate, sep="\n", flush=True)

    def mutations(self, pairs: list[Pair], count: int, seed: int) -> None:
        """Judges `count` random mutations of pairs."""
        r = random.Random(seed)
        for left in range(count, 0, -BATCH):
            self.judge([draw(pairs, r) for _ in range(min(BATCH, left))])


def main() -> int:
    """Judges mutated pairs and prints the verdicts; returns 1 if one is wrong."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--count", type=int, default=10000, help="mutated pairs")
    options.add_argument("--seed", type=int, default=0, help="of the schedules and of their mutations")
    chosen = options.parse_args()
    found, began = Judged(Checker()), time.process_time()
    # Every 20,000 pairs have new schedules, because mutations of the same few schedules repeat.
    for piece, first in enumerate(range(0, chosen.count, 20000)):
        r = random.Random(chosen.seed * 1000003 + piece)
        found.mutations(random_pairs(r, 2000), min(20000, chosen.count - first), r.randrange(1 << 32))
        done = min(first + 20000, chosen.count)
        print(f"{done}: {found.wrong} wrong, {time.process_time() - began:.0f} CPU s", flush=True)
    for words, times in sorted(found.verdicts.items()):
        print(f"{times:9} {words}")
    return int(found.wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
