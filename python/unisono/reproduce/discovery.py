"""The claims of "Automatic Discovery of Collective Communication Patterns in Parallelized Task Graphs" (2024).

Each function of ``CHECKS`` computes one kind of claim of `papers/discovery/claims.toml`.
"""

import time
from collections import Counter
from itertools import product
from pathlib import Path
from statistics import median

from unisono._core import Discovery, Mapper, TaskList, discovery_rate
from unisono.base.files import write
from unisono.base.tables import csv_text
from unisono.pictures.graphs import Source, write_graph
from unisono.reproduce import Finding, Listed, checks_of, discovery_predicted, discovery_statements
from unisono.reproduce.discovery_statements import ALL, NODES, ONE_TO_ONE, SIDE, TRANSPOSED, everywhere, settled
from unisono.reproduce.once import begin, once

__all__ = ["CHECKS", "EXAMPLES", "NODES", "draw", "loop", "n_body"]

EXAMPLES = ("all-gather", "gather-scatter", "gather-bcast", "all-to-all", "stencil")
_PAPER = "Automatic Discovery of Collective Communication Patterns, 2024"
_FIG_3_NODES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_FIG_3_RULES = ("off", "paper", "full")
_FIG_3_TASKS = 20_000
#: Tasks in a round of each example of Table 3.
_STEPS = {"all-gather": 1, "gather-scatter": 2, "gather-bcast": 2, "all-to-all": 1, "stencil": 1}
#: Values of Fig. 5.
_BODIES = 1_048_576

