"""Command graphs as Graphviz text: a box for each command of each rank, and what it waits for."""

from collections.abc import Callable, Sequence
from typing import Any

from unisono._core import Discovery


def commands_of(build: Callable[[Discovery], None], nodes: int, rank: int, rules: str) -> list[tuple[Any, ...]]:
    """The commands of a rank for the program that ``build`` submits."""
    discovery = Discovery(nodes, rank, rules, report=False)
    build(discovery)
    discovery.flush()
    return discovery.commands()


def dot(build: Callable[[Discovery], None], nodes: int, rules: str, title: str) -> str:
    """The command graphs of all ranks, side by side; messages between ranks are dashed."""
    lines = [
        "digraph commands {",
        f"  label={_quoted(title)}; labelloc=t; rankdir=TB;",
        '  node [shape=box, fontname="sans-serif"];',
    ]
    messages: dict[tuple[int, int], list[tuple[str, str]]] = {}
    for rank in range(nodes):
        discovery = Discovery(nodes, rank, rules, report=False)
        build(discovery)
        discovery.flush()
        lines += [f"  subgraph cluster_{rank} {{", f"    label={_quoted(f'rank {rank}')};"]
        for command in discovery.commands():
            kind, number, task, (waits, until), *rest = command
            name = f"r{rank}c{number}"
            label = _label(kind, rest, discovery.task_name(task))
            lines.append(f"    {name} [label={_quoted(label)}{_style(kind)}];")
            earlier = waits if until is None else sorted({*waits, *range(until + 1)})
            lines += [f"    r{rank}c{before} -> {name};" for before in earlier]
            if kind == "push":
                messages.setdefault((rank, rest[1]), []).append(("push", name))
            if kind == "await":
                for source, _ in rest[1]:
                    messages.setdefault((source, rank), []).append(("await", name))
        lines.append("  }")
    for pair in sorted(messages):
        ends = {kind: [name for k, name in messages[pair] if k == kind] for kind in ("push", "await")}
        # Messages between two ranks are received in the order in which they are sent.
        lines += [f"  {a} -> {b} [style=dashed];" for a, b in zip(ends["push"], ends["await"], strict=True)]
    return "\n".join([*lines, "}", ""])


def _label(kind: str, rest: Sequence[Any], task: str) -> str:
    match kind:
        case "execute":
            low, high = rest
            spans = " x ".join(f"[{a}, {b})" for a, b in zip(low, high, strict=True))
            return f"{task}\n{spans}"
        case "push":
            return f"push b{rest[0]} to {rest[1]}\n{_region(rest[2])}"
        case "await":
            return f"await push b{rest[0]}\n" + "\n".join(_region(region) for _, region in rest[1])
        case _:
            return f"{rest[2].pattern} b{rest[0]}\n{_region(rest[3])}"


def _region(boxes: Sequence[Any]) -> str:
    texts = [" x ".join(f"[{a}, {b})" for a, b in zip(low, high, strict=True)) for low, high in boxes]
    return ", ".join(texts) or "nothing"


def _style(kind: str) -> str:
    return {"push": ", color=gray40", "await": ", color=gray40", "collective": ", penwidth=2"}.get(kind, "")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
