"""Statements about its algorithm in the text of "Automatic Discovery of Collective Communication Patterns" (2024).

Each function of ``CHECKS`` computes one kind of claim of `papers/discovery/claims.toml`. The programs are those of
Table 3 and listing 1, by the rules of the paper.
"""

from collections.abc import Callable, Mapping
from typing import Any

from unisono._core import Discovery, InputError, Mapper, TaskList
from unisono.reproduce import Finding

__all__ = ["Build", "checks", "everywhere", "settled"]

Listed = Mapping[str, Any]
#: A function that submits an example of the paper in the given number of rounds, with buffers of the given side.
Build = Callable[[Discovery | TaskList, str, int, int], None]

ALL, ONE_TO_ONE, TRANSPOSED = Mapper("all"), Mapper("one_to_one"), Mapper("transposed", perm=(1, 0))
#: The numbers of nodes on which programs are checked.
NODES = (2, 3, 4, 7, 8, 64)
#: The number of elements in a dimension of buffers: 64 nodes get parts that are not empty, and 3 or 7 nodes uneven
#: parts.
SIDE = 128


def settled(
    submit: Callable[[Discovery], None], nodes: int, rank: int | None = None, rules: str = "paper"
) -> Discovery:
    """Returns the discovery of a program after its last task, of one rank or with the report of all ranks."""
    discovery = Discovery(nodes, rank, rules, report=rank is None)
    submit(discovery)
    discovery.flush()
    return discovery


def _collectives(submit: Callable[[Discovery], None], nodes: int) -> str:
    """Returns the collectives of a program in the order of issue."""
    report = settled(submit, nodes).report()
    return " ".join(f["collective"] for f in report["forwards"] if f["collective"])


def everywhere(listed: Listed, submit: Callable[[Discovery], None]) -> Finding:
    """Returns the collectives on all numbers of nodes, or the first ones that differ from the reported ones."""
    found = {nodes: _collectives(submit, nodes) for nodes in NODES}
    differing = {nodes: text for nodes, text in found.items() if text != listed["reported"]}
    ours = next(iter(differing.values()), found[NODES[0]])
    remark = f"Differs on {differing}." if differing else f"On {', '.join(map(str, NODES))} nodes."
    return Finding(listed["reported"], ours, remark=remark)


def _near_equal(listed: Listed) -> Finding:
    """Computes the largest difference in size of two parts of a range."""

    def parts(size: int, nodes: int) -> list[int]:
        def submit(discovery: Discovery) -> None:
            discovery.task("t", size, [(discovery.buffer("A", size), "write", ONE_TO_ONE)])

        kernels = (c for rank in range(nodes) for c in settled(submit, nodes, rank).commands() if c[0] == "execute")
        return [high[0] - low[0] for *_, low, high in kernels]

    differences = [max(p) - min(p) for size in (10, 64, 1000) for p in (parts(size, nodes) for nodes in NODES)]
    return Finding(listed["reported"], max(differences))


def _order(listed: Listed, build: Build) -> Finding:
    """Computes the largest number of distinct orders in which a program's ranks issue collectives, on 3 and 8 nodes."""

    def issued(example: str, nodes: int, rank: int) -> tuple[Any, ...]:
        commands = settled(lambda discovery: build(discovery, example, 3, SIDE), nodes, rank).commands()
        return tuple((c[4], c[5], c[6].pattern) for c in commands if c[0] == "collective")

    orders = [
        len({issued(example, nodes, rank) for rank in range(nodes)})
        for example in listed["examples"]
        for nodes in (3, 8)
    ]
    return Finding(listed["reported"], max(orders))


def _oblivious(listed: Listed, build: Build) -> Finding:
    """Counts for each program the distinct lists of forwards on all numbers of nodes, and returns the largest count."""

    def forwards(example: str, nodes: int) -> str:
        report = settled(lambda discovery: build(discovery, example, 3, SIDE), nodes).report()
        return str([(f["after_index"], f["before_index"], f["buffer"], f["region"]) for f in report["forwards"]])

    counts = [len({forwards(example, nodes) for nodes in NODES}) for example in listed["examples"]]
    return Finding(listed["reported"], max(counts))


def _once(listed: Listed) -> Finding:
    def submit(discovery: Discovery) -> None:
        a = discovery.buffer("A", SIDE)
        discovery.task("write", SIDE, [(a, "write", ONE_TO_ONE)])
        for name in ("first", "second"):
            discovery.task(name, SIDE, [(a, "read", ALL)])

    return everywhere(listed, submit)


def _masked(listed: Listed) -> Finding:
    def submit(discovery: Discovery) -> None:
        a = discovery.buffer("A", SIDE)
        discovery.task("write", SIDE, [(a, "write", ONE_TO_ONE)])
        if listed["first"] == "one":
            discovery.task("one", 1, [(a, "read", ALL)])
        else:
            discovery.task("near", SIDE, [(a, "read", Mapper("neighborhood", halo=(1,)))])
        discovery.task("many", SIDE, [(a, "read", ALL)])

    return everywhere(listed, submit)


def _writers(listed: Listed) -> Finding:
    """Lists the mappers with which tasks may write; with others several nodes would write one element."""

    def accepted(mapper: Mapper) -> bool:
        discovery = Discovery(4, rules="paper")
        a = discovery.buffer("A", (SIDE, SIDE))
        try:
            discovery.task("write", (SIDE, SIDE), [(a, "write", mapper)])
        except InputError:
            return False
        return True

    named = {"one_to_one": ONE_TO_ONE, "transposed": TRANSPOSED, "all": ALL}
    return Finding(listed["reported"], " ".join(name for name, mapper in named.items() if accepted(mapper)))


def _copies(listed: Listed, build: Build) -> Finding:
    """Counts copies, or broadcasts, among a node's memories in a round: four rounds minus three."""

    def sums(example: str, nodes: int, rounds: int) -> int:
        tasks = TaskList()
        # The side is so long that each device has a part.
        build(tasks, example, rounds, max(SIDE, nodes * listed["devices"]))
        report, _ = tasks.devices(nodes, listed["rules"], 0, listed["devices"])
        if listed["item"] == "broadcasts":
            return report["broadcasts"]
        rows = (row for row in report["operations"] if row["moment"] == "before-kernel")
        return sum(row["count"] * row["updates"] for row in rows)

    ours = []
    for example in listed["examples"]:
        ours += [sums(example, nodes, 4) - sums(example, nodes, 3) for nodes in listed["nodes"]]
    return Finding(listed["reported"], ours)


def checks(build: Build) -> dict[str, Callable[[Listed], Finding]]:
    """Returns the functions that compute claims, by the names of checks in the list of claims."""
    return {
        "copies": lambda listed: _copies(listed, build),
        "exchanged-once": _once,
        "masked": _masked,
        "near-equal": _near_equal,
        "oblivious": lambda listed: _oblivious(listed, build),
        "order": lambda listed: _order(listed, build),
        "writers": _writers,
    }
