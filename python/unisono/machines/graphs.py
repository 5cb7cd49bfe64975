"""Machines from graphs that a program holds, such as those of networkx."""

from collections.abc import Mapping
from typing import Any, TypeGuard

from unisono._core import InputError, Machine, import_network
from unisono.base.inputs import GraphLike
from unisono.base.messages import shown

__all__ = ["is_graph", "of_graph"]

#: What a cable may say, as the words of a list of cables.
_WORDS = ("gbps", "ns", "count")


def is_graph(value: object) -> TypeGuard[GraphLike]:
    """Whether a value is a graph as networkx has them."""
    return all(hasattr(value, name) for name in ("nodes", "edges", "is_directed"))


def of_graph(graph: GraphLike) -> Machine:
    """The network whose nodes and cables are those of a graph.

    A node is a switch where its data has ``switch=True``, else an accelerator; accelerators are ranks in the order of
    the graph. The data of an edge may have ``gbps`` (of one direction), ``ns`` (latency) and ``count`` (equal cables);
    what no edge says is assumed, as in a list of cables that is imported.

    Raises:
        InputError: the graph is directed, has no accelerator, or data that are no numbers.

    """
    if graph.is_directed():
        raise InputError("the graph is directed; cables go both ways, so that accepted are undirected graphs")
    nodes = list(graph.nodes(data=True))
    accelerators = [node for node, data in nodes if not data.get("switch")]
    switches = [node for node, data in nodes if data.get("switch")]
    number = {node: at for at, node in enumerate([*accelerators, *switches])}
    if not accelerators:
        raise InputError("the graph has no accelerator: all its nodes are switches")
    lines = [f"{number[a]} {number[b]}{_words(a, b, data)}" for a, b, data in graph.edges(data=True)]
    # networkx keeps the name of a graph among its data.
    about = getattr(graph, "graph", None)
    name = str(about.get("name") or "graph") if isinstance(about, Mapping) else "graph"
    return import_network("\n".join(lines) + "\n", "the graph", "edges", name, 1, len(accelerators))


def _words(a: object, b: object, data: Mapping[str, Any]) -> str:
    found = []
    for word in _WORDS:
        value = data.get(word)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(
                f"the edge between {shown(a)} and {shown(b)} has {word}={shown(value)}, which is no number"
            )
        found.append(f" {word}={value}")
    return "".join(found)
