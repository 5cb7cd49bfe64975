"""Certificates of proofs: the independent checker accepts those of every algorithm, and refuses wrong schedules."""

import ast
import functools
import hashlib
import math
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import unisono as un
from unisono import certificate_checker as checker

from .conftest import ROOT, SOAK, call, json_of

FILE = Path(checker.__file__)
FILETESTS = sorted((ROOT / "tests" / "filetests").glob("*.sched"))
WRONG = ROOT / "tests" / "certificates"
CLAIMS = "complete deadlock-free race-free"
#: The claims about bits that a certificate may add to `CLAIMS`.
EVERY = ["repeatable", "place"]


def claimed(proof: un.Proof) -> list[str]:
    """Returns the claims about bits that the certificate of a proof must have."""
    assert proof.repeatable is ("ranks" in proof.bits)
    return [{"ranks": "repeatable"}.get(name, name) for name in proof.bits]


def order(s: checker.Schedule) -> list[int]:
    """Returns an order in which instructions can run, without those in a deadlock."""
    ends = [*(first for _, first in s.lanes[1:]), len(s.rows)]
    at, passed, done, found, moved = [first for _, first in s.lanes], dict[tuple[int, int], int](), set[int](), [], True
    while moved:
        moved = False
        for lane, (node, _) in enumerate(s.lanes):
            while at[lane] < ends[lane]:
                _, length, sources, sinks, after = s.rows[at[lane]]
                pops = [(stream, place + length) for kind, stream, place in sources if kind == checker.STREAM]
                pushes = [(stream, place + length) for kind, stream, place in sinks if kind == checker.STREAM]
                ready = all(passed.get((stream, s.streams[stream][0]), 0) >= end for stream, end in pops)
                for stream, end in pushes:
                    _, readers, room = s.streams[stream]
                    ready &= room is None or all(passed.get((stream, n), 0) + room >= end for n in readers)
                if not ready or not done.issuperset(after):
                    break
                passed.update({(stream, node): end for stream, end in pops + pushes})
                done.add(at[lane])
                found.append(at[lane])
                at[lane], moved = at[lane] + 1, True
    return found


def forged(text: str, claims: str = CLAIMS, facts: bool = True) -> str:
    """Returns the certificate of a right or wrong schedule most likely to be accepted: an order with all its facts."""
    s = checker.Schedule(text)
    replay, words = checker.Replay(s), []
    writers = [(i, {b for a, b, _ in row[3] if a == checker.STREAM}) for i, row in enumerate(s.rows)]
    for this in order(s):
        word, row = str(this), s.rows[this]
        popped = {b for a, b, _ in row[2] if a == checker.STREAM}
        before = {*row[4], *(i for i, pushed in writers if pushed & popped)} if facts else set()
        for via in sorted(before):
            known = [n for n, fact in enumerate(replay.facts, 1) if s.rows[fact[0]][0] == s.rows[via][0]]
            for start, earlier in [("", ""), ("=", ""), *(("", str(n)) for n in known[-8:])]:
                try:
                    replay._fact(this, row[0], start, str(via), earlier)
                except checker.Refused:
                    continue
                word += f"<{start}{via}{'@' * bool(earlier)}{earlier}"
        words.append(word)
    digest = hashlib.sha256(text.encode()).hexdigest()
    head = ["unisono-certificate 1", f"schedule sha256={digest}", f"instructions {len(s.rows)}"]
    return "\n".join([*head, f"facts {len(replay.facts)}", f"claims {claims}", "order", *words, "end", ""])


def accepted(schedule: str, certificate: str) -> bool:
    """Returns whether the checker accepts; exceptions other than `Refused` fail the test."""
    try:
        checker.check(schedule, certificate)
    except checker.Refused:
        return False
    return True


def proved(text: str) -> bool:
    try:
        return un.Schedule.parse(text).verify().holds
    except un.InputError:
        return False


@functools.cache
def planned(algorithm: str, collective: str, machine: str, shape: tuple[int, ...], op: str = "sum") -> str | None:
    """Returns the schedule's text, or None if the algorithm does not support the case."""
    dtype = "i64" if op == "ordered" else "f32"
    params = {"node": "2"} if algorithm == "hierarchical" else None
    try:
        where = un.machine(machine, shape)
        plan = un.plan(collective, where, elements=5, op=op, dtype=dtype, algorithm=algorithm, params=params)
    except (un.UnsupportedError, un.InputError):
        return None
    return plan.schedule.to_text()


def test_checker_is_small_and_uses_the_standard_library_alone() -> None:
    text = FILE.read_text()
    assert len(text.splitlines()) <= 500
    for node in ast.walk(ast.parse(text)):
        names = [node.module] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for name in names:
            assert name is not None
            assert name.split(".")[0] in sys.stdlib_module_names


