"""Pairs of files that a careless parser would misread: signs, leading zeros, overflow, line ends, empty files.

Each trick changes one file of a right pair: RELAY of `tests/python/test_certificates.py`, whose order needs facts.
"""

from collections.abc import Iterator

from proofs.mutations import Pair, digest

#: Changes of the schedule: a text and its replacement. Both checkers accept changes that keep the meaning.
SCHEDULE = [
    ("\n", "\r\n"),
    ("\n", "\r"),
    ("\n", "\n\n"),
    ("\n", " ; comment\n"),
    ("\n", "\x0b\n"),
    (" ", "\t"),
    (" ", "\u00a0"),
    ("  i0", "i0"),
    ("i0: ", "i0:"),
    ("i0: ", "i00: "),
    ("i0: ", "i+0: "),
    ("i0: ", "i0 p0: "),
    ("i0: ", "i0 p1: "),
    ("i1: ", "i2: "),
    ("stream s0", "stream s00"),
    ("tmp[0..2] -> s0", "tmp[0..2] -> s00"),
    ("tmp[0..2] -> s0", "tmp[0..2] -> s0 len=2"),
    ("tmp[0..2] -> s0", "tmp[0..2] -> len=2 s0"),
    ("tmp[0..2] -> s0", "tmp[0..2] -> s0 len=2 len=2"),
    ("tmp[0..2] -> s0", "tmp[0..2] -> s0 after=i0"),
    ("tmp[0..2] -> s0", "tmp[0..2] -> s0 after=i0,i0"),
    ("tmp[0..2] -> s0", "tmp[0..2] -> s0 after=i1"),
    ("tmp[0..2] -> s0", "tmp[0..2] -> s0 after=i3"),
    ("tmp[0..2] -> s0", "tmp[0..2] -> s0 after=i6"),
    ("tmp[0..2] -> s0", "tmp[0..2] -> s0, s0"),
    ("tmp[0..2] -> s0", "tmp[2..2] -> s0"),
    ("tmp[0..2] -> s0", "tmp[2..0] -> s0"),
    ("tmp[0..2] -> s0", "tmp[4294967296..4294967298] -> s0"),
    ("tmp[0..2] -> s0", "tmp[18446744073709551616..18446744073709551618] -> s0"),
    ("tmp[0..2]", "tmp[+0..2]"),
    ("tmp[0..2]", "tmp[-0..2]"),
    ("tmp[0..2]", "tmp[0x0..2]"),
    ("tmp[0..2]", "tmp[0..2_]"),
    ("tmp[0..2]", "tmp[00..02]"),
    ("tmp[0..2]", "tmp[00000000000..2]"),
    ("tmp[0..2]", "tmp[0..2"),
    ("tmp[0..2]", "tmp[0...2]"),
    ("tmp[0..2]", "tmp[4..6]"),
    ("in[0..2] -> s2", "in[0..2] -> in[0..2], s2"),
    ("in[0..2] -> s2", "in[0..2] -> out[0..2], s2"),
    ("tmp=4", "tmp=2"),
    ("tmp=4", "tmp=4294967295"),
    ("tmp=4", "tmp=4294967296"),
    ("nodes 3", "nodes 3\nnodes 3"),
    ("nodes 3", "nodes 2\nnodes 3"),
    ("nodes 3", "nodes 2"),
    ("nodes 3", "nodes 4194304"),
    ("nodes 3", "nodes 4194305"),
    ("node 1:", "node 0:"),
    ("node 1:", "node 1: tmp=0"),
    ("node 1:", "lane\nlane\nnode 1:\nlane"),
    ("0 -> 2", "0 -> 2 2"),
    ("0 -> 2", "0 -> 2 1"),
    ("0 -> 2", "0 -> 2 capacity=0"),
    ("0 -> 2", "0 -> 2 capacity=1"),
    ("0 -> 2", "0 -> 2 capacity=2"),
    ("0 -> 2", "0 -> capacity=2 2"),
    ("0 -> 2", "0 -> 2 capacity=2 capacity=2"),
    ("stream s2: 1 -> 0", "stream s2: 1 -> 0\nstream s3: 1 ->"),
    ("stream s2: 1 -> 0", "stream s2: 1 -> 0\nstream s2: 1 -> 0"),
    ("ranks=2", "ranks=4294967295"),
    ("ranks=2", "ranks=0"),
    ("elements=2", "elements=4294967295"),
    ("elements=2", "elements=0"),
    ("elements=2", "elements=2 "),
    ("elements=2", "elements=-2"),
    ("root=0", "root=2"),
    ("operator=sum", "operator=ordered"),
    ("operator=sum", "operator=xor"),
    ("collective", "collective reduce\ncollective"),
    ("unisono-schedule 1", "unisono-schedule 01"),
    ("unisono-schedule 1", "unisono-schedule 2"),
    ("unisono-schedule 1", "\ufeffunisono-schedule 1"),
    ("unisono-schedule 1", "; first\nunisono-schedule 1"),
    ("phases go", "phases go\norigin é\nphases é"),
    ("phases go", "phases go\norigin é"),
    ("phases go", "phases go\norigin\norigin"),
    ("phases go", "phases go\n origin é"),
    ("phases go", "phases"),
    ("i5: s0 -> s1 len=2", "i5: s0 -> s1 len=2\nmachine none\n  i6: in[0..2] -> s0"),
    ("node 0: tmp=4", "machine none\nnode 0: tmp=4"),
    ("collective", "\0collective"),
]
#: Changes of the certificate: a text and its replacement.
CERTIFICATE = [
    ("\n", "\r\n"),
    ("\nend\n", "\nend"),
    ("\nend\n", "\nend\n\n"),
    ("\nend\n", "\nend\nend\n"),
    ("\nend\n", " 0\nend\n"),
    ("\nend\n", " 0-4294967295\nend\n"),
    ("\nend\n", "\n\nend\n"),
    ("order\n", "order\n "),
    ("order\n", "order\n0-5\norder\n"),
    ("instructions 6", "instructions 06"),
    ("instructions 6", "instructions 4294967302"),
    ("facts ", "facts 0"),
    ("facts ", "facts +"),
    ("<", "<="),
    ("<", "<<"),
    ("<", "<-"),
    ("<", "<+"),
    ("<", "<0"),
    ("@", "@0"),
    ("@", "@-"),
    ("@", "@@"),
    ("@1", "@18446744073709551617"),
    ("race-free", "race-freed"),
    ("race-free", "race-free place"),
    ("race-free repeatable", "race-free"),
    ("race-free repeatable", "race-free repeatable repeatable"),
    ("complete ", ""),
    ("unisono-certificate 1", "unisono-certificate 2"),
]


def tricks(pair: Pair) -> Iterator[Pair]:
    """Yields changed pairs; if the schedule changes, the certificate has the digest of the new one."""

    def named(text: str, certificate: str) -> Pair:
        return Pair(text, certificate.replace(digest(pair.schedule), digest(text)))

    for old, new in SCHEDULE:
        assert old in pair.schedule, old
        yield named(pair.schedule.replace(old, new), pair.certificate)
    for old, new in CERTIFICATE:
        assert old in pair.certificate, old
        yield Pair(pair.schedule, pair.certificate.replace(old, new))
        yield Pair(pair.schedule, pair.certificate.replace(old, new, 1))
    for text in ("", "\n", "end\n", pair.schedule, pair.certificate):
        yield named(text, pair.certificate)
        yield named(text, "")
        yield Pair(pair.schedule, text)
