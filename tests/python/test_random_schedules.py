"""Random schedules and changed certificates: the checker in Python accepts only schedules that the proof accepts."""

import random
from itertools import islice

from unisono import certificate_checker

from proofs.mutations import Pair, accepted, completed, digest, draw, loosened, random_pairs, right
from proofs.random_schedules import schedules

from .conftest import SOAK
from .test_certificates import forged


def agrees(text: str) -> bool | None:
    """Returns whether a schedule is right, None if it is malformed; the checker must refuse wrong schedules."""
    try:
        best = forged(text)
    except certificate_checker.Refused:
        return None
    assert accepted(Pair(text, best)) <= right(text), text
    return right(text)


def test_random_schedules_are_judged_alike() -> None:
    r = random.Random(11)
    verdicts = [agrees(text) for text in islice(schedules(r), 1500 if SOAK else 150)]
    assert verdicts.count(True) > 50
    assert verdicts.count(False) > 5


def test_schedules_with_less_order_are_judged_alike() -> None:
    r = random.Random(12)
    pairs = random_pairs(r, 1500 if SOAK else 150)
    verdicts = [agrees(loosened(pair, r).schedule) for pair in pairs]
    assert verdicts.count(True) > 50
    assert verdicts.count(False) > 20


def test_changed_certificates_are_not_accepted_wrongly() -> None:
    r = random.Random(13)
    pairs, found = random_pairs(r, 200), 0
    for pair in pairs:
        assert accepted(pair), pair
    for _ in range(20000 if SOAK else 2000):
        name, pair = draw(pairs, r)
        if accepted(completed(pair)):
            assert right(pair.schedule), (name, pair)
            found += 1
    assert found > 100


def test_a_certificate_names_its_schedule() -> None:
    (pair,) = random_pairs(random.Random(14), 1)[:1]
    other = pair.schedule + "\n"
    assert not accepted(Pair(other, pair.certificate))
    assert accepted(Pair(other, pair.certificate.replace(digest(pair.schedule), digest(other))))
