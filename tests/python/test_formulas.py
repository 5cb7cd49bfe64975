"""The formulas of the registry against the times that the models predict."""

import math
import random
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import pytest
import unisono as un
from unisono.cli import main

PRICES = {"alpha": 1000.0, "beta": 0.25, "gamma": 0.125}
POSTAL = {"alpha_p": 1340.0, "alpha_r": 340.0, "beta": 0.25, "gamma": 0.125}
RANKS = (2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 25)
TOKEN = re.compile(r"\s*(\d+|[A-Za-z_]\w*|[-+*/^(),])")
FUNCTIONS: dict[str, Callable[..., float]] = {
    "log2": math.log2, "sqrt": math.sqrt, "ceil": math.ceil, "max": max, "min": min,
}  # fmt: skip


def evaluate(formula: str, names: Mapping[str, float]) -> float:
    """Returns the value of a formula, in which adjacent operands are multiplied."""
    written: list[str] = []
    assert "".join(TOKEN.findall(formula)) == formula.replace(" ", "")
    for token in TOKEN.findall(formula):
        before = written[-1] if written else "("
        if token not in "+-*/^,)" and (before == ")" or (re.match(r"\w", before) and before not in FUNCTIONS)):
            written.append("*")
        written.append("**" if token == "^" else token)
    return float(eval(" ".join(written), {"__builtins__": {}}, {**FUNCTIONS, **names}))


class Case(NamedTuple):
    """A shape, the elements of the vector, the algorithm's parameters, and values of further names in the formula."""

    shape: tuple[int, ...]
    elements: int
    params: Mapping[str, str]
    names: Mapping[str, float]


def cycles(plan: un.Plan) -> float:
    found = plan.predicted["cycles"]
    assert found is not None
    return found


def plain(keep: Callable[[int, int], bool] = lambda ranks, elements: True) -> Iterator[Case]:
    """Yields cases of ranks, or PEs in a row, and lengths for which ``keep`` holds."""
    for ranks in RANKS:
        for elements in (5, 720 * 7 * 16):
            if keep(ranks, elements):
                yield Case((ranks,), elements, {}, {})


def squares() -> Iterator[Case]:
    yield from plain(lambda ranks, _: math.isqrt(ranks) ** 2 == ranks)


def grids(params: Mapping[str, str] = {}) -> Iterator[Case]:
    for rows, columns in ((1, 7), (4, 4), (3, 5), (6, 2)):
        for elements in (1, 600):
            yield Case((rows, columns), elements, params, {})


def stages() -> Iterator[Case]:
    for ranks, count in ((2, 3), (3, 2), (5, 1), (4, 2)):
        yield Case((ranks**count,), 60, {"schedule": ",".join([f"a{ranks}"] * count)}, {"a": ranks, "k": count})


