"""The certificates of the bounds of all synthesized cases, checked twice: rows of benches/results/proofs.csv.

The first checker is `unisono verify --certificate`; the second one is `tests/python/bound_checker.py`, which shares no
code with it: this program takes the cables from the machine file. The seconds that the prices prove according to both
are compared with the plan's bound. No candidate is ranked, since the bound does not depend on the plan.
"""

import argparse
import importlib.util
import itertools
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import unisono as un
from common.figures import Figures, Of, parsed

HERE = Path(__file__).resolve().parent
MIB = 1 << 20


class Case(NamedTuple):
    """A collective on a machine, with the bound and the algorithm of its certificate."""

    collective: str
    machine: str
    bytes: int
    bound: str = "cut"
    algorithm: str = "ring"


CASES = (
    *(Case("allgather", name, 64 * MIB) for name in ("dgx-a100", "dgx-a100-x2", "dgx-a100-x4", "mi250", "mi250-x2")),
    Case("allgather", "torus-32x32", MIB),
    *(Case("allgather", "torus2d-small", size << 10) for size in (1, 16, 128)),
    *(Case("allgather", f"teccl-{name}", MIB) for name in ("dgx2-x2", "ndv2-x2", "ndv2-x4")),
    Case("alltoall", "torus-8x8x8", 32 << 10, "flow", "linear"),
    Case("allgather", "torus2d-large", 1 << 10),
)


def of_list(lines: str, rate: float) -> Iterator[tuple[int, int, float]]:
    """Yields both nodes and the Gbit/s of each cable in lines `A B [gbps=RATE] [count=N]`."""
    for line in filter(None, (line.split("#")[0].split() for line in lines.splitlines())):
        words = dict(word.split("=") for word in line[2:] if "=" in word)
        for _ in range(int(words.get("count", 1))):
            yield int(line[0]), int(line[1]), float(words.get("gbps", rate))


def of_boxes(topology: dict[str, Any], rate: float) -> Iterator[tuple[int, int, float]]:
    """Yields the cables of boxes; nodes are accelerators, box by box, then other nodes, box by box, shared switches."""
    boxes, each = topology["boxes"], topology["accelerators"]
    inside = list(of_list(topology["inside"], rate))
    uplinks = list(of_list(topology["uplinks"], rate))
    others = max([each - 1, *(max(a, b) for a, b, _ in inside), *(a for a, _, _ in uplinks)]) + 1 - each
    shared = boxes * (each + others)
    for box in range(boxes):
        place = [box * each + k for k in range(each)] + [boxes * each + box * others + k for k in range(others)]
        yield from ((place[a], place[b], gbps) for a, b, gbps in inside)
        yield from ((place[a], shared + b, gbps) for a, b, gbps in uplinks)
    yield from ((shared + a, shared + b, gbps) for a, b, gbps in of_list(topology.get("outside", ""), rate))


def of_torus(dims: list[int], rate: float) -> Iterator[tuple[int, int, float]]:
    """Yields the cables of a torus, wrap-around cables included; nodes are numbered row by row."""
    for at in itertools.product(*map(range, dims)):
        for dim, size in enumerate(dims):
            there = [*at[:dim], (at[dim] + 1) % size, *at[dim + 1 :]]
            ends = []
            for place in (at, there):
                number = 0
                for k, extent in zip(place, dims, strict=True):
                    number = number * extent + k
                ends.append(number)
            yield ends[0], ends[1], rate


def cables(machine: dict[str, Any]) -> Iterator[tuple[int, int, int]]:
    """Returns both nodes and the bit/s of each cable in one plane."""
    topology, rate = machine["topology"], machine["link_gbps"]
    match topology["name"]:
        case "boxes":
            listed = of_boxes(topology, rate)
        case "graph":
            listed = of_list(topology["edges"], rate)
        case "torus":
            listed = of_torus(topology["dims"], rate)
        case other:
            raise ValueError(other)
    return ((a, b, round(gbps * 1e9)) for a, b, gbps in listed)


def file_of(name: str) -> Path:
    """Returns the path of a machine file in `benches/machines`, or else of a preset."""
    found = HERE / "machines" / f"{name}.toml"
    return found if found.exists() else HERE.parent / "machines" / f"{name}.toml"


def second_checker() -> Callable[[str, Iterable[tuple[int, int, int]], int], Fraction]:
    """Returns `bound_seconds` of `tests/python/bound_checker.py`, imported by path: tests are no installed package."""
    spec = importlib.util.spec_from_file_location(
        "bound_checker", HERE.parent / "tests" / "python" / "bound_checker.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: Callable[[str, Iterable[tuple[int, int, int]], int], Fraction] = module.bound_seconds
    return found


def check(case: Case, folder: Path, figures: Figures) -> bool:
    """Writes a certificate, and returns whether both checkers prove the bound of `unisono bounds`."""
    file = file_of(case.machine)
    machine = un.machine(str(file))
    plan = un.plan(case.collective, machine, bytes=case.bytes, algorithm=case.algorithm)
    stated = next(
        float(bound["seconds"])
        for bound in un.bounds(case.collective, machine, bytes=case.bytes)
        if bound["name"] == case.bound
    )
    text = plan.certificate()
    certificate = folder / "bound.json"
    certificate.write_text(text)
    start = time.process_time()
    first = un.check_bound(certificate, machine)
    checked = time.process_time()
    described = tomllib.loads(file.read_text())
    second = float(second_checker()(text, cables(described), described.get("planes", 1)))
    again = time.process_time()
    proved = first["seconds"] or 0.0
    agree = first["holds"] and abs(proved / stated - 1) < 1e-6 and abs(second / stated - 1) < 1e-6
    figures.add(
        f"{case.collective}, {case.machine}, {case.bytes:,} B",
        Of("bound", f"{stated * 1e6:.6g}", "µs"),
        Of("verify", f"{checked - start:.2f}", "CPU s", "second checker", f"{again - checked:.2f}"),
        note=case.bound,
    )
    if not agree:
        found = proved if first["holds"] else first["reason"]
        sys.stderr.write(f"the first checker found {found}, the second {second}, and the bound is {stated}\n")
    return bool(agree)


def main() -> None:
    """Adds the figures of each case; the exit code is 1 if a checker disagrees with a bound."""
    given = parsed(argparse.ArgumentParser(description=__doc__))
    topic = "Certificates of bounds"
    with Figures("proofs", topic, given) as figures, tempfile.TemporaryDirectory() as folder:
        agreed = [check(case, Path(folder), figures) for case in CASES]
        if not all(agreed):
            sys.exit(1)


if __name__ == "__main__":
    main()