def test_checker_runs_anywhere(tmp_path: Path) -> None:
    copy = shutil.copy(FILE, tmp_path)
    text = (ROOT / "tests" / "filetests" / "allreduce-4.sched").read_text()
    certificate = un.Schedule.parse(text).certificate(text=text)
    files: dict[str, str | bytes] = {
        "s": text,
        "c": certificate,
        "cut": certificate[:-5],
        "other": text + "\n",
        "not-utf-8": b"\xff\xfe",
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data if isinstance(data, bytes) else data.encode())
    rows = [("s", "c", 0), ("s", "cut", 1), ("other", "c", 1), ("s", "not-utf-8", 2), ("c", "c", 2), ("s", ".", 2)]
    for schedule, against, code in [*rows, ("absent", "c", 2), ("not-utf-8", "c", 2)]:
        ran = subprocess.run(
            [sys.executable, "-I", "-S", copy, schedule, against],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == code, (schedule, against, ran)
        assert len((ran.stdout + ran.stderr).splitlines()) == 1
        assert "Traceback" not in ran.stderr
    assert checker.main([]) == 2


MACHINES: list[tuple[str, list[tuple[int, ...]]]] = [
    ("archer", [(p,) for p in range(1, 10)]),
    ("wse2", [*((p,) for p in range(1, 10)), (2, 2), (2, 3), (3, 3), (2, 4)]),
    ("piuma", [(p,) for p in range(1, 10)]),
    ("dgx-a100", [(p,) for p in range(1, 9)]),
    ("dgx-h100", [(p,) for p in range(1, 9)]),
]


@pytest.mark.parametrize("most", [pytest.param(3, id="few"), pytest.param(9, id="all", marks=pytest.mark.soak)])
@pytest.mark.parametrize("name", [algorithm["name"] for algorithm in un.algorithms()])
def test_every_algorithm_is_accepted(name: str, most: int) -> None:
    (about,) = (algorithm for algorithm in un.algorithms() if algorithm["name"] == name)
    served = 0
    for collective in about["collectives"]:
        for machine, shapes in MACHINES:
            # `dgx-h100` covers the same kind of machine.
            if most < 9 and machine == "dgx-a100":
                continue
            for shape in (shape for shape in shapes if math.prod(shape) <= most or shape == shapes[-1]):
                text = planned(name, collective, machine, shape)
                if text is None:
                    continue
                schedule = un.Schedule.parse(text)
                proof = schedule.verify()
                instructions, _, _, claims = checker.check(text, schedule.certificate(proof))
                case = collective, machine, shape
                assert (instructions, claims) == (schedule.instructions, claimed(proof)), case
                if claims != EVERY:
                    assert not accepted(text, forged(text, " ".join([CLAIMS, *EVERY]))), case
                served += 1
    assert served


@pytest.mark.parametrize("op", ["ordered", "prod", "min"])
def test_other_operators_are_accepted(op: str) -> None:
    count = 0
    for algorithm in un.algorithms():
        for collective in set(algorithm["collectives"]) & {"allreduce", "reduce", "reduce-scatter", "scan"}:
            for machine, shape in [("archer", (5,)), ("wse2", (2, 3)), ("piuma", (5,))]:
                if text := planned(algorithm["name"], collective, machine, shape, op):
                    # The certificate without claims of bits is also accepted.
                    certificate = un.Schedule.parse(text).certificate().replace(" repeatable", "").replace(" place", "")
                    assert checker.check(text, certificate), (algorithm["name"], op)
                    count += 1
    assert count > 5


@pytest.mark.parametrize("path", FILETESTS, ids=lambda path: path.stem)
def test_checker_agrees_with_the_proof_of_every_file(path: Path) -> None:
    text = path.read_text()
    if proved(text):
        schedule = un.Schedule.parse(text)
        proof = schedule.verify()
        assert checker.check(text, schedule.certificate(proof, text))[3] == claimed(proof)
        assert accepted(text, forged(text, f"{CLAIMS} repeatable")) == proof.repeatable
        assert accepted(text, forged(text, " ".join([CLAIMS, *EVERY]))) == (claimed(proof) == EVERY)
        return
    with pytest.raises((un.VerifyError, un.InputError)):
        un.Schedule.parse(text).certificate()
    if "machine" in text.split() or "placement" in text.split():
        return  # Certificates do not cover machines and placements.
    try:
        certificate = forged(text)
    except checker.Refused:
        return
    assert not accepted(text, certificate)


def test_forged_proofs_are_refused() -> None:
    # A reduce that adds a rank twice, built so that fingerprints with a known seed do not detect this.
    text = (WRONG / "wrong-fingerprint.sched").read_text()
    with pytest.raises(checker.Refused, match="combines a rank twice"):
        checker.check(text, forged(text, facts=False))
    # An allreduce whose ranks end with different expressions that have equal unkeyed hashes.
    text = (WRONG / "wrong-repeatable.sched").read_text()
    with pytest.raises(checker.Refused, match="different expressions"):
        checker.check(text, forged(text, f"{CLAIMS} repeatable", facts=False))
    assert checker.check(text, forged(text, facts=False))[3] == []


def test_order_of_operands_of_a_float_minimum_decides_repeatability() -> None:
    text = planned("recursive-doubling", "allreduce", "archer", (2,))
    assert text is not None
    lines = text.splitlines(keepends=True)
    at = next(i for i in reversed(range(len(lines))) if " + " in lines[i])
    left, rest = lines[at].split(": ", 1)[1].split(" + ", 1)
    right, arrow, sinks = rest.partition(" -> ")
    swapped = [*lines]
    swapped[at] = f"{lines[at].split(': ', 1)[0]}: {right} + {left}{arrow}{sinks}"
    for operator, dtype in [("sum", "f32"), ("min", "i32"), ("min", "f32"), ("max", "f64")]:
        kinds = []
        for variant in (lines, swapped):
            case = "".join(variant).replace("operator=sum dtype=f32", f"operator={operator} dtype={dtype}")
            kinds.append(accepted(case, forged(case, f"{CLAIMS} repeatable")))
        assert kinds == ([True, True] if operator == "sum" or dtype == "i32" else [kinds[0], not kinds[0]])


RELAY = """unisono-schedule 1
collective reduce ranks=2 elements=2 root=0 operator=sum dtype=f32
phases go
nodes 3
stream s0: 0 -> 2
stream s1: 2 -> 0
stream s2: 1 -> 0
node 0: tmp=4
  i0: s2 + in[0..2] -> tmp[0..2]
  i1: tmp[0..2] -> s0
  lane
  i2: s1 -> out[0..2]
  i3: in[0..2] -> tmp[0..2]
node 1:
  i4: in[0..2] -> s2
node 2:
  i5: s0 -> s1 len=2
"""


def test_an_order_over_other_nodes_needs_its_facts() -> None:
    schedule = un.Schedule.parse(RELAY)
    assert schedule.verify()
    certificate = schedule.certificate(text=RELAY)
    facts = certificate.count("<")
    assert facts >= 2
    assert checker.check(RELAY, certificate)[1] == facts
    # The certificate needs each of its facts to order the two lanes.
    for word in certificate.split():
        if "<" in word:
            less = certificate.replace(word, word.partition("<")[0], 1)
            assert not accepted(RELAY, less)
            assert not accepted(RELAY, less.replace(f"facts {facts}", f"facts {facts - word.count('<')}"))
    # Facts that do not follow are refused at every place.
    for wrong in ("<0", "<=0", "<2", "<3", "<4", "<=4", "<99", "<0@1", "<5@7", "<=5@1", "<5@0", "<1@" + "9" * 10):
        for word in certificate.split("order\n")[1].split()[:-1]:
            forgery = certificate.replace(f" {word} ", f" {word}{wrong} ", 1) if f" {word} " in certificate else None
            if forgery and "-" not in word:
                assert not accepted(RELAY, forgery)
                raised = forgery.replace(f"facts {facts}", f"facts {facts + 1}")
                if accepted(RELAY, raised):
                    # A true fact may be stated for an instruction that does not need it.
                    assert accepted(RELAY, forged(RELAY))


@pytest.mark.parametrize("fact", ["origin a", "phases go", "nodes 3"])
def test_no_reader_accepts_a_fact_twice(fact: str) -> None:
    once = RELAY.replace("stream s0", "origin a\nstream s0", 1)
    assert accepted(once, un.Schedule.parse(once).certificate(text=once))
    twice = once.replace("stream s0", f"{fact}\nstream s0", 1)
    with pytest.raises(un.InputError, match="a second"):
        un.Schedule.parse(twice)
    with pytest.raises(checker.Refused, match="a second"):
        checker.check(twice, forged(twice))


def mutated(text: str, r: random.Random) -> str:
    """Returns the text with lines dropped, repeated or swapped, or with numbers and words changed."""
    lines = text.split("\n")
    for _ in range(r.choice([1, 1, 2])):
        at, other = r.randrange(2, len(lines)), r.randrange(2, len(lines))
        kind = r.randrange(6)
        if kind == 0:
            del lines[at]
        elif kind == 1:
            lines.insert(at, lines[other])
        elif kind == 2:
            lines[at], lines[other] = lines[other], lines[at]
        elif kind == 3:
            words = lines[at].split(" ")
            place = r.randrange(len(words))
            words[place] = r.choice([w for line in lines[2:] for w in line.split(" ")])
            lines[at] = " ".join(words)
        else:
            digits = [i for i, c in enumerate(lines[at]) if c.isdigit()]
            if digits:
                place = r.choice(digits)
                new = r.choice([*"0123456789", "4294967295", "4294967296", "9" * 5000, "", "-1"])
                lines[at] = lines[at][:place] + new + lines[at][place + 1 :]
        if len(lines) < 4:
            break
    # Instructions are numbered again in order, so that wrong numbers do not hide other mutations.
    number = 0
    for i, line in enumerate(lines):
        head = line.strip().partition(":")[0].partition(" ")[0]
        if line.startswith("  i") and head[1:].isdigit():
            lines[i] = line.replace(head, f"i{number}", 1)
            number += 1
    return "\n".join(lines)


def test_nothing_that_the_proof_refuses_is_accepted() -> None:
    r = random.Random(5)
    sources = [RELAY, *(p.read_text() for p in FILETESTS if proved(p.read_text()))]
    for name, collective in [("ring", "allreduce"), ("pairwise", "alltoall"), ("recursive-doubling", "scan")]:
        text = planned(name, collective, "archer", (3,))
        assert text is not None
        sources.append(text)
    sources = [text.partition("\nmachine")[0].partition("\nplacement")[0] + "\n" for text in sources]
    both, draws = 0, 6000 if SOAK else 1000
    for _ in range(draws):
        text = mutated(r.choice(sources), r)
        try:
            certificate = forged(text)
        except checker.Refused:
            continue
        if accepted(text, certificate):
            assert proved(text), text
            both += 1
    assert both > draws // 60


def test_damaged_certificates_never_raise() -> None:
    r = random.Random(6)
    text = planned("ring", "allreduce", "archer", (4,))
    assert text is not None
    for schedule in (text, RELAY):
        certificate = un.Schedule.parse(schedule).certificate(text=schedule)
        for cut in range(0, len(certificate), 7):
            assert not accepted(schedule, certificate[:cut])
        words = [
            *certificate.split(),
            "<0",
            "1<2",
            "1<=0",
            "3<1@1",
            "-",
            "0-4294967295",
            "9" * 5000,
            "\0",
            "é",
            "<",
            "@",
        ]
        for _ in range(3000 if SOAK else 300):
            parts = certificate.split(" ")
            at = r.randrange(len(parts))
            parts[at : at + r.randrange(2)] = [r.choice(words)] * r.randrange(3)
            accepted(schedule, " ".join(parts))


def test_command_line_writes_and_checks(tmp_path: Path) -> None:
    schedule, certificate = str(tmp_path / "ring.sched"), str(tmp_path / "ring.cert")
    options = ["allreduce", "--machine", "archer", "--ranks", "4", "--elements", "8", "--algorithm", "ring"]
    assert call("schedule", *options, "-o", schedule).code == 0
    assert call("verify", schedule, "--certificate", certificate).code == 0
    text = Path(certificate).read_text()
    found = json_of("verify", schedule, "--check", certificate)
    assert (found["holds"], found["error_probability"], found["repeatable"]) == (True, 0.0, True)
    assert checker.main([schedule, certificate]) == 0
    # The certificate of the plan is that of the file that `schedule` writes.
    assert call("verify", *options, "--certificate", certificate).code == 0
    assert Path(certificate).read_text() == text
    assert call("verify", schedule, "--check", certificate, "--require", "ranks").code == 0
    assert call("verify", schedule, "--check", certificate, "--require", "place").code == 1
    Path(certificate).write_text(text.replace(" repeatable", "", 1).replace("facts 0", "facts 1"))
    ran = call("verify", schedule, "--check", certificate)
    assert (ran.code, ran.out.startswith("refused: ")) == (1, True)
    assert call("verify", schedule, "--check", certificate, "--certificate", certificate).code == 2
    assert call("verify", schedule, "--certificate", schedule).code == 2
    assert call("verify", str(tmp_path / "absent"), "--check", certificate).code == 2


def test_a_proof_that_fails_writes_nothing(tmp_path: Path) -> None:
    certificate = tmp_path / "no.cert"
    ran = call("verify", str(ROOT / "tests" / "filetests" / "race.sched"), "--certificate", str(certificate), "--json")
    assert (ran.code, ran.json["certificate"]) == (1, None)
    assert not certificate.exists()