def segments() -> Iterator[Case]:
    for ranks in (2, 5, 8):
        for count in (1, 4, 16):
            yield Case((ranks,), 1024, {"segment": str(4096 // count)}, {"S": count})


def parts() -> Iterator[Case]:
    for case in grids({"x": "star", "y": "chain"}):
        time = {
            name: un.plan(
                "reduce", un.machine("wse2", side), elements=case.elements, algorithm=algorithm, model="paper"
            )
            for name, side, algorithm in (("T_x", case.shape[1], "star"), ("T_y", case.shape[0], "chain"))
        }
        yield case._replace(names={name: cycles(plan) for name, plan in time.items()})


def halves() -> Iterator[Case]:
    for case in plain():
        on = un.machine("wse2", case.shape)
        time = {
            "T_reduce": un.plan("reduce", on, elements=case.elements, algorithm="star", model="paper"),
            "T_broadcast": un.plan("broadcast", on, elements=case.elements, algorithm="flood", model="paper"),
        }
        names = {name: cycles(plan) for name, plan in time.items()}
        yield case._replace(params={"reduce": "star", "broadcast": "flood", "root": "end"}, names=names)


def is_power(ranks: int) -> bool:
    return ranks & (ranks - 1) == 0


#: The cases of each condition; a condition that is missing here fails the test.
CONDITIONS: dict[str | None, Callable[[], Iterator[Case]]] = {
    None: plain,
    "P is a power of two": lambda: plain(lambda ranks, _: is_power(ranks)),
    "P is even": lambda: plain(lambda ranks, _: ranks % 2 == 0),
    "P divides the vector": lambda: plain(lambda ranks, elements: elements % ranks == 0),
    "2 P divides the vector, and a reduction is faster than its message": lambda: plain(
        lambda ranks, elements: elements % (2 * ranks) == 0
    ),
    "P is a power of two and divides the vector": lambda: plain(lambda r, e: is_power(r) and e % r == 0),
    "P is a square above 1, in groups of sqrt(P)": squares,
    "P = a^k, in k stages of a ranks": stages,
    "S equal segments": segments,
    "S equal segments, and a reduction is faster than its message": segments,
    "from PE 0 over M x N PEs": grids,
    "on M x N PEs, to PE 0": grids,
    "on a row": plain,
    "T_x and T_y are the times of its parts x and y": parts,
    "T_reduce and T_broadcast are the times of its parts": halves,
}
FORMULAS = [
    pytest.param(a["name"], form, id=f"{a['name']}-{form['model']}-{form['time']}")
    for a in un.algorithms()
    for form in a["formulas"]
]


def machine(model: str, shape: tuple[int, ...]) -> un.Machine:
    if model == "paper":
        return un.machine("wse2", shape)
    prices = PRICES if model == "hockney" else POSTAL
    named = {f"{name}_ns{'' if name.startswith('alpha') else '_per_byte'}": price for name, price in prices.items()}
    return un.machine({"name": "m", "kind": "endpoint", "model": model, **named}, shape)


@pytest.mark.parametrize(("algorithm", "form"), FORMULAS)
def test_predictions_equal_formulas(algorithm: str, form: dict[str, Any]) -> None:
    prices = {"paper": {"T_R": 2.0}, "hockney": PRICES, "pipelining-postal": POSTAL}[form["model"]]
    seen = 0
    for case in CONDITIONS[form["when"]]():
        on = machine(form["model"], case.shape)
        size = {"P": math.prod(case.shape), "n": 4 * case.elements, "B": case.elements}
        if len(case.shape) == 2:
            size |= {"M": case.shape[0], "N": case.shape[1]}
        expected = evaluate(form["time"], {**prices, **size, **case.names})
        for collective in form["collectives"]:
            plan = un.plan(
                collective,
                on,
                elements=case.elements,
                algorithm=algorithm,
                params=dict(case.params),
                model=form["model"],
            )
            found = plan.predicted["cycles"] or 1e9 * plan.predicted["seconds"]
            # Times are stored in seconds, which rounds them.
            assert found == pytest.approx(expected, rel=1e-9), (collective, case)
            seen += 1
    assert seen >= 4


def test_an_evaluated_formula_is_what_it_says() -> None:
    assert evaluate("2 (P-1) (alpha + n/P beta)", {"P": 4, "alpha": 3, "n": 8, "beta": 0.5}) == 24
    assert evaluate("max(B log2(P), P^2)", {"P": 2, "B": 9}) == 9


def test_one_algorithm_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["algorithms", "Star"]) == 0
    assert "time         B (P-1) + 2 T_R + 1  (reduce, by Eq. 1)" in capsys.readouterr().out
    assert main(["algorithms", "star", "--collective", "alltoall"]) == 2
    assert "'star' is no algorithm of alltoall" in capsys.readouterr().err
    assert main(["algorithms", "strr"]) == 2
    assert "did you mean star?" in capsys.readouterr().err


@pytest.mark.parametrize("seed", range(6))
def test_a_huge_schedule_takes_as_long_as_its_segments(seed: int) -> None:
    """Times of closed rounds, beyond 2^20 instructions, continue those of simulations of fewer segments."""
    draw = random.Random(f"segments {seed}")
    machine, ranks = draw.choice(["archer", "paper-sim"]), 3 if seed < 2 else draw.randint(2, 9)
    kind, name = (
        draw.choice(["reduce", "broadcast"]) if seed else "reduce",
        draw.choice(["binary-tree", "pipelined-chain"]),
    )
    small = un.plan(kind, machine, shape=ranks, bytes="4MiB", algorithm=name, params={"segment": "1024"})
    size = (1 << 32) // ranks // 1024 * 1024
    large = un.plan(kind, machine, shape=ranks, bytes=size, algorithm=name, params={"segment": "1024"})
    assert (small.predicted["source"], large.predicted["source"]) == ("simulated", "rounds")
    scaled = small.predicted["seconds"] * size / (4 << 20)
    assert large.predicted["seconds"] == pytest.approx(scaled, rel=0.15), (machine, ranks, kind, name)
