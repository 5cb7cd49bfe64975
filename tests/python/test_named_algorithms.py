"""A plan of a named algorithm has the parameters that the ranking of all algorithms gives it."""

import random

import pytest
import unisono as un
from unisono.base.reports import Candidate

from .conftest import SOAK

#: Algorithms that take at most this multiple of the least time are ranked with their best parameters.
LOOKED_AT = 1.6
#: Parts of a machine of every kind.
PARTS: list[tuple[str, tuple[int, ...] | None]] = [
    ("wse2", (9,)),
    ("wse2", (4, 5)),
    ("archer", (7,)),
    ("archer", (8,)),
    ("piuma", (32,)),
    ("a100x4", None),
    ("dgx-h100", None),
    ("mi250", None),
    ("hx2mesh-small", (4, 4)),
]


@pytest.mark.parametrize(("name", "shape"), PARTS)
def test_a_named_algorithm_has_the_parameters_of_the_ranking(name: str, shape: tuple[int, ...] | None) -> None:
    draw = random.Random(f"{name} {shape}")
    machine = un.machine(name, shape)
    compared = 0
    for _ in range(8 if SOAK else 2):
        kind = draw.choice(["allreduce", "reduce", "broadcast"])
        elements = int(2 ** draw.uniform(0, 12 if name == "wse2" else 18))
        first: dict[str, Candidate] = {}
        for candidate in un.plan(kind, machine, elements=elements).candidates:
            first.setdefault(candidate["algorithm"], candidate)
        least = min(ranked["seconds"] for ranked in first.values())
        for algorithm, ranked in first.items():
            best = un.plan(kind, machine, elements=elements, algorithm=algorithm).candidates[0]
            # A finer model also times the best candidate of a ranking and the candidates near it.
            if best["source"] == ranked["source"]:
                compared += 1
                case = (kind, elements, algorithm)
                # A ranking searches no shorter or longer pieces for algorithms that are far from the best.
                if ranked["seconds"] > LOOKED_AT * least:
                    assert best["seconds"] <= ranked["seconds"] * (1 + 1e-9), case
                    continue
                assert best["params"] == ranked["params"], case
                assert best["seconds"] == pytest.approx(ranked["seconds"]), case
            else:
                assert "simulated" in (best["source"], ranked["source"]), (kind, elements, algorithm)
    assert compared > 1


def test_given_parameters_are_kept() -> None:
    """A whole candidate is planned as it is listed; ``params={}`` is the algorithm at its own defaults."""
    for name, kind, size in [
        ("mi250", "broadcast", "2MiB"),
        ("dgx-h100", "reduce", "512"),
        ("mi250", "allreduce", "1MiB"),
    ]:
        for row in un.plan(kind, name, bytes=size).candidates:
            again = un.plan(kind, name, bytes=size, algorithm=row["algorithm"], params=row["params"])
            assert again.params == row["params"], row
    usual = un.plan("reduce", "dgx-h100", bytes=512, algorithm="binomial", params={})
    assert usual.params == {}
    part = un.plan("allreduce", "mi250", bytes="1MiB", algorithm="forest", params={"chunks": "64"})
    ranked = [row for row in un.plan("allreduce", "mi250", bytes="1MiB").candidates if row["algorithm"] == "forest"]
    assert part.params == next(row["params"] for row in ranked if row["params"]["chunks"] == "64")