NEIGHBORS = Mapper("neighborhood", halo=(1, 1))
_MAPPERS = {
    "all": ALL,
    "fixed": Mapper("fixed", offset=(0, 0), extent=(SIDE // 2, SIDE)),
    "neighborhood": NEIGHBORS,
    "one_to_one": ONE_TO_ONE,
    "transposed": TRANSPOSED,
}
#: Bytes of an element of an array of 3-vectors, and of one of their components.
_VECTOR, _COMPONENT = 24, 8


def draw(folder: Path, _full: bool = False) -> list[str]:
    """Draws the command graphs of Figs. 1 and 2, also as Graphviz text, and Fig. 3 with its CSV; makes the folder."""
    begin(_rate, product(EXAMPLES, _FIG_3_NODES, _FIG_3_RULES))
    # Imported late, because matplotlib takes long to import.
    from unisono.pictures import plots

    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for number, rules, what in ((1, "off", "point-to-point"), (2, "paper", "with discovery")):
        title = f"N-body, two steps, {what} (after Fig. {number} of {_PAPER})"
        for form in ("dot", "png"):
            file = folder / f"fig{number}.{form}"
            write_graph(Source(n_body, 2, rules), file, "commands", title)
            files.append(str(file))
    rates = {
        example: [(nodes, *(_rate(example, nodes, rules) for rules in _FIG_3_RULES)) for nodes in _FIG_3_NODES]
        for example in EXAMPLES
    }
    ratios = {example: [(nodes, paper / off) for nodes, off, paper, _ in row] for example, row in rates.items()}
    image = plots.curves(
        ratios, "nodes M", "tasks per second over point-to-point", "Discovery's effect on the scheduler's throughput",
        f"after Fig. 3 of {_PAPER}", log_x=True, log_y=True,
    )  # fmt: skip
    table = [[example, *row] for example, rows in rates.items() for row in rows]
    names = ["example", "nodes", "off_tasks_per_second", "paper_tasks_per_second", "full_tasks_per_second"]
    for file, content in ((folder / "fig3.png", image), (folder / "fig3.csv", csv_text(names, table))):
        write(file, content)
        files.append(str(file))
    return files


def n_body(discovery: Discovery | TaskList, steps: int = 2, bodies: int = SIDE) -> None:
    """Submits the N-body program of Listing 1."""
    p, v = (discovery.buffer(name, bodies, 24, initialized=True) for name in ("P", "V"))
    for _ in range(steps):
        discovery.task("time_step", bodies, [(p, "read", ALL), (v, "read_write", ONE_TO_ONE)])
        discovery.task("update_p", bodies, [(v, "read", ONE_TO_ONE), (p, "read_write", ONE_TO_ONE)])


def loop(
    discovery: Discovery | TaskList, example: str, rounds: int = 3, side: int = SIDE, *, as_printed: bool = False
) -> None:
    """Submits a row of Table 3, in a loop that swaps the buffers: after each step, or ``as_printed`` after a round."""
    flat = example in ("all-gather", "gather-scatter", "gather-bcast")
    shape = (side,) if flat else (side, side)
    a, b = (discovery.buffer(name, shape, initialized=True) for name in ("B", "B'"))
    for _ in range(rounds):
        match example:
            case "all-gather":
                discovery.task("all-gather", shape, [(a, "read", ALL), (b, "write", ONE_TO_ONE)])
            case "all-to-all":
                discovery.task("all-to-all", shape, [(a, "read", TRANSPOSED), (b, "write", ONE_TO_ONE)])
            case "stencil":
                discovery.task("stencil", shape, [(a, "read", NEIGHBORS), (b, "write", ONE_TO_ONE)])
            case _:
                reads = ALL if example == "gather-bcast" else ONE_TO_ONE
                discovery.task("one", 1, [(a, "read", ALL), (b, "write", ALL)])
                if as_printed:
                    discovery.task("many", shape, [(a, "read", reads), (b, "write", ONE_TO_ONE)])
                else:
                    discovery.task("many", shape, [(b, "read", reads), (a, "write", ONE_TO_ONE)])
                    continue
        a, b = b, a


def _example(to: Discovery | TaskList, example: str, rounds: int, side: int = SIDE) -> None:
    if example == "n-body":
        n_body(to, rounds, side)
    elif example == "eight-producers":
        a = to.buffer("A", side)
        for part in range(8):
            written = Mapper("fixed", offset=(part * side // 8,), extent=(side // 8,))
            to.task(f"part {part}", 1, [(a, "write", written)])
        to.task("all", side, [(a, "read", ALL)])
    else:
        loop(to, example, rounds, side)


def _edge(listed: Listed) -> Finding:
    def build(discovery: Discovery) -> None:
        buffer = discovery.buffer("B", (SIDE, SIDE))
        for name, mode in (("producer", "write"), ("consumer", "read")):
            width, mapper = listed[name]
            sizes = (SIDE, SIDE) if width == "many" else (1, 1)
            discovery.task(name, sizes, [(buffer, mode, _MAPPERS[mapper])])

    return everywhere(listed, build)


def _loop(listed: Listed) -> Finding:
    printed = listed.get("as_printed", False)
    return everywhere(listed, lambda discovery: loop(discovery, listed["example"], as_printed=printed))


def _in_vain(listed: Listed) -> Finding:
    """Divides the bytes moved by the paper's rules by those of messages alone.

    The consumer of the program has fewer parts than there are nodes.
    """

    def submit(discovery: Discovery) -> None:
        a = discovery.buffer("A", 1024, _COMPONENT)
        discovery.task("producer", 1024, [(a, "write", ONE_TO_ONE)])
        discovery.task("consumer", listed["parts"], [(a, "read", ALL)])

    def sent(rules: str) -> int:
        messages = settled(submit, listed["nodes"], rules=rules).report()["messages"]
        return messages["p2p_bytes"] + messages["collective_bytes"]

    return Finding(listed["reported"], sent("paper") / sent("off"), f"{sent('paper')} over {sent('off')} bytes.")


def _n_body_commands(listed: Listed) -> Finding:
    ours: list[int] = []
    for nodes in listed["nodes"]:
        counts = []
        for rank in range(nodes):
            kinds = Counter(command[0] for command in Source(n_body, nodes, listed["rules"]).settled(rank).commands())
            counts.append([kinds["push"], kinds["await"], kinds["collective"]])
        # If ranks differ in their counts, -1 makes the claim fail.
        ours += counts[0] if all(each == counts[0] for each in counts) else [-1, -1, -1]
    return Finding(listed["reported"], ours)


def _n_body_forwards(listed: Listed) -> Finding:
    found = []
    for nodes in NODES:
        discovery = Discovery(nodes, rules="paper")
        n_body(discovery, steps=5)
        found.append(sum(f["buffer"] == listed["buffer"] for f in discovery.report()["forwards"]))
    return Finding(listed["reported"], max(found))


def _n_body_variants(listed: Listed) -> Finding:
    """Lists, by buffer, the forwards of the second step of the N-body variants of section 4.3."""
    arrays = listed["variant"] == "arrays"
    size, parts = (_COMPONENT, "xyz") if arrays else (_VECTOR, ("",))
    rows = ONE_TO_ONE if arrays else Mapper("project", kernel_dim=0)

    def build(discovery: Discovery, steps: int) -> None:
        p, v = ([discovery.buffer(name + part, SIDE, size, initialized=True) for part in parts] for name in ("P", "V"))
        for _ in range(steps):
            reads, updates = [(one, "read", ALL) for one in p], [(one, "read_write", rows) for one in v]
            discovery.task("time_step", SIDE if arrays else (SIDE, 32), [*reads, *updates])
            reads, updates = ([(one, mode, ONE_TO_ONE) for one in of] for of, mode in ((v, "read"), (p, "read_write")))
            discovery.task("update_p", SIDE, [*reads, *updates])

    def forwards(nodes: int, steps: int) -> list[str]:
        report = settled(lambda discovery: build(discovery, steps), nodes).report()
        return [f"{f['buffer']} {f['collective'] or 'none'}" for f in report["forwards"]]

    def second(nodes: int) -> str:
        found = forwards(nodes, 3)
        for one in forwards(nodes, 2):
            found.remove(one)
        return ", ".join(sorted(found))

    found = {second(nodes) for nodes in NODES}
    return Finding(listed["reported"], "; ".join(sorted(found)))


def _tracked(listed: Listed) -> Finding:
    def build(discovery: Discovery) -> None:
        a, b = (discovery.buffer(name, 1024, initialized=True) for name in ("B", "B'"))
        for _ in range(2):
            discovery.task("all-gather", 1024, [(a, "read", ALL), (b, "write", ONE_TO_ONE)])
            a, b = b, a

    ours = []
    for nodes in listed["nodes"]:
        ours.append(_communications(Source(build, nodes, listed["rules"]), 0))
    return Finding(listed["reported"], ours)


def _commands_per_node(listed: Listed) -> Finding:
    """Computes the communication commands of a step per node, the mean of all nodes, in a long loop."""
    ours = []
    for example in listed["examples"]:
        for nodes in listed["nodes"]:
            # The count of a short loop is subtracted from that of a long loop, because the first step communicates
            # nothing.
            short, long = (_commands(example, nodes, rounds, listed["rules"]) for rounds in (2, 4))
            steps = 2 * _STEPS[example]
            ours.append((long - short) / steps / nodes)
    reported = listed["reported"]
    return Finding(reported if isinstance(reported, list) else [reported] * len(ours), ours)


def _commands(example: str, nodes: int, rounds: int, rules: str) -> int:
    source = Source(lambda discovery: loop(discovery, example, rounds, 4 * nodes), nodes, rules)
    return sum(_communications(source, rank) for rank in range(nodes))


def _communications(source: Source, rank: int) -> int:
    """Counts the commands of a rank that communicate."""
    return sum(command[0] in ("push", "await", "collective") for command in source.settled(rank).commands())


def _communication_gain(listed: Listed) -> Finding:
    return discovery_predicted.gain(listed, lambda discovery: loop(discovery, listed["example"], 3, listed["side"]))


def _communication_gains(listed: Listed) -> Finding:
    """Computes the gains of several examples on one number of nodes."""
    gains = [_communication_gain({**listed, "example": example}) for example in listed["examples"]]
    return Finding(listed["reported"], [found.ours[0] for found in gains])


def _one_exchange(discovery: Discovery) -> None:
    n_body(discovery, 2, _BODIES)


def _strong_scaling(listed: Listed) -> Finding:
    return discovery_predicted.speedups(listed, _one_exchange)


@once
def _rate(example: str, nodes: int, rules: str) -> float:
    # Without collectives a task has up to a command per node, so fewer tasks are timed.
    tasks = max(200, _FIG_3_TASKS // nodes) if rules == "off" else _FIG_3_TASKS
    spent = []
    for _ in range(3):
        # CPU time is measured, because other work on the cores lengthens the wall time of a short run by any factor.
        begin = time.thread_time()
        discovery_rate(example, nodes, rules, tasks, 1)
        spent.append(time.thread_time() - begin)
    return tasks / min(spent)


def _throughput(listed: Listed) -> Finding:
    """Divides task rates for two pairs of rules and node count; one quotient per example, or the median."""
    (rules, over), (nodes, nodes_over) = listed["rules"], listed["nodes"]
    rates = [(_rate(name, nodes, rules), _rate(name, nodes_over, over)) for name in listed["examples"]]
    ratios = [rate / base for rate, base in rates]
    shown = ", ".join(
        f"{name} {rate:.0f} over {base:.0f}" for name, (rate, base) in zip(listed["examples"], rates, strict=True)
    )
    ours = [median(ratios)] if listed.get("median", False) else ratios
    return Finding(listed["reported"], ours, remark=f"Tasks per CPU second: {shown}.")


CHECKS = checks_of(globals()) | discovery_statements.checks(_example)
